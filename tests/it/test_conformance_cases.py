"""docs/algorithms.md and the cases that hold it: each sentence has some, the reference says what is in the files, and weir
does it, with the clock in the test's hand and by the wire as it is. (Deciding without Redis: unit/test_local_cases.c.)"""

import re
import subprocess
import sys

import pytest
from clocked import COMMAND, Clocked
from conformance import run
from conformance.casefile import all_cases
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
