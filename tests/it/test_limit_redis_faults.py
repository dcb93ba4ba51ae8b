"""LIMIT commands when Redis or the way to Redis fails: the client gets the error itself, or the
answer of limit-when-down. No call passes silently.
"""

import threading
import time

import pytest
from kit.decisions import UNAVAILABLE, Decision, admitted, decide, decision, decisions, fresh, place
from kit.fake import Fake
from kit.harness import MODES, MODE_IDS, TOLD_AT_ONCE, free_port, wait_until
from kit.resp import Closed, Error, pipeline
from kit.server import at_least, options

DECISIONS = ["FUNNEL {} 1/h", "BUCKET {} 1/h", "SLIDING {} 1/h", "SLIDING {} 1/h APPROX", "FIXED {} 1/100d", "THROTTLE {} 0 1 1000"]
PLACES = ["ACQUIRE {} 1 9000", "RENEW {} t 9000", "RELEASE {} t"]
EVERY = DECISIONS + PLACES + ["RESET {}"]
WAITS = ["FUNNEL {} 1/h WAIT 60000", "SLIDING {} 1/h WAIT 60000", "ACQUIRE {} 1 9000 WAIT 60000"]


@pytest.fixture(params=MODES, ids=MODE_IDS)
def mode(request):
    return request.param


def start(farm, redis, mode, **settings):
    return farm.weir(redis, workers=mode[0], lanes=mode[1], **settings)


def limit(conn, command):
    return conn.call(*("LIMIT " + command.format(fresh())).split())


# ---- flushed scripts ----


class Flusher(threading.Thread):
    """Flushes scripts again and again."""

    def __init__(self, redis):
        super().__init__()
        self.conn, self.over, self.times = redis.connect(), False, 0

    def run(self):
        while not self.over:
            self.conn.call("SCRIPT", "FLUSH")
            self.times += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.over = True
        self.join()
        self.conn.close()


@pytest.mark.parametrize("command", ["FUNNEL {} 600/d", "SLIDING {} 600/100d", "SLIDING {} 600/100d APPROX", "FIXED {} 600/100d"])
def test_script_flush_loses_no_decision(farm, redis, shared_weirs, command):
    """No decision is lost or made twice, and no client gets an error."""
    command = "LIMIT " + command.format(fresh())
    conns = [shared_weirs(((1, "shared"), (2, "private"))[i % 2]).connect() for i in range(20)]
    found = []
    with Flusher(redis) as flusher:
        for _ in range(40):
            for conn in conns:
                conn.send(pipeline(command))
            found += [decision(conn.read()) for conn in conns]
        wait_until(lambda: flusher.times > 20, "it flushes")
    assert admitted(found) == 600
    assert sorted(f.remaining for f in found if not f.limited) == list(range(600))
    assert [f.limited for f in found[:580]].count(1) == 0
    for conn in conns:
        conn.close()


def test_script_flush_and_places(redis, weir):
    """No client acquires twice."""
    with Flusher(redis), weir.connect() as conn:
        for _ in range(40):
            key = fresh()
            found = [place(reply) for reply in conn.ask(*[f"LIMIT ACQUIRE {key} 3 9000"] * 5)]
            assert [f.limited for f in found] == [0, 0, 0, 1, 1]
            assert redis.call("ZCARD", f"limit:{key}") == 3
            assert conn.ask(*[("LIMIT", "RELEASE", key, f.token) for f in found[:3]]) == [1, 1, 1]


def test_noscript_is_repaired_once(farm, redis):
    """The retry carries the script itself, which Redis then knows."""
    weir = farm.weir(redis, workers=1)
    with weir.connect() as conn:
        decide(conn, f"LIMIT FUNNEL {fresh()} 1/h")
        redis.call("SCRIPT", "FLUSH")
        redis.call("CONFIG", "RESETSTAT")
        for _ in range(5):
            assert decide(conn, f"LIMIT FUNNEL {fresh()} 1/h").limited == 0
        stats = redis.call("INFO", "commandstats").decode()
        assert "cmdstat_eval:calls=1," in stats and "cmdstat_evalsha:calls=5," in stats


# ---- Redis refuses ----


def test_a_redis_without_memory_is_told_of(farm, mode):
    redis = farm.redis()
    weir = start(farm, redis, mode, limit_when_down="allow")
    with weir.connect() as conn:
        key = fresh()
        assert decide(conn, f"LIMIT FUNNEL {key} 9/h").limited == 0
        redis.call("CONFIG", "SET", "maxmemory", 1)
        for command in DECISIONS + PLACES[:1] + WAITS:
            assert str(limit(conn, command)).startswith("OOM"), command
        assert redis.call("DBSIZE") == 1
        redis.call("CONFIG", "SET", "maxmemory", 0)
        assert decide(conn, f"LIMIT FUNNEL {key} 9/h").remaining == 7


def test_a_read_only_redis_is_told_of(farm, mode):
    redis = farm.redis("--replicaof", "127.0.0.1", str(free_port()))
    weir = start(farm, redis, mode, limit_when_down="allow")
    with weir.connect() as conn:
        for command in DECISIONS + PLACES[:1] + WAITS + ["RESET {}"]:
            assert str(limit(conn, command)).startswith("READONLY"), command
        redis.call("REPLICAOF", "NO", "ONE")
        assert decision(limit(conn, DECISIONS[0])).limited == 0


def test_busy_and_then_away(farm):
    """Redis' last answer to weir's scripts is not repeated when Redis is away, also not to the
    first call.
    """
    redis = farm.redis("--lua-time-limit", "10")
    weir = farm.weir(redis, workers=1, limit_when_down="error", **TOLD_AT_ONCE)
    with weir.connect() as conn, weir.connect() as other, redis.connect() as culprit, redis.connect() as admin:
        assert other.call("GET", "k") is None
        culprit.send(pipeline(("EVAL", "while true do end", 0)))
        wait_until(lambda: admin.call("PING") != "PONG", "Redis is busy")
        assert str(limit(conn, DECISIONS[0])).startswith("BUSY")
        redis.kill()
        wait_until(lambda: str(other.call("GET", "k")).startswith("UPSTREAM"), "it is away")
        assert limit(conn, DECISIONS[0]) == UNAVAILABLE


def test_busy_and_then_lost_while_scripts_are_loaded(farm):
    """Nor is that answer given for a connection that closes while weir asks again."""
    with Fake() as fake, farm.weir(fake, workers=1, limit_when_down="error").connect() as conn:

        def loading():
            return next((lane for lane in list(fake.lanes) if lane.data.startswith(b"*3\r\n$6\r\nSCRIPT")), None)

        def lost():
            wait_until(loading, "a script is loaded").reset()

        ask = pipeline("LIMIT FUNNEL k 1/h")
        conn.send(ask)
        lost()
        lost()
        lane = wait_until(loading, "a script is loaded")
        assert lane.take(bytes(lane.data))
        lane.send(b"-BUSY for now\r\n")
        assert conn.read() == Error("BUSY for now")
        conn.send(ask)
        lost()
        assert conn.read() == UNAVAILABLE


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_decisions_wait_for_a_busy_redis(farm, mode, warm):
    """A slow script of another client, also while weir's own scripts are not loaded yet."""
    redis = farm.redis("--lua-time-limit", "10")
    weir = start(farm, redis, mode, limit_when_down="allow")
    conns = [weir.connect() for _ in range(4)]
    for conn in conns:
        assert conn.call("PING") == "PONG"
        if warm:
            assert decision(limit(conn, DECISIONS[0])).limited == 0
    if not warm:
        for conn in conns:
            conn.call("GET", "x")
    with redis.connect() as culprit, redis.connect() as admin:
        culprit.send(pipeline(("EVAL", "while true do end", 0)))
        wait_until(lambda: admin.call("PING") != "PONG", "Redis is busy")
        for conn in conns:
            for command in EVERY + WAITS:
                assert str(limit(conn, command)).startswith("BUSY"), command
        assert admin.call("SCRIPT", "KILL") == "OK"
        assert isinstance(culprit.read(), Error)
    for conn in conns:
        assert decision(limit(conn, DECISIONS[0])).limited == 0
        conn.close()
    redis.kill()
    with weir.connect() as conn:
        wait_until(lambda: limit(conn, DECISIONS[0]) == [0, 1, 0, -1, 0], "it is away, and no longer busy")


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_no_user_of_its_own(farm, mode, warm):
    """Redis wants a password and weir has none: the client gets Redis' error, and no call passes.
    """
    redis = farm.redis(password="secret")
    redis.call("CONFIG", "SET", "requirepass", "" if warm else "secret")
    weir = start(farm, redis, mode, limit_when_down="allow")
    if warm:
        with weir.connect() as conn:
            assert decision(limit(conn, DECISIONS[0])).limited == 0
        redis.call("CONFIG", "SET", "requirepass", "secret")
        redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    for _ in range(4):
        with weir.connect() as conn:
            assert conn.call("AUTH", "secret") == "OK"
            for command in EVERY + WAITS:
                assert str(limit(conn, command)).startswith("NOAUTH"), command


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_a_loading_redis_decides_nothing(farm, mode, warm):
    """Redis is loading its file: no call passes, and no client waits for ever."""
    redis = farm.redis("--rdbcompression", "no")
    weir = start(farm, redis, mode, limit_when_down="error")
    with weir.connect() as conn:
        if warm:
            assert decision(limit(conn, DECISIONS[0])).limited == 0
        with redis.connect() as admin:
            large = [] if at_least(7, 0) else ["key", 16384]  # 6.2 checks only every 2 MB
            admin.call("DEBUG", "POPULATE", 1500, *large)
            admin.call("SAVE")
        redis.kill()
        redis.options += ["--key-load-delay", "1000"]
        redis.options += options((7, 0), "--loading-process-events-interval-bytes", "1024")
        redis.start()
        seen = set()
        while int(redis.info("loading")):
            reply = limit(conn, DECISIONS[0])
            if not int(redis.info("loading")):
                break
            assert isinstance(reply, Error), reply
            seen.add(reply.split()[0])
        assert seen <= {"LOADING", "UPSTREAM"}, seen
        wait_until(lambda: type(decision(limit(conn, DECISIONS[0]))) is Decision, "it goes on")


def test_without_permission_for_scripts_decisions_fail_for_good(farm, redis, mode):
    """weir's own user may not run scripts: calls get that error, every time."""
    redis.call("ACL", "SETUSER", "weak", "on", ">pw", "~*", "&*", "+@all", "-evalsha", "-script", "-eval")
    try:
        secret = redis.folder / "weak"
        secret.write_text("pw")
        secret.chmod(0o600)
        weir = start(farm, redis, mode, upstream_user="weak", upstream_password_file=secret, limit_when_down="allow")
        with weir.connect() as conn:
            conn.call("AUTH", "default", "")
            for _ in range(2):
                for command in DECISIONS[:2] + PLACES[:1]:
                    assert str(limit(conn, command)).startswith("NOPERM"), command
    finally:
        redis.call("ACL", "DELUSER", "weak")


def test_a_wrong_password_lets_nobody_through(farm, mode):
    """Redis is up: no call passes."""
    redis = farm.redis(password="secret")
    secret = redis.folder / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    weir = start(farm, redis, mode, upstream_password_file=secret, limit_when_down="allow")
    with weir.connect() as conn:
        assert conn.call("AUTH", "secret") == "OK"
        assert decision(limit(conn, DECISIONS[0])).limited == 0
        redis.call("CONFIG", "SET", "requirepass", "another")
        redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    with weir.connect() as conn:
        assert conn.call("AUTH", "another") == "OK"
        for _ in range(3):
            told = str(limit(conn, DECISIONS[0]))
            assert told.startswith("NOAUTH Redis rejects the password in"), "and not a client that waits for ever"
            assert str(limit(conn, WAITS[2])) == told
        lines = len(weir.log().splitlines())
        redis.call("CONFIG", "SET", "requirepass", "secret")
        wait_until(lambda: type(decision(limit(conn, DECISIONS[0]))) is Decision, "it is let in again")
        assert lines < 60, "nor a loop"


# ---- Redis goes away ----


def away(farm, mode, **settings):
    redis = farm.redis()
    weir = start(farm, redis, mode, **settings)
    with weir.connect() as conn:
        decide(conn, f"LIMIT FUNNEL {fresh()} 1/h")
    redis.kill()
    return redis, weir


def test_limit_when_down_decides_while_redis_is_away(farm, mode):
    redis, weir = away(farm, mode)
    with weir.connect() as conn:
        wait_until(lambda: limit(conn, DECISIONS[0]) == UNAVAILABLE, "it is away")
        for command in EVERY + WAITS:
            assert limit(conn, command) == UNAVAILABLE, command
        assert conn.ask(*["LIMIT FUNNEL k 1/h"] * 6) == [UNAVAILABLE] * 6
        redis.start()
        wait_until(lambda: type(decision(limit(conn, DECISIONS[0]))) is Decision, "it is back")


@pytest.mark.parametrize("what, limited", [("allow", 0), ("deny", 1)])
def test_limit_when_down(farm, mode, what, limited):
    redis, weir = away(farm, mode, limit_when_down=what)
    with weir.connect() as conn:
        for command in DECISIONS + WAITS[:2]:
            found = decision(limit(conn, command))
            assert (found.limited, found.limit) == (limited, 1), command
        for command in PLACES + ["RESET {}"] + WAITS[2:]:
            assert limit(conn, command) == UNAVAILABLE, command
        assert limit(conn, "FUNNEL {} 1/h COST") == Error("ERR syntax error, COST is the last word: its value is missing")
        assert conn.call("CL.THROTTLE", "k", 4, 1, 1) == [limited, 5, 0, 1 if limited else -1, 0]
        redis.start()
        key = fresh()
        wait_until(lambda: redis.call("DBSIZE") > 0 or not decide(conn, f"LIMIT FUNNEL {key} 9/h"), "it decides again")


WHEN_DOWN = """
[limit none]
fixed = 2/100d
[limit yes]
sliding = 2/100d
when-down = allow
[limit no]
when-down = deny
bucket = 1/h burst 2
[limit own]
fixed = 2/100d
when-down = local
[limit queue]
funnel = 1/200ms
when-down = local
[limit log]
sliding = 5/100d
when-down = local
"""


def test_each_limit_when_down(farm, mode):
    redis, weir = away(farm, mode, sections=WHEN_DOWN, limit_when_down="deny")
    with weir.connect() as conn:
        for name, limited in (("none", 1), ("yes", 0), ("no", 1)):
            assert [decide(conn, f"LIMIT CHECK {name} k").limited for _ in range(4)] == [limited] * 4, name
        assert conn.call("LIMIT", "RESET", "own:k") == UNAVAILABLE


def test_workers_count_together_while_redis_is_away(farm, mode):
    """All workers count together until Redis is back. Then Redis decides, without these counts."""
    redis, weir = away(farm, mode, sections=WHEN_DOWN)
    conns = [weir.connect() for _ in range(6)]
    found = [decide(conns[i % 6], "LIMIT CHECK own k") for i in range(12)]
    assert [f[:3] for f in found] == [(0, 2, 1), (0, 2, 0)] + [(1, 2, 0)] * 10
    assert found[0].reset > 0 and found[2].retry > 0
    assert decide(conns[0], "LIMIT CHECK own other COST 2")[:3] == (0, 2, 0)
    assert decide(conns[1], "LIMIT CHECK own other COST 3")[:4] == (1, 2, 0, -1)
    assert [decide(conn, "LIMIT CHECK log k").remaining for conn in conns] == [4, 3, 2, 1, 0, 0]
    assert conns[2].call("LIMIT", "FIXED", "k", "1/d") == UNAVAILABLE, "it is no named limit"
    started = time.monotonic()
    assert [decide(conn, "LIMIT CHECK queue k WAIT 5000").limited for conn in conns] == [0] * 6
    assert time.monotonic() - started >= 5 * 0.2, "each has its turn"
    redis.start()
    wait_until(lambda: decide(conns[0], "LIMIT CHECK own k PEEK").remaining == 2, "it is back")
    wait_until(lambda: all(type(decide(conn, f"LIMIT FIXED {fresh()} 1/d")) is Decision for conn in conns), "for everybody")
    assert admitted([decide(conn, "LIMIT CHECK own k") for conn in conns]) == 2
    for conn in conns:
        conn.close()


def test_away_while_they_wait(farm, mode):
    """A client that waits for a permit gets an error. A client with a scheduled time keeps it."""
    redis = farm.redis()
    weir = start(farm, redis, mode)
    with weir.connect() as a, weir.connect() as b:
        assert place(a.call("LIMIT", "ACQUIRE", "k", 1, 100_000)).limited == 0
        a.send(pipeline("LIMIT ACQUIRE k 1 100000 WAIT 100000"))
        wait_until(lambda: redis.waiting()[1] > 0, "it listens")
        assert decide(b, "LIMIT FUNNEL f 1/900ms BURST 1").limited == 0
        started, first = time.monotonic(), redis.call("GET", "limit:f")
        b.send(pipeline("LIMIT FUNNEL f 1/900ms BURST 1 WAIT 60000"))
        wait_until(lambda: redis.call("GET", "limit:f") != first or time.monotonic() > started + 0.9, "a turn")
        for _ in range(16):  # every worker knows Redis' earlier answer
            with weir.connect() as conn:
                decide(conn, f"LIMIT FUNNEL {fresh()} 1/h PEEK")
        redis.kill()
        assert a.read() == UNAVAILABLE
        assert decision(b.read()).limited == 0


def test_connections_are_killed(redis, weir):
    """Callers get an error that the result is unknown. Every request has one reply, and the bound
    holds.
    """
    key = fresh()
    conns = [weir.connect() for _ in range(10)]
    found = []
    for i in range(60):
        for conn in conns:
            conn.send(pipeline(*[f"LIMIT FUNNEL {key} 400/d"] * 2))
        if i % 6 == 3:
            redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        for conn in conns:
            found += [decision(conn.read()), decision(conn.read())]
    unknown = [f for f in found if f == UNAVAILABLE]
    passed = admitted([f for f in found if f != UNAVAILABLE])
    with weir.connect() as conn:
        peek = wait_until(lambda: (d := decide(conn, f"LIMIT FUNNEL {key} 400/d PEEK")) != UNAVAILABLE and d, "it goes on")
    assert passed <= 400 - peek.remaining <= passed + len(unknown)
    for conn in conns:
        conn.close()


def test_a_restart_amid_calls_answers_each_once(farm, mode):
    """A restart in the middle of calls: each call has one reply. Only clients with other commands
    in flight may be closed.
    """
    redis = farm.redis()
    weir = start(farm, redis, mode)
    for command, is_good in (("LIMIT FUNNEL {} 1000/d", lambda r: type(r) is Decision and not r.limited or r == UNAVAILABLE),
                             ("ECHO x", lambda r: r in (b"x", UNAVAILABLE))):  # fmt: skip
        conns = [weir.connect() for _ in range(6)]
        for conn in conns:
            conn.send(pipeline(*[f"LIMIT FUNNEL {fresh()} 1000/d", command.format(fresh())] * 20))
        redis.kill()
        redis.start()
        for conn in conns:
            n = 0
            try:
                for n in range(1, 21):
                    first = decision(conn.read())
                    assert first == UNAVAILABLE or type(first) is Decision and not first.limited
                    reply = conn.read()
                    assert is_good(decision(reply) if "LIMIT" in command else reply), reply
                assert n == 20
            except Closed:
                assert command == "ECHO x"
                continue
            wait_until(lambda conn=conn: type(decision(limit(conn, DECISIONS[0]))) is Decision, "it is back")
        for conn in conns:
            conn.close()


def test_decisions_do_not_wait_for_a_redis_that_hangs(farm, redis, mode):
    """No client waits for ever for a Redis that hangs."""
    weir = start(farm, redis, mode, upstream_timeout="200ms")
    with weir.connect() as conn, redis.connect() as admin:
        decide(conn, f"LIMIT FUNNEL {fresh()} 1/h")
        admin.call("CLIENT", "PAUSE", 20_000, "WRITE")
        try:
            reply = limit(conn, DECISIONS[0])
            assert isinstance(reply, Error) and reply.startswith("UPSTREAM"), reply
        finally:
            admin.call("CLIENT", "UNPAUSE")
        wait_until(lambda: type(decision(limit(conn, DECISIONS[0]))) is Decision, "it goes on")
