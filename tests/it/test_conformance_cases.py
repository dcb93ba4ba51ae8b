"""docs/algorithms.md and the cases that hold it: each sentence has some, the reference says what is in the files, and weir
does it, with the clock in the test's hand and by the wire as it is. (Deciding without Redis: unit/test_local_cases.c.)"""

import random
import re
import subprocess
import sys

import pytest
from clocked import COMMAND, Clocked
from conformance import run
from conformance.casefile import START, Case, Step, all_cases
from conformance.fill import fill, reply_of
from conformance.reference import Reference
from harness import REPO

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
    """A weir whose scripts are told the time, and remembers no refusal from one time to another."""
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
    """A runner that cannot fail holds nothing."""
    host, port = weir.address
    with weir.connect() as conn:
        wrong = run.chosen(CASES, ["from-rest"], "CLOCK", True)
        wrong[0].steps[0].expected = [0, 3, 1, -1, 1000]
        told = []
        assert run.hold(conn, wrong, "PING {us}", say=told.append) == 1
        assert told[0].startswith("FAILED from-rest: at 0 LIMIT FUNNEL k 1/s BURST 3 = 0 3 1 -1 1000\n  found 0 3 2 -1 1000")


# ---- more than has been thought of ----

RATES = ["3/s", "7/s", "10/m", "2.5/s", "0.3/s", "5/7s", "4/h", "1/d", "9/2h", "1/500ms"]
OPTIONS = ["", "", "", "", "COST 2", "COST 3", "COST 0", "PEEK", "COST 2 PEEK", "FORCE COST 4", "COST 3 PARTIAL", "CREDIT 2", "COUNT ALL",
           "COUNT ALL COST 2"]  # fmt: skip
MOVES = [0, 0, 0, 1, 999, 1000, 333_333, 500_000, 10**6, 2 * 10**6, 7 * 10**6, 60 * 10**6]
UNSURE_US = 200_000


def random_case(rng, number):
    """Calls of one algorithm on two keys, each with one of a few sets of rates, while time passes and now and then goes back."""
    form = rng.choice(["FUNNEL {}", "BUCKET {}", "SLIDING {}", "SLIDING {} APPROX", "FIXED {}", "FIXED {} FROM FIRST"])
    is_funnel, is_log = form[0] in "FB" and "X" not in form, form == "SLIDING {}"
    sets = [" ".join(rng.sample(RATES, rng.choice([1, 1, 2, 3]))) for _ in range(2)]
    options = OPTIONS + (["BORROW COST 3", "BURST 2", "BURST 5 COST 4"] if is_funnel else [])
    case, at, reference = Case(f"random-{number}", []), 10**9, Reference()
    for _ in range(30):
        at += rng.choice(MOVES) if rng.random() < 0.95 or is_log else -rng.choice([1000, 10**6, 100 * 10**6])
        while any(0 <= START + at - end < UNSURE_US for _, _, end in reference.keys.values()):
            at += UNSURE_US  # the runner learns to a few ms when a key ends
        option, rated = rng.choice(options), rng.choice(sets)
        words = f"LIMIT {form.split()[0]} {rng.choice('kl')} {rated} {option} {' '.join(form.split()[2:])}".split()
        case.steps.append(Step("at", words, at, f"{at}us"))
        reply_of(reference, case.steps[-1], START + at)
    for key in "kl":
        case.steps.append(Step("holds", [key]))
    fill(case)
    return case


@pytest.mark.parametrize("number", range(150))
def test_random_calls(clocked, number):
    with clocked.connect() as conn:
        assert run.hold(conn, [random_case(random.Random(number), number)], COMMAND, say=pytest.fail) == 0
