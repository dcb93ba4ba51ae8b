#!/usr/bin/python3
"""Looks for replies to the wrong client, for as long as wanted, with a random fault every second.

A crowd of clients with tokens (tests/it/kit/crowd.py), and some clients with transactions, scripts,
blocking pops and pub/sub, run all the time. Meanwhile Redis is killed, stopped, paused, made to
sleep and told to drop its clients, and other clients misbehave. No reply may contain another
client's token, weir must not crash, and no sanitizer may report. After a short warm-up and at the
end all clients close. After enough quiet time for weir to close idle lanes, weir must have as many
descriptors as in the beginning. The memory of a plain build may have grown by 10 % and 2 MiB since
the warm-up.

    WEIR=path      the weir to test; build/asan/weir without
"""

import argparse
import asyncio
import contextlib
import os
import random
import signal
import socket
import sys
import time
from collections import Counter
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
os.environ.setdefault("ASAN_OPTIONS", "detect_stack_use_after_return=1")
os.environ.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
sys.path.insert(0, str(REPO / "tests/it"))

from kit.crowd import RST, UNAVAILABLE, Crowd, Mismatch  # noqa: E402
from kit.harness import TOLD_AT_ONCE, Farm, wait_until  # noqa: E402
from kit.resp import CHUNK, Conn, Error, dial, encode  # noqa: E402

CLIENTS = 200
ODDITIES = 20
QUIET = 15.0  # weir closes idle lanes after 10 s
GONE_WITHIN = 60.0
MIB = 1 << 20
A_LITTLE = 2048  # KiB


# ---- clients that need private lanes ----


class Oddity:
    """A client with transactions, scripts, blocking pops and subscriptions, with a token in each
    reply. The client reconnects now and then."""

    SCRIPT = "return ARGV[1]"

    def __init__(self, crowd):
        self.crowd = crowd
        self.random = random.Random(crowd.random.random())
        self.ways = [self.transact, self.script, self.pop, self.subscribe, self.select, self.half_transact]

    async def run(self):
        while not self.crowd.over:
            self.reader, self.writer = await asyncio.open_connection(*self.crowd.address, limit=CHUNK)
            try:
                while not self.crowd.over and self.random.random() > 0.02:
                    await self.random.choice(self.ways)(self.crowd.token())
                    await asyncio.sleep(0.01)
            except Unavailable:
                self.crowd.unavailable += 1
                await asyncio.sleep(0.02)
            except (asyncio.IncompleteReadError, ConnectionError):
                self.crowd.closed += 1
                await asyncio.sleep(0.02)
            finally:
                self.writer.transport.abort()

    async def transact(self, token):
        key = b"transact:%d" % self.random.randrange(1 << 30)
        self.send(("WATCH", key), ("MULTI",), ("SET", key, token), ("GET", key), ("ECHO", token), ("EXEC",))
        await self.expect(b"+OK\r\n" * 2 + b"+QUEUED\r\n" * 3 + b"*3\r\n+OK\r\n" + bulk(token) * 2)

    async def half_transact(self, token):
        self.send(("MULTI",), ("SET", "nobody", token), ("DISCARD",), ("ECHO", token))
        await self.expect(b"+OK\r\n+QUEUED\r\n+OK\r\n" + bulk(token))

    async def script(self, token):
        self.send(("EVAL", self.SCRIPT, 0, token))
        await self.expect(bulk(token))

    async def pop(self, token):
        """Blocks until its time-out, or gets the element that it has pushed itself."""
        if self.random.random() < 0.5:
            self.send(("BLPOP", "nobody's list", 0.05), ("ECHO", token))
            nothing = await self.line()
            if nothing != b"*-1":
                raise Mismatch(f"an empty BLPOP got {nothing}")
            await self.expect(bulk(token))
        else:
            self.send(("RPUSH", token, token), ("BLPOP", token, 1))
            await self.expect(b":1\r\n*2\r\n" + bulk(token) * 2)

    async def subscribe(self, token):
        count = b"*3\r\n$%d\r\n%s\r\n" + bulk(token) + b":%d\r\n"
        self.send(("SUBSCRIBE", token), ("UNSUBSCRIBE", token), ("ECHO", token))
        await self.expect(count % (9, b"subscribe", 1) + count % (11, b"unsubscribe", 0) + bulk(token))

    async def select(self, token):
        self.send(("SELECT", 1), ("ECHO", token), ("SELECT", 0), ("ECHO", token))
        await self.expect((b"+OK\r\n" + bulk(token)) * 2)

    def send(self, *commands):
        self.writer.write(b"".join(encode(*command) for command in commands))

    async def line(self):
        line = (await self.reader.readuntil(b"\r\n"))[:-2]
        if line == UNAVAILABLE or line.startswith(b"-EXECABORT"):
            raise Unavailable
        return line

    async def expect(self, wanted):
        for want in wanted.split(b"\r\n")[:-1]:
            line = await self.line()
            if line != want:
                raise Mismatch(f"{want} expected, {line[:80]} came")
        self.crowd.verified += 1


class Unavailable(Exception):
    """weir reports an outage: commands without a reply may or may not have run."""


def bulk(data):
    return b"$%d\r\n%s\r\n" % (len(data), data)


# ---- faults ----


class Faults:
    """Each method is a fault, which runs in a thread beside the crowd."""

    def __init__(self, redis, weir, seed):
        self.redis, self.weir = redis, weir
        self.random = random.Random(seed)
        self.count = Counter()
        self.names = []  # faults since the last line of the report
        self.held = []  # (until, socket) of clients that misbehave for a while
        self.kinds = [
            self.kill_redis, self.stop_redis, self.kill_clients, self.storm, self.flush_scripts, self.slow_readers,
            self.half_requests, self.pause, self.sleep,
        ]  # fmt: skip
        self.fill()

    def fill(self):
        self.redis.call("SET", "soak:big", b"x" * MIB)

    def one(self):
        kind = self.random.choice(self.kinds)
        self.count[kind.__name__] += 1
        self.names.append(kind.__name__)
        kind()
        self.release(time.monotonic())

    def release(self, now):
        for until, sock in self.held:
            if until <= now:
                if self.random.random() < 0.5:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)
                sock.close()
        self.held = [(until, sock) for until, sock in self.held if until > now]

    def hold(self, sock):
        self.held.append((time.monotonic() + self.random.uniform(0.5, 4), sock))

    def kill_redis(self):
        self.redis.kill()
        time.sleep(self.random.uniform(0, 0.2))
        self.redis.start()
        self.fill()

    def stop_redis(self):
        self.redis.signal(signal.SIGSTOP)
        time.sleep(self.random.uniform(0.2, 1))
        self.redis.signal(signal.SIGCONT)

    def kill_clients(self):
        self.redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def storm(self):
        """200 clients connect, send a request or half of one, and close at once."""
        for _ in range(200):
            with contextlib.suppress(OSError):
                sock = dial(self.weir.address)
                data = self.random.choice(
                    [
                        encode("GET", "soak:big") * 3,
                        encode("MULTI") + encode("ECHO", "storm"),
                        encode("BLPOP", "none", 5),
                        encode("ECHO", b"storm" * 40_000),
                        encode("SUBSCRIBE", "storm"),
                    ]
                )
                sock.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    sock.send(data[: self.random.randrange(len(data) + 1)])
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)
                sock.close()

    def flush_scripts(self):
        self.redis.call("SCRIPT", "FLUSH")

    def slow_readers(self):
        for _ in range(5):
            with contextlib.suppress(OSError):
                sock = dial(self.weir.address)
                sock.sendall(encode("GET", "soak:big") * self.random.choice((1, 1, 8)))
                self.hold(sock)

    def half_requests(self):
        for _ in range(10):
            with contextlib.suppress(OSError):
                sock = dial(self.weir.address)
                data = encode("ECHO", "half") + encode("SET", "half", b"x" * self.random.choice((5, 5000, 500_000)))
                sock.settimeout(0.5)
                sock.sendall(data[: self.random.randrange(len(data))])
                self.hold(sock)

    def pause(self):
        self.redis.call("CLIENT", "PAUSE", 300)

    def sleep(self):
        self.redis.call("DEBUG", "SLEEP", 0.3)


# ---- the run ----


class Soak:
    def __init__(self, farm, args):
        self.args = args
        self.redis = farm.redis()
        self.weir = farm.weir(self.redis, workers=args.workers, lanes=args.lanes, **TOLD_AT_ONCE)
        self.proc = Path(f"/proc/{self.weir.child.pid}")
        self.is_plain = "libasan" not in (self.proc / "maps").read_text()
        self.faults = Faults(self.redis, self.weir, args.seed)
        self.totals = Counter()

    def descriptors(self):
        return len(list((self.proc / "fd").iterdir()))

    def rss(self):
        return int((self.proc / "status").read_text().partition("VmRSS:")[2].split()[0])

    def alive(self):
        assert self.weir.is_running(), "weir died\n" + self.weir.log()[-20_000:]
        assert not self.weir.complaint(), self.weir.log()[-20_000:]

    def phase(self, seconds, seed):
        """Runs the crowd with faults for so long. Then all clients close, and there is a quiet
        time."""
        crowd = Crowd(self.weir.address, seed, upstream_may_go=True)
        asyncio.run(crowd.run(CLIENTS, self.trouble(crowd, seconds)))
        for field in ("verified", "closed", "unavailable", "left", "bytes"):
            self.totals[field] += getattr(crowd, field)
        self.faults.release(float("inf"))
        wait_until(self.weir.serves, "weir finds Redis again", 5)
        time.sleep(QUIET)
        self.alive()

    async def trouble(self, crowd, seconds):
        oddities = [asyncio.create_task(Oddity(crowd).run()) for _ in range(ODDITIES)]
        begin = time.monotonic()
        said = verified = 0
        try:
            while (passed := time.monotonic() - begin) < seconds:
                await asyncio.to_thread(self.faults.one)
                await asyncio.sleep(self.random_pause(begin))
                self.alive()
                for task in oddities:
                    if task.done():
                        task.result()
                if passed >= said + 30:
                    said = passed
                    print(
                        f"{passed:5.0f} s: {crowd.verified} replies verified (+{crowd.verified - verified}), "
                        f"{crowd.closed} closed, {crowd.unavailable} told unavailable, "
                        f"{self.descriptors()} descriptors, {self.rss()} KiB; {' '.join(self.faults.names)}",
                        flush=True,
                    )
                    self.faults.names.clear()
                    assert crowd.verified > verified, "nothing is answered any more"
                    verified = crowd.verified
            crowd.over = True
            done, waiting = await asyncio.wait(oddities, timeout=15)
            for task in done:
                task.result()
            assert not waiting, f"{len(waiting)} with lanes of their own wait for replies that do not come"
        finally:
            for task in oddities:
                task.cancel()

    def random_pause(self, begin):
        """Time until the next fault: one a second, however long the last fault took."""
        return 1 - (time.monotonic() - begin) % 1

    def use_all(self):
        """Makes every worker open the connections that it then keeps: a spare descriptor, and the
        prober's lane. The lane is used when a client with a blocking call closes."""
        for _ in range(20):
            with self.weir.connect() as conn:
                conn.call("ECHO", "hello")
                conn.send(encode("BLPOP", "nobody's list", 5))
        wait_until(self.weir.serves, "weir serves")
        time.sleep(QUIET)

    def run(self):
        self.use_all()
        start = self.descriptors()
        print(f"start: {start} descriptors, {self.rss()} KiB, {'plain' if self.is_plain else 'ASan'} build", flush=True)
        self.phase(self.args.warm_up, self.args.seed)
        warm = self.rss()
        print(f"after the warm-up: {self.descriptors()} descriptors, {warm} KiB", flush=True)
        self.phase(self.args.seconds, self.args.seed + 1)
        print(f"after all left: {self.descriptors()} descriptors, {self.rss()} KiB", flush=True)
        try:
            wait_until(lambda: self.descriptors() <= start, "its descriptors are back", GONE_WITHIN)
        except AssertionError:
            print("what Redis knows of weir:\n" + self.redis.call("CLIENT", "LIST").decode())
            raise
        end = self.rss()
        if self.is_plain:
            assert end <= warm * 1.1 + A_LITTLE, f"memory grew from {warm} to {end} KiB"
        print("faults:", ", ".join(f"{name} {n}" for name, n in sorted(self.faults.count.items())))
        print("clients:", ", ".join(f"{name} {n}" for name, n in self.totals.items()))
        print(f"0 mismatches; descriptors {start} -> {self.descriptors()}; memory {warm} -> {end} KiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", type=float, nargs="?", default=600)
    parser.add_argument("--lanes", choices=["shared", "private"], default="shared")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--warm-up", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    print(f"seed {args.seed}, lanes {args.lanes}, {args.workers} workers, {args.seconds:.0f} s", flush=True)
    with contextlib.closing(Farm()) as farm:
        soak = Soak(farm, args)
        try:
            soak.run()
        except BaseException:
            print("faults:", dict(soak.faults.count), file=sys.stderr)
            print("the end of weir's log:\n" + soak.weir.log()[-5000:], file=sys.stderr)
            raise
        finally:
            with contextlib.suppress(ProcessLookupError):
                soak.redis.signal(signal.SIGCONT)


if __name__ == "__main__":
    main()
