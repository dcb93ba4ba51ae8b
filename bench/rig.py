"""The compared servers, the cores of each, and one measurement of one server."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
os.environ.setdefault("WEIR", str(REPO / "build/weir"))
os.environ["PATH"] += os.pathsep + "/usr/sbin"  # where Debian installs the peers
sys.path.insert(0, str(REPO / "tests/it"))

import redis_benchmark  # noqa: E402
from kit.harness import WEIR, Process, Redis, Weir, free_port, wait_until  # noqa: E402
from kit.resp import Closed, Conn, dial, encode  # noqa: E402
from kit.tls import Authority  # noqa: E402
from machine import FIRST, SECOND, Cores, Stretch, end_with_parent, missing, pin, put_first, raise_open_files  # noqa: E402

DRIVE = Path(os.environ.get("DRIVE", REPO / "build/release/drive"))
MAX_CLIENTS = 20000
SIZES = {"16 B": 16, "1 KiB": 1 << 10, "64 KiB": 1 << 16, "1 MiB": 1 << 20}
KEYS = {16: 1000, 1 << 10: 1000, 1 << 16: 64, 1 << 20: 8}  # number of keys of each size

LARGE = 1 << 15
TRIES = 3  # other work can keep a pinned process from its core for a whole measurement

PLENTY = "100m/s"  # three limits that bind and always have room
LIMITS = f"[policy default]\nread = {PLENTY}\nwrite = {PLENTY}\nall = {PLENTY}\n"
NONE_PASSES = "[policy default]\nall = 1/1d\n"
READS_PASS = f"[policy default]\nread = {PLENTY}\nall = {PLENTY}\nwrite = 1/1d\n"


class Failed(Exception):
    """An endpoint cannot do what a cell requires."""


# ---- servers ----


class PortProcess(Process):
    """A peer: a program with a configuration file, that listens on a port of its own."""

    def start(self):
        self.port = free_port()
        self.launch(self.prepare())
        wait_until(lambda: self.answers() or not self.is_running(), f"{self.name} answers")
        assert self.is_running(), self.log()

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    def answers(self):
        try:
            with Conn(self.address, 1) as conn:
                return conn.call("GET", "none") is None
        except (OSError, Closed):
            return False

    def write(self, text):
        path = self.folder / "conf"
        path.write_text(text)
        return str(path)


class Nutcracker(PortProcess):
    """nutcracker as packaged. At the default log level nutcracker calls getpeername at every
    request, for a log line that its build leaves out. Option -v 4 or lower avoids the call."""

    def __init__(self, redis, *options):
        super().__init__("nutcracker")
        self.redis, self.options = redis, options

    def prepare(self):
        conf = self.write(
            f"bench:\n  listen: 127.0.0.1:{self.port}\n  redis: true\n  preconnect: true\n  server_connections: 1\n"
            f"  servers:\n   - 127.0.0.1:{self.redis.port}:1\n"
        )
        pid = str(self.folder / "pid")
        log = str(self.folder / "nutcracker.log")
        where = ["-s", str(free_port()), "-a", "127.0.0.1", "-p", pid, "-o", log]
        return ["nutcracker", "-c", conf, *where, *self.options]


class Haproxy(PortProcess):
    bind = ""

    def __init__(self, redis):
        super().__init__("haproxy")
        self.redis = redis

    def prepare(self):
        conf = self.write(
            f"global\n  nbthread 1\n  maxconn 9800\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n"
            f"  timeout server 1h\nlisten bench\n  bind 127.0.0.1:{self.port}{self.bind}\n"
            f"  server redis 127.0.0.1:{self.redis.port}\n"
        )
        return ["haproxy", "-f", conf, "-db"]


def certificate(folder):
    return Authority(folder).issue("server")


class TlsHaproxy(Haproxy):
    """haproxy ends TLS, like weir. OpenSSL chooses the ciphers."""

    def prepare(self):
        pair = certificate(self.folder)
        both = self.folder / "both.pem"
        both.write_bytes(pair.cert.read_bytes() + pair.key.read_bytes())
        self.bind = f" ssl crt {both}"
        return super().prepare()

    def answers(self):
        with contextlib.suppress(OSError), dial(self.address, 1):
            return True
        return False


class TlsWeir(Weir):
    def start(self):
        pair = certificate(self.folder)
        lines = f"[weir]\ntls-cert-file = {pair.cert}\ntls-key-file = {pair.key}\n"
        self.config.write_text(lines + self.config.read_text())
        super().start()


class Grind(Weir):
    """weir under callgrind. The number of instructions is known after its end. Everything is slow
    under callgrind."""

    def __init__(self, *args, **settings):
        super().__init__(*args, slowlog_log_slower_than="off", **settings)

    def start(self):
        self.counted = self.folder / "callgrind"
        grind = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={self.counted}"]
        self.launch([*grind, str(WEIR), "-c", str(self.config)])

    def instructions(self):
        self.stop()
        lines = self.counted.read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("totals:"))


def make_weir(redis, sections=LIMITS, workers=1, kind=Weir, **settings):
    # all clients come from one address
    settings = {"max_clients": MAX_CLIENTS, "unauthenticated": 0, **settings}
    return kind(redis, workers=workers, lanes="shared", sections=sections, **settings)


# name -> constructor. "weir" has three limits that bind; a variant takes part only in cells that
# name the variant.
PEERS = {"nutcracker": Nutcracker, "haproxy": Haproxy}
VARIANTS = {
    "nutcracker -v 4": lambda redis: Nutcracker(redis, "-v", "4"),
    "weir, no limits": lambda redis: make_weir(redis, ""),
    "weir, all refused": lambda redis: make_weir(redis, NONE_PASSES),
    "weir, writes refused": lambda redis: make_weir(redis, READS_PASS),
    "weir, TLS": lambda redis: make_weir(redis, kind=TlsWeir, listen="tls:127.0.0.1:0"),
    "haproxy, TLS": TlsHaproxy,
    "weir, two workers": lambda redis: make_weir(redis, LIMITS, 2),
}
SERVERS = {"weir": make_weir, **PEERS, **VARIANTS}


@dataclass
class Endpoint:
    name: str
    address: tuple
    pid: int = None  # None: Redis itself

    @property
    def is_tls(self):
        return self.name.endswith(", TLS")


@dataclass(frozen=True)
class Load:
    """The load that the driver sends."""

    words: tuple
    clients: int = 1
    pipeline: int = 1
    size: int = 16
    keys: int = 1000
    flags: tuple = ()
    # endpoint -> expected share of error replies
    errors: dict = field(default_factory=dict, hash=False)
    reply_bytes: int = 0  # of each operation; 0: not checked
    rate: float = 0  # requests per second of an open loop; 0: a closed loop
    driver: str = "drive"  # or redis-benchmark


class Rig:
    """A redis-server and the proxies in front of it, for the duration of a with block."""

    def __init__(self, names=("weir", *PEERS), port=None, extras=(), is_first=False):
        raise_open_files()
        self.cores = Cores()
        self.is_first = is_first  # with priority over all other work of the machine
        self.pace = {}  # requests per second of redis-benchmark
        self.servers = []
        self.redis = Redis("--maxclients", str(MAX_CLIENTS), "--protected-mode", "no")
        self.redis.port = port
        self.start(self.redis, self.cores.redis)
        self.endpoints = {"direct": Endpoint("direct", self.redis.address)}
        try:
            absent = missing(PEERS)
            for name in names:
                if name.split()[0].rstrip(",") in absent:
                    print(f"{name} is not installed: left out")
                    continue
                self.add(name)
            for name, address, pid in extras:
                pin(pid, self.cores.proxy)
                self.endpoints[name] = Endpoint(name, address, pid)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start(self, server, cores):
        self.servers.append(server)
        server.start()
        if isinstance(server, Weir):
            server.wait_ready()
        pin(server.child.pid, cores)
        if self.is_first:
            put_first(server.child.pid)
        return server

    def add(self, name):
        cores = self.cores.two_workers if name == "weir, two workers" else self.cores.proxy
        server = self.start(SERVERS[name](self.redis), cores)
        self.endpoints[name] = Endpoint(name, server.address, server.child.pid)
        return server

    def stop(self, server):
        self.servers.remove(server)
        server.forget()

    def close(self):
        for server in reversed(self.servers):
            server.forget()
        self.servers.clear()

    def fill(self):
        with self.redis.connect() as conn:
            for size, keys in KEYS.items():
                for number in range(keys):
                    conn.call("SET", f"get{size}:{number:07}", b"v" * size)
            for number in range(KEYS[16]):
                conn.call("SET", redis_benchmark.KEY % (16, number), b"v" * 16)

    def pids_of(self, endpoint):
        """Process ids of Redis and of the proxy in front of it."""
        return [pid for pid in (self.redis.child.pid, endpoint.pid) if pid]

    def drive(self, endpoint, load, **how):
        """Runs the driver. Returns its result."""
        run = self.start_drive(endpoint, load, **how)
        out, complaint = run.communicate()
        if run.returncode:
            raise Failed(f"{endpoint.name}: {complaint.strip()}")
        return json.loads(out)

    def start_drive(self, endpoint, load, *, seconds=1.0, warm_up=0.15, count=None, seed=1, more=()):
        host, port = endpoint.address
        argv = [DRIVE, "-c", load.clients, "-P", load.pipeline, "-k", load.keys, "-v", load.size, "-S", seed]
        argv += ["-s", seconds, "-w", warm_up, *(("-n", count) if count else ()), *load.flags, *more]
        argv += [*(("-R", load.rate) if load.rate else ()), *(("-T",) if endpoint.is_tls else ())]
        for pid in self.pids_of(endpoint):
            argv += ["-p", pid]
        argv = [*map(str, argv), f"{socket.gethostbyname(host)}:{port}", *load.words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(argv, preexec_fn=self.become_driver, **pipes)

    def become_driver(self, priority=FIRST):
        end_with_parent()
        os.sched_setaffinity(0, self.cores.driver)
        if self.is_first:
            put_first(0, priority)

    def become_redis_benchmark(self):
        # a driver at its full rate spins, and must not keep a server from its core
        self.become_driver(SECOND)

    def ask(self, endpoint, load, *, seconds, **how):
        """Runs the cell's driver. Returns its result."""
        if load.driver == "drive":
            return self.drive(endpoint, load, seconds=seconds, **how)
        pace = self.pace.get((endpoint.name, load), redis_benchmark.PACE)
        try:
            count, pids = round(pace * seconds), self.pids_of(endpoint)
            said = redis_benchmark.run(endpoint.address, load, count, pids, self.become_redis_benchmark)
        except subprocess.CalledProcessError as error:
            raise Failed(f"{endpoint.name}: {error.stderr.strip()}") from error
        self.pace[endpoint.name, load] = said["ops"] / said["seconds"]
        return said

    def measure(self, endpoint, load, *, seconds, **how):
        """One sample: a cell's figures for one endpoint, from one run of the driver."""
        if load.clients * load.size >= 10 * SIZES["1 MiB"]:
            seconds = max(seconds, 0.3)  # else the replies under way are too great a part
        for _ in range(TRIES):
            commands, stretch = int(self.redis.info("total_commands_processed")), Stretch(self.pids_of(endpoint))
            said = self.ask(endpoint, load, seconds=seconds, **how)
            others, stolen = stretch.disturbance()
            commands = int(self.redis.info("total_commands_processed")) - commands
            if said["ops"] or not said["replies_in_all"]:
                break
        check(endpoint, load, said)
        redis_ns, proxy_ns = (*said["cpu_ns"], 0)[:2]
        seconds, ops = said["seconds"], said["ops"]
        if load.reply_bytes >= LARGE:  # the window's ends cut replies: count by bytes
            ops = said["bytes"] / load.reply_bytes
        return {
            "ops_s": ops / seconds,
            "p50_us": said["p50_us"],
            "p99_us": said["p99_us"],
            "rate": load.rate,
            "late_us": said["late_p99_us"],  # p99 of the driver's delay in sending
            "proxy_us": proxy_ns / 1e3 / ops if endpoint.pid else None,
            "redis_us": redis_ns / 1e3 / ops,
            "driver_us": said["own_cpu_ns"] / 1e3 / ops,
            "proxy_busy": proxy_ns / 1e9 / seconds,
            "redis_busy": redis_ns / 1e9 / seconds,
            "reached": commands / said["replies_in_all"],  # commands seen by Redis for each reply
            # processors that Redis and the proxy waited for
            "waited": sum(said["waited_ns"]) / 1e9 / seconds,
            "others": others,  # processors that other processes used, roughly
            "stolen": stolen,  # processors that the host withheld
        }


def check(endpoint, load, said):
    """Raises Failed if the run was not what the cell asks for."""
    replies, wanted = max(1, said["ops"]), load.errors.get(endpoint.name, 0)
    if said["ops"] == 0 or said["lost"]:
        raise Failed(f"{endpoint.name}: {said['ops']} operations, {said['lost']} connections lost")
    if abs(said["errors"] / replies - wanted) > 0.01:
        raise Failed(f"{endpoint.name}: {said['errors']} errors in {replies} replies: {said['first_error']}")
    if load.reply_bytes and not wanted and said["bytes_in_all"] != said["replies_in_all"] * load.reply_bytes:
        raise Failed(f"{endpoint.name}: {said['bytes_in_all']} bytes in {said['replies_in_all']} replies")
