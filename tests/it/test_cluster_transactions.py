"""MULTI and WATCH in front of a cluster: one node for each transaction, whatever happens to its
slot meanwhile.
"""

import itertools
import time

import pytest
from kit.cluster import Cluster, slot_of, weir_before
from kit.harness import Farm, wait_until
from kit.resp import Error

ABORT = Error("EXECABORT Transaction discarded because of previous errors.")
CROSS = Error("CROSSSLOT Keys in request don't hash to the same slot")


@pytest.fixture(scope="module")
def made():
    farm = Farm()
    yield Cluster(farm)
    farm.close()


@pytest.fixture(scope="module")
def weir(made):
    for node in made.nodes:
        assert node.call("ACL", "SETUSER", "alice", "on", ">pw", "~*", "+@all") == "OK"
        assert node.call("ACL", "SETUSER", "bob", "on", ">pw", "~*", "+@all", "-multi") == "OK"
    return weir_before(made, workers=2)


@pytest.fixture(params=["RESP2", "RESP3", "alice"])
def conn(request, weir):
    with weir.connect() as conn:
        if request.param == "RESP3":
            conn.call("HELLO", 3)
        if request.param == "alice":
            assert conn.call("AUTH", "alice", "pw") == "OK"
        yield conn


def one_by_one(conn, *calls):
    return [conn.call(*call.split()) for call in calls]


def together(conn, *calls):
    return conn.ask(*(call.split() for call in calls))


WAYS = [one_by_one, together]
FRESH = itertools.count(20)  # a fresh slot for each test that moves one; no slot moves back


@pytest.mark.parametrize("way", WAYS)
def test_a_transaction_runs_at_the_node_of_its_keys(made, conn, way):
    for node in made.masters:
        key = made.key_at(node)
        got = way(conn, "MULTI", f"SET {key} 1", f"INCR {key}", "PING", f"GET {key}", "EXEC")
        assert got == ["OK", "QUEUED", "QUEUED", "QUEUED", "QUEUED", ["OK", 2, "PONG", b"2"]]
        assert node.call("GET", key) == b"2"
        assert conn.call("GET", key) == b"2"


@pytest.mark.parametrize("way", WAYS)
def test_without_a_key_it_runs_somewhere(conn, way):
    assert way(conn, "MULTI", "EXEC", "PING") == ["OK", [], "PONG"]
    assert way(conn, "MULTI", "PING", "EXEC") == ["OK", "QUEUED", ["PONG"]]


@pytest.mark.parametrize("way", WAYS)
def test_a_first_key_that_is_elsewhere_takes_the_queue_along(made, conn, way):
    for node in made.masters:
        key = made.key_at(node, 1)
        got = way(conn, "MULTI", "PING", f"SET {key} x", "PING", "EXEC")
        assert got == ["OK", "QUEUED", "QUEUED", "QUEUED", ["PONG", "OK", "PONG"]]
        assert node.call("GET", key) == b"x"


@pytest.mark.parametrize("way", WAYS)
def test_keys_of_other_slots_run_nothing(made, conn, way):
    one, two = made.keys_everywhere(2)
    conn.call("DEL", one)
    assert way(conn, "MULTI", f"SET {one} 1", f"SET {two} 2", f"INCR {one}", "EXEC", f"EXISTS {one}") == [
        "OK", "QUEUED", CROSS, "QUEUED", ABORT, 0,
    ]  # fmt: skip
    assert way(conn, "MULTI", f"MGET {one} {two}", "EXEC") == ["OK", CROSS, ABORT]


@pytest.mark.parametrize("way", WAYS)
def test_steps_of_one_server(made, conn, way):
    key = made.key_at(made.masters[1], 3)
    assert way(conn, "MULTI", "MULTI", f"SET {key} 1", "WATCH x", "EXEC") == [
        "OK", Error("ERR MULTI calls can not be nested"), "QUEUED", Error("ERR WATCH inside MULTI is not allowed"), ["OK"],
    ]  # fmt: skip
    assert way(conn, "EXEC", "DISCARD") == [Error("ERR EXEC without MULTI"), Error("ERR DISCARD without MULTI")]
    assert way(conn, "MULTI", f"SET {key} 2", "DISCARD", f"GET {key}", "EXEC") == [
        "OK", "QUEUED", "OK", b"1", Error("ERR EXEC without MULTI"),
    ]  # fmt: skip
    assert way(conn, "MULTI", f"SET {key}", f"SET {key} 2", "EXEC", f"GET {key}") == [
        "OK", Error("ERR wrong number of arguments for 'set' command"), "QUEUED", ABORT, b"1",
    ]  # fmt: skip
    assert way(conn, "MULTI", f"SET {key} 2", "RESET", f"GET {key}")[:3] == ["OK", "QUEUED", "RESET"]


def test_a_user_without_multi_runs_nothing(made, weir):
    key = made.key_at(made.masters[2], 4)
    with weir.connect() as conn:
        assert conn.call("AUTH", "bob", "pw") == "OK"
        got = together(conn, "MULTI", f"SET {key} 1", "EXEC", f"GET {key}")
        assert got[0] == "OK" and got[1].startswith("NOPERM") and got[2:] == [ABORT, None]


@pytest.mark.parametrize("way", WAYS)
def test_watched_keys(made, weir, conn, way):
    key = made.key_at(made.masters[2], 5)
    with weir.connect() as other:
        assert way(conn, f"SET {key} 1", f"WATCH {key}", f"GET {key}") == ["OK", "OK", b"1"]
        assert way(conn, "MULTI", f"INCR {key}", "EXEC") == ["OK", "QUEUED", [2]]
        assert way(conn, f"WATCH {key}") == ["OK"]
        assert other.call("SET", key, 7) == "OK"
        assert way(conn, "MULTI", f"INCR {key}", "EXEC") == ["OK", "QUEUED", None]
        assert way(conn, f"WATCH {key}", "UNWATCH") == ["OK", "OK"]
        assert other.call("SET", key, 8) == "OK"
        assert way(conn, "MULTI", f"INCR {key}", "EXEC") == ["OK", "QUEUED", [9]]
        assert way(conn, f"WATCH {key}") == ["OK"]
        assert other.call("SET", key, 1) == "OK"
        assert way(conn, "MULTI", "DISCARD", "MULTI", f"INCR {key}", "EXEC") == ["OK", "OK", "OK", "QUEUED", [2]]
        assert way(conn, f"WATCH {key}", f"WATCH {made.key_at(made.masters[0])}", "UNWATCH") == ["OK", CROSS, "OK"]


@pytest.mark.parametrize("way", WAYS)
def test_exec_of_nothing_behind_watch(made, weir, conn, way):
    key = made.key_at(made.masters[1])
    assert conn.call("SET", key, 1) == "OK"
    assert way(conn, f"WATCH {key}", "MULTI", "EXEC", f"GET {key}") == ["OK", "OK", [], b"1"]
    assert conn.call("WATCH", key) == "OK"
    with weir.connect() as other:
        assert other.call("SET", key, 2) == "OK"
    assert way(conn, "MULTI", "EXEC", f"GET {key}") == ["OK", None, b"2"]


@pytest.mark.parametrize("way", WAYS)
def test_at_each_step_of_a_slot_that_moves(made, conn, way):
    source, target, _ = made.masters
    tag = made.tag_at(source, next(FRESH))
    slot = slot_of(tag)
    keys = [f"{{{tag}}}{n}" for n in range(4)]
    expected = 0

    def transact():
        nonlocal expected
        expected += 1
        calls = [f"INCR {key}" for key in keys]
        got = way(conn, "MULTI", *calls, "EXEC")
        assert got == ["OK"] + ["QUEUED"] * 4 + [[expected] * 4]

    try:
        transact()
        made.begin_move(slot, target)
        transact()  # all keys are at the source
        made.move_keys(slot, keys=keys[:2])
        with pytest.raises(AssertionError):
            transact()  # half of the keys: TRYAGAIN, until redirect-timeout
        expected -= 1
        # ASK
        assert way(conn, "MULTI", f"INCRBY {keys[0]} 0", "EXEC") == ["OK", "QUEUED", [expected]]
        assert way(conn, "MULTI", f"INCRBY {keys[3]} 0", "EXEC") == ["OK", "QUEUED", [expected]]
        made.move_keys(slot, keys=keys[2:])
        transact()  # ASK for all keys
        made.end_move(slot)
        transact()  # MOVED
        transact()
    finally:
        if slot in made.moves:
            made.end_move(slot)


@pytest.mark.parametrize("way", WAYS)
def test_a_slot_that_moves_between_queueing_and_exec(made, conn, way):
    source, target, _ = made.masters
    key = made.key_at(source, next(FRESH))
    assert way(conn, f"SET {key} 1", "MULTI", f"INCR {key}", "PING") == ["OK", "OK", "QUEUED", "QUEUED"]
    made.move(slot_of(key), target)
    assert way(conn, f"INCR {key}", "EXEC", f"DEL {key}") == ["QUEUED", [2, "PONG", 3], 1]
    key = made.key_at(source, next(FRESH))
    assert way(conn, "MULTI", f"SET {key} 1") == ["OK", "QUEUED"]
    made.move(slot_of(key), target)
    assert way(conn, "EXEC", f"DEL {key}") == [["OK"], 1]


def test_a_long_queue_behind_a_slot_that_has_moved(made, conn):
    """The whole queue is refused at once: that is one redirect."""
    source, target = made.masters[:2]
    key = made.key_at(source, next(FRESH))
    made.move(slot_of(key), target)
    assert together(conn, "MULTI", *[f"INCR {key}"] * 20, "EXEC") == ["OK", *["QUEUED"] * 20, list(range(1, 21))]


def test_a_client_that_thinks_long_between_a_redirect_and_exec(farm, made):
    """redirect-timeout begins with EXEC."""
    source, target = made.masters[:2]
    key = made.key_at(source, next(FRESH))
    with weir_before(made, workers=1, redirect_timeout="100ms").connect() as conn:
        assert conn.call("GET", key) is None
        made.move(slot_of(key), target)
        assert one_by_one(conn, "MULTI", f"INCR {key}") == ["OK", "QUEUED"]
        began = time.monotonic()
        wait_until(lambda: time.monotonic() > began + 0.3, "longer than redirect-timeout")
        assert conn.call("EXEC") == [1]


@pytest.mark.parametrize("way", WAYS)
def test_a_watched_slot_that_moves_is_a_lost_race(made, conn, way):
    source, target, _ = made.masters
    key = made.key_at(source, next(FRESH))
    assert way(conn, f"SET {key} 1", f"WATCH {key}") == ["OK", "OK"]
    made.move(slot_of(key), target)
    assert way(conn, f"GET {key}", "MULTI", f"INCR {key}", "PING", "EXEC", f"GET {key}") == [
        b"1", "OK", "QUEUED", "QUEUED", None, b"1",
    ]  # fmt: skip
    assert way(conn, f"WATCH {key}", "MULTI", f"INCR {key}", "EXEC") == ["OK", "OK", "QUEUED", [2]]


@pytest.mark.parametrize("way", WAYS)
def test_a_lost_race_hides_no_error_of_the_queue(made, conn, way):
    """Redis checks for errors first: EXECABORT."""
    source, target, _ = made.masters
    for wrong in "GET", "NOSUCH x":
        key = made.key_at(source, next(FRESH))
        assert way(conn, f"SET {key} 1", f"WATCH {key}") == ["OK", "OK"]
        made.move(slot_of(key), target)
        got = way(conn, f"GET {key}", "MULTI", f"INCR {key}", wrong, f"INCR {key}", "EXEC", f"GET {key}")
        assert got[:3] + got[4:5] + got[6:] == [b"1", "OK", "QUEUED", "QUEUED", b"1"]
        assert str(got[3]).startswith("ERR ") and str(got[5]).startswith("EXECABORT "), got


@pytest.mark.cluster
def test_watching_while_the_slot_is_on_its_way(made, weir, conn):
    source, target, _ = made.masters
    key = made.key_at(source, next(FRESH))
    slot = slot_of(key)
    made.begin_move(slot, target)
    try:
        assert one_by_one(conn, f"WATCH {key}", "MULTI", f"SET {key} 1", "EXEC") == ["OK", "OK", "QUEUED", ["OK"]]
        assert target.call("CLUSTER", "COUNTKEYSINSLOT", slot) == 1
        assert one_by_one(conn, f"WATCH {key}") == ["OK"]
        with weir.connect() as other:
            assert other.call("SET", key, 2) == "OK"
        assert one_by_one(conn, "MULTI", f"SET {key} 1", "EXEC") == ["OK", "QUEUED", None]
    finally:
        made.end_move(slot)


def test_many_transactions_use_few_connections(made, weir):
    conns = [weir.connect() for _ in range(20)]
    keys = [made.key_at(node, 11) for node in made.masters]
    before = sum(int(node.info("total_connections_received")) for node in made.nodes)
    for _ in range(3):
        for n, conn in enumerate(conns):
            assert together(conn, "MULTI", f"INCR {keys[n % 3]}", "EXEC")[:2] == ["OK", "QUEUED"]
    after = sum(int(node.info("total_connections_received")) for node in made.nodes)
    for conn in conns:
        conn.close()
    assert after - before < 40  # 60 transactions, and the questions of this test


@pytest.mark.cluster
@pytest.mark.parametrize("is_watching", [False, True])
def test_its_master_fails_over_between_queueing_and_exec(farm, is_watching):
    made = Cluster(farm, replicas=1)
    weir = weir_before(made, failover_wait="5s")
    first = made.masters[0]
    (replica,) = made.replicas_of(first)
    key = made.key_at(first)
    with weir.connect() as conn:
        assert conn.call("SET", key, 1) == "OK"
        if is_watching:
            assert conn.call("WATCH", key) == "OK"
        assert one_by_one(conn, "MULTI", f"INCR {key}") == ["OK", "QUEUED"]
        made.failover(replica)
        got = one_by_one(conn, f"INCR {key}", "EXEC", f"GET {key}")
        assert got == (["QUEUED", None, b"1"] if is_watching else ["QUEUED", [2, 3], b"3"])
