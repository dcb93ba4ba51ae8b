"""docs/algorithms.md as a program: the reply to each call and the value stored after it, in
integers and fractions of any size. The program uses no code of weir. Comments name the implemented
sentences of the page (F3, W1 ...).

Times are us since 1970 where the page says so, and ns in funnels. Replies are lists, as in RESP2;
errors are Wrong.
"""

import copy
import math
import re
import struct
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

NS_PER_US, NS_PER_MS, US_PER_MS = 1000, 10**6, 1000
MOST = 2**53
KEPT = 8  # the most rates of a key that are kept
STEP_NS = 4 * NS_PER_MS  # resolution of a funnel's stored peak debt
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
PERIODS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
DAY_S, EPOCH = 86400, date(1970, 1, 1).toordinal()
CALENDAR = {"DAY": "d", "WEEK": "w", "MONTH": "m"}
NEVER = math.inf
WRONGTYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
OWES = "ERR the key still owes at 8 other rates: give this one a key of its own"
COUNTS = "ERR the key still counts in 8 other periods: give this one a key of its own"


class Wrong(Exception):
    """An error reply."""


def ceil_div(a, b):
    return -(-a // b)


def within(number, least, most):
    return min(max(number, least), most)


# ---- words ----


class Rate:
    """R1 .. R6: a count per period, and how long a unit takes in a funnel."""

    def __init__(self, text):
        self.letter = CALENDAR.get(text.partition("/")[2].upper())
        if self.letter:  # D1
            number, unit = re.fullmatch(r"(\d+)([kmg]?)/.*", text.lower()).groups()
            self.count, self.period_ns = int(number) * UNITS[unit], 0
            self.burst = self.count
            return
        number, unit, length, name = re.fullmatch(r"(\d+(?:\.\d{1,6})?)([kmg]?)/(\d*)(ms|s|m|h|d)", text.lower()).groups()
        count, parts = Fraction(number) * UNITS[unit], 1
        if "." in number:
            count, parts = count.numerator, count.denominator
        self.count, self.period_ns = int(count), int(length or 1) * PERIODS[name] * parts
        self.burst = self.count

    @property
    def period(self):
        return self.period_ns // NS_PER_US

    @property
    def interval(self):
        return ceil_div(self.period_ns, self.count)

    @property
    def is_fine(self):
        return self.interval < 100 and self.period_ns % self.count > 0

    def span(self, units):
        """Returns the time of this many units; for refunds rounded down."""
        if not self.is_fine:
            return units * self.interval
        exact = Fraction(units * self.period_ns, self.count)
        return math.ceil(exact) if units >= 0 else -math.floor(-exact)

    def units(self, span):
        return math.floor(Fraction(span * self.count, self.period_ns)) if self.is_fine else span // self.interval

    @property
    def burst_ns(self):
        return self.span(self.burst)


def time_ms(text):
    number, unit = re.fullmatch(r"(\d*)(ms|s|m|h|d)", text.lower()).groups()
    return int(number or 1) * PERIODS[unit] // NS_PER_MS


@dataclass
class Told:
    """T1, before rounding: retry and reset in ns. retry -1: the call passes. NEVER: the call never
    passes.
    """

    is_limited: bool
    limit: int
    remaining: int
    retry: int
    reset: int
    granted: int


class Call:
    """The words of one LIMIT command with rates."""

    def __init__(self, words):
        self.name, self.key, self.rates = words[0].upper(), words[1], []
        self.cost, self.wait, self.mode = 1, 0, "TAKE"
        self.waits = 0  # ns until the call's scheduled time, once decided
        self.is_peek = self.counts_all = self.is_first = False
        self.warmup, self.penalty = 0, None  # ns; (first, longest) in ms
        # refused by something else than the call's rates: a penalty, or another key
        self.is_held = False
        self.room_alone = False  # of several keys: only another key refuses
        rest = [word.upper() for word in words[2:]]
        while rest:
            word = rest.pop(0)
            if "/" in word:
                self.rates.append(Rate(word))
            elif word == "BURST":
                self.rates[-1].burst = int(rest.pop(0))
            elif word == "COST":
                self.cost = int(rest.pop(0))
            elif word == "WAIT":
                self.wait = int(rest.pop(0)) * NS_PER_MS
            elif word == "CREDIT":
                self.mode, self.cost = word, int(rest.pop(0))
            elif word == "WARMUP":
                self.name, self.warmup = "WARM", time_ms(rest.pop(0)) * NS_PER_MS
            elif word == "PENALTY":
                first, _, longest = rest.pop(0).partition("..")
                self.penalty = time_ms(first), time_ms(longest or first)
            elif word in ("FORCE", "PARTIAL", "BORROW"):
                self.mode = word
            elif word == "PEEK":
                self.is_peek = True
            elif word == "APPROX":
                self.name = word
            elif word == "COUNT":
                self.counts_all = rest.pop(0) == "ALL"
            else:
                self.is_first = (word, rest.pop(0)) == ("FROM", "FIRST")
        self.is_peek |= self.cost == 0  # O1

    @property
    def is_sure(self):
        return self.cost == 0 or self.mode in ("FORCE", "CREDIT")

    def refuses_alone(self, told):
        """True if, of several keys, this key itself has no room."""
        return told.is_limited and not self.room_alone

    @property
    def tries(self):
        """O6: PARTIAL counts as several tries of one unit."""
        return self.cost if self.mode == "PARTIAL" and self.cost else 1

    @property
    def charge(self):
        """Returns the units of each try."""
        return {"PARTIAL": 1, "CREDIT": -self.cost}.get(self.mode, self.cost)

    def reply(self, told):
        """T1 .. T5."""
        times = [-1 if ns < 0 or ns == NEVER else ceil_div(ns, NS_PER_MS) for ns in (told.retry, told.reset)]
        return [int(told.is_limited), told.limit, told.remaining, *times] + ([told.granted] if self.mode == "PARTIAL" else [])

    def most_waited_for(self, rows):
        """T4: returns the row (retry, limit, remaining, reset) of the rate with the longest wait,
        the first of equals. P6: where no rate refuses, the row with the least remaining.
        """
        refuses = any(row[0] > 0 for row in rows)
        retry, limit, remaining, reset = max(rows, key=lambda row: row[0]) if refuses else min(rows, key=lambda row: row[2])
        return Told(True, limit, remaining, retry, reset, 0)

    def least_left(self, rows, granted):
        """T4: returns the row (remaining, limit, reset) of the rate with the least remaining, the
        first of equals.
        """
        remaining, limit, reset = min(rows, key=lambda row: row[0])
        return Told(False, limit, remaining, -1, reset, granted)


# ---- FUNNEL and BUCKET ----


class Funnel:
    """The debt of a key at one interval."""

    def __init__(self, interval, debt=0, peak=0, is_new=True):
        self.interval, self.debt, self.peak, self.is_new = interval, debt, peak, is_new
        self.before = debt


def room_of(call, rate):
    """F4, O2 .. O7: returns the debt that a try adds, and the largest debt allowed after the try.
    """
    burst = rate.burst_ns
    inc = rate.span(call.charge)
    if call.mode in ("FORCE", "CREDIT"):
        return max(inc, 1 - MOST), burst
    if call.mode == "BORROW":
        return inc, burst - rate.span(1) + inc
    if call.charge > rate.burst:
        return burst + 1, burst
    return inc, min(burst + call.wait, MOST - 1)


class Funnels:
    """The value of a FUNNEL or BUCKET key; `tag` is its first byte."""

    def __init__(self, tag):
        self.tag, self.records = tag, []  # [interval, TAT in ns, peak in steps]

    def seen(self, now):
        """F2, F8: returns the debts at a time, and whether a clock step had to be corrected."""
        found, is_cut = [], False
        for interval, tat, peak in self.records:
            debt = max(0, tat - now)
            is_cut |= debt > peak * STEP_NS
            found.append(Funnel(interval, min(debt, peak * STEP_NS), peak, False))
        return found, is_cut

    def asked(self, kept, rates):
        """F6, F7: returns the funnel of each rate."""
        named = {funnel.interval: funnel for funnel in kept}
        for interval in {rate.interval for rate in rates} - set(named):
            widest = max(ceil_div(rate.burst_ns, STEP_NS) for rate in rates if rate.interval == interval)
            fitting = [funnel.debt for funnel in kept if funnel.peak <= widest]
            named[interval] = Funnel(interval, max(fitting, default=0))
        return [named[rate.interval] for rate in rates]

    def ask(self, call, now_us):
        """Returns what is told, whether anything changes, and a function that stores the change and
        returns its time to live in ms.
        """
        for rate in call.rates:
            if rate.burst * rate.interval >= MOST - 1:
                raise Wrong(f"ERR a burst of {rate.burst} at this rate takes more than 104 days to drain: give a smaller burst")
            if call.mode in ("FORCE", "BORROW") and call.cost * rate.interval + rate.burst_ns >= MOST - 1:
                raise Wrong("ERR this COST at this rate takes more than 104 days to drain")
        now = now_us * NS_PER_US
        kept, changes = self.seen(now)
        asked = self.asked(kept, call.rates)
        debts = [funnel.debt for funnel in asked]
        rooms = [room_of(call, rate) for rate in call.rates]
        granted = call.tries
        for debt, (inc, room) in zip(debts, rooms):
            if not call.is_sure:
                granted = within((room - debt) // inc, 0, 0 if call.is_held else granted)
        changes = not call.is_peek and self.pour(call, kept, asked, rooms, granted, changes)
        return self.told(call, debts, rooms, granted), changes, lambda: self.store(kept, now)

    def store(self, kept, now):
        self.records = [[funnel.interval, now + funnel.debt, funnel.peak] for funnel in kept]
        return ceil_div(max([0, *(funnel.debt for funnel in kept)]), NS_PER_MS)  # F10

    def pour(self, call, kept, asked, rooms, granted, changes):
        refused = call.tries - granted if call.counts_all else 0
        for funnel in dict.fromkeys(asked):
            inc = rooms[asked.index(funnel)][0]
            funnel.debt = within(funnel.before + granted * inc, 0, MOST)
        poured = [funnel.debt for funnel in asked]
        for rate, funnel, after, (inc, _) in zip(call.rates, asked, poured, rooms):
            if refused:
                funnel.debt = max(funnel.debt, min(after + refused * inc, rate.burst_ns))
        for funnel in dict.fromkeys(asked):
            if funnel.debt != funnel.before:
                changes, funnel.peak = True, ceil_div(funnel.debt, STEP_NS)
                kept += [funnel] if funnel.is_new else []
        for funnel in kept[::-1] if changes else []:  # F9
            if len(kept) > KEPT and funnel.debt == 0:
                kept.remove(funnel)
        if len(kept) > KEPT:
            raise Wrong(OWES)
        return changes

    def told(self, call, debts, rooms, granted):
        left = lambda rate, debt: within(rate.units(max(0, rate.burst_ns - debt)), 0, rate.burst)
        if granted > 0:
            after = [debt if call.is_peek else within(debt + granted * inc, 0, MOST) for debt, (inc, _) in zip(debts, rooms)]
            waits = [debt - rate.burst_ns for debt, rate in zip(after, call.rates)]
            # O3: told as of the scheduled time
            call.waits = wait = max([0, *waits]) if call.wait and not call.is_sure else 0
            rows = [(left(rate, debt - wait), rate.burst, max(0, debt - wait)) for rate, debt in zip(call.rates, after)]
            return call.least_left(rows, granted if call.mode == "PARTIAL" and call.cost else call.cost)
        rows = []
        for rate, debt, (inc, room) in zip(call.rates, debts, rooms):
            if call.counts_all and not call.is_peek:
                debt = max(debt, min(debt + inc, rate.burst_ns))
            retry = NEVER if inc > room else max(0, debt + inc - room)
            rows.append((retry, rate.burst, left(rate, debt), debt))
        return call.most_waited_for(rows)

    def shown(self):
        """F11."""
        if not self.records:
            return None
        parts = (interval.to_bytes(7, "big") + struct.pack(">III", *divmod(tat, 10**9), peak) for interval, tat, peak in self.records)
        return self.tag.encode() + b"".join(parts)


# ---- FIXED and SLIDING APPROX ----


def spelled(start, period):
    """W2: returns the moment of a window at which the last digits spell its period in ms, and the
    number of those digits.
    """
    ms = period // US_PER_MS
    code = f"{ms}{len(str(ms)):02d}"
    return start + (int(code) - start) % 10 ** len(code)


def calendar_window(letter, now):
    """D2: returns when the present window of UTC begins and ends, in us."""
    day = now // 10**6 // DAY_S
    if letter == "d":
        first, last = day, day + 1
    elif letter == "w":
        first = day - (date.fromordinal(EPOCH + day).weekday())
        last = first + 7
    else:
        month = date.fromordinal(EPOCH + day).replace(day=1)
        following = date(month.year + month.month // 12, month.month % 12 + 1, 1)
        first, last = month.toordinal() - EPOCH, following.toordinal() - EPOCH
    return first * DAY_S * 10**6, last * DAY_S * 10**6


class Window:
    """`letter` is that of a calendar window. The letter, the beginning and the length name the
    window.
    """

    def __init__(self, period, start, used=0, before=0, is_first=False, letter=None):
        self.period, self.start, self.used, self.before, self.is_first = period, start, used, before, is_first
        self.was, self.letter = (used, before), letter

    @property
    def name(self):
        return (self.letter, self.start, self.period) if self.letter else (self.is_first, self.period)


class Windows:
    """Common parts of FIXED and APPROX: windows by their periods."""

    def __init__(self):
        self.windows = {}  # by their names, in stored order

    def seen(self, now, letters=()):
        """W3 .. W5, D4: returns the windows at a time, and whether one was brought back. Of
        calendar windows only the requested ones are kept.
        """
        found, is_brought = {}, False
        for window in self.windows.values():
            is_first, period = window.is_first, window.period
            start, used, before = window.start, window.used, window.before
            if window.letter:
                here, over = calendar_window(window.letter, now)
                if window.letter in letters and start >= calendar_window(window.letter, over)[1]:
                    start, period, is_brought = here, over - here, True
                if start + period > now:
                    kept = Window(period, start, used, letter=window.letter)
                    found[kept.name] = kept
                continue
            here = now if is_first else now - now % period
            is_ahead = start > now if is_first else start > here + period
            if is_ahead:
                is_brought |= used + before > 0
                start = here
            elif is_first and now >= start + period:
                continue
            elif not is_first and start < here:
                start, used, before = here, 0, (used if start == here - period else 0)
            found[is_first, period] = Window(period, start, used, before if self.has_before else 0, is_first)
        return found, is_brought

    def asked(self, kept, call, rate, now):
        """Returns the window in which this rate counts."""
        if rate.letter:
            here, over = calendar_window(rate.letter, now)
            following = Window(calendar_window(rate.letter, over)[1] - over, over, letter=rate.letter)
            present = Window(over - here, here, letter=rate.letter)
            return kept.get(following.name) or kept.setdefault(present.name, present)
        here = now if call.is_first else now - now % rate.period
        return kept.setdefault((call.is_first, rate.period), Window(rate.period, here, is_first=call.is_first))

    def ask(self, call, now):
        kept, changes = self.seen(now, {rate.letter for rate in call.rates})
        asked = [self.asked(kept, call, rate, now) for rate in call.rates]
        unique = list(dict.fromkeys(asked))
        kept = [*unique, *(window for window in kept.values() if window not in unique)]
        charge = call.charge if call.cost else 1
        used = [self.held(window, now) for window in asked]
        granted = call.tries
        for before, rate in zip(used, call.rates):
            if not call.is_sure or call.is_peek:
                granted = within((rate.count - before) // charge, 0, 0 if call.is_held else granted)
        if not call.is_peek:
            for window in unique:
                self.add(window, granted * charge)
            if call.counts_all:
                for before, window, rate in zip(used, asked, call.rates):
                    self.add(window, max(0, min(before + call.tries * charge, rate.count) - self.held(window, now)))
        changes |= any((window.used, window.before) != window.was for window in unique)
        if call.mode == "CREDIT":
            used = [max(0, self.held(window, now) + call.cost) if self.held(window, now) else before for before, window in zip(used, asked)]
        told = self.told(call, used, asked, granted if not call.is_sure else call.tries, now)
        changes &= not call.is_peek
        live = [window for window in kept if self.over(window, now) > 0]
        if changes and len(live) > KEPT:
            raise Wrong(COUNTS)
        return told, changes, lambda: self.store(live, now)

    def store(self, live, now):
        self.windows = {window.name: window for window in live}
        return ceil_div(max([1000, *(self.over(window, now) for window in live)]), US_PER_MS) if live else 0

    def told(self, call, used, asked, granted, now):
        """T1 .. T5. After an admitted try the times are those after the try."""
        rows = []
        for rate, before, window in zip(call.rates, used, asked):
            is_counted = not call.is_peek and (granted > 0 or call.counts_all)
            refused = call.charge if granted == 0 and call.counts_all and not call.is_peek else 0
            after = max(0, before + (granted * call.charge + refused if is_counted else 0))
            left = within(rate.count - after, 0, rate.count)
            retry = NEVER if call.charge > rate.count else self.retry(window, rate.count - call.charge, now)
            rows.append((retry * NS_PER_US, rate.count, left, self.over(window, now) * NS_PER_US))
        if granted > 0:
            return call.least_left([(left, count, reset) for _, count, left, reset in rows],
                                   granted if call.mode == "PARTIAL" and call.cost else call.cost)  # fmt: skip
        return call.most_waited_for(rows)

    def shown(self):
        return (self.tag + " ".join(map(self.word, self.windows.values()))).encode() if self.windows else None


class Fixed(Windows):
    tag, has_before = "w", False

    def held(self, window, now):
        return window.used

    def add(self, window, units):
        window.used = within(window.used + units, 0, MOST)

    def retry(self, window, room, now):
        return window.start + window.period - now if window.used > room else 0

    def over(self, window, now):
        return window.start + window.period - now if window.used else 0

    def word(self, window):
        if window.letter:  # D5
            return f"{window.letter}{window.start // 10**6}-{window.period // 10**6}:{window.used}"
        if window.is_first:
            return f"{window.start}-{window.period // US_PER_MS}:{window.used}"
        return f"{spelled(window.start, window.period)}:{window.used}"


class Approx(Windows):
    tag, has_before = "a", True

    @staticmethod
    def weighted(window, at):
        """A1: returns the weighted count, at a time that is not before now."""
        start, used, before = window.start, window.used, window.before
        while at >= start + window.period:
            start, used, before = start + window.period, 0, used
        return used + Fraction(before * (window.period - max(0, at - start)), window.period)

    def held(self, window, now):
        return math.ceil(self.weighted(window, now))

    def add(self, window, units):
        """A3: refunds reduce the present window first, then the previous one."""
        used = min(window.used + units, MOST)
        if used < 0:
            window.before = max(0, window.before + used)
        window.used = max(0, used)

    def retry(self, window, room, now):
        """A2: returns the first us at which there is room, by bisection: the count of a window
        never grows by itself.
        """
        low, high = -1, window.start + 3 * window.period - now
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.weighted(window, now + middle) <= room else (middle, high)
        return high

    def over(self, window, now):
        if window.used:
            return window.start + 2 * window.period - now
        return window.start + window.period - now if window.before else 0

    def word(self, window):
        return f"{spelled(window.start, window.period)}:{window.used}:{window.before}"


# ---- SLIDING ----


class Log:
    """S1: admitted calls as (time, total, units)."""

    kept, pruned, given_at_once = 10000, 100, 1000

    def __init__(self):
        self.entries = []
        self.over_at = 0  # us: end of the key's life

    def held(self, entries, at, period):
        return sum(units for time, _, units in entries if time + period > at)

    def ask(self, call, now):
        longest = max(rate.period for rate in call.rates)
        charge = call.charge if call.cost else 1
        is_brought = any(at > now for at, _, _ in self.entries)
        entries = [(min(at, now), total, units) for at, total, units in self.entries]  # S6
        used = [self.held(entries, now, rate.period) for rate in call.rates]
        granted = call.tries
        for before, rate in zip(used, call.rates):
            if not call.is_sure or call.is_peek:
                granted = within((rate.count - before) // charge, 0, 0 if call.is_held else granted)
        charged = 0 if call.is_peek else granted * max(0, charge)
        if call.counts_all and not call.is_peek:
            charged += (call.tries - granted) * min(charge, max(rate.count for rate in call.rates))
        total = entries[-1][1] if entries else 0
        after = entries + ([(now, total + charged, charged)] if charged else [])
        if call.mode == "CREDIT":
            after = self.given_back(after, call.cost, now - longest)
        rows = [self.row(call, rate, before, granted, entries, after, charged, now) for rate, before in zip(call.rates, used)]
        changes = not call.is_peek and bool(charged or is_brought or after != entries)
        write = lambda: self.write(after, charged, is_brought, longest, now, call.mode == "CREDIT") if changes else self.lives(now)
        if call.is_sure or granted > 0:
            least = [(left, count, reset) for _, count, left, reset in rows]
            return call.least_left(least, granted if call.mode == "PARTIAL" and call.cost else call.cost), changes, write
        return call.most_waited_for(rows), changes, write

    def lives(self, now):
        return max(0, ceil_div(self.over_at - now, US_PER_MS)) if self.entries else 0

    def row(self, call, rate, before, granted, entries, after, charged, now):
        held = max(0, before + (-call.cost if call.mode == "CREDIT" else 0 if call.is_peek else charged))
        if call.counts_all and not granted and not call.is_peek:
            held = before + call.charge
        retry = NEVER
        if call.charge <= rate.count:
            moments = sorted({now, *(at + rate.period for at, _, _ in after if at + rate.period > now)})
            retry = next(at - now for at in moments if self.held(after, at, rate.period) + call.charge <= rate.count)
        over = max([0, *(at + rate.period - now for at, _, _ in after)])
        return retry * NS_PER_US, rate.count, within(rate.count - held, 0, rate.count), over * NS_PER_US

    def given_back(self, entries, units, border):
        """S5: refunds take the newest entries first, within the longest window."""
        entries = list(entries)
        while units and entries and entries[-1][0] > border:
            at, total, size = entries.pop()
            if size > units:
                entries.append((at, total - units, size - units))
            units = max(0, units - size)
        return entries

    def write(self, after, charged, is_brought, longest, now, is_credit):
        if is_brought and not is_credit:  # one entry for all that was ahead and for this call
            joined = [entry for entry in after if entry[0] == now]
            ahead = sum(units for _, _, units in joined)
            after = [entry for entry in after if entry[0] < now] + [(now, joined[-1][1], ahead)]
        if charged or is_brought:
            over = max(0, len(after) - self.kept)
            if (self.over_at - now) <= longest:
                over = max(over, sum(at <= now - longest for at, _, _ in after))
            after = after[min(over, self.pruned) :]
            self.over_at = max(self.over_at, now + longest)
        self.entries = after
        return self.lives(now)

    def shown(self):
        return [(b"%016d+%d" % (total, units), at) for at, total, units in self.entries] or None


# ---- THROTTLE ----


class Cell:
    def __init__(self):
        self.tat = 0

    def ask(self, numbers, now_us):
        """C1 .. C5."""
        max_burst, count, period, quantity = [*map(int, numbers), 1][:4]
        interval, now, limit = period * 10**9 // count, now_us * NS_PER_US, max_burst + 1
        room, inc = interval * limit, interval * quantity
        debt = within(self.tat - now, 0, MOST)
        passes = debt + inc <= room
        after = max(0, debt + inc) if passes else debt
        retry = -1 if passes or inc > room else debt + inc - room
        lives = None
        if after != debt:
            self.tat, lives = now + after if after else 0, ceil_div(after, NS_PER_MS)
        seconds = lambda ns: -1 if ns < 0 else ceil_div(ns // NS_PER_MS, 1000)
        return [int(not passes), limit, within((room - after) // interval, 0, limit), seconds(retry), seconds(after)], lives

    def shown(self):
        return b"%d" % self.tat if self.tat else None


# ---- ACQUIRE, RENEW, RELEASE ----


class Holders:
    def __init__(self):
        self.over = {}  # token: (ms of its expiry, code of its time to live)

    @staticmethod
    def code(ttl):
        """H6: returns the least of 1 + 16 e + m with (16 + m) / 16 * 2^e ms at least that long."""
        return 1 + next(c for c in range(1023) if (16 + c % 16) * 2 ** (c // 16) >= 16 * ttl)

    @staticmethod
    def spelled(code):
        return Fraction((16 + (code - 1) % 16) * 2 ** ((code - 1) // 16), 16)

    def live(self, now):
        return {token: held for token, held in self.over.items() if held[0] > now // US_PER_MS}

    def give(self, token, ttl, now):
        self.over = self.live(now) | {token: (ceil_div(now, US_PER_MS) + ttl, self.code(ttl))}
        return self.lives(now)

    def lives(self, now):
        return max([0, *(over - now // US_PER_MS for over, _ in self.over.values())])

    def acquire(self, token, most, ttl, now):
        live = self.live(now)
        if len(live) < most:
            return [0, token, len(live) + 1, most, -1], self.give(token, ttl, now)
        lives = self.bring_back(now)
        overs = sorted(over for over, _ in self.live(now).values())
        return [1, None, len(live), most, ceil_div(overs[len(overs) - most] * US_PER_MS - now, US_PER_MS)], lives

    def bring_back(self, now):
        """H7: a holder with more remaining time than its time to live gets its time to live from
        now on.
        """
        brought = {}
        for token, (over, code) in self.over.items():
            time = self.spelled(code)
            if over - time > now // US_PER_MS + 2:
                brought[token] = (now // US_PER_MS + 1 + math.ceil(time), code)
        self.over = self.live(now) | brought if brought else self.over
        return self.lives(now) if brought else None

    def renew(self, token, ttl, now):
        holds = token in self.live(now)
        return int(holds), self.give(token, ttl, now) if holds else None

    def release(self, token, now):
        holds, was = token in self.live(now), token in self.over
        if was:
            self.over = self.live(now)
            self.over.pop(token, None)
        return int(holds), self.lives(now) if was else None

    def shown(self):
        scores = ((b"h:" + token.encode(), over - 1 + Fraction(code, 1024)) for token, (over, code) in self.over.items())
        return sorted(scores, key=lambda one: (one[1], one[0])) or None


# ---- BUCKET with a warm-up ----


@dataclass
class Rest:
    """G1: the rest of one rate and warm-up, in ns."""

    interval: int
    warmup: int
    debt: int
    rest: int
    is_new: bool = False

    @property
    def left(self):
        return self.debt + self.warmup - self.rest


class Warm:
    def __init__(self):
        self.rests, self.written = [], 0  # us

    def seen(self, now_us):
        """G2, G7."""
        passed = max(0, now_us - self.written) * NS_PER_US
        grown = lambda one: min(one.warmup, one.rest + max(0, passed - one.debt))
        return [Rest(one.interval, one.warmup, max(0, one.debt - passed), grown(one)) for one in self.rests]

    @staticmethod
    def energy(warmup, rest):
        """G4: returns the debt that a rest adds."""
        return 2 * max(Fraction(0), Fraction(rest) - Fraction(warmup, 2)) ** 2 / warmup

    def ask(self, call, now_us):
        rate, kept = call.rates[0], self.seen(now_us)
        changes = bool(self.rests) and now_us < self.written
        most, taken = rate.burst_ns - rate.span(1), rate.span(call.cost)
        named = [one for one in kept if (one.interval, one.warmup) == (rate.interval, call.warmup)]
        asked = named[0] if named else Rest(rate.interval, call.warmup, max([0, *(one.debt for one in kept)]), call.warmup, True)
        passes = call.cost == 0 or asked.debt <= most
        if passes and call.cost:
            price = taken + self.energy(call.warmup, asked.rest) - self.energy(call.warmup, max(0, asked.rest - taken))
            asked.debt, asked.rest, changes = asked.debt + math.ceil(price), max(0, asked.rest - taken), True
            kept += [asked] if asked.is_new else []
        live = [one for one in kept if one.left > 0]
        changes &= not call.is_peek
        if changes and len(live) > KEPT:
            raise Wrong(OWES)
        remaining = within(rate.units(max(0, rate.burst_ns - asked.debt)), 0, rate.burst)
        told = Told(not passes, rate.burst, remaining, -1 if passes else asked.debt - most, asked.left, call.cost)
        return told, changes, lambda: self.store(live, now_us)

    def store(self, live, now_us):
        self.rests, self.written = live, now_us
        return ceil_div(max([0, *(one.left for one in live)]), NS_PER_MS)

    def shown(self):
        """G8."""
        numbers = lambda one: [(one.interval, 7), (one.warmup, 6), (self.written, 7), (one.debt, 7), (one.rest, 6)]
        parts = (number.to_bytes(size, "big") for one in self.rests for number, size in numbers(one))
        return b"g" + b"".join(parts) if self.rests else None


# ---- penalties ----


@dataclass
class Penalty:
    """P1: till in us, the others in ms."""

    till: int
    span: int
    last: int = 0
    rest: int = 0

    def seen(self, now):
        """P2, P8: returns the penalty at a time, or None."""
        cut = Penalty(min(self.till, now + self.span * US_PER_MS), self.span, self.last, self.rest)
        return cut if now < cut.till + cut.rest * US_PER_MS else None

    def left(self, now):
        return max(0, self.till - now)

    def lives(self, now):
        return ceil_div(self.till - now, US_PER_MS) + self.rest

    @property
    def text(self):
        return f"p{self.till}:{self.span}:{self.last}:{self.rest}"


def next_penalty(known, penalty, now):
    """P4, P5."""
    first, longest = penalty
    last, rest = (known.last, known.rest) if known else (0, 0)
    if longest == first:
        return Penalty(now + first * US_PER_MS, first, last, rest)
    span = min(max(first, 2 * last), longest)
    return Penalty(now + span * US_PER_MS, span, span, longest)


# ---- all keys ----

KINDS = {"FUNNEL": lambda: Funnels("f"), "BUCKET": lambda: Funnels("b"), "SLIDING": Log, "APPROX": Approx, "FIXED": Fixed, "WARM": Warm,
         "THROTTLE": Cell, "ACQUIRE": Holders, "RENEW": Holders, "RELEASE": Holders}  # fmt: skip
LETTERS = {"FUNNEL": b"f", "BUCKET": b"b", "APPROX": b"a", "FIXED": b"w"}
# of ALL: how many words follow each option
WHOLE = {"PEEK": 0, "FORCE": 0, "BORROW": 0, "CREDIT": 1, "COUNT": 1, "FROM": 1, "PENALTY": 1}


@dataclass
class Key:
    kind: str
    state: object
    end: int = 0  # us
    penalty: Penalty = None

    def shown(self):
        """P1: a penalty stands before the value of a string, and after the entries of a log."""
        shown = self.state.shown()
        if not self.penalty:
            return shown
        text = self.penalty.text.encode()
        return [*(shown or []), (text + b":*", math.inf)] if self.kind == "SLIDING" else text + (shown or LETTERS[self.kind])

    def decide(self, call, now):
        """P3 .. P8: returns what is told, whether anything changes, and a function that stores the
        change and returns its time to live in ms.
        """
        known = self.penalty and self.penalty.seen(now)
        left = known.left(now) if known else 0
        call.is_held |= left > 0
        told, changes, write = self.state.ask(call, now)
        changes |= not call.is_peek and known is not None and known.till < self.penalty.till
        if call.penalty and call.refuses_alone(told) and not left and not call.is_peek:
            known, changes = next_penalty(known, call.penalty, now), True
            left = known.left(now)
        if left > 0:  # P6
            told.remaining, told.reset = 0, max(told.reset, left * NS_PER_US)
            told.retry = max(told.retry, left * NS_PER_US) if told.is_limited else -1

        def store():
            lives, self.penalty = write(), known
            if lives == 0 and self.kind != "SLIDING":
                self.state = KINDS[self.kind]()
            return max(lives, known.lives(now)) if known else lives

        return told, changes, store

    def ban(self, known, now):
        """B1 .. B3: counts stay unchanged, and the key keeps at least its time to live."""
        self.penalty = known
        if self.kind == "SLIDING":
            lives = self.state.lives(now)
        else:
            lives = ceil_div(max(0, self.end - now), US_PER_MS) if self.state.shown() else 0
        return max(lives, known.lives(now)) if known else lives


class Reference:
    """All keys, each with its algorithm and its expiry."""

    def __init__(self):
        self.keys = {}
        self.tokens = 0
        self.waits = 0  # of the last call, in ns

    def key(self, name, key, now):
        kind = {"RENEW": "ACQUIRE", "RELEASE": "ACQUIRE"}.get(name, name)
        for ended in [one for one, known in self.keys.items() if known.end <= now]:
            del self.keys[ended]  # K1
        known = self.keys.get(key)
        if known and known.kind != kind:
            raise Wrong(WRONGTYPE)
        return known or Key(kind, KINDS[name]())

    def keep(self, name, key, lives, now):
        """Stores a key for the time that its state counts; None keeps the time to live."""
        if lives == 0:
            self.keys.pop(name, None)
        elif lives is not None:
            key.end = now + lives * US_PER_MS
            self.keys[name] = key

    def call(self, words, now):
        """Returns the reply to LIMIT ... at a time; raises Wrong for an error."""
        name, key = words[0].upper(), words[1]
        self.waits = 0
        if name == "RESET":
            return sum(self.keys.pop(one, Key(None, None)).end > now for one in words[1:])
        if name in ("BAN", "UNBAN"):
            return self.ban(name, words[1].upper(), words[2], words[3:], now)
        if name == "ALL":
            return self.all(words[1:], now)
        if name in ("FUNNEL", "BUCKET", "SLIDING", "FIXED"):
            call = Call(words)
            known = self.key(call.name, key, now)
            told, changes, store = known.decide(call, now)
            self.waits = call.waits
            self.keep(key, known, store() if changes else None, now)
            return call.reply(told)
        known = self.key(name, key, now)
        if name == "THROTTLE":
            reply, lives = known.state.ask(words[2:], now)
        elif name == "ACQUIRE":
            reply, lives = known.state.acquire(f"${self.tokens + 1}", int(words[2]), int(words[3]), now)
            self.tokens += 1 - reply[0]
        elif name == "RENEW":
            reply, lives = known.state.renew(words[2], int(words[3]), now)
        else:
            reply, lives = known.state.release(words[2], now)
        self.keep(key, known, lives, now)
        return reply

    def ban(self, name, algorithm, key, times, now):
        known = self.key(algorithm, key, now)
        was = known.penalty and known.penalty.seen(now)
        is_there = was is not None and was.left(now) > 0
        if name == "BAN":
            span = time_ms(times[0])
            after = Penalty(now + span * US_PER_MS, span, was.last if was else 0, was.rest if was else 0)
        elif not known.penalty:
            return 0
        else:
            after = None
        self.keep(key, known, known.ban(after, now), now)
        return "OK" if name == "BAN" else int(is_there)

    def all(self, words, now):
        """M1 .. M6."""
        calls = parts_of(words)
        keys = [self.key(call.name, call.key, now) for call in calls]
        alone = [copy.deepcopy(key).decide(copy.copy(call), now)[0] for key, call in zip(keys, calls)]
        refusing = [told.is_limited for told in alone]
        is_refused = any(refusing)
        for call, refuses in zip(calls, refusing):
            call.is_held, call.room_alone = is_refused and not call.is_sure, not refuses
        kept = copy.deepcopy(keys)
        decided = [key.decide(call, now) for key, call in zip(kept, calls)]
        for call, key, (_, changes, store) in zip(calls, kept, decided):
            self.keep(call.key, key, store() if changes else None, now)
        tolds = [told for told, _, _ in decided]
        if not is_refused:
            return [*calls[0].reply(min(tolds, key=lambda told: told.remaining)), None]
        first = max((i for i in range(len(calls)) if refusing[i]), key=lambda i: tolds[i].retry)
        counted = [told.retry for told, call in zip(tolds, calls) if call.counts_all or not call.room_alone]
        told = tolds[first]
        told.retry = max([told.retry, *counted])
        return [*calls[0].reply(told), calls[first].key]


def parts_of(words):
    """M1: returns a call for each part, with the options of the whole."""
    options, parts, rest = [], [[]], list(words)
    while rest:
        word = rest.pop(0)
        if word.upper() in WHOLE:
            options.append([word, *(rest.pop(0) for _ in range(WHOLE[word.upper()]))])
        elif word.upper() == "AND":
            parts.append([])
        else:
            parts[-1].append(word)
    flat = lambda part: [word for option in options if option[0].upper() != "FROM" or part[0].upper() == "FIXED" for word in option]
    return [Call([*part, *flat(part)]) for part in parts]
