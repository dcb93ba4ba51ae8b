"""The Lua scripts behind LIMIT, called directly: against exact models, under a clock that the test
sets.
"""

import itertools
import math
import random
import re
import struct
import time
from collections import Counter
from fractions import Fraction

import pytest
from kit.harness import REPO, rounds, wait_until
from kit.resp import Error
from kit.server import at_least

SCRIPTS = REPO / "src/upstream/scripts"
NAMES = ["funnel", "cell", "sliding", "approx", "fixed", "holders"]
FULL = b"ERR the key still owes at 8 other rates: give this one a key of its own"
MANY = b"ERR the key still counts in 8 other periods: give this one a key of its own"
WRONG = b"WRONGTYPE Operation against a key holding the wrong kind of value"
NOW = 1_763_714_039_123_456  # us
EXACT = 2**53

STEPS = 25  # calls in a row, of one group of keys
GROUPS = rounds(120)  # groups of each script
KEYS = 5  # of a group: this many sequences, each of about STEPS decisions


def ceil_div(a, b):
    return -(-a // b)


def milliseconds(reply):
    """Converts a reply to TIME."""
    return int(reply[0]) * 1000 + int(reply[1]) // 1000


def source(name):
    """Returns a script as weir sends it."""
    files = re.search(rf"SCRIPT\({name.upper()}, (.*)\)", (SCRIPTS.parent / "scripts.def").read_text())[1]
    return "".join((SCRIPTS / f"{part}.lua").read_text() for part in ["prelude", *re.findall(r"LUA\((\w+)\)", files)])


class Scripts:
    """Calls scripts on one connection."""

    def __init__(self, redis):
        self.conn = redis.connect()
        self.shas = {name: self.conn.call("SCRIPT", "LOAD", source(name)) for name in [*NAMES, "all"]}

    def command(self, name, keys, params, each=(), now=None, peek=False, db=0, how=""):
        clock = "" if now is None else now
        return ("EVALSHA", self.shas[name], len(keys), *keys, db, clock, f"{int(peek)}{how}", *params, *each)

    def call(self, name, keys, params, each=(), now=None, **kwargs):
        return self.conn.call(*self.command(name, keys, params, each, now, **kwargs))


@pytest.fixture
def scripts(redis):
    return Scripts(redis)


# ---- Models. The stored state of a key is a Python value. call() returns one key's part of the
# reply, and the key's remaining ms after a write (0: removed). None: nothing was written. ----


class Funnel:
    """Stored: how far each interval is ahead: [interval, TAT in ns, debt at the last write in steps
    of 4 ms].
    """

    name = "funnel"
    incs = [1, 7, 166_666, 166_667, 10**6, 1_500_000, 10**9, 720 * 10**9, 10**14]
    step, most = 4 * 10**6, 8

    def __init__(self, rng):
        self.rng = rng
        self.tag = rng.choice("ffb")
        self.interval = rng.choice(self.incs)

    def params(self):
        rng = self.rng
        tag = self.tag if rng.random() < 0.95 else rng.choice("fb")
        cost, wait = rng.choice([1, 1, 1, 2, 5]), rng.choice([0, 0, 0, self.interval * 3, 50 * 10**6])
        rates = []
        for _ in range(1 if rng.random() < 0.6 else rng.randint(2, 8)):
            interval = self.interval * rng.choice([1, 1, 1, 2, 3]) if rng.random() < 0.8 else rng.choice(self.incs)
            burst = min(interval * rng.choice([1, 2, 5, 10]), EXACT)
            inc = interval * cost
            rates.append((interval, inc, min(burst + wait, EXACT), burst) if inc <= burst else (interval, burst + 1, burst, burst))
        return tag, rates

    @staticmethod
    def argv(params):
        tag, rates = params
        return [tag, len(rates), *itertools.chain(*rates)]

    @staticmethod
    def width(params):
        return len(params[1])

    def each(self):
        return self.rng.choice([1, 1, 1, 2, 7, 1000])

    def read_text(self, text, now):
        """Returns [interval, debt, peak, whether it fits any burst]; None: not weir's."""
        found = re.fullmatch(r"[a-zA-Z](\d{1,20}(?: \d{1,20})*)", text)
        if not found:
            return None
        debts = [min(max(int(word) - now * 1000, 0), EXACT) for word in found[1].split()]
        return [[0, debt, ceil_div(debt, self.step), text[0].isupper()] for debt in debts]

    def funnels(self, stored, tag, now):
        """Returns the funnels, and whether a debt was cut."""
        if stored is None:
            return [], False
        if isinstance(stored, str):
            return (self.read_text(stored, now) if stored[:1].lower() == tag else None), False
        if stored[0] != tag:
            return None, False
        funnels = [[interval, max(tat - now * 1000, 0), peak, False] for interval, tat, peak in stored[1]]
        cut = [[interval, min(debt, peak * self.step), peak, fits] for interval, debt, peak, fits in funnels]
        return cut, cut != funnels

    def call(self, stored, params, now, n, peek):
        tag, rates = params
        funnels, changes = self.funnels(stored, tag, now)
        if funnels is None:
            return None, stored, None
        asked = {}
        for interval, _, _, burst in rates:
            own = [funnel for funnel in funnels if funnel[0] == interval]
            fitting = [debt for _, debt, peak, fits in funnels if fits or peak <= ceil_div(burst, self.step)]
            new = asked.get(interval, [interval, 0, 0, False])
            asked[interval] = own[0] if own else [interval, max([new[1], *fitting]), 0, False]
        debts = [asked[interval][1] for interval, _, _, _ in rates]
        granted = n
        for debt, (_, inc, room, _) in zip(debts, rates):
            granted = max(0, min(granted, (room - debt) // inc))
        if peek or not (granted or changes):
            return debts, stored, None
        if granted:
            poured = set()
            for interval, inc, _, _ in rates:
                funnel = asked[interval]
                if interval not in poured:
                    funnel[1] += granted * inc
                    funnel[2] = ceil_div(funnel[1], self.step)
                    funnels += [funnel] if funnel not in funnels else []
                poured.add(interval)
            for funnel in funnels[::-1]:
                if funnel[1] == 0 and (len(funnels) > self.most or funnel[0] == 0):
                    funnels.remove(funnel)
            if len(funnels) > self.most:
                return [FULL] + [0] * (len(rates) - 1), stored, None
        value = tag, [[interval, now * 1000 + debt, peak] for interval, debt, peak, _ in funnels]
        return debts, value, ceil_div(max(debt for _, debt, _, _ in funnels), 10**6)

    def advance(self, params, reply):
        """Returns a time in us at which something may happen."""
        interval, inc, room, burst = self.rng.choice(params[1])
        ns = self.rng.choice([inc, inc * 2, burst, room, room + inc, inc // 2, 1000])
        return ns // 1000 + self.rng.choice([-1, 0, 0, 0, 1])

    read = staticmethod(lambda key: ("GET", key))
    seen = staticmethod(lambda shown: shown)

    @staticmethod
    def shown(stored):
        if stored is None or isinstance(stored, str):
            return stored and stored.encode()
        records = (interval.to_bytes(7, "big") + struct.pack(">III", *divmod(tat, 10**9), peak) for interval, tat, peak in stored[1])
        return stored[0].encode() + b"".join(records)

    seeds = ["f1763714040123456789", "F1763714940123456789", "b1763714039123999999", "f1763714039123456000",
             "f1763714040123456789 1763714040123456789", "f99999999999999999999",
             "f17637140991234567", "f176371409912345678900", "f176371403912345678x", "f1763714039 12345678",
             "f", "f1763714040123456789 ", "f 1763714040123456789", "F", "f1763714039+12345678",
             "x1763714039123456789", "w1763714000000000:3", "f" + "x" * 18, "f" + "x" * 20]  # fmt: skip


class Cell:
    """Stored: the TAT in ns, as in redis-cell, whatever the rate."""

    name = "cell"

    def __init__(self, rng):
        self.rng = rng
        self.interval = rng.choice(Funnel.incs)

    def params(self):
        rng = self.rng
        interval = self.interval * rng.choice([1, 1, 1, 2, 3])
        inc = interval * rng.choice([1, 1, 1, 1, 2, 0, -1, -2])
        return interval, inc, min(interval * rng.choice([1, 2, 5, 10]), EXACT)

    @staticmethod
    def argv(params):
        return ["", 1, *params, params[2]]

    @staticmethod
    def width(params):
        return 1

    def each(self):
        return self.rng.choice([1, 1, 1, 2, 7, 1000])

    def call(self, stored, params, now, n, peek):
        _, inc, room = params
        if not re.fullmatch(r"\d{1,20}", stored or "0"):
            return None, stored, None
        debt = min(max(int(stored or 0) - now * 1000, 0), EXACT)
        granted = max(0, min(n, (room - debt) // inc)) if inc > 0 else n if debt + inc <= room else 0
        after = max(debt + granted * inc, 0)
        if peek or after == debt:
            return [debt], stored, None
        return [debt], str(now * 1000 + after) if after else None, ceil_div(after, 10**6)

    def advance(self, params, reply):
        interval, inc, room = params
        ns = self.rng.choice([abs(inc), interval, room, room + abs(inc), abs(inc) // 2, 1000])
        return ns // 1000 + self.rng.choice([-1, 0, 0, 0, 1])

    read = staticmethod(lambda key: ("GET", key))
    seen = staticmethod(lambda shown: shown)
    shown = staticmethod(lambda stored: stored and stored.encode())
    seeds = ["5", "0", "1763714039123456789", "1763714049123456789", "f1763714040123456789", "18446744073709551615",
             "1763714039 12345678", "-5", "1e9", "0x1763714039123456", "x1763714039123456789", "w1763714000000000:3",
             "1763714039.23456789"]  # fmt: skip


class Windows:
    """The common part of SLIDING, its approximation and FIXED: their parameters."""

    def __init__(self, rng):
        self.rng = rng
        self.period = rng.choice([1000, 2000, 50_000, 10**6, 60 * 10**6, 86_400 * 10**6])
        self.count = rng.choice([1, 2, 5, 9])

    def params(self):
        rng = self.rng
        rates = []
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            period = self.period * rng.choice([1, 1, 1, 3, 60]) if rng.random() < 0.9 else 1000 * rng.randint(1, 10**5)
            rates.append((max(1, self.count + rng.choice([0, 0, 0, -2, 3])), period))
        return rng.choice([1, 1, 1, 2, 4]), rates

    @staticmethod
    def argv(params):
        cost, rates = params
        return [cost, len(rates), *itertools.chain(*rates)]

    @staticmethod
    def width(params):
        return 3 * len(params[1]) + 1

    def each(self):
        return self.rng.choice([1, 1, 1, 2, 5])

    def advance(self, params, reply):
        _, period = self.rng.choice(params[1])
        waits = [value for value in reply if isinstance(value, int) and value > 0] or [1]
        us = self.rng.choice([period, period // 3, 2 * period, self.rng.choice(waits), self.rng.choice(waits), 1])
        return us + self.rng.choice([-1, 0, 0, 0, 1])

    @staticmethod
    def spelled(start, period):
        """Returns the moment of the window at which the last digits spell the period."""
        code = b"%d%02d" % (period // 1000, len(str(period // 1000)))
        return next(at for at in range(start - start % 10 ** len(code) + int(code), start + period, 10 ** len(code)) if at >= start)

    @staticmethod
    def grant(used, params, n):
        cost, rates = params
        return max(0, min([n] + [(count - before) // cost for before, (count, _) in zip(used, rates)]))


class Sliding(Windows):
    """Stored: calls granted at once, as (time, total so far, units)."""

    name = "sliding"
    pruned = 100  # entries, by one call

    def call(self, stored, params, now, n, peek):
        cost, rates = params
        entries = stored or []
        units = Counter()
        for at, _, many in entries:
            units[min(at, now)] += many  # the clock went back
        ahead = sum(many for at, _, many in entries if at > now)
        longest = max(period for _, period in rates)

        def held(units, at, period):
            return sum(many for unit, many in units.items() if at < unit + period)

        used = [held(units, now, period) for _, period in rates]
        granted = self.grant(used, params, n)
        charged = 0 if peek else granted * cost
        after = +(units + Counter({now: charged}))
        reply = [granted]
        for before, (count, period) in zip(used, rates):
            retry = -1
            for at in sorted([now] + [unit + period for unit in after if unit + period > now]):
                if held(after, at, period) + cost <= count:
                    retry = at - now
                    break
            reply += [before, retry, max([0] + [unit + period - now for unit in after])]
        if peek or not (granted or ahead):
            return reply, stored, None
        total = entries[-1][1] if entries else 0
        entries = [entry for entry in entries if entry[0] <= now] + [(now, total + charged, ahead + charged)]
        over = min(self.pruned, sum(at <= now - longest for at, _, _ in entries))
        return reply, entries[over:], ceil_div(longest, 1000)

    seen = staticmethod(lambda shown: shown)
    read = staticmethod(lambda key: ("ZRANGE", key, 0, -1, "WITHSCORES"))

    @staticmethod
    def shown(stored):
        return list(itertools.chain(*((b"%016d+%d" % (total, many), b"%d" % at) for at, total, many in stored or [])))

    seeds = []


class Fixed(Windows):
    """Stored: for each period the beginning of the window and its count."""

    name = "fixed"

    @staticmethod
    def window(now, period, start, count):
        """Returns the window as of `now`, and whether it was moved back."""
        here = now - now % period
        if start > here + period:
            return [here, count], count > 0
        return [start, count] if start >= here else [here, 0], False

    def windows(self, stored, params, now):
        """Returns the requested windows and the other ones, by their periods, and whether one was
        moved back.
        """
        seen = {period: self.window(now, period, *rest) for period, *rest in stored or []}
        asked = {period: seen.pop(period, None) for period in dict.fromkeys(period for _, period in params[1])}
        moved = any(one and one[1] for one in [*asked.values(), *seen.values()])
        asked = {period: one[0] if one else self.fresh(now - now % period) for period, one in asked.items()}
        return asked, {period: one[0] for period, one in seen.items()}, moved

    fresh = staticmethod(lambda start: [start, 0])

    def used(self, window, period, now):
        return window[1]

    def times(self, window, period, now, cost, count):
        """Returns retry and reset."""
        start, total = window
        left = start + period - now
        return -1 if cost > count else 0 if total + cost <= count else left, left if total else 0

    def call(self, stored, params, now, n, peek):
        cost, rates = params
        asked, others, moved = self.windows(stored, params, now)
        used = [self.used(asked[period], period, now) for _, period in rates]
        granted = self.grant(used, params, n)
        for window in asked.values():
            window[1] += 0 if peek else granted * cost
        reply = [granted]
        for before, (count, period) in zip(used, rates):
            reply += [before, *self.times(asked[period], period, now, cost, count)]
        if peek or not (granted or moved):
            return reply, stored, None
        after, live = [], 1
        for period, window in (asked | others).items():
            reset = self.times(window, period, now, cost, 0)[1]
            live = max(live, ceil_div(reset, 1000))
            after += [[period, *window]] if reset else []
        return (reply, after, live) if len(after) <= 8 else ([MANY] + [0] * (len(reply) - 1), stored, None)

    read = staticmethod(lambda key: ("GET", key))
    seen = staticmethod(lambda shown: shown)

    @classmethod
    def shown(cls, stored):
        if not stored:
            return None
        words = (":".join(map(str, [cls.spelled(start, period), *counts])) for period, start, *counts in stored)
        return (cls.tag + " ".join(words)).encode()

    tag = "w"
    seeds = []


class Approx(Fixed):
    """Stored: for each period the beginning of the window, its count and the count of the one
    before.
    """

    name = "approx"
    tag = "a"

    @staticmethod
    def window(now, period, start, count, before):
        here = now - now % period
        if start > here + period:
            return [here, count, before], count + before > 0
        if start >= here:
            return [start, count, before], False
        return [here, 0, count if start >= here - period else 0], False

    fresh = staticmethod(lambda start: [start, 0, 0])

    def used(self, window, period, now):
        return math.ceil(self.weighted(window, period, now))

    def times(self, window, period, now, cost, count):
        start, current, previous = window
        reset = start + 2 * period - now if current else start + period - now if previous else 0
        return self.retry(window, period, now, count - cost), reset

    @staticmethod
    def weighted(window, period, at):
        """Returns the content of the sliding window at a time after this state."""
        start, count, before = window
        while at >= start + period:
            start, count, before = start + period, 0, count
        return count + Fraction(before * (period - max(0, at - start)), period)

    def retry(self, window, period, now, room):
        """By bisection: the content of the window never grows by itself."""
        if room < 0:
            return -1
        low, high = -1, window[0] + 3 * period - now
        while high - low > 1:
            middle = (low + high) // 2
            if self.weighted(window, period, now + middle) <= room:
                high = middle
            else:
                low = middle
        return high


class Holders:
    """Stored: when each token expires, in ms, and its time to live, in steps of a sixteenth of a
    power of two.
    """

    pruned = 100

    name = "holders"

    def __init__(self, rng):
        self.rng = rng
        self.max = rng.choice([1, 2, 3])
        self.ttl = rng.choice([1, 50, 1000, 60_000])

    def params(self):
        rng = self.rng
        op = rng.choice(["acquire"] * 5 + ["renew", "release"])
        return op, max(0, self.max + rng.choice([0, 0, 0, 0, 1, -1])), self.ttl * rng.choice([1, 1, 2])

    @staticmethod
    def argv(params):
        return [*params, ""]

    @staticmethod
    def width(params):
        return 3

    def each(self):
        return self.rng.choice(["a", "b", "c", "d", "e"])

    def advance(self, params, reply):
        ttl = params[2] * 1000
        us = self.rng.choice([0, 1, ttl // 3, ttl, max(reply[2], 0) * 1000, ttl // 10])
        return us + self.rng.choice([-1, 0, 0, 1])

    @staticmethod
    def spelled(ttl):
        """Returns a time to live as a code, and the value of that code."""
        code = next(code for code in range(1023) if (16 + code % 16) * 2 ** (code // 16) >= 16 * ttl)
        return 1 + code, (16 + code % 16) * 2 ** (code // 16) / 16

    def brought_back(self, live, now):
        """Limits each expiry to the latest possible time."""
        after = {}
        for name, (over, code) in live.items():
            ttl = (16 + (code - 1) % 16) * 2 ** ((code - 1) // 16) / 16
            is_ahead = over - ttl > now // 1000 + 2
            after[name] = (now // 1000 + 1 + math.ceil(ttl) if is_ahead else over, code)
        return after

    def call(self, stored, params, now, token, peek):
        op, most, ttl = params
        before = stored or {}
        live = {name: (over, code) for name, (over, code) in before.items() if over * 1000 > now}
        holds, retry = token in live, 0
        after = dict(live)
        granted = int(holds or (op == "acquire" and len(live) < most))
        if op == "release":
            after.pop(token, None)
        elif granted:
            after[token] = (ceil_div(now, 1000) + ttl, self.spelled(ttl)[0])
        elif op == "acquire":
            after = after if peek or not most else self.brought_back(live, now)
            overs = sorted(over for over, _ in after.values())
            retry = ceil_div(overs[len(overs) - most] * 1000 - now, 1000) if most else -1
        reply = [granted, len(after), retry]
        if peek or not (granted or (op == "release" and token in before) or after != live):
            return reply, stored, None
        return reply, after or None, max(over for over, _ in after.values()) - now // 1000 if after else 0

    @staticmethod
    def seen(shown):
        """Versions write the same score in other digits."""
        return [b"%.17g" % float(part) if i % 2 else part for i, part in enumerate(shown)]

    read = staticmethod(lambda key: ("ZRANGE", key, 0, -1, "WITHSCORES"))

    @staticmethod
    def shown(stored):
        holders = sorted((over - 1 + code / 1024, b"h:" + token.encode()) for token, (over, code) in (stored or {}).items())
        return list(itertools.chain(*((name, b"%.17g" % score) for score, name in holders)))

    seeds = []


MODELS = {model.name: model for model in (Funnel, Cell, Sliding, Approx, Fixed, Holders)}

# Values that no script may change, nor any other algorithm.
STRANGE = [
    ("RPUSH", "a"), ("HSET", "f", "1"), ("SADD", "a"), ("ZADD", 5, "member"), ("ZADD", NOW, "%d" % NOW),
    ("XADD", "1-1", "f", "v"), ("SET", ""), ("SET", "hello"), ("SET", "\x00\xff"), ("SET", "f"), ("SET", "1 2"),
]  # fmt: skip
OF_OTHERS = {
    "funnel": [("SET", "f%d000" % NOW)],
    "cell": [("SET", "%d000" % NOW)],
    "sliding": [("ZADD", NOW, "%016d+1" % 1), ("ZADD", NOW, "%d:0" % NOW)],
    "approx": [("SET", "a%d:1:0" % (NOW - NOW % 10**6))],
    "fixed": [("SET", "w%d:1" % (NOW - NOW % 10**6))],
    "holders": [("ZADD", NOW // 1000 + 10**6, "h:a")],
}


class Group:
    """Keys that are called together, and the model's state of them."""

    def __init__(self, number, model, scripts, rng):
        self.model, self.scripts, self.rng = model, scripts, rng
        self.keys = [f"{model.name}:{number}:{i}" for i in range(KEYS)]
        self.stored = dict.fromkeys(self.keys)
        self.dies = {}  # us of the model's clock when the key expires by itself
        self.now = NOW + rng.randrange(10**12)
        self.broken = {}
        self.seeded = []
        self.exact_ttls = self.ttls = 0
        strange = STRANGE + sum((of for name, of in OF_OTHERS.items() if name != model.name), [])
        if rng.random() < 0.3:
            op, *args = rng.choice(strange)
            if not (model.name in ("funnel", "cell") and op == "SET"):  # these are in its seeds
                self.broken[self.keys[0]] = (op, self.keys[0], *args)
        if model.seeds and rng.random() < 0.5:
            self.stored[self.keys[1]] = rng.choice(model.seeds)
            self.seeded.append(("SET", self.keys[1], self.stored[self.keys[1]]))
            self.now = NOW

    def begin(self):
        return [*self.broken.values(), *self.seeded]

    def commands(self):
        """One call on some of the keys, and a look at the keys, at one moment for Redis."""
        model, rng = self.model, self.rng
        self.params, self.peek = model.params(), rng.random() < 0.1
        self.called = rng.sample(self.keys, rng.randint(1, KEYS))
        self.each = [model.each() for _ in self.called]
        one_each = all(n == 1 for n in self.each) and rng.random() < 0.7
        gone = [key for key, at in self.dies.items() if at <= self.now and rng.random() < 0.5]
        for key in gone:  # Redis' clock does not run as the model's does
            del self.dies[key]
            self.stored[key] = None
        each = () if one_each else self.each
        self.sent = self.scripts.command(model.name, self.called, model.argv(self.params), each, self.now, self.peek)
        self.gone = gone
        look = []
        for key in self.called:
            look += [("DUMP", key) if key in self.broken else model.read(key), ("PTTL", key), ("PERSIST", key)]
        return [("MULTI",), *(("DEL", key) for key in gone), ("TIME",), self.sent, *look, ("TIME",), ("EXEC",)]

    def check(self, replies):
        done = replies[-1]
        assert isinstance(done, list), replies
        done = done[len(self.gone) :]
        begun, reply, *looks, ended = done
        took = milliseconds(ended) - milliseconds(begun)
        width = self.model.width(self.params)
        story = (self.sent, reply, self.stored)
        assert isinstance(reply, list) and len(reply) == width * len(self.called), story
        for i, (key, n) in enumerate(zip(self.called, self.each)):
            part = reply[i * width : (i + 1) * width]
            shown, pttl, _ = looks[3 * i : 3 * i + 3]
            if key in self.broken:
                assert part == [WRONG] + [0] * (width - 1), story
                assert shown == self.broken[key] and pttl == -1, story
                continue
            was = self.stored[key]
            expected, stored, lives = self.model.call(was, self.params, self.now, n, self.peek)
            if expected is None:
                expected = [WRONG] + [0] * (width - 1)
            assert part == expected, (key, part, expected, *story)
            if lives and lives <= took and pttl == -2:  # the key had expired before the test looked
                stored, shown, lives = None, self.model.shown(None), 0
            self.stored[key] = stored
            assert self.model.seen(shown) == self.model.shown(stored), (key, shown, *story)
            if lives is None:
                assert pttl == (-2 if not stored else -1), (key, pttl, *story)
            elif lives == 0:
                assert pttl == -2, (key, pttl, *story)
                self.dies.pop(key, None)
            else:
                assert lives - took <= pttl <= lives, (key, pttl, lives, *story)
                self.ttls += 1
                self.exact_ttls += pttl == lives
                self.dies[key] = self.now + lives * 1000
        self.move(reply)

    def move(self, reply):
        rng = self.rng
        kind = rng.random()
        if kind < 0.45:
            pass
        elif kind < 0.9:
            self.now += max(0, self.model.advance(self.params, reply))
        elif kind < 0.95:
            self.now -= rng.choice([1, 1000, 10**6, 3600 * 10**6])
        else:
            self.now += rng.randrange(10**9)


@pytest.mark.parametrize("name", NAMES)
def test_script_does_what_its_exact_model_does(scripts, name):
    rng = random.Random(name)
    groups = [Group(i, MODELS[name](rng), scripts, rng) for i in range(GROUPS)]
    conn = scripts.conn
    begin = list(itertools.chain(*(group.begin() for group in groups)))
    assert not any(isinstance(reply, Error) for reply in conn.ask(*begin))
    for group in groups:
        group.broken = {key: conn.call("DUMP", key) for key in group.broken}
    for _ in range(STEPS):
        asked = [group.commands() for group in groups]
        replies = iter(conn.ask(*itertools.chain(*asked)))
        for group, commands in zip(groups, asked):
            group.check(list(itertools.islice(replies, len(commands))))
    exact, all_ttls = sum(group.exact_ttls for group in groups), sum(group.ttls for group in groups)
    # in the rest, Redis' clock went on meanwhile
    assert all_ttls > 1000 and exact > 0.9 * all_ttls, (exact, all_ttls)


def test_sliding_approx_stays_on_the_safe_side_beyond_exact_doubles(scripts):
    """Counts times periods beyond 2^53: the content is never underestimated, and hardly
    overestimated.
    """
    rng = random.Random(5)
    model = Approx(rng)
    for i in range(300):
        period = 1000 * rng.randint(10**9, 10**11)
        count, before, current = (rng.randint(10**5, 10**8) for _ in range(3))
        start = NOW - NOW % period
        key, params = f"approx:large:{i}", (rng.randint(1, 1000), [(count, period)])
        scripts.conn.call("SET", key, model.shown([[period, start, current, before]]), "EX", 100)
        granted, used, retry, _ = scripts.call("approx", [key], model.argv(params), [10**9], NOW)
        rule = model.weighted((start, current, before), period, NOW)
        assert rule <= used <= rule + 2, (params, rule, used)
        assert granted == max(0, (count - used) // params[0])
        window = (start, current + granted * params[0], before)
        assert retry >= 0 and model.weighted(window, period, NOW + retry) + params[0] <= count, (params, window, retry)
        best = model.retry(window, period, NOW, count - params[0])
        assert best <= retry <= best + period // before + period // window[1] + 2, (params, window, retry, best)


# ---- redis-cell's tables (reference/cl-throttle.md), with replies computed by the rules of
# cell.lua ----


def cell(scripts, key, us, max_burst, count, period, quantity=1):
    """CL.THROTTLE as weir must answer it: redis-cell's formula on the debt before the call."""
    interval = int(period * 10**9 / count)
    room, inc, limit = interval * (max_burst + 1), interval * quantity, max_burst + 1
    (debt,) = scripts.call("cell", [key], ["", 1, interval, inc, room, room], now=us)
    limited = debt + inc > room
    left = debt if limited else max(debt + inc, 0)
    retry = seconds(debt + inc - room) if limited and inc <= room else -1
    return [int(limited), limit, min(max((room - left) // interval, 0), limit), retry, seconds(left)]


def seconds(ns):
    """Rounds up to whole milliseconds, then to whole seconds."""
    return ceil_div(ns // 10**6, 1000)


# Each row: ms since the first row, arguments, reply.
T1 = [
    (0, (4, 1, 1, 6), [1, 5, 5, -1, 0]), (0, (4, 1, 1), [0, 5, 4, -1, 1]), (0, (4, 1, 1), [0, 5, 3, -1, 2]),
    (0, (4, 1, 1), [0, 5, 2, -1, 3]), (0, (4, 1, 1), [0, 5, 1, -1, 4]), (0, (4, 1, 1), [0, 5, 0, -1, 5]),
    (0, (4, 1, 1), [1, 5, 0, 1, 5]), (3000, (4, 1, 1), [0, 5, 2, -1, 3]), (3100, (4, 1, 1), [0, 5, 1, -1, 4]),
    (4000, (4, 1, 1), [0, 5, 1, -1, 4]), (8000, (4, 1, 1), [0, 5, 4, -1, 1]), (9500, (4, 1, 1), [0, 5, 4, -1, 1]),
    (9500, (4, 1, 1, 0), [0, 5, 4, -1, 1]), (9500, (4, 1, 1, 2), [0, 5, 2, -1, 3]),
    (9500, (4, 1, 1, 5), [1, 5, 2, 3, 3]), (15000, (4, 1, 1, 6), [1, 5, 5, -1, 0]),
]  # fmt: skip
T2 = [
    [(0, (15, 30, 60), [0, 16, 15, -1, 2])],
    [(0, (0, 1, 2, 1), [0, 1, 0, -1, 2]), (0, (0, 1, 2, 1), [1, 1, 0, 2, 2]), (2000, (0, 1, 2, 1), [0, 1, 0, -1, 2])],
    [(0, (5, 5, 3600), [0, 6, 5, -1, 720])],
]
TEN = [(0, (9, 1, 10), [0, 10, 9 - i, -1, 10 * i + 10]) for i in range(10)]
T3 = [
    [(0, (0, 1, 60, 0), [0, 1, 1, -1, 0])],
    [(0, (4, 1, 1, 5), [0, 5, 0, -1, 5]), (0, (4, 1, 1, 5), [1, 5, 0, 5, 5])],
    [(0, (9, 100, 60), [0, 10, 9 - i, -1, reset]) for i, reset in enumerate([1, 2, 2, 3, 3, 4, 5, 5, 6, 6])]
    + [(0, (9, 100, 60), [1, 10, 0, 1, 6])],
    [(0, (2, 7, 60), [0, 3, 2, -1, 9]), (0, (2, 7, 60), [0, 3, 1, -1, 18]), (0, (2, 7, 60), [0, 3, 0, -1, 26]),
     (0, (2, 7, 60), [1, 3, 0, 9, 26]), (8000, (2, 7, 60), [1, 3, 0, 1, 18]), (9000, (2, 7, 60), [0, 3, 0, -1, 26])],
    [(0, (2, 3, 1), reply) for reply in ([0, 3, 2, -1, 1], [0, 3, 1, -1, 1], [0, 3, 0, -1, 1], [1, 3, 0, 1, 1])],
    [(0, (9, 2, 3), [0, 10, 9, -1, 2])],
    [(0, (0, 2, 1), [0, 1, 0, -1, 1]), (100, (0, 2, 1), [1, 1, 0, 1, 1])],
    [(0, (0, 2, 1), [0, 1, 0, -1, 1]), (499.6, (0, 2, 1), [1, 1, 0, 0, 0])],
    TEN + [(0, (4, 1, 10, 0), [1, 5, 0, 50, 100]), (0, (4, 1, 10, 1), [1, 5, 0, 60, 100])],
    TEN + [(0, (19, 1, 10, 1), [0, 20, 9, -1, 110])],
    [(0, (9, 10, 10), [0, 10, 9 - i, -1, i + 1]) for i in range(10)] + [(0, (9, 100, 10, 1), [1, 10, 0, 10, 10])],
    [(0, (4, 1, 10), [0, 5, 4 - i, -1, 10 * i + 10]) for i in range(3)] + [(0, (4, 1, 10, -1), [0, 5, 3, -1, 20])],
    [(0, (0, 1, 1), [0, 1, 0, -1, 1]), (-3600_000, (0, 1, 1), [1, 1, 0, 3601, 3601])],
    [(0, (6000, 6000, 1), [0, 6001, 6000, -1, 0])],  # redis-cell: 6024 of 6001
    [(0, (-1, 1, 1), [1, 0, 0, -1, 0])],
]  # fmt: skip


@pytest.mark.parametrize("table", [T1, *T2, *T3], ids=itertools.count())
def test_redis_cells_tables(scripts, table):
    now = 1_700_000_000_000_000
    for row, (ms, call, reply) in enumerate(table):
        assert cell(scripts, "cell", now + round(ms * 1000), *call) == reply, (row, call)


# ---- Redis and the scripts ----

# For each script: parameters, the argument for one call, and a rate that lasts `ms` (by Redis' own
# clock in the tests).


def usual(name, ms):
    """Returns parameters of at most two calls in `ms`."""
    ns = ms * 10**6
    return {
        "funnel": ["f", 1, ns // 2, ns // 2, ns, ns],
        "cell": ["", 1, ns // 2, ns // 2, ns, ns],
        "holders": ["acquire", 2, ms, ""],
    }.get(name, [1, 1, 2, ms * 1000])


def one(name, i):
    """Returns the argument for the i-th call."""
    return f"token{i}" if name == "holders" else 1


def granted(name, reply, ms):
    """Returns the granted calls of a reply for one key."""
    assert not isinstance(reply, Error), reply
    return int(reply[0] <= ms * 10**6 // 2) if name in ("funnel", "cell") else reply[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_refused_call_and_a_look_write_nothing(redis, scripts, name):
    call = lambda i, **kwargs: scripts.call(name, ["k"], usual(name, 60_000), [one(name, i)], **kwargs)
    assert granted(name, call(0), 60_000) and granted(name, call(1), 60_000)
    redis.call("RPUSH", "list", "a")
    before, dump = redis.info("rdb_changes_since_last_save"), redis.call("DUMP", "k")
    assert not any(granted(name, call(i), 60_000) for i in range(2, 50))
    for key in ("k", "fresh"):
        scripts.call(name, [key], usual(name, 60_000), [one(name, 99)], peek=True)
    for peek in (False, True):
        assert scripts.call(name, ["list"], usual(name, 60_000), [one(name, 99)], peek=peek)[0] == WRONG
    assert redis.info("rdb_changes_since_last_save") == before
    assert redis.call("DUMP", "k") == dump and redis.call("DBSIZE") == 2


@pytest.mark.parametrize("name", NAMES)
def test_no_key_outlives_its_purpose(redis, scripts, name):
    """Nothing is left after the longest window (after two, where two windows are kept), by Redis'
    own clock.
    """
    longest = 200 if name != "approx" else 400
    keys = [f"k{i}" for i in range(50)]
    for ms in (1, 20, 200):
        scripts.call(name, keys, usual(name, ms), [one(name, i) for i in range(50)])
    lives = scripts.conn.ask(*(("PTTL", key) for key in keys))
    assert all(0 <= ms <= longest + 1 or ms == -2 for ms in lives), lives
    wait_until(lambda: redis.call("DBSIZE") == 0, "all keys are gone", 10)


def test_sliding_never_holds_more_than_its_count(scripts):
    rng, now = random.Random(2), NOW
    for _ in range(3000):
        scripts.call("sliding", ["k"], [rng.choice([1, 2, 3]), 2, 7, 1000, 20, 5000], [rng.randint(1, 50)], now)
        assert scripts.conn.call("ZCARD", "k") <= 20
        now += rng.choice([0, 0, 1, 10, 100, 999, 1000, 4000, 6000])


@pytest.mark.parametrize("cost", [1, 10_000])
def test_sliding_keeps_one_entry_of_a_call(scripts, cost):
    """A call is one entry of the sorted set, however large its cost is."""
    for i, left in enumerate((30_000, 20_000, 10_000)):
        reply = scripts.call("sliding", ["k"], [cost, 1, 30_000, 10**6], [10_000 // cost], NOW)
        assert reply[:2] == [10_000 // cost, 30_000 - left]
        assert scripts.conn.call("ZCARD", "k") == i + 1
    assert scripts.call("sliding", ["k"], [1, 1, 30_000, 10**6], [1], NOW) == [0, 30_000, 10**6, 10**6]


def test_sliding_finds_who_leaves_among_many(scripts):
    """The time of free room in a long log of mixed entries is the same as if the script read all of
    the log.
    """
    rng, now, entries, model = random.Random(6), NOW, None, Sliding(random.Random(6))
    for _ in range(2000):
        now += rng.choice([0, 1, 2, 50]) * 10**6
        params = (rng.choice([1, 1, 1, 7, 40]), [(5000, 10**11)])
        expected, entries, _ = model.call(entries, params, now, 1, False)
        assert scripts.call("sliding", ["k"], model.argv(params), [1], now) == expected
    for cost in (1, 2, 39, 500, 2500, 4999, 5000, 5001):
        params = (cost, [(5000, 10**11), (4000, 5 * 10**10), (10, 7 * 10**6)])
        expected, _, _ = model.call(entries, params, now, 3, True)
        assert scripts.call("sliding", ["k"], model.argv(params), [3], now, peek=True) == expected, cost
    assert scripts.conn.call("ZCARD", "k") == len(entries) > 200


def test_sliding_prunes_a_hundred_at_a_time(scripts):
    """A call after the end of a long log does little work. Entries that it leaves never count
    again.
    """
    for i in range(350):
        assert scripts.call("sliding", ["k"], [1, 1, 1000, 10**6], [1], NOW + i)[0] == 1
    later = NOW + 10**7
    for used, left in enumerate((251, 152, 53, 4, 5)):
        assert scripts.call("sliding", ["k"], [1, 1, 1000, 10**6], [1], later)[:2] == [1, used]
        assert scripts.conn.call("ZCARD", "k") == left


# ---- sets of old versions, with an entry for each unit, named time:sequence ----


def old_set(scripts, key, units):
    """Returns what an old script would store: how many units each us has."""
    for at, many in sorted(units.items()):
        for i in range(0, many, 1000):
            members = itertools.chain(*((at, "%d:%d" % (at, j)) for j in range(i, min(i + 1000, many))))
            scripts.conn.call("ZADD", key, *members)
    scripts.conn.call("PEXPIRE", key, 100_000)


def old_model(units, params, now, n):
    """Returns the usage, and when the next call passes after the granted ones."""
    entries, total = [], 0
    for at, many in sorted(units.items()):
        for _ in range(many):
            total += 1
            entries.append((at, total, 1))
    return Sliding(random.Random(0)).call(entries, params, now, n, True)[0]


@pytest.mark.parametrize("seed", range(30))
def test_sliding_reads_sets_of_before(redis, scripts, seed):
    """Exact; and a refusal writes nothing to such sets."""
    rng = random.Random(seed)
    units = Counter({NOW - rng.randrange(2 * 10**6): rng.choice([1, 1, 2, 5]) for _ in range(rng.randint(1, 40))})
    held = sum(units.values())
    old_set(scripts, "k", units)
    before = redis.call("DUMP", "k")
    for _ in range(20):
        rates = [(max(1, held + rng.randint(-held, 5)), rng.choice([10, 10**5, 10**6, 3 * 10**6])) for _ in range(rng.randint(1, 3))]
        params = (rng.choice([1, 2, 3]), rates)
        expected = old_model(units, params, NOW, 3)
        assert scripts.call("sliding", ["k"], Sliding.argv(params), [3], NOW, peek=True) == expected, params
        if expected[0] == 0:
            assert scripts.call("sliding", ["k"], Sliding.argv(params), [3], NOW) == expected, params
    assert redis.call("DUMP", "k") == before


@pytest.mark.parametrize("seed", range(30))
def test_sliding_goes_over_from_sets_of_before(scripts, seed):
    """Never more than before, in any window. All is in the new form when the old entries have
    expired.
    """
    rng = random.Random(1000 + seed)
    period, count = 10**6, 50
    units = Counter({NOW - rng.randrange(period): rng.choice([1, 1, 2]) for _ in range(rng.randint(1, 20))})
    if seed % 3 == 0:
        units[NOW + rng.randrange(1, 10**6)] += 2  # the clock went back
    old_set(scripts, "k", units)
    admitted, now, last = Counter({min(at, NOW): 0 for at in units}), NOW, max(min(at, NOW) for at in units)
    for at, many in units.items():
        admitted[min(at, NOW)] += many
    while now < NOW + 3 * period:
        n = rng.choice([1, 2, 9])
        reply = scripts.call("sliding", ["k"], [1, 1, count, period], [n], now)
        held = sum(many for at, many in admitted.items() if at > now - period)
        assert reply[1] >= held and reply[0] <= max(0, count - held), "never more"
        if now > last + period:
            assert reply[0] == min(n, count - held), "and no less, once it has left"
        admitted[now] += reply[0]
        now += rng.choice([1, 1000, 10**5])
    names = scripts.conn.call("ZRANGE", "k", 0, -1)
    assert all(re.fullmatch(rb"\d{16}\+\d+", name) for name in names), names


@pytest.mark.parametrize("name", [b"%016d+1" % 3, b"%d:0" % NOW, b"9999999999999999+9999999999999999"])
def test_a_set_that_somebody_has_written_to(scripts, name):
    """The set is broken alone: other keys of the same call are decided as usual."""
    rng = random.Random(9)
    for i in range(200):
        scripts.conn.call("DEL", "k", "other")
        entries = [("%016d+%d" % (rng.randint(0, 9), rng.randint(0, 9)), "%d:%d" % (NOW, i), "x", "", "h:a", "+", "1+", "+1")]
        for member in rng.sample(entries[0], rng.randint(1, 5)):
            scripts.conn.call("ZADD", "k", NOW - rng.randint(-10**6, 2 * 10**6), member)
        scripts.conn.call("ZADD", "k", NOW + 2 * 10**6 if i % 2 else NOW, name)
        params = [rng.choice([1, 3]), 2, 5, 10**6, 7, 3 * 10**6]
        reply = scripts.call("sliding", ["k", "other"], params, [rng.choice([1, 2])] * 2, NOW)
        assert not isinstance(reply, Error) and len(reply) == 14, reply
        assert reply[7] in (1, 2) and reply[8] == 0


def test_a_large_set_of_before_is_no_burden(redis, scripts):
    """A million units are deleted at once, and Redis does not wait for that."""
    old_set(scripts, "k", {NOW - i: 1000 for i in range(200)})
    redis.call("CONFIG", "RESETSTAT")
    assert scripts.call("sliding", ["k"], [1, 1, 300_000, 10**6], [1], NOW) == [1, 200_000, 0, 10**6]
    assert scripts.conn.call("ZRANGE", "k", 0, -1) == [b"%016d+200000" % 200_000, b"%016d+1" % 200_001]
    assert usec_per_call(redis, "evalsha") < 20_000


def usec_per_call(redis, command):
    text = redis.call("INFO", "commandstats").decode()
    return float(re.search(rf"cmdstat_{command}:.*?usec_per_call=([\d.]+)", text)[1])


@pytest.mark.parametrize("name", ["funnel", "cell", "sliding", "fixed", "approx"])
def test_never_more_than_the_bound_under_redis_clock(scripts, name):
    """In real time: the admitted calls in any window of the algorithm stay within its bound, and
    reach it.
    """
    ms, admitted, began = 50, [], time.monotonic()
    while time.monotonic() - began < 0.4:
        before = time.monotonic()
        if granted(name, scripts.call(name, ["k"], usual(name, ms)), ms):
            admitted.append((before, time.monotonic()))
    periods = (admitted[-1][0] - admitted[0][1]) * 1000 / ms
    bound = {"funnel": 2 + 2 * periods, "cell": 2 + 2 * periods, "fixed": 2 * (periods + 2)}.get(name, 2 * (periods + 1))
    assert 8 <= len(admitted) <= bound + 1, (len(admitted), periods)
    # from outside, every third call came after the period of the first was over
    if name == "sliding":
        assert all(third[1] - first[0] >= ms / 1000 for first, third in zip(admitted, admitted[2:]))


def test_holders_come_and_go(redis, scripts):
    with redis.connect() as listener:
        listener.call("SUBSCRIBE", "freed")
        call = lambda op, token, most=1: scripts.call("holders", ["k"], [op, most, 60_000, "freed"], [token])
        assert call("acquire", "a") == [1, 1, 0]
        assert call("acquire", "a") == [1, 1, 0]
        granted, held, retry = call("acquire", "b")
        assert (granted, held) == (0, 1) and 59_000 < retry <= 60_001
        assert call("renew", "b") == [0, 1, 0] and call("renew", "a") == [1, 1, 0]
        assert call("release", "b") == [0, 1, 0]
        assert call("release", "a") == [1, 0, 0] and redis.call("EXISTS", "k") == 0
        assert call("release", "a") == [0, 0, 0]
        assert listener.read() == [b"message", b"freed", b"k"]
        redis.call("PUBLISH", "freed", "last")
        # refused releases sent no message
        assert listener.read() == [b"message", b"freed", b"last"]


def test_holders_after_a_clock_went_back(scripts):
    """After Redis' clock goes back a holder keeps its permit for its own time from then, not for
    the whole step.
    """
    call = lambda op, token, ttl, now: scripts.call("holders", ["k"], [op, 3, ttl, ""], [token], now)
    for token, ttl in (("a", 10_000), ("b", 10_000), ("long", 3600_000)):
        assert call("acquire", token, ttl, NOW)[0] == 1
    back = NOW - 3600 * 10**6
    granted, held, retry = call("acquire", "c", 10_000, back)
    assert (granted, held) == (0, 3) and 10_000 <= retry <= 11_000, "a sixteenth more at the most"
    assert call("acquire", "c", 10_000, back + 9 * 10**6)[0] == 0, "nobody loses his place"
    assert call("renew", "a", 10_000, back + 9 * 10**6)[0] == 1
    assert call("acquire", "c", 10_000, back + 11 * 10**6)[:2] == [1, 3], "b's time is over"
    assert call("renew", "long", 3600_000, back + 3500 * 10**6)[0] == 1


@pytest.mark.parametrize("name", ["sliding", "approx", "fixed"])
def test_a_peek_tells_times_as_they_are(scripts, name):
    """Without the charge of the call."""
    hour, start = 3600 * 10**6, NOW - NOW % (3600 * 10**6)
    ask = lambda now, peek: scripts.call(name, ["k"], [1, 1, 5, hour], [1], now, peek=peek)
    assert ask(start, True) == [1, 0, 0, 0]
    ask(start, False)
    (_, used, retry, reset), (*_, charged) = ask(start + hour // 2, True), ask(start + hour // 2, False)
    assert (used, retry) == (1, 0) and reset == {"sliding": hour // 2, "approx": 3 * hour // 2, "fixed": hour // 2}[name]
    assert charged == (hour if name == "sliding" else reset)


def test_holders_forget_a_hundred_at_a_time(scripts):
    """Expired holders do not count meanwhile, and the key ends with the last active holder."""
    call = lambda op, token, now: scripts.call("holders", ["k"], [op, 1000, 60_000, ""], [token], now)
    for i in range(350):
        assert call("acquire", f"t{i}", NOW) == [1, i + 1, 0]
    later = NOW + 10**8
    for held, left in ((1, 251), (2, 152), (3, 53), (4, 4), (5, 5)):
        assert call("acquire", f"later{held}", later) == [1, held, 0]
        assert scripts.conn.call("ZCARD", "k") == left
    for held in range(4, -1, -1):
        assert call("release", f"later{held + 1}", later) == [1, held, 0]
    assert scripts.conn.call("EXISTS", "k") == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_call_stays_in_its_database(redis, scripts, name):
    scripts.call(name, ["k"], usual(name, 60_000), [one(name, 0)], db=3)
    assert scripts.conn.call("DBSIZE") == 0
    assert scripts.conn.ask("SELECT 3", "DBSIZE", "SELECT 0") == ["OK", 1, "OK"]
    assert isinstance(scripts.call(name, ["k"], usual(name, 60_000), [one(name, 0)], db=99), Error)
    assert scripts.conn.call("DBSIZE") == 0


@pytest.mark.parametrize("name", NAMES)
def test_an_error_of_redis_is_the_reply_and_nothing_is_written(redis, scripts, name):
    keys = ["a", "b", "c"]
    call = lambda keys: scripts.call(name, keys, usual(name, 60_000), [one(name, 0)] * len(keys))
    call(["b"])
    state = redis.call("DEBUG", "DIGEST")
    settings = [("OOM", "maxmemory", "1", "0"), ("NOREPLICAS", "min-replicas-to-write", "1", "0")]
    for word, setting, bad, good in settings:
        redis.call("CONFIG", "SET", setting, bad)
        reply = call(keys)
        redis.call("CONFIG", "SET", setting, good)
        assert isinstance(reply, Error) and reply.startswith(word + " "), reply
        assert redis.call("DEBUG", "DIGEST") == state
    call(keys)
    assert redis.call("DBSIZE") == 3


def digest(redis, keys):
    """Returns the content of a server: values, and when they expire."""
    with redis.connect() as conn:
        return [conn.ask(("DUMP", key), ("PEXPIRETIME", key)) for key in keys]


def test_a_replica_and_a_restart_keep_every_decision(farm):
    primary = farm.redis("--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0")
    replica = farm.redis("--replicaof", "127.0.0.1", str(primary.port))
    wait_until(lambda: replica.info("master_link_status") == "up", "the replica follows")
    scripts, rng = Scripts(primary), random.Random(8)
    hour = {name: usual(name, 3600_000) for name in NAMES}
    # some reserve a scheduled time
    hour["funnel"] = ["f", 2, 10**12, 10**12, 9 * 10**12, 5 * 10**12, 1, 1, 10**13, 10**13]
    for name in NAMES:
        model, sent = MODELS[name](rng), []
        for i in range(300):
            some = [f"{name}:{n}" for n in rng.sample(range(10), 5)]
            if i % 2:
                some = [f"lasting:{key}" for key in some]
            params = hour[name] if i % 2 else usual(name, 20)
            sent.append(scripts.command(name, some, params, [model.each() for _ in some]))
        assert not any(isinstance(reply, Error) for reply in scripts.conn.ask(*sent))
    keys = [f"{kind}{name}:{n}" for kind in ("lasting:", "") for name in NAMES for n in range(10)]
    assert primary.call("WAIT", 1, 10_000) == 1
    wait_until(lambda: digest(primary, keys) == digest(replica, keys), "the replica holds the same")
    assert all(expires != -1 for _, expires in digest(primary, keys))

    moment = int(time.time()) * 10**6

    def looks(scripts):
        """Returns every decision at one moment."""
        found = []
        for name in NAMES:
            some = [key for key in lasting if name in key]
            each = ["a" if name == "holders" else 1] * len(some)
            found.append(scripts.call(name, some, hour[name], each, moment, peek=True) if some else None)
        return found

    for name in NAMES:
        refusal = Scripts(replica).call(name, ["k"], usual(name, 60_000), [one(name, 0)])
        assert isinstance(refusal, Error) and refusal.startswith("READONLY "), (name, refusal)

    lasting = [key for key in keys if primary.call("PTTL", key) > 60_000]
    held, said = digest(primary, lasting), looks(scripts)
    assert len(lasting) > 30
    primary.signal(9)
    primary.wait()
    primary.start()
    wait_until(lambda: primary.info("loading") == "0", "the primary has loaded its data")
    assert digest(primary, lasting) == held
    assert looks(Scripts(primary)) == said


def test_keys_are_declared(farm):
    """A cluster of one node refuses a script that touches a key of another slot."""
    node = farm.redis("--cluster-enabled", "yes")
    node.call("CLUSTER", "ADDSLOTS", *range(16384))
    wait_until(lambda: node.info("cluster_enabled") == "1" and node.call("SET", "x", 1) == "OK", "the cluster is up")
    scripts = Scripts(node)
    for name in NAMES:
        for _ in range(3):
            reply = scripts.call(name, ["{t}a", "{t}b"], usual(name, 60_000), [one(name, 0)] * 2)
            assert not isinstance(reply, Error), (name, reply)


def test_commands_are_as_old_as_redis_6_2(redis):
    for name in NAMES:
        text = source(name)
        used = set(re.findall(r"\b(?:call|pcall)\('([A-Z]+)'", text)) | set(re.findall(r"{ '([A-Z]+)'", text))
        assert len(used) >= 4, name
        for command in used:
            if not at_least(7, 0):  # Redis before 7.0 reports no history: the command must exist
                assert redis.call("COMMAND", "INFO", command)[0] is not None, (name, command)
                continue
            _, docs = redis.call("COMMAND", "DOCS", command)
            since = docs[docs.index(b"since") + 1].decode()
            assert tuple(map(int, since.split("."))) <= (6, 2, 0), (name, command, since)
