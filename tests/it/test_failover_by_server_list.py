"""`upstream = a, b`: weir serves the server that reports itself as master."""

import contextlib
import re
import signal

import pytest
from kit.harness import MODE_IDS, MODES, stopped, wait_until
from kit.limits import plain
from kit.resp import Closed, Conn
from kit.sentinel import Node, calls, follows

HURRY = {"WEIR_HURRY": "4"}  # a second is 250 ms
SECONDS = 30


def pair(farm):
    """A master, and its replica."""
    first, second = farm._start(Node()), farm._start(Node())
    second.become_replica_of(first)
    wait_until(lambda: second.follows(first), "the replica follows", SECONDS)
    return first, second


def swap(old, new):
    """Fails over by hand, as an operator does."""
    assert new.call("REPLICAOF", "NO", "ONE") == "OK"
    old.become_replica_of(new)


def listed(*nodes):
    return ", ".join(node.upstream for node in nodes)


def is_ready(weir):
    return re.search(r'\bready["}]*$', weir.log(), re.M)


def ends(conn):
    """True if the connection is closed, after any replies."""
    with contextlib.suppress(TimeoutError):
        try:
            while True:
                conn.read()
        except (Closed, ConnectionError):
            return True
    return False


@pytest.fixture(params=MODES, ids=MODE_IDS)
def follow(request, farm):
    workers, lanes = request.param
    return lambda *nodes, **settings: farm.weir(
        listed(*nodes), workers=workers, lanes=lanes, **{"env": HURRY, "failover_wait": "30s", **settings}
    )


def test_a_swap_by_hand(farm, follow):
    """Writes go to the new master. Clients that wait on the old master are closed. The old master
    gets nothing more.
    """
    first, second = pair(farm)
    weir = follow(second, first)
    assert follows(weir, first)
    with weir.connect() as conn, weir.connect() as blocked, weir.connect() as subscribed, weir.connect() as queueing:
        assert conn.call("SET", "key", "1") == "OK"
        blocked.send(b"BLPOP list 0\r\n")
        assert subscribed.call("SUBSCRIBE", "channel")
        assert queueing.ask("WATCH key", "MULTI", "SET key 2") == ["OK", "OK", "QUEUED"]
        wait_until(lambda: first.waiting()[0] == 1, "it blocks")
        swap(first, second)
        wait_until(lambda: conn.call("SET", "key", "2") == "OK", "writes go to the new master", SECONDS)
        assert second.call("GET", "key") == b"2"
        assert ends(blocked) and ends(subscribed) and ends(queueing)
        assert conn.call("GET", "key") == b"2"
    assert follows(weir, second)
    written = calls(first, "set")
    swap(second, first)
    wait_until(lambda: follows(weir, first), "and back", SECONDS)
    assert calls(first, "set") > written


def test_a_master_that_is_killed(farm, follow):
    """Commands wait for the next master. The old master returns as a master, and gets no writes."""
    first, second = pair(farm)
    weir = follow(first, second)
    with weir.connect() as conn:
        assert conn.call("SET", "key", "1") == "OK"
        wait_until(lambda: second.call("GET", "key") == b"1", "it is replicated")
        first.signal(signal.SIGKILL)
        first.wait()
    with weir.connect() as conn:
        conn.send(b"GET key\r\n")
        assert second.call("REPLICAOF", "NO", "ONE") == "OK"
        assert conn.read() == b"1"
        first.start()
        assert first.role() == "master"
        wait_until(lambda: first.call("CLIENT", "LIST").count(b"\n") > 1, "weir has found it", SECONDS)
        for i in range(200):
            assert conn.call("SET", "key", i) == "OK"
        assert calls(first, "set") == 0
        assert second.call("GET", "key") == b"199"
    assert follows(weir, second)


def test_a_master_that_comes_back(farm, follow):
    """The server is the master again, as no other server is."""
    first, second = pair(farm)
    weir = follow(first, second)
    with weir.connect() as conn:
        assert conn.call("SET", "key", "1") == "OK"
        first.signal(signal.SIGKILL)
        first.wait()
        first.start()
    wait_until(lambda: follows(weir, first), "it is used again", SECONDS)


def test_two_masters_at_the_start(farm):
    """weir serves neither, and logs which two servers these are."""
    first, second = farm._start(Node()), farm._start(Node())
    weir = farm.weir(listed(first, second), failover_wait="200ms", when_upstream_down="error", env=HURRY)
    said = re.search("listening, but not ready: (.*)", weir.log())[1]
    assert "has no master" in said and said.count("is a master") == 2
    with weir.connect() as conn:
        assert conn.call("SET", "key", "1").startswith("UPSTREAM unavailable")
    assert calls(first, "set") + calls(second, "set") == 0
    second.become_replica_of(first)
    wait_until(lambda: follows(weir, first), "one is a replica now", SECONDS)
    wait_until(lambda: is_ready(weir), "weir says that it is ready")


def test_no_master_at_the_start(farm):
    """weir is ready once a server reports itself as master."""
    first, second = pair(farm)
    first.become_replica_of(second)  # of each other
    weir = farm.weir(listed(first, second), failover_wait="30s", env=HURRY)
    assert "has no master" in weir.log() and weir.log().count("is a replica") >= 2
    with weir.connect() as conn:
        conn.send(b"SET key 1\r\n")
        assert first.call("REPLICAOF", "NO", "ONE") == "OK"
        assert conn.read() == "OK"
    assert first.call("GET", "key") == b"1"


def test_a_server_that_is_away_at_the_start(farm):
    """weir serves the master, and logs the missing server."""
    first, second = pair(farm)
    second.signal(signal.SIGKILL)
    second.wait()
    weir = farm.weir(listed(second, first), env=HURRY)
    assert is_ready(weir)
    assert follows(weir, first)
    second.start()
    second.become_replica_of(first)
    assert follows(weir, first)


def test_a_silent_master(farm):
    """Commands wait for the silent master, as they would directly. When it continues, it is still
    the master.
    """
    first, second = pair(farm)
    weir = farm.weir(listed(first, second), env=HURRY, upstream_check="100ms")
    with weir.connect() as conn:
        assert conn.call("SET", "key", "1") == "OK"
        with stopped(first):
            conn.send(b"GET key\r\n")
            wait_until(lambda: "does not answer" in weir.log(), "weir notices", SECONDS)
        assert conn.read() == b"1"
    assert follows(weir, first)


def uses(weir):
    """Returns the use of each server, by address."""
    with Conn(str(weir.folder / "admin.sock")) as operator:
        operator.call("HELLO", 3)
        rows = [{plain(k): plain(v) for k, v in row.items()} for row in operator.call("LIMIT", "UPSTREAM")]
    return {row["address"]: row["used_for"] for row in rows}


@pytest.mark.parametrize("workers, lanes", MODES, ids=MODE_IDS)
def test_replicas_that_are_read(farm, workers, lanes):
    """Each replica has a row, but not a replica that is away or reports itself as master."""
    first, second = pair(farm)
    third = farm._start(Node())
    third.become_replica_of(first)
    nodes = (first, second, third)
    sections = "[admin]\nsocket = {folder}/admin.sock\n"
    how = {"workers": workers, "lanes": lanes, "env": HURRY, "sections": sections}
    weir = farm.weir(listed(*nodes), reads="replicas", failover_wait="30s", **how)

    def serves(master):
        return uses(weir) == {node.upstream: "all" if node is master else "reads" for node in nodes}

    wait_until(lambda: serves(first), "each has a row", SECONDS)
    for old, new, other in ((first, second, third), (second, third, first), (third, first, second)):
        with weir.connect() as conn, weir.connect() as subscribed:
            assert conn.call("SET", "key", old.upstream) == "OK"
            assert subscribed.call("SUBSCRIBE", "channel")
            swap(old, new)
            other.become_replica_of(new)
            wait_until(lambda: conn.call("SET", "key", new.upstream) == "OK", "writes go to the new master", SECONDS)
            assert ends(subscribed)
        wait_until(lambda: serves(new), "rows", SECONDS)
    second.signal(signal.SIGKILL)
    second.wait()
    second.start()
    found = {first.upstream: "all", second.upstream: "nothing", third.upstream: "reads"}
    wait_until(lambda: uses(weir) == found, "a second master has no row", SECONDS)
    assert follows(weir, first)


def test_servers_that_want_a_login(farm, tmp_path):
    """Without a login weir learns no server's role, and logs that. With a login weir serves the
    master.
    """
    first, second = (farm._start(Node(password="secret")) for _ in range(2))
    second.become_replica_of(first)
    weir = farm.weir(listed(first, second), failover_wait="100ms")
    assert weir.log().count("does not report its role, because weir has no login there") >= 2
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    secret.chmod(0o600)
    weir = farm.weir(listed(first, second), upstream_password_file=secret)
    assert is_ready(weir)
    with weir.connect() as conn:
        assert conn.call("AUTH", "secret") == "OK"
        assert conn.call("SET", "key", "1") == "OK"
        assert first.call("REPLICAOF", *second.announced) == "OK"
        wait_until(lambda: "has no master" in weir.log(), "it is noticed", SECONDS)
        assert weir.log().count(f"{first.upstream} is a replica") == 1
