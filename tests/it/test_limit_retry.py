"""LIMIT calls that Redis has not run, as it is not a master: the calls wait, are sent again, and
are decided once.
"""

import contextlib
import socket
import struct
import time

import pytest
from kit.decisions import decision, fresh, place
from kit.harness import free_port, wait_until
from kit.resp import pipeline
from kit.sentinel import follows
from test_failover_by_server_list import listed, pair, swap

LANES = ["shared", "private"]
LONG = "60s"  # a failover-wait that no test waits for
WAIT = 0.3  # failover-wait of a test that waits for its end, in s
LATE = 4.0
SECTIONS = "[limit own]\nfunnel = 5/h\n[limit down]\nfunnel = 5/h\nwhen-error = down\nwhen-down = deny\n"
CALLS = {
    "LIMIT FUNNEL {} 5/h": 4,
    "LIMIT BUCKET {} 5/h": 4,
    "LIMIT SLIDING {} 5/h": 4,
    "LIMIT SLIDING {} 5/h APPROX": 4,
    "LIMIT FIXED {} 5/h": 4,
    "LIMIT CHECK own {}": 4,
    "LIMIT CHECK own {} AND down {}": 4,
}


def start(farm, redis, *, wait=LONG, **settings):
    return farm.weir(redis, **{"workers": 1, "failover_wait": wait, "sections": SECTIONS, **settings})


def demote(redis):
    """Makes Redis the replica of a missing server."""
    assert redis.call("REPLICAOF", "127.0.0.1", free_port()) == "OK"


def promote(redis):
    assert redis.call("REPLICAOF", "NO", "ONE") == "OK"


def asked(redis):
    """Returns how often Redis was asked to run a script."""
    stats = redis.call("INFO", "commandstats").decode()
    lines = [line for line in stats.splitlines() if line.startswith("cmdstat_evalsha:")]
    return int(lines[0].split("calls=")[1].split(",")[0]) if lines else 0


def wait_until_asked(redis, more=2):
    """Waits until Redis has refused some calls."""
    before = asked(redis)
    wait_until(lambda: asked(redis) >= before + more, "weir has asked again")


@pytest.mark.parametrize("lanes", LANES)
def test_each_waits_for_the_promotion_and_is_decided_once(lanes, farm):
    redis = farm.redis()
    weir = start(farm, redis, lanes=lanes)
    with contextlib.ExitStack() as stack:
        conns = {call: stack.enter_context(weir.connect()) for call in CALLS}
        holder = stack.enter_context(weir.connect())
        keys = {call: fresh() for call in CALLS}
        assert decision(holder.call("LIMIT", "FUNNEL", fresh(), "5/h")).limited == 0
        demote(redis)
        for call, conn in conns.items():
            conn.send(pipeline(call.replace("{}", keys[call])))
        held = fresh()
        holder.send(pipeline(f"LIMIT ACQUIRE {held} 1 60000"))
        wait_until_asked(redis)
        assert not any(conn.buffer for conn in conns.values())
        promote(redis)
        for call, left in CALLS.items():
            reply = conns[call].read()
            assert isinstance(reply, list), f"{call}: {reply}"
            fields = reply[:5]
            assert decision(fields).limited == 0 and decision(fields).remaining == left, call
            again = conns[call].call(*call.replace("{}", keys[call]).split())
            assert decision(again[:5]).remaining == left - 1, f"{call}: the first was charged once"
        assert place(holder.read()).held == 1
        assert place(holder.call("LIMIT", "ACQUIRE", held, 1, 1000)).limited == 1


@pytest.mark.parametrize("lanes", LANES)
def test_when_the_wait_is_over_each_hears_what_redis_says(lanes, farm):
    redis = farm.redis()
    weir = start(farm, redis, wait=f"{WAIT * 1000:.0f}ms", lanes=lanes)
    with weir.connect() as conn:
        assert decision(conn.call("LIMIT", "FUNNEL", fresh(), "5/h")).limited == 0
        demote(redis)
        began = time.monotonic()
        assert conn.call("LIMIT", "CHECK", "own", fresh()).startswith("READONLY")
        assert WAIT * 0.9 <= time.monotonic() - began < WAIT + LATE
        began = time.monotonic()
        assert decision(conn.call("LIMIT", "CHECK", "down", fresh())).limited == 1, "when-error speaks after that"
        assert WAIT * 0.9 <= time.monotonic() - began < WAIT + LATE
        assert conn.call("LIMIT", "RESET", fresh()).startswith("READONLY")
        promote(redis)
        assert decision(conn.call("LIMIT", "FUNNEL", fresh(), "5/h")).limited == 0


def test_without_a_wait_it_is_heard_at_once(farm):
    redis = farm.redis()
    weir = start(farm, redis, wait="0")
    with weir.connect() as conn:
        assert decision(conn.call("LIMIT", "FUNNEL", fresh(), "5/h")).limited == 0
        demote(redis)
        before = asked(redis)
        assert conn.call("LIMIT", "FUNNEL", fresh(), "5/h").startswith("READONLY")
        assert asked(redis) == before + 1


def test_calls_about_one_key_stay_in_order(farm):
    """Calls for one key keep their order, whichever scripts they need, though a call for another
    key goes at once.
    """
    redis = farm.redis()
    weir = start(farm, redis)
    key, other = fresh(), fresh()
    with weir.connect() as conn, weir.connect() as late:
        assert conn.ask(f"LIMIT FUNNEL {key} 5/h", f"LIMIT FUNNEL {key} 5/h")[1][2] == 3
        demote(redis)
        conn.send(pipeline(*[f"LIMIT FUNNEL {key} 5/h"] * 2, f"LIMIT RESET {key}", f"LIMIT FIXED {key} 7/h"))
        wait_until_asked(redis)
        late.send(pipeline(f"LIMIT FIXED {key} 7/h", f"LIMIT FUNNEL {other} 5/h"))
        wait_until_asked(redis)
        promote(redis)
        assert [conn.read()[2] for _ in range(2)] == [2, 1]
        assert conn.read() == 1, "RESET"
        assert conn.read()[2] == 6
        assert late.read()[2] == 5 and late.read()[2] == 4


def test_a_replica_that_serves_no_stale_data(farm):
    """MASTERDOWN, also as the answer to the first script that is loaded."""
    redis = farm.redis("--replica-serve-stale-data", "no")
    weir = start(farm, redis)
    with weir.connect() as conn:
        conn.call("LIMIT", "FUNNEL", fresh(), "5/h")
        demote(redis)
        conn.send(pipeline("LIMIT FUNNEL k 5/h"))
        wait_until(lambda: "MASTERDOWN" in redis.call("INFO", "errorstats").decode(), "it has refused")
        promote(redis)
        assert conn.read() == [0, 5, 4, -1, 720000]


def test_a_wait_is_no_silence(farm):
    """upstream-timeout is shorter than the wait. Redis has answered, so the circuit stays closed.
    """
    redis = farm.redis()
    weir = start(farm, redis, upstream_timeout="200ms", limit_when_down="deny")
    with weir.connect() as conn, weir.connect() as other:
        assert decision(conn.call("LIMIT", "FUNNEL", fresh(), "5/h")).limited == 0
        demote(redis)
        key = fresh()
        conn.send(pipeline(f"LIMIT FUNNEL {key} 5/h"))
        wait_until_asked(redis, 8)
        other.send(pipeline(f"LIMIT SLIDING {key}2 5/h"))
        wait_until_asked(redis, 4)
        promote(redis)
        assert decision(conn.read()).remaining == 4 and decision(other.read()).remaining == 4
    assert "does not answer" not in weir.log()


def test_a_crowd_is_asked_a_few_times_a_second(farm):
    """Each of 2,000 calls waits. weir asks Redis in batches, and each call is decided once."""
    redis = farm.redis()
    weir = start(farm, redis)
    key = fresh()
    with contextlib.ExitStack() as stack:
        conns = [stack.enter_context(weir.connect()) for _ in range(20)]
        conns[0].call("LIMIT", "FUNNEL", fresh(), "5/h")
        demote(redis)
        for conn in conns:
            conn.send(pipeline(*[f"LIMIT FUNNEL {key} 5000/h"] * 100))
        wait_until_asked(redis, 10)
        promote(redis)
        for conn in conns:
            replies = [conn.read() for _ in range(100)]
            assert all(isinstance(reply, list) and reply[0] == 0 for reply in replies), replies
        assert conns[0].call("LIMIT", "FUNNEL", key, "5000/h")[2] == 5000 - 2001


def test_a_client_that_leaves_meanwhile(farm):
    redis = farm.redis()
    weir = start(farm, redis)
    key = fresh()
    with weir.connect() as conn:
        assert place(conn.call("LIMIT", "ACQUIRE", key, 2, 60000)).held == 1
        demote(redis)
        with weir.connect() as gone:
            gone.send(pipeline(f"LIMIT ACQUIRE {key} 2 60000"))
            wait_until_asked(redis)
            gone.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        promote(redis)
        wait_until(lambda: place(conn.call("LIMIT", "ACQUIRE", key, 2, 100)).limited == 0, "its place is free")


def test_a_weir_that_stops_waits_no_longer(farm):
    redis = farm.redis()
    weir = start(farm, redis, drain_timeout="300ms")
    with weir.connect() as conn:
        conn.call("LIMIT", "FUNNEL", fresh(), "5/h")
        demote(redis)
        conn.send(pipeline("LIMIT FUNNEL k 5/h"))
        wait_until_asked(redis)
        weir.stop()
        weir.wait_for_log("drain-timeout is over")


@pytest.mark.parametrize("lanes", LANES)
def test_over_a_failover_of_a_list(lanes, farm):
    """The new master decides a call that the old one refused, once, with the replicated state of
    the key.
    """
    first, second = pair(farm)
    weir = start(farm, listed(second, first), lanes=lanes, env={"WEIR_HURRY": "4"})
    assert follows(weir, first)
    key = fresh()
    with contextlib.ExitStack() as stack:
        conns = [stack.enter_context(weir.connect()) for _ in range(20)]
        assert decision(conns[0].call("LIMIT", "FUNNEL", key, "50/h")).remaining == 49
        wait_until(lambda: second.call("EXISTS", f"limit:{key}") == 1, "it is replicated")
        with first.connect() as admin:
            assert admin.call("CLIENT", "PAUSE", 60000, "WRITE") == "OK"
            for conn in conns:
                conn.send(pipeline(f"LIMIT FUNNEL {key} 50/h"))
            wait_until(lambda: first.waiting()[0] > 0, "the old master has them")
            assert admin.call("REPLICAOF", *second.announced) == "OK"
            assert second.call("REPLICAOF", "NO", "ONE") == "OK"
            assert admin.call("CLIENT", "UNPAUSE") == "OK"
        left = [decision(conn.read()).remaining for conn in conns]
        assert sorted(left) == list(range(29, 49)), "each was charged once"
        assert decision(conns[0].call("LIMIT", "FUNNEL", key, "50/h")).remaining == 28


def test_a_permit_over_a_failover_of_a_list(farm):
    """The new master knows replicated permits of ACQUIRE. A call that waits for a permit goes on.
    """
    first, second = pair(farm)
    weir = start(farm, listed(first, second), env={"WEIR_HURRY": "4"})
    assert follows(weir, first)
    key = fresh()
    with weir.connect() as holder, weir.connect() as waiting:
        held = place(holder.call("LIMIT", "ACQUIRE", key, 1, 600000))
        waiting.send(pipeline(f"LIMIT ACQUIRE {key} 1 600000 WAIT 60000"))
        wait_until(lambda: second.call("EXISTS", f"limit:{key}") == 1, "it is replicated")
        swap(first, second)
        wait_until(lambda: follows(weir, second), "weir follows", 30)
        assert holder.call("LIMIT", "RELEASE", key, held.token) == 1
        assert place(waiting.read()).limited == 0
