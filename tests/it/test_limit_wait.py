"""LIMIT ... WAIT: scheduled times of a queue, windows that are asked again when they can pass, and
clients that close while they wait.
"""

import re
import time

import pytest
from kit.decisions import admitted, clock_us, connections, decide, decision, decisions, fresh, place, script_calls
from kit.harness import wait_until
from kit.limits import OPERATOR, order, plain
from kit.reloading import reload
from kit.resp import Closed, pipeline

FUNNELS = ["FUNNEL", "BUCKET"]
LATE_S = 1.2  # on a busy machine; less than one step of a queue


def stored(redis, key):
    return redis.call("DUMP", f"limit:{key}")


def send_one_by_one(redis, key, conns, command):
    """Sends each call once Redis has decided the one before. Returns when the first was sent.

    The key may have expired when the test looks for it, but the count of scripts that Redis has run
    stays.
    """
    started = time.monotonic()
    for conn in conns:
        before, asked = stored(redis, key), script_calls(redis)

        def is_decided(before=before, asked=asked):
            return stored(redis, key) != before or script_calls(redis) > asked

        conn.send(pipeline(command))
        wait_until(is_decided, "it is decided")
    return started


# ---- queues ----


@pytest.mark.parametrize("name", FUNNELS)
def test_who_waits_is_served_in_order_on_any_weir(two_weirs, redis, name):
    """First come, first served, evenly spaced, none early, at any weir."""
    key, step = fresh(), 0.2
    conns = [two_weirs[i % 2].connect() for i in range(8)]
    started = send_one_by_one(redis, key, conns, f"LIMIT {name} {key} 1/200ms BURST 1 WAIT 5000")
    sent = time.monotonic() - started
    came = []
    for conn in conns:
        assert decision(conn.read())[:4] == (0, 1, 0, -1)
        came.append(time.monotonic() - started)
    assert all(at >= i * step - 0.001 for i, at in enumerate(came)), came
    assert came[-1] <= sent + 7 * step + LATE_S, came
    for conn in conns:
        conn.close()


def test_order_of_turns(weir, redis):
    """When the last client has its reply, the others have theirs."""
    key = fresh()
    conns = [weir.connect() for _ in range(6)]
    send_one_by_one(redis, key, conns, f"LIMIT FUNNEL {key} 1/150ms BURST 1 WAIT 5000")
    assert decision(conns[-1].read()).limited == 0
    for conn in conns[:-1]:
        conn.sock.setblocking(False)
        assert decision(conn.read()).limited == 0
    for conn in conns:
        conn.close()


def test_burst_then_turns(conn):
    key = fresh()
    started = time.monotonic()
    found = [decide(conn, f"LIMIT FUNNEL {key} 1/50ms BURST 3 WAIT 1000") for _ in range(5)]
    assert time.monotonic() - started >= 2 * 0.05
    assert [f.limited for f in found] == [0] * 5


def test_beyond_the_wait(conn, redis):
    """The refusal comes at once if the scheduled time would be too late, and nothing is reserved.
    """
    key = fresh()
    take = f"LIMIT FUNNEL {key} 1/100s BURST 1"
    started = time.monotonic()
    assert decide(conn, f"{take} WAIT 50000").limited == 0
    before = stored(redis, key)
    found = decide(conn, f"{take} WAIT 50000")
    assert found[:3] == (1, 1, 0) and 0 < found.retry <= 50_000, "until it would be given a turn"
    assert 0 < decide(conn, take).retry <= 100_000
    assert stored(redis, key) == before
    assert time.monotonic() - started < 40


def test_without_wait_behind_reserved_turns(weir, redis):
    key = fresh()
    take = f"LIMIT FUNNEL {key} 1/100s BURST 1"
    with weir.connect() as a, weir.connect() as b:
        send_one_by_one(redis, key, [a], take)
        send_one_by_one(redis, key, [b], f"{take} WAIT 1000000")
        assert decision(a.read()).limited == 0
        found = decide(a, take)
        assert found.limited == 1 and 100_000 < found.retry <= 200_000 and 100_000 < found.reset <= 200_000
        assert decide(a, f"LIMIT FUNNEL {key} 1/100s BURST 1 PEEK").limited == 1
        assert not b.is_closed()


def test_several_rates_in_a_queue(conn):
    key = fresh()
    started = time.monotonic()
    found = [decide(conn, f"LIMIT FUNNEL {key} 10/s BURST 10 1/40ms BURST 2 WAIT 1000") for _ in range(5)]
    assert [f.limited for f in found] == [0] * 5 and time.monotonic() - started >= 3 * 0.04


def test_a_pipeline_of_turns(conn):
    """One after the other, as with BLPOP; later commands wait."""
    key = fresh()
    started = time.monotonic()
    replies = conn.ask(*[f"LIMIT FUNNEL {key} 1/30ms BURST 1 WAIT 1000", f"ECHO {key}"] * 4)
    assert time.monotonic() - started >= 3 * 0.03
    assert [decision(reply).limited for reply in replies[::2]] == [0] * 4
    assert replies[1::2] == [key.encode()] * 4


def test_others_go_on(weir):
    key = fresh()
    with weir.connect() as waiting, weir.connect() as other:
        decide(waiting, f"LIMIT FUNNEL {key} 1/100s BURST 1")
        waiting.send(pipeline(f"LIMIT FUNNEL {key} 1/100s BURST 1 WAIT 200000"))
        for i in range(50):
            assert decide(other, f"LIMIT FUNNEL {fresh()} 1/h").limited == 0
        assert decide(other, f"LIMIT FUNNEL {fresh()} 1/10ms BURST 1 WAIT 1000").limited == 0
        assert not waiting.is_closed()


# ---- windows ----


@pytest.mark.parametrize("command", ["SLIDING {} 2/300ms", "SLIDING {} 2/300ms APPROX", "FIXED {} 2/300ms"])
def test_a_window_that_moves_on(conn, redis, command):
    """weir asks again when the call can pass, not at every step: the key is too long for remembered
    denials.
    """
    command = "LIMIT " + command.format(fresh() + "x" * 200)
    asked, started = script_calls(redis), clock_us(redis)
    found = [decide(conn, f"{command} WAIT 5000") for _ in range(3)]
    assert [f.limited for f in found] == [0, 0, 0]
    assert script_calls(redis) - asked <= 5
    if "SLIDING" in command and "APPROX" not in command:
        assert clock_us(redis) - started >= 300_000


def test_many_wait_for_a_window(weir, redis):
    key, asked, started = fresh(), script_calls(redis), clock_us(redis)
    conns = [weir.connect() for _ in range(12)]
    for conn in conns:
        conn.send(pipeline(f"LIMIT SLIDING {key} 4/200ms WAIT 5000"))
    assert admitted([decision(conn.read()) for conn in conns]) == 12
    assert clock_us(redis) - started >= 400_000
    assert script_calls(redis) - asked <= 50
    for conn in conns:
        conn.close()


@pytest.mark.parametrize("command", ["SLIDING {} 1/100d", "SLIDING {} 1/100d APPROX", "FIXED {} 1/100d"])
def test_a_window_that_will_not(conn, redis, command):
    """A call that cannot pass in time is refused at once."""
    command = "LIMIT " + command.format(fresh())
    assert decide(conn, f"{command} WAIT 3000").limited == 0
    started = time.monotonic()
    found = decide(conn, f"{command} WAIT 20000")
    assert found[:3] == (1, 1, 0) and found.retry > 20_000
    assert decide(conn, f"{command} COST 2 WAIT 20000")[:4] == (1, 1, 0, -1)
    assert time.monotonic() - started < 10


def test_wait_of_zero(conn):
    key = fresh()
    assert [d.limited for d in decisions(conn, *[f"LIMIT FUNNEL {key} 1/h WAIT 0"] * 2)] == [0, 1]


# ---- clients that close ----


def test_a_client_leaves_a_queue(weir, redis):
    """The position of a closed client stays used. Other clients keep theirs, and nothing is left.
    """
    key = fresh()
    take = f"LIMIT FUNNEL {key} 1/150ms BURST 1 WAIT 5000"
    with weir.connect() as a, weir.connect() as c:
        b = weir.connect()
        started = send_one_by_one(redis, key, [a, b, c], take)
        b.close()
        assert decision(a.read()).limited == 0
        assert decision(c.read()).limited == 0
        assert time.monotonic() - started >= 2 * 0.15
        wait_until(lambda: redis.call("DBSIZE") == 0, "the key is gone when its debt is paid")
        assert decide(a, "LIMIT FUNNEL " + key + " 1/150ms BURST 1").limited == 0


def test_many_that_wait_and_leave_leave_nothing_behind(weir, redis):
    with weir.connect() as warm:
        decide(warm, f"LIMIT SLIDING {fresh()} 1/10ms")
    open_before = wait_until(lambda: connections(redis), "it answers")
    for _ in range(3):
        conns = [weir.connect() for _ in range(20)]
        for i, conn in enumerate(conns):
            kind = ("FUNNEL {} 1/100ms BURST 1", "SLIDING {} 1/100ms", "FIXED {} 1/100ms", "BUCKET {} 2/100ms")[i % 4]
            conn.send(pipeline(f"LIMIT {kind.format('leaving')} WAIT 60000".replace("leaving", f"leaving{i % 4}")))
        for conn in conns:
            conn.close()
    wait_until(lambda: redis.call("DBSIZE") == 0, "no key outlives its purpose", 30)
    wait_until(lambda: connections(redis) <= open_before + 2, "no connection is left")


@pytest.mark.parametrize("command", ["FUNNEL {} 1/100s BURST 1", "SLIDING {} 1/100s", "ACQUIRE {} 1 100000"])
def test_half_closed_while_it_waits(weir, redis, command):
    """Like a blocked client: weir closes it after all earlier replies."""
    command = "LIMIT " + command.format(fresh())
    with weir.connect() as first, weir.connect() as conn:
        first.call(*command.split())
        before = connections(redis)
        conn.send(pipeline("ECHO a", f"{command} WAIT 200000", "ECHO b"))
        assert conn.read() == b"a"
        if "ACQUIRE" in command:
            wait_until(lambda: connections(redis) > before, "it listens")
        elif "FUNNEL" in command:
            wait_until(lambda: decide(first, command + " PEEK").retry > 100_000, "its turn is reserved")
        conn.sock.shutdown(1)
        said = []
        with pytest.raises(Closed):
            while True:
                said.append(conn.read())
        assert b"b" not in said or len(said) == 2, "what stands behind runs only when it has been answered"
        assert all(plain(reply)[0] == 1 for reply in said if isinstance(reply, list)), "never an early yes"


def test_half_closed_and_served(weir, redis):
    """A client that blocks and is served at once: later commands are answered too, however long
    that takes.
    """
    for i in range(100):
        key = fresh()
        with weir.connect() as conn, redis.connect() as admin:
            admin.call("RPUSH", key, "x")
            conn.send(pipeline(f"BLPOP {key} 1", *["AUTH wrong"] * (i % 3), *["ECHO a"] * 20))
            conn.sock.shutdown(1)
            assert conn.read() == [key.encode(), b"x"]
            for _ in range(i % 3):
                assert str(conn.read()).startswith("ERR AUTH")
            assert [conn.read() for _ in range(20)] == [b"a"] * 20


def test_half_closed_at_once(weir, redis):
    """Before Redis has answered: the call is not admitted before its scheduled time."""
    key = fresh()
    take = f"LIMIT FUNNEL {key} 1/100s BURST 1 WAIT 500000"
    with weir.connect() as conn, redis.connect() as admin:
        assert decide(conn, take).limited == 0
        admin.call("CLIENT", "PAUSE", 20_000, "WRITE")
        try:
            conn.send(pipeline(take))
            wait_until(lambda: b"cmd=evalsha" in admin.call("CLIENT", "LIST") or redis.waiting()[0] > 0, "it is asked")
            conn.sock.shutdown(1)
            with weir.connect() as other:
                assert other.call("PING") == "PONG"
        finally:
            admin.call("CLIENT", "UNPAUSE")
        try:
            found = decision(conn.read())
        except Closed:
            return
        assert found.limited == 1 and found.retry > 0


def test_weir_stops_while_they_wait(farm, redis):
    weir = farm.weir(redis, workers=2)
    conns = [weir.connect() for _ in range(6)]
    key = fresh()
    for i, conn in enumerate(conns):
        kind = (f"FUNNEL {key} 1/100s BURST 1", f"SLIDING {key}s 1/100s", f"ACQUIRE {key}p 1 100000")[i % 3]
        conn.send(pipeline(f"LIMIT {kind}"))
        conn.read()
        conn.send(pipeline(f"LIMIT {kind} WAIT 300000"))
    wait_until(lambda: redis.waiting()[1] > 0, "one listens")
    weir.stop()
    for conn in conns:
        conn.close()


# ---- reloads ----


def change(weir, redis, how):
    """Gives every worker new rules, or a new command table. Neither lets a call pass early."""
    if how == "reload":
        assert reload(weir, "[policy default]\nwrite = 900/s\n")
    elif how == "set":
        assert order(weir, "SET", "default", "write", "1000/s") == "OK"
    elif how == "table":
        for number in control_ids(redis):
            redis.call("CLIENT", "KILL", "ID", number)
        wait_until(lambda: "control connection is back" in weir.log(), "its command table has come anew")
    with weir.connect() as conn:  # every worker has the new rules
        conn.call("LIMIT", "STATUS")


def control_ids(redis):
    """Returns each weir's control connection: it asks for COMMAND, and then for the costs of
    commands.
    """
    lines = redis.call("CLIENT", "LIST").decode().splitlines()
    return [re.match(r"id=(\d+)", line)[1] for line in lines if re.search(r" cmd=(command|info|ping)(\|\S+)? ", line)]


@pytest.mark.parametrize("how", ["reload", "set", "table"])
def test_rules_change_while_they_wait(farm, redis, how):
    """Redis holds the scheduled times: a waiting client neither runs early nor asks again."""
    weir = farm.weir(redis, workers=2, sections="[policy default]\nwrite = 800/s\n" + OPERATOR)
    key = fresh()
    queue = [weir.connect() for _ in range(4)]
    with weir.connect() as holder, weir.connect() as acquirer, weir.connect() as window:
        assert decide(holder, f"LIMIT SLIDING {key}w 1/100s").limited == 0
        window.send(pipeline(f"LIMIT SLIDING {key}w 1/100s WAIT 200000"))
        held = place(holder.call("LIMIT", "ACQUIRE", key + "p", 1, 100_000))
        acquirer.send(pipeline(f"LIMIT ACQUIRE {key}p 1 100000 WAIT 100000"))
        wait_until(lambda: redis.waiting()[1] > 0, "it waits for a place")
        assert decide(holder, f"LIMIT FUNNEL {key} 1/100s BURST 1").limited == 0
        send_one_by_one(redis, key, queue, f"LIMIT FUNNEL {key} 1/100s BURST 1 WAIT 1000000")
        asked = script_calls(redis)
        change(weir, redis, how)
        for conn in [*queue, acquirer, window]:
            assert not conn.is_closed() and not conn.buffer, "none is let through early"
        assert script_calls(redis) <= asked, "nor do they ask again, all at once"
        assert holder.call("LIMIT", "RELEASE", key + "p", held.token) == 1
        assert place(acquirer.read()).limited == 0, "and a place that comes free is still heard of"
    for conn in queue:
        conn.close()


def test_a_turn_after_a_reload(farm, redis):
    """The call runs at its scheduled time."""
    weir = farm.weir(redis, workers=1)
    key = fresh()
    with weir.connect() as a, weir.connect() as b:
        started = send_one_by_one(redis, key, [a, b], f"LIMIT FUNNEL {key} 1/600ms BURST 1 WAIT 60000")
        assert reload(weir, "")
        assert decision(a.read()).limited == 0 and decision(b.read()).limited == 0
        assert 0.6 - 0.001 <= time.monotonic() - started <= 0.6 + 5
