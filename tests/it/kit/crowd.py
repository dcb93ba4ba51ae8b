"""A crowd of clients with tokens: every reply must carry the token of its request.

Each client sends pipelines of ECHO, SET and GET of its own keys. Values of 0 B to 1 MiB are made
from a token that no other request has. Now and then a client closes in the middle of a request or
of a reply, and connects again.
"""

import asyncio
import random
import socket
import struct

from kit.resp import TIMEOUT, encode

LONGEST = 1 << 18  # the longest line that is read at once
FILLER = random.Random(1).randbytes(1 << 20)
UNAVAILABLE = b"-UPSTREAM unavailable"
RST = struct.pack("ii", 1, 0)  # SO_LINGER: close at once, with a RST


def value(token, size):
    """`size` bytes that begin with the token, as far as it fits."""
    return (token + FILLER[: max(0, size - len(token))])[:size]


class Mismatch(AssertionError):
    pass


class Crowd:
    """State that the clients share: what the clients found."""

    def __init__(self, address, seed, upstream_may_go=False):
        self.address = address
        self.random = random.Random(seed)
        self.upstream_may_go = upstream_may_go
        self.verified = self.unavailable = self.closed = self.left = self.bytes = 0
        self.tokens = 0
        self.over = False

    def token(self):
        self.tokens += 1
        return b"<%d>" % self.tokens

    def size(self):
        roll = self.random.random()
        if roll < 0.05:
            return 0
        if roll < 0.95:
            return self.random.randrange(200)
        if roll < 0.996:
            return self.random.randrange(1 << 15)
        return self.random.randrange(1 << 20) + 1

    async def run(self, clients, work):
        """Runs the clients until `work`, a coroutine, is done. Then each client must still get its
        outstanding replies.
        """
        tasks = [asyncio.create_task(Client(self, number).run()) for number in range(clients)]
        main = asyncio.create_task(work)
        try:
            done, _ = await asyncio.wait([main, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            self.over = True
            done, waiting = await asyncio.wait(tasks, timeout=TIMEOUT)
            for task in done:
                task.result()
            assert not waiting, f"{len(waiting)} clients wait for replies that do not come"
        finally:
            for task in [main, *tasks]:
                task.cancel()
            await asyncio.gather(main, *tasks, return_exceptions=True)


class Client:
    def __init__(self, crowd, number):
        self.crowd, self.number = crowd, number
        self.random = random.Random(crowd.random.random())
        self.stored = {}

    async def run(self):
        while not self.crowd.over:
            try:
                reader, writer = await asyncio.open_connection(*self.crowd.address, limit=LONGEST)
            except OSError as error:
                raise AssertionError("weir takes no connections") from error
            sock = writer.get_extra_info("socket")
            try:
                while not self.crowd.over and await self.pipeline(reader, writer):
                    pass
                if self.random.random() < 0.3:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)
            except (asyncio.IncompleteReadError, ConnectionError):
                self.crowd.closed += 1
                if not self.crowd.upstream_may_go:
                    raise AssertionError("weir closed a connection") from None
                await asyncio.sleep(0.02)  # a client's back-off
            finally:
                writer.transport.abort() if self.random.random() < 0.3 else writer.close()
            # requests in flight may or may not have been stored
            self.stored.clear()
            self.number += 1000

    async def pipeline(self, reader, writer):
        """Sends one pipeline; false when the client closes."""
        requests, wanted = [], []
        for _ in range(self.random.choice((1, 1, 2, 5, 20))):
            request, want = self.request()
            requests.append(request)
            wanted.append(want)
        data = b"".join(requests)
        leaves = self.random.random()
        if leaves < 0.04:
            writer.write(data[: self.random.randrange(len(data))])
            self.crowd.left += 1
            return False
        writer.write(data)
        if leaves < 0.08:
            for want in wanted[: self.random.randrange(len(wanted) + 1)]:
                await self.verify(reader, want)
            self.crowd.left += 1
            return False
        await asyncio.gather(writer.drain(), self.verify_all(reader, wanted))
        return True

    def request(self):
        """Returns (bytes, the expected reply)."""
        crowd = self.crowd
        kind = self.random.random()
        if kind < 0.4:
            data = value(crowd.token(), crowd.size())
            return encode("ECHO", data), data
        key = b"key:%d:%d" % (self.number, self.random.randrange(4))
        if kind < 0.7 or key not in self.stored:
            self.stored[key] = value(crowd.token(), crowd.size())
            return encode("SET", key, self.stored[key]), "OK"
        return encode("GET", key), self.stored[key]

    async def verify_all(self, reader, wanted):
        for want in wanted:
            await self.verify(reader, want)

    async def verify(self, reader, want):
        crowd = self.crowd
        line = (await reader.readuntil(b"\r\n"))[:-2]
        if line == UNAVAILABLE and crowd.upstream_may_go:
            crowd.unavailable += 1
            self.stored.clear()
            await asyncio.sleep(0.02)
            return
        if want == "OK":
            if line != b"+OK":
                raise Mismatch(f"a SET got {line[:80]}")
        elif line == b"$-1" and crowd.upstream_may_go:
            pass  # a restarted Redis has lost the value
        else:
            if line != b"$%d" % len(want):
                raise Mismatch(f"{want[:40]} ({len(want)} bytes) got {line[:80]}")
            data = await reader.readexactly(len(want) + 2)
            if data[:-2] != want or data[-2:] != b"\r\n":
                raise Mismatch(f"{want[:40]} ({len(want)} bytes) got {data[:80]}")
        crowd.verified += 1
        crowd.bytes += len(want)
