#!/usr/bin/python3
"""How long 100 ordinary clients wait beside difficult neighbours, through weir and on Redis alone.

The ordinary clients each send a small SET or GET 20 times a second, on time whether or not the last one was
answered, so that a stall shows in every request that falls into it. In each round they are measured quiet and beside
each kind of neighbour in turn, first through weir (one worker, shared lanes), then straight to the same Redis.

How to read the table. All is in milliseconds, the median over the rounds. "quiet" is p99 without neighbours, "beside"
p99 with them, "p50" the median request beside them. "ratio" is p99 beside divided by p99 quiet just before and after it,
the median over the rounds and, in brackets, the least and the greatest. The ratio on Redis is what Redis and the
machine do to neighbours with nobody between: a script or the arrival of a 64 MiB value occupies Redis itself, and all
these processes share the machine's cores. The ratio through weir is to be 2 at most where it is not Redis' own. With
--elsewhere the same neighbours trouble another weir in front of another Redis: what remains then is the machine's doing
alone. The driver is one Python process, and its own unpunctuality is in every figure. Neighbours run at a low priority,
as if they were on other machines. "peak" is the most memory that weir had in any round.

On a machine that does other work too, p99 is easily that work's: see that quiet is well below 1 ms, or use --first.

This measures and does not judge: it exits with 0.
"""

import argparse
import contextlib
import gc
import heapq
import multiprocessing
import os
import random
import select
import socket
import statistics
import sys
import threading
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
os.environ.setdefault("WEIR", str(REPO / "build/weir"))
sys.path.insert(0, str(REPO / "tests/it"))

from kit.harness import Farm  # noqa: E402
import kit.resp  # noqa: E402
from kit.resp import CHUNK, Closed, Conn, encode  # noqa: E402

CLIENTS = 100
PERIOD = 1 / 20
VALUE = b"v" * 64
WARM_UP = {"64 MiB values": 0.7}  # until they have set and got once
WARM_UP_ELSE = 0.2  # seconds for the neighbours to become difficult
PATIENCE = 5.0  # the longest that a request is waited for
MIB = 1 << 20
HUGE = 64 * MIB
PIECE = b"x" * MIB

processes = multiprocessing.get_context("fork")
source = None  # the address that this process' connections come from


def dial(address, timeout=kit.resp.TIMEOUT):
    if source is None or isinstance(address, str):
        return kit.resp.dial(address, timeout)
    sock = socket.create_connection(address, timeout, (source, 0))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


# ---- the ordinary ones ----


class Ordinary:
    """One client: requests under way, and the bytes that must come back."""

    def __init__(self, address, number):
        self.address, self.key = address, b"ordinary:%d" % number
        self.random = random.Random(number)
        self.open()

    def open(self):
        self.sock = dial(self.address)
        self.wanted = []  # (sent at, reply), the oldest first
        self.buffer = b""

    def send(self, now):
        is_set = self.random.random() < 0.5
        self.wanted.append((now, b"+OK\r\n" if is_set else b"$%d\r\n%s\r\n" % (len(VALUE), VALUE)))
        self.sock.send(encode("SET", self.key, VALUE) if is_set else encode("GET", self.key))

    def receive(self, now):
        """How long each request took that is answered now."""
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
    """(seconds that each request took, how many connections were lost)."""
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
    """Measures whatever endpoint it is told, until it is told None."""
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


# ---- their neighbours: each kind is a function that goes on until its process is ended ----


def forever(work, count):
    """Run `count` threads that repeat work(number), whatever is closed under them."""

    def repeat(number):
        while True:
            try:
                work(number)
            except (OSError, Closed):
                time.sleep(0.05)

    for number in range(count):
        threading.Thread(target=repeat, args=(number,), daemon=True).start()


def drip(sock, seconds):
    """Read 10 KB a second."""
    for _ in range(round(seconds * 10)):
        sock.recv(1024)
        time.sleep(0.1)


def slow_readers(address):
    """20 that ask for 1 MiB values: each alone or eight at once, unread or at 10 KB/s; every 0.1 s to 2 s anew."""

    def work(number):
        with contextlib.closing(dial(address)) as sock:
            sock.sendall(encode("GET", "big") * (8 if number % 4 >= 2 else 1))
            seconds = random.uniform(0.1, 2)
            drip(sock, seconds) if number % 2 else time.sleep(seconds)

    forever(work, 20)


def crowd(address):
    """1,000 connections of one tenant, each with 16 GETs under way."""
    poll = select.epoll()
    gets = encode("GET", "crowd") * 16
    by_fd = {}
    for _ in range(1000):
        sock = dial(address)
        by_fd[sock.fileno()] = [sock, 0]
        poll.register(sock, select.EPOLLIN)
        sock.sendall(gets)

    def work(_):
        for fd, _ in poll.poll():
            one = by_fd[fd]
            one[1] += len(one[0].recv(CHUNK))
            if one[1] >= 16 * len(b"$-1\r\n"):
                one[1] = 0
                one[0].sendall(gets)

    forever(work, 1)


def half_requests(address):
    """50 that stop in the middle of requests of all sizes, and come again after a while."""
    whole = [encode("SET", "half", b"x" * size) for size in (10, 1000, 60_000, 100_000, MIB)]

    def work(number):
        with contextlib.closing(dial(address)) as sock:
            data = whole[number % len(whole)]
            sock.sendall(encode("GET", "none") + data[: random.randrange(1, len(data))])
            time.sleep(random.uniform(0.1, 1))

    forever(work, 50)


def set_huge(sock, key):
    sock.sendall(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n" % (len(key), key, HUGE))
    for _ in range(HUGE // MIB):
        sock.sendall(PIECE)
    sock.sendall(b"\r\n")
    take(sock, len(b"+OK\r\n"))


def get_huge(sock, key):
    sock.sendall(encode("GET", key))
    take(sock, len(b"$%d\r\n" % HUGE) + HUGE + 2)


def huge_values(address):
    """Two that set and get 64 MiB."""

    def work(number):
        with contextlib.closing(dial(address)) as sock:
            while True:
                set_huge(sock, b"huge:%d" % number)
                get_huge(sock, b"huge:%d" % number)

    forever(work, 2)


def huge_strangers(address):
    """One after the other, each of whom nothing is known: it gets 64 MiB and is gone."""

    def work(_):
        with contextlib.closing(dial(address)) as sock:
            get_huge(sock, b"huge")

    forever(work, 1)


def take(sock, n):
    while n > 0:
        data = sock.recv(min(n, MIB))
        if not data:
            raise Closed
        n -= len(data)


def blocked(address):
    """200 that wait in BLPOP, half a second to a second and a half each time."""
    socks = [dial(address) for _ in range(200)]
    poll = select.epoll()
    for number, sock in enumerate(socks):
        poll.register(sock, select.EPOLLIN)
        sock.sendall(encode("BLPOP", b"none:%d" % number, round(random.uniform(0.5, 1.5), 2)))
    by_fd = {sock.fileno(): sock for sock in socks}

    def work(_):
        for fd, _ in poll.poll():
            by_fd[fd].recv(CHUNK)
            by_fd[fd].sendall(encode("BLPOP", "none", round(random.uniform(0.5, 1.5), 2)))

    forever(work, 1)


def scripts(address):
    """Four that run scripts of some tens of microseconds, without a pause."""
    script = "for i = 1, 50 do redis.call('INCR', KEYS[1]) end return 1"

    def work(number):
        with contextlib.closing(dial(address)) as sock:
            request = encode("EVAL", script, 1, b"script:%d" % number)
            while True:
                sock.sendall(request)
                sock.recv(CHUNK)

    forever(work, 4)


def flood(address):
    """One that writes 100,000 PINGs at once, reads the replies, and begins again."""
    pings = encode("PING") * 100_000

    def work(_):
        with contextlib.closing(dial(address)) as sock:
            while True:
                reader = threading.Thread(target=take, args=(sock, 7 * 100_000))
                reader.start()
                sock.sendall(pings)
                reader.join()

    forever(work, 1)


KINDS = {
    "slow readers": [slow_readers],
    "1,000 of one": [crowd],
    "half requests": [half_requests],
    "64 MiB values": [huge_values],
    "64 MiB, anew": [huge_strangers],
    "200 blocked": [blocked],
    "scripts": [scripts],
    "flood": [flood],
    "all at once": [slow_readers, half_requests, huge_values, blocked, scripts, flood],
}


def neighbour_process(kind, address, comes_from):
    global source
    source = comes_from
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    kind(address)
    threading.Event().wait()


@contextlib.contextmanager
def neighbours(name, address, comes_from):
    kinds = KINDS[name]
    running = [
        processes.Process(target=neighbour_process, args=(kind, address, comes_from), daemon=True) for kind in kinds
    ]
    for process in running:
        process.start()
    try:
        time.sleep(WARM_UP.get(name, WARM_UP_ELSE))
        yield
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.join()
        time.sleep(0.05)


# ---- figures ----


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(len(values) * q))] * 1000


class Series:
    """What one (endpoint, kind) showed, round by round."""

    def __init__(self):
        self.p50, self.p99, self.quiet, self.ratio, self.lost = [], [], [], [], 0

    def add(self, beside, quiet):
        took, lost = beside
        self.p50.append(quantile(took, 0.5))
        self.p99.append(quantile(took, 0.99))
        self.quiet.append(quantile([one for took, _ in quiet for one in took], 0.99))
        self.ratio.append(self.p99[-1] / self.quiet[-1])
        self.lost += lost

    def cells(self):
        median = statistics.median
        ratio = f"{median(self.ratio):.1f} ({min(self.ratio):.1f}-{max(self.ratio):.1f})"
        return f"{median(self.p50):6.2f} {median(self.quiet):6.2f} {median(self.p99):7.2f}  {ratio:19}"


def peak_rss(weir, reset=False):
    """MiB since the last reset."""
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
        self.redis = farm.redis()
        self.weir = farm.weir(self.redis, workers=1, lanes="shared")
        fill(self.redis)
        # endpoint -> (where the ordinary clients are, where their neighbours are)
        self.endpoints = {"weir": (self.weir.address,) * 2, "redis": (self.redis.address,) * 2}
        if args.elsewhere:
            other = farm.redis()
            fill(other)
            elsewhere = farm.weir(other, workers=1, lanes="shared").address
            self.endpoints["elsewhere"] = (self.weir.address, elsewhere)
        self.series = {(endpoint, kind): Series() for endpoint in self.endpoints for kind in args.kinds}
        self.peak = {}

        addresses = {endpoint: mine for endpoint, (mine, _) in self.endpoints.items()}
        self.orders, theirs = processes.Pipe()
        self.ordinary = processes.Process(target=ordinary_process, args=(addresses, theirs), daemon=True)
        self.ordinary.start()
        self.orders.recv()

    def measure(self, endpoint, seconds):
        self.orders.send((endpoint, seconds))
        return self.orders.recv()

    def round(self):
        for endpoint, (_, theirs) in self.endpoints.items():
            quiet = [self.measure(endpoint, self.args.seconds / 2)]
            for kind in self.args.kinds:
                peak_rss(self.weir, reset=True)
                with neighbours(kind, theirs, self.args.source):
                    beside = self.measure(endpoint, self.args.seconds)
                if endpoint == "weir":
                    self.peak[kind] = max(self.peak.get(kind, 0), peak_rss(self.weir))
                quiet.append(self.measure(endpoint, self.args.seconds / 2))
                self.series[endpoint, kind].add(beside, quiet[-2:])

    def print(self):
        names = {"weir": "through weir", "redis": "on Redis alone", "elsewhere": "neighbours elsewhere"}
        head = f"{'p50':>6} {'quiet':>6} {'beside':>7}  {'ratio':19}"
        print(f"{'':14}" + "".join(f"| {names[endpoint]:42}" for endpoint in self.endpoints) + "|  peak")
        print(f"{'ms':14}" + f"| {head} " * len(self.endpoints) + "|   MiB")
        for kind in self.args.kinds:
            cells = "".join(f"| {self.series[endpoint, kind].cells()} " for endpoint in self.endpoints)
            print(f"{kind:14}{cells}| {self.peak[kind]:5.1f}")
        lost = [f"{s.lost} ({kind}, {names[endpoint]})" for (endpoint, kind), s in self.series.items() if s.lost]
        print("ordinary connections lost:", ", ".join(lost) or "none")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(KINDS)}; all without")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4, help="of each measurement")
    parser.add_argument("--elsewhere", action="store_true", help="also with the neighbours on other servers")
    parser.add_argument("--source", default="127.0.0.2", help="where neighbours come from; 127.0.0.1: as the others do")
    parser.add_argument("--first", action="store_true", help="before the machine's other work: needs root")
    args = parser.parse_args()
    unknown = [kind for kind in args.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"no such kind: {', '.join(unknown)}")
    args.kinds = args.kinds or list(KINDS)
    if args.first:
        os.setpriority(os.PRIO_PROCESS, 0, -10)

    with contextlib.closing(Farm()) as farm:
        bench = Bench(farm, args)
        for number in range(args.rounds):
            bench.round()
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
        bench.orders.send(None)
        bench.ordinary.join()
        bench.print()


if __name__ == "__main__":
    main()
