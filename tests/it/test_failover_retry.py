"""Commands that Redis refused unrun are sent again: to the same server once it is a master again,
in order, and once.
"""

import contextlib
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from kit.harness import DEBUG_ALLOWED, MODES, free_port, wait_until
from kit.limits import OPERATOR
from kit.relay import Relay, shut
from kit.resp import Closed, Conn, Error, encode, pipeline
from kit.sentinel import SECONDS, Node

READONLY = Error("READONLY You can't write against a read only replica.")
LONG = "60s"  # a failover-wait that no test waits for
WAIT = 0.3  # seconds: the failover-wait of a test that waits for its end
ENV = {"WEIR_HURRY": "4"}
PROTOCOLS = [2, 3]


def promote(redis):
    assert redis.call("REPLICAOF", "NO", "ONE") == "OK"


def refused(redis, command="incr"):
    """Returns how many calls of this command Redis has refused unrun."""
    return of_stats(redis, command)["rejected_calls"]


def runs(redis, command="incr"):
    return of_stats(redis, command)["calls"]


def of_stats(redis, command):
    lines = redis.call("INFO", "commandstats").decode().splitlines()
    stats = dict(line.split(":", 1) for line in lines if ":" in line).get(f"cmdstat_{command}", "calls=0,rejected_calls=0")
    return {name: float(value) for name, value in (pair.split("=") for pair in stats.split(","))}


@pytest.fixture
def redis(farm):
    return farm.redis(*DEBUG_ALLOWED)


@pytest.fixture
def behind(farm, redis):
    """Returns a function that starts a weir with a list of this server and an address without a
    server.
    """

    def start(wait=LONG, **settings):
        upstream = f"{redis.upstream}, 127.0.0.1:{free_port()}"
        return farm.weir(upstream, failover_wait=wait, **{"workers": 1, "env": ENV, **settings})

    return start


def send(conn, *requests):
    conn.send(pipeline(*[request.split() for request in requests]))


def is_held(redis):
    return re.search(rb" flags=\w*b", redis.call("CLIENT", "LIST"))


def refuse(redis, conn=None, *requests, is_last=False):
    """Redis becomes a replica with these requests waiting. The first request writes, so weir cannot
    notice earlier. `is_last`: the client has half-closed by then.
    """
    with redis.connect() as admin:
        assert admin.call("CLIENT", "PAUSE", 60000, "WRITE") == "OK"
        if conn:
            send(conn, *requests)
        if is_last:
            conn.sock.shutdown(socket.SHUT_WR)
        wait_until(lambda: is_held(redis), "a write is held")
        send(admin, "REPLICAOF 127.0.0.1 1", "CLIENT UNPAUSE")
        assert [admin.read(), admin.read()] == ["OK", "OK"]


def over_a_demotion(redis, conn, *requests, command="incr"):
    """Returns the replies to requests sent to a replica, which becomes a master once it has refused
    one.
    """
    before = refused(redis, command)
    refuse(redis, conn, *requests)
    wait_until(lambda: refused(redis, command) > before, "it is refused")
    promote(redis)
    return [conn.read() for _ in requests]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_refused_write_runs_on_the_master(protocol, workers, redis, behind):
    weir = behind(workers=workers)
    with weir.connect() as conn:
        conn.call("HELLO", protocol)
        assert conn.call("INCR", "n") == 1
        assert over_a_demotion(redis, conn, "INCR n") == [2]
        assert conn.call("INCR", "n") == 3
    assert runs(redis) == 3


def test_the_client_says_what_it_waits_for(redis, behind):
    weir = behind(sections=OPERATOR)
    with weir.connect() as conn, Conn(str(weir.folder / "operator.sock")) as operator:
        assert conn.call("INCR", "n") == 1
        refuse(redis, conn, "INCR n")
        wait_until(lambda: b"again" in repr(operator.call("LIMIT", "CLIENTS")).encode(), "it waits")
        promote(redis)
        assert conn.read() == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_replies_keep_their_order(protocol, redis, behind):
    """Reads after a refused write see that write. weir's own replies, and replies from the replica,
    keep their positions.
    """
    weir = behind(sections="[policy all]\nmatch = ip:127.0.0.1\ncmd.ttl = 1/d burst 1\n")
    with weir.connect() as conn:
        conn.call("HELLO", protocol)
        assert conn.ask("SET a 1", "TTL a") == ["OK", -1]
        got = over_a_demotion(
            redis, conn, "SET a 2", "PING", "GET a", "TTL a", "ECHO x", "DBSIZE", "SET b 1", "DBSIZE", "PING",
            command="set",
        )
    assert got[:3] == ["OK", "PONG", b"2"]
    assert str(got[3]).startswith("THROTTLED")
    assert got[4:] == [b"x", 1, "OK", 2, "PONG"]


def test_a_long_pipeline(redis, behind):
    """More requests than weir keeps: each acknowledged request ran, in order."""
    weir = behind()
    n = 3000
    with weir.connect() as conn:
        assert conn.call("SET", "n", 0) == "OK"
        got = over_a_demotion(redis, conn, *["INCR n"] * n)
    acknowledged = [reply for reply in got if reply != READONLY]
    assert acknowledged == list(range(1, len(acknowledged) + 1))
    assert runs(redis) == len(acknowledged) > n / 2


@pytest.mark.parametrize("workers,lanes", MODES)
def test_demotions_under_load(workers, lanes, redis, behind):
    """Each acknowledged INCR ran once, and each client gets its own replies in order."""
    weir = behind(workers=workers, lanes=lanes)
    told, is_over, faults = [], threading.Event(), []

    def count(name):
        with weir.connect() as conn:
            mine = 0
            while not is_over.is_set():
                send(conn, *["INCR " + name] * 7, "GET " + name)
                *got, last = [conn.read() for _ in range(8)]
                for reply in got:
                    if isinstance(reply, Error):
                        if lanes == "shared" or reply != READONLY:
                            faults.append(reply)
                        continue
                    mine += 1
                    if reply != mine:
                        faults.append((name, reply, mine))
                if last != b"%d" % mine and mine:
                    faults.append((name, last, mine))
            told.append((name, mine))

    threads = [threading.Thread(target=count, args=(f"n{i}",)) for i in range(6)]
    for thread in threads:
        thread.start()
    for i in range(6):
        before = runs(redis)
        wait_until(lambda: runs(redis) > before + 50, "they go on")
        before = refused(redis)
        refuse(redis)
        wait_until(lambda: refused(redis) > before, "one is refused")
        promote(redis)
    is_over.set()
    for thread in threads:
        thread.join(30)
    faults = [fault for fault in faults if fault != READONLY or lanes == "shared"]
    assert not [fault for fault in faults if fault != READONLY], faults[:5]
    assert len(faults) <= 6, "a write that ran behind one that was refused leaves the refusal, and nothing else does"
    assert len(told) == 6
    for name, mine in told:
        assert int(redis.call("GET", name)) == mine
    assert runs(redis) == sum(mine for _, mine in told)


@pytest.mark.parametrize(
    "word,requests",
    [
        ("READONLY", ["EVAL return(redis.call('SET',KEYS[1],2)) 1 k"]),
        ("EXECABORT", ["MULTI", "SET k 2", "EXEC"]),
        ("READONLY", ["SET k " + 70000 * "x"]),
    ],
    ids=["script", "transaction", "large"],
)
def test_what_is_no_shared_command_hears_it(word, requests, redis, behind):
    weir = behind()
    with weir.connect() as conn:
        assert conn.call("SET", "k", 1) == "OK"
        refuse(redis, conn, *requests)
        got = [conn.read() for _ in requests]
        promote(redis)
    assert isinstance(got[-1], Error) and word in str(got[-1])
    assert redis.call("GET", "k") == b"1"


def test_private_lanes_hear_it(redis, behind):
    weir = behind(lanes="private")
    with weir.connect() as conn:
        assert conn.call("INCR", "n") == 1
        refuse(redis, conn, "INCR n")
        assert conn.read() == READONLY
        promote(redis)


def test_one_server_alone_hears_it(farm, redis):
    weir = farm.weir(redis, failover_wait=LONG)
    with weir.connect() as conn:
        assert conn.call("INCR", "n") == 1
        refuse(redis, conn, "INCR n")
        assert conn.read() == READONLY
        promote(redis)


def test_it_is_charged_once(redis, behind):
    weir = behind(sections="[policy all]\nmatch = ip:127.0.0.1\nwrite = 4/d burst 4\ninflight = 3\n")
    with weir.connect() as conn:
        assert over_a_demotion(redis, conn, "INCR n", "INCR n", "INCR n") == [1, 2, 3]
        assert conn.call("INCR", "n") == 4
        assert str(conn.call("INCR", "n")).startswith("THROTTLED")
        assert conn.ask("GET n", "GET n", "GET n") == [b"4"] * 3, "no call is counted as in flight any more"
    assert runs(redis) == 4


def test_what_is_not_heard_runs_too(redis, behind):
    weir = behind()
    with weir.connect() as conn:
        assert conn.call("INCR", "n") == 1
        before = refused(redis)
        refuse(redis, conn, "CLIENT REPLY SKIP", "INCR n", "INCR n", "CLIENT REPLY OFF", "INCR n", "INCR n", "CLIENT REPLY ON", "PING")
        wait_until(lambda: refused(redis) > before, "one is refused")
        promote(redis)
        assert [conn.read() for _ in range(3)] == [3, "OK", "PONG"]
        assert conn.call("INCR", "n") == 6


def test_a_client_that_closes(redis, behind):
    """The refused request is not sent again, and gets no reply."""
    weir = behind()
    with weir.connect() as conn, weir.connect() as other:
        assert conn.call("INCR", "n") == 1
        refuse(redis, conn, "INCR n", "GET n", "PING")
        wait_until(lambda: refused(redis) > 0, "it is refused")
        conn.close()
        time.sleep(0.05)
        promote(redis)
        wait_until(lambda: other.call("SET", "k", 1) == "OK", "others go on")
    assert redis.call("GET", "n") in (b"1", b"2")
    assert weir.serves()


def test_a_client_that_half_closes(redis, behind):
    weir = behind()
    with weir.connect() as conn:
        assert conn.call("INCR", "n") == 1
        refuse(redis, conn, "INCR n", "GET n", "INCR n")
        conn.sock.shutdown(socket.SHUT_WR)
        wait_until(lambda: refused(redis) > 0, "it is refused")
        promote(redis)
        assert conn.read_to_end() == b":2\r\n$1\r\n2\r\n:3\r\n"


def test_a_user_that_half_closes(farm, redis):
    """Without a master weir cannot ask whether the client is still its user. The client waits for
    the next master all the same.
    """
    heir = farm.redis(*DEBUG_ALLOWED)
    heir.call("REPLICAOF", "127.0.0.1", 1)
    for server in (redis, heir):
        server.call("ACL", "SETUSER", "a", "on", ">a", "~*", "+@all")
    weir = farm.weir(f"{redis.upstream}, {heir.upstream}", failover_wait=LONG, workers=1, env=ENV)
    with weir.connect() as conn:
        assert conn.call("AUTH", "a", "a") == "OK"
        assert conn.call("SET", "n", 1) == "OK"
        refuse(redis, conn, "INCR other", "INCR other", is_last=True)
        weir.wait_for_log("has no master")
        promote(heir)
        assert conn.read_to_end() == b":1\r\n:2\r\n"


def test_quit_behind_it(redis, behind):
    weir = behind()
    with weir.connect() as conn:
        assert conn.call("INCR", "n") == 1
        assert over_a_demotion(redis, conn, "INCR n", "QUIT") == [2, "OK"]
        assert conn.read_to_end() == b""


def test_a_login_behind_it(farm, redis, behind):
    """Each request runs as the user that sent it."""
    for user in ("a", "b"):
        assert redis.call("ACL", "SETUSER", user, "on", f">{user}", f"~{user}*", "+@all") == "OK"
    weir = behind()
    with weir.connect() as conn:
        assert conn.ask("AUTH a a", "INCR a1") == ["OK", 1]
        got = over_a_demotion(redis, conn, "INCR a1", "AUTH b b", "INCR b1", "SELECT 1", "INCR b1", "HELLO 3 AUTH a a", "INCR a1", "RESET", "PING")
    assert got[:5] == [2, "OK", 1, "OK", 1]
    assert got[6:] == [1, "RESET", "PONG"]


def test_what_blocks_behind_it(redis, behind):
    weir = behind()
    with weir.connect() as conn:
        assert conn.call("INCR", "n") == 1
        refuse(redis, conn, "INCR n", "BLPOP list 0", "INCR n")
        wait_until(lambda: refused(redis) > 0, "it is refused")
        promote(redis)
        assert conn.read() == 2
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        redis.call("RPUSH", "list", "x")
        assert conn.read() == [b"list", b"x"]
        assert conn.read() == 3


@pytest.mark.parametrize("when", ["close", "error"])
def test_failover_wait_is_over(when, redis, behind):
    """The client gets the refusal itself, and the replica's later replies. The client stays
    connected.
    """
    weir = behind(f"{WAIT * 1000:.0f}ms", when_upstream_down=when)
    with weir.connect() as conn:
        assert conn.call("SET", "a", 1) == "OK"
        began = time.monotonic()
        refuse(redis, conn, "SET a 2", "GET a", "PING", "INCR n")
        assert [conn.read() for _ in range(4)] == [READONLY, b"1", "PONG", READONLY]
        assert WAIT * 0.9 < time.monotonic() - began < WAIT + 4
        promote(redis)
        # clients without a master have a test of their own
        with contextlib.suppress(Closed, OSError):
            assert conn.call("INCR", "n") in (1, READONLY)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_handshake_waits_longer_than_what_is_before_it(protocol, redis, behind):
    """The handshake already waits when the earlier write is refused. The handshake still waits when
    the time of the write has ended.
    """
    weir = behind("1s", when_upstream_down="error", sections=OPERATOR)
    with weir.connect() as conn, Conn(str(weir.folder / "operator.sock")) as operator, redis.connect() as admin:
        conn.call("HELLO", protocol)
        assert conn.call("INCR", "n") == 1
        assert admin.call("CLIENT", "PAUSE", 60000, "WRITE") == "OK"
        send(conn, "INCR n")
        wait_until(lambda: is_held(redis), "the write is held")
        assert admin.call("REPLICAOF", "127.0.0.1", 1) == "OK"
        weir.wait_for_log("has no master")
        send(conn, "COMMAND COUNT")
        wait_until(lambda: b"upstream" in repr(operator.call("LIMIT", "CLIENTS")).encode(), "the handshake waits")
        assert admin.call("CLIENT", "UNPAUSE") == "OK"
        assert conn.read() == READONLY
        promote(redis)
        assert conn.read() > 100


def test_no_failover_wait(redis, behind):
    weir = behind("0")
    with weir.connect() as conn:
        assert conn.call("SET", "a", 1) == "OK"
        refuse(redis, conn, "SET a 2")
        assert conn.read() == READONLY
        promote(redis)


def test_a_replica_without_its_master(redis, behind):
    """MASTERDOWN, for reads too."""
    assert redis.call("CONFIG", "SET", "replica-serve-stale-data", "no") == "OK"
    weir = behind()
    with weir.connect() as conn:
        assert conn.call("SET", "a", 1) == "OK"
        assert over_a_demotion(redis, conn, "INCR a", "GET a", command="get") == [2, b"2"]


def test_a_server_that_loads(farm, behind_loading):
    """LOADING, on connections from before."""
    redis, weir = behind_loading
    with weir.connect() as conn, redis.connect() as admin:
        assert conn.call("SET", "a", 1) == "OK"
        admin.send(encode("DEBUG", "RELOAD"))
        wait_until(lambda: isinstance(redis.call("GET", "a"), Error), "it loads")
        send(conn, "GET a", "INCR a", "GET a")
        assert [conn.read() for _ in range(3)] == [b"1", 2, b"2"]
        assert admin.read() == "OK"
        assert refused(redis, "get") > 1


@pytest.fixture
def behind_loading(farm):
    redis = farm.redis(*DEBUG_ALLOWED, "--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024")
    redis.call("DEBUG", "POPULATE", 1000)
    weir = farm.weir(f"{redis.upstream}, 127.0.0.1:{free_port()}", failover_wait=LONG, workers=1)
    return redis, weir


def test_the_server_ends_while_it_is_waited_for(redis, behind):
    """Refused requests have not run, so another connection may carry them."""
    weir = behind()
    with weir.connect() as conn:
        assert conn.call("INCR", "n") == 1
        refuse(redis, conn, "INCR n", "PING")
        wait_until(lambda: refused(redis) > 0, "it is refused")
        redis.kill()
        redis.start()
        assert [conn.read() for _ in range(2)] == [1, "PONG"]
    assert runs(redis) == 1


def test_idle_timeout_closes_none_that_waits(redis, behind):
    weir = behind(idle_timeout="1s")
    with weir.connect() as conn:
        assert conn.call("INCR", "n") == 1
        refuse(redis, conn, "INCR n")
        time.sleep(2.5)  # longer than idle-timeout: there is no state to wait for
        promote(redis)
        assert conn.read() == 2


# ---- two servers ----


def swap(old, new):
    """Makes `new` the master and `old` its replica at once: no acknowledged write is lost."""
    assert old.call("CLIENT", "PAUSE", 60000, "WRITE") == "OK"
    wait_until(lambda: old.info("master_repl_offset") == new.info("master_repl_offset"), "the replica has everything")
    promote(new)
    with old.connect() as admin:
        send(admin, "REPLICAOF %s %d" % new.announced, "CLIENT UNPAUSE")
        assert [admin.read(), admin.read()] == ["OK", "OK"]
    wait_until(lambda: old.follows(new), "it follows", SECONDS)


def count_up(weir, name, user, protocol, is_over, faults):
    """Sends pipelines of INCR and reads until is_over. Returns how often the client has counted."""
    n = 0
    with weir.connect(timeout=SECONDS) as conn:
        if user:
            assert conn.call("AUTH", user, "pw") == "OK"
        conn.call("HELLO", protocol)
        while not is_over.is_set():
            send(conn, *[f"INCR {name}"] * 5, f"GET {name}", "PING", "DBSIZE")
            got = [conn.read() for _ in range(8)]
            expected = [n + 1, n + 2, n + 3, n + 4, n + 5, b"%d" % (n + 5), "PONG"]
            if got[:7] != expected:
                faults.append((name, n, got))
                return
            n += 5
    return n


@pytest.mark.parametrize("n_swaps", [2, pytest.param(20, marks=pytest.mark.failover)])
def test_swaps_under_load(n_swaps, farm):
    """No client notices the swaps, and the last master has every acknowledged write."""
    master, replica = farm._start(Node()), farm._start(Node())
    replica.become_replica_of(master)
    for node in (master, replica):
        assert node.call("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all") == "OK"
    wait_until(lambda: replica.follows(master), "it follows", SECONDS)
    weir = farm.weir(f"{master.upstream}, {replica.upstream}", failover_wait=LONG, workers=2)
    is_over, faults = threading.Event(), []
    with ThreadPoolExecutor(20) as pool:
        counts = [
            pool.submit(count_up, weir, f"n{i}", "app" if i % 2 else None, 2 + i % 2, is_over, faults) for i in range(20)
        ]
        try:
            for _ in range(n_swaps):
                before = runs(master)
                wait_until(lambda: runs(master) > before + 200, "they go on", SECONDS)
                swap(master, replica)
                master, replica = replica, master
        finally:
            is_over.set()
    assert not faults
    for i, count in enumerate(counts):
        assert int(master.call("GET", f"n{i}") or 0) == count.result()
    assert sum(refused(node) for node in (master, replica)) > 0


def test_a_master_that_refuses_the_client(farm):
    """The client gets the refusal of requests that did not run, and is closed. Other clients go on.
    """
    master, replica = farm._start(Node()), farm._start(Node())
    replica.become_replica_of(master)
    assert master.call("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all") == "OK"
    wait_until(lambda: replica.follows(master), "it follows", SECONDS)
    weir = farm.weir(f"{master.upstream}, {replica.upstream}", failover_wait=LONG, workers=1)
    with weir.connect(timeout=SECONDS) as conn, weir.connect(timeout=SECONDS) as other:
        assert conn.ask("AUTH app pw", "INCR n") == ["OK", 1]
        assert other.call("INCR", "n") == 2
        assert master.call("CLIENT", "PAUSE", 60000, "WRITE") == "OK"
        for each in (conn, other):
            send(each, "INCR n", "PING")
        wait_until(lambda: len(re.findall(rb" flags=\w*b", master.call("CLIENT", "LIST"))) == 2, "both are held")
        swap(master, replica)
        assert [conn.read(), conn.read(), conn.read_to_end()] == [READONLY, "PONG", b""]
        assert [other.read(), other.read()] == [3, "PONG"]


class Dribble(Relay):
    """A relay that passes replies on in small pieces."""

    def __init__(self, target, piece):
        super().__init__(target)
        self.piece = piece

    def _pass_on(self, source, sink):
        if source.getpeername() != self.target:
            super()._pass_on(source, sink)
            return
        with contextlib.suppress(OSError):
            while data := source.recv(self.piece):
                sink.sendall(data)
                time.sleep(0.0005)  # otherwise the next piece would be read together with this one
        shut(source)
        shut(sink)


@pytest.mark.parametrize("piece", [1, 7, 40])
def test_replies_that_come_in_pieces(piece, farm, redis):
    relay = farm._start(Dribble(redis.address, piece))
    weir = farm.weir(f"{relay.upstream}, 127.0.0.1:{free_port()}", failover_wait=LONG, workers=1)
    with weir.connect() as conn, weir.connect() as other:
        assert conn.ask("RPUSH list x", "INCR list", "GET k")[0] == 1
        assert other.call("PING") == "PONG"
        got = over_a_demotion(redis, conn, "INCR n", "INCR list", "GET n", "GET list", "INCR n", "PING")
        assert got[0] == 1 and got[2] == b"1" and got[4:] == [2, "PONG"]
        assert all(str(reply).startswith("WRONGTYPE") for reply in (got[1], got[3]))
        assert other.call("GET", "n") == b"2"
