#!/usr/bin/python3
"""The cost of steps of the hot path, in instructions and nanoseconds, against committed figures.

callgrind counts instructions, which are equal for every run of one build, on any load of the
machine. Steps that have grown by more than 5 % are named, and the exit code is 1. Nanoseconds
depend on the machine and the moment. Only the relations of nanoseconds matter ("x cas": in units of
a bare compare-and-swap).

    bench/micro.py             compare with bench/micro/figures
    bench/micro.py --write     make the measured figures the committed figures
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
MICRO = Path(os.environ.get("MICRO", REPO / "build/release/micro"))
FIGURES = REPO / "bench/micro/figures"
ROUNDS_COUNTED = 10000  # as in micro.c
GREW = 1.05
BARE = "cas/bare"


def nanoseconds():
    run = subprocess.run([MICRO, "-j"], capture_output=True, text=True, check=True)
    return {name: row["ns"] for name, row in json.loads(run.stdout).items()}


def instructions():
    """name -> instructions of one call; empty without valgrind."""
    if not shutil.which("valgrind"):
        return {}
    with tempfile.TemporaryDirectory() as folder:
        argv = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", MICRO, "-i"]
        run = subprocess.run(argv, capture_output=True, text=True, check=False)
        if run.returncode:
            sys.exit(f"{run.stderr}\nmicro -i failed under callgrind")
        found = {}
        for path in Path(folder).glob("out.*"):
            text = path.read_text()
            name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.M)
            total = re.search(r"^totals: (\d+)", text, re.M)
            if name and total:
                found[name[1]] = int(total[1]) / ROUNDS_COUNTED
        return found


def compiler():
    run = subprocess.run([os.environ.get("CC", "cc"), "--version"], capture_output=True, text=True, check=True)
    return run.stdout.splitlines()[0]


def read_figures():
    """(the head of the committed figures, name -> instructions)."""
    if not FIGURES.exists():
        return None, {}
    head, *lines = FIGURES.read_text().splitlines()
    rows = [line.rsplit(None, 2) for line in lines if line and not line.startswith("#")]
    return head.removeprefix("# "), {name.rstrip(): float(count) for name, count, _ in rows}


def write_figures(counts, ns):
    lines = [f"# {compiler()}", "# what, instructions, nanoseconds when it was written (these are not compared)"]
    lines += [f"{name:32} {counts[name]:10.1f} {ns[name]:8.2f}" for name in ns]
    FIGURES.write_text("\n".join(lines) + "\n")
    print(f"written: {FIGURES}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="make these the committed figures")
    args = parser.parse_args()
    made_with, committed = read_figures()
    ns, counts = nanoseconds(), instructions()
    print(f"{'':32} {'instructions':>12} {'committed':>10} {'':>7} {'ns':>8} {'x cas':>6}")
    grown = []
    for name in ns:
        count, before = counts.get(name), committed.get(name)
        change = f"{count / before - 1:+.1%}" if count and before else ""
        if count and before and count > GREW * before:
            grown.append(f"{name}: {before:.1f} -> {count:.1f} instructions ({change})")
        shown = [f"{value:.1f}" if value is not None else "-" for value in (count, before)]
        print(f"{name:32} {shown[0]:>12} {shown[1]:>10} {change:>7} {ns[name]:8.2f} {ns[name] / ns[BARE]:6.2f}")
    if args.write and counts:
        write_figures(counts, ns)
        return
    if not counts:
        print("valgrind is not installed: instructions were not counted, and nothing was compared")
    elif made_with and made_with != compiler():
        print(f"The committed figures were made with {made_with}, these with {compiler()}.")
    gone = [name for name in committed if name not in ns]
    for line in [*(f"grew: {one}" for one in grown), *(f"no longer there: {name}" for name in gone)]:
        print(line)
    sys.exit(1 if grown or gone else 0)


if __name__ == "__main__":
    main()
