"""A master, its replicas and three sentinels, all real. Relays between them can be cut (kit/relay.py); a sentinel that says
what a test wants is in kit/fake_sentinel.py.

The server under test watches itself: with REDIS_SERVER=valkey-server the sentinels are Valkey's.
"""

import contextlib
import re
import socket
import threading
import time

from kit.harness import Process, Redis, free_port, wait_until
from kit.relay import Relay
from kit.resp import Closed, Conn
from kit.server import REDIS_SERVER, at_least

NAME = "mymaster"
DOWN_AFTER_MS = 1000
SECONDS = 90  # deadline of a failover: a sentinel that has been starved waits for 30 s (tilt) before it does anything
# What a sentinel does every second, or every few seconds, it does so often; one that was starved for 2 s says nothing of it.
# Five ping-periods is how old a replica's INFO may be for it to be promoted, and INFO comes each second then.
BRISK = {"info-period": 300, "ping-period": 500, "ask-period": 200, "publish-period": 300, "tilt-trigger": 20000}


class Node(Redis):
    """A redis-server of a deployment, seen by all others at `announced`."""

    def __init__(self, *options, relay=None, password=None):
        self.relay = relay
        announce = ["--replica-announce-ip", "127.0.0.1", "--replica-announce-port", str(relay.port)] if relay else []
        login = ["--masterauth", password] if password else []
        quick = ["--repl-diskless-sync-delay", "0", "--repl-timeout", "10"]
        super().__init__(*quick, *announce, *login, *options, password=password)

    def start(self):
        super().start()
        if self.relay:
            self.relay.target = self.address

    @property
    def announced(self):
        return ("127.0.0.1", self.relay.port) if self.relay else self.address

    @property
    def upstream(self):
        return "%s:%d" % self.announced

    def role(self):
        """What it says it is: "master", "slave", or None where it does not answer."""
        try:
            with Conn(self.address, 1) as conn:
                if self.has_password:
                    conn.call("AUTH", "admin", "")
                return conn.call("ROLE")[0].decode()
        except (OSError, Closed):
            return None

    def follows(self, master):
        """True if it is a replica of `master` and has all that it has."""
        try:
            role = self.call("ROLE")
        except (OSError, Closed):
            return False
        return role[0] == b"slave" and tuple(role[1:3]) == (b"127.0.0.1", master.announced[1]) and role[3] == b"connected"

    def become_replica_of(self, master):
        assert self.call("REPLICAOF", *master.announced) == "OK"


class Sentinel(Process):
    """redis-server --sentinel; `lines` are further ones of its file."""

    def __init__(self, master, *lines, name=NAME, quorum=2, down_after_ms=DOWN_AFTER_MS, is_brisk=True, password=None, auth=None):
        super().__init__("sentinel")
        self.port = free_port()
        self.is_brisk = is_brisk and at_least(7, 0)
        self.password = password
        host, port = master.announced
        self.lines = [f"port {self.port}", "bind 127.0.0.1", f"dir {self.folder}", *([f"requirepass {password}"] if password else [])]
        self.lines += [f"sentinel monitor {name} {host} {port} {quorum}", f"sentinel down-after-milliseconds {name} {down_after_ms}"]
        self.lines += [f"sentinel failover-timeout {name} 5000", f"sentinel parallel-syncs {name} 2"]
        self.lines += [f"sentinel auth-pass {name} {auth}"] if auth else []
        self.lines += [f"sentinel sentinel-pass {password}"] if password else []
        self.lines += lines

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    def start(self):
        """Start; or start again with what it has written into its file."""
        file = self.folder / "sentinel.conf"
        if not file.exists():
            file.write_text("".join(f"{line}\n" for line in self.lines))
        self.launch([REDIS_SERVER, str(file), "--sentinel"])
        wait_until(lambda: self._answers() or not self.is_running(), "the sentinel answers", SECONDS)
        assert self.is_running(), self.log()
        if self.is_brisk:
            assert self.call("SENTINEL", "DEBUG", *[word for pair in BRISK.items() for word in pair]) == "OK"

    def _answers(self):
        try:
            return self.call("PING") == "PONG"
        except (OSError, Closed):
            return False

    def connect(self, timeout=15):
        conn = Conn(self.address, timeout)
        if self.password:
            assert conn.call("AUTH", self.password) == "OK"
        return conn

    def call(self, *args):
        with self.connect() as conn:
            return conn.call(*args)

    def names(self, name=NAME):
        """Where it says that the master is; None where it does not know the name, or does not answer."""
        try:
            found = self.call("SENTINEL", "get-master-addr-by-name", name)
        except (OSError, Closed):
            return None
        return (found[0].decode(), int(found[1])) if isinstance(found, list) else None

    def master(self, name=NAME):
        """All that it says of the master."""
        return fields(self.call("SENTINEL", "master", name))

    def epoch(self, name=NAME):
        return int(self.master(name)["config-epoch"])


def fields(reply):
    """A flat list of names and values, as a dict of str."""
    words = [word.decode() if isinstance(word, bytes) else str(word) for word in reply]
    return dict(zip(words[::2], words[1::2]))


class Switches:
    """When a sentinel first published +switch-master to another address."""

    def __init__(self, sentinels):
        self.moments = []  # (time, old address, new address), of whichever sentinel
        self.conns = [sentinel.connect(None) for sentinel in sentinels]
        self.threads = [threading.Thread(target=self._hear, args=(conn,), daemon=True) for conn in self.conns]
        for conn, thread in zip(self.conns, self.threads):
            assert conn.call("SUBSCRIBE", "+switch-master")
            thread.start()

    def _hear(self, conn):
        with contextlib.suppress(OSError, Closed):
            while True:
                _, old_ip, old_port, ip, port = conn.read()[2].decode().split()
                self.moments.append((time.monotonic(), (old_ip, int(old_port)), (ip, int(port))))

    def first(self, new):
        """When the first sentinel published that this node is the master; waits until one has."""

        def moments():
            return [at for at, _, address in list(self.moments) if address == new.announced]

        return min(wait_until(moments, "+switch-master is published", SECONDS))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for conn in self.conns:
            with contextlib.suppress(OSError):
                conn.sock.shutdown(socket.SHUT_RDWR)
            conn.close()
        for thread in self.threads:
            thread.join()


class Deployment:
    """A master with replicas, and sentinels that watch it. `is_relayed`: each server is reached through a relay of its own by
    all the others, so that it can be cut off."""

    def __init__(
        self, farm, *options, n_replicas=2, n_sentinels=3, is_relayed=False, password=None, sentinel_password=None,
        sentinel_lines=(), **settings,
    ):
        self.relays = [farm._start(Relay()) for _ in range(1 + n_replicas)] if is_relayed else [None] * (1 + n_replicas)
        self.nodes = [farm._start(Node(*options, relay=relay, password=password)) for relay in self.relays]
        first = self.nodes[0]
        for node in self.nodes[1:]:
            node.become_replica_of(first)
        wait_until(lambda: all(node.follows(first) for node in self.nodes[1:]), "the replicas follow the master", SECONDS)
        settings = {**settings, "auth": password, "password": sentinel_password}
        self.sentinels = [farm._start(Sentinel(first, *sentinel_lines, **settings)) for _ in range(n_sentinels)]
        self.wait_settled()

    @property
    def upstream(self):
        """As weir's configuration names it, by its sentinels."""
        return f"sentinel:{NAME}@" + ", ".join("%s:%d" % sentinel.address for sentinel in self.sentinels)

    @property
    def listed(self):
        """As weir's configuration names it, by its servers."""
        return ", ".join(node.upstream for node in self.nodes)

    def node_at(self, address):
        return next((node for node in self.nodes if node.announced == address), None)

    def live_sentinels(self):
        return [sentinel for sentinel in self.sentinels if sentinel.is_running()]

    @property
    def master(self):
        """The node that all sentinels name and that says so itself; None while there is none."""
        named = {sentinel.names() for sentinel in self.live_sentinels()}
        node = self.node_at(named.pop()) if len(named) == 1 else None
        return node if node and node.role() == "master" else None

    @property
    def replicas(self):
        master = self.master
        return [node for node in self.nodes if node is not master and node.is_running()]

    def is_settled(self):
        """True if every server that runs follows the master, and every sentinel knows all of them and all of the others."""
        master = self.master
        followers = [node for node in self.nodes if node.is_running() and node is not master]
        return (
            master is not None
            and all(node.follows(master) for node in followers)
            and all(self._knows_all(sentinel, master, followers) for sentinel in self.live_sentinels())
        )

    def _knows_all(self, sentinel, master, followers):
        said = sentinel.master()
        replicas = map(fields, sentinel.call("SENTINEL", "replicas", NAME))
        good = {int(said["port"]) for said in replicas if said["flags"] == "slave" and said["master-link-status"] == "ok"}
        others = [fields(reply)["flags"] for reply in sentinel.call("SENTINEL", "sentinels", NAME)]
        return (
            said["flags"] == "master"
            and good >= {node.announced[1] for node in followers}
            and others.count("sentinel") >= len(self.live_sentinels()) - 1
        )

    def wait_settled(self):
        wait_until(self.is_settled, "the deployment is settled", SECONDS)

    def wait_switched(self, old, seconds=SECONDS):
        """The next master, as soon as all sentinels name it and it says so itself."""
        return wait_until(lambda: self.master is not old and self.master, "another master", seconds)

    def begin_failover(self, sentinel=None):
        """SENTINEL FAILOVER, again while the sentinel cannot."""
        sentinel = sentinel or self.live_sentinels()[0]
        wait_until(lambda: sentinel.call("SENTINEL", "FAILOVER", NAME) == "OK", "SENTINEL FAILOVER is accepted", SECONDS)

    def failover(self):
        """By hand, and until it is done: the new master."""
        old = self.master
        self.begin_failover()
        return self.wait_switched(old)

    def switches(self):
        return Switches(self.live_sentinels())

    @contextlib.contextmanager
    def demoting(self, old):
        """Writes wait at the old master from now on until it is a replica: none is acknowledged there and lost. Only for less
        time than `down-after-milliseconds` does a sentinel not mind, since its PUBLISH waits there too."""
        assert old.call("CLIENT", "PAUSE", 60000, "WRITE") == "OK"
        try:
            yield
        finally:
            with contextlib.suppress(OSError, Closed):
                old.call("CLIENT", "UNPAUSE")


def takes_writes(address):
    """True if a new connection to this address can write."""
    try:
        with Conn(address) as conn:
            return conn.call("SET", "takes-writes", "1") == "OK"
    except (OSError, Closed):
        return False


def follows(weir, node):
    """True if what is written through weir is written to this node."""
    word = f"{time.monotonic_ns()}"
    try:
        with weir.connect() as conn:
            if conn.call("SET", "follows", word) != "OK":
                return False
        return node.role() == "master" and node.call("GET", "follows") == word.encode()
    except (OSError, Closed):
        return False


def calls(node, command):
    """How often a server has carried out this command: one that it has refused (READONLY) is not counted."""
    found = re.search(rf"cmdstat_{command}:calls=(\d+)", node.call("INFO", "commandstats").decode())
    return int(found[1]) if found else 0
