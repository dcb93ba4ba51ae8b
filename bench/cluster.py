#!/usr/bin/python3
"""Measures a Redis Cluster of 3 masters behind weir, behind predixy, and one server alone.

    bench/cluster.py                          all cells, about two minutes
    bench/cluster.py --cells 'GET P1' 'MGET'  only cells with names that begin with these texts
    bench/cluster.py --instructions           instructions of a request (build/bench/cluster.*)
    bench/cluster.py --calls                  system calls of a request

50 clients request random keys of 16 B. A round measures each proxy once. Each ratio is of one
round. The table shows the median of the rounds, the least and the greatest. Processor time is the
proxy's for each request. PREDIXY=path names predixy 1.0.5, built from its sources elsewhere.
Without PREDIXY only weir is measured.
"""

import argparse
import os
import shutil
import statistics
import sys
from pathlib import Path

from costs import counter, one_batch
from machine import pin, raise_open_files
from ratios import short
from rig import REPO, Endpoint, Grind, Load, PortProcess, Rig, make_weir

from kit.cluster import Cluster
from kit.harness import Farm
from kit.resp import Conn

PREDIXY = os.environ.get("PREDIXY", "/tmp/predixy/src/predixy")
KEPT = REPO / "build/bench/cluster"
KEYS = 10000
GET = ("GET", "get16:{k}")
MGET = ("MGET", *(f"get16:{{k}}:{n}" for n in range(10)))  # ten keys, almost always in ten slots
CELLS = {
    "GET P1": Load(GET, clients=50, pipeline=1, keys=KEYS),
    "GET P16": Load(GET, clients=50, pipeline=16, keys=KEYS),
    "GET P64": Load(GET, clients=50, pipeline=64, keys=KEYS),
    "MGET of 10 P1": Load(MGET, clients=50, pipeline=1, keys=1000),
    "MGET of 10 P16": Load(MGET, clients=50, pipeline=16, keys=1000),
}
# cell -> (figure, goal for weir / predixy, true if less is better)
ASKED = [
    ("GET P1", "proxy_us", 0.8, True),
    ("GET P16", "ops_s", 1.5, False),
    ("GET P16", "proxy_us", 0.6, True),
    ("GET P64", "ops_s", 2.0, False),
    ("MGET of 10 P1", "ops_s", 1.5, False),
]
NAMES = {"proxy_us": "CPU", "ops_s": "throughput"}


class Predixy(PortProcess):
    def __init__(self, cluster):
        super().__init__("predixy")
        self.cluster = cluster

    def prepare(self):
        servers = "".join(f"        + {node.upstream}\n" for node in self.cluster.nodes)
        conf = self.write(
            f"Name bench\nBind 127.0.0.1:{self.port}\nWorkerThreads 1\nMaxMemory 0\nClientTimeout 300\n"
            f"Log {self.folder}/predixy.log\nLogInfoSample 0\nLogNoticeSample 0\n"
            "Authority {\n    Auth {\n        Mode admin\n    }\n}\n"
            f"ClusterServerPool {{\n    MasterReadPriority 60\n    RefreshInterval 1\n    Servers {{\n{servers}    }}\n}}\n"
        )
        return [PREDIXY, conf]


class ClusterRig(Rig):
    """One server for `direct`, a cluster of three masters, and the proxies in front of them."""

    def __init__(self):
        super().__init__(())
        self.farm = Farm()
        try:
            self.cluster = Cluster(self.farm, "--maxclients", "20000", "--protected-mode", "no", node_timeout=5000)
            for node in self.cluster.nodes:
                pin(node.child.pid, self.cores.redis)
            self.put("weir", make_weir(self.cluster, sections=""))
            self.put("weir, one server", make_weir(self.redis, sections=""))
            if Path(PREDIXY).exists():
                self.put("predixy", Predixy(self.cluster))
            else:
                print(f"{PREDIXY} is not there: weir alone")
        except BaseException:
            self.close()
            raise

    def put(self, name, server):
        self.start(server, self.cores.proxy)
        self.endpoints[name] = Endpoint(name, server.address, server.child.pid)

    def close(self):
        super().close()
        self.farm.close()

    def fill(self):
        keys = [key for n in range(KEYS) for key in (f"get16:{n:07}", *(f"get16:{n:07}:{i}" for i in range(10) if n < 1000))]
        for address in (self.redis.address, self.endpoints["weir"].address):
            with Conn(address) as conn:
                for start in range(0, len(keys), 1000):
                    assert set(conn.ask(*(["SET", key, "v" * 16] for key in keys[start : start + 1000]))) == {"OK"}


def connections(pid, ports):
    """Number of connections of a process to servers at these ports."""
    held = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            held.add(os.readlink(fd))
        except OSError:
            continue
    found = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        found += f"socket:[{words[9]}]" in held and int(words[2].rpartition(":")[2], 16) in ports
    return found


def ratio(values):
    return f"{short(statistics.median(values))} ({short(min(values))}-{short(max(values))})"


def measure(rig, cells, rounds, seconds):
    """cell -> endpoint -> samples of the rounds."""
    found = {}
    for name in cells:
        samples = found[name] = {endpoint: [] for endpoint in rig.endpoints}
        for _ in range(rounds):
            for endpoint in rig.endpoints.values():
                samples[endpoint.name].append(rig.measure(endpoint, CELLS[name], seconds=seconds))
        show(name, samples)
    return found


def show(name, samples):
    print(name)
    for endpoint, rounds in samples.items():
        middle = {what: statistics.median(one[what] or 0 for one in rounds) for what in ("ops_s", "proxy_us", "p50_us", "p99_us")}
        print(f"  {endpoint:17} {short(middle['ops_s']):>6}/s   CPU {middle['proxy_us']:6.2f} us"
              f"   p50 {middle['p50_us']:6.0f} us   p99 {middle['p99_us']:6.0f} us", flush=True)
    for other in ("predixy", "weir, one server"):
        if other in samples:
            shown = [f"{NAMES[what]} {ratio([a[what] / b[what] for a, b in zip(samples['weir'], samples[other])])} x" for what in NAMES]
            print(f"  weir / {other}: {', '.join(shown)}", flush=True)


def judge(found):
    missed = 0
    for cell, what, bound, is_less in ASKED:
        if "predixy" not in found.get(cell, {}):
            continue
        value = statistics.median(a[what] / b[what] for a, b in zip(found[cell]["weir"], found[cell]["predixy"]))
        is_good = value <= bound if is_less else value >= bound
        missed += not is_good
        print(f"{cell}: {NAMES[what]} {'<=' if is_less else '>='} {bound} x predixy asked, {value:.2f} x measured: {'ok' if is_good else 'missed'}")
    return missed


def tell_connections(rig):
    ports = {node.port for node in rig.cluster.nodes}
    for name in ("weir", "predixy"):
        if name in rig.endpoints:
            print(f"connections to the three nodes: {name} {connections(rig.endpoints[name].pid, ports)}")


def instructions(rig, cells, replies=60_000):
    """Instructions in user space for each request, before the cluster and before one server: the
    difference between 3n and n requests."""
    for cell in cells:
        spent = {}
        for name, upstream in (("one server", rig.redis), ("cluster", rig.cluster)):
            runs = []
            for count in (replies, 3 * replies):
                weir = rig.start(make_weir(upstream, sections="", kind=Grind), rig.cores.proxy)
                said = rig.drive(Endpoint("grind", weir.address, weir.child.pid), CELLS[cell], count=count)
                runs.append((weir.instructions(), said["replies_in_all"]))
                shutil.copy(weir.counted, f"{KEPT}.{cell.replace(' ', '-')}.{name.replace(' ', '-')}")
                rig.stop(weir)
            (i1, n1), (i2, n2) = runs
            spent[name] = (i2 - i1) / (n2 - n1)
        print(f"{cell}: instructions of a request: " + ", ".join(f"{name} {n:.0f}" for name, n in spent.items()), flush=True)


def calls(rig, cells, seconds):
    """System calls of each proxy for each request, less those of a run of one batch."""
    how, count = counter()
    if count is None:
        raise SystemExit(how)
    for cell in cells:
        found = {}
        for name in rig.endpoints:
            endpoint = rig.endpoints[name]
            if endpoint.pid is None:
                continue
            some, a = count(endpoint.pid, lambda e=endpoint: one_batch(rig, e, CELLS[cell]))
            many, b = count(endpoint.pid, lambda e=endpoint: rig.drive(e, CELLS[cell], seconds=seconds, warm_up=0))
            found[name] = (many - some) / (b["replies_in_all"] - a["replies_in_all"])
        print(f"{cell}: system calls of a request ({how}): " + ", ".join(f"{n} {c:.3f}" for n, c in found.items()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.8, help="of each measurement (0.8)")
    parser.add_argument("--cells", nargs="*", default=[], help="how the names of cells begin; all without")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--calls", action="store_true")
    args = parser.parse_args()
    raise_open_files()
    with ClusterRig() as rig:
        rig.fill()
        cells = [name for name in CELLS if not args.cells or name.startswith(tuple(args.cells))]
        if args.instructions:
            instructions(rig, cells)
        if args.calls:
            calls(rig, cells, args.seconds)
        if args.instructions or args.calls:
            return 0
        found = measure(rig, cells, args.rounds, args.seconds)
        tell_connections(rig)
    return judge(found) > 0


if __name__ == "__main__":
    sys.exit(main())
