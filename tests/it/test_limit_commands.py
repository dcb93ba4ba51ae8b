"""LIMIT commands that Redis decides: every option, every error, redis-cell's tables, names of keys.
"""

import pytest
from kit.decisions import (
    WRONGTYPE,
    admitted,
    clock_us,
    decide,
    decision,
    decisions,
    fresh,
    is_like,
    near,
    place,
    script_calls,
    speaking,
    written,
)
from kit.harness import wait_until
from kit.limits import plain
from kit.reloading import reload
from kit.resp import Error, encode, pipeline

FUNNELS = ["FUNNEL", "BUCKET"]
WINDOWS = ["SLIDING", "FIXED"]
FIXED_PERIOD_MS = 3_600_000


# ---- algorithms ----


@pytest.mark.parametrize("name", FUNNELS)
def test_a_funnel_lets_a_burst_through_then_one_an_interval(conn, protocol, name, redis):
    key = fresh()
    assert isinstance(conn.call("LIMIT", name, fresh(), "1/s"), dict if protocol == 3 else list)
    for i in range(5):
        assert is_like(decide(conn, f"LIMIT {name} {key} 5/600s"), 0, 5, 4 - i, -1, 120_000 * (i + 1))
    for _ in range(2):
        assert is_like(decide(conn, f"limit {name.lower()} {key} 5/600s"), 1, 5, 0, 120_000, 600_000)
    assert near(redis.call("PTTL", f"limit:{key}"), 600_000)


@pytest.mark.parametrize("name", FUNNELS)
def test_burst_and_cost(conn, name):
    key = fresh()
    assert is_like(decide(conn, f"LIMIT {name} {key} 1/h BURST 10 COST 7"), 0, 10, 3, -1, 7 * 3_600_000)
    assert is_like(decide(conn, f"LIMIT {name} {key} COST 4 1/h BURST 10"), 1, 10, 3, 3_600_000, 7 * 3_600_000)
    assert is_like(decide(conn, f"LIMIT {name} {key} 1/h burst 10 cost 11"), 1, 10, 3, -1, 7 * 3_600_000)
    assert is_like(decide(conn, f"LIMIT {name} {key} 1/h BURST 10 COST 3"), 0, 10, 0, -1, 10 * 3_600_000)


@pytest.mark.parametrize("name, options", [("SLIDING", ""), ("SLIDING", "APPROX"), ("FIXED", "")])
def test_a_window_lets_its_limit_through_and_no_more(conn, redis, name, options):
    key = fresh()
    found = [decide(conn, f"LIMIT {name} {key} 5/100d {options}") for _ in range(7)]
    assert [f[:3] for f in found] == [(0, 5, 4 - i) for i in range(5)] + [(1, 5, 0)] * 2
    assert [f.retry for f in found[:5]] == [-1] * 5
    day = 86_400_000
    most = 200 * day if options else 100 * day
    assert all(0 < f.retry <= most and 0 < f.reset <= most for f in found[5:])
    if name == "SLIDING" and not options:
        assert near(found[5].retry, 100 * day) and near(found[0].reset, 100 * day)
        assert redis.call("ZCARD", f"limit:{key}") == 5, "what is refused is not counted"
    assert 0 < redis.call("PTTL", f"limit:{key}") <= most


@pytest.mark.parametrize("command", ["SLIDING {} 10/100d", "SLIDING {} 10/100d APPROX", "FIXED {} 10/100d"])
def test_cost_of_windows(conn, command):
    command = "LIMIT " + command.format(fresh())
    assert decide(conn, f"{command} COST 7")[:4] == (0, 10, 3, -1)
    denied = decide(conn, f"{command} COST 4")
    assert denied[:3] == (1, 10, 3) and denied.retry > 0
    assert decide(conn, f"{command} COST 11")[:4] == (1, 10, 3, -1)
    assert decide(conn, f"{command} COST 3")[:4] == (0, 10, 0, -1)


@pytest.mark.parametrize("name", FUNNELS + WINDOWS + ["SLIDING APPROX"])
def test_several_rates_are_all_or_nothing(conn, redis, name):
    """All rates are charged, or none. The reply is about the rate with the least remaining, or with
    the longest wait.
    """
    key, (name, *option) = fresh(), name.split()
    command = " ".join(["LIMIT", name, key, "2/50d", "5/100d", *option])
    assert [decide(conn, command)[:4] for _ in range(2)] == [(0, 2, 1, -1), (0, 2, 0, -1)]
    stored = redis.call("DUMP", f"limit:{key}")
    for _ in range(5):
        assert decide(conn, command)[:3] == (1, 2, 0)
    assert redis.call("DUMP", f"limit:{key}") == stored
    assert decide(conn, command + " COST 3")[:4] == (1, 2, 0, -1)
    rates = " ".join(f"{9 - i}/50d" for i in range(8))
    assert decide(conn, " ".join(["LIMIT", name, fresh(), rates, *option]))[:3] == (0, 2, 1)


@pytest.mark.parametrize("name", FUNNELS + WINDOWS + ["SLIDING APPROX"])
def test_peek_writes_nothing(conn, redis, name):
    key, (name, *option) = fresh(), name.split()
    command = " ".join(["LIMIT", name, key, "2/50d", *option])
    before = written(redis)
    for _ in range(3):
        assert decide(conn, command + " PEEK")[:4] == (0, 2, 2, -1)
    assert written(redis) == before
    decisions(conn, *[command] * 2)
    before = written(redis)
    for _ in range(3):
        found = decide(conn, command + " PEEK")
        assert found[:3] == (1, 2, 0) and found.retry > 0
    assert written(redis) == before
    assert decide(conn, command)[:3] == (1, 2, 0)


def test_peek_tells_the_state(conn):
    key = fresh()
    assert is_like(decide(conn, f"LIMIT FUNNEL {key} 5/500s PEEK"), 0, 5, 5, -1, 0)
    decide(conn, f"LIMIT FUNNEL {key} 5/500s")
    assert is_like(decide(conn, f"LIMIT FUNNEL {key} 5/500s PEEK"), 0, 5, 4, -1, 100_000)
    assert decide(conn, f"LIMIT SLIDING {fresh()} 5/500s PEEK")[:4] == (0, 5, 5, -1)


def test_reset_deletes_keys_and_counts_them(conn, redis):
    keys = [fresh() for _ in range(3)]
    for key in keys[:2]:
        assert admitted(decisions(conn, *[f"LIMIT FUNNEL {key} 1/h"] * 2)) == 1
    assert conn.call("LIMIT", "RESET", *keys) == 2
    assert conn.call("LIMIT", "RESET", *keys) == 0
    assert redis.call("DBSIZE") == 0
    for key in keys:
        assert admitted(decisions(conn, *[f"LIMIT FUNNEL {key} 1/h"] * 2)) == 1


# ---- THROTTLE ----

# redis-cell's test: debt in ms before the call, quantity, the reply
T1 = [
    (0, 6, (1, 5, 5, -1, 0)), (0, 1, (0, 5, 4, -1, 1)), (1000, 1, (0, 5, 3, -1, 2)), (2000, 1, (0, 5, 2, -1, 3)),
    (3000, 1, (0, 5, 1, -1, 4)), (4000, 1, (0, 5, 0, -1, 5)), (5000, 1, (1, 5, 0, 1, 5)), (2000, 1, (0, 5, 2, -1, 3)),
    (2900, 1, (0, 5, 1, -1, 4)), (3000, 1, (0, 5, 1, -1, 4)), (0, 1, (0, 5, 4, -1, 1)), (1000, 0, (0, 5, 4, -1, 1)),
    (1000, 2, (0, 5, 2, -1, 3)), (3000, 5, (1, 5, 2, 3, 3)), (0, 6, (1, 5, 5, -1, 0)),
]  # fmt: skip
T3 = [
    ("0 1 60 0", 0, (0, 1, 1, -1, 0)), ("4 1 1 5", 0, (0, 5, 0, -1, 5)), ("4 1 1 5", 5000, (1, 5, 0, 5, 5)),
    ("2 7 60", 26_000, (1, 3, 0, 9, 26)), ("2 7 60", 17_600, (1, 3, 0, 1, 18)), ("9 2 3", 0, (0, 10, 9, -1, 2)),
    ("4 1 10 0", 100_000, (1, 5, 0, 50, 100)), ("4 1 10 1", 100_000, (1, 5, 0, 60, 100)),
    ("19 1 10 1", 100_000, (0, 20, 9, -1, 110)), ("9 100 10 1", 10_000, (1, 10, 0, 10, 10)),
    ("4 1 10 -1", 30_000, (0, 5, 3, -1, 20)), ("0 1 1 1", 3_601_000, (1, 1, 0, 3601, 3601)),
    ("-1 1 1", 0, (1, 0, 0, -1, 0)), ("6000 6000 1", 0, (0, 6001, 6000, -1, 0)),
]  # fmt: skip


@pytest.fixture(params=["shared", "private"])
def raw(request, kept, redis, protocol):
    """A client of a weir that gives CL.THROTTLE the keys that redis-cell uses."""
    with speaking(kept(workers=2, lanes=request.param, cl_throttle="raw").connect(), protocol) as conn:
        yield conn


def cell_tables(conn, redis, name, prefix, db):
    """The reply is an array in either protocol."""
    rows = [(f"4 1 1 {quantity}", debt, reply) for debt, quantity, reply in T1] + T3
    with redis.connect() as direct:
        direct.call("SELECT", db)
        for arguments, debt, reply in rows:
            key = fresh()
            if debt:
                tat = clock_us(redis) * 1000 + debt * 1_000_000
                direct.call("SET", prefix + key, tat, "PX", debt + 1)
            assert conn.call(*name.split(), key, *arguments.split()) == list(reply), (arguments, debt)
            assert direct.call("TYPE", prefix + key) in ("string", "none")
            if not debt and reply[0]:
                assert direct.call("EXISTS", prefix + key) == 0


@pytest.mark.parametrize("name", ["LIMIT THROTTLE", "CL.THROTTLE", "cl.throttle"])
def test_cl_throttle_stores_under_the_prefix_in_database_0(conn, redis, name):
    """Under the prefix, and in database 0, whatever the client's database."""
    conn.call("SELECT", 3)
    cell_tables(conn, redis, name, "limit:", 0)


@pytest.mark.parametrize("db", [0, 3])
def test_raw_cell_tables(raw, redis, db):
    raw.call("SELECT", db)
    cell_tables(raw, redis, "CL.THROTTLE", "", db)
    raw.call("SELECT", 3 - db)
    cell_tables(raw, redis, "LIMIT THROTTLE", "limit:", 0)


def test_cl_throttle_answers_as_redis_cell_documents(conn, redis):
    assert conn.call("CL.THROTTLE", fresh(), 15, 30, 60) == [0, 16, 15, -1, 2]
    assert conn.call("CL.THROTTLE", fresh(), 5, 5, 3600) == [0, 6, 5, -1, 720]
    key = fresh()
    started = clock_us(redis)
    assert conn.call("CL.THROTTLE", key, 0, 1, 2, 1) == [0, 1, 0, -1, 2]
    assert conn.call("CL.THROTTLE", key, 0, 1, 2, 1) == [1, 1, 0, 2, 2]
    wait_until(lambda: conn.call("CL.THROTTLE", key, 0, 1, 2, 1) == [0, 1, 0, -1, 2], "it may again", 5)
    assert clock_us(redis) - started >= 2_000_000
    key = fresh()
    found = [conn.call("CL.THROTTLE", key, 9, 100, 60) for _ in range(11)]
    assert [f[2] for f in found] == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0]
    assert found[10][:2] == [1, 10] and found[10][3] in (0, 1) and found[10][4] == 6


def writes_as_redis_cell(conn, redis, key, stored):
    before = clock_us(redis) * 1000
    conn.call("CL.THROTTLE", key, 4, 1, 100)
    assert before + 100 * 10**9 <= int(redis.call("GET", stored)) <= clock_us(redis) * 1000 + 100 * 10**9
    assert near(redis.call("PTTL", stored), 100_000)
    assert conn.call("CL.THROTTLE", key, 4, 1, 100, -1) == [0, 5, 5, -1, 0]
    assert redis.call("EXISTS", stored) == 0, "a refund of all"


def test_cell_writes_as_redis_cell(conn, redis):
    key = fresh()
    writes_as_redis_cell(conn, redis, key, f"limit:{key}")


def test_raw_cell_writes_as_redis_cell(raw, redis):
    key = fresh()
    writes_as_redis_cell(raw, redis, key, key)


def test_cell_is_limit_throttle(conn, redis):
    """Another name for one command: the same key, whatever the database."""
    key = fresh()
    conn.call("SELECT", 3)
    assert conn.call("CL.THROTTLE", key, 0, 1, 1000)[0] == 0
    conn.call("SELECT", 4)
    assert conn.call("CL.THROTTLE", key, 0, 1, 1000)[0] == 1
    assert conn.call("LIMIT", "THROTTLE", key, 0, 1, 1000)[0] == 1
    assert conn.call("EXISTS", key) == 0 and redis.call("KEYS", "*") == [f"limit:{key}".encode()]
    assert conn.call("LIMIT", "RESET", key) == 1
    assert conn.call("CL.THROTTLE", key, 0, 1, 1000)[0] == 0


def test_raw_cell_and_limit_are_apart(raw):
    key = fresh()
    raw.call("SELECT", 3)
    assert raw.call("CL.THROTTLE", key, 0, 1, 1000)[0] == 0
    raw.call("SELECT", 4)
    assert raw.call("CL.THROTTLE", key, 0, 1, 1000)[0] == 0, "another database"
    assert raw.call("LIMIT", "THROTTLE", key, 0, 1, 1000)[0] == 0, "another key"
    assert raw.call("CL.THROTTLE", key, 0, 1, 1000)[0] == 1
    raw.call("SELECT", 3)
    assert raw.call("CL.THROTTLE", key, 0, 1, 1000)[0] == 1
    assert raw.call("EXISTS", key) == 1


def test_cell_gives_no_rights(farm, redis):
    """A client without rights in Redis changes no key of another client's. The client also does not
    learn whether a key exists or what it holds.
    """
    weir = farm.weir(redis, workers=1)
    redis.call("ACL", "SETUSER", "poor", "on", ">pw", "resetkeys", "-@all", "+ping")
    try:
        text, number = fresh("text"), fresh("number")
        redis.call("SET", text, "x")
        redis.call("SET", number, "17")
        with weir.connect() as conn:
            assert conn.call("AUTH", "poor", "pw") == "OK"
            found = [conn.call("CL.THROTTLE", key, 4, 1, 100) for key in (text, number, fresh())]
            assert found[0] == found[1] == found[2] == [0, 5, 4, -1, 100]
            assert conn.call("CL.THROTTLE", number, 4, 1, 100, -9)[0] == 0
        assert redis.call("GET", text) == b"x" and redis.call("GET", number) == b"17"
        assert redis.call("TTL", number) == -1
    finally:
        redis.call("ACL", "DELUSER", "poor")


def test_cell_is_left_to_redis(farm, redis, protocol):
    """The command travels as one that weir does not know, also in MULTI. No statistic mentions it.
    """
    weir = farm.weir(redis, workers=2, cl_throttle="off")
    key = fresh()
    with speaking(weir.connect(), protocol) as conn, speaking(redis.connect(), protocol) as direct:
        for command in ("CL.THROTTLE K 4 1 100", "cl.throttle K 4 1", "COMMAND INFO cl.throttle", "COMMAND GETKEYS CL.THROTTLE K 4 1 2",
                        "COMMAND LIST FILTERBY PATTERN cl.*"):  # fmt: skip
            words = command.replace("K", key).split()
            assert conn.call(*words) == direct.call(*words), command
        assert conn.call("COMMAND", "COUNT") == direct.call("COMMAND", "COUNT") + 1
        assert conn.ask("MULTI", "CL.THROTTLE k 1 1 1", "EXEC") == direct.ask("MULTI", "CL.THROTTLE k 1 1 1", "EXEC")
        assert conn.call("LIMIT", "THROTTLE", key, 4, 1, 100) == [0, 5, 4, -1, 100]
        explained = plain(conn.call("LIMIT", "EXPLAIN", "CL.THROTTLE", key, 4, 1, 100))
        explained = explained if isinstance(explained, dict) else dict(zip(explained[::2], explained[1::2]))
        assert explained["lane"] == "private" and "@limit" not in explained["classes"]


def test_cell_changes_with_a_reload(farm, redis):
    weir = farm.weir(redis, workers=2)
    conns = [weir.connect() for _ in range(4)]
    key = fresh()
    assert [conn.call("CL.THROTTLE", key, 0, 1, 1000)[0] for conn in conns] == [0, 1, 1, 1]
    assert reload(weir, "", cl_throttle="raw")
    wait_until(lambda: redis.call("EXISTS", key) or conns[0].call("CL.THROTTLE", key, 0, 1, 1000)[0] == 0, "another key")
    assert redis.call("EXISTS", key, f"limit:{key}") == 2
    assert reload(weir, "", cl_throttle="off")
    wait_until(lambda: all(isinstance(c.call("CL.THROTTLE", key, 0, 1, 1000), Error) for c in conns), "Redis' own answer")
    assert reload(weir, "", cl_throttle="prefix")
    wait_until(lambda: not any(isinstance(c.call("CL.THROTTLE", key, 0, 1, 1000), Error) for c in conns), "weir's again")
    for conn in conns:
        conn.close()


def test_a_refund_is_heard(conn):
    """A refund clears a remembered denial, also within one pipeline."""
    key = fresh()
    take, refund = f"CL.THROTTLE {key} 0 1 1000", f"CL.THROTTLE {key} 0 1 1000 -1"
    assert [reply[0] for reply in conn.ask(take, take, take)] == [0, 1, 1]
    assert [reply[0] for reply in conn.ask(take, refund, take, take, refund)] == [1, 0, 0, 1, 0]
    assert conn.call(*take.split())[0] == 0


# ---- errors ----

INTEGER = "ERR value is not an integer or out of range"
SYNTAX = "ERR syntax error, "
TIMEOUT = "ERR timeout is not an integer or out of range"


def arity(name):
    return f"ERR wrong number of arguments for '{name}' command"


ERRORS = [
    ("LIMIT FUNNEL", arity("limit|funnel")),
    ("LIMIT FUNNEL K", arity("limit|funnel")),
    ("LIMIT BUCKET K", arity("limit|bucket")),
    ("LIMIT SLIDING K", arity("limit|sliding")),
    ("LIMIT FIXED K", arity("limit|fixed")),
    ("LIMIT CHECK n", arity("limit|check")),
    ("LIMIT THROTTLE K 1 2", arity("limit|throttle")),
    ("LIMIT THROTTLE K 1 2 3 4 5", arity("limit|throttle")),
    ("CL.THROTTLE", arity("cl.throttle")),
    ("CL.THROTTLE K 1 2", arity("cl.throttle")),
    ("CL.THROTTLE K 1 2 3 4 5", arity("cl.throttle")),
    ("LIMIT ACQUIRE K 1", arity("limit|acquire")),
    ("LIMIT RENEW K t", arity("limit|renew")),
    ("LIMIT RENEW K t 1 2", arity("limit|renew")),
    ("LIMIT RELEASE K", arity("limit|release")),
    ("LIMIT RELEASE K t 1", arity("limit|release")),
    ("LIMIT RESET", arity("limit|reset")),
    ("LIMIT FUNEL K 1/s", "ERR unknown subcommand 'FUNEL' (did you mean FUNNEL?). Try LIMIT HELP."),
    ("LIMIT FUNNEL K 5", 'ERR "5" is not a rate: write COUNT/PERIOD, like 1000/s or 5/60s'),
    ("LIMIT FUNNEL K five/s", 'ERR "five" is not a count: write a whole number, or one with k, m or g (10k)'),
    ("LIMIT FUNNEL K 0/s", "ERR a rate of 0 never lets anything pass: give at least 1"),
    ("LIMIT FUNNEL K -1/s", 'ERR "-1" is not a count: write a whole number, or one with k, m or g (10k)'),
    ("LIMIT FUNNEL K 1/0s", 'ERR "1/0s": the period must be longer than 0'),
    ("LIMIT FUNNEL K 1/fortnight", 'ERR "fortnight" is not a time: write ms, s, m, h or d, or a number of them (60s)'),
    ("LIMIT FUNNEL K 1/s/s", 'ERR "s/s" is not a time: write ms, s, m, h or d, or a number of them (60s)'),
    ("LIMIT FUNNEL K 99999999999999999999/s", 'ERR "99999999999999999999" is not a count: it is too large or starts with 0'),
    ("LIMIT FUNNEL K 1/99999999999d", 'ERR "99999999999d" is not a time: the number is too large or starts with 0'),
    ("LIMIT FUNNEL K 1/d BURST 105", "ERR a burst of 105 at this rate takes more than 104 days to drain: give a smaller burst"),
    ("LIMIT FUNNEL K 1/s BURST", SYNTAX + "BURST is the last word: its value is missing"),
    ("LIMIT FUNNEL K 1/s BURST 0", INTEGER),
    ("LIMIT FUNNEL K 1/s BURST -1", INTEGER),
    ("LIMIT FUNNEL K 1/s BURST x", INTEGER),
    ("LIMIT FUNNEL K 1/s BURST 2 BURST 3", SYNTAX + "BURST is given twice"),
    ("LIMIT FUNNEL K BURST 2 1/s", SYNTAX + "BURST comes after its rate"),
    ("LIMIT FUNNEL K COST 2", SYNTAX + "a rate is missing: write COUNT/PERIOD, like 1000/s or 5/60s"),
    ("LIMIT FUNNEL K 1/s COST -0", INTEGER),
    ("LIMIT FUNNEL K 1/s COST -1", INTEGER),
    ("LIMIT FUNNEL K 1/s COST 1.5", INTEGER),
    ("LIMIT FUNNEL K 1/s COST 9223372036854775808", INTEGER),
    ("LIMIT FUNNEL K 1/s COST 9223372036854775807", INTEGER),
    ("LIMIT FUNNEL K 1/s COST", SYNTAX + "COST is the last word: its value is missing"),
    ("LIMIT FUNNEL K 1/s COST 1 COST 1", SYNTAX + "COST is given twice"),
    ("LIMIT FUNNEL K 1/s WAIT", SYNTAX + "WAIT is the last word: its value is missing"),
    ("LIMIT FUNNEL K 1/s WAIT x", TIMEOUT),
    ("LIMIT FUNNEL K 1/s WAIT -1", "ERR timeout is negative"),
    ("LIMIT FUNNEL K 1/s WAIT 86400001", "ERR timeout is out of range: at most a day"),
    ("LIMIT FUNNEL K 1/s WAIT 1 PEEK", "ERR at most one of WAIT, PEEK, FORCE, PARTIAL, BORROW and CREDIT"),
    ("LIMIT FUNNEL K 1/s PEEK PEEK", SYNTAX + "PEEK is given twice"),
    ("LIMIT FUNNEL K 1/s APPROX", SYNTAX + "APPROX is not an option of 'limit|funnel'"),
    ("LIMIT FUNNEL K 1/s NOW", SYNTAX + "unknown option 'NOW'"),
    ("LIMIT FUNNEL K" + " 1/s" * 9, "ERR too many rates: at most 8"),
    ("LIMIT SLIDING K 1/s BURST 2", SYNTAX + "BURST is not an option of 'limit|sliding'"),
    ("LIMIT SLIDING K 10001/s", "ERR an exact sliding window counts at most 10000 units: use APPROX for more"),
    ("LIMIT SLIDING K 9/s 10001/d", "ERR an exact sliding window counts at most 10000 units: use APPROX for more"),
    ("LIMIT SLIDING K 9/s COST 10001", "ERR COST of an exact sliding window is at most 10000: use APPROX for more"),
    ("LIMIT SLIDING K 1/s APPROX APPROX", SYNTAX + "APPROX is given twice"),
    ("LIMIT FIXED K 1/s APPROX", SYNTAX + "APPROX is not an option of 'limit|fixed'"),
    ("LIMIT FIXED K 1/s 2/m 0/h", "ERR a rate of 0 never lets anything pass: give at least 1"),
    ("LIMIT FIXED K 1/s COST 18446744073709551616", INTEGER),
    ("LIMIT CHECK nothing K", "ERR no limit is named 'nothing'"),
    ("LIMIT CHECK nothing K 1/s", SYNTAX + "unknown option '1/s'"),
    ("LIMIT CHECK nothing K COST -1", INTEGER),
    ("LIMIT THROTTLE K 1 0 1", "ERR zero rates are not supported"),
    ("LIMIT THROTTLE K 1 1 0", "ERR zero rates are not supported"),
    ("CL.THROTTLE K 1 2000000000 1", "ERR zero rates are not supported"),
    ("CL.THROTTLE K 1 1 1.5", INTEGER),
    ("CL.THROTTLE K x 1 1", INTEGER),
    ("CL.THROTTLE K -2 1 1", INTEGER),
    ("CL.THROTTLE K 1 -1 1", INTEGER),
    ("CL.THROTTLE K 1 1 -1", INTEGER),
    ("CL.THROTTLE K 9223372036854775807 1 1", "ERR value is out of range: at this rate draining takes more than 104 days"),
    ("CL.THROTTLE K 1 1 9223372036854775807", "ERR value is out of range: at this rate draining takes more than 104 days"),
    ("CL.THROTTLE K 1 1 1 9223372036854775807", "ERR value is out of range: at this rate draining takes more than 104 days"),
    ("CL.THROTTLE K 1 1 1 -9223372036854775808", "ERR value is out of range: at this rate draining takes more than 104 days"),
    ("CL.THROTTLE K 1 1 1 9223372036854775808", INTEGER),
    ("LIMIT ACQUIRE K 0 1000", INTEGER),
    ("LIMIT ACQUIRE K -1 1000", INTEGER),
    ("LIMIT ACQUIRE K 10001 1000", INTEGER),
    ("LIMIT RESET K" + " k" * 64, "ERR too many keys: at most 64"),
    ("LIMIT ACQUIRE K x 1000", INTEGER),
    ("LIMIT ACQUIRE K 1 0", "ERR invalid expire time in 'limit|acquire' command"),
    ("LIMIT ACQUIRE K 1 -5", "ERR invalid expire time in 'limit|acquire' command"),
    ("LIMIT ACQUIRE K 1 9223372036854775807", "ERR invalid expire time in 'limit|acquire' command"),
    ("LIMIT ACQUIRE K 1 x", INTEGER),
    ("LIMIT ACQUIRE K 1 1000 COST 1", SYNTAX + "COST is not an option of 'limit|acquire'"),
    ("LIMIT ACQUIRE K 1 1000 WAIT", SYNTAX + "WAIT is the last word: its value is missing"),
    ("LIMIT ACQUIRE K 1 1000 WAIT -1", "ERR timeout is negative"),
    ("LIMIT RENEW K t 0", "ERR invalid expire time in 'limit|renew' command"),
    ("LIMIT RENEW K t x", INTEGER),
]  # fmt: skip


def test_a_wrong_call_is_an_error_and_writes_nothing(conn, redis):
    """Checks the texts. Nothing is written, and Redis is not asked."""
    before, asked = written(redis), script_calls(redis)
    for command, text in ERRORS:
        reply = conn.call(*command.replace(" K", " " + fresh()).split())
        assert reply == Error(text), command
        assert conn.call("ECHO", command) == command.encode(), "the replies are in step"
    assert written(redis) == before and script_calls(redis) == asked


def test_a_key_of_another_kind_is_wrongtype(conn, redis):
    key = fresh()
    commands = {
        "f": f"LIMIT FUNNEL {key} 5/h", "b": f"LIMIT BUCKET {key} 5/h", "z": f"LIMIT SLIDING {key} 5/h",
        "a": f"LIMIT SLIDING {key} 5/h APPROX", "w": f"LIMIT FIXED {key} 5/h", "t": f"LIMIT THROTTLE {key} 5 1 100",
        "h": f"LIMIT ACQUIRE {key} 5 100000", "r": f"LIMIT RENEW {key} t 1000", "l": f"LIMIT RELEASE {key} t",
    }  # fmt: skip
    for first in "fbzawth":
        conn.call("LIMIT", "RESET", key)
        assert not isinstance(conn.call(*commands[first].split()), Error)
        stored = redis.call("DUMP", f"limit:{key}")
        for other, command in commands.items():
            if other != first and not (first == "h" and other in "rl"):
                for peek in ("", " PEEK") if other in "fbzaw" else ("",):
                    assert conn.call(*(command + peek).split()) == WRONGTYPE, (first, other)
        assert redis.call("DUMP", f"limit:{key}") == stored
    for make in ("LPUSH {} a", "HSET {} a b", "SADD {} a", "SET {} hello", "ZADD {} 1 a", "SET {} 12x"):
        redis.call("DEL", f"limit:{key}")
        redis.call(*make.format(f"limit:{key}").split())
        stored = redis.call("DUMP", f"limit:{key}")
        for command in commands.values():
            assert conn.call(*command.split()) == WRONGTYPE, (make, command)
        assert redis.call("DUMP", f"limit:{key}") == stored and redis.call("PTTL", f"limit:{key}") == -1


def test_a_wrong_type_is_its_own(conn, redis):
    """The wrong type is an error of this call alone; other calls in the same script call are
    decided.
    """
    keys = [fresh() for _ in range(9)]
    redis.call("LPUSH", f"limit:{keys[4]}", "a")
    for command in ("FUNNEL {} 1/h", "SLIDING {} 1/h", "FIXED {} 1/h", "SLIDING {} 1/h APPROX", "ACQUIRE {} 1 9000"):
        asked = script_calls(redis)
        replies = conn.ask(*["LIMIT " + command.format(key) for key in keys])
        assert script_calls(redis) - asked <= 2
        assert replies.pop(4) == WRONGTYPE
        assert all(list(reply.values() if isinstance(reply, dict) else reply)[0] == 0 for reply in replies)
        conn.call("LIMIT", "RESET", *keys[:4], *keys[5:])


# ---- keys ----

KEYS = [b"", b"\0", b"a\0b", b"a\r\nb", b"\xff\xfe", b"{tag}rest", b" ", bytes(range(256)), b"k" * 1024, b"*1\r\n$4\r\nPING\r\n"]


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_each_algorithm_stores_one_key_under_the_prefix(conn, redis, key):
    conn.call("LIMIT", "RESET", key)
    conn.call("DEL", key)
    for command, options in (("FUNNEL", ["1/h"]), ("SLIDING", ["1/h"]), ("FIXED", ["1/100d"]), ("THROTTLE", [0, 1, 99])):
        assert list(decision(conn.call("LIMIT", command, key, *options)))[0] == 0
        assert redis.call("KEYS", "*") == [b"limit:" + key]
        assert list(decision(conn.call("LIMIT", command, key, *options)))[0] == 1
        assert conn.call("LIMIT", "RESET", key) == 1
    taken = place(conn.call("LIMIT", "ACQUIRE", key, 1, 9000))
    assert redis.call("KEYS", "*") == [b"limit:" + key]
    assert conn.call("LIMIT", "RENEW", key, taken.token, 9000) == 1
    assert conn.call("LIMIT", "RELEASE", key, taken.token) == 1
    assert conn.call("CL.THROTTLE", key, 0, 1, 99)[0] == 0
    assert redis.call("KEYS", "*") == [b"limit:" + key]


def test_keys_too_long(conn):
    """Keys longer than one read: an error, and the replies stay in step."""
    for n in (1025, 70_000, 1 << 20):
        for words in (["LIMIT", "FUNNEL", "k" * n, "1/h"], ["LIMIT", "RESET", "k", "k" * n], ["CL.THROTTLE", "k" * n, 1, 1, 1]):
            reply = conn.call(*words)
            assert reply == Error("ERR the key is too long: at most 1024 bytes") or n > 60_000 and reply == Error(
                "ERR the arguments are too long")
        assert conn.call("ECHO", "x") == b"x"
    assert decide(conn, "LIMIT FUNNEL " + "k" * 1024 + " 1/h").limited == 0
    assert conn.call("LIMIT", "RESET", "k" * 1024) == 1


@pytest.mark.parametrize("prefix", ["{app}:", "p", "x" * 128])
def test_limit_prefix_is_put_before_every_key(farm, redis, prefix):
    weir = farm.weir(redis, workers=1, limit_prefix=prefix)
    with weir.connect() as conn:
        assert decide(conn, "LIMIT FUNNEL k 1/h").limited == 0
        assert conn.call("LIMIT", "ACQUIRE", "places", 1, 9000)[0] == 0
        assert sorted(redis.call("KEYS", "*")) == [f"{prefix}k".encode(), f"{prefix}places".encode()]
        assert conn.call("LIMIT", "RESET", "k", "places") == 2


# ---- inline requests, and many keys ----


def test_decisions_can_be_asked_inline(conn):
    key = fresh()
    conn.send(f"limit funnel {key} 1/h\r\nLIMIT FUNNEL {key} 1/h COST\r\n".encode())
    assert decision(conn.read()).limited == 0
    assert conn.read() == Error(SYNTAX + "COST is the last word: its value is missing")


def test_reset_of_many(conn, redis):
    keys = [fresh() for _ in range(500)]
    assert admitted(decisions(conn, *[f"LIMIT FUNNEL {key} 1/h" for key in keys])) == 500
    assert redis.call("DBSIZE") == 500
    assert sum(conn.call("LIMIT", "RESET", *keys[i : i + 64]) for i in range(0, 500, 64)) == 500
    assert redis.call("DBSIZE") == 0


# ---- named limits ----

NAMED = """
[limit signup]
sliding = 5/100d, 8/200d
[limit Mail]
funnel = 2/h burst 3
[limit once]
fixed = 1/100d
[limit about]
approx = 4/100d
[limit tokens]
bucket = 1/h burst 2
"""


@pytest.fixture(params=[(1, "shared"), (2, "private")], ids=["1-shared", "2-private"])
def named(request, farm, redis):
    workers, lanes = request.param
    return farm.weir(redis, sections=NAMED, workers=workers, lanes=lanes)


def test_check_decides_by_the_named_limit(named, protocol, redis):
    with speaking(named.connect(), protocol) as conn:
        for name, limit in (("signup", 5), ("mail", 3), ("ONCE", 1), ("about", 4), ("tokens", 2)):
            found = [decide(conn, f"LIMIT CHECK {name} user") for _ in range(limit + 2)]
            assert [f[:3] for f in found] == [(0, limit, limit - 1 - i) for i in range(limit)] + [(1, limit, 0)] * 2
        assert decide(conn, "LIMIT CHECK signup other COST 4")[:3] == (0, 5, 1)
        assert decide(conn, "LIMIT CHECK signup other COST 6")[:4] == (1, 5, 1, -1)
        assert decide(conn, "LIMIT CHECK signup other PEEK")[:3] == (0, 5, 1)
        assert decide(conn, "LIMIT CHECK Mail other WAIT 10")[:3] == (0, 3, 2)
        assert conn.call("LIMIT", "RESET", "mail:other", "signup:user") == 2
        assert decide(conn, "LIMIT CHECK mAIL other")[:3] == (0, 3, 2)
        assert conn.call("LIMIT", "CHECK", "signpu", "user") == Error("ERR no limit is named 'signpu' (did you mean signup?)")
        assert conn.call("LIMIT", "CHECK", "xyzzyxyzzy", "user") == Error("ERR no limit is named 'xyzzyxyzzy'")
        assert conn.call("LIMIT", "CHECK", b"a\r\n+OK\0", "user").startswith("ERR no limit is named 'a")
        assert conn.call("LIMIT", "CHECK", "", "user").startswith("ERR no limit is named ''")
        assert conn.call("ECHO", "x") == b"x"


def test_check_after_reload(named, redis):
    def reload(sections):
        text = named.config.read_text().split("[limit")[0] + sections
        named.config.write_text(text)
        named.signal(1)

    with named.connect() as conn:
        assert [decide(conn, "LIMIT CHECK mail user").limited for _ in range(4)] == [0, 0, 0, 1]
        reload(NAMED.replace("2/h burst 3", "2/h burst 5").replace("[limit once]", "[limit twice]"))
        wait_until(lambda: decide(conn, "LIMIT CHECK mail user PEEK").limit == 5, "the new burst")
        assert [decide(conn, "LIMIT CHECK mail user").limited for _ in range(3)] == [0, 0, 1]
        assert conn.call("LIMIT", "CHECK", "once", "user").startswith("ERR no limit is named 'once'")
        assert decide(conn, "LIMIT CHECK twice user").limited == 0
        reload(NAMED.replace("funnel = 2/h burst 3", "funel = 2/h"))
        wait_until(lambda: "funel" in named.log(), "it is told")
        assert decide(conn, "LIMIT CHECK mail user").limit == 5


# ---- keys of each user ----


@pytest.fixture
def names(redis):
    """ACL users with names that look like parts of keys, with the password pw."""
    found = ["ann", "ann:k", "ann%3Ak", "a\xff%u"]
    for name in found:
        redis.call("ACL", "SETUSER", name, "on", ">pw", "-@all", "+ping")
    yield found
    redis.call("ACL", "DELUSER", *found)


@pytest.mark.parametrize("workers, lanes", [(1, "shared"), (2, "private")])
def test_each_user_has_keys_of_its_own(farm, redis, names, workers, lanes):
    """No other user can reach these keys, whatever the user's name and whatever key a command
    names.
    """
    weir = farm.weir(redis, workers=workers, lanes=lanes, limit_prefix="limit:%u:", sections=NAMED)
    with weir.connect() as conn:
        def every(command):
            return [decide(conn, command).limited for _ in range(2)]

        assert every("LIMIT FIXED k 1/100d") == [0, 1]
        for name in names:
            assert conn.call("AUTH", name, "pw") == "OK"
            assert every("LIMIT FIXED k 1/100d") == [0, 1]
            assert every("LIMIT FIXED k:k 1/100d") == [0, 1]
            assert every("LIMIT CHECK once k") == [0, 1]
        assert conn.call("LIMIT", "RESET", "k", "k:k", "default:k", "../k") == 2
        assert conn.call("RESET") == "RESET"
        assert decide(conn, "LIMIT FIXED k 1/100d PEEK").limited == 1, "default's is as it was"
    keys = {key.decode() for key in redis.call("KEYS", "*")}
    assert {"limit:default:k", "limit:ann:k", "limit:ann%3Ak:once:k", "limit:ann%253Ak:k:k"} < keys


def test_the_channel_is_everybodys(farm, redis, names):
    """All users share one channel, so weir's own user needs rights for that channel alone."""
    weir = farm.weir(redis, workers=2, limit_prefix="limit:%u:")
    with weir.connect() as holder, weir.connect() as waiter:
        for conn in (holder, waiter):
            assert conn.call("AUTH", "ann", "pw") == "OK"
        held = place(holder.call("LIMIT", "ACQUIRE", "k", 1, 100_000))
        waiter.send(pipeline("LIMIT ACQUIRE k 1 100000 WAIT 100000"))
        wait_until(lambda: redis.call("PUBSUB", "CHANNELS") == [b"limit:released"], "it listens")
        assert holder.call("LIMIT", "RELEASE", "k", held.token) == 1
        assert place(waiter.read()).limited == 0


def test_a_name_too_long(farm, redis):
    weir = farm.weir(redis, workers=1, limit_prefix="limit:%u:")
    for n, error in ((255, None), (256, Error("ERR the user's name is too long for keys of its own: at most 255 bytes"))):
        redis.call("ACL", "SETUSER", "u" * n, "on", ">pw", "+@all")
        try:
            with weir.connect() as conn:
                assert conn.call("AUTH", "u" * n, "pw") == "OK"
                reply = conn.call("LIMIT", "FUNNEL", "k", "1/h")
                assert reply == error if error else decision(reply).limited == 0
                assert conn.call("PING") == "PONG"
        finally:
            redis.call("ACL", "DELUSER", "u" * n)


# ---- commands that write ----

APART = """
[class steering]
commands = @limit-write, -limit|check
[policy app]
match = name:app
steering = deny
[policy looker]
match = name:looker
@limit-write = deny
[policy checker]
match = name:checker
cmd.limit|reset = deny
""" + NAMED


def test_classes_of_subcommands(farm, redis):
    weir = farm.weir(redis, workers=1, sections=APART)
    with weir.connect() as conn:
        conn.call("CLIENT", "SETNAME", "app")
        assert decide(conn, "LIMIT CHECK once k").limited == 0
        for command in ("LIMIT RESET once:k", "LIMIT FUNNEL k 1/h", "CL.THROTTLE k 1 1 1", "LIMIT RELEASE k t"):
            assert conn.call(*command.split()) == Error("NOPERM denied by policy app"), command
        assert plain(conn.call("LIMIT", "STATUS"))[2:4] == ["policy", "app"]
        conn.call("CLIENT", "SETNAME", "looker")
        assert conn.call("LIMIT", "CHECK", "once", "k") == Error("NOPERM denied by policy looker")
        assert plain(conn.call("LIMIT", "EXPLAIN", "LIMIT", "RESET", "k"))[2:4] == ["policy", "looker"]
        assert isinstance(conn.call("LIMIT", "HELP"), list)
        conn.call("CLIENT", "SETNAME", "checker")
        assert conn.call("LIMIT", "RESET", "once:k") == Error("NOPERM denied by policy checker")
        assert decide(conn, "LIMIT CHECK once k").limited == 1
