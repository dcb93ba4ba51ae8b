"""The machine: its cores, the priority of processes, and the other work during a measurement."""

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import sys
import time
from pathlib import Path

FIRST = 5  # priority of the measured processes, above all ordinary processes (SCHED_FIFO)
SECOND = 1  # priority of neighbours: below the measured processes, above the machine's other work
PR_SET_PDEATHSIG = 1  # linux/prctl.h
OTHERS_MAX = 0.15  # processors used by other processes; with more a round is measured again
STOLEN_MAX = 0.1  # processors that the host may withhold
# largest ratio of the processor time of equal work between two slices of a round
UNSTEADY_MAX = 1.5


# ---- cores ----


class Cores:
    """Redis on one core, the proxies on another, the driver on the rest. With two cores the driver
    floats."""

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


# ---- priorities ----


def may_come_first():
    """True if this process may set real-time priorities."""
    with contextlib.suppress(OSError):
        policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(SECOND))
        os.sched_setscheduler(0, policy, parameters)
        return True
    return False


def is_realtime(asked):
    """True if real-time priority is requested and allowed. If not allowed, prints a message."""
    if asked and not may_come_first():
        print("--realtime needs root (CAP_SYS_NICE): going on without")
        return False
    return asked


def put_first(pid, priority=FIRST):
    """
    Gives a process (0: this process) a real-time priority, above all work of a lower priority.
    """
    for task in tasks(pid or os.getpid()):
        os.sched_setscheduler(task, os.SCHED_FIFO, os.sched_param(priority))


def end_when_told():
    """SIGTERM ends this process like an error, so that the processes it started are ended too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def end_with_parent():
    """Ends this process with its parent: a real-time process must not be left over."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


# ---- used processor time ----


def processors():
    """(seconds worked, seconds stolen by the host) of all processors since the machine started."""
    with open("/proc/stat") as stat:
        user, nice, system, _, _, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / tick, steal / tick


def cpu_ns(pid):
    """(processor time of a process, time it waited for a processor), all threads together."""
    sums = [0, 0]
    for task in tasks(pid):
        # a thread that has just ended
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            ran, waited, _ = map(int, Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split())
            sums[0] += ran
            sums[1] += waited
    return tuple(sums)


def own_s():
    """Processor seconds of this process and of its ended children."""
    return sum(os.times()[:4])


class Stretch:
    """The work of the machine from now on, apart from some processes, this process and its
    children."""

    def __init__(self, pids):
        self.pids = pids
        self.before = self.now()

    def now(self):
        worked, stolen = processors()
        ours = own_s() + sum(cpu_ns(pid)[0] for pid in self.pids) / 1e9
        return time.monotonic(), worked - ours, stolen

    def disturbance(self):
        """Number of processors that other processes used, roughly, and number that the host
        withheld."""
        seconds, others, stolen = (now - before for now, before in zip(self.now(), self.before))
        return max(0.0, others) / seconds, stolen / seconds


def noise(samples, is_first):
    """The reason why a measurement must be repeated, or None. Other processes do not delay a
    real-time process. But their use of the same caches, or of the other half of a core, slows a
    real-time process down."""
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
