#!/usr/bin/python3
"""Runs all tests that depend on the server behind weir, for each given server.

A stage prints one line of result.

    tests/tools/run-versions.py SERVER ... [--source SOURCES ...]

SERVER is a path like redis-7.4.1/redis-server, and SOURCES a path like redis-7.4.1.

Stages, those marked * only with the server's sources (as many --source as servers, in the same
order):

    it           the integration tests, including the corpus of commands
    wait         the part of them (test_wait*.py) with replicas that stand still; no run of its own
    audit *      tests/tools/audit-errors: where the server puts a text into a reply unchanged
    shared *     the server's test suite with lanes = shared (tests/tools/conformance.py)
    private *    the server's test suite with lanes = private
    cluster *    the server's test suite before a cluster of three masters, if the suite has a mode
                 for clusters; the last three stages are one run

The output of a stage is in build/versions/SERVER/. The exit code is 1 if a stage failed.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as tree
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests/tools"))

from server_version import said_version  # noqa: E402

NAMES = ("redis-server", "valkey-server")
WAITING = re.compile(r"\btest_wait(?!ing)")
STAGES = ("it", "audit", "conformance")


def find_server(where):
    """A program, or a folder with a server in it or in its src/."""
    # Debian tells its programs apart by their names
    path = Path(shutil.which(where) or where).absolute()
    candidates = [path, *(path / name for name in NAMES), *(path / "src" / name for name in NAMES)]
    found = next((c for c in candidates if c.is_file() and os.access(c, os.X_OK)), None)
    return found or sys.exit(f"{where}: no server there")


class Server:
    def __init__(self, program, source, weirs):
        self.program, self.source, self.weirs = program, source, weirs
        self.name = said_version(str(program))
        self.folder = REPO / "build/versions" / self.name.replace(" ", "-").lower()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.good = True

    def run(self, stage, argv, weir, **env):
        """Runs a stage. Returns its exit code and its output."""
        log = self.folder / f"{stage}.log"
        env = {**os.environ, "REDIS_SERVER": str(self.program), "WEIR": str(weir), **env}
        if self.source:
            env["REDIS_SRC"] = str(self.source)
        with open(log, "wb") as out:
            done = subprocess.run(argv, cwd=REPO, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        return done.returncode, log.read_text(errors="replace")

    def say(self, stage, good, what, start=None):
        self.good &= good
        took = f", {time.monotonic() - start:.0f} s" if start else ""
        print(f"{self.name:14} {stage:8} {'ok    ' if good else 'FAILED'} {what}{took}", flush=True)

    def it(self):
        start = time.monotonic()
        report = REPO / "build/it.xml"
        code, text = self.run("it", ["tests/tools/run-it.sh"], self.weirs["asan"])
        if not report.exists():
            return self.say("it", False, (text.strip().splitlines() or ["nothing was said"])[-1], start)
        shutil.copy(report, self.folder)
        cases = list(tree.parse(report).iter("testcase"))
        self.say("it", code == 0, tally(cases), start)
        waiting = [case for case in cases if WAITING.search(case.get("classname"))]
        self.say("wait", bool(waiting) and not any(map(has_failed, waiting)), tally(waiting))

    def audit(self):
        code, text = self.run("audit", ["tests/tools/audit-errors", str(self.source)], self.weirs["release"])
        lines = text.strip().splitlines()
        unknown = f", {len(lines) - 2} faults: {lines[2]}" if len(lines) > 2 else ""
        self.say("audit", code == 0, (lines or ["nothing was said"])[0] + unknown)

    def conformance(self):
        start = time.monotonic()
        result = self.folder / "conformance.json"
        result.unlink(missing_ok=True)
        argv = ["tests/tools/conformance.py", "--databases", "multi", "--databases", "cluster", "--json", str(result)]
        code, text = self.run("conformance", argv, self.weirs["release"], HIREDIS_TEST="")
        if not result.exists():
            return self.say("shared", False, (text.strip().splitlines() or ["nothing was said"])[-1], start)
        rows = json.loads(result.read_text())
        for lanes in ("shared", "private", "cluster"):
            mine = [row for row in rows if row["endpoint"] == lanes]
            if not mine:
                continue  # the suite of 6.2 has no cluster mode
            databases = mine[0]["databases"]
            direct = sum(row["passed"] for row in rows if row["endpoint"] == "haproxy" and row["databases"] == databases)
            passed, lost = (sum(count) for count in zip(*((row["passed"], len(row["lost"])) for row in mine), strict=True))
            left_out = {(row["unit"], test) for row in mine for test in row["left out"]}
            what = f"{passed} tests passed, {direct} without weir; {lost} lost, {len(left_out)} named exceptions"
            self.say(lanes, lost == 0, what, start)
        return None


def has_failed(case):
    return case.find("failure") is not None or case.find("error") is not None


def tally(cases):
    failed = sum(map(has_failed, cases))
    skipped = sum(case.find("skipped") is not None for case in cases)
    return f"{len(cases) - failed - skipped} passed, {failed} failed, {skipped} skipped"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="+", metavar="SERVER", help="a redis-server or valkey-server, or its folder")
    parser.add_argument("--source", nargs="+", default=[], metavar="DIR", help="the sources of each, in the same order")
    parser.add_argument("--stage", choices=STAGES, action="append", help="only these; all without")
    args = parser.parse_args()
    if args.source and len(args.source) != len(args.servers):
        sys.exit(f"{len(args.servers)} servers, but sources of {len(args.source)}")

    weirs = {flavour: REPO / f"build/{flavour}/weir" for flavour in ("asan", "release")}
    programs = [find_server(server) for server in args.servers]
    sources = [Path(source).resolve() for source in args.source] or [None] * len(programs)
    servers = [Server(program, source, weirs) for program, source in zip(programs, sources, strict=True)]
    for server in servers:
        for stage in STAGES:
            if (server.source or stage == "it") and stage in (args.stage or STAGES):
                getattr(server, stage)()
    print(f"logs: {REPO / 'build/versions'}")
    sys.exit(0 if all(server.good for server in servers) else 1)


if __name__ == "__main__":
    main()
