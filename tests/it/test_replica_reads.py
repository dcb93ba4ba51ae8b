"""`reads = replicas` and `reads = asked`: which reads go to replicas. No client misses what it has
seen.
"""

import contextlib
import signal
import threading
import time

import pytest
from kit.harness import wait_until
from kit.relay import Relay
from kit.resp import Closed, Conn, Error, pipeline
from kit.sentinel import Node, calls

SECONDS = 30
WORKERS = pytest.mark.parametrize("workers", (1, 2))


class Trio:
    """A master and two replicas, each behind a relay, and weir in front of them."""

    def __init__(self, farm, *, n_replicas=2, password=None, **settings):
        # between a replica and its master
        self.links = [farm._start(Relay()) for _ in range(n_replicas)]
        # between weir and a server
        self.relays = [farm._start(Relay()) for _ in range(1 + n_replicas)]
        self.nodes = [farm._start(Node(password=password)) for _ in range(1 + n_replicas)]
        self.master, *self.replicas = self.nodes
        for link, replica in zip(self.links, self.replicas):
            link.target = self.master.address
            assert replica.call("REPLICAOF", *link.address) == "OK"
        for relay, node in zip(self.relays, self.nodes):
            relay.target = node.address
        wait_until(lambda: all(self.is_linked(replica) for replica in self.replicas), "the replicas follow", SECONDS)
        listed = ", ".join(relay.upstream for relay in self.relays)
        settings = {"reads": "replicas", "replica_poll": "20ms", "failover_wait": "30s", **settings}
        self.weir = farm.weir(listed, **settings)

    @staticmethod
    def is_linked(replica):
        return b"master_link_status:up" in replica.call("INFO", "replication")

    def reads(self, command="get"):
        """Returns how often each server has run the command."""
        return [calls(node, command) for node in self.nodes]

    def readers(self, count=6, **settings):
        """Returns connections, one for each server in turn: the server answers the connection's
        reads.
        """
        conns = [self.weir.connect(**settings) for _ in range(count)]
        wait_until(lambda: all(self.shares(conns)), "every server is read from", SECONDS)
        return conns

    def shares(self, conns):
        before = self.reads()
        for conn in conns:
            conn.call("GET", "shares")
        return [now > then for now, then in zip(self.reads(), before)]

    def is_read_from(self, node):
        """True if some new clients soon read from the server. Clients from before weir knew the
        server stay elsewhere.
        """
        with contextlib.ExitStack() as stack:
            conns = [stack.enter_context(self.weir.connect()) for _ in range(6)]
            return any(self.shares(conns)[self.nodes.index(node)] for _ in range(20))

    def home_of(self, conn):
        """Returns the server that answers this connection's reads now."""
        before = self.reads()
        conn.call("GET", "home")
        return next(node for node, now, then in zip(self.nodes, self.reads(), before) if now > then)

    def reader_of(self, node):
        """Returns a connection with reads at this server."""
        conn = wait_until(lambda: next((c for c in self.readers() if self.home_of(c) is node), None), "a reader", SECONDS)
        return conn


@WORKERS
def test_reads_are_spread(farm, workers):
    """Reads of all clients use all servers. Writes, and commands without keys or with a cursor, go
    to the master.
    """
    trio = Trio(farm, workers=workers)
    with trio.weir.connect() as conn:
        for i in range(200):
            assert conn.call("SET", f"key:{i}", i) == "OK"
            assert conn.call("SADD", "set", i) == 1
    conns = trio.readers()
    for conn in conns:
        wait_until(lambda c=conn: c.call("GET", "key:7") == b"7", "the replica has it", SECONDS)
        assert conn.call("LRANGE", "none", 0, -1) == []
        found, cursor = set(), b"0"
        while True:
            cursor, keys = conn.call("SCAN", cursor, "COUNT", 7)
            found.update(keys)
            if cursor == b"0":
                break
        assert len(found) == 201
        found, cursor = set(), b"0"
        while True:
            cursor, members = conn.call("SSCAN", "set", cursor)
            found.update(members)
            if cursor == b"0":
                break
        assert len(found) == 200
        assert conn.call("DBSIZE") == 201
        assert conn.call("EVAL_RO", "return redis.call('GET', KEYS[1])", 1, "key:7") == b"7"
        assert [conn.call("MULTI"), conn.call("GET", "key:7"), conn.call("EXEC")] == ["OK", "QUEUED", [b"7"]]
    for replica in trio.replicas:
        assert [calls(replica, name) for name in ("scan", "sscan", "dbsize", "eval_ro", "multi", "exec")] == [0] * 6


@WORKERS
def test_readers_that_ask(farm, workers):
    """With `reads = asked` only clients that have sent READONLY read from replicas, until READWRITE
    or RESET.
    """
    trio = Trio(farm, workers=workers, reads="asked")
    conns = [trio.weir.connect() for _ in range(4)]
    for _ in range(20):
        for conn in conns:
            conn.call("GET", "key")
    assert trio.reads()[1:] == [0, 0]
    for end in ("READWRITE", "RESET"):
        for conn in conns:
            assert conn.call("READONLY") == "OK"
            wait_until(lambda c=conn: trio.home_of(c) in trio.replicas, "it reads from a replica", SECONDS)
        before = trio.reads()
        for conn in conns:
            assert conn.call(end) in ("OK", "RESET")
            assert trio.home_of(conn) is trio.master
        assert trio.reads()[1:] == before[1:]
    assert conns[0].call("READONLY", "x") == Error("ERR wrong number of arguments for 'readonly' command")
    conns[0].sock.sendall(pipeline("SET a 1", "READONLY", "GET a", "READWRITE", "GET a"))
    assert [conns[0].read() for _ in range(5)] == ["OK", "OK", b"1", "OK", b"1"]


@WORKERS
@pytest.mark.parametrize("reads", ("asked", "replicas"))
def test_words_with_private_lanes(farm, workers, reads):
    """With private lanes all commands go to the master, and READONLY is answered all the same."""
    trio = Trio(farm, workers=workers, lanes="private", reads=reads)
    conns = [trio.weir.connect() for _ in range(4)]
    for conn in conns:
        assert conn.ask("SET key 1", "READONLY", "GET key", "READWRITE", "GET key") == ["OK", "OK", b"1", "OK", b"1"]
        assert conn.call("READONLY", "x") == Error("ERR wrong number of arguments for 'readonly' command")
    assert trio.reads()[1:] == [0, 0]


class Counter:
    """A client that counts: it must see its own writes, and no value may go back."""

    def __init__(self, weir, number, until, protocol):
        self.conn = weir.connect()
        self.number = number
        self.until = until
        self.faults = []
        self.n = 0
        if protocol == 3:
            assert self.conn.call("HELLO", 3)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        own, seen = 0, {}
        turn = 0
        try:
            while time.monotonic() < self.until:
                turn += 1
                if turn % 37 == self.number % 7:
                    own += 1
                    assert self.conn.call("SET", f"own:{self.number}", own) == "OK"
                    self.conn.call("INCR", "all")
                if turn % 11 == 0:
                    time.sleep(0.02)
                got = int(self.conn.call("GET", f"own:{self.number}") or 0)
                if got != own:
                    self.faults.append(f"client {self.number}: its own {own} was {got}")
                for key in ("all", "own:0", "own:1"):
                    got = int(self.conn.call("GET", key) or 0)
                    if got < seen.get(key, 0):
                        self.faults.append(f"client {self.number}: {key} went back from {seen[key]} to {got}")
                    seen[key] = got
                self.n += 1
        except Exception as error:
            self.faults.append(f"client {self.number}: {error!r}")


def count(trio, seconds, n=8, meanwhile=()):
    """Runs clients that count while `meanwhile` acts on the servers."""
    until = time.monotonic() + seconds
    counters = [Counter(trio.weir, i, until, 2 + i % 2) for i in range(n)]
    for act in meanwhile:
        act()
    for counter in counters:
        counter.thread.join(seconds + SECONDS)
        assert not counter.thread.is_alive()
    assert [fault for counter in counters for fault in counter.faults][:5] == []
    assert all(counter.n > 0 for counter in counters)


@WORKERS
def test_nothing_goes_back(farm, workers):
    """Clients read their own writes, and nothing older than an earlier read, though each replica
    has another lag.
    """
    trio = Trio(farm, workers=workers)
    trio.links[0].delay, trio.links[1].delay = 0.005, 0.03
    count(trio, 4)
    assert all(n > 50 for n in trio.reads()), trio.reads()


def test_a_replica_without_its_master(farm):
    """Writes that a cut link keeps from a replica are read, at the latest, after replica-lag-max.
    """
    trio = Trio(farm, replica_lag_max="300ms")
    conns = trio.readers()
    with trio.weir.connect() as writer:
        for link in trio.links:
            link.cut()
        for i in range(12):
            assert writer.call("SET", "key", i) == "OK"
            time.sleep(0.1)
            if i >= 4:
                assert all(int(conn.call("GET", "key")) >= i - 4 for conn in conns)
        assert all(trio.home_of(conn) is trio.master for conn in conns)
        for link in trio.links:
            link.heal()
        wait_until(lambda: all(trio.shares(conns)), "every server is read from again", SECONDS)


def test_a_hung_replica(farm):
    """Reads go on at the master, except those in flight at the replica."""
    trio = Trio(farm, n_replicas=1, replica_poll="100ms")
    conn = trio.reader_of(trio.replicas[0])
    trio.replicas[0].signal(signal.SIGSTOP)
    hung = time.monotonic()
    try:
        with trio.weir.connect(timeout=2) as other:
            # in flight at the replica, or sent to the master
            with contextlib.suppress(TimeoutError):
                while time.monotonic() < hung + 1:
                    other.call("GET", "key")
        wait_until(lambda: time.monotonic() > hung + 1, "polls have had no answer", SECONDS)
        assert conn.call("GET", "key") is None
        assert conn.call("SET", "key", "value") == "OK"
        assert conn.call("GET", "key") == b"value"
    finally:
        trio.replicas[0].signal(signal.SIGCONT)
    wait_until(lambda: trio.home_of(conn) is trio.replicas[0], "the replica is read from again", SECONDS)


def test_a_lost_replica(farm):
    """Clients of a killed replica go on at other servers, and stay there. New clients read from the
    replica again.
    """
    trio = Trio(farm)
    conns = trio.readers()
    replica = trio.replicas[1]
    replica.signal(signal.SIGKILL)
    replica.wait()
    for conn in conns:
        assert conn.call("GET", "key") is None
        assert conn.call("SET", "other", "1") == "OK"
    replica.start()
    assert replica.call("REPLICAOF", *trio.links[1].address) == "OK"
    trio.relays[2].target = replica.address
    wait_until(lambda: trio.is_read_from(replica), "new clients read from it", SECONDS)


USER = ("ACL", "SETUSER", "alice", "on", ">secret", "+@all", "~*")


def login(trio, count=6):
    conns = [trio.weir.connect() for _ in range(count)]
    for conn in conns:
        assert conn.call("AUTH", "alice", "secret") == "OK"
    return conns


@WORKERS
def test_a_user_that_is_deleted(farm, workers):
    """ACL DELUSER at the master closes the user's clients, wherever they read. The replicas do not
    know of it.
    """
    trio = Trio(farm, workers=workers)
    for node in trio.nodes:
        assert node.call(*USER) == "OK"
    conns = login(trio)
    wait_until(lambda: all(trio.shares(conns)), "every server is read from", SECONDS)
    assert trio.master.call("ACL", "DELUSER", "alice") == 1
    time.sleep(0.1)
    before = trio.reads()
    for conn in conns:
        with pytest.raises((Closed, ConnectionError)):
            conn.call("GET", "key")
    assert trio.reads()[1:] == before[1:]


def test_a_user_that_is_killed(farm):
    """weir asks the master about each client of the user before the client reads again, wherever it
    reads.
    """
    trio = Trio(farm)
    for node in trio.nodes:
        assert node.call(*USER) == "OK"
    conns = login(trio)
    wait_until(lambda: all(trio.shares(conns)), "every server is read from", SECONDS)
    assert trio.master.call("CLIENT", "KILL", "USER", "alice") > 0
    wait_until(lambda: b"user=alice" in trio.master.call("CLIENT", "LIST"), "weir has a connection again", SECONDS)
    for conn in conns:
        before = calls(trio.master, "auth")
        assert conn.call("GET", "key") is None
        assert calls(trio.master, "auth") > before


def test_a_replica_that_does_not_know_the_user(farm):
    """The replica is not used for that user's clients; other users read from it."""
    trio = Trio(farm)
    for node in trio.nodes[:2]:
        assert node.call(*USER) == "OK"
    conns = login(trio)
    wait_until(lambda: trio.shares(conns)[:2] == [True, True], "both are read from", SECONDS)
    assert calls(trio.replicas[1], "get") == 0
    trio.readers()


def test_a_password_set_at_a_replica(farm):
    """Clients without a login read elsewhere."""
    trio = Trio(farm)
    conns = trio.readers()
    assert trio.replicas[0].call("CONFIG", "SET", "requirepass", "x") == "OK"
    for conn in conns:
        for _ in range(20):
            assert conn.call("GET", "key") is None
    more = [trio.weir.connect() for _ in range(6)]
    for conn in more:
        for _ in range(20):
            assert conn.call("GET", "key") is None


@WORKERS
def test_what_limits_write(farm, workers):
    """LIMIT commands write keys: the client reads its own writes, though its replica lags."""
    trio = Trio(farm, n_replicas=1, workers=workers, replica_lag_max="10s")
    conn = trio.reader_of(trio.replicas[0])
    trio.links[0].delay = 0.3
    questions = ("FUNNEL one 9/h", "SLIDING two 9/h", "ACQUIRE three 1 99999", "THROTTLE four 1 1 60", "BAN FUNNEL five 9s")
    for question in questions:
        key = "limit:" + next(word for word in question.split() if word.islower())
        wait_until(lambda: trio.home_of(conn) is trio.replicas[0], "it reads from the replica", SECONDS)
        assert conn.call("LIMIT", *question.split())
        assert [conn.call("EXISTS", key) for _ in range(9)] == [1] * 9
        wait_until(lambda: trio.home_of(conn) is trio.replicas[0], "it reads from the replica", SECONDS)
        conn.sock.sendall(pipeline("EXISTS none", f"LIMIT RESET {key[6:]}", f"EXISTS {key}", f"EXISTS {key}"))
        assert [conn.read() for _ in range(4)] == [0, 1, 0, 0]


def test_mixed_pipelines(farm):
    """Replies keep their order whichever server answers."""
    trio = Trio(farm)
    conns = trio.readers()
    for turn in range(30):
        for i, conn in enumerate(conns):
            key = f"mixed:{i}"
            conn.sock.sendall(pipeline(f"GET {key}", f"SET {key} {turn}", f"GET {key}", "PING", f"STRLEN {key}", "MULTI", f"GET {key}", "EXEC"))
        for conn in conns:
            before = conn.read()
            assert before == (str(turn - 1).encode() if turn else None)
            value = str(turn).encode()
            assert [conn.read() for _ in range(7)] == ["OK", value, "PONG", len(value), "OK", "QUEUED", [value]]


def test_other_databases(farm):
    """SELECT holds at replicas, too."""
    trio = Trio(farm)
    conns = [trio.weir.connect() for _ in range(6)]
    for conn in conns:
        assert conn.call("SELECT", 3) == "OK"
    assert conns[0].call("SET", "key", "three") == "OK"
    wait_until(lambda: all(trio.shares(conns)), "every server is read from", SECONDS)
    for conn in conns:
        wait_until(lambda c=conn: c.call("GET", "key") == b"three", "the replica has it", SECONDS)
    for conn in conns:
        assert conn.call("SELECT", 0) == "OK"
        for _ in range(50):
            assert conn.call("GET", "key") is None


@pytest.mark.failover
@WORKERS
def test_nothing_goes_back_over_faults(farm, workers):
    """As above, while links are cut and healed, and replicas hang."""
    trio = Trio(farm, workers=workers, replica_lag_max="500ms")
    trio.links[1].delay = 0.01

    def cut_and_heal():
        for link in trio.links * 3:
            with link.parted():
                time.sleep(0.8)
            time.sleep(0.4)

    def hold():
        for replica in trio.replicas:
            assert replica.call("CLIENT", "PAUSE", 300, "ALL") == "OK"
            time.sleep(1)

    count(trio, 12, meanwhile=(cut_and_heal, hold))


@pytest.mark.failover
def test_reads_over_failovers(farm):
    """Swaps by hand: reads and writes go on, and replicated writes are read."""
    trio = Trio(farm, n_replicas=1, env={"WEIR_HURRY": "4"})
    old, new = trio.nodes
    conns = [trio.weir.connect() for _ in range(6)]
    for turn in range(4):
        for conn in conns:
            assert conn.call("SET", f"turn:{turn}", turn) == "OK"
        wait_until(lambda: new.call("GET", f"turn:{turn}") == str(turn).encode(), "it is replicated", SECONDS)
        assert new.call("REPLICAOF", "NO", "ONE") == "OK"
        assert old.call("REPLICAOF", *new.address) == "OK"
        old, new = new, old
        for conn in conns:
            wait_until(lambda c=conn: c.call("SET", "key", turn) == "OK", "the new master takes writes", SECONDS)
            assert conn.call("GET", "key") == str(turn).encode()
            assert conn.call("GET", f"turn:{turn}") == str(turn).encode()
        wait_until(lambda: all(trio.shares(conns)), "both are read from", SECONDS)


@pytest.mark.failover
def test_a_reader_of_the_promoted(farm):
    """A client of the promoted server does not read older values at the old master."""
    trio = Trio(farm, replica_lag_max="2s")
    old, _, new = trio.nodes
    with trio.weir.connect() as conn:
        assert conn.call("SET", "key", 0) == "OK"
    reader = trio.reader_of(new)
    slow = trio.links[0]
    slow.target, slow.delay = new.address, 0.4
    assert new.call("REPLICAOF", "NO", "ONE") == "OK"
    assert old.call("REPLICAOF", *slow.address) == "OK"
    newest = until_home = 0
    moved = f"failover: upstream {trio.relays[2].upstream} is the master"
    until = time.monotonic() + SECONDS
    with Conn(new.address) as direct:
        written = 0
        while until_home < 100 and time.monotonic() < until:
            written += 1
            assert direct.call("SET", "key", written) == "OK"
            read = int(reader.call("GET", "key"))
            assert read >= newest
            newest = read
            until_home += trio.reads()[2] > 0 and moved in trio.weir.log()
    assert newest > 0


def test_explained(farm):
    """LIMIT EXPLAIN tells where a command would go, and why."""
    trio = Trio(farm, n_replicas=1)

    def explained(conn, *words):
        flat = conn.call("LIMIT", "EXPLAIN", *words)
        fields = dict(zip(flat[::2], flat[1::2]))
        return fields[b"server"].decode(), fields[b"server_why"].decode()

    master, replica = (relay.upstream for relay in trio.relays)
    conns = trio.readers()
    wanted = {
        (replica, "the replica is in sync, and has all that the client has read"),
        (master, "the master serves this client's share of reads"),
    }
    # Connections that read from the master at first wait until the replica is known to have what
    # they read.
    wait_until(lambda: {explained(conn, "GET", "key") for conn in conns} == wanted, "clients are explained", SECONDS)
    reader = trio.reader_of(trio.replicas[0])
    assert explained(reader, "SET", "key", "1") == (master, "replicas do not serve the command")
    trio.links[0].cut()
    wait_until(lambda: explained(reader, "GET", "key") == (master, "no replica is in sync"), "it is out of sync", SECONDS)


def test_a_client_that_reads_on(farm):
    """After a write the client reads without a pause, and returns to its replica."""
    trio = Trio(farm, n_replicas=1)
    conn = trio.reader_of(trio.replicas[0])
    assert conn.call("SET", "key", "1") == "OK"
    before = calls(trio.replicas[0], "get")
    until = time.monotonic() + SECONDS
    with Conn(trio.replicas[0].address) as direct:
        found = before
        while found == before and time.monotonic() < until:
            for _ in range(200):
                assert conn.call("GET", "key") == b"1"
            found = int(direct.call("INFO", "commandstats").decode().split("cmdstat_get:calls=")[1].split(",")[0])
    assert found > before
