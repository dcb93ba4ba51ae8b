"""The script for several keys, called directly: all or none, and each key as if called alone.

The oracle is the script of each algorithm, called on a copy of each key from before.
"""

import random

import pytest
from kit.resp import Error
from test_limit_scripts import FULL, MANY, NOW, WRONG, Scripts

SEEDS = range(12)
CALLS = 120
HOUR = 3600 * 10**6  # us
STEP = 4 * 10**6  # ns: the resolution of a stored debt of a funnel
NS = 1000  # ns of one us


@pytest.fixture
def scripts(redis):
    return Scripts(redis)


class Part:
    """A key with one algorithm and the same rates throughout."""

    def __init__(self, rng, key):
        self.key, self.script = key, rng.choice(["funnel", "funnel", "sliding", "approx", "fixed"])
        self.tag = rng.choice("fb")
        self.rates = [(rng.randint(1, 12), rng.choice([1, 2, 5, 24]) * HOUR) for _ in range(rng.choice([1, 1, 2, 3]))]

    @property
    def width(self):
        return len(self.rates) if self.script == "funnel" else 1 + 3 * len(self.rates)

    def numbers(self, cost):
        if self.script != "funnel":
            return [cost, len(self.rates), *(number for rate in self.rates for number in rate)]
        out = [self.tag, len(self.rates)]
        for count, period in self.rates:
            interval = -(-period * NS // count)
            out += [interval, cost * interval if cost <= count else count * interval + 1, count * interval, count * interval]
        return out

    def fitting(self, cost, n, told):
        """Returns how many of n calls fit, by the algorithm's own script."""
        assert not isinstance(told[0], bytes), told
        if self.script != "funnel":
            return told[0]
        numbers = self.numbers(cost)[2:]
        return min([n, *(max(0, numbers[4 * r + 2] - debt) // numbers[4 * r + 1] for r, debt in enumerate(told))])


class Call:
    """One call on some parts, and its expected result."""

    def __init__(self, scripts, parts, rng, now):
        self.scripts, self.parts, self.now = scripts, parts, now
        self.n = rng.choice([1, 1, 1, 2, 5])
        self.costs = [rng.choice([1, 1, 1, 2, 3]) for _ in parts]
        self.letters = [rng.choice("-------sl") for _ in parts]
        self.how = rng.choice(["", "", "", "", "f"])
        self.peek = rng.random() < 0.1

    def alone(self, i, n, peek=False):
        """Returns the result of n calls of the i-th part's own script on its copy."""
        part, conn = self.parts[i], self.scripts.conn
        return self.scripts.call(part.script, ["copy:" + part.key], part.numbers(self.costs[i]), [n], self.now, peek=peek, how=self.how)

    def words(self):
        for part, cost, letter in zip(self.parts, self.costs, self.letters):
            yield from (part.script, letter, *part.numbers(cost))

    def check(self):
        conn = self.scripts.conn
        for part in self.parts:
            conn.call("DEL", "copy:" + part.key)
            conn.call("COPY", part.key, "copy:" + part.key)
        told = [self.alone(i, self.n, peek=True) for i in range(len(self.parts))]
        fitting = [self.n if self.how == "f" else part.fitting(cost, self.n, one) for part, cost, one in zip(self.parts, self.costs, told)]
        granted = min([self.n, *(fit for fit, letter in zip(fitting, self.letters) if letter == "-")])
        keys = [part.key for part in self.parts]
        reply = self.scripts.call("all", keys, [len(keys), *self.words()], [self.n], self.now, peek=self.peek, how=self.how)
        story = (keys, self.costs, self.letters, self.how, self.peek, self.n, self.now, reply)
        assert not isinstance(reply, Error) and len(reply) == sum(part.width for part in self.parts), story
        for i, part in enumerate(self.parts):
            mine, reply = reply[: part.width], reply[part.width :]
            charged = 0 if self.peek or self.letters[i] == "l" else min(granted, fitting[i])
            if charged:
                alone = self.alone(i, charged)
                assert mine[1:] == alone[1:] if part.script != "funnel" else mine == alone, (part.script, alone, story)
            if part.script != "funnel":
                assert mine[0] == fitting[i], story
            assert conn.call("DUMP", part.key) == conn.call("DUMP", "copy:" + part.key), (part.key, part.script, story)
        return granted


def test_all_or_nothing(scripts):
    """After a refused call every key is unchanged. After a granted call each key is as if called
    alone.
    """
    passed = refused = cut = 0
    for seed in SEEDS:
        rng = random.Random(f"several {seed}")
        scripts.conn.call("FLUSHALL")
        pool, now = [Part(rng, f"k{i}") for i in range(6)], NOW + rng.randrange(10**12)
        for _ in range(CALLS):
            call = Call(scripts, rng.sample(pool, rng.randint(1, 5)), rng, now)
            granted = call.check()
            passed, refused, cut = passed + (granted == call.n), refused + (granted == 0), cut + (0 < granted < call.n)
            now += rng.choice([0, 0, 0, 1, 10**6, rng.randrange(HOUR // 2), HOUR])
    assert passed > 300 and refused > 100 and cut > 5, (passed, refused, cut)


def test_a_clock_that_goes_back(scripts):
    """State ahead of the clock is corrected as each algorithm alone does, whether the call passes
    or not.
    """
    rng = random.Random("back")
    for seed in range(20):
        scripts.conn.call("FLUSHALL")
        pool, now = [Part(rng, f"k{i}") for i in range(3)], NOW
        for back in (0, 0, 30 * HOUR, 0, 0):
            now -= back
            call = Call(scripts, pool, rng, now)
            call.letters, call.how, call.peek = ["-"] * 3, "", False
            keys = [part.key for part in pool]
            if back:
                limits = [part.numbers(99) for part in pool]
                scripts.call("all", keys, [3, *sum(([p.script, "-", *limit] for p, limit in zip(pool, limits)), [])], [1], now)
                for part in pool:
                    conn = scripts.conn
                    reply = scripts.call(part.script, [part.key], part.numbers(1), [1], now, peek=True)
                    if part.script == "funnel":
                        assert all(debt <= count * -(-period * NS // count) + STEP for debt, (count, period) in zip(reply, part.rates))
                    else:
                        assert all(reset <= LONGEST[part.script] * period for reset, (_, period) in zip(reply[3::3], part.rates))
            else:
                scripts.call("all", keys, [3, *call.words()], [call.n], now)


LONGEST = {"sliding": 1, "fixed": 2, "approx": 3}  # longest reset, in periods

GOOD = {
    "funnel": ["funnel", "-", "f", 1, 10**9, 10**9, 5 * 10**9, 5 * 10**9],
    "sliding": ["sliding", "-", 1, 1, 5, HOUR],
    "approx": ["approx", "-", 1, 1, 5, HOUR],
    "fixed": ["fixed", "-", 1, 1, 5, HOUR],
}


def test_a_key_of_another_kind_spoils_all(redis, scripts):
    conn = scripts.conn
    conn.call("RPUSH", "list", "a")
    conn.call("SET", "text", "somebody else's")
    for bad in ("list", "text"):
        for place in range(5):
            names = list(GOOD)
            for name in GOOD:
                parts = [*names[:place], name, *names[place:]]
                keys = [f"{bad}-{i}" if i != place else bad for i in range(5)]
                before = redis.info("rdb_changes_since_last_save")
                for peek in (False, True):
                    reply = scripts.call("all", keys, [5, *sum((GOOD[part] for part in parts), [])], [1], NOW, peek=peek)
                    at = sum(1 if part == "funnel" else 4 for part in parts[:place])
                    assert reply[at] == WRONG and not any(reply[:at]) and not any(reply[at + 1 :]), (keys, parts, reply)
                assert redis.info("rdb_changes_since_last_save") == before


@pytest.mark.parametrize("name, error", [("funnel", FULL), ("fixed", MANY), ("approx", MANY)])
def test_a_key_that_can_store_no_more_spoils_all(redis, scripts, name, error):
    for hours in range(9, 1, -1):  # each funnel holds more time than the next
        rate = ["f", 1, hours * 10**15, hours * 10**15, hours * 10**15, hours * 10**15]
        reply = scripts.call(name, ["full"], rate if name == "funnel" else [1, 1, 1, hours * 100 * HOUR], [1], NOW)
        assert not isinstance(reply[0], bytes), reply
    before = redis.info("rdb_changes_since_last_save")
    part = [name, "-", *(["f", 1, 10**9, 10**9, 10**9, 10**9] if name == "funnel" else [1, 1, 5, HOUR])]
    reply = scripts.call("all", ["a", "full", "b"], [3, *GOOD["sliding"], *part, *GOOD["fixed"]], [1], NOW)
    assert reply[4] == error and not any(reply[:4]) and not any(reply[5:]), reply
    assert redis.info("rdb_changes_since_last_save") == before


def test_what_is_refused_counts_in_all(scripts):
    """COUNT ALL: the part with room is filled up too, each by its own algorithm."""
    keys = ["a", "b", "c", "d"]
    words = [4, *GOOD["funnel"], *GOOD["sliding"], *GOOD["approx"], "fixed", "-", 1, 1, 1, HOUR]
    for i in range(8):
        reply = scripts.call("all", keys, words, [1], NOW, how="a")
        assert reply[0] == min(i, 5) * 10**9, (i, reply)
        assert reply[2] == i and reply[6] == min(i, 5) and reply[10] == min(i, 1), (i, reply)
    reply = scripts.call("all", ["e", "f", "g", "d"], words, [8], NOW, how="a")
    assert [reply[at] for at in (0, 2, 6, 10)] == [0, 0, 0, 1]
    reply = scripts.call("all", ["e", "f", "g", "d"], words, [1], NOW, peek=True)
    assert [reply[at] for at in (0, 2, 6, 10)] == [5 * 10**9, 8, 5, 1]


def test_calls_on_keys_in_common(scripts):
    """Several calls of one script are decided one after the other."""
    words = [2, *GOOD["fixed"], "sliding", "-", 1, 1, 3, HOUR]
    keys = ["ann", "ip", "bob", "ip", "eve", "ip"]
    assert scripts.call("all", keys, words, [2, 2, 2], NOW)[::4] == [2, 2, 2, 1, 2, 0]
    assert [scripts.call("fixed", [name], GOOD["fixed"][2:], [1], NOW, peek=True)[1] for name in ("ann", "bob", "eve")] == [2, 1, 0]


def test_an_error_of_redis_is_the_reply(redis, scripts):
    words = [4, *sum(GOOD.values(), [])]
    redis.call("CONFIG", "SET", "maxmemory", "1")
    reply = scripts.call("all", ["a", "b", "c", "d"], words, [1], NOW)
    redis.call("CONFIG", "SET", "maxmemory", "0")
    assert isinstance(reply, Error) and reply.startswith("OOM ") and redis.call("DBSIZE") == 0
    assert isinstance(scripts.call("all", ["a", "b", "c", "d"], words, [1], NOW), list) and redis.call("DBSIZE") == 4
