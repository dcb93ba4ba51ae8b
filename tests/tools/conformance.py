#!/usr/bin/python3
"""Runs the test suite of Redis or Valkey in external mode, through a forwarder and weir.

Every run of a unit has a redis-server of its own, since the suite changes the server's
configuration. A test that passes through the forwarder (haproxy) must pass through weir, in both
lane modes. Exceptions are listed with their reasons in docs/conformance.md, by version of the
server. Listed tests do not run through weir, since a test that fails half-way can spoil the tests
behind it. For clusters the forwarder is before a cluster of one node, and weir before a cluster of
three.

    REDIS_SRC=DIR      the sources of the server, of the same release
    REDIS_SERVER=path  the server; without it the installed redis-server
    HIREDIS_TEST=path  hiredis' test program, which must report the same for weir as for Redis
    WEIR=path          the weir to test
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
os.environ.setdefault("WEIR", str(REPO / "build/weir"))
sys.path.insert(0, str(REPO / "tests/it"))

from kit.cluster import Cluster  # noqa: E402
from kit.harness import REDIS_SERVER, Farm, Process, Redis, Weir, free_port, wait_until  # noqa: E402
from kit.resp import Closed, Conn  # noqa: E402
from server_version import said_version  # noqa: E402

DOC = REPO / "docs/conformance.md"
UNIT_SECONDS = 240
LOG_BYTES = 4000
SHOWN = 10  # tests of one run of a unit; more failures have one early cause
OPTIONS_FROM_7 = ["--enable-protected-configs", "yes", "--enable-module-command", "yes"]
PROGRAMS = [f"{maker}-{what}" for maker in ("redis", "valkey") for what in ("cli", "benchmark")]
LANES = ["shared", "private"]
TAGS = "-slow"
DATABASES = {
    "multi": ["--tags", TAGS],
    "single": ["--tags", TAGS, "--singledb"],
    # Redis refuses DEBUG and SYNC
    "cluster": ["--tags", TAGS + " -needs:debug -needs:repl", "--cluster-mode"],
}

# Appended to a copy of the suite's tests/support/util.tcl: figures that tests wait for are summed
# over all nodes.
ADD_NODES = """
proc status {r property} {
    if {![regexp {^(blocked_clients|expired_keys|evicted_keys|keyspace_\\w+|lazyfree\\w+)$} $property]} {
        return [getInfoProperty [{*}$r info] $property]
    }
    set sum 0
    foreach port {%s} {
        set node [redis 127.0.0.1 $port]
        incr sum [getInfoProperty [$node info] $property]
        $node close
    }
    return $sum
}
"""

HAPROXY = """
global
    maxconn 4000
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
listen redis
    bind 127.0.0.1:%d
    server redis 127.0.0.1:%d
"""


class Forwarder(Process):
    """haproxy in TCP mode, which does not parse RESP."""

    def __init__(self, redis):
        super().__init__("haproxy")
        self.address = ("127.0.0.1", free_port())
        self.config = self.folder / "haproxy.cfg"
        self.config.write_text(HAPROXY % (self.address[1], redis.port))

    def start(self):
        self.launch(["haproxy", "-db", "-f", str(self.config)])

    def wait_ready(self):
        wait_until(lambda: self._answers() or not self.is_running(), "haproxy answers")
        assert self.is_running(), self.log()

    def _answers(self):
        try:
            with Conn(self.address, 1) as conn:
                return conn.call("PING") == "PONG"
        except (OSError, Closed):
            return False


def weir_before(redis, lanes):
    return Weir(redis, lanes=lanes, workers=2, listen="127.0.0.1:0, unix:{folder}/weir.sock")


ENDPOINTS = {
    "haproxy": Forwarder,
    "shared": lambda redis: weir_before(redis, "shared"),
    "private": lambda redis: weir_before(redis, "private"),
    "cluster": lambda cluster: weir_before(cluster, "shared"),
}


def start_behind(farm, endpoint, databases):
    """The server behind the endpoint: one server, a cluster of one node, which never redirects, or
    of three."""
    if databases != "cluster":
        return farm.redis(*server_options())
    masters = 3 if endpoint == "cluster" else 1
    cluster = Cluster(farm, *server_options(), masters=masters)
    return cluster if endpoint == "cluster" else cluster.nodes[0]


class Outcome:
    """The report of one run of a unit: how often each test passed, and the messages of failed
    tests."""

    def __init__(self, text, ended):
        self.ended = ended
        self.log = ""
        plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
        self.passed = Counter(re.findall(r"^\[ok\]: (.*?)(?: \(\d+ ms\))?$", plain, re.M))
        # the list at the end names each failure once more
        body = plain.partition("The following tests failed")[0]
        self.failed = re.findall(r"^\[err\]: (.*(?:\n(?!\[|\n).*)*)", body, re.M)
        stopped = re.findall(r"^\[exception\]: (.*(?:\n(?!\[ok|\[err|\[test).*)*)", body, re.M)
        self.failed += ["the unit stopped: " + what for what in stopped]
        if not ended:
            lines = plain.strip().splitlines()
            self.failed.append(f"the unit did not end in {UNIT_SECONDS} s; last: {lines[-1] if lines else ''}")

    def count(self):
        return sum(self.passed.values())


def find_program(source, program):
    """Looks in the built sources, beside the server, and in PATH. Valkey's programs have names of
    their own."""
    beside = Path(shutil.which(REDIS_SERVER)).resolve().parent
    other = program.replace("valkey-", "redis-")
    for path in (source / "src" / program, beside / program, beside / other):
        if os.access(path, os.X_OK):
            return path.resolve()
    return shutil.which(program) or shutil.which(other)


def link_all(source, folder, but):
    folder.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name not in but:
            (folder / entry.name).symlink_to(entry)


def scratch_checkout(source, folder, ports):
    """Makes the folder that the suite expects, outside the checkout. `ports` of a cluster's nodes,
    or empty."""
    link_all(source / "tests", folder / "tests", {"tmp", "support"})
    link_all(source / "tests/support", folder / "tests/support", {"util.tcl"})
    util = (source / "tests/support/util.tcl").read_text()
    (folder / "tests/support/util.tcl").write_text(util + (ADD_NODES % " ".join(map(str, ports)) if ports else ""))
    (folder / "tests/tmp").mkdir()
    (folder / "src").mkdir()
    for program in PROGRAMS:
        found = find_program(source, program)
        if found:
            (folder / "src" / program).symlink_to(found)


def run_suite(source, unit, address, flags, ports):
    folder = Path(tempfile.mkdtemp(prefix="weir-conformance-"))
    scratch_checkout(source, folder, ports)
    argv = ["tclsh8.6", "tests/test_helper.tcl", "--host", address[0], "--port", str(address[1])]
    argv += ["--baseport", str(free_port() + 32), "--single", unit, "--durable", *flags]
    with open(folder / "out", "wb") as out:
        suite = subprocess.Popen(
            argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            env={**os.environ, "TERM": "dumb"}, start_new_session=True,
        )  # fmt: skip
        try:
            suite.wait(UNIT_SECONDS)
            ended = True
        except subprocess.TimeoutExpired:
            ended = False
        try:
            # children that the suite leaves behind when it stops half-way
            os.killpg(suite.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        suite.wait()
    text = (folder / "out").read_text(errors="replace")
    shutil.rmtree(folder, ignore_errors=True)
    return text, ended


def server_options():
    return [] if said_version(REDIS_SERVER).startswith("Redis 6.") else OPTIONS_FROM_7


def run(source, unit, endpoint, databases, skipped=()):
    farm = Farm()
    try:
        behind = start_behind(farm, endpoint, databases)
        server = farm._start(ENDPOINTS[endpoint](behind))
        server.wait_ready()
        ports = [node.port for node in getattr(behind, "nodes", [])]
        skips = [word for test in skipped for word in ("--skiptest", test)]
        text, ended = run_suite(source, unit, server.address, DATABASES[databases] + skips, ports)
        outcome = Outcome(text, ended)
        outcome.log = server.log()[-LOG_BYTES:]
        if isinstance(server, Weir) and (not server.is_running() or server.complaint()):
            outcome.failed.append("weir ended, or a sanitizer complained\n" + server.log())
        return outcome
    finally:
        for server in reversed(farm.servers):
            server.forget()


def is_meant(version, words):
    """True if "Valkey 8.0.1" is one of "all", "Valkey 8.0", "from 7.4" or "Valkey from 7.4"."""
    maker, number = version.split()
    if words == "all":
        return True
    wanted, is_from, least = re.fullmatch(r"(?:(Redis|Valkey) )?(from )?(\d+\.\d+)", words).groups()
    mine, least = ([int(part) for part in text.split(".")[:2]] for text in (number, least))
    return wanted in (None, maker) and (mine >= least if is_from else mine == least)


def listed_exceptions(version):
    """(lanes, unit, test) from the tables under "## Exceptions" that apply to this version. `*` in
    the name of a test stands for any text."""
    section = DOC.read_text().partition("## Exceptions")[2] if DOC.exists() else ""
    rows = re.findall(r"^\| ([^|]+) \| (\w+) \| `([^`]+)` \| (`[^`]+`(?:, `[^`]+`)*) \|", section, re.M)
    return {
        (lanes, unit, test)
        for versions, what, unit, tests in rows
        if any(is_meant(version, words) for words in versions.split(", "))
        for lanes in (LANES if what == "both" else (what,))
        for test in re.findall("`([^`]+)`", tests)
    }


def is_named(test, names):
    return any(re.fullmatch(".*".join(map(re.escape, name.split("*"))), test) for name in names)


def list_units(source):
    listed = subprocess.run(
        ["tclsh8.6", "tests/test_helper.tcl", "--list-tests"], cwd=source, capture_output=True, text=True, check=True
    )
    return listed.stdout.split()


def has_cluster_mode(source):
    return "--cluster-mode" in (source / "tests/test_helper.tcl").read_text()


class Comparison:
    """One unit with one kind of databases: the forwarder first, then weir in each lane mode, or
    before a cluster."""

    def __init__(self, source, unit, databases, endpoints, exceptions):
        self.unit, self.databases = unit, databases
        self.outcomes, self.skipped, self.lost, self.again = {}, {}, {}, {}
        self.outcomes["haproxy"] = run(source, unit, "haproxy", databases)
        for endpoint in endpoints if self.is_of_use() else []:
            named = [test for lanes, where, test in exceptions if (lanes, where) == (endpoint, unit)]
            self.skipped[endpoint] = sorted(test for test in self.outcomes["haproxy"].passed if is_named(test, named))
            self._compare(source, endpoint)

    def is_of_use(self):
        """False for a unit without tests in external mode, or one that hangs there."""
        return self.outcomes["haproxy"].ended and self.outcomes["haproxy"].count() > 0

    def _compare(self, source, endpoint):
        wanted = self.outcomes["haproxy"].passed - Counter(dict.fromkeys(self.skipped[endpoint], 1000))
        first = run(source, self.unit, endpoint, self.databases, self.skipped[endpoint])
        self.outcomes[endpoint] = first
        lost = wanted - first.passed
        # tests of timing, or of the order on two connections, may fail by chance: a second,
        # reported run
        if lost:
            second = run(source, self.unit, endpoint, self.databases, self.skipped[endpoint])
            still = lost & (wanted - second.passed)
            self.again[endpoint] = lost - still
            lost = still
        self.lost[endpoint] = lost

    def as_rows(self):
        for endpoint, outcome in self.outcomes.items():
            yield {
                "server": said_version(REDIS_SERVER),
                "unit": self.unit,
                "databases": self.databases,
                "endpoint": endpoint,
                "passed": outcome.count(),
                "failed": outcome.failed,
                "log": outcome.log if outcome.failed else "",
                "left out": self.skipped.get(endpoint, []),
                "lost": sorted(self.lost.get(endpoint, {})),
                "passed again": sorted(self.again.get(endpoint, {})),
            }

    def print_line(self):
        if not self.is_of_use():
            if not self.outcomes["haproxy"].ended:
                print(f"{self.unit:28} {self.databases:6} | does not end without weir either")
            return
        cells = " ".join(
            f"{name} {outcome.count():4} ok {len(outcome.failed)} failed" + ("*" if self.again.get(name) else "") + " |"
            for name, outcome in self.outcomes.items()
        )
        print(f"{self.unit:28} {self.databases:6} | {cells}", flush=True)


# ---- hiredis' own test program ----


def run_hiredis(program, address, unix):
    """(number of each result line, exit code) of hiredis' test program."""
    argv = [program, "-h", address[0], "-p", str(address[1]), "-s", unix, "--skip-throughput"]
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=UNIT_SECONDS)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    return Counter(re.findall(r"^#\d+ (.*: (?:PASSED|FAILED))$", plain, re.M)), done.returncode


def compare_hiredis(program):
    """True if every test that passes directly passes through weir."""
    good = True
    redis = Redis("--unixsocket", "redis.sock")
    weirs = []
    try:
        redis.start()
        wanted, code = run_hiredis(program, redis.address, str(redis.folder / "redis.sock"))
        print(f"hiredis direct   {sum(wanted.values())} tests, exit code {code}")
        for lanes in LANES:
            weirs.append(weir_before(redis, lanes))
            weirs[-1].start()
            weirs[-1].wait_ready()
            got, code = run_hiredis(program, *weirs[-1].addresses)
            print(f"hiredis {lanes:8} {sum(got.values())} tests, exit code {code}")
            for test in wanted - got:
                good = False
                print(f"NOT THROUGH WEIR: {lanes} hiredis: {test}")
    finally:
        for server in [*reversed(weirs), redis]:
            server.forget()
    return good


# ---- all units ----


def print_tests(what, row, tests):
    for test in tests[:SHOWN]:
        print(f"{what}: {row['endpoint']} {row['databases']} {row['unit']}: {test}")
    if len(tests) > SHOWN:
        print(f"{what}: and {len(tests) - SHOWN} more of {row['unit']}")


def report(comparisons):
    """Prints the totals, and the tests that fail through weir only. True: none."""
    rows = [row for comparison in comparisons if comparison.is_of_use() for row in comparison.as_rows()]
    print()
    for endpoint in ENDPOINTS:
        mine = [row for row in rows if row["endpoint"] == endpoint]
        passed, failed = sum(row["passed"] for row in mine), sum(len(row["failed"]) for row in mine)
        if mine:
            left_out = sum(len(row["left out"]) for row in mine)
            print(f"{endpoint:8} {len(mine)} unit runs, {passed} passed, {failed} failed, {left_out} left out")
    for row in rows:
        print_tests("passed when run again", row, row["passed again"])
        print_tests("NOT THROUGH WEIR", row, row["lost"])
    return not any(row["lost"] for row in rows), rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("units", nargs="*", help="such as unit/multi; all without")
    parser.add_argument("--databases", choices=list(DATABASES), action="append", help="without: all that the suite knows")
    parser.add_argument("--lanes", choices=LANES, action="append")
    parser.add_argument("--everything", action="store_true", help="leave nothing out")
    parser.add_argument("--leave-out", action="append", default=[], metavar="TEST", help="through weir, too")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write everything there too, with the failures' own words")
    args = parser.parse_args()

    absent = [name for name in ("haproxy", "tclsh8.6", REDIS_SERVER) if not shutil.which(name)]
    if absent:
        sys.exit("missing: " + " ".join(absent) + " (packages haproxy, tcl8.6, redis-server, redis-tools)")
    version = said_version(REDIS_SERVER)
    source = Path(os.environ.get("REDIS_SRC", ""))
    if not (source / "tests/test_helper.tcl").exists() or not os.environ.get("REDIS_SRC"):
        sys.exit(f"set REDIS_SRC to the sources of {version}")
    source = source.resolve()
    print(version, flush=True)
    os.nice(5)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    start = time.monotonic()
    kinds = [kind for kind in args.databases or DATABASES if kind != "cluster" or has_cluster_mode(source)]
    jobs = [(unit, kind) for unit in args.units or list_units(source) for kind in kinds]
    exceptions = set() if args.everything else listed_exceptions(version)
    exceptions |= {(name, unit, test) for name in ENDPOINTS for unit, _ in jobs for test in args.leave_out}
    done = []

    def work(job):
        unit, databases = job
        endpoints = ["cluster"] if databases == "cluster" else args.lanes or LANES
        comparison = Comparison(source, unit, databases, endpoints, exceptions)
        comparison.print_line()
        done.append(comparison)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        try:
            for _ in pool.map(work, jobs):
                pass
        # also an interrupt: running units end properly, waiting units do not start
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    good, rows = report(sorted(done, key=lambda c: (c.unit, c.databases)))
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    if os.environ.get("HIREDIS_TEST"):
        good = compare_hiredis(os.environ["HIREDIS_TEST"]) and good
    print(f"{time.monotonic() - start:.0f} s")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
