#!/usr/bin/python3
"""Measures weir against Redis alone, nutcracker, haproxy, and endpoints given by --extra.

Every cell is measured for some rounds. In each round all endpoints are measured one after the
other. Each round starts with another endpoint. Only ratios within one round count, since the speed
of the machine drifts. A ratio with rounds more than 25 % apart is not printed. docs/performance.md
says how to read the results.

    bench/bench.py                          everything, about an hour
    bench/bench.py --quick                  the cells with a goal, under 5 minutes
    bench/bench.py 'GET 16 B c50'           the cells with names that begin with this text
    bench/bench.py --extra predixy 127.0.0.1:7617 4711 --redis-port 7000
    bench/bench.py --report                 the tables again, from the last results

All results are kept in build/bench/results.json. --resume continues an interrupted run.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import costs
import ratios
import rounds
from cells import CELLS
from machine import end_when_told, is_realtime
from rig import DRIVE, PEERS, REPO, VARIANTS, WEIR, Rig

RESULTS = Path(os.environ.get("BENCH_RESULTS", REPO / "build/bench/results.json"))
DOCS = REPO / "docs/performance.md"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
QUICK_SECONDS, SECONDS = 0.4, 1.5
NEEDED = ("direct", "weir")  # another endpoint may fail in a cell


def first_line(*argv):
    run = subprocess.run(argv, capture_output=True, text=True, check=False)
    return (run.stdout + run.stderr).splitlines()[0].strip()


def versions():
    said = {
        "weir": first_line(WEIR, "--version"),
        "redis-server": first_line("redis-server", "--version"),
        "nutcracker": first_line("nutcracker", "-V"),
        "haproxy": first_line("haproxy", "-v"),
        "Linux": platform.release(),
    }
    found = {name: re.search(r"\d+\.\d+[\w.+-]*", text) for name, text in said.items()}
    argv = ["git", "-C", REPO, "describe", "--always", "--dirty"]
    git = subprocess.run(argv, capture_output=True, text=True, check=False)
    commit = f" ({git.stdout.strip()})" if git.returncode == 0 else ""
    shown = {name: match[0] if match else "?" for name, match in found.items()}
    return ", ".join(f"{name} {number}{commit if name == 'weir' else ''}" for name, number in shown.items())


def machine():
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return f"{len(os.sched_getaffinity(0))} cores of {model[1] if model else platform.machine()}, loopback"


class Bench:
    def __init__(self, rig, args, results):
        self.rig, self.args, self.results = rig, args, results
        self.broken = []  # (cell, the failure of an endpoint)

    def cell(self, cell):
        """
        endpoint -> its samples, one for each round. An endpoint that fails in the cell has none.
        """
        able = [n for n in self.rig.endpoints if n not in VARIANTS or n in cell.also]

        def cannot(name, failed):
            self.broken.append((cell.name, str(failed)))
            able.remove(name)
            if name in NEEDED:
                raise failed

        def measure(number):
            load = cell.load
            if cell.share:
                load = replace(load, rate=round(cell.share * self.slowest(load, able)))
            loads = {name: load for name in able}
            return rounds.sliced(self.rig, loads, number, self.args.seconds, self.args.slices, cannot)

        return rounds.by_name(rounds.kept(self.args.rounds, self.rig.is_first, measure, cell.name))

    def slowest(self, load, names):
        """Requests per second of the slowest proxy. At that rate all proxies do the same work."""
        proxies = [self.rig.endpoints[name] for name in names if self.rig.endpoints[name].pid]
        return min(self.rig.measure(proxy, load, seconds=self.args.seconds / 2)["ops_s"] for proxy in proxies)

    def run(self, cells):
        done = self.results["cells"]
        for cell in cells:
            if cell.name in done and self.args.resume:
                continue
            done[cell.name] = self.agreed(cell)
            self.keep()
            ratios.show_cell(cell.name, done[cell.name])

    def agreed(self, cell, agrees=ratios.cell_agrees):
        """endpoint -> its samples, of the first try with rounds that agree, or of the last try."""
        for _ in range(self.args.again + 1):
            found = self.cell(cell)
            if agrees(found):
                break
        return found

    def count(self):
        """Measures the figures that need no rounds."""
        results = self.results
        how, count = costs.counter()
        results["meta"]["counter"] = how
        print(f"\nSystem calls per request ({how})")
        names = [name for name in self.rig.endpoints if name not in VARIANTS]
        results["calls"] = costs.count_calls(self.rig, count, names, results["cells"]) if count else {}
        self.keep()
        print("\nInstructions per request")
        results["instructions"] = costs.instructions_per_get(self.rig, RESULTS.parent / "callgrind.out")
        print(f"\nBytes for each of {costs.IDLE} connections", flush=True)
        results["idle"] = costs.idle_connections(self.rig)
        results["gate"] = costs.gate_figures()
        self.keep()

    def keep(self):
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(self.results, indent=1))


def report(results, into_docs):
    ratios.show_goals(results)
    text = ratios.markdown(results)
    path = RESULTS.with_suffix(".md")
    path.write_text(text)
    print(f"\nAll tables: {path}")
    if into_docs:
        put_into_docs(text, BEGIN, END)


def put_into_docs(text, begin, end):
    before, _, rest = DOCS.read_text().partition(begin)
    DOCS.write_text(f"{before}{begin}\n{text}{end}{rest.partition(end)[2]}")


def an_extra(name, address, pid):
    host, _, port = address.rpartition(":")
    return name, (host, int(port)), int(pid)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", nargs="*", help="how the names of cells begin; all without")
    parser.add_argument("--quick", action="store_true", help="only cells with a figure to reach, shorter")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, help=f"of each measurement ({SECONDS}; quick {QUICK_SECONDS})")
    parser.add_argument("--slices", type=int, help="that each is made of, all endpoints in turn (3; quick 1)")
    parser.add_argument("--realtime", action="store_true", help="before the machine's other work (SCHED_FIFO): needs root")
    parser.add_argument("--again", type=int, help="how often a cell is repeated whose rounds disagree (2; quick 0)")
    parser.add_argument("--extra", nargs=3, action="append", default=[], metavar=("NAME", "HOST:PORT", "PID"))
    parser.add_argument("--redis-port", type=int, help="so that an extra endpoint can be put in front of it")
    parser.add_argument("--resume", action="store_true", help="keep the cells of build/bench/results.json")
    parser.add_argument("--no-counts", action="store_true", help="no system calls, instructions, idle connections")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--docs", action="store_true", help="put the tables into docs/performance.md")
    parser.add_argument("--list", action="store_true", help="the names of all cells")
    args = parser.parse_args()
    args.seconds = args.seconds or (QUICK_SECONDS if args.quick else SECONDS)
    args.slices = args.slices or (1 if args.quick else 3)
    args.again = args.again if args.again is not None else 0 if args.quick else 2
    return args


def main():
    args = arguments()
    chosen = [cell for cell in CELLS if cell.is_quick or not args.quick]
    if args.cells:
        chosen = [cell for cell in chosen if any(cell.name.startswith(start) for start in args.cells)]
    if args.list:
        print("\n".join(cell.name for cell in chosen))
        return
    if args.report:
        report(json.loads(RESULTS.read_text()), args.docs)
        return
    if not DRIVE.exists():
        sys.exit(f"{DRIVE} is missing: make bench builds it")
    results = json.loads(RESULTS.read_text()) if args.resume and RESULTS.exists() else {"cells": {}}
    extras = [an_extra(*extra) for extra in args.extra]
    load = Path("/proc/loadavg").read_text().split()[0]
    end_when_told()
    names = ("weir", *PEERS, *VARIANTS)
    with Rig(names, args.redis_port, extras, is_realtime(args.realtime)) as rig:
        rig.fill()
        results["meta"] = {
            **results.get("meta", {}),
            "date": time.strftime("%Y-%m-%d"),
            "versions": versions(),
            "machine": machine(),
            "rounds": args.rounds,
            "seconds": args.seconds,
            "cores": str(rig.cores),
            "load": load + (", everything measured came before it" if rig.is_first else ""),
        }
        print(f"{results['meta']['versions']}\n{results['meta']['machine']}; {rig.cores}; load {load}", flush=True)
        bench = Bench(rig, args, results)
        bench.run(chosen)
        if not args.no_counts:
            bench.count()
    report(results, args.docs)
    for cell, what in bench.broken:
        print(f"{cell}: {what}")


if __name__ == "__main__":
    main()
