#!/usr/bin/python3
"""The figures that weir is to reach, in one table: the goal, the measurement, and the verdict.

    bench/figures.py                    all figures, about ten minutes
    bench/figures.py tenants 'GET 16 B' parts by the start of a name; other parts as last measured
    bench/figures.py --list             names of the parts
    bench/figures.py --realtime         with priority over the machine's other work: needs root
    bench/figures.py --report [--docs]  the table again, or into docs/performance.md

Each part has a program of its own that measures in more detail:

- neighbours: fairness.py
- tenants: tenants.py
- the cells by their names, and memory: bench.py
- limit: limit.py
- operators: operators.py

Rows are kept in build/bench/figures.json.

The program measures and does not judge: it exits with 0. docs/performance.md says how each row is
measured.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
import time
from dataclasses import replace
from functools import partial

import bench
import costs
import fairness
import limit
import machine
import operators
import ratios
import tenants
from cells import HEADLINES, IDLE_HEADLINES
from kit.harness import Farm
from rig import DRIVE, PEERS, Rig

FIGURES = bench.RESULTS.with_name("figures.json")
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
HEAD = ("where", "asked", "measured", "")
VERDICTS = {"reached": "ok", "NOT reached": "missed"}
# kind of neighbour -> goals for p99 beside it: relative to p99 without neighbours, and to Redis'
# p99 beside the same neighbours
NEIGHBOURS = {
    "flood": (2.0, 1.0),
    "1,000 connections": (2.0, 1.0),
    "slow readers": (2.0, 1.0),
    "64 MiB values": (None, 1.1),
    "64 MiB, anew": (None, 1.1),
}


def p99_row(kind, what, values, bound):
    """Quantiles differ more between rounds than sums do: the median is judged, and the spread is
    shown."""
    middle = ratios.Ratio(values)
    shown = f"{ratios.short(middle.median)} ({middle.spread})"
    verdict = "ok" if round(middle.median, 2) <= bound else "missed"
    return f"100 quiet clients beside: {kind}", f"p99 / {what} <= {bound:g}", shown, verdict


def neighbours(args):
    how = argparse.Namespace(
        kinds=list(NEIGHBOURS), rounds=args.rounds, seconds=args.seconds, elsewhere=False, realtime=args.realtime
    )
    with contextlib.closing(Farm()) as farm:
        measured = fairness.Bench(farm, how)
        measured.run()
        measured.print()
    for kind, (of_quiet, of_redis) in NEIGHBOURS.items():
        if of_quiet:
            yield p99_row(kind, "p99 without", measured.series["weir", kind].ratio, of_quiet)
        yield p99_row(kind, "p99 on Redis alone", measured.beside_redis(kind), of_redis)


def two_tenants(args):
    with Rig((), is_first=args.realtime) as rig:
        found = tenants.measure(rig, args.rounds, args.seconds)
    tenants.show(found)
    yield from tenants.rows(found)


def goal_rows(results, goals):
    for goal in goals:
        where, asked, shown, verdict = ratios.goal_row(results, goal)
        yield where, asked, shown, VERDICTS.get(verdict, verdict)


def cell(name, args):
    """Measures a cell as bench.py does."""
    goals = [goal for goal in HEADLINES if goal.cell == name]
    variants = dict.fromkeys(who for goal in goals for who in (goal.who, goal.versus) if who in bench.VARIANTS)
    how = argparse.Namespace(rounds=args.rounds, seconds=args.seconds, slices=args.slices, again=args.again)
    wanted = replace(costs.BY_NAME[name], also=tuple(variants))
    with Rig(("weir", *PEERS, *variants), is_first=args.realtime) as rig:
        rig.fill()
        found = bench.Bench(rig, how, {}).agreed(wanted, lambda found: ratios.goals_agree(found, goals))
    ratios.show_cell(name, found)
    yield from goal_rows({"cells": {name: found}}, goals)


def funnel(args):
    cases = [case for case in limit.CASES if case.name == "random P1"]
    with Rig((), is_first=args.realtime) as rig:
        limit.add_weir(rig, "weir")
        found = limit.measure(rig, args.rounds, args.seconds, args.slices, cases=cases)
    for name, asked, shown, verdict in limit.verdicts(found):
        asked = asked.replace("direct", "EVALSHA of the script, direct")
        yield f"LIMIT FUNNEL {name}", asked, shown, VERDICTS.get(verdict, verdict)


def memory(args):
    """The median of several processes: a heap begins at a random address, and grows in pieces. One
    piece is 14 bytes for each connection."""
    with Rig(()) as rig:
        found = [costs.idle_of(rig, "weir") for _ in range(args.rounds)]
    middle = {what: statistics.median(one[what] for one in found) for what in found[0]}
    yield from goal_rows({"idle": {"weir": middle}}, IDLE_HEADLINES)


def operator(args):
    samples = operators.measure({"": os.environ["WEIR"]}, args.rounds)
    for (action, _), found in samples.items():
        operators.show(action, found)
    yield from operators.rows(samples)


PARTS = {
    "neighbours": neighbours,
    "tenants": two_tenants,
    **{goal.cell: partial(cell, goal.cell) for goal in HEADLINES},
    "limit": funnel,
    "memory": memory,
    "operators": operator,
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="how the names of parts begin; all without")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.6, help="of each measurement (0.6)")
    parser.add_argument("--slices", type=int, default=6, help="that a cell's measurement is made of (6)")
    parser.add_argument("--again", type=int, default=1, help="how often a cell is repeated whose rounds disagree (1)")
    parser.add_argument("--realtime", action="store_true", help="before the machine's other work (SCHED_FIFO): needs root")
    parser.add_argument("--list", action="store_true", help="the names of all parts")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/performance.md")
    args = parser.parse_args()
    unknown = [start for start in args.parts if not any(part.startswith(start) for part in PARTS)]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}")
    args.parts = [part for part in PARTS if not args.parts or part.startswith(tuple(args.parts))]
    args.realtime = not args.report and machine.is_realtime(args.realtime)
    return args


def measured_with():
    return f"Measured on {time.strftime('%Y-%m-%d')} with {bench.versions()}; {bench.machine()}."


def measured_how(args):
    first = ", before all other work of the machine" if args.realtime else ""
    return f"{args.rounds} rounds of {args.seconds:g} s{first}; the machine's load was {os.getloadavg()[0]:.0f}"


def measure(args, kept):
    for part in args.parts:
        print(f"\n==== {part}", flush=True)
        kept[part] = {"with": measured_with(), "how": measured_how(args), "rows": []}
        for row in PARTS[part](args):
            kept[part]["rows"].append(row)
            FIGURES.parent.mkdir(parents=True, exist_ok=True)
            FIGURES.write_text(json.dumps(kept, indent=1))


def markdown(kept):
    """The table, with the machine and the settings of each part."""
    parts = {part: kept[part] for part in PARTS if part in kept}
    said = list(dict.fromkeys(one["with"] for one in parts.values()))
    hows = dict.fromkeys(one["how"] for one in parts.values())
    said += [f"- {', '.join(part for part, one in parts.items() if one['how'] == how)}: {how}." for how in hows]
    rows = [row for one in parts.values() for row in one["rows"]]
    return "\n".join(said) + "\n\n" + ratios.table(HEAD, rows) + "\n"


def main():
    args = arguments()
    if args.list:
        print("\n".join(args.parts))
        return
    if not DRIVE.exists():
        sys.exit(f"{DRIVE} is missing: make bench-figures builds it")
    kept = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    machine.end_when_told()
    if not args.report:
        measure(args, kept)
    print()
    for row in (row for part in PARTS for row in kept.get(part, {"rows": []})["rows"]):
        print("  {:58} {:52} {:22} {}".format(*row))
    if args.docs:
        bench.put_into_docs(markdown(kept), BEGIN, END)


if __name__ == "__main__":
    main()
