"""One key with many rates: no rate lets another pass more than the other would alone, and a refusal
writes nothing.

The scripts run under a clock that the test sets. A reference keeps for each rate the calls that
passed under it, and nothing else, in unbounded integers. A key decides no call more generously than
the reference of its rate.
"""

import random
from collections import defaultdict

import pytest
from kit.harness import rounds
from kit.resp import Error
from test_limit_scripts import FULL, MANY, NOW, Scripts, milliseconds

SEEDS = range(rounds(20))
CALLS = 150
MS = 1000  # us
MOST = 8


@pytest.fixture
def scripts(redis):
    return Scripts(redis)


class Alone:
    """What each rate would pass if it were the only one: GCRA for a funnel, a list of calls for
    windows.
    """

    def __init__(self, name):
        self.name = name
        self.tats = defaultdict(int)  # of a funnel: by interval, in ns
        self.passed = defaultdict(list)  # of a window: by period, (us, cost)

    def used(self, period, now):
        """Returns the least usage that a correct count can report."""
        here = now - now % period
        calls = self.passed[period]
        if self.name == "sliding":
            return sum(cost for at, cost in calls if at > now - period)
        current = sum(cost for at, cost in calls if at >= here)
        previous = sum(cost for at, cost in calls if here - period <= at < here)
        return current if self.name == "fixed" else current + -(-previous * (here + period - now) // period)

    def allows(self, rate, cost, now):
        count, period = rate
        if self.name == "funnel":
            interval = -(-period * 1000 // count)
            return max(self.tats[interval] - now * 1000, 0) + cost * interval <= count * interval
        return self.used(period, now) + cost <= count

    def charge(self, rates, cost, now):
        for count, period in set(rates):
            interval = -(-period * 1000 // count)
            self.tats[interval] = max(self.tats[interval], now * 1000)
        for interval in {-(-period * 1000 // count) for count, period in rates}:
            self.tats[interval] += cost * interval
        for period in {period for _, period in rates}:
            self.passed[period].append((now, cost))


def words(name, rates, cost):
    if name != "funnel":
        return [cost, len(rates), *(number for rate in rates for number in rate)]
    out = ["f", len(rates)]
    for count, period in rates:
        interval = -(-period * 1000 // count)
        burst = interval * count
        out += [interval, cost * interval if cost <= count else burst + 1, burst, burst]
    return out


def granted(name, reply, rates, cost):
    assert not isinstance(reply, Error), reply
    if isinstance(reply[0], bytes):
        assert reply[0] in (FULL, MANY), reply
        return None
    if name != "funnel":
        return reply[0] == 1
    intervals = [(-(-period * 1000 // count), count) for count, period in rates]
    return all(debt + cost * interval <= interval * count for debt, (interval, count) in zip(reply, intervals))


class Key:
    """A key that the test expires by its own clock."""

    def __init__(self, scripts, name):
        self.scripts, self.name, self.stored, self.over = scripts, name, None, None

    def ask(self, rates, cost, now, peek=False):
        """Returns the reply, and whether anything was written. Repeats the call if a millisecond of
        Redis' own clock ended meanwhile: the expiry would differ from that of the test's clock.
        """
        asked = self.scripts.command(self.name, ["k"], words(self.name, rates, cost), [1], now, peek=peek)
        left = self.over - now // MS if self.stored and self.over is not None else 0
        before = self.stored if left > 0 else None
        put = [("RESTORE", "k", left, before)] if before else []
        for _ in range(1000):
            wanted = [("TIME",), ("DEL", "k"), *put, asked, ("PTTL", "k"), ("DUMP", "k"), ("TIME",)]
            done = self.scripts.conn.ask(("MULTI",), *wanted, ("EXEC",))[-1]
            assert isinstance(done, list), done
            *_, reply, left, after, then = done
            if milliseconds(done[0]) == milliseconds(then):
                break
        else:
            raise AssertionError("no call was done within a millisecond")
        if after != before:
            self.over = -(-now // MS) + left if left > 0 else None
        self.stored = after
        return reply, after != before


@pytest.mark.parametrize("name", ["funnel", "sliding", "approx", "fixed"])
def test_no_rate_lets_another_pass_more(scripts, name):
    passed = refused = full = 0
    for seed in SEEDS:
        rng = random.Random(f"{name} {seed}")
        scripts.conn.call("FLUSHALL")
        key, alone, now = Key(scripts, name), Alone(name), NOW + rng.randrange(10**12)
        periods = [MS * rng.choice([1, 10, 100, 1000, 60_000, 3600_000, 86_400_000]) for _ in range(rng.randint(2, 12))]
        rates = [(rng.randint(1, 12), rng.choice(periods)) for _ in range(rng.randint(2, 14))]
        for _ in range(CALLS):
            some = [rng.choice(rates) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
            cost, peek = rng.choice([1, 1, 1, 2, 5]), rng.random() < 0.1
            reply, is_written = key.ask(some, cost, now, peek)
            is_granted = granted(name, reply, some, cost)
            story = (seed, some, cost, now, reply)
            if is_granted:
                assert all(alone.allows(rate, cost, now) for rate in some), story
                assert not (is_written and peek), story
            else:
                assert not is_written, story
            if is_granted and not peek:
                alone.charge(some, cost, now)
            passed, refused, full = passed + bool(is_granted), refused + (is_granted is False), full + (is_granted is None)
            now += rng.choice([0, 0, 0, 1, MS, 10 * MS, rng.randrange(1000 * MS), rng.choice(periods) // 2, rng.choice(periods)])
    assert passed > 500 and refused > 500, (passed, refused, full)


@pytest.mark.parametrize("name", ["funnel", "approx", "fixed"])
def test_a_rate_is_as_alone_beside_others(scripts, name):
    """Nor does a rate admit less: where each rate has a state of its own, other rates do not change
    it.
    """
    for seed in range(10):
        rng = random.Random(f"as alone {seed}")
        scripts.conn.call("FLUSHALL")
        key, alone, now = Key(scripts, name), Alone(name), NOW + rng.randrange(10**12)
        # each funnel holds more time than the next
        rates = [(7, 86_400_000 * MS), (10, 3600_000 * MS), (3, 60_000 * MS)]
        for rate in rates if name == "funnel" else []:
            key.ask([rate], 1, now)
            alone.charge([rate], 1, now)
        for _ in range(CALLS):
            some = rng.sample(rates, rng.choice([1, 1, 2]))
            reply, _ = key.ask(some, 1, now)
            is_granted = granted(name, reply, some, 1)
            assert is_granted == all(alone.allows(rate, 1, now) for rate in some), (seed, some, now, reply)
            if is_granted:
                alone.charge(some, 1, now)
            now += rng.choice([0, 0, 0, 1, rng.randrange(60_000 * MS)])


HOUR = 3600_000 * MS


@pytest.mark.parametrize("name", ["funnel", "sliding", "approx", "fixed"])
def test_a_short_rate_beside_a_long_one(scripts, name):
    """Ten a day, and one each 100 ms: ten of the first pass, however often the second is asked."""
    key, now, passed = Key(scripts, name), NOW - NOW % (24 * HOUR) + HOUR, 0
    for _ in range(300):
        passed += granted(name, key.ask([(10, 24 * HOUR)], 1, now)[0], [(10, 24 * HOUR)], 1)
        key.ask([(1, 100 * MS)], 1, now)
        now += 101 * MS
    assert passed == 10 if name != "sliding" else 5 <= passed <= 10


@pytest.mark.parametrize("name", ["funnel", "sliding", "approx", "fixed"])
def test_the_order_of_rates_is_nothing(scripts, name):
    key, both = Key(scripts, name), [(10, HOUR), (100, HOUR)]
    now = NOW - NOW % HOUR
    assert sum(granted(name, key.ask(both[:: (-1) ** i], 1, now)[0], both, 1) for i in range(40)) == 10


def burst(interval, n, cost=1):
    return ["f", 1, interval, cost * interval, n * interval, n * interval]


def test_a_smaller_burst_forgets_nothing(scripts):
    """Whether the call is refused or passes."""
    ten = 10 * 10**9
    call = lambda n, now=NOW: scripts.call("funnel", ["k"], burst(ten, n), now=now)[0]
    assert [call(10) for _ in range(11)] == [i * ten for i in range(11)]
    before = scripts.conn.call("DUMP", "k")
    assert call(2) == 10 * ten and call(10) == 10 * ten
    assert scripts.conn.call("DUMP", "k") == before
    later = NOW + 90 * 10**6
    assert call(2, later) == ten and call(10, later) == 2 * ten
    passed, now = 0, NOW + 10**9
    for i in range(2000):
        passed += scripts.call("funnel", ["other"], burst(ten, 10), now=now)[0] <= 9 * ten
        scripts.call("funnel", ["other"], burst(ten, 1), now=now)
        now += 2000
    assert passed == 10


@pytest.mark.parametrize("name", ["funnel", "approx", "fixed"])
def test_too_many_rates_on_a_key(scripts, name):
    """A key keeps eight active rates. The ninth gets an error, and no rate is forgotten, until one
    of them ends.
    """
    key, error = Key(scripts, name), FULL if name == "funnel" else MANY
    now = NOW - NOW % (24 * HOUR)
    eight = [[(1, hours * HOUR)] for hours in range(1 + MOST, 1, -1)]
    assert all(granted(name, key.ask(rate, 1, now)[0], rate, 1) for rate in eight)
    reply, is_written = key.ask([(1, HOUR)], 1, now)
    assert reply[0] == error and not is_written
    assert not any(granted(name, key.ask(rate, 1, now)[0], rate, 1) for rate in eight)
    assert granted(name, key.ask([(1, HOUR)], 1, now + 5 * HOUR)[0], [(1, HOUR)], 1)


def test_another_count_goes_on(scripts):
    """Another count for the same period: a window goes on with its count, a funnel with the time
    that it owes.
    """
    for name in ("funnel", "sliding", "approx", "fixed"):
        key, now = Key(scripts, name), NOW - NOW % HOUR
        scripts.conn.call("DEL", "k")
        for _ in range(5):
            key.ask([(5, HOUR)], 1, now)
        passed = sum(granted(name, key.ask([(10, HOUR)], 1, now)[0], [(10, HOUR)], 1) for _ in range(20))
        assert passed == (5 if name != "funnel" else 0), name
        assert not granted(name, key.ask([(5, HOUR)], 1, now)[0], [(5, HOUR)], 1), "nor has it been forgotten"


# ---- keys from versions without names of rates ----


def test_keys_of_before(scripts):
    """Old keys go on. In the key of a window an old version reads what this version has written."""
    conn, call = scripts.conn, scripts.call
    second, start = 10**9, NOW - NOW % (60 * 10**6)
    tat = NOW * 1000 + 2 * second
    conn.call("SET", "f", f"f{tat}", "PX", 2000)
    assert call("funnel", ["f"], burst(second, 3), now=NOW) == [2 * second]
    assert call("funnel", ["f"], burst(second, 3), now=NOW) == [3 * second]
    conn.call("SET", "q", f"F{tat + 60 * second}", "PX", 62000)
    assert call("funnel", ["q"], burst(second, 1), now=NOW) == [62 * second], "turns stay"
    conn.call("SET", "two", f"b{tat} {tat + 600 * second}", "PX", 700_000)
    params = ["b", 2, second, second, 3 * second, 3 * second, 60 * second, 60 * second, 900 * second, 900 * second]
    assert call("funnel", ["two"], params, now=NOW) == [2 * second, 602 * second]
    assert call("funnel", ["two"], params, now=NOW) == [3 * second, 662 * second]

    conn.call("SET", "w", f"w{start}:3", "PX", 60_000)
    assert call("fixed", ["w"], [1, 1, 5, 60 * 10**6], now=NOW)[:2] == [1, 3]
    moment, count = conn.call("GET", "w")[1:].split(b":")
    assert start < int(moment) < start + 60 * 10**6 and moment.endswith(b"6000005") and count == b"4"
    assert len(conn.call("GET", "w")) == len(f"w{start}:3")
    conn.call("SET", "a", f"a{start}:3:4", "PX", 60_000)
    assert call("approx", ["a"], [1, 1, 50, 60 * 10**6], now=start)[:2] == [1, 7]
    assert len(conn.call("GET", "a")) == len(f"a{start}:3:4")
