"""Private servers of a test: a redis-server and a weir on addresses of their own; and waiting for
states.
"""

import contextlib
import ctypes
import math
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from kit.resp import Closed, Conn
from kit.server import REDIS_SERVER, options

REPO = Path(__file__).resolve().parents[3]
NODE_SOURCES = Path(__file__).resolve().parents[1] / "node"
WEIR = Path(os.environ.get("WEIR", REPO / "build/asan/weir")).resolve()

SANITIZER_WORDS = (
    "ERROR: AddressSanitizer",
    "runtime error:",
    "LeakSanitizer",
    "WARNING: ThreadSanitizer",
)
DEBUG_ALLOWED = options((7, 0), "--enable-debug-command", "yes")
# seconds between two polls of a state: each poll costs time that the polled server could use
LONGEST_PAUSE = 0.02
LONG_WAIT = 0.4  # seconds: a longer wait is for a time-out, or for what weir does once a second
LONGEST_PAUSE_OF_LONG_WAIT = 0.05
START_SECONDS = 20
STOP_SECONDS = 20  # twice what a plain build is allowed: tests also run under sanitizers

# Each run takes one half of workers x lanes: make test the first half, make test-long the second.
# Each half has each number of workers and each kind of lanes.
HALVES = [(1, "shared"), (2, "private")], [(2, "shared"), (1, "private")]
IS_LONG = bool(os.environ.get("LONG"))
# The mark of the tests that run: none, or one of three. Tests without the mark do not run.
MARK = {mark for mark in ("moves", "failover", "cluster") if os.environ.get(mark.upper())}
MODES = HALVES[IS_LONG]
MODE_IDS = ["%d-%s" % mode for mode in MODES]

running = []  # running processes, so a failure can show their logs
ended = []  # processes that ended since the current test began


@contextlib.contextmanager
def stopped(process):
    """Stops a process (SIGSTOP) meanwhile: the kernel takes connections, and nothing answers."""
    process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.signal(signal.SIGCONT)


def wait_until(condition, what, seconds=10.0):
    """Waits until the condition is true; returns its value."""
    began = time.monotonic()
    pause = 0.001
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - began
        if waited > seconds:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(pause)
        pause = min(1.5 * pause, LONGEST_PAUSE if waited < LONG_WAIT else LONGEST_PAUSE_OF_LONG_WAIT)


def rounds(n):
    """Returns how many rounds of random steps a test runs: n, or n * $HUNT under `make hunt`."""
    return n * int(os.environ.get("HUNT", 1))


def free_port():
    """Returns a port without a listener, below the range of the kernel's own choices. Use: servers
    that weir connects to and that restart at the same port, where no other test's server may be.
    Each process of the tests has its own ports, so no other process takes the port before the
    server starts.
    """
    n = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    while True:
        port = random.randrange(10240 + worker % n, 32768, n)
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Process:
    """A child process in its own folder, with its output in one log."""

    def __init__(self, name):
        self.name = name
        self.folder = Path(tempfile.mkdtemp(prefix=f"weir-it-{name}-"))
        self.log_path = self.folder / "log"
        self.child = None
        self.last_log = ""

    def launch(self, argv, **kwargs):
        with open(self.log_path, "ab") as log:
            kwargs = {"stderr": log, **kwargs}
            self.child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, cwd=self.folder, **kwargs)
        running.append(self)

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else self.last_log

    def wait_for_log(self, text, times=1):
        """Waits for a line of the log. weir writes its log on a thread. So a line may come later
        than the reply of the command that caused the line.
        """
        wait_until(lambda: self.log().count(text) >= times, f"the log says {text!r}")

    def is_running(self):
        return self.child is not None and self.child.poll() is None

    def signal(self, number):
        self.child.send_signal(number)

    def wait(self, seconds=STOP_SECONDS):
        """Returns the exit code. None: the process did not end in time, and was killed."""
        try:
            code = self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            code = None
        if self in running:
            running.remove(self)
            ended.append(self)
        return code

    def kill(self):
        if self.is_running():
            self.child.kill()
        if self.child:
            self.wait()

    def forget(self):
        """Ends the process in any case, and removes its folder."""
        self.kill()
        self.last_log = self.log()
        shutil.rmtree(self.folder, ignore_errors=True)


class Redis(Process):
    """redis-server without persistence."""

    def __init__(self, *options, unix=False, password=None):
        super().__init__("redis")
        self.options = list(options)
        self.has_password = password is not None
        if password:
            # tests log in as their own user, whatever a script does to the password
            self.options += ["--requirepass", password, "--user", "admin", "on", "nopass", "~*", "&*", "+@all"]
        self.unix = str(self.folder / "redis.sock") if unix else None
        self.port = None

    @property
    def address(self):
        return self.unix or ("127.0.0.1", self.port)

    @property
    def upstream(self):
        """The value of weir's `upstream`."""
        return f"unix:{self.unix}" if self.unix else f"127.0.0.1:{self.port}"

    def start(self):
        """Starts the server, or restarts it at the same address."""
        if self.unix:
            self._launch(["--port", "0", "--unixsocket", self.unix])
        elif self.port:
            self._launch(["--port", str(self.port)])
        else:
            for _ in range(10):
                self.port = free_port()
                if self._launch(["--port", str(self.port)]):
                    break
        assert self.is_running(), self.log()

    def _launch(self, where):
        argv = [REDIS_SERVER, *where, "--bind", "127.0.0.1", "--dir", str(self.folder)]
        argv += ["--save", "", "--appendonly", "no", *DEBUG_ALLOWED, *self.options]
        self.launch(argv)
        wait_until(lambda: self._answers() or not self.is_running(), "redis-server answers", START_SECONDS)
        return self.is_running()

    def _answers(self):
        try:
            with Conn(self.address, 1) as conn:
                return conn.call("PING")
        except (OSError, Closed):
            return False

    def connect(self):
        conn = Conn(self.address)
        if self.has_password:
            conn.call("AUTH", "admin", "")
        return conn

    def call(self, *args):
        with self.connect() as conn:
            return conn.call(*args)

    def info(self, field):
        return re.search(rf"^{field}:(.*)\r$", self.call("INFO", "everything").decode(), re.M)[1]

    def waiting(self):
        """Returns what connections wait for: how many are blocked, and how many channels and
        patterns have subscribers.
        """
        # not "everything": percentiles of every command cost more than most tests
        with self.connect() as conn:
            text = "".join(conn.call("INFO", section).decode() for section in ("clients", "stats"))
        fields = ("blocked_clients", "pubsub_channels", "pubsub_patterns")
        return tuple(int(re.search(rf"^{field}:(\d+)", text, re.M)[1]) for field in fields)

    def state(self):
        """Returns what connections wait for, and a digest of all data."""
        return self.waiting(), self.call("DEBUG", "DIGEST")

    def forget_data(self):
        """Resets the server to a fresh state, as far as scripts of commands can tell."""
        with self.connect() as conn:
            try:
                wait_until(lambda: not any(self.waiting()), "Redis forgets earlier connections", 5)
            except AssertionError:
                # connections that one test leaves behind must not fail the next test
                for kind in ("normal", "pubsub"):
                    conn.call("CLIENT", "KILL", "TYPE", kind)
                raise
            conn.ask("FLUSHALL", "SCRIPT FLUSH", "FUNCTION FLUSH", "CONFIG RESETSTAT")


class Heir:
    """A process that did not begin as a child of the tests: the part of Popen that tests use."""

    PR_SET_CHILD_SUBREAPER = 36

    def __init__(self, pid):
        self.pid = pid
        self.returncode = None

    @classmethod
    @contextlib.contextmanager
    def expected(cls):
        """Makes this process adopt children after their parents end."""
        ctypes.CDLL(None).prctl(cls.PR_SET_CHILD_SUBREAPER, 1)
        try:
            yield
        finally:
            ctypes.CDLL(None).prctl(cls.PR_SET_CHILD_SUBREAPER, 0)

    def poll(self):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, seconds=None):
        until = time.monotonic() + seconds if seconds is not None else math.inf
        while self.poll() is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("weir", seconds)
            time.sleep(0.002)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


# The behaviour of weir 0.2: a command that cannot be sent to Redis gets an error at once.
TOLD_AT_ONCE = {"when_upstream_down": "error", "failover_wait": "0"}


class Weir(Process):
    """weir with a configuration file. `settings` are lines of [weir], `sections` is the text after
    [weir], `env` extends the environment.

    With `stderr`, a descriptor, the harness does not read the log.
    """

    def __init__(
        self, upstream=None, *, workers=2, lanes="shared", listen="127.0.0.1:0", sections="", env=None, stderr=None,
        prefix=(), **settings,
    ):
        super().__init__("weir")
        self.clean_size = None  # size of the log while no sanitizer has complained
        self.env = env or {}
        self.prefix = list(prefix)  # prefix of the command line
        self.streams = {} if stderr is None else {"stderr": stderr}
        self.lanes = lanes
        self.config = self.folder / "weir.conf"
        lines = {"listen": listen, "workers": workers, "lanes": lanes, "drain-timeout": "100ms"}
        if upstream:
            lines["upstream"] = getattr(upstream, "upstream", upstream)
        lines.update({key.replace("_", "-"): value for key, value in settings.items()})
        text = "[weir]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items()) + sections
        self.config.write_text(text.replace("{folder}", str(self.folder)))

    def start(self):
        argv = [*self.prefix, str(WEIR), "-c", str(self.config)]
        self.launch(argv, env={**os.environ, **self.env}, **self.streams)

    def upgrade(self):
        """Lets a new process take over. When the old process has ended, this object stands for the
        new one.
        """
        with Heir.expected():
            seen = len(self.log())
            self.signal(signal.SIGUSR2)
            said = "upgrade: process (\\d+) has taken over"
            pid = wait_until(lambda: re.search(said, self.log()[seen:]), "the new process takes over", START_SECONDS)[1]
            heir = Heir(int(pid))
            code = self.wait()
            self.child = heir
            running.append(self)
            assert code == 0, f"the old process exited with {code}\n{self.log()}"

    def wait_ready(self):
        """Waits until weir serves clients, whether Redis is up or not."""
        wait_until(lambda: self.is_ready() or not self.is_running(), "weir is ready", START_SECONDS)
        assert self.is_running(), self.log()
        return self

    def is_ready(self):
        return re.search(r'\bready["}]*$|, but not ready', self.log(), re.M)

    @property
    def addresses(self):
        """Returns the addresses that weir listens on, in the order of its configuration."""
        found = []
        for text in re.findall(r'listening on ([^\s"]+)', self.log()):
            host, _, port = text.removeprefix("tls:").rpartition(":")
            address = text[5:] if text.startswith("unix:") else (host.strip("[]"), int(port))
            if address not in found:
                found.append(address)
        return found

    @property
    def address(self):
        return self.addresses[0]

    def connect(self, **kwargs):
        return Conn(self.address, **kwargs)

    def serves(self):
        """True if new clients of every worker get replies from Redis."""
        conns = [self.connect(timeout=5) for _ in range(8)]
        try:
            return all(conn.call("ECHO", i) == b"%d" % i for i, conn in enumerate(conns))
        except (Closed, OSError):
            return False
        finally:
            for conn in conns:
                conn.close()

    def complaint(self):
        """Returns what a sanitizer wrote, or nothing. Called after every test; text that was read
        once is not read again.
        """
        size = self.log_path.stat().st_size if self.log_path.exists() else None
        if size is not None and size == self.clean_size:
            return None
        log = self.log()
        if any(word in log for word in SANITIZER_WORDS):
            return log
        self.clean_size = size
        return None

    def stop(self, number=signal.SIGTERM):
        """Stops weir as an operator does: weir must exit with 0 and without complaints."""
        if self.is_running():
            self.signal(number)
        code = self.wait()
        assert code is not None, f"weir did not stop within {STOP_SECONDS} s of {number!r}\n{self.log()}"
        assert not self.complaint(), self.log()
        assert code == 0, f"weir exited with {code}\n{self.log()}"


def run_weir(*args, **kwargs):
    """Runs weir with arguments until weir ends by itself."""
    return subprocess.run([str(WEIR), *map(str, args)], capture_output=True, text=True, timeout=60, **kwargs)


class Farm:
    """Starts servers, and stops all of them at the end: weir before its Redis."""

    def __init__(self):
        self.servers = []

    def redis(self, *options, **kwargs):
        return self._start(Redis(*options, **kwargs))

    def weir(self, upstream, *, wait=True, **kwargs):
        weir = self._start(Weir(upstream, **kwargs))
        return weir.wait_ready() if wait else weir

    def _start(self, server):
        self.servers.append(server)
        server.start()
        return server

    def close(self):
        try:
            for server in self.servers:
                if isinstance(server, Weir) and server in running:
                    server.stop()
        finally:
            for server in reversed(self.servers):
                server.forget()
