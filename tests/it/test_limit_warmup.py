"""BUCKET with BORROW and WARMUP compared with Guava's RateLimiter.create(rate, warmup), in exact
numbers, and through weir.
"""

import random
from fractions import Fraction

import pytest
from kit.decisions import WRONGTYPE, decide, decisions, fresh
from kit.resp import Error
from test_limit_scripts import NOW, WRONG, source

NS = 10**9
RECORD = 33
FULL = b"ERR the key still owes at 8 other rates: give this one a key of its own"


class Guava:
    """SmoothWarmingUp as documented. Permits are stored while no caller asks. Stored permits beyond
    a threshold cost more than fresh ones, increasingly. Times are ns since the beginning.
    """

    def __init__(self, interval, warmup, cold=3):
        self.interval, self.warmup = Fraction(interval), Fraction(warmup)
        self.threshold = self.warmup / 2 / self.interval
        self.most = self.threshold + 2 * self.warmup / (self.interval + cold * self.interval)
        self.slope = (cold - 1) * self.interval / (self.most - self.threshold)
        self.stored, self.next_free = self.most, Fraction(0)

    def sync(self, now):
        if now > self.next_free:
            self.stored = min(self.most, self.stored + (now - self.next_free) / (self.warmup / self.most))
            self.next_free = Fraction(now)

    def of_stored(self, permits):
        """Returns the time of this many stored permits: the area under the line, from the right."""
        above = max(Fraction(0), min(permits, self.stored - self.threshold))
        high = self.interval + max(Fraction(0), self.stored - self.threshold) * self.slope
        return above * (high + high - above * self.slope) / 2 + (permits - above) * self.interval

    def try_acquire(self, permits, now):
        """Without a time-out. acquire() would have waited for next_free - now."""
        self.sync(now)
        if self.next_free > now:
            return False
        spent = min(Fraction(permits), self.stored)
        self.next_free += self.of_stored(spent) + (permits - spent) * self.interval
        self.stored -= spent
        return True


class Warm:
    """The script on one key."""

    def __init__(self, redis):
        self.conn = redis.connect()
        self.sha = self.conn.call("SCRIPT", "LOAD", source("warm"))

    def call(self, key, now, interval, cost, warmup, burst=1, n=1, how="0"):
        """Returns debt and rest before, the stored value, and its ms to live. The call is in a
        transaction, where no key expires.
        """
        numbers = (interval, interval * cost, interval * (burst - 1), warmup)
        call = ("EVALSHA", self.sha, 1, key, 0, now, how, *numbers, n)
        return self.conn.ask(("MULTI",), call, ("GET", key), ("PTTL", key), ("PERSIST", key), ("EXEC",))[-1][:3]


@pytest.fixture
def warm(redis):
    return Warm(redis)


RATES = [
    (10**8, 5 * NS),
    (10**6, NS),
    (333_333_334, 7 * NS + 1),
    (NS, 500 * 10**6),  # less than one permit is ever stored
    (1, 10**6),
    (123_457, 3600 * NS),
    (60 * NS, 3600 * NS),
]


@pytest.mark.parametrize("interval, warmup", RATES)
def test_each_call_costs_what_guavas_does(warm, interval, warmup):
    """From the same state: rounded up by less than a ns, and never less."""
    rng = random.Random(interval)
    for _ in range(300):
        warm.conn.call("DEL", "k")
        now = NOW
        for _ in range(rng.choice([1, 2, 4])):
            reply, _, _ = warm.call("k", now, interval, 0, warmup, how="1")
            debt, rest = reply
            guava = Guava(interval, warmup)
            guava.stored, guava.next_free = Fraction(rest, interval), Fraction(debt)
            cost = rng.choice([1, 1, 2, 3, rng.randint(1, 10 * (1 + warmup // interval))])
            cost = min(cost, 2**52 // interval)
            before, value, left = warm.call("k", now, interval, cost, warmup)
            assert before == [debt, rest]
            after, _, _ = warm.call("k", now, interval, 0, warmup, how="1")
            assert guava.try_acquire(cost, 0) == (after != before) == (debt == 0)
            assert 0 <= after[0] - guava.next_free < 1, (debt, rest, cost, after)
            assert Fraction(after[1], interval) == guava.stored
            if after != before:
                assert len(value) == 1 + RECORD and value[:1] == b"g"
                ms = -(-(after[0] + warmup - after[1]) // 10**6)
                assert ms - 50 <= left <= ms
            now += rng.choice([0, after[0] // 2000, -(-after[0] // 1000), -(-after[0] // 1000) + rng.randrange(1 + warmup // 500)])


@pytest.mark.parametrize("interval, warmup", [(10**8, 5 * NS), (10**6, NS), (333_333_334, 7 * NS + 1)])
def test_a_run_is_guavas(warm, interval, warmup):
    """Calls at the same times, with pauses: the same calls pass. Rounding stays within a us, so the
    test makes no call within that.
    """
    rng = random.Random(f"run {interval}")
    guava, now, passed, refused = Guava(interval, warmup), NOW, 0, 0
    for _ in range(1500):
        cost = rng.choice([1, 1, 1, 2, 5])
        owed = guava.next_free - (now - NOW) * 1000
        assert abs(max(owed, 0) - warm.call("k", now, interval, 0, warmup, how="1")[0][0]) < 1000
        if abs(owed) > 1000 or now == NOW:
            (debt, _), _, _ = warm.call("k", now, interval, cost, warmup)
            assert guava.try_acquire(cost, (now - NOW) * 1000) == (debt == 0)
            passed, refused = passed + (debt == 0), refused + (debt > 0)
        left = int(max(guava.next_free - (now - NOW) * 1000, 0)) // 1000
        pause = rng.choice([0, left // 2, left + 3, left + interval // 500, left + warmup // 4000])
        now += pause if rng.random() < 0.98 else left + rng.randrange(warmup // 500)
    assert passed > 300 and refused > 300


def test_a_cold_limit_begins_slowly(warm):
    """Ten a second, from cold: the first 25 take 5 s, the first interval nearly three times the
    last; then it is ten a second.
    """
    interval, warmup, now, turns = 10**8, 5 * NS, NOW, []
    for _ in range(60):
        (debt, _), _, _ = warm.call("k", now, interval, 1, warmup)
        assert debt == 0
        turns.append(now)
        now += -(-warm.call("k", now, interval, 0, warmup, how="1")[0][0] // 1000)
    steps = [(b - a) / 10**5 for a, b in zip(turns, turns[1:])]
    assert abs(steps[0] - 2.96) < 0.01 and abs(steps[24] - 1.04) < 0.01 and steps[25:] == [1.0] * 34
    assert abs(turns[25] - turns[0] - 5 * 10**6) < 100
    rested = now + 2_500_000  # half of the warm-up: not cold yet
    assert warm.call("k", rested, interval, 1, warmup)[0] == [0, 25 * 10**8]
    assert warm.call("k", rested, interval, 0, warmup, how="1")[0] == [10**8, 24 * 10**8]


def test_calls_that_come_together(warm):
    """As many pass as one after the other."""
    rng = random.Random(3)
    for _ in range(200):
        interval, warmup = rng.choice(RATES[:4])
        burst, cost, n = rng.randint(1, 40), rng.choice([1, 1, 2, 7]), rng.randint(1, 60)
        warm.conn.call("DEL", "one", "many")
        now = NOW
        for _ in range(3):
            alone = 0
            for _ in range(n):
                debt = warm.call("one", now, interval, cost, warmup, burst)[0][0]
                alone += debt <= interval * (burst - 1)
            (debt, rest), _, _ = warm.call("many", now, interval, cost, warmup, burst, n)
            left = [warm.call(key, now, interval, 0, warmup, how="1")[0] for key in ("one", "many")]
            taken = alone * cost * interval
            assert left[1][1] == max(0, rest - taken) or abs(left[0][0] - left[1][0]) <= n
            assert abs(left[0][0] - left[1][0]) <= 3 * n and abs(left[0][1] - left[1][1]) <= 3 * n
            now += rng.randrange(1 + (left[0][0] + warmup) // 1000)


def test_a_clock_that_goes_back(warm):
    interval, warmup = 10**8, 5 * NS
    warm.call("k", NOW, interval, 3, warmup)
    owed = warm.call("k", NOW, interval, 0, warmup, how="1")[0]
    back = NOW - 3600 * 10**6
    reply, value, left = warm.call("k", back, interval, 1, warmup)
    assert reply == owed and owed[0] > 0, "as it was, not an hour more"
    assert warm.call("k", back + owed[0] // 1000 + 1, interval, 1, warmup)[0][0] == 0


def test_rates_beside_each_other(warm):
    """Each rate and warm-up has its own state. A new one begins cold, with the present debt. Eight
    at most.
    """
    rates = [(10**8, (i + 1) * NS) for i in range(4)] + [(10**9 + i, 10 * NS) for i in range(4)]
    owed = 0
    for n, (interval, warmup) in enumerate(rates):
        reply, value, _ = warm.call("k", NOW, interval, 1, warmup, burst=1000)
        assert reply == [owed, warmup] and len(value) == 1 + RECORD * (n + 1)
        owed = warm.call("k", NOW, interval, 0, warmup, how="1")[0][0]
    reply, after, _ = warm.call("k", NOW, 10**7, 1, NS, burst=10**5)
    assert (reply, after) == ([FULL, 0], value)
    assert warm.call("k", NOW, *rates[1][:1], 1, rates[1][1])[0][1] == 2 * NS - 10**8, "as if it were alone"
    later = NOW + 20 * 10**6  # the whole warm-up of some rates has passed
    _, value, _ = warm.call("k", later, 10**7, 1, NS)
    assert (len(value) - 1) // RECORD < 8


def test_a_key_of_something_else_is_refused(warm):
    for value in (b"g", b"b" + b"x" * 19, b"w1:1", b"g" + b"x" * 32):
        warm.conn.call("SET", "k", value)
        assert warm.call("k", NOW, 10**8, 1, NS)[:2] == [[WRONG, 0], value]
    warm.conn.call("DEL", "k")
    warm.conn.call("SADD", "k", "x")
    assert warm.call("k", NOW, 10**8, 1, NS)[0] == [WRONG, 0]


# ---- through weir ----


def test_over_the_wire(redis, weir):
    key = fresh()
    with weir.connect() as conn:
        call = f"LIMIT BUCKET {key} 10/s BURST 1 BORROW WARMUP 5s"
        look = decide(conn, f"{call} COST 0")
        assert look == (0, 1, 1, -1, 0)
        assert redis.call("EXISTS", f"limit:{key}") == 0
        found = decide(conn, f"{call} COST 10")
        assert found == (0, 1, 0, -1, 2600 + 1000), "ten of them cost 2.6 s, and 1 s of the rest"
        refused = decide(conn, call)
        assert refused[:3] == (1, 1, 0) and 0 < refused.retry <= 2600 and refused.reset == refused.retry + 1000
        assert decide(conn, f"LIMIT BUCKET {key} 10/s BURST 1 BORROW") == WRONGTYPE
        assert conn.call("LIMIT", "RESET", key) == 1
        found = decisions(conn, *[f"LIMIT BUCKET {key} 10/h BURST 3 BORROW WARMUP 1h"] * 3)
        assert [f[:3] for f in found] == [(0, 3, 0), (1, 3, 0), (1, 3, 0)], "the first costs nearly three"
        assert redis.call("GETRANGE", f"limit:{key}", 0, 0) == b"g"


@pytest.mark.parametrize(
    "command, why",
    [
        ("BUCKET k 10/s WARMUP 5s", "WARMUP is for BUCKET with BORROW"),
        ("BUCKET k 10/s FORCE WARMUP 5s", "WARMUP is for BUCKET with BORROW"),
        ("FUNNEL k 10/s BORROW WARMUP 5s", "syntax error, WARMUP is not an option of 'limit|funnel'"),
        ("FIXED k 10/s WARMUP 5s", "syntax error, WARMUP is not an option of 'limit|fixed'"),
        ("CHECK n k BORROW WARMUP 5s", "syntax error, WARMUP is not an option of 'limit|check'"),
        ("BUCKET k 10/s 20/m BORROW WARMUP 5s", "WARMUP takes one rate"),
        ("ALL BUCKET k 10/s AND BUCKET l 10/s BORROW WARMUP 5s", "WARMUP is for one key"),
        ("BUCKET k 10/s BORROW WARMUP 0", "WARMUP is longer than 0 and at most an hour"),
        ("BUCKET k 10/s BORROW WARMUP 61m", "WARMUP is longer than 0 and at most an hour"),
        ("BUCKET k 10/s BORROW WARMUP x", '"x" is not a time: write ms, s, m, h or d, or a number of them (60s)'),
        ("BUCKET k 10/s BORROW WARMUP", "syntax error, WARMUP is the last word: its value is missing"),
        ("BUCKET k 10/s BORROW WARMUP 1s WARMUP 1s", "syntax error, WARMUP is given twice"),
        ("BUCKET k 10/s BORROW WARMUP 1s WAIT 5", "at most one of WAIT, PEEK, FORCE, PARTIAL, BORROW and CREDIT"),
        ("BUCKET k 10/day BORROW WARMUP 1s", "day, week and month are for FIXED, not bucket with warmup"),
        ("BUCKET k 1/s BORROW WARMUP 1h COST 9007199", "this COST at this rate takes more than 104 days to drain"),
    ],
)
def test_what_it_does_not_take(weir, command, why):
    with weir.connect() as conn:
        assert conn.call("LIMIT", *command.split()) == Error(f"ERR {why}")
