#!/usr/bin/python3
"""How long 100 ordinary clients wait beside difficult neighbours, through weir and on Redis alone.

Each ordinary client sends a small SET or GET 20 times a second, on time, whether or not the last
request was answered. A stall therefore shows in every request that falls into the stall. In each
round the clients are measured quiet and beside each kind of neighbour. Each measurement runs first
through weir (one worker, shared lanes), then directly on the same Redis. All neighbours come from
one other address. For weir the neighbours are one subject, and no ordinary client belongs to that
subject.

How to read the table. All times are in milliseconds, the median over the rounds. "quiet" is p99
without neighbours, "beside" p99 with neighbours, "p50" the median request with neighbours. "ratio"
is p99 beside divided by the p99 quiet just before and after: the median over the rounds and, in
brackets, the least and the greatest. "p99 / Redis'" is p99 beside the neighbours through weir,
divided by that on Redis alone in the same round. The ratio on Redis shows the effect of the
neighbours without a proxy. A script or a 64 MiB value occupies Redis itself, and all processes
share the machine's cores. The goal for the ratio through weir is 2, unless Redis itself is the
cause. With --elsewhere the same neighbours load another weir in front of another Redis, which shows
the effect of the machine alone. The driver is one Python process. The lateness of the driver is in
every figure. Neighbours run at a low priority, as if they were on other machines. "peak" is the
peak memory of weir over all rounds.

On a machine with other work, that work may dominate p99: check that quiet is well below 1 ms, or
use --realtime. With --realtime the ordinary clients have the highest priority, so that their own
lateness is not measured. weir and Redis come next, then the neighbours, then the rest. A round in
which other processes used too much of the machine is measured again, at most as many times as there
are rounds.

The program measures and does not judge: it exits with 0.
"""

import contextlib
import gc
import heapq
import os
import random
import select
import statistics
import sys
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
os.environ.setdefault("WEIR", str(REPO / "build/weir"))
sys.path.insert(0, str(REPO / "tests/it"))

import machine  # noqa: E402
from kit.harness import Farm  # noqa: E402
from kit.resp import CHUNK, Conn, dial, encode  # noqa: E402
from neighbours import DRIVE, HUGE, KINDS, MIB, PIECE, neighbours, processes  # noqa: E402
from rounds import kept, options  # noqa: E402

CLIENTS = 100
PERIOD = 1 / 20
VALUE = b"v" * 64
PATIENCE = 5.0  # longest wait for a reply, in seconds

# ---- the ordinary clients ----


class Ordinary:
    """One client: its requests under way, and the bytes of their replies."""

    def __init__(self, address, number):
        self.address, self.key = address, b"ordinary:%d" % number
        self.random = random.Random(number)
        self.open()

    def open(self):
        self.sock = dial(self.address)
        self.wanted = []  # (time sent, reply), oldest first
        self.buffer = b""

    def send(self, now):
        is_set = self.random.random() < 0.5
        self.wanted.append((now, b"+OK\r\n" if is_set else b"$%d\r\n%s\r\n" % (len(VALUE), VALUE)))
        self.sock.send(encode("SET", self.key, VALUE) if is_set else encode("GET", self.key))

    def receive(self, now):
        """Reads replies. Returns the duration of each request that is answered now."""
        data = self.sock.recv(CHUNK)
        if not data:
            raise ConnectionError
        self.buffer += data
        took = []
        while self.wanted and len(self.buffer) >= len(self.wanted[0][1]):
            sent, reply = self.wanted.pop(0)
            assert self.buffer.startswith(reply), f"{reply} expected, {self.buffer[:80]} came"
            self.buffer = self.buffer[len(reply) :]
            took.append(now - sent)
        return took


def measure(clients, seconds):
    """(seconds of each request, number of lost connections)."""
    start = time.perf_counter()
    end = start + seconds
    due = [(start + client.random.random() * PERIOD, n) for n, client in enumerate(clients)]
    heapq.heapify(due)
    by_fd = {client.sock.fileno(): client for client in clients}
    took, lost = [], 0

    def lose(client):
        nonlocal lost
        lost += 1
        took.extend([PATIENCE] * max(1, len(client.wanted)))
        del by_fd[client.sock.fileno()]
        client.sock.close()
        client.open()
        by_fd[client.sock.fileno()] = client

    while True:
        now = time.perf_counter()
        is_over = now >= end
        if is_over and (now > end + PATIENCE or not any(client.wanted for client in clients)):
            break
        pause = 0.01 if is_over else due[0][0] - now
        readable, _, _ = select.select(list(by_fd), [], [], max(0, pause))
        now = time.perf_counter()
        for fd in readable:
            client = by_fd[fd]
            try:
                took += client.receive(now)
            except ConnectionError:
                lose(client)
        while not is_over and due[0][0] <= now:
            at, n = due[0]
            heapq.heapreplace(due, (at + PERIOD * clients[n].random.uniform(0.5, 1.5), n))
            try:
                clients[n].send(time.perf_counter())
            except ConnectionError:
                lose(clients[n])
    for client in clients:
        took += [PATIENCE] * len(client.wanted)
        client.wanted.clear()
    return took, lost


def ordinary_process(addresses, orders):
    """Measures each endpoint that is ordered, until the order is None."""
    gc.disable()
    clients = {}
    for endpoint, address in addresses.items():
        clients[endpoint] = [Ordinary(address, n) for n in range(CLIENTS)]
        for client in clients[endpoint]:
            with Conn(address) as conn:
                conn.call("SET", client.key, VALUE)
    orders.send("ready")
    while (order := orders.recv()) is not None:
        orders.send(measure(clients[order[0]], order[1]))


# ---- figures ----


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(len(values) * q))] * 1000


def spread(ratios):
    return f"{statistics.median(ratios):.1f} ({min(ratios):.1f}-{max(ratios):.1f})"


class Series:
    """The results of one (endpoint, kind), round by round."""

    def __init__(self):
        self.p50, self.p99, self.quiet, self.ratio, self.lost = [], [], [], [], 0

    def add(self, sample):
        self.p50.append(quantile(sample["took"], 0.5))
        self.p99.append(quantile(sample["took"], 0.99))
        self.quiet.append(quantile(sample["quiet"], 0.99))
        self.ratio.append(self.p99[-1] / self.quiet[-1])
        self.lost += sample["lost"]

    def cells(self):
        median = statistics.median
        return f"{median(self.p50):6.2f} {median(self.quiet):6.2f} {median(self.p99):7.2f}  {spread(self.ratio):19}"


def worst(*samples):
    return {what: max(sample[what] for sample in samples) for what in ("others", "stolen")}


def peak_rss(weir, reset=False):
    """Peak memory in MiB since the last reset."""
    folder = Path(f"/proc/{weir.child.pid}")
    peak = next(line for line in (folder / "status").read_text().splitlines() if line.startswith("VmHWM"))
    if reset:
        (folder / "clear_refs").write_text("5")
    return int(peak.split()[1]) / 1024


def fill(redis):
    redis.call("SET", "big", PIECE)
    redis.call("SET", "huge", PIECE * (HUGE // MIB))


class Bench:
    def __init__(self, farm, args):
        self.args = args
        self.redis = farm.redis("--protected-mode", "no")
        self.weir = farm.weir(self.redis, workers=1, lanes="shared")
        self.servers = [self.redis, self.weir]
        fill(self.redis)
        # endpoint -> (address of the ordinary clients, address of their neighbours)
        self.endpoints = {"weir": (self.weir.address,) * 2, "redis": (self.redis.address,) * 2}
        if args.elsewhere:
            other = farm.redis("--protected-mode", "no")
            fill(other)
            elsewhere = farm.weir(other, workers=1, lanes="shared")
            self.servers += [other, elsewhere]
            self.endpoints["elsewhere"] = (self.weir.address, elsewhere.address)
        if args.realtime:
            for server in self.servers:
                machine.put_first(server.child.pid)
        self.series = {(endpoint, kind): Series() for endpoint in self.endpoints for kind in args.kinds}
        self.peak = {}

        addresses = {endpoint: mine for endpoint, (mine, _) in self.endpoints.items()}
        self.orders, theirs = processes.Pipe()
        self.ordinary = processes.Process(target=ordinary_process, args=(addresses, theirs), daemon=True)
        self.ordinary.start()
        self.orders.recv()
        if args.realtime:
            machine.put_first(self.ordinary.pid, machine.FIRST + 1)

    def measure(self, endpoint, seconds, neighbours=()):
        """The results of the ordinary clients, and how much of the machine other processes used."""
        servers = [server.child.pid for server in self.servers]
        stretch = machine.Stretch([*servers, self.ordinary.pid, *neighbours])
        self.orders.send((endpoint, seconds))
        took, lost = self.orders.recv()
        others, stolen = stretch.disturbance()
        return {"took": took, "lost": lost, "others": others, "stolen": stolen}

    def round(self, number):
        """(endpoint, kind) -> the results beside the neighbours, and the quiet results before and
        after."""
        samples = {}
        for endpoint, (_, theirs) in self.endpoints.items():
            quiet = self.measure(endpoint, self.args.seconds / 2)
            for kind in self.args.kinds:
                peak_rss(self.weir, reset=True)
                with neighbours(kind, theirs, self.args.realtime) as pids:
                    beside = self.measure(endpoint, self.args.seconds, pids)
                if endpoint == "weir":
                    self.peak[kind] = max(self.peak.get(kind, 0), peak_rss(self.weir))
                before, quiet = quiet, self.measure(endpoint, self.args.seconds / 2)
                around = {**beside, "quiet": before["took"] + quiet["took"]}
                samples[endpoint, kind] = {**around, **worst(before, beside, quiet)}
        print(f"round {number + 1} of {self.args.rounds}", file=sys.stderr)
        return samples

    def run(self):
        for samples in kept(self.args.rounds, self.args.realtime, self.round, "neighbours"):
            for which, sample in samples.items():
                self.series[which].add(sample)
        self.orders.send(None)
        self.ordinary.join()

    def beside_redis(self, kind):
        """p99 beside the neighbours, divided by that of Redis alone in the same round."""
        through, alone = (self.series[endpoint, kind].p99 for endpoint in ("weir", "redis"))
        return [a / b for a, b in zip(through, alone)]

    def print(self):
        names = {"weir": "through weir", "redis": "on Redis alone", "elsewhere": "neighbours elsewhere"}
        head = f"{'p50':>6} {'quiet':>6} {'beside':>7}  {'ratio':19}"
        print(f"{'':18}" + "".join(f"| {names[endpoint]:42}" for endpoint in self.endpoints) + "| p99 / Redis'     |  peak")
        print(f"{'ms':18}" + f"| {head} " * len(self.endpoints) + "|" + " " * 18 + "|   MiB")
        for kind in self.args.kinds:
            cells = "".join(f"| {self.series[endpoint, kind].cells()} " for endpoint in self.endpoints)
            print(f"{kind:18}{cells}| {spread(self.beside_redis(kind)):16} | {self.peak[kind]:5.1f}")
        lost = [f"{s.lost} ({kind}, {names[endpoint]})" for (endpoint, kind), s in self.series.items() if s.lost]
        print("ordinary connections lost:", ", ".join(lost) or "none")


def arguments():
    parser = options(__doc__, rounds=5, seconds=0.4)
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(KINDS)}; all without")
    parser.add_argument("--elsewhere", action="store_true", help="also with the neighbours on other servers")
    args = parser.parse_args()
    unknown = [kind for kind in args.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"no such kind: {', '.join(unknown)}")
    args.kinds = args.kinds or list(KINDS)
    args.realtime = machine.is_realtime(args.realtime)
    return args


def main():
    if not DRIVE.exists():
        sys.exit(f"{DRIVE} is missing: make bench-fairness builds it")
    args = arguments()
    machine.end_when_told()
    with contextlib.closing(Farm()) as farm:
        bench = Bench(farm, args)
        bench.run()
        bench.print()


if __name__ == "__main__":
    main()
