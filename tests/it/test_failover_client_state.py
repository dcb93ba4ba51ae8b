"""What clients with and without state at the old master see of a failover."""

import signal

import pytest
from kit.harness import stopped, wait_until
from kit.resp import Closed, Error
from kit.sentinel import Deployment, Node, follows

WAITS = {"failover_wait": "10s"}


def in_multi(conn):
    assert conn.ask("MULTI", "SET in-multi 1") == ["OK", "QUEUED"]


def watching(conn):
    assert conn.call("WATCH", "watched") == "OK"


def subscribed(conn):
    assert conn.call("SUBSCRIBE", "channel") == [b"subscribe", b"channel", 1]


def blocked(conn):
    conn.send(b"BLPOP nothing 0\r\n")


def tracking(conn):
    conn.call("HELLO", 3)
    assert conn.call("CLIENT", "TRACKING", "ON") == "OK"


STATES = [in_multi, watching, subscribed, blocked, tracking]


def with_nothing(conn):
    assert conn.call("SET", "k", "v") == "OK"


def with_a_name(conn):
    assert conn.call("CLIENT", "SETNAME", "me") == "OK"


def with_a_database(conn):
    assert conn.ask("SELECT 3", "SET k 3") == ["OK", "OK"]


def with_resp3(conn):
    assert conn.call("HELLO", 3)[b"proto"] == 3
    assert conn.call("SET", "k", "v") == "OK"


def logged_in(conn):
    assert conn.call("AUTH", "app", "pw") == "OK"
    assert conn.call("SET", "k", "v") == "OK"


PLAIN = [with_nothing, with_a_name, with_a_database, with_resp3, logged_in]


def ends(conn):
    """True if the connection is closed, after any replies."""
    try:
        while True:
            conn.read()
    except TimeoutError:
        return False
    except (Closed, OSError):
        return True


def kill(made):
    old = made.master
    old.signal(signal.SIGKILL)
    old.wait()
    return made.wait_switched(old)


def by_hand(made):
    return made.failover()


@pytest.mark.failover
@pytest.mark.parametrize("way", [kill, by_hand], ids=lambda way: way.__name__)
def test_clients_with_state_are_closed_and_others_go_on(way, farm):
    made = Deployment(farm, "--user", "app", "on", ">pw", "~*", "&*", "+@all")
    weir = farm.weir(made.upstream, **WAITS)
    conns = {make: weir.connect(timeout=20) for make in STATES + PLAIN}
    for make, conn in conns.items():
        make(conn)
    wait_until(lambda: made.master.waiting()[0] == 1, "it blocks")
    new = way(made)
    wait_until(lambda: follows(weir, new), "weir follows")
    for make in PLAIN:
        assert conns[make].call("SET", "again", "1") == "OK", make
    assert conns[with_a_name].call("CLIENT", "GETNAME") == b"me"
    assert conns[with_a_database].call("GET", "again") == b"1"
    assert conns[with_resp3].call("CONFIG", "GET", "port") == {b"port": b"%d" % new.port}
    assert conns[logged_in].call("ACL", "WHOAMI") == b"app"
    for make in STATES:
        assert ends(conns[make]), make


@pytest.mark.failover
def test_a_transaction_that_goes_on(farm):
    """EXEC after a failover by hand never runs, and is never acknowledged."""
    made = Deployment(farm)
    weir = farm.weir(made.upstream, **WAITS)
    with weir.connect() as conn:
        assert conn.ask("MULTI", "SET in-multi 1") == ["OK", "QUEUED"]
        new = made.failover()
        wait_until(lambda: follows(weir, new), "weir follows")
        try:
            reply = conn.call("EXEC")
        except Closed:
            reply = Error("closed")
        assert isinstance(reply, Error), reply
    assert new.call("GET", "in-multi") is None


@pytest.mark.failover
@pytest.mark.parametrize("answer", ["close", "error"])
def test_nobody_becomes_master(answer, farm):
    """After failover-wait unsent commands get an error or a closed connection, as with one missing
    server. Later commands are served again.
    """
    made = Deployment(farm, n_replicas=1)
    weir = farm.weir(made.upstream, failover_wait="300ms", when_upstream_down=answer)
    with weir.connect() as conn:
        assert conn.call("SET", "k", "v") == "OK"
        for sentinel in made.sentinels:
            sentinel.signal(signal.SIGSTOP)
        old = made.nodes[0]
        old.signal(signal.SIGKILL)
        old.wait()
        weir.wait_for_log("is away")
        if answer == "error":
            assert conn.call("GET", "k") == Error("UPSTREAM unavailable")
        else:
            with pytest.raises(Closed):
                conn.call("GET", "k")
    for sentinel in made.sentinels:
        sentinel.signal(signal.SIGCONT)
    new = made.wait_switched(old)
    wait_until(lambda: follows(weir, new), "weir follows")


def test_a_command_at_a_master_that_is_silent(farm):
    """Whether the command ran is unknown. The client is closed once another server is the master.
    """
    old, new = farm._start(Node()), farm._start(Node())
    new.become_replica_of(old)
    wait_until(lambda: new.follows(old), "it follows")
    weir = farm.weir(f"{old.upstream}, {new.upstream}", connect_timeout="300ms", **WAITS)
    with weir.connect(timeout=20) as conn, weir.connect(timeout=20) as idle:
        assert conn.call("SET", "k", "v") == idle.call("SET", "k", "v") == "OK"
        with stopped(old):
            conn.send(b"SET k w\r\n")
            assert new.call("REPLICAOF", "NO", "ONE") == "OK"
            with pytest.raises(Closed):
                conn.read()
            assert idle.call("SET", "k", "v") == "OK"
            assert new.call("GET", "k") == b"v"
