"""CI's second run of failed integration tests: it accepts a flaky failure, and nothing else."""

import os
import subprocess

import pytest
from kit.harness import REPO

TOOL = REPO / "tests/tools/pytest-again"
ACCIDENT = """
import os
def test_accident():
    is_first = not os.path.exists("seen")
    open("seen", "w").close()
    assert not is_first
"""
GOOD = "def test_good(): pass\n"
BAD = "def test_bad(): assert 0\n"
SKIPS = """
import os, pytest
def test_skips():
    is_first = not os.path.exists("seen")
    open("seen", "w").close()
    assert not is_first
    pytest.skip("now")
"""
LEAVES = """
import pytest
@pytest.fixture
def leaves():
    yield
    assert 0
def test_leaves(leaves): pass
"""
DIES = "import os\ndef test_dies(): os._exit(3)\n"
MANY = """
import os, pytest
@pytest.mark.parametrize("n", range(21))
def test_many(n):
    is_first = not os.path.exists(f"seen{n}")
    open(f"seen{n}", "w").close()
    assert not is_first
"""


def run(folder, text, *args, again="1"):
    """Returns the exit code, the output, and the tally."""
    (folder / "test_some.py").write_text(text)
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    env = {**env, "AGAIN": again, "TALLY": str(folder / "tally")}
    argv = [TOOL, folder / "report.xml", "-q", "-p", "no:randomly", *args, "test_some.py"]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, (folder / "tally").read_text().splitlines()


@pytest.fixture(autouse=True)
def own_list(tmp_path, monkeypatch):
    """Failures that this test accepts are not failures of the run that this test belongs to."""
    tool = tmp_path / "tests/tools/pytest-again"
    tool.parent.mkdir(parents=True)
    tool.write_text(TOOL.read_text())
    tool.chmod(0o700)
    monkeypatch.setitem(globals(), "TOOL", tool)


@pytest.mark.parametrize("jobs", [(), ("-n", "2")], ids=["one process", "several"])
def test_an_accident_is_forgiven_and_told(jobs, tmp_path):
    code, said, tally = run(tmp_path, GOOD + ACCIDENT, *jobs)
    assert code == 0 and tally == ["2 0 0", "failed first, passed alone: test_some test_accident"], (said, tally)
    assert "!! FAILED FIRST, PASSED ALONE: test_some test_accident" in said
    assert (tmp_path / "build/failed-first").read_text() == "test_some test_accident\n"


TWICE = {
    "bad": (GOOD + BAD, "1 1 0"),
    "an accident beside it": (ACCIDENT + BAD, "1 1 0"),
    "in its end": (LEAVES, "0 1 0"),
    "skipped alone": (SKIPS, "0 1 0"),
    "a process dies": (DIES + GOOD, "1 1 0"),
}


@pytest.mark.parametrize("what", TWICE)
def test_what_fails_twice_fails(what, tmp_path):
    text, tally = TWICE[what]
    code, said, told = run(tmp_path, text, "-n", "2")
    assert code == 1 and told[0] == tally, (said, told)


def test_many_failures_are_no_accident(tmp_path):
    code, _, tally = run(tmp_path, MANY)
    assert code == 1 and tally == ["0 21 0"]


@pytest.mark.parametrize("args", [(), ("-n", "2")], ids=["one process", "several"])
@pytest.mark.parametrize("text", ["import none_such\n", "def helper(): pass\n", "def test_f(:\n"], ids=["import", "none", "syntax"])
def test_a_run_without_tests_fails(text, args, tmp_path):
    code, said, tally = run(tmp_path, text, *args)
    assert code != 0 and tally[0].split()[:2] == ["0", "1"], (said, tally)


def test_only_where_it_is_asked_for(tmp_path):
    code, _, tally = run(tmp_path, ACCIDENT, again="")
    assert code == 1 and tally == ["0 1 0"]
