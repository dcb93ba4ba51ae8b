#!/usr/bin/python3
"""The cost of private connections: scripts and transactions on two builds of weir, alternating.

The two builds are WEIR and WEIR_BEFORE. The table shows operations per second and weir's CPU per
operation, as the median of the ratios of each round. Then 1,000 clients send one script and one
transaction a second each: the table shows their durations, and the number of connections to Redis.
"""

import argparse
import os
import selectors
import statistics
import sys
import time

from rig import REPO, raise_open_files

from kit.harness import Redis, Weir
from kit import harness
from kit.resp import dial, encode

EVAL = encode("EVAL", "return redis.call('GET', KEYS[1])", 1, "k")
TRANSACTION = encode("MULTI") + encode("GET", "k") + encode("EXEC")
CASES = {"EVAL P1": (EVAL, 1, 1), "EVAL P16": (EVAL, 1, 16), "MULTI GET EXEC P1": (TRANSACTION, 3, 1),
         "MULTI GET EXEC P16": (TRANSACTION, 3, 16), "GET P1": (encode("GET", "k"), 1, 1),
         "GET P16": (encode("GET", "k"), 1, 16)}
CLIENTS = 50


def cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(address, request, expected, pipeline, seconds):
    """Number of operations in `seconds`, in a closed loop."""
    data = request * pipeline
    want = len(expected) * pipeline
    socks = [dial(address) for _ in range(CLIENTS)]
    poll = selectors.DefaultSelector()
    left = {}
    for sock in socks:
        sock.setblocking(False)
        poll.register(sock, selectors.EVENT_READ)
        sock.send(data)
        left[sock] = want
    done, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        for key, _ in poll.select(0.1):
            sock = key.fileobj
            left[sock] -= len(sock.recv(1 << 16))
            if left[sock] == 0:
                done += pipeline
                left[sock] = want
                sock.send(data)
    for sock in socks:
        sock.close()
    return done


def reply_of(address, request):
    with harness.Conn(address) as conn:
        for _ in range(2):
            conn.send(request + encode("ECHO", "end"))
            seen = b""
            while not seen.endswith(b"$3\r\nend\r\n"):
                conn.more()
                seen += bytes(conn.buffer)
                conn.buffer.clear()
    return seen[: -len(b"$3\r\nend\r\n")]


def compare(weirs, rounds, seconds):
    for name, (request, _, pipeline) in CASES.items():
        ratios = {"ops": [], "cpu": []}
        for _ in range(rounds):
            found = {}
            for which, weir in weirs.items():
                expected = reply_of(weir.address, request)
                before = cpu(weir.child.pid)
                done = run(weir.address, request, expected, pipeline, seconds)
                found[which] = (done, (cpu(weir.child.pid) - before) / done)
            ratios["ops"].append(found["now"][0] / found["before"][0])
            ratios["cpu"].append(found["now"][1] / found["before"][1])
        print(f"{name:20} ops {statistics.median(ratios['ops']):.2f} x   cpu {statistics.median(ratios['cpu']):.2f} x   "
              f"({min(ratios['ops']):.2f}-{max(ratios['ops']):.2f}, {min(ratios['cpu']):.2f}-{max(ratios['cpu']):.2f})")


def spread(redis, weirs, clients, seconds):
    """Each client sends one script and one transaction a second, evenly spread."""
    for which, weir in weirs.items():
        replies = {request: len(reply_of(weir.address, request)) for request in (EVAL, TRANSACTION)}
        harness.wait_until(lambda: int(redis.info("connected_clients")) < 16, "what was kept is given up", 20)
        socks = [dial(weir.address) for _ in range(clients)]
        before = int(redis.info("total_connections_received"))
        times, most = [], 0
        started = time.monotonic()
        due = [(started + i / clients / 2 * 1.0, i % clients, (EVAL, TRANSACTION)[i // clients % 2])
               for i in range(int(2 * clients * seconds))]
        poll = selectors.DefaultSelector()
        waiting, at = {}, 0
        for sock in socks:
            poll.register(sock, selectors.EVENT_READ)
        while at < len(due) or waiting:
            now = time.monotonic()
            while at < len(due) and due[at][0] <= now:
                sock, request = socks[due[at][1]], due[at][2]
                if sock not in waiting:
                    sock.sendall(request)
                    waiting[sock] = [now, replies[request]]
                at += 1
            for key, _ in poll.select(0 if at < len(due) else 0.01):
                entry = waiting[key.fileobj]
                entry[1] -= len(key.fileobj.recv(4096))
                if entry[1] == 0:
                    times.append(time.monotonic() - entry[0])
                    del waiting[key.fileobj]
            if at % 500 == 0:
                most = max(most, int(redis.info("connected_clients")))
        times.sort()
        print(f"{which:7} {clients} clients: p50 {times[len(times) // 2] * 1e3:.2f} ms, p99 {times[int(len(times) * .99)] * 1e3:.2f} ms, "
              f"{int(redis.info('total_connections_received')) - before} opened, {most} at most")
        for sock in socks:
            sock.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    args = parser.parse_args()
    raise_open_files()
    redis = Redis()
    redis.start()
    redis.call("SET", "k", "v")
    weirs = {}
    for which, path in (("before", os.environ["WEIR_BEFORE"]), ("now", os.environ.get("WEIR", str(REPO / "build/weir")))):
        harness.WEIR = path
        weirs[which] = Weir(redis, workers=1)
        weirs[which].start()
        weirs[which].wait_ready()
    try:
        compare(weirs, args.rounds, args.seconds)
        spread(redis, weirs, 1000, 4)
    finally:
        for server in [*weirs.values(), redis]:
            server.kill()


if __name__ == "__main__":
    sys.exit(main())
