"""Blocking commands in front of a cluster: their slot moves, their master fails over, their client
closes.
"""

import itertools
import time

import pytest
from kit.cluster import Cluster, slot_of, weir_before
from kit.harness import Farm, wait_until
from kit.resp import Error, encode
from kit.server import at_least

FRESH = itertools.count(60)  # a fresh slot for each test that moves one


@pytest.fixture(scope="module")
def made():
    farm = Farm()
    yield Cluster(farm)
    farm.close()


@pytest.fixture(scope="module")
def weir(made):
    return weir_before(made, workers=2)


@pytest.fixture(params=["RESP2", "RESP3"])
def conn(request, weir):
    with weir.connect() as conn:
        if request.param == "RESP3":
            conn.call("HELLO", 3)
        yield conn


def blocked(node):
    return int(node.info("blocked_clients"))


def block(node, conn, *call):
    """Sends the command, and waits until it blocks at the node."""
    before = blocked(node)
    conn.send(encode(*call))
    wait_until(lambda: blocked(node) == before + 1, "it waits in Redis")


def test_it_waits_at_the_node_of_its_key(made, weir, conn):
    for node in made.masters:
        key = made.key_at(node)
        block(node, conn, "BLPOP", key, 0)
        with weir.connect() as other:
            assert other.call("RPUSH", key, "v") == 1
        assert conn.read() == [key.encode(), b"v"]
        assert conn.call("BLPOP", key, "0.01") is None
        assert conn.call("XREAD", "BLOCK", 1, "STREAMS", "x" + key, "$") is None


CALLS = {
    "BLPOP": (["BLPOP", "K", 0], ["RPUSH", "K", "v"], lambda key: [key, b"v"]),
    "BLMPOP": (["BLMPOP", 0, 1, "K", "LEFT"], ["RPUSH", "K", "v"], lambda key: [key, [b"v"]]),
    "BLMOVE": (["BLMOVE", "K", "K", "LEFT", "LEFT", 0], ["RPUSH", "K", "v"], lambda key: b"v"),
    "BZPOPMIN": (["BZPOPMIN", "K", 30], ["ZADD", "K", 1, "v"], lambda key: [key, b"v"]),
    "XREAD": (["XREAD", "BLOCK", 0, "STREAMS", "K", "0"], ["XADD", "K", "1-1", "f", "v"], lambda key: None),
}


@pytest.mark.parametrize("name", CALLS)
def test_its_slot_leaves_while_it_waits(made, weir, conn, name):
    source, target, _ = made.masters
    key = made.key_at(source, next(FRESH))
    call, push, expected = CALLS[name]
    block(source, conn, *(key if word == "K" else word for word in call))
    before = blocked(target)
    made.move(slot_of(key), target)
    wait_until(lambda: blocked(target) == before + 1, "it waits at the new owner")
    with weir.connect() as other:
        assert not isinstance(other.call(*(key if word == "K" else word for word in push)), Error)
    got = conn.read()
    wanted = expected(key.encode())
    if wanted is None:
        assert b"1-1" in str(got).encode()
    else:
        assert got == wanted or got[:2] == wanted
    assert conn.ask("PING", ["DEL", key])[0] == "PONG"


def test_only_the_time_that_is_left(made, weir, conn):
    source, target, _ = made.masters
    key = made.key_at(source, next(FRESH))
    began = time.monotonic()
    block(source, conn, "BLPOP", key, 2)
    made.move(slot_of(key), target)
    assert conn.read() is None
    assert 1.9 < time.monotonic() - began < 3.5


def test_xread_of_what_comes_says_that_it_may_have_missed_something(made, weir, conn):
    source, target, _ = made.masters
    key = made.key_at(source, next(FRESH))
    block(source, conn, "XREAD", "BLOCK", 0, "STREAMS", key, "$")
    began = time.monotonic()
    wait_until(lambda: time.monotonic() - began > 0.02, "it has waited")
    made.move(slot_of(key), target)
    assert conn.read().startswith("UNBLOCKED")
    assert conn.call("PING") == "PONG"


def test_a_table_that_is_old_is_no_wait(made, weir, conn):
    source, target, _ = made.masters
    key = made.key_at(source, next(FRESH))
    made.move(slot_of(key), target)
    block(target, conn, "XREAD", "BLOCK", 0, "STREAMS", key, "$")
    with weir.connect() as other:
        other.call("XADD", key, "1-1", "f", "v")
    assert b"1-1" in str(conn.read()).encode()


def test_an_operator_ends_the_wait(made, weir, conn):
    """UNBLOCKED has several reasons. weir asks again only if the reason is a master that became a
    replica.
    """
    node = made.masters[0]
    key = made.key_at(node)
    block(node, conn, "BLPOP", key, 0)
    lines = node.call("CLIENT", "LIST").decode().splitlines()
    (id,) = [line.split(" ")[0].removeprefix("id=") for line in lines if " flags=b" in line]
    assert node.call("CLIENT", "UNBLOCK", id, "ERROR") == 1
    assert conn.read() == Error("UNBLOCKED client unblocked via CLIENT UNBLOCK")


def test_a_stream_goes_while_its_group_is_read(made, weir, conn):
    node = made.masters[0]
    key = made.key_at(node)
    with weir.connect() as other:
        assert other.ask(["DEL", key], ["XGROUP", "CREATE", key, "g", "$", "MKSTREAM"])[1] == "OK"
        block(node, conn, "XREADGROUP", "GROUP", "g", "me", "BLOCK", 0, "STREAMS", key, ">")
        assert other.call("DEL", key) == 1
    assert str(conn.read()).startswith("UNBLOCKED the stream key no longer exists" if not at_least(7, 2) else "NOGROUP")


def test_what_stands_behind_it_comes_later(made, weir, conn):
    source, target, _ = made.masters
    key = made.key_at(source, next(FRESH))
    block(source, conn, "BLPOP", key, 0)
    conn.send(encode("SET", f"{{{key[3:-1]}}}x", 1) + encode("PING"))
    made.move(slot_of(key), target)
    with weir.connect() as other:
        assert other.call("RPUSH", key, "v") == 1
    assert [conn.read() for _ in range(3)] == [[key.encode(), b"v"], "OK", "PONG"]


def test_a_client_that_goes_takes_nothing(made, weir):
    source, target, _ = made.masters
    key = made.key_at(source, next(FRESH))
    before = blocked(target)
    conn = weir.connect()
    block(source, conn, "BLPOP", key, 0)
    made.move(slot_of(key), target)
    wait_until(lambda: blocked(target) == before + 1, "it waits at the new owner")
    conn.close()
    wait_until(lambda: blocked(target) == before, "it has gone")
    with weir.connect() as other:
        assert other.ask(["RPUSH", key, "v"], ["LLEN", key]) == [1, 1]


@pytest.mark.cluster
def test_its_master_fails_over(farm):
    made = Cluster(farm, replicas=1)
    weir = weir_before(made, workers=2, failover_wait="5s")
    first = made.masters[0]
    (replica,) = made.replicas_of(first)
    key = made.key_at(first)
    with weir.connect() as conn, weir.connect() as other:
        block(first, conn, "BLPOP", key, 0)
        made.failover(replica)
        wait_until(lambda: blocked(replica) == 1, "it waits at the new master")
        assert other.call("RPUSH", key, "v") == 1
        assert conn.read() == [key.encode(), b"v"]
