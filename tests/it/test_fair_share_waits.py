"""Waits for a fair share are shown apart from waits for limits and for Redis: which tenant, how
often, how long, whether now. Old names are shown too.
"""

import json

import pytest
from kit.harness import wait_until
from kit.limits import OPERATOR, operator, order, plain
from test_fair_share import BIG, COUNT, TENANTS, From
from test_admin_http import ADMIN, get, metrics, value

FLOOD = "ip:" + TENANTS[0]
SHARE = ("share_waiting", "share_waits", "share_waited_ms")
TURN = ("turn_waiting", "turn_waits", "turn_waited_ms")  # the old names of the fields


@pytest.fixture
def weir(redis, farm):
    redis.call("SET", "big", b"\x0f" * BIG)
    settings = {"slowlog_log_slower_than": "0", "slowlog_max_len": "1000"}
    return farm.weir(redis, workers=1, fair_share="on", sections=ADMIN + "socket = {folder}/operator.sock\n", **settings)


def about(op, subject, *command):
    return plain(op.call("LIMIT", *(("EXPLAIN", *command) if command else ("STATUS",)), "FOR", subject))


def contend(weir):
    """One client sends much at once, and others something in between."""
    with From(weir.address, TENANTS[0]) as flood, From(weir.address, TENANTS[1]) as other:
        assert flood.call("PING") == other.call("PING") == "PONG"
        for _ in range(3):
            flood.send(COUNT * 300)
            for _ in range(20):
                assert other.call("BITCOUNT", "big") == BIG * 4
            for _ in range(300):
                assert flood.read() == BIG * 4
        with operator(weir) as op:
            return about(op, FLOOD)


def test_nobody_waits_alone(redis, farm):
    weir = farm.weir(redis, workers=1, fair_share="on", sections=OPERATOR)
    with From(weir.address, TENANTS[0]) as conn:
        for _ in range(100):
            conn.call("PING")
        with operator(weir) as op:
            status = about(op, FLOOD)
    assert [status[name] for name in SHARE] == [0, 0, 0]
    assert [status[name] for name in TURN] == [0, 0, 0]


def test_how_often_and_how_long_one_has_waited(weir):
    status = contend(weir)
    assert status["share_waits"] > 0 and status["share_waited_ms"] > 0
    assert [status[name] for name in TURN] == [status[name] for name in SHARE]
    top = {row["subject"]: row for row in map(plain, order(weir, "TOP", "10"))}
    assert top[FLOOD]["turn_us_per_s"] == top[FLOOD]["share_waited_us_per_s"] > 0
    for by in ("share", "turns"):
        row = plain(order(weir, "TOP", "10", "BY", by)[0])
        assert row["subject"] == FLOOD and row["turn_us_per_s"] == row["share_waited_us_per_s"] > 0
    slow = [entry for entry in plain(order(weir, "SLOWLOG", "GET", "-1")) if entry[3][0] == "bitcount"]
    assert any(entry[8] > 0 for entry in slow)
    assert all(set(entry[9].split(",")) & {"share", "worker"} for entry in slow if entry[8] > 0)
    assert all(entry[6] == 0 and entry[7] + entry[8] <= entry[2] + 2 for entry in slow)
    found = {}

    def is_told():
        found.update(json.loads(get(weir, "/api/v1/stats?history=0")[2]))
        return found["times"]["share"]["count"] >= status["share_waits"]

    wait_until(is_told, "the next second")
    assert found["times"]["share"]["sum_seconds"] > 0 and found["times"]["turn"] == found["times"]["share"]
    row = found["top"]["share"][0]
    assert row["subject"] == FLOOD and row["per_second"] > 0
    assert row["turn_us_per_second"] == row["share_waited_us_per_second"] == row["per_second"]
    assert found["top"]["turns"] == found["top"]["share"]
    assert found["now"]["turn_wait_p99_seconds"] == found["now"]["share_wait_p99_seconds"]
    assert found["history"]["turn_wait_p50_seconds"] == found["history"]["share_wait_p50_seconds"]
    for name in ("weir_share_wait_seconds_count", "weir_turn_wait_seconds_count"):
        wait_until(lambda name=name: value(metrics(weir), name) >= status["share_waits"], "the metrics")
    assert "127.0.0.2" not in get(weir, "/metrics")[2], "of nobody by name"


def test_who_waits_now(weir):
    contend(weir)
    with From(weir.address, TENANTS[0]) as flood, From(weir.address, TENANTS[1]) as other, operator(weir) as op:
        assert about(op, FLOOD, "GET", "k")["share_waiting"] == 0
        for _ in range(20):  # enough requests to be no longer new, and to stay on one lane
            assert flood.call("BITCOUNT", "big") == BIG * 4
        assert flood.call("PING") == other.call("PING") == "PONG"
        explained = {}

        def is_waiting():
            """While both send, they wait for each other."""
            flood.send(COUNT * 100)
            other.send(COUNT * 10)
            explained.update(about(op, FLOOD, "GET", "k"))
            assert [conn.read() for conn, n in ((flood, 100), (other, 10)) for _ in range(n)] == [BIG * 4] * 110
            return explained["share_waiting"] == explained["turn_waiting"] == 1

        wait_until(is_waiting, "it waits for its share")
        assert explained["verdict"] == "pass", "no limit has to do with it"


def test_the_old_name_of_the_key(redis, farm):
    """The old name is accepted with one warning. LIMIT DIFF knows the new name alone."""
    weir = farm.weir(redis, workers=1, turns="off", sections=OPERATOR)
    warning = "[weir] turns: the key has a new name: write fair-share = off"
    weir.wait_for_log(warning)
    weir.config.write_text(weir.config.read_text().replace("turns = off", "fair-share = off"))
    assert order(weir, "DIFF") == []
    weir.config.write_text(weir.config.read_text().replace("fair-share = off", "fair-share = on"))
    row = {"section": "weir", "what": "fair-share", "running": "off", "file": "on"}
    assert [plain(each) for each in order(weir, "DIFF")] == [row]
    assert order(weir, "RELOAD") == "OK"
    assert order(weir, "DIFF") == []
    assert weir.log().count(warning) == 1
