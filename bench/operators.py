#!/usr/bin/python3
"""How long clients wait while an operator works: 1,000 policies, 3,000 limits, 10,000 clients.

    bench/operators.py                    all actions, five rounds
    bench/operators.py RELOAD LIST        actions with names that begin with these texts
    WEIR_BEFORE=path bench/operators.py   beside another build, in alternate rounds

Probes on each worker send PINGs one after the other, all the time. For each action of an operator
the table shows, over the rounds:

- done: the duration of the action (median);
- stall: the longest wait of a probe during the action (median and greatest);
- iteration: the largest processor time of one iteration of a worker's event loop (median and
  greatest).

On a machine with other work that work may cause a stall, but not a long iteration. "nothing" is a
row without any action. Clients and operator share the machine with weir.

The program measures and does not judge: it exits with 0.
"""

import argparse
import contextlib
import multiprocessing
import os
import random
import socket
import statistics
import sys
import time
import urllib.request
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
os.environ.setdefault("WEIR", str(REPO / "build/weir"))
sys.path.insert(0, str(REPO / "tests/it"))

from kit.admin import url_of  # noqa: E402
from kit.harness import Redis, Weir, wait_until  # noqa: E402
from kit.iterations import Iterations  # noqa: E402
from kit.resp import Conn, encode  # noqa: E402
from machine import raise_open_files  # noqa: E402

POLICIES, CLIENTS, WORKERS = 1000, 10000, 2
LIMITS = "read = 1m/s\nwrite = 1m/s\nall = 2m/s\n"
HEADS = ("done", "stall", "greatest", "iteration", "greatest")
PING, PONG = encode("PING"), b"+PONG\r\n"


def sections(policies):
    """Half of the policies match networks and addresses, a quarter the beginning of a name, a
    quarter a user."""
    kinds = ("ip:10.{}.{}.0/24", "name:svc{}-{}-*", "ip:10.{}.{}.9", "user:app{}-{}")
    for n in range(policies - 1):
        yield f"[policy tenant{n}]\nmatch = {kinds[n % 4].format(n // 250, n % 250)}\n{LIMITS}"
    yield "[policy default]\n" + LIMITS


def crowd_process(address, clients, pipe):
    """Connects named clients, each bound by one command, and holds them until the pipe closes."""
    crowd = []
    for n in range(clients):
        crowd.append(socket.create_connection(address))
        crowd[-1].send(encode("CLIENT", "SETNAME", f"svc{n % 4}-{n % 250}-{n}") + encode("GET", "none"))
        assert crowd[-1].recv(64).startswith(b"+OK")
    pipe.send(True)
    with contextlib.suppress(EOFError):
        pipe.recv()


def probe_process(address, worst):
    """Sends PING after PING on connections to each worker. `worst` holds the longest wait since its
    last reset."""
    conns = [socket.create_connection(address) for _ in range(2 * WORKERS)]
    while True:
        for conn in conns:
            began = time.perf_counter()
            conn.send(PING)
            assert conn.recv(len(PONG)) == PONG
            worst.value = max(worst.value, time.perf_counter() - began)
        time.sleep(0.0002)


class Built(Weir):
    """A weir of another build."""

    def __init__(self, binary, *args, **settings):
        super().__init__(*args, **settings)
        self.binary = str(binary)

    def launch(self, argv, **kwargs):
        super().launch([self.binary, *argv[1:]], **kwargs)


class Site:
    """One weir with its policies and clients, and an operator."""

    def __init__(self, redis, binary, policies, clients):
        admin = "[admin]\nlisten = 127.0.0.1:0\nsocket = {folder}/admin\n"
        how = {"workers": WORKERS, "lanes": "shared", "max_clients": clients + 1000}
        self.weir = Built(binary, redis, sections=admin + "".join(sections(policies)), **how)
        self.iterations = Iterations(self.weir.folder)
        self.weir.env = self.iterations.env
        self.weir.start()
        self.weir.wait_ready()
        self.operator = Conn(str(self.weir.folder / "admin"), 60)
        self.pipe, end = multiprocessing.Pipe()
        self.worst = multiprocessing.Value("d", 0)
        self.children = [
            multiprocessing.Process(target=crowd_process, args=(self.weir.address, clients, end), daemon=True),
            multiprocessing.Process(target=probe_process, args=(self.weir.address, self.worst), daemon=True),
        ]
        self.children[0].start()
        self.pipe.recv()
        self.children[1].start()
        wait_until(lambda: self.worst.value > 0, "the probes are answered")

    def get(self, path):
        with urllib.request.urlopen(url_of(self.weir, path), timeout=60) as reply:
            reply.read()

    def actions(self):
        op = self.operator
        rate = random.randrange(10**5, 10**6)
        return {
            "nothing": lambda: time.sleep(0.1),
            "RELOAD": lambda: op.call("LIMIT", "RELOAD"),
            "SET": lambda: op.call("LIMIT", "SET", "tenant5", "read", f"{rate}/s"),
            "BLOCK": lambda: op.call("LIMIT", "BLOCK", "ip:10.77.0.1", "EX", "1h"),
            "UNBLOCK": lambda: op.call("LIMIT", "UNBLOCK", "ip:10.77.0.1"),
            "MODE": lambda: (op.call("LIMIT", "MODE", "SHADOW"), op.call("LIMIT", "MODE", "ENFORCE")),
            "LIST": lambda: op.call("LIMIT", "LIST"),
            "CLIENTS": lambda: op.call("LIMIT", "CLIENTS"),
            "TOP": lambda: op.call("LIMIT", "TOP", 128),
            "LOG": lambda: op.call("LIMIT", "LOG", 1000),
            "DIFF": lambda: op.call("LIMIT", "DIFF"),
            "SUGGEST": lambda: op.call("LIMIT", "SUGGEST"),
            "page": lambda: self.get("/api/v1/stats?history=0"),
            "metrics": lambda: self.get("/metrics"),
        }

    def measure(self, act):
        time.sleep(0.05)
        self.worst.value = 0
        self.iterations.clear()
        began = time.perf_counter()
        act()
        done = time.perf_counter() - began
        time.sleep(0.02)
        return done, self.worst.value, self.iterations.largest()[0]

    def close(self):
        for child in self.children:
            child.terminate()
            child.join()
        self.weir.forget()


def measure(builds, rounds, actions=(), policies=POLICIES, clients=CLIENTS):
    """(action, build) -> the results of each round; `builds` are names and programs."""
    raise_open_files()
    sites, samples = {}, {}
    with contextlib.ExitStack() as stack:
        for name, binary in builds.items():
            redis = Redis("--maxclients", "2000")
            stack.callback(redis.forget)
            redis.start()
            sites[name] = Site(redis, binary, policies, clients)
            stack.callback(sites[name].close)
        for _ in range(rounds):
            for build, site in sites.items():
                for action, act in site.actions().items():
                    if not actions or action.startswith(tuple(actions)):
                        samples.setdefault((action, build), []).append(site.measure(act))
    return samples


def rows(samples):
    """For figures.py: the longest iteration of each action, and the duration of a reload."""
    for (action, _), found in samples.items():
        done, _, spent = (sorted(1000 * seconds for seconds in each) for each in zip(*found))
        if action == "RELOAD":
            shown = f"{statistics.median(done):.0f} ({done[0]:.0f}-{done[-1]:.0f})"
            yield f"operator: {action}", "done, ms <= 300", shown, "ok" if statistics.median(done) <= 300 else "missed"
        if action != "nothing":
            shown = f"{statistics.median(spent):.1f} ({spent[0]:.1f}-{spent[-1]:.1f})"
            yield f"operator: {action}", "a worker's longest iteration, ms <= 5", shown, "ok" if spent[-1] <= 5 else "missed"


def show(name, samples):
    done, stall, spent = zip(*samples)
    shown = statistics.median(done), statistics.median(stall), max(stall), statistics.median(spent), max(spent)
    print(f"{name:20}" + "".join(f"{1000 * seconds:10.2f}" for seconds in shown), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("-p", "--policies", type=int, default=POLICIES)
    parser.add_argument("-c", "--clients", type=int, default=CLIENTS)
    parser.add_argument("actions", nargs="*", help="those whose names begin so")
    args = parser.parse_args()
    builds = {"": os.environ["WEIR"]}
    if "WEIR_BEFORE" in os.environ:
        builds = {"before": os.environ["WEIR_BEFORE"], "now": os.environ["WEIR"]}
    samples = measure(builds, args.rounds, args.actions, args.policies, args.clients)
    print(f"{'ms':20}" + "".join(f"{head:>10}" for head in HEADS))
    for (action, build), found in samples.items():
        show(f"{action} {build}".strip(), found)


if __name__ == "__main__":
    main()
