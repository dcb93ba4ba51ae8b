"""Programs with public client libraries run through three failovers behind weir.

The programs are those of test_restart_libraries.py. None of them knows about sentinels.
"""

import collections
import fcntl
import re
import signal
import subprocess

import pytest
from kit.harness import REPO, wait_until
from kit.programs import Program, collapsed
from kit.sentinel import Deployment, follows
from test_restart_libraries import HERE, LIBRARIES, QUEUES, in_node

pytestmark = pytest.mark.failover

WAITS = {"failover_wait": "20s"}
LOST_WRITES = re.compile(r"\d+ after \d+")  # writes to an old master, or that the replica lacked
SECONDS = 60


def in_c(script):
    def command(request):
        build = REPO / "build" / "c"
        build.mkdir(parents=True, exist_ok=True)
        with open(build / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            program = build / script.removesuffix(".c")
            argv = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", HERE / "c" / script, "-lhiredis", "-o", program]
            subprocess.run(argv, check=True, capture_output=True, timeout=60)
        return [program], ()

    return command


def by_hand(made, meanwhile):
    made.begin_failover()
    meanwhile()


def killed(made, meanwhile):
    """Kills the master once the replicas have all acknowledged writes. The old master returns, and
    becomes a replica.
    """
    old = made.master
    with old.connect() as conn:
        conn.call("SET", "killed", "1")
        assert conn.call("WAIT", 2, 10000) == 2
    old.signal(signal.SIGKILL)
    old.wait()
    meanwhile()
    made.wait_switched(old)
    old.start()


FAILOVERS = [by_hand, killed, by_hand]


def fail_over(made, weir, way, meanwhile=lambda: None):
    """Returns the new master, once weir follows it and another failover is possible."""
    old = made.master
    way(made, meanwhile)
    new = made.wait_switched(old)
    wait_until(lambda: follows(weir, new), "weir follows", SECONDS)
    made.wait_settled()
    return new


PROGRAMS = {
    **LIBRARIES,
    "node-redis": in_node("redis.js", "redis"),
    "hiredis": in_c("hiredis.c"),
}
# Errors that no program may get: a direct client of a healthy master would not get them.
UNHEARD = re.compile("READONLY|UPSTREAM|LOADING|MASTERDOWN|NOAUTH|WRONGPASS|wrong|protocol", re.I)


def rid_of_lost_writes(lines):
    return [line for line in lines if not LOST_WRITES.fullmatch(line)]


@pytest.mark.parametrize("library", PROGRAMS)
def test_libraries_live_through_failovers(library, request, farm):
    """The busy program sees at most a connection that closes with a command in flight. The idle
    program reconnects at each failover, as its blocking pop ends as it would directly.
    """
    argv, behind = PROGRAMS[library](request)
    made = Deployment(farm)
    weir = farm.weir(made.upstream, **WAITS)
    port = weir.address[1]
    with Program([*argv, port, "busy", *behind]) as busy, Program([*argv, port, "idle", *behind]) as idle:

        def works():
            seen = busy.lines.count("ok")
            busy.until(lambda: busy.lines.count("ok") > seen + 3, "it works")

        def pops(word):
            idle.until(lambda: made.master.waiting()[0] == 1, "it blocks")
            made.master.call("RPUSH", "q", word)
            idle.until(lambda: f"popped {word}" in idle.lines, f"it pops {word!r}")

        works()
        pops("0")
        for n, way in enumerate(FAILOVERS, 1):
            fail_over(made, weir, way)
            works()
            pops(str(n))
        pops("end")
        made.master.call("SET", "stop", "yes")
        assert [busy.code(), idle.code()] == [0, 0], (busy.stderr(), idle.stderr())
    events = collapsed(rid_of_lost_writes(busy.lines)), collapsed(idle.lines)
    print(library, *events, sep="\n")
    assert not [line for lines in events for line in lines if UNHEARD.search(line)], events
    assert [line for line in events[1] if line.startswith("popped")] == ["popped 0", "popped 1", "popped 2", "popped 3", "popped end"]
    assert len(busy.lines) - len(rid_of_lost_writes(busy.lines)) <= len(FAILOVERS)
    assert sum(line != "ok" for line in events[0]) <= FAILOVERS.count(killed), events[0]


LONG = 0  # begins before the first failover, and ends after the last


@pytest.mark.parametrize("queue", QUEUES)
def test_jobs_live_through_failovers(queue, request, farm):
    """Every job is done, also a job that is enqueued while there is no master, and a long job that
    runs through all failovers.
    """
    argv, behind = QUEUES[queue](request)
    made = Deployment(farm)
    weir = farm.weir(made.upstream, **WAITS)
    port = weir.address[1]
    with Program([*argv, port, "worker"], PORT=str(port)) as worker, Program([*argv, port, "producer"]) as producer:

        def said(what, jobs):
            worker.until(lambda: {f"{what} {n}" for n in jobs} <= set(worker.lines), f"{what} {list(jobs)}")

        def enqueue(jobs, seconds=0.01):
            producer.say(*(f"{n} {seconds}" for n in jobs))

        enqueue(range(1, 6))
        said("done", range(1, 6))
        enqueue([LONG], 8)
        said("begun", [LONG])
        for round, way in enumerate(FAILOVERS, 1):
            meanwhile = range(100 * round, 100 * round + 5)
            fail_over(made, weir, way, lambda: way is killed and enqueue(meanwhile))
            if way is not killed:
                enqueue(meanwhile)
            said("done", meanwhile)
        said("done", [LONG])
        done = collections.Counter(line for line in worker.lines if line.startswith("done"))
        lines = collapsed(line.partition(" ")[0] if line.startswith("enqueued") else line for line in producer.lines)
        print(queue, lines, {line: n for line, n in done.items() if n > 1})
    assert set(done.values()) == {1}, done
    assert not [line for line in lines if UNHEARD.search(line)], lines
