"""Clients that count while their servers fail over. Each client increments a number of its own, in
pipelines, and checks each reply.

A number that grows by more than its client has asked for was incremented twice. A reply to another
request shows at once. A failover may end a connection with requests in flight. A failover may also
set a number back by the increments that the replica lacked.
"""

import bisect
import selectors
import socket
import threading
import time
from contextlib import closing

from kit.harness import wait_until
from kit.resp import dial, encode

RESTS = 0.05  # seconds between two pipelines
DEPTH = 4  # requests in a pipeline


class Counter:
    """One client: its number, and what happened to the client."""

    def __init__(self, crowd, n):
        self.crowd, self.n = crowd, n
        self.key = f"counter:{n}"
        self.value = 0  # the last acknowledged value
        self.n_unsure = 0  # increments that may have run but were never answered
        self.n_sent = 0
        self.sock = None
        self.waited = []  # expected replies: ("incr",), ("get",) or ("echo", word)
        self.buffer = b""
        self.next_at = 0.0
        self.acks = []  # times of acknowledged increments

    # ---- sending ----

    def open(self):
        try:
            self.sock = dial(self.crowd.address)
        except OSError:
            self.next_at = time.monotonic() + 0.02
            return
        self.sock.setblocking(False)
        self.buffer = b""
        self.crowd.selector.register(self.sock, selectors.EVENT_READ, self)

    def go(self):
        """Sends the next pipeline."""
        if self.sock is None:
            self.open()
        if self.sock is None:
            return
        request = b""
        for _ in range(DEPTH):
            self.n_sent += 1
            word = f"{self.n}:{self.n_sent}"
            request += encode("INCR", self.key) + encode("GET", self.key) + encode("ECHO", word)
            self.waited += [("incr",), ("get",), ("echo", word.encode())]
        try:
            self.sock.sendall(request)
        except OSError:
            self.lose()

    def lose(self):
        """Notes that the connection has ended."""
        kinds = [kind for kind, *_ in self.waited]
        self.crowd.closed.append((time.monotonic(), self.n, len(kinds)))
        self.n_unsure += kinds.count("incr")
        self.waited = []
        self.drop()
        self.next_at = time.monotonic() + 0.01

    def drop(self):
        if self.sock:
            self.crowd.selector.unregister(self.sock)
            self.sock.close()
            self.sock = None

    # ---- replies ----

    def on_readable(self):
        try:
            data = self.sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.lose()
            return
        self.buffer += data
        while (reply := self.reply()) is not None:
            if not self.waited:
                self.crowd.wrong.append((self.n, "nothing was asked", reply))
                return
            self.judge(*self.waited.pop(0), reply=reply)
        if not self.waited:
            self.next_at = time.monotonic() + RESTS

    def reply(self):
        """Returns the next reply: bytes of a bulk, an int, or the line of an error as str; None
        while the reply is incomplete.
        """
        line, found, rest = self.buffer.partition(b"\r\n")
        if not found:
            return None
        if line[:1] == b"$" and line != b"$-1":
            size = int(line[1:])
            if len(rest) < size + 2:
                return None
            self.buffer = rest[size + 2 :]
            return rest[:size]
        self.buffer = rest
        return int(line[1:]) if line[:1] == b":" else b"" if line == b"$-1" else line.decode()

    def judge(self, kind, *word, reply):
        if isinstance(reply, str):
            self.crowd.errors.append((time.monotonic(), self.n, kind, reply))
        elif kind == "echo":
            if reply != word[0]:
                self.crowd.wrong.append((self.n, word[0], reply))
        else:
            self.count(kind, int(reply or 0))

    def count(self, kind, value):
        """Checks a number: it grows only by what this client has asked for."""
        expected = self.value + (kind == "incr")
        if value > expected + self.n_unsure:
            self.crowd.wrong.append((self.n, f"{kind}: {expected} and {self.n_unsure} at most", value))
        elif value > expected:
            self.n_unsure -= value - expected
        elif value < expected:
            self.crowd.lost.append((time.monotonic(), self.n, expected - value))
        self.value = value
        if kind == "incr":
            self.acks.append(time.monotonic())


class Counters:
    """A thread that runs all counters, from `with` to its end."""

    def __init__(self, address, n=50):
        self.address = address
        self.selector = selectors.DefaultSelector()
        self.errors, self.closed, self.wrong, self.lost = [], [], [], []
        self.clients = [Counter(self, i) for i in range(n)]
        self.is_over = False
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        self.wait_served(time.monotonic())
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()

    def _run(self):
        with closing(self.selector):
            while not self.is_over:
                now = time.monotonic()
                for client in self.clients:
                    if not client.waited and client.next_at <= now:
                        client.go()
                for key, _ in self.selector.select(0.005):
                    if key.data.sock is key.fileobj:
                        key.data.on_readable()
            for client in self.clients:
                client.drop()

    def served_by(self, since):
        """Returns when the last client had its first number after `since`; None while a client has
        none.
        """
        served = [(client.acks, bisect.bisect_right(client.acks, since)) for client in self.clients]
        return max(acks[i] for acks, i in served) if all(i < len(acks) for acks, i in served) else None

    def wait_served(self, since, seconds=90):
        """Waits until each client has had a number after `since`; returns when that was."""
        return wait_until(lambda: self.served_by(since), "all clients are served", seconds)

    def assert_sound(self):
        """Checks that no reply reached another request and no increment ran twice."""
        assert not self.wrong, self.wrong[:5]

    def assert_undisturbed(self):
        """As assert_sound; also no client has seen an error or a closed connection."""
        self.assert_sound()
        assert not self.errors and not self.closed, (self.errors[:3], len(self.errors), self.closed[:3], len(self.closed))
