"""Requests too large to be buffered, in front of a cluster. Such requests go to the node of their
slot, or get an error that the slot has moved.
"""

import itertools

import pytest
from kit.cluster import Cluster, keys_in, slot_of, weir_before
from kit.harness import Farm
from kit.resp import Error, encode

FRESH = itertools.count(80)  # a fresh slot for each test that moves one
LARGE = "v" * 300000


@pytest.fixture(scope="module")
def made():
    farm = Farm()
    yield Cluster(farm)
    farm.close()


@pytest.fixture(scope="module")
def weir(made):
    for node in made.nodes:
        assert node.call("ACL", "SETUSER", "alice", "on", ">pw", "~*", "+@all") == "OK"
    return weir_before(made, workers=2)


@pytest.fixture(params=["RESP2", "alice"])
def conn(request, weir):
    with weir.connect() as conn:
        if request.param == "alice":
            assert conn.call("AUTH", "alice", "pw") == "OK"
        yield conn


def test_they_stream_to_the_node_of_their_slot(made, conn):
    for node in made.masters:
        key = made.key_at(node)
        assert conn.ask(["SET", key, LARGE], ["STRLEN", key], ["APPEND", key, "x"], ["GET", key]) == [
            "OK", len(LARGE), len(LARGE) + 1, LARGE.encode() + b"x",
        ]  # fmt: skip
        assert node.call("STRLEN", key) == len(LARGE) + 1


def test_many_keys_go_where_the_first_is(made, conn):
    """The first bytes go before all keys have come. Redis checks the slots of the later keys."""
    for node in made.masters:
        key = made.key_at(node)
        many = [word for _ in range(10000) for word in (key, "v")]
        assert conn.ask(["MSET", *many, key, "last"], ["GET", key]) == ["OK", b"last"]
        assert conn.call("DEL", *many[::2]) == 1
        assert conn.ask("MULTI", ["MSET", *many], ["GET", key], "EXEC") == ["OK", "QUEUED", "QUEUED", ["OK", b"v"]]
        assert str(conn.call("MSET", *many, made.key_at(node, 1), "v")).startswith("CROSSSLOT")
    assert conn.call("PING") == "PONG"


def test_they_stand_one_behind_the_other(made, conn):
    keys = made.keys_everywhere(3)
    for size in (66000, 70000, 300000):
        for _ in range(10):
            assert conn.ask(*(["SET", key, "v" * size] for key in [keys[0], *keys, keys[2]])) == ["OK"] * 5


def test_at_each_step_of_a_slot_that_moves(made, conn):
    source, target, _ = made.masters
    slot = slot_of(made.key_at(source, next(FRESH)))
    keys = list(itertools.islice(keys_in(slot), 4))
    conn.ask(*(["SET", key, 0] for key in keys))
    made.begin_move(slot, target)
    made.move_keys(slot, keys=keys[:2])
    assert conn.call("INCR", keys[0]) == 1  # ASK: weir knows that the slot is moving
    assert [conn.call("SET", key, LARGE) for key in keys] == ["OK"] * 4
    assert [conn.call("STRLEN", key) for key in keys] == [len(LARGE)] * 4
    made.end_move(slot)
    assert [conn.call("SET", key, LARGE + "x") for key in keys] == ["OK"] * 4
    assert [target.call("STRLEN", key) for key in keys] == [len(LARGE) + 1] * 4


def test_a_redirect_that_another_worker_has_met_is_known(made, weir, conn):
    source, target, _ = made.masters
    slot = slot_of(made.key_at(source, next(FRESH)))
    first, *keys = itertools.islice(keys_in(slot), 9)
    made.begin_move(slot, target)
    assert conn.call("INCR", first) == 1  # ASK
    for key in keys:
        with weir.connect() as other:
            assert other.ask(["SET", key, LARGE], ["STRLEN", key]) == ["OK", len(LARGE)]
    made.end_move(slot)


def test_a_redirect_all_the_same_is_told(made, conn):
    source, target, _ = made.masters
    key = made.key_at(source, next(FRESH))
    data = encode("SET", key, LARGE)
    conn.send(data[:200000])
    made.move(slot_of(key), target)
    conn.send(data[200000:])
    assert conn.read() == Error("UPSTREAM moved")
    assert conn.ask("PING", ["SET", key, LARGE], ["STRLEN", key]) == ["PONG", "OK", len(LARGE)]


def test_inside_multi(made, conn):
    source, target, _ = made.masters
    key = made.key_at(source, 1)
    assert conn.ask("MULTI", ["SET", key, LARGE], ["STRLEN", key], "EXEC") == ["OK", "QUEUED", "QUEUED", ["OK", len(LARGE)]]
    key = made.key_at(source, next(FRESH))
    assert conn.ask("MULTI", ["SET", key, LARGE]) == ["OK", "QUEUED"]
    made.move(slot_of(key), target)
    abort = Error("EXECABORT Transaction discarded because of previous errors.")
    assert conn.ask("EXEC", ["EXISTS", key], "PING") == [abort, 0, "PONG"]
