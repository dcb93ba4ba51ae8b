"""SCAN, KEYS, DBSIZE and RANDOMKEY over the masters of a cluster."""

import pytest
from kit.cluster import Cluster, slot_of, weir_before
from kit.resp import Error


@pytest.fixture
def made(farm):
    return Cluster(farm, masters=3)


@pytest.fixture
def conn(made):
    with weir_before(made, workers=1).connect() as conn:
        yield conn


def fill(conn, n, form="key:%d"):
    keys = [form % i for i in range(n)]
    assert conn.ask(*(["SET", key, "v"] for key in keys)) == ["OK"] * n
    return {key.encode() for key in keys}


def scan(conn, *options, between=lambda: None):
    cursor, found = b"0", []
    for _ in range(100000):
        cursor, keys = conn.call("SCAN", cursor, *options)
        found += keys
        assert 0 <= int(cursor) < 1 << 53
        if cursor == b"0":
            return found
        between()
    raise AssertionError("a scan without end")


def test_scan_has_all_keys_once(made, conn):
    keys = fill(conn, 700)
    for protocol in ("2", "3"):
        conn.call("HELLO", protocol)
        for options in ([], ["COUNT", 7], ["COUNT", 10000]):
            found = scan(conn, *options)
            assert sorted(found) == sorted(keys)
    assert set(scan(conn, "MATCH", "key:1*", "COUNT", 50)) == {key for key in keys if key.startswith(b"key:1")}
    conn.call("RPUSH", "list", "a")
    assert scan(conn, "TYPE", "list") == [b"list"]
    assert scan(conn, "MATCH", "nothing*") == []


@pytest.mark.cluster
def test_cursors_of_nonsense(conn):
    fill(conn, 50)
    for cursor in ("x", "-1", "", "1x", "18446744073709551616"):
        assert conn.call("SCAN", cursor) == Error("ERR invalid cursor"), cursor
    assert conn.call("SCAN").startswith("ERR wrong number of arguments")
    assert conn.call("SCAN", "0", "COUNT", "x").startswith("ERR")
    cursor, keys = conn.call("SCAN", "18446744073709551615")  # an unknown cursor: a new scan begins
    assert len(keys) > 0


@pytest.mark.cluster
def test_a_cursor_is_good_at_another_weir(made, conn, farm):
    keys = fill(conn, 300)
    with farm.weir(made.entries(made.nodes[2], made.nodes[1]), workers=1).connect() as other:
        cursor, found, turn = b"0", [], 0
        while True:
            turn += 1
            cursor, some = (conn if turn % 2 else other).call("SCAN", cursor, "COUNT", 20)
            found += some
            if cursor == b"0":
                break
    assert sorted(found) == sorted(keys)


@pytest.mark.cluster
def test_keys_dbsize_randomkey(made, conn):
    keys = fill(conn, 300)
    assert set(conn.call("KEYS", "*")) == keys
    assert set(conn.call("KEYS", "key:2?")) == {b"key:%d" % n for n in range(20, 30)}
    assert conn.call("DBSIZE") == 300
    assert conn.call("RANDOMKEY") in keys
    assert len({conn.call("RANDOMKEY") for _ in range(60)}) > 10
    assert conn.ask("DBSIZE", ["SET", "new", "1"], "DBSIZE", ["DEL", "new"], "DBSIZE") == [300, "OK", 301, 1, 300]
    assert conn.call("FLUSHALL") == "OK"
    assert conn.ask("DBSIZE", "RANDOMKEY", ["KEYS", "*"]) == [0, None, []]


@pytest.mark.cluster
def test_a_scan_while_slots_move(made, conn):
    source, target, _ = made.masters
    keys = fill(conn, 400)
    moves = iter(sorted({slot_of(f"key:{n}") for n in range(400)} & made.slots_of(source))[:20])
    stay = {key for key in keys if slot_of(key) not in made.slots_of(source)}

    def move_one():
        slot = next(moves, None)
        if slot is not None:
            made.move(slot, target)

    assert stay <= set(scan(conn, "COUNT", 10, between=move_one))


@pytest.mark.cluster
def test_a_scan_over_a_failover(farm):
    made = Cluster(farm, masters=2, replicas=1)
    weir = weir_before(made, workers=1, failover_wait="10s")
    with weir.connect() as conn:
        keys = fill(conn, 300)
        assert conn.call("WAIT", "0", "0") is not None
        steps = iter(range(1000))
        replicas = [made.replicas_of(node)[0] for node in made.masters]

        def fail_over():
            if next(steps) == 3:
                for replica in replicas:
                    made.failover(replica)

        assert keys <= set(scan(conn, "COUNT", 10, between=fail_over))
