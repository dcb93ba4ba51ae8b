"""LIMIT commands that Redis decides, among other commands: order of execution and of replies,
CLIENT REPLY OFF, transactions, policies.
"""

import pytest
from kit.decisions import NOAUTH, Decision, admitted, decide, decision, decisions, fresh, script_calls, speaking
from kit.harness import wait_until
from kit.limits import EXECABORT, OPERATOR, limit_of, order, refusal, tallies
from kit.resp import Closed, Error, pipeline
from kit.server import at_least


# ---- one after the other ----


def test_between_other_commands(conn):
    """A command sees the effect of a LIMIT command before it, and the other way round."""
    key = fresh()
    name = f"limit:{key}"
    replies = conn.ask(
        f"EXISTS {name}", f"LIMIT FUNNEL {key} 1/h", f"EXISTS {name}", f"LIMIT FUNNEL {key} 1/h", f"DEL {name}",
        f"LIMIT RESET {key}", f"LIMIT SLIDING {key} 2/h", f"ZCARD {name}", f"LIMIT SLIDING {key} 2/h COST 2", f"ZCARD {name}",
        f"LIMIT SLIDING {key} 2/h", f"ZCARD {name}", "ECHO end",
    )  # fmt: skip
    assert [decision(replies[i]).limited for i in (1, 3, 6, 8, 10)] == [0, 1, 0, 1, 0]
    assert [replies[i] for i in (0, 2, 4, 5, 7, 9, 11, 12)] == [0, 1, 1, 0, 1, 1, 2, b"end"]


def test_a_long_run(conn):
    key = fresh()
    commands, wanted = [], []
    for i in range(150):
        commands += [f"SET {key} {i}", f"LIMIT FUNNEL {key} 100/d COST {i % 3 + 1}", f"GET {key}", "LIMIT FUNNEL"]
        wanted += ["OK", None, b"%d" % i, Error("ERR wrong number of arguments for 'limit|funnel' command")]
    replies = conn.ask(*commands)
    assert [None if i % 4 == 1 else reply for i, reply in enumerate(replies)] == wanted
    found = [decision(reply) for reply in replies[1::4]]
    taken = sum(i % 3 + 1 for i, f in enumerate(found) if f.limited == 0)
    assert taken == 100 and [f.remaining for f in found[:3]] == [99, 97, 94]


def test_of_other_commands_on_one_key(conn):
    """Different calls on the same key run in order, though equal calls travel together."""
    key = fresh()
    one, two, peek, reset = f"LIMIT FUNNEL {key} 1/d", f"LIMIT FUNNEL {key} 2/d", f"LIMIT FUNNEL {key} 2/d PEEK", f"LIMIT RESET {key}"
    replies = conn.ask(one, reset, one, two, two, reset, peek, two, peek, two, peek, two, reset, reset)
    got = [r if isinstance(r, int) else (decision(r).limited, decision(r).remaining) for r in replies]
    # 1 of 1/d is a day, of 2/d half a day.
    assert got == [(0, 0), 1, (0, 0), (1, 0), (1, 0), 1, (0, 2), (0, 1), (0, 1), (0, 0), (1, 0), (1, 0), 1, 0]
    other = fresh()
    replies = conn.ask(f"LIMIT SLIDING {other} 1/d", f"LIMIT FUNNEL {other} 1/d", f"LIMIT RESET {key} {other}",
                       f"LIMIT FUNNEL {other} 1/d", f"LIMIT SLIDING {other} 1/d", f"LIMIT ACQUIRE {key} 1 9000",
                       f"LIMIT FUNNEL {key} 1/d", f"LIMIT RESET {key}", f"LIMIT FUNNEL {key} 1/d")  # fmt: skip
    kinds = [r.split()[0] if isinstance(r, Error) else r if isinstance(r, int) else "ok" for r in replies]
    assert kinds == ["ok", "WRONGTYPE", 1, "ok", "WRONGTYPE", "ok", "WRONGTYPE", 1, "ok"]


def test_reset_is_heard_behind_it(conn):
    """In a pipeline no remembered denial outlives a RESET that comes before the call."""
    key = fresh()
    take = f"LIMIT FUNNEL {key} 1/d"
    assert [d.limited for d in decisions(conn, take, take)] == [0, 1]
    replies = conn.ask(take, f"LIMIT RESET {key}", take, take)
    assert [r if isinstance(r, int) else decision(r).limited for r in replies] == [1, 1, 0, 1]


def test_equal_seconds_of_other_rates(conn):
    """Twice the cost at half the interval is the same time in the script, but another limit in the
    reply.
    """
    key = fresh()
    found = decisions(conn, f"LIMIT FUNNEL {key} 60/60m BURST 10 COST 2", f"LIMIT FUNNEL {key} 30/60m BURST 5",
                      f"LIMIT FUNNEL {key} 60/60m BURST 10 COST 2")  # fmt: skip
    assert [f[:3] for f in found] == [(0, 10, 8), (0, 5, 3), (0, 10, 6)], "each owes on its own"


def test_errors_in_a_run(conn):
    """Replies of weir's own wait for the replies of Redis to earlier calls."""
    key = fresh()
    for wrong, text in ((f"LIMIT FUNNEL {key} 1/h COST", "ERR syntax error"), (f"LIMIT FUNNEL {key} zero/h", "ERR "),
                        ("LIMIT FUNNEL", "ERR wrong"), ("LIMIT BAD", "ERR unknown"), ("LIMIT CHECK no key", "ERR no limit"),
                        ("CL.THROTTLE x", "ERR wrong")):  # fmt: skip
        replies = conn.ask(f"LIMIT FUNNEL {key} 9/h", wrong, wrong, f"LIMIT FUNNEL {key} 9/h", wrong, "PING")
        assert [isinstance(r, Error) and r.startswith(text) for r in replies] == [False, True, True, False, True, False], wrong
        assert replies[5] == "PONG"


def test_a_broken_request_behind(weir):
    with weir.connect() as conn:
        conn.send(pipeline(f"LIMIT FUNNEL {fresh()} 9/h") + b"*1\r\n$x\r\n")
        assert decision(conn.read()).limited == 0
        assert conn.read() == Error("ERR Protocol error: invalid bulk length")
        with pytest.raises(Closed):
            conn.read()


# ---- CLIENT REPLY, and closing ----


def test_decisions_without_replies_are_made_in_order(conn, redis):
    keys = [fresh() for _ in range(4)]
    first, second, third, fourth = (f"LIMIT FUNNEL {key} 9/h" for key in keys)
    conn.send(pipeline("CLIENT REPLY OFF", first, first, "LIMIT FUNNEL", "SET a 1", first, "CLIENT REPLY ON"))
    assert conn.read() == "OK"
    assert decide(conn, first).remaining == 5
    conn.send(pipeline("CLIENT REPLY SKIP", second, second, "CLIENT REPLY SKIP", "LIMIT FUNNEL x", second, "ECHO x"))
    assert [decision(conn.read()).remaining for _ in range(2)] == [7, 6]
    assert conn.read() == b"x"
    conn.send(pipeline(third, "CLIENT REPLY SKIP", third, third, "CLIENT REPLY OFF", third, "CLIENT REPLY ON", third))
    assert [decision(conn.read()).remaining for _ in range(2)] == [8, 6]
    assert conn.read() == "OK"
    assert decision(conn.read()).remaining == 4
    conn.send(pipeline("CLIENT REPLY OFF", fourth))
    wait_until(lambda: redis.call("EXISTS", f"limit:{keys[3]}"), "it is decided")


def test_status_of_a_subscriber(weir):
    """An earlier command of the same pipeline ends or begins the subscription."""
    denied = Error("ERR Can't execute 'limit|status'")
    with weir.connect() as conn:
        for _ in range(20):
            assert conn.call("SUBSCRIBE", "ch") == [b"subscribe", b"ch", 1]
            conn.send(pipeline("UNSUBSCRIBE ch", "LIMIT STATUS", "SUBSCRIBE ch", "LIMIT STATUS", "UNSUBSCRIBE ch"))
            assert conn.read() == [b"unsubscribe", b"ch", 0]
            assert b"subject" in conn.read()
            assert conn.read() == [b"subscribe", b"ch", 1]
            assert str(conn.read()).startswith(str(denied))
            assert conn.read() == [b"unsubscribe", b"ch", 0]


@pytest.mark.parametrize("end", ["QUIT", "half-close"])
def test_the_end_behind(weir, protocol, end):
    key = fresh()
    for behind in ([], ["ECHO x"], [f"LIMIT FUNNEL {key} 0/h"]):
        with speaking(weir.connect(), protocol) as conn:
            commands = [f"LIMIT FUNNEL {key} 100/d"] * 5 + ["ECHO a", f"LIMIT SLIDING {fresh()} 1/h"] + behind
            conn.send(pipeline(*commands, *[end] * (end == "QUIT")))
            if end != "QUIT":
                conn.sock.shutdown(1)
            assert admitted([decision(conn.read()) for _ in range(5)]) == 5
            assert conn.read() == b"a"
            assert decision(conn.read()).limited == 0
            for _ in behind:
                conn.read()
            if end == "QUIT":
                assert conn.read() == "OK"
            with pytest.raises(Closed):
                conn.read()


def test_requests_in_pieces(conn):
    key = fresh()
    data = pipeline(f"LIMIT FUNNEL {key} 9/h", "ECHO a", f"LIMIT FUNNEL {key} 9/h", f"LIMIT RESET {key}")
    for i in range(0, len(data), 7):
        conn.send(data[i : i + 7])
    assert decision(conn.read()).remaining == 8
    assert conn.read() == b"a"
    assert decision(conn.read()).remaining == 7
    assert conn.read() == 1


# ---- transactions, subscribers ----

ALL = ["LIMIT FUNNEL {} 1/h", "LIMIT CHECK x {}", "LIMIT ACQUIRE {} 1 1000", "LIMIT RESET {}", "CL.THROTTLE {} 1 1 1",
       "LIMIT FUNNEL {}", "LIMIT FUNNEL {} 1/h COST"]  # fmt: skip


def test_no_decision_is_made_in_multi(conn, redis):
    for command in ALL:
        key = fresh()
        redis.call("SET", "k", 0)
        asked = script_calls(redis)
        replies = conn.ask("MULTI", "SET k 1", command.format(key), "SET k 2", "EXEC", "GET k", "MULTI", "INCR k", "EXEC")
        assert replies[:2] == ["OK", "QUEUED"] and isinstance(replies[2], Error), command
        assert replies[3:] == ["QUEUED", EXECABORT, b"0", "OK", "QUEUED", [1]], command
        assert script_calls(redis) == asked and redis.call("EXISTS", f"limit:{key}", key) == 0
        assert conn.ask("MULTI", command.format(key), "DISCARD")[2] == "OK"
    assert decide(conn, f"LIMIT FUNNEL {fresh()} 1/h").limited == 0


def test_watch_is_kept(conn, redis):
    """LIMIT commands between WATCH and MULTI do not end the WATCH."""
    redis.call("SET", "w", 1)
    replies = conn.ask("WATCH w", f"LIMIT FUNNEL {fresh()} 1/h", "MULTI", "GET w", "EXEC")
    assert replies[4] == [b"1"]
    conn.ask("WATCH w", f"LIMIT FUNNEL {fresh()} 1/h")
    redis.call("SET", "w", 2)
    assert conn.ask("MULTI", "GET w", "EXEC")[2] is None


def test_decisions_while_subscribed_are_refused_in_resp2_only(conn, redis, protocol):
    channel, key = fresh("channel"), fresh()
    with speaking(redis.connect(), protocol) as direct:
        direct.call("SUBSCRIBE", channel)
        wanted = direct.call("CONFIG", "GET", "save")
    conn.call("SUBSCRIBE", channel)
    for command, name in ((f"LIMIT FUNNEL {key} 1/h", "limit|funnel"), (f"LIMIT ACQUIRE {key}2 1 1000", "limit|acquire"),
                          (f"CL.THROTTLE {key}3 1 1 1", "cl.throttle")):  # fmt: skip
        reply = conn.call(*command.split())
        if protocol == 2:
            assert reply == Error(wanted.replace("config|get" if at_least(7, 0) else "config", name))
        else:
            assert not isinstance(reply, Error)
    redis.call("PUBLISH", channel, "x")
    assert conn.read() == [b"message", channel.encode(), b"x"]
    assert conn.call("UNSUBSCRIBE", channel) == [b"unsubscribe", channel.encode(), 0]
    assert decide(conn, f"LIMIT FUNNEL {key}4 1/h").limited == 0
    assert redis.call("EXISTS", f"limit:{key}") == (protocol == 3)


def test_behind_what_blocks(conn, redis):
    key, l = fresh(), fresh("list")
    conn.send(pipeline(f"LIMIT FUNNEL {key} 9/h", f"BLPOP {l} 0", f"LIMIT FUNNEL {key} 9/h", "ECHO x"))
    assert decision(conn.read()).remaining == 8
    wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
    assert redis.call("GET", f"limit:{key}") is not None
    redis.call("RPUSH", l, "v")
    assert conn.read() == [l.encode(), b"v"]
    assert decision(conn.read()).remaining == 7
    assert conn.read() == b"x"


# ---- rights ----


def test_who_has_not_logged_in_gets_no_decision(farm):
    redis = farm.redis(password="secret")
    secret = redis.folder / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    for lanes in ("shared", "private"):
        weir = farm.weir(redis, workers=1, lanes=lanes, upstream_password_file=secret)
        with weir.connect() as conn:
            for command in [*ALL, "LIMIT FUNNEL"]:
                assert conn.call(*command.format("k").split()) == NOAUTH, command
            assert conn.ask("LIMIT FUNNEL k 1/h", "PING", "AUTH secret") == [NOAUTH, NOAUTH, "OK"]
            key = fresh()
            assert [d.limited for d in decisions(conn, *[f"LIMIT FUNNEL {key} 1/h"] * 2)] == [0, 1]
            assert conn.call("CL.THROTTLE", fresh(), 0, 1, 99)[0] == 0


def test_weirs_own_user(farm, redis):
    """A client without rights in Redis can be limited: scripts run as weir's own user."""
    redis.call("ACL", "SETUSER", "poor", "on", ">pw", "resetkeys", "-@all", "+ping")
    try:
        weir = farm.weir(redis, workers=2)
        with weir.connect() as conn:
            assert conn.call("AUTH", "poor", "pw") == "OK"
            assert conn.call("GET", "k").startswith("NOPERM")
            assert decide(conn, f"LIMIT FUNNEL {fresh()} 1/h").limited == 0
    finally:
        redis.call("ACL", "DELUSER", "poor")


# ---- policies ----


@pytest.fixture(params=[(1, "shared"), (2, "private")], ids=["1-shared", "2-private"])
def limited(request, farm, redis):
    workers, lanes = request.param
    return lambda sections: farm.weir(redis, sections=sections + OPERATOR, workers=workers, lanes=lanes)


def test_a_policy_refuses_limit_commands_too(limited, redis, protocol):
    weir = limited("[policy default]\n@limit = 3/d\ncmd.limit|fixed = deny\ncmd.cl.throttle = 1/d\n")
    with speaking(weir.connect(), protocol) as conn:
        key = fresh()
        asked = script_calls(redis)
        replies = conn.ask(f"LIMIT FUNNEL {key} 9/h", f"LIMIT FIXED {key} 9/h", f"LIMIT FUNNEL {key} 9/h", "ECHO a",
                           f"CL.THROTTLE {key}c 9 9 9", f"CL.THROTTLE {key}c 9 9 9", f"LIMIT FUNNEL {key} 9/h", "ECHO b")  # fmt: skip
        assert [decision(replies[i]).remaining for i in (0, 2)] == [8, 7]
        assert replies[1] == Error("NOPERM denied by policy default")
        assert replies[4][0] == 0
        assert {limit_of(reply) for reply in replies[5:7]} <= {"default/@limit", "default/cmd.cl.throttle"}
        assert (replies[3], replies[7]) == (b"a", b"b")
        assert script_calls(redis) - asked <= 3
        assert dict((row[0], row[1]) for row in tallies(weir))["default/@limit"] == 3


def test_policy_refuses_in_a_run(limited):
    """The refusal comes at its position among the replies. A refused call is not decided."""
    weir = limited("[policy default]\ncmd.limit|funnel = 5/d\n")
    with weir.connect() as conn:
        key = fresh()
        replies = conn.ask(*[f"LIMIT FUNNEL {key} 9/h", f"LIMIT BUCKET {key}b 9/h"] * 8, "ECHO x")
        assert [decision(reply).remaining for reply in replies[1:16:2]] == [8, 7, 6, 5, 4, 3, 2, 1]
        assert [decision(reply).remaining for reply in replies[0:10:2]] == [8, 7, 6, 5, 4]
        assert all(refusal(reply)[0] == "default/cmd.limit|funnel" for reply in replies[10:16:2])
        assert replies[16] == b"x"


def test_a_policy_delays_limit_commands_too(limited, redis):
    weir = limited("[policy default]\n@limit = 50/s over delay 5s\n")
    with weir.connect() as conn:
        key = fresh()
        before = redis.call("TIME")
        found = decisions(conn, *[f"LIMIT FUNNEL {key} 9/h"] * 6)
        after = redis.call("TIME")
        assert [f.remaining for f in found] == [8, 7, 6, 5, 4, 3]
        passed_us = (int(after[0]) - int(before[0])) * 1_000_000 + int(after[1]) - int(before[1])
        assert passed_us >= 99_000, "five times 20 ms"


def test_policy_that_closes(limited):
    weir = limited("[policy default]\n@limit = 2/d over close\n")
    with weir.connect() as conn:
        key = fresh()
        conn.send(pipeline(*[f"LIMIT FUNNEL {key} 9/h"] * 4))
        assert [decision(conn.read()).remaining for _ in range(2)] == [8, 7]
        assert limit_of(conn.read()) == "default/@limit"
        with pytest.raises(Closed):
            conn.read()


def test_shadow_lets_them_pass(limited):
    weir = limited("[policy default]\n@limit = 2/d over shadow\n")
    with weir.connect() as conn:
        found = decisions(conn, *[f"LIMIT FUNNEL {fresh()} 1/h"] * 4)
        assert all(type(f) is Decision for f in found)
        assert tallies(weir)[0][4] == 2
        assert order(weir, "MODE") == b"enforce"
