"""Latency metrics: every command is in the histograms, and in the parts it belongs to."""

import json
import socket
import time

import pytest
from kit.harness import MODES, MODE_IDS, TOLD_AT_ONCE, wait_until
from kit.resp import Error, encode
from test_admin_http import ADMIN, get, metrics, value

REQUEST = "weir_request_duration_seconds"
UPSTREAM = "weir_upstream_request_duration_seconds"
OWN = "weir_proxy_overhead_seconds"
DELAY = "weir_throttle_delay_seconds"
NAMES = (REQUEST, UPSTREAM, OWN, DELAY)


def counts(weir):
    found = metrics(weir)
    return {name: value(found, name + "_count") for name in NAMES}


def sums(weir):
    found = metrics(weir)
    return {name: value(found, name + "_sum") for name in NAMES}


def wait_counts(weir, **expected):
    """Returns the counts of request, upstream, own and delay."""
    wanted = dict(zip(NAMES, (expected.get(name, 0) for name in ("request", "upstream", "own", "delay"))))
    wait_until(lambda: counts(weir) == wanted, f"{wanted}, not {counts(weir)}", 15)


@pytest.fixture(params=MODES, ids=MODE_IDS)
def weir(request, farm, redis):
    workers, lanes = request.param
    limits = "[policy default]\ncmd.set = 10/s burst 1 over delay 10s\ncmd.append = deny\n"
    return farm.weir(redis, sections=limits + ADMIN, workers=workers, lanes=lanes)


def test_every_command_is_counted_wherever_it_is_answered(weir):
    with weir.connect() as conn:
        conn.ask(*["GET x"] * 500)
        conn.ask(*["GET x", "INCR n"] * 50, "LPUSH l a b c")
        conn.ask("APPEND x y", "APPEND x y", "NOSUCH", "MULTI", "INCR n", "GET n", "EXEC", "LIMIT STATUS", "LIMIT NIX")
        conn.ask("EVAL 'return 1' 0", "SELECT 1", "SELECT 0", "CLIENT SETNAME me", "PING", "ECHO hi")
        conn.call("SET", "big", "x" * 200_000)
        assert len(conn.call("GET", "big")) == 200_000
        # Of LIMIT commands, those that Redis decides count as upstream.
        conn.ask("LIMIT FUNNEL f 10/s", "LIMIT FUNNEL f wrong", "LIMIT RESET f")
    local = 2 + 2 + 1
    n = 500 + 101 + 9 + 6 + 2 + 3
    wait_counts(weir, request=n, upstream=n - local, own=n)
    found = metrics(weir)
    assert sum(n for (name, _), n in found.items() if name == "weir_commands_total") == n
    assert value(found, REQUEST + "_bucket", le="+Inf") == n


def test_the_parts_add_up(weir):
    with weir.connect() as conn:
        for _ in range(20):
            conn.ask(*["GET x", "INCR n"] * 10)
        conn.call("DEBUG", "SLEEP", "0.2")
    wait_counts(weir, request=401, upstream=401, own=401)
    parts = sums(weir)
    assert parts[UPSTREAM] > 0.2
    assert parts[REQUEST] == pytest.approx(parts[UPSTREAM] + parts[OWN], abs=1e-6)
    found = metrics(weir)
    times = json.loads(get(weir, "/api/v1/stats")[2])["times"]
    assert times["upstream"]["count"] == 401 and times["delay"] == dict.fromkeys(times["delay"], 0)
    assert times["request"]["p99_seconds"] >= times["request"]["p50_seconds"] > times["own"]["p50_seconds"] * 0.5
    slow = value(found, UPSTREAM + "_bucket", le="+Inf") - value(found, UPSTREAM + "_bucket", le="0.1")
    assert slow >= 1


def test_what_a_limit_makes_wait_is_not_weirs_own_time(weir):
    with weir.connect() as conn:
        began = time.monotonic()
        conn.ask("SET k 1", "SET k 2", "GET k")
        took = time.monotonic() - began
    wait_counts(weir, request=3, upstream=3, own=3, delay=1)
    parts = sums(weir)
    assert 0.099 < parts[DELAY] < took
    assert parts[REQUEST] > parts[DELAY]
    assert parts[REQUEST] == pytest.approx(parts[UPSTREAM] + parts[OWN] + parts[DELAY], abs=1e-5)


def test_what_blocks_is_not_measured(weir, redis):
    with weir.connect() as conn, weir.connect() as other:
        conn.send(b"BLPOP nothing 0\r\n")
        wait_until(lambda: redis.call("CLIENT", "LIST", "TYPE", "NORMAL").count(b"cmd=blpop") == 1, "it blocks")
        assert other.call("RPUSH", "nothing", "x") == 1
        assert conn.read() == [b"nothing", b"x"]
        assert isinstance(conn.call("LIMIT", "FUNNEL", "f", "1/s", "WAIT", "10"), list)
    wait_counts(weir, request=1, upstream=1, own=1)


def test_requests_in_flight(weir, redis):
    def in_flight():
        return value(metrics(weir), "weir_upstream_inflight_requests", upstream=redis.upstream)

    with weir.connect() as conn, weir.connect() as leaver:
        conn.send(b"BLPOP nothing 0\r\n")
        leaver.send(b"BLPOP nothing 0\r\n")
        wait_until(lambda: in_flight() == 2, "two are in flight", 15)
        leaver.sock.shutdown(socket.SHUT_RDWR)
        wait_until(lambda: in_flight() == 1, "one has gone", 15)
        with weir.connect() as other:
            assert other.call("RPUSH", "nothing", "x") == 1
        assert conn.read() == [b"nothing", b"x"]
        wait_until(lambda: in_flight() == 0, "none is in flight", 15)


def test_what_follows_a_subscription_that_has_ended_is_in_flight_until_it_is_answered(weir, redis):
    """Equal requests are one run. After a subscription weir checks the replies of a run one by one.
    """
    requests = encode("SUBSCRIBE", "a") + encode("UNSUBSCRIBE", "a") + encode("ECHO", "x") * 50
    with weir.connect() as conn:
        conn.send(requests)
        assert [conn.read() for _ in range(52)][2:] == [b"x"] * 50
        gauge = "weir_upstream_inflight_requests"
        total = "weir_event_loop_lag_seconds_count"
        seen = value(metrics(weir), total)
        wait_until(lambda: value(metrics(weir), total) > seen, "a later second is shown", 15)
        assert value(metrics(weir), gauge, upstream=redis.upstream) == 0


def test_a_loop_that_turns_is_measured(weir):
    with weir.connect() as conn:
        conn.ask(*["PING"] * 10)
    wait_until(lambda: value(metrics(weir), "weir_event_loop_lag_seconds_count") >= 2, "turns are counted", 15)


def test_refused_while_the_upstream_is_away(farm):
    redis = farm.redis()
    weir = farm.weir(redis, sections=ADMIN, **TOLD_AT_ONCE)
    with weir.connect() as conn:
        assert conn.call("GET", "x") is None
        redis.kill()

        def is_refused():
            with weir.connect() as late:
                reply = late.call("GET", "x")
                return isinstance(reply, Error) and "UPSTREAM" in reply

        wait_until(is_refused, "the upstream is away", 15)
    wait_until(lambda: value(metrics(weir), REQUEST + "_count") >= 2, "refusals are counted", 15)
    assert value(metrics(weir), "weir_upstream_inflight_requests", upstream=redis.upstream) == 0
