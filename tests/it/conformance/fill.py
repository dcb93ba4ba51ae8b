#!/usr/bin/env python3
"""Writes the answers of the reference into the files of cases: replies, what is stored, and where
each case can be asked.

fill.py rewrites the files. fill.py --check lists the files that would change, and exits with 1 if
there are any.
"""

import random
import sys

import casefile
from reference import Reference, Wrong

WAITS_US = 5 * 10**6  # the longest time that a case may take with --wait
TRIALS = 60


def reply_of(reference, step, now):
    try:
        return reference.call(step.words[1:], now)
    except Wrong as wrong:
        return f"-{wrong}"


def show(key):
    shown = key.shown() if key else None
    if shown is None:
        return "nothing"
    if isinstance(shown, list):
        score = lambda one: str(one) if isinstance(one, int) else "%.17g" % float(one)
        return "zset " + " ".join(f"{name.decode()} {score(at)}" for name, at in shown)
    return casefile.write_string(shown)


def fill(case):
    """Fills in replies and stored values, with the clock set."""
    reference, now = Reference(), casefile.START
    for step in case.steps:
        if step.kind == "at":
            now = casefile.START + step.at
            step.expected = reply_of(reference, step, now)
            continue
        key = reference.keys.get(step.words[0])
        if step.kind == "holds":
            step.expected = show(key if key and key.end > now else None)
        else:
            step.expected = str((key.end - now) // 1000)


def is_steady(case, rng):
    """True if the replies are the same at another time of the day and with late calls."""
    for _ in range(TRIALS):
        start, reference, now = casefile.START + rng.randrange(86400 * 10**6), Reference(), 0
        for step in case.calls:
            now = max(now, step.at + rng.choice([0, 0, rng.randrange(casefile.LATE_US)]))
            if not casefile.is_same(step, reply_of(reference, step, start + now), casefile.LATE_US // 1000) or reference.waits:
                return False
    return True


def where(case):
    times = [step.at for step in case.calls]
    if times != sorted(times) or times[-1] > WAITS_US or not is_steady(case, random.Random(case.name)):
        return "clock"
    return "waits" if times[-1] else "still"


def main():
    wrong = False
    for path in casefile.files():
        cases, head = casefile.read_file(path)
        for case in cases:
            fill(case)
            case.where = where(case)
        text = casefile.write_file(cases, head)
        if text != path.read_text():
            wrong = True
            print(path.name, "would change" if "--check" in sys.argv else "is written")
            if "--check" not in sys.argv:
                path.write_text(text)
    return int(wrong and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
