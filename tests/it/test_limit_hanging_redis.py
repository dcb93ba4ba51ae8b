"""LIMIT while Redis hangs: every call is answered within upstream-timeout, according to when-down.
"""

import contextlib
import re
import threading
import time

import pytest
from kit.decisions import Decision, decision, fresh, place
from kit.harness import MODES, MODE_IDS, stopped, wait_until
from kit.resp import Error, pipeline

PATIENCE = 0.5  # upstream-timeout, in seconds
GRACE = 0.1  # the promised time beyond upstream-timeout
SANITIZED = 0.2  # added to GRACE: a sanitizer's build beside other tests
WAIT = 0.2
BACK = 1.0  # weir finds a Redis that has returned within this time
TIMEOUT = Error("UPSTREAM timeout")

SECTIONS = """
[limit own]
funnel = 1/h burst 2000
when-down = local
[limit yes]
fixed = 9/100d
when-down = allow
[limit no]
sliding = 9/100d
when-down = deny
[limit none]
bucket = 9/h
"""
ERRORS = [
    "LIMIT FUNNEL {} 9/h",
    "LIMIT BUCKET {} 9/h",
    "LIMIT SLIDING {} 9/h",
    "LIMIT SLIDING {} 9/h APPROX",
    "LIMIT FIXED {} 9/h",
    "LIMIT THROTTLE {} 9 9 1000",
    "LIMIT FUNNEL {} 9/h PEEK",
    "LIMIT FUNNEL {} 9/h WAIT 200",
    "LIMIT ALL FUNNEL {} 9/h AND FIXED b 9/h",
    "LIMIT CHECK none {}",
    "LIMIT CHECK own {} AND none {}",
    "LIMIT ACQUIRE {} 1 9000",
    "LIMIT ACQUIRE {} 1 9000 WAIT 200",
    "LIMIT RENEW {} t 9000",
    "LIMIT RELEASE {} t",
    "LIMIT RESET {}",
    "LIMIT BAN FUNNEL {} 9s",
    "CL.THROTTLE {} 9 9 60",
]
DECIDED = {"LIMIT CHECK own {}": 0, "LIMIT CHECK yes {}": 0, "LIMIT CHECK no {}": 1, "LIMIT CHECK own {} WAIT 200": 0,
           "LIMIT CHECK own {} PEEK": 0, "LIMIT CHECK own {} AND yes {}": 0, "LIMIT CHECK own {} AND no {}": 1}  # fmt: skip


def start(farm, redis, mode, **settings):
    workers, lanes = mode
    return farm.weir(redis, workers=workers, lanes=lanes, sections=SECTIONS, upstream_timeout="500ms", **settings)


def words(command):
    return command.replace("{}", fresh()).split()


def timed(conn, command):
    """Returns the reply, which has come in time."""
    granted = WAIT if "WAIT" in command else 0
    began = time.monotonic()
    reply = conn.call(*words(command))
    took = time.monotonic() - began
    assert took < PATIENCE + GRACE + SANITIZED + granted, (command, took, reply)
    return reply


def is_right(command, reply):
    wanted = DECIDED.get(command)
    if wanted is None:
        return reply in (TIMEOUT, Error("UPSTREAM unavailable"))
    return isinstance(reply, list) and reply[0] == wanted


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
@pytest.mark.parametrize("mode", MODES, ids=MODE_IDS)
def test_every_call_is_answered_in_time(farm, mode, warm):
    """The first call, later calls while weir reconnects again and again, and calls of new clients.
    """
    redis = farm.redis()
    weir = start(farm, redis, mode)
    commands = ERRORS + list(DECIDED)
    conns = [weir.connect() for _ in range(4)]
    for i, conn in enumerate(conns):
        assert conn.call("PING") == "PONG"
        if warm:
            assert type(decision(conn.call(*words(commands[i])))) is Decision
    with stopped(redis):
        began, n = time.monotonic(), 0
        while n < 2 * len(commands) or time.monotonic() - began < 3 * PATIENCE:
            command = commands[n % len(commands)]
            reply = timed(conns[n % len(conns)], command)
            assert is_right(command, reply), (command, reply)
            n += 1
        with weir.connect() as newcomer:
            assert is_right(commands[-1], timed(newcomer, commands[-1]))
    for conn in conns:
        wait_until(lambda: type(decision(conn.call(*words("LIMIT FUNNEL {} 9/h")))) is Decision, "it decides again")
        conn.close()


@pytest.mark.parametrize("command", ERRORS + list(DECIDED))
def test_the_first_call_of_a_hang_is_answered_in_time(farm, redis, command):
    weir = start(farm, redis, (1, "shared"))
    with weir.connect() as conn:
        conn.call(*words("LIMIT FUNNEL {} 9/h"))
        with stopped(redis):
            assert is_right(command, timed(conn, command))


def test_calls_in_one_pipeline_are_answered_together(farm):
    redis = farm.redis()
    weir = start(farm, redis, (1, "shared"))
    with weir.connect() as conn:
        conn.call(*words("LIMIT FUNNEL {} 9/h"))
        with stopped(redis):
            began = time.monotonic()
            conn.send(pipeline(*["LIMIT CHECK own k"] * 1000, "LIMIT FIXED k 1/h"))
            found = [decision(conn.read()) for _ in range(1000)]
            assert [f.remaining for f in found] == list(range(1999, 999, -1))
            assert conn.read() == TIMEOUT
            assert time.monotonic() - began < PATIENCE + GRACE + SANITIZED


def test_others_that_send_meanwhile_hold_no_call_up(farm):
    """Clients that send to Redis, are closed and reconnect."""
    redis = farm.redis()
    weir = start(farm, redis, (1, "shared"))
    over = threading.Event()

    def hammer():
        while not over.is_set():
            with contextlib.suppress(Exception), weir.connect(timeout=1) as conn:
                while not over.is_set():
                    conn.ask(*["GET k"] * 20)

    crowd = [threading.Thread(target=hammer) for _ in range(4)]
    for one in crowd:
        one.start()
    try:
        with weir.connect() as conn:
            conn.call(*words("LIMIT FUNNEL {} 9/h"))
            with stopped(redis):
                began = time.monotonic()
                while time.monotonic() - began < 4 * PATIENCE:
                    for command in ("LIMIT CHECK own {}", "LIMIT FIXED {} 9/h"):
                        assert is_right(command, timed(conn, command))
            wait_until(lambda: type(decision(conn.call(*words("LIMIT FUNNEL {} 9/h")))) is Decision, "it goes on")
    finally:
        over.set()
        for one in crowd:
            one.join()


def test_a_hang_that_ends_in_time_is_none(farm):
    """The answer comes late, and is Redis' own."""
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, sections=SECTIONS, upstream_timeout="60s")
    with weir.connect() as conn:
        conn.call(*words("LIMIT FUNNEL {} 9/h"))
        with stopped(redis):
            conn.send(pipeline("LIMIT CHECK no k"))
        assert decision(conn.read()).limited == 0


def test_hang_after_hang(farm):
    """Redis decides between two hangs."""
    redis = farm.redis()
    weir = start(farm, redis, (2, "shared"))
    with weir.connect() as conn:
        for _ in range(2):
            wait_until(lambda: decision(conn.call("LIMIT", "CHECK", "no", fresh())).limited == 0, "it decides")
            with stopped(redis):
                assert timed(conn, "LIMIT CHECK no {}")[0] == 1
                assert timed(conn, "LIMIT CHECK own {}")[0] == 0


def script_conns(redis, last):
    """Returns how many of weir's script connections have sent this command last."""
    return len(re.findall(rf"cmd={last}", redis.call("CLIENT", "LIST").decode()))


@pytest.mark.parametrize("sees_other_calls", [False, True], ids=["limit", "get"])
def test_weir_finds_redis_again_though_no_call_asks(farm, sees_other_calls):
    """weir itself finds out that Redis is back. Redis decides the next calls in each worker, though
    no call has asked before.
    """
    redis = farm.redis()
    sections = "[limit a]\nfunnel = 5/h\nwhen-down = allow\n"
    weir = farm.weir(redis, workers=4, sections=sections, upstream_timeout="500ms")
    conns = [weir.connect() for _ in range(16)]
    for conn in conns:
        conn.call("LIMIT", "CHECK", "a", "before")
    workers = script_conns(redis, "evalsha")
    assert workers > 1
    with stopped(redis), weir.connect() as other:
        for conn in conns:
            conn.send(pipeline("LIMIT CHECK a meanwhile"))
        assert all(conn.read()[0] == 0 for conn in conns)
        if sees_other_calls:
            other.send(pipeline("GET k"))
            weir.wait_for_log("is away")
    wait_until(lambda: script_conns(redis, "script") == workers, "each worker probes", BACK + 5 * SANITIZED)
    for conn in conns:
        wait_until(lambda: conn.call("GET", "k") is None, "the worker has had its replies")
    for conn in conns:
        conn.send(pipeline(*["LIMIT CHECK a k"] * 20))
    passed = sum(conn.read()[0] == 0 for conn in conns for _ in range(20))
    assert passed == 5
    for conn in conns:
        conn.close()


def test_a_redis_that_refuses_the_login_after_a_hang_is_not_away(farm, tmp_path):
    """A refusal is an answer: no call passes by when-down."""
    redis = farm.redis("--user", "scripts", "on", ">right", "~*", "&*", "+@all")
    password = tmp_path / "password"
    password.write_text("right")
    password.chmod(0o600)
    weir = start(farm, redis, (1, "shared"), limit_when_down="allow", upstream_user="scripts",
                 upstream_password_file=password)  # fmt: skip
    with weir.connect() as conn:
        conn.call(*words("LIMIT FUNNEL {} 9/h"))
        assert redis.call("ACL", "SETUSER", "scripts", "resetpass", ">wrong") == "OK"
        with stopped(redis):
            assert timed(conn, "LIMIT FUNNEL {} 9/h")[0] == 0
        wait_until(lambda: isinstance(conn.call(*words("LIMIT FUNNEL {} 9/h")), Error), "Redis has refused it")
        began = time.monotonic()
        while time.monotonic() - began < 3 * PATIENCE:
            assert isinstance(timed(conn, "LIMIT FUNNEL {} 9/h"), Error)


def test_a_holder_that_waits_hears_of_the_hang(farm):
    redis = farm.redis()
    weir = start(farm, redis, (1, "shared"))
    with weir.connect() as holder, weir.connect() as conn:
        assert place(holder.call("LIMIT", "ACQUIRE", "k", 1, 100_000)).limited == 0
        conn.send(pipeline("LIMIT ACQUIRE k 1 100000 WAIT 300"))
        wait_until(lambda: redis.waiting()[1] > 0, "it listens")
        with stopped(redis):
            began = time.monotonic()
            assert conn.read() in (TIMEOUT, Error("UPSTREAM unavailable"))
            assert time.monotonic() - began < 0.3 + PATIENCE + GRACE + SANITIZED


def test_a_redis_that_is_busy_is_not_away(farm):
    """Also after a hang: a BUSY answer lets no call pass."""
    redis = farm.redis("--lua-time-limit", "1500")
    weir = start(farm, redis, (1, "shared"), limit_when_down="allow")
    with weir.connect() as conn, redis.connect() as culprit, redis.connect() as admin:
        conn.call(*words("LIMIT FUNNEL {} 9/h"))
        culprit.send(pipeline(("EVAL", "while true do end", 0)))
        assert timed(conn, "LIMIT FUNNEL {} 9/h")[0] == 0
        wait_until(lambda: admin.call("PING") != "PONG", "Redis is busy")
        wait_until(lambda: str(conn.call(*words("LIMIT FUNNEL {} 9/h"))).startswith("BUSY"), "it says so")
        for _ in range(20):
            assert str(timed(conn, "LIMIT FUNNEL {} 9/h")).startswith("BUSY")
        assert admin.call("SCRIPT", "KILL") == "OK"
        culprit.read()
        wait_until(lambda: type(decision(conn.call(*words("LIMIT FUNNEL {} 9/h")))) is Decision, "it decides")
