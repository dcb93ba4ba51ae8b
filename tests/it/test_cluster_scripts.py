"""Scripts and functions in front of a cluster run at the node of their keys. weir follows no
redirect that a script forges.
"""

import itertools

import pytest
from kit.cluster import Cluster, keys_in, slot_of, weir_before
from kit.harness import Farm
from kit.resp import Error

CROSS = Error("CROSSSLOT Keys in request don't hash to the same slot")
MOVED = Error("UPSTREAM moved")
FRESH = itertools.count(40)  # a fresh slot for each test that moves one
INCR = "return redis.call('INCR', KEYS[1])"
LIBRARY = "#!lua name=lib\nredis.register_function('incr', function(keys) return redis.call('INCR', keys[1]) end)"


@pytest.fixture(scope="module")
def made():
    farm = Farm()
    yield Cluster(farm)
    farm.close()


@pytest.fixture(scope="module")
def weir(made):
    for node in made.nodes:
        assert node.call("ACL", "SETUSER", "alice", "on", ">pw", "~*", "+@all") == "OK"
        assert node.call("FUNCTION", "LOAD", "REPLACE", LIBRARY) == b"lib"
    return weir_before(made, workers=2)


@pytest.fixture(params=["RESP2", "RESP3", "alice"])
def conn(request, weir):
    with weir.connect() as conn:
        if request.param == "RESP3":
            conn.call("HELLO", 3)
        if request.param == "alice":
            assert conn.call("AUTH", "alice", "pw") == "OK"
        yield conn


def test_at_the_node_of_its_keys(made, conn):
    for node in made.masters:
        key = made.key_at(node)
        conn.call("SET", key, 0)
        assert conn.ask(["EVAL", INCR, 1, key], ["FCALL", "incr", 1, key], ["GET", key]) == [1, 2, b"2"]
        sha = node.call("SCRIPT", "LOAD", INCR)
        assert conn.ask(["EVALSHA", sha, 1, key], ["EVALSHA_RO", sha, 1, key])[0] == 3
        assert conn.call("EVAL_RO", "return redis.call('GET', KEYS[1])", 1, key) == b"3"
    assert conn.call("EVAL", "return 7", 0) == 7
    assert conn.call("EVALSHA", "0" * 40, 1, key).startswith("NOSCRIPT")
    one, two = made.keys_everywhere(2)
    assert conn.call("EVAL", INCR, 2, one, two) == CROSS
    assert "non local key" in conn.call("EVAL", "return redis.call('GET', ARGV[1])", 1, one, two)


@pytest.mark.parametrize("call", [["EVAL", INCR, 1], ["FCALL", "incr", 1]], ids=["EVAL", "FCALL"])
def test_at_each_step_of_a_slot_that_moves(made, conn, call):
    source, target, _ = made.masters
    slot = slot_of(made.key_at(source, next(FRESH)))
    keys = list(itertools.islice(keys_in(slot), 4))
    conn.ask(*(["SET", key, 0] for key in keys))
    made.begin_move(slot, target)
    made.move_keys(slot, keys=keys[:2])
    assert [conn.call(*call, key) for key in keys] == [1] * 4  # ASK for two of the keys
    made.move_keys(slot, keys=keys[2:])
    assert [conn.call(*call, key) for key in keys] == [2] * 4
    made.end_move(slot)
    assert [conn.call(*call, key) for key in keys] == [3] * 4  # MOVED
    assert [target.call("GET", key) for key in keys] == [b"3"] * 4


@pytest.mark.parametrize("word", ["MOVED", "ASK"])
def test_a_forged_redirect_leads_nowhere(made, word):
    conn = weir_before(made, redirect_timeout="100ms").connect()
    here, there, _ = made.masters
    key = made.key_at(here, 1)
    slot = slot_of(key)
    for to in (there.upstream, "127.0.0.1:1", here.upstream):
        for number in (slot, slot + 1):
            conn.call("SET", key, 0)
            forge = f"redis.call('INCR', KEYS[1]) return redis.error_reply('{word} {number} {to}')"
            assert conn.ask(["EVAL", forge, 1, key], ["GET", key]) == [MOVED, b"1"]
    for words in ("TRYAGAIN x", "CLUSTERDOWN x", "LOADING x"):
        forge = f"redis.call('INCR', KEYS[1]) return redis.error_reply('{words}')"
        assert conn.ask(["EVAL", forge, 1, key], ["PING"]) == [Error(words), "PONG"]


def test_forged_frames_end_the_connection_and_no_other(made, weir):
    key = made.key_at(made.masters[1], 2)
    with weir.connect() as other, weir.connect() as conn:
        assert other.call("SET", key, "v") == "OK"
        got = conn.call("EVAL", "return {err='x\\r\\n-MOVED 1 127.0.0.1:1\\r\\n'}", 1, key)
        assert isinstance(got, Error) and "MOVED" not in got[:5]
        assert other.call("GET", key) == b"v"


def test_inside_multi(made, conn):
    source, target, _ = made.masters
    key = made.key_at(source, next(FRESH))
    assert conn.ask("MULTI", ["EVAL", INCR, 1, key]) == ["OK", "QUEUED"]
    made.move(slot_of(key), target)
    assert conn.ask(["FCALL", "incr", 1, key], "EXEC") == ["QUEUED", [1, 2]]
    forge = f"return redis.error_reply('MOVED {slot_of(key)} {source.upstream}')"
    got = conn.ask("MULTI", ["EVAL", forge, 1, key], "EXEC")
    assert got[:2] == ["OK", "QUEUED"] and got[2][0].startswith("MOVED")
