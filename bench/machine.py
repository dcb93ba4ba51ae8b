"""The machine that is measured on: its cores, whose turn comes first, and what else it does meanwhile."""

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import sys
import time
from pathlib import Path

FIRST = 5  # the priority of what is measured, where it comes before all ordinary processes (SCHED_FIFO)
SECOND = 1  # of neighbours, who then come after it and still before the machine's other work
PR_SET_PDEATHSIG = 1  # linux/prctl.h
OTHERS_MAX = 0.15  # processors that others may have meanwhile, or a round is thrown away
STOLEN_MAX = 0.1  # processors that the host may keep to itself meanwhile
UNSTEADY_MAX = 1.5  # how much more processor time the same work may take in one slice of a round than in another


# ---- cores ----


class Cores:
    """Redis on one core, the proxies on another, the driver on what is left; with two cores, on whichever is free."""

    def __init__(self):
        self.all = sorted(os.sched_getaffinity(0))
        self.redis = self.all[-1:]
        self.proxy = self.all[:1]
        self.two_workers = self.all[:2] if len(self.all) >= 4 else self.proxy
        middle = self.all[2:-1] if len(self.all) >= 4 else self.all[1:-1]
        self.driver = middle or self.all

    def __str__(self):
        if len(self.all) == 1:
            return "one core for everything: throughput says nothing"
        names = ("redis", "proxy", "two_workers", "driver")
        return ", ".join(f"{name.replace('_', ' ')} on {','.join(map(str, getattr(self, name)))}" for name in names)


def tasks(pid):
    return [int(task) for task in os.listdir(f"/proc/{pid}/task")]


def pin(pid, cores):
    for task in tasks(pid):
        os.sched_setaffinity(task, cores)


def raise_open_files():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# ---- who comes first ----


def may_come_first():
    """May this process let others come before all ordinary ones?"""
    with contextlib.suppress(OSError):
        policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(SECOND))
        os.sched_setscheduler(0, policy, parameters)
        return True
    return False


def is_realtime(asked):
    """Is it asked for, and may it be? Says so where it may not."""
    if asked and not may_come_first():
        print("--realtime needs root (CAP_SYS_NICE): going on without")
        return False
    return asked


def put_first(pid, priority=FIRST):
    """A process, 0 for this one: from now on it runs whenever it wants to, before all that has a lower priority."""
    for task in tasks(pid or os.getpid()):
        os.sched_setscheduler(task, os.SCHED_FIFO, os.sched_param(priority))


def end_when_told():
    """SIGTERM ends this process as an error would: what it has started is ended too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def end_with_parent():
    """However the parent ends: what comes before all other work must not be forgotten."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


# ---- what has been used ----


def processors():
    """(seconds worked, seconds stolen by the host) of all processors since the machine started."""
    with open("/proc/stat") as stat:
        user, nice, system, _, _, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / tick, steal / tick


def cpu_ns(pid):
    """(processor time a process has had, how long it waited for more), all its threads together."""
    sums = [0, 0]
    for task in tasks(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            ran, waited, _ = map(int, Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split())
            sums[0] += ran
            sums[1] += waited
    return tuple(sums)


def own_s():
    """Processor seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


class Stretch:
    """What the machine does from when this is made, beside some processes, this one and its children."""

    def __init__(self, pids):
        self.pids = pids
        self.before = self.now()

    def now(self):
        worked, stolen = processors()
        ours = own_s() + sum(cpu_ns(pid)[0] for pid in self.pids) / 1e9
        return time.monotonic(), worked - ours, stolen

    def disturbance(self):
        """How many processors others had, roughly, and how many the host did not give."""
        seconds, others, stolen = (now - before for now, before in zip(self.now(), self.before))
        return max(0.0, others) / seconds, stolen / seconds


def noise(samples, is_first):
    """Why what was measured is to be measured again, or nothing. Who comes first is not kept waiting by others; but others in
    the same caches, or on the other half of a core, show as work that takes longer."""
    others = max((sample["others"] for sample in samples), default=0)
    stolen = max((sample["stolen"] for sample in samples), default=0)
    if stolen > STOLEN_MAX:
        return f"the host kept {stolen:.2f} processors to itself"
    if others > OTHERS_MAX and not is_first:
        return f"others used {others:.2f} processors"
    unsteady = max((sample.get("unsteady", 1) for sample in samples), default=1)
    if unsteady > UNSTEADY_MAX:
        return f"the same work took {unsteady:.1f} x the processor time from one moment to the next"
    return ""


def rss_bytes(pid):
    with contextlib.suppress(StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) * 1024
    return 0


def missing(programs):
    return [program for program in programs if not shutil.which(program)]
