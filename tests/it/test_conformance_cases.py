"""docs/algorithms.md and its cases. Each sentence has cases, the reference agrees with the files,
and weir behaves as the cases say. weir runs the cases with a clock that the test sets, and over the
wire. Decisions without Redis are in unit/test_local_cases.c.
"""

import random
import re
import subprocess
import sys

import pytest
from kit.clocked import COMMAND, Clocked
from conformance import run
from conformance.casefile import START, Case, Step, all_cases
from conformance.fill import fill, reply_of
from conformance.reference import Reference
from kit.harness import REPO, rounds

FOLDER = REPO / "tests/it/conformance"
CASES = all_cases()


def test_every_sentence_has_a_case():
    said = re.findall(r"^- \*\*([A-Z]\d+)\*\* ", (REPO / "docs/algorithms.md").read_text(), re.M)
    assert len(said) == len(set(said)) and set(run.by_sentence(CASES)) == set(said)
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)


def test_the_files_are_what_the_reference_says():
    done = subprocess.run([sys.executable, FOLDER / "fill.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def clocked(shared_farm, shared_redis):
    """A weir with scripts that get the time from the test. The weir remembers no denial between
    times.
    """
    with Clocked(shared_redis.address) as meddler:
        yield shared_farm.weir(meddler, workers=1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_with_the_clock_in_hand(clocked, case):
    with clocked.connect() as conn:
        assert run.hold(conn, [case], COMMAND, say=pytest.fail) == 0


@pytest.mark.parametrize("words", [[], ["--wait"]], ids=["still", "waits"])
def test_by_the_wire(weir, words):
    host, port = weir.address
    done = subprocess.run([sys.executable, FOLDER / "run.py", "--host", host, "--port", str(port), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    held, asked = map(int, re.search(r"^(\d+) of (\d+) cases hold", done.stdout, re.M).groups())
    assert held == asked == len(run.chosen(CASES, [], None, words))


def test_what_does_not_hold_is_said(weir):
    """A runner that cannot fail proves nothing."""
    host, port = weir.address
    with weir.connect() as conn:
        wrong = run.chosen(CASES, ["from-rest"], "CLOCK", True)
        wrong[0].steps[0].expected = [0, 3, 1, -1, 1000]
        told = []
        assert run.hold(conn, wrong, "PING {us}", say=told.append) == 1
        assert told[0].startswith("FAILED from-rest: at 0 LIMIT FUNNEL k 1/s BURST 3 = 0 3 1 -1 1000\n  found 0 3 2 -1 1000")


# ---- random cases ----

RATES = ["3/s", "7/s", "10/m", "2.5/s", "0.3/s", "5/7s", "4/h", "1/d", "9/2h", "1/500ms"]
OPTIONS = ["", "", "", "", "COST 2", "COST 3", "COST 0", "PEEK", "COST 2 PEEK", "FORCE COST 4", "COST 3 PARTIAL", "CREDIT 2", "COUNT ALL",
           "COUNT ALL COST 2"]  # fmt: skip
PENALTIES = ["PENALTY 500ms", "PENALTY 3s", "PENALTY 700ms..3s", "PENALTY 1s..1h", "COST 3 PENALTY 2s..9s", "COST 2 PENALTY h", "COUNT ALL PENALTY 2s",
             "COST 2 PARTIAL PENALTY 5s..1m"]  # fmt: skip
CALENDAR = ["3/day", "7/day", "5/week", "12/week", "9/month", "1k/month", "4/d", "6/h"]
WARM = ["10/s BURST 1 BORROW WARMUP 5s", "3/s BURST 2 BORROW WARMUP 7s", "1/7s BURST 1 BORROW WARMUP m", "2k/s BURST 50 BORROW WARMUP 500ms", "1/m BORROW WARMUP 1h"]
PARTS = ["FUNNEL {} 3/s 10/m", "BUCKET {} 5/7s BURST 9", "SLIDING {} 4/2s", "SLIDING {} 7/10s APPROX", "FIXED {} 5/3s", "FIXED {} 9/day 30/week"]
MOVES = [0, 0, 0, 1, 999, 1000, 333_333, 500_000, 10**6, 2 * 10**6, 7 * 10**6, 60 * 10**6]
DAYS = [3600 * 10**6, 86_400 * 10**6, 9 * 86_400 * 10**6]
BACK = [1000, 10**6, 100 * 10**6]
UNSURE_US = 200_000
UNSURE_LOG_US = 10**6  # of a log under a penalty, which is kept according to PTTL


class Story:
    """Calls while time passes, and sometimes goes back, and the value stored at the end."""

    def __init__(self, name, rng, moves=(), back=BACK, unsure_us=UNSURE_US):
        self.case, self.at, self.reference = Case(name, []), 10**9, Reference()
        self.rng, self.moves, self.back, self.unsure_us = rng, MOVES + list(moves), back, unsure_us

    def ask(self, words):
        rng = self.rng
        self.at += rng.choice(self.moves) if rng.random() < 0.95 or not self.back else -rng.choice(self.back)
        while any(0 <= START + self.at - key.end < self.unsure_us for key in self.reference.keys.values()):
            self.at += self.unsure_us  # the runner knows the end of a key to a few ms
        self.case.steps.append(Step("at", words.split(), self.at, f"{self.at}us"))
        reply_of(self.reference, self.case.steps[-1], START + self.at)

    def told(self, keys="kl"):
        self.case.steps += [Step("holds", [key]) for key in keys]
        fill(self.case)
        return self.case


def random_rates(rng):
    """Returns calls of one algorithm on two keys, each with one of a few sets of rates."""
    form = rng.choice(["FUNNEL {}", "BUCKET {}", "SLIDING {}", "SLIDING {} APPROX", "FIXED {}", "FIXED {} FROM FIRST"])
    is_funnel, is_log = form[0] in "FB" and "X" not in form, form == "SLIDING {}"
    sets = [" ".join(rng.sample(RATES, rng.choice([1, 1, 2, 3]))) for _ in range(2)]
    options = OPTIONS + (["BORROW COST 3", "BURST 2", "BURST 5 COST 4"] if is_funnel else [])
    story = Story("rates", rng, back=() if is_log else BACK)
    for _ in range(30):
        option, rated = rng.choice(options), rng.choice(sets)
        story.ask(f"LIMIT {form.split()[0]} {rng.choice('kl')} {rated} {option} {' '.join(form.split()[2:])}")
    return story.told()


def random_penalties(rng):
    """As random_rates, with penalties and bans."""
    algorithm, form = rng.choice([("FUNNEL", ""), ("BUCKET", ""), ("SLIDING", ""), ("APPROX", "APPROX"), ("FIXED", ""), ("FIXED", "FROM FIRST")])
    is_log = algorithm == "SLIDING"
    sets = [" ".join(rng.sample(RATES, rng.choice([1, 1, 2]))) for _ in range(2)]
    story = Story("penalties", rng, [3 * 10**6, 40 * 10**6, 3600 * 10**6], () if is_log else BACK, UNSURE_LOG_US if is_log else UNSURE_US)
    for _ in range(30):
        key, roll = rng.choice("kl"), rng.random()
        if roll < 0.06:
            story.ask(f"LIMIT BAN {algorithm} {key} {rng.choice(['500ms', '4s', '1h'])}")
        elif roll < 0.1:
            story.ask(f"LIMIT UNBAN {algorithm} {key}")
        else:
            option = rng.choice(OPTIONS + PENALTIES + PENALTIES)
            story.ask(f"LIMIT {'SLIDING' if form == 'APPROX' else algorithm} {key} {rng.choice(sets)} {option} {form}")
    return story.told()


def random_calendar(rng):
    """Returns calls with days, weeks and months, beside other periods."""
    story = Story("calendar", rng, DAYS * 4, BACK + DAYS)
    sets = [" ".join(rng.sample(CALENDAR, rng.choice([1, 2, 3]))) for _ in range(2)]
    for _ in range(30):
        story.ask(f"LIMIT FIXED {rng.choice('kl')} {rng.choice(sets)} {rng.choice(OPTIONS + PENALTIES[:3])}")
    return story.told()


def random_warmup(rng):
    """Returns calls with warm-ups of one or several rates on a key."""
    story = Story("warmup", rng, [50_000, 100_000, 4 * 10**6])
    sets = rng.sample(WARM, 2)
    for _ in range(30):
        story.ask(f"LIMIT BUCKET {rng.choice('kkl')} {rng.choice(sets)} {rng.choice(['', '', '', 'COST 2', 'COST 7', 'COST 0', 'COST 100'])}")
    return story.told()


def random_parts(rng):
    """Returns calls on several keys, each with an algorithm of its own, together and alone."""
    story, keys = Story("parts", rng, back=()), "abcd"
    parts = [form.format(key) for form, key in zip(rng.sample(PARTS, 4), keys)]
    whole = ["", "", "", "", "PEEK", "FORCE", "CREDIT 2", "COUNT ALL", "PENALTY 2s", "PENALTY 1s..5s"]
    for _ in range(25):
        if rng.random() < 0.2:
            story.ask(f"LIMIT {rng.choice(parts)}")
            continue
        option = rng.choice(whole)
        costs = ["", "", "COST 2", "COST 0", "COST 3"] if option[:6] != "CREDIT" else [""]
        story.ask("LIMIT ALL " + " AND ".join(f"{part} {rng.choice(costs)}" for part in rng.sample(parts, rng.choice([1, 2, 3, 4]))) + " " + option)
    return story.told(keys)


@pytest.mark.parametrize("number", range(rounds(25)))
@pytest.mark.parametrize("make", [random_rates, random_penalties, random_calendar, random_warmup, random_parts])
def test_random_calls_are_answered_as_the_reference_does(clocked, make, number):
    with clocked.connect() as conn:
        assert run.hold(conn, [make(random.Random(number))], COMMAND, say=pytest.fail) == 0
