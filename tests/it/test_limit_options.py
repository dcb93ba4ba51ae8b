"""The options of LIMIT commands, end to end: the effect of each on the reply and on what is stored.
"""

import random
import time

import pytest
from kit.decisions import FIELDS, PLACE_FIELDS, admitted, clock_us, decide, decision, decisions, fresh, is_like, near, script_calls, written
from kit.harness import wait_until
from kit.limits import plain
from kit.resp import Error
from test_limit_scripts import NOW, Scripts


# ---- the form of the reply ----


def test_one_form_in_both_protocols(conn, protocol):
    for command in ("LIMIT FUNNEL {} 5/h", "LIMIT BUCKET {} 5/h 9/d", "LIMIT SLIDING {} 5/h", "LIMIT SLIDING {} 5/h APPROX", "LIMIT FIXED {} 5/d"):
        key = fresh()
        as_array, as_map = (conn.call(*f"{command.format(key)} AS {form}".split()) for form in ("ARRAY", "map"))
        assert as_array[:4] == [0, 5, 4, -1] and len(as_array) == 5
        flat = as_map if protocol == 2 else [one for pair in as_map.items() for one in pair]
        assert isinstance(as_map, dict) == (protocol == 3)
        assert plain(flat[::2]) == FIELDS and flat[1:8:2] == [0, 5, 3, -1]
        assert isinstance(conn.call(*command.format(key).split()), dict) == (protocol == 3), "of the protocol without it"


def test_one_form_of_a_place(conn, protocol):
    key = fresh()
    held = conn.call(*f"LIMIT ACQUIRE {key} 2 5000 AS ARRAY".split())
    assert held[0] == 0 and held[2:4] == [1, 2]
    named = conn.call(*f"LIMIT ACQUIRE {key} 2 5000 AS MAP WAIT 10".split())
    flat = named if protocol == 2 else [one for pair in named.items() for one in pair]
    assert plain(flat[::2]) == PLACE_FIELDS and flat[1] == 0 and flat[5:8:2] == [2, 2]


def test_equal_calls_of_several_forms(conn, protocol):
    """Equal calls travel as one, and each gets the form that it asked for."""
    key = fresh()
    replies = conn.ask(*[f"LIMIT FUNNEL {key} 2/h {form}" for form in ("AS MAP", "AS ARRAY", "AS MAP", "")])
    named = replies[::2] if protocol == 3 else [dict(zip(reply[::2], reply[1::2])) for reply in replies[::2]]
    assert [reply[b"limited"] for reply in named] == [0, 1]
    assert replies[1][0] == 0 and decision(replies[3]).limited == 1


# ---- COST 0 ----

ALGORITHMS = ["FUNNEL {} 3/d", "BUCKET {} 3/d 5/d", "SLIDING {} 3/d", "SLIDING {} 3/d APPROX", "FIXED {} 3/d"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nothing_always_passes(conn, redis, algorithm):
    key = fresh()
    command = f"LIMIT {algorithm.format(key)}"
    before = written(redis)
    assert decide(conn, command + " COST 0")[:4] == (0, 3, 3, -1)
    assert written(redis) == before
    for left in (2, 1, 0):
        assert decide(conn, command)[:4] == (0, 3, left, -1)
        before = written(redis)
        found = decisions(conn, *[command + option for option in (" COST 0", " COST 0 WAIT 50", " PEEK COST 0", " COST 0")])
        assert all(one[:4] == (0, 3, left, -1) and one.reset > 0 for one in found), found
        assert written(redis) == before
    assert decide(conn, command).limited == 1
    assert decide(conn, command + " COST 0")[:4] == (0, 3, 0, -1), "nor does a refusal that is remembered stand against it"
    mixed = decisions(conn, command + " PEEK", command + " COST 0", command, command + " PEEK")
    assert [one.limited for one in mixed] == [1, 0, 1, 1]


# ---- options that change the charge ----


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_force_credit_and_partial(conn, algorithm):
    key = fresh()
    command = f"LIMIT {algorithm.format(key)}"
    assert decide(conn, command + " CREDIT 5")[:4] == (0, 3, 3, -1), "never beyond full"
    assert conn.call(*f"{command} COST 2 PARTIAL AS ARRAY".split())[::5] == [0, 2]
    partial = conn.call(*f"{command} COST 2 PARTIAL AS MAP".split())
    flat = partial if isinstance(partial, list) else [one for pair in partial.items() for one in pair]
    assert plain(flat[::2]) == FIELDS + ["granted"] and flat[1:8:2] == [0, 3, 0, -1] and flat[11] == 1
    refused = conn.call(*f"{command} COST 2 PARTIAL AS ARRAY".split())
    assert refused[:3] == [1, 3, 0] and refused[3] > 0 and refused[5] == 0
    assert decide(conn, command).limited == 1
    assert decide(conn, command + " CREDIT 2")[:4] == (0, 3, 2, -1)
    assert decide(conn, command + " COST 2")[:4] == (0, 3, 0, -1), "what was denied is forgotten"
    assert decide(conn, command).limited == 1
    assert decide(conn, command + " FORCE COST 4")[:4] == (0, 3, 0, -1)
    assert decide(conn, command + " CREDIT 4")[:4] == (0, 3, 0, -1)
    assert decide(conn, command + " CREDIT 1")[:4] == (0, 3, 1, -1)
    found = decisions(conn, *[command + " CREDIT 1"] * 4)
    assert [one.remaining for one in found] == [2, 3, 3, 3]
    assert [one.reset > 0 for one in found] == [True, False, False, False], "each is told what is left behind it"
    replies = conn.ask(*[command + " COST 2 PARTIAL AS ARRAY"] * 3)
    assert [(reply[0], reply[2], reply[5]) for reply in replies] == [(0, 1, 2), (0, 0, 1), (1, 0, 0)]


@pytest.mark.parametrize("name", ["FUNNEL", "BUCKET"])
def test_borrow_lets_through_and_owes_the_rest(conn, name):
    """The call passes as if it cost 1. The rest of its cost is owed."""
    key = fresh()
    command = f"LIMIT {name} {key} 3/300s"
    assert decide(conn, command)[:4] == (0, 3, 2, -1)
    found = decide(conn, command + " COST 10 BORROW")
    assert found[:4] == (0, 3, 0, -1) and near(found.reset, 1_100_000)
    found = decide(conn, command + " COST 2 BORROW")
    assert found[:3] == (1, 3, 0) and near(found.retry, 900_000)
    assert near(decide(conn, command).retry, 900_000)
    key = fresh()
    found = decisions(conn, *[f"LIMIT {name} {key} 3/300s COST 2 BORROW"] * 3)
    assert [one.limited for one in found] == [0, 0, 1] and near(found[2].retry, 200_000)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_refused_tries_count(conn, redis, algorithm):
    key = fresh()
    command = f"LIMIT {algorithm.format(key)}"
    assert decide(conn, command + " COUNT ALL COST 2")[:3] == (0, 3, 1)
    assert decide(conn, command + " COUNT ALL COST 2 PEEK")[:3] == (1, 3, 1)
    found = decide(conn, command + " COUNT ALL COST 2")
    assert found[:3] == (1, 3, 0) and found.retry > 0, "what there was room for is gone"
    assert decide(conn, command).limited == 1
    assert decide(conn, command + " COUNT ALL COST 4").retry == -1
    asked = script_calls(redis)
    assert all(one.limited for one in decisions(conn, *[command + " COUNT ALL"] * 3))
    assert decide(conn, command + " COUNT ALL").limited and script_calls(redis) >= asked + 2, "nor is it answered from memory"


def hammer(conn, redis):
    """Returns how many of many tries pass. None: there was no try for half a window, so the result
    proves nothing.
    """
    command, admitted_n = f"LIMIT SLIDING {fresh()} 2/500ms COUNT ALL", 0
    begin = last = clock_us(redis)
    while last - begin < 1_250_000:
        admitted_n += admitted(decisions(conn, *[command] * 5))
        now = clock_us(redis)
        if now - last > 250_000:
            return None
        last = now
        time.sleep(0.005)  # many tries in each window, without a whole processor
    return admitted_n


def test_who_hammers_stays_out(conn, redis):
    """A sliding window counts all tries. The other algorithms fill up, whatever is refused."""
    assert wait_until(lambda: hammer(conn, redis), "tries come without a break", 60) == 2
    key = fresh()
    for _ in range(50):
        decide(conn, f"LIMIT FUNNEL {key} 2/1000s COUNT ALL")
    found = decide(conn, f"LIMIT FUNNEL {key} 2/1000s PEEK")
    assert near(found.retry, 500_000) and near(found.reset, 1_000_000)


def test_windows_from_first(conn, redis):
    key = fresh()
    command = f"LIMIT FIXED {key} 2/1h FROM FIRST"
    assert is_like(decide(conn, command), 0, 2, 1, -1, 3_600_000)
    assert is_like(decide(conn, command), 0, 2, 0, -1, 3_600_000)
    assert is_like(decide(conn, command), 1, 2, 0, 3_600_000, 3_600_000)
    assert decide(conn, f"LIMIT FIXED {key} 2/1h").limited == 0, "another window, of its own"
    assert is_like(decide(conn, command), 1, 2, 0, 3_600_000, 3_600_000)
    assert near(redis.call("PTTL", f"limit:{key}"), 3_600_000)
    key = fresh()
    command = f"LIMIT FIXED {key} 1/150ms FROM FIRST WAIT 1000"
    begin = clock_us(redis)
    assert [decide(conn, command).limited for _ in range(4)] == [0] * 4
    assert clock_us(redis) - begin >= 450_000


@pytest.mark.parametrize("algorithm", ["sliding = 5/60s", "fixed = 5/60s", "funnel = 5/60s"])
def test_options_of_named_limits(farm, algorithm):
    with farm.weir(farm.redis(), sections=f"[limit mine]\n{algorithm}\n").connect() as conn:
        is_funnel, is_fixed = "funnel" in algorithm, "fixed" in algorithm
        borrowed, first = (conn.call(*f"LIMIT CHECK mine {key} {option}".split()) for key, option in (("b", "BORROW"), ("f", "FROM FIRST")))
        assert isinstance(borrowed, list) == is_funnel and isinstance(first, list) == is_fixed
        assert is_funnel or borrowed == Error("ERR BORROW is for FUNNEL and BUCKET")
        assert is_fixed or first == Error("ERR FROM FIRST is for FIXED")
        assert conn.call(*"LIMIT CHECK mine k COST 7 PARTIAL".split())[5] == 5
        assert decide(conn, "LIMIT CHECK mine k CREDIT 2")[:3] == (0, 5, 2)


FAMILIES = ["FUNNEL {} 5/d BURST 7 9/30d", "SLIDING {} 5/50d 9/90d", "SLIDING {} 5/50d 9/90d APPROX", "FIXED {} 5/50d 9/90d"]
MODES = ["", "COST 2", "COST 2 COUNT ALL", "COUNT ALL", "COST 3 PARTIAL", "COST 2 FORCE", "CREDIT 2", "CREDIT 1", "COST 0", "PEEK"]


@pytest.mark.parametrize("algorithm", FAMILIES + ["BUCKET {} 5/d BURST 7 9/30d", "FIXED {} 5/50d 9/90d FROM FIRST"])
def test_equal_calls_are_told_what_one_after_the_other_is(weir, algorithm):
    """Calls that travel as one with a count get the replies that they would get alone."""
    modes = MODES + (["COST 3 BORROW"] if "BURST" in algorithm else [])
    rng = random.Random(algorithm)
    with weir.connect() as conn:
        for _ in range(12):
            one, many = fresh(), fresh()
            story = []
            for _ in range(8):
                mode, n = rng.choice(modes), rng.choice([1, 2, 3, 6])
                line = f"LIMIT {algorithm} {mode} AS ARRAY"
                alone = [conn.call(*line.format(one).split()) for _ in range(n)]
                together = conn.ask(*[line.format(many)] * n)
                story.append((mode, n))
                assert [(r[:3], r[5:]) for r in together] == [(r[:3], r[5:]) for r in alone], story
                for a, b in zip(together, alone) if "BURST" in algorithm else ():
                    assert abs(a[3] - b[3]) < 5000 and abs(a[4] - b[4]) < 5000, (story, alone, together)


# ---- scripts against a model, under a clock that the test sets ----


class Model:
    """One key with one rate, in unbounded integers."""

    def __init__(self, name, count, period):
        self.name, self.count, self.period = name, count, period  # us
        self.interval, self.debt, self.at = -(-period * 1000 // count), 0, 0
        self.log, self.start = [], None  # of a window: [us, units]

    def argv(self, cost):
        if self.name != "funnel":
            return [cost, 1, self.count, self.period]
        burst = self.count * self.interval
        return ["f", 1, self.interval, cost * self.interval, burst, burst]

    def used(self, now):
        if self.name == "funnel":
            self.debt, self.at = max(0, self.debt - (now - self.at) * 1000), now
            return self.debt
        here = now - now % self.period
        if self.name == "first":
            here = now if self.start is None or now >= self.start + self.period else self.start
        if self.name == "sliding":
            here = now - self.period + 1
        self.log = [one for one in self.log if one[0] >= here]
        return sum(units for _, units in self.log)

    def add(self, now, units):
        if self.name == "first" and units and (self.start is None or now >= self.start + self.period or not self.log):
            self.start = now
        while units < 0 and self.log:
            taken = min(-units, self.log[-1][1])
            units, self.log[-1][1] = units + taken, self.log[-1][1] - taken
            self.log = [one for one in self.log if one[1]]
        if units > 0:
            self.log.append([now, units])

    def call(self, how, cost, n, now):
        """Returns what was used before, and how many calls were granted."""
        before, tries = self.used(now), n * int(how.partition("x")[2] or 1)
        unit = self.interval if self.name == "funnel" else 1
        most = self.count * unit
        granted = tries if "f" in how else max(0, min(tries, (most - before) // (cost * unit)))
        if "1" in how[:1]:
            return before, granted
        after = max(0, before + granted * cost * unit)
        if "a" in how:
            more = (tries - granted) * min(cost, self.count) * unit
            after = after + more if self.name == "sliding" else max(after, min(before + tries * cost * unit, most))
        self.debt = after
        if self.name != "funnel":
            self.add(now, after - before)
        return before, granted


@pytest.mark.parametrize("name", ["funnel", "sliding", "fixed", "first"])
def test_scripts_do_what_the_model_does(redis, name):
    scripts = Scripts(redis)
    for seed in range(30):
        rng = random.Random(f"{name} {seed}")
        scripts.conn.call("DEL", "k")
        model = Model(name, rng.randint(1, 12), rng.choice([1000, 50_000, 60_000_000]))
        now = NOW + rng.randrange(10**9)
        for _ in range(60):
            how = rng.choice(["0", "0", "1", "0f", "0f-", "0a", "1a", "0x3"])
            cost, n = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2, 5])
            if how == "0x3":
                cost = 1
            if how == "0f-":
                how, cost = "0f", -cost
            word = how[:1] + "s" + how[1:] if name == "first" else how
            call = list(scripts.command("fixed" if name == "first" else name, ["k"], model.argv(cost), [n], now))
            call[6] = word
            # In a transaction no key expires by Redis' clock.
            reply = scripts.conn.ask(("MULTI",), tuple(call), ("PERSIST", "k"), ("EXEC",))[-1][0]
            before, granted = model.call(how, cost, n, now)
            assert not isinstance(reply, Error), reply
            told = (reply[0], None) if name == "funnel" else (reply[1], reply[0])
            assert told[0] == before and told[1] in (None, granted), (seed, word, cost, n, reply, before, granted)
            now += rng.choice([0, 0, 1, model.period // 7, model.period // 2, rng.randrange(2 * model.period)])
