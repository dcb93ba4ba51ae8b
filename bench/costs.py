"""Figures that are counted, not timed: system calls, instructions, memory of idle connections, the
gate.
"""

import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from cells import CELLS
from machine import rss_bytes
from rig import PEERS, REPO, Endpoint, Failed, Grind, dial, encode, make_weir, wait_until

IDLE = 9500
IDLE_WHATS = ("idle", "after one SET and GET", "after all asked at once")
ASKED = ((encode("SET", "idle", "1"), len("+OK\r\n")), (encode("GET", "idle"), len("$1\r\n1\r\n")))
CALL_CELLS = ("GET 16 B c1 P1", "GET 16 B c50 P1", "GET 16 B c50 P16", "GET 16 B c50 P64")
CALL_SECONDS = 0.3
MICRO = REPO / "build/release/micro"
BY_NAME = {cell.name: cell for cell in CELLS}


# ---- system calls ----


def with_perf(pid, work):
    """(number of system calls of the process during work(), the result of work())."""
    with tempfile.NamedTemporaryFile("r") as out:
        argv = ["perf", "stat", "-x", ",", "-e", "raw_syscalls:sys_enter", "-o", out.name, "-p", str(pid)]
        perf = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.3)  # perf does not report its start; work() begins after this pause
        result = work()
        perf.send_signal(signal.SIGINT)
        perf.wait()
        counts = [line.split(",") for line in out.read().splitlines() if "sys_enter" in line]
    if not counts or not counts[0][0].isdigit():
        raise Failed("perf counts no system calls here")
    return int(counts[0][0]), result


def with_strace(pid, work):
    with tempfile.NamedTemporaryFile("r") as out:
        strace = subprocess.Popen(["strace", "-c", "-f", "-o", out.name, "-p", str(pid)], stderr=subprocess.DEVNULL)
        status = Path(f"/proc/{pid}/status")
        wait_until(lambda: "TracerPid:\t0\n" not in status.read_text(), "strace is attached")
        result = work()
        strace.send_signal(signal.SIGINT)
        strace.wait()
        total = [line.split() for line in out.read().splitlines() if line.endswith(" total")]
    if not total:
        raise Failed("strace counts no system calls here")
    return int(total[0][3 if total[0][3].isdigit() else 2]), result


def counter():
    """
    How system calls can be counted here: (a name, the function), or (the reason why not, None).
    """
    if shutil.which("perf"):
        with contextlib.suppress(Failed, ValueError):
            with_perf(os.getpid(), lambda: [os.getppid() for _ in range(10)])
            return "perf stat", with_perf
    if shutil.which("strace"):
        return "strace, which slows what it counts", with_strace
    return "neither perf nor strace can be used here", None


def one_batch(rig, endpoint, load):
    said = rig.drive(endpoint, load, count=1)
    time.sleep(CALL_SECONDS)
    return said


def loads_to_count(cells):
    """cell -> the load to count. An open loop gets the median rate of the measured cells."""
    loads = {name: BY_NAME[name].load for name in CALL_CELLS}
    for cell in filter(lambda cell: cell.share, CELLS):
        if rates := [sample["rate"] for samples in cells.get(cell.name, {}).values() for sample in samples]:
            loads[cell.name] = replace(cell.load, rate=round(statistics.median(rates)))
    return loads


def count_calls(rig, count, names, cells):
    """
    cell -> endpoint -> system calls per request; those of Redis itself for `direct`. The calls of a
    run of one batch are subtracted, since connecting and work without requests do not count.
    """
    calls = {}
    for name, load in loads_to_count(cells).items():
        calls[name] = {}
        for endpoint in (rig.endpoints[n] for n in names):
            pid = endpoint.pid or rig.redis.child.pid
            some, a = count(pid, lambda: one_batch(rig, endpoint, replace(load, rate=0)))
            many, b = count(pid, lambda: rig.drive(endpoint, load, seconds=CALL_SECONDS, warm_up=0))
            calls[name][endpoint.name] = (many - some) / (b["replies_in_all"] - a["replies_in_all"])
        print(f"  {name:22}" + ", ".join(f"{n} {c:.2f}" for n, c in calls[name].items()), flush=True)
    return calls


# ---- instructions ----


def instructions_per_get(rig, kept, name="GET 16 B c50 P64", replies=100_000):
    """
    Instructions in user space, by callgrind: the difference between 3n and n requests, without
    start and end. The profile is kept: callgrind_annotate build/bench/callgrind.out.
    """
    if not shutil.which("valgrind"):
        return {}
    spent = []
    for count in (replies, 3 * replies):
        weir = rig.start(make_weir(rig.redis, kind=Grind), rig.cores.proxy)
        endpoint = Endpoint("grind", weir.address, weir.child.pid)
        said = rig.drive(endpoint, BY_NAME[name].load, count=count)
        spent.append((weir.instructions(), said["replies_in_all"]))
        shutil.copy(weir.counted, kept)
        rig.stop(weir)
    (i1, n1), (i2, n2) = spent
    value = (i2 - i1) / (n2 - n1)
    print(f"  {name}: {value:.0f} instructions", flush=True)
    return {name: value}


# ---- idle connections ----


def idle_of(rig, name):
    """Bytes of resident memory for each connection, in a process that has served one connection
    before."""
    server = rig.add(name)
    pid = server.child.pid
    socks = []
    try:
        with contextlib.closing(dial(server.address)) as sock:
            sock.sendall(encode("SET", "idle", "1") + encode("GET", "idle"))
            receive(sock, 12)
        before = rss_bytes(pid)
        for _ in range(IDLE):
            socks.append(dial(server.address))
        settle(pid)
        idle = (rss_bytes(pid) - before) / IDLE
        for sock in socks:
            for request, reply_bytes in ASKED:
                sock.sendall(request)
                receive(sock, reply_bytes)
        settle(pid)
        used = (rss_bytes(pid) - before) / IDLE
        for request, reply_bytes in ASKED:
            for sock in socks:
                sock.sendall(request)
            for sock in socks:
                receive(sock, reply_bytes)
        settle(pid)
        return dict(zip(IDLE_WHATS, (idle, used, (rss_bytes(pid) - before) / IDLE)))
    finally:
        for sock in socks:
            sock.close()
        rig.stop(server)


def receive(sock, n):
    while n > 0:
        data = sock.recv(n)
        assert data, "the connection was closed"
        n -= len(data)


def settle(pid):
    """Waits until the resident memory has not changed for half a second."""
    last, since = rss_bytes(pid), time.monotonic()
    while time.monotonic() < since + 0.5:
        time.sleep(0.05)
        if (size := rss_bytes(pid)) != last:
            last, since = size, time.monotonic()


def idle_connections(rig):
    """Measures fresh processes, since pools that earlier cells have filled would hide the
    memory."""
    kept, found = dict(rig.endpoints), {}
    for name in [name for name in ("weir", *PEERS) if name in kept]:
        found[name] = idle_of(rig, name)
        print(f"  {name:12} " + ", ".join(f"{what} {value:.0f}" for what, value in found[name].items()), flush=True)
    rig.endpoints = kept
    return found


# ---- the gate ----


def gate_figures():
    """The gate's nanoseconds from build/release/micro, all in one run."""
    if not MICRO.exists():
        return {}
    run = subprocess.run([MICRO, "-j"], capture_output=True, text=True, check=True)
    ns = {name: row["ns"] for name, row in json.loads(run.stdout).items()}
    return {
        "one funnel take / bare compare-and-swap": ns["funnel/take"] / ns["cas/bare"],
        "ns of three limits": ns["gate/three limits"],
        "a refusal / a pass, one limit": ns["gate/one limit, refused"] / ns["gate/one limit"],
        "a refusal / a pass, three limits": ns["gate/three limits, refused"] / ns["gate/three limits"],
    }
