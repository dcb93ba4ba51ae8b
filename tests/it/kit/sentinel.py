"""A master, its replicas and three sentinels, all real. Relays between the servers can be cut
(kit/relay.py). A sentinel that answers as a test says is in kit/fake_sentinel.py.

REDIS_SERVER chooses the program of all servers: with REDIS_SERVER=valkey-server the sentinels are
Valkey's.
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
# deadline of a failover: a sentinel without CPU time waits for 30 s (tilt) before it acts
SECONDS = 90
# Shorter periods of a sentinel's regular work, in ms. A sentinel tilts after 20 s without CPU time
# instead of 2 s. A replica's INFO may be at most five ping-periods old for a promotion, and INFO
# comes each second then.
BRISK = {"info-period": 300, "ping-period": 500, "ask-period": 200, "publish-period": 300, "tilt-trigger": 20000}


class Node(Redis):
    """A redis-server of a deployment. All other servers see it at `announced`."""

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
        """Returns the role that the server reports: "master", "slave", or None if the server does
        not answer.
        """
        try:
            with Conn(self.address, 1) as conn:
                if self.has_password:
                    conn.call("AUTH", "admin", "")
                return conn.call("ROLE")[0].decode()
        except (OSError, Closed):
            return None

    def follows(self, master):
        """True if the server is a replica of `master` and has all of its data."""
        try:
            role = self.call("ROLE")
        except (OSError, Closed):
            return False
        return role[0] == b"slave" and tuple(role[1:3]) == (b"127.0.0.1", master.announced[1]) and role[3] == b"connected"

    def become_replica_of(self, master):
        assert self.call("REPLICAOF", *master.announced) == "OK"


class Sentinel(Process):
    """redis-server --sentinel; `lines` are further lines of its file."""

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
        """Starts the sentinel, or restarts it with the file that it has rewritten."""
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
        """Returns the master's address as the sentinel reports it. None if the sentinel does not
        know the name or does not answer.
        """
        try:
            found = self.call("SENTINEL", "get-master-addr-by-name", name)
        except (OSError, Closed):
            return None
        return (found[0].decode(), int(found[1])) if isinstance(found, list) else None

    def master(self, name=NAME):
        """Returns all that the sentinel reports of the master."""
        return fields(self.call("SENTINEL", "master", name))

    def epoch(self, name=NAME):
        return int(self.master(name)["config-epoch"])


def fields(reply):
    """Returns a flat list of names and values as a dict of str."""
    words = [word.decode() if isinstance(word, bytes) else str(word) for word in reply]
    return dict(zip(words[::2], words[1::2]))


class Switches:
    """Records when a sentinel first published +switch-master to another address."""

    def __init__(self, sentinels):
        self.moments = []  # (time, old address, new address), of any sentinel
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
        """Returns when the first sentinel published this node as the master; waits until then."""

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
    """A master with replicas, and sentinels that watch it. `is_relayed`: all other servers reach
    each server through a relay of its own, so a test can cut a server off.
    """

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
        """The value of weir's `upstream`, by sentinels."""
        return f"sentinel:{NAME}@" + ", ".join("%s:%d" % sentinel.address for sentinel in self.sentinels)

    @property
    def listed(self):
        """The value of weir's `upstream`, as a list of servers."""
        return ", ".join(node.upstream for node in self.nodes)

    def node_at(self, address):
        return next((node for node in self.nodes if node.announced == address), None)

    def live_sentinels(self):
        return [sentinel for sentinel in self.sentinels if sentinel.is_running()]

    @property
    def master(self):
        """Returns the node that all sentinels name and that reports itself as master; None if there
        is no such node.
        """
        named = {sentinel.names() for sentinel in self.live_sentinels()}
        node = self.node_at(named.pop()) if len(named) == 1 else None
        return node if node and node.role() == "master" else None

    @property
    def replicas(self):
        master = self.master
        return [node for node in self.nodes if node is not master and node.is_running()]

    def is_settled(self):
        """True if every running server follows the master, and every sentinel knows all servers and
        all other sentinels.
        """
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
        """Returns the next master, as soon as all sentinels name it and it reports itself as
        master.
        """
        return wait_until(lambda: self.master is not old and self.master, "another master", seconds)

    def begin_failover(self, sentinel=None):
        """Sends SENTINEL FAILOVER, again while the sentinel refuses."""
        sentinel = sentinel or self.live_sentinels()[0]
        wait_until(lambda: sentinel.call("SENTINEL", "FAILOVER", NAME) == "OK", "SENTINEL FAILOVER is accepted", SECONDS)

    def failover(self):
        """Fails over by command, and waits for the end; returns the new master."""
        old = self.master
        self.begin_failover()
        return self.wait_switched(old)

    def switches(self):
        return Switches(self.live_sentinels())

    @contextlib.contextmanager
    def demoting(self, old):
        """Blocks writes at the old master until it is a replica, so no acknowledged write is lost
        there. The block must be shorter than `down-after-milliseconds`: the sentinel's PUBLISH
        waits there too.
        """
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
    """True if a write through weir arrives at this node."""
    word = f"{time.monotonic_ns()}"
    try:
        with weir.connect() as conn:
            if conn.call("SET", "follows", word) != "OK":
                return False
        return node.role() == "master" and node.call("GET", "follows") == word.encode()
    except (OSError, Closed):
        return False


def calls(node, command):
    """Returns how often a server has run this command. Refused calls (READONLY) do not count."""
    found = re.search(rf"cmdstat_{command}:calls=(\d+)", node.call("INFO", "commandstats").decode())
    return int(found[1]) if found else 0
