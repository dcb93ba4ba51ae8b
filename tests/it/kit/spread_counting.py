"""Clients that count at keys of many slots, in pipelines over several nodes, and check each reply:
kit/counting.py for clusters.

Only one client increments a key, so each reply is known. An increment that ran twice, or out of
order, or a late value shows in the next reply for the key. MGET asks for all keys of a client at
once.
"""

import random
import time

from kit.counting import Counter, Counters
from kit.harness import wait_until
from kit.resp import encode

KEYS = 6  # keys of each client
DEPTH = 4


def parse(data, at=0):
    """Returns (value, end) of the reply that begins at `at`, or None while the reply is incomplete.
    Errors and statuses are str.
    """
    end = data.find(b"\r\n", at)
    if end < 0:
        return None
    kind, rest, at = data[at : at + 1], data[at + 1 : end], end + 2
    if kind in b"+-":
        return (kind + rest).decode(), at
    if kind == b":":
        return int(rest), at
    n = int(rest)
    if n < 0:
        return b"", at
    if kind == b"$":
        return (data[at : at + n], at + n + 2) if len(data) >= at + n + 2 else None
    assert kind == b"*", data[:80]
    found = []
    for _ in range(n):
        item = parse(data, at)
        if item is None:
            return None
        found.append(item[0])
        at = item[1]
    return found, at


class SpreadCounter(Counter):
    def __init__(self, crowd, n):
        super().__init__(crowd, n)
        self.random = random.Random(n)
        self.keys = crowd.keys_of(n)
        self.values = dict.fromkeys(self.keys, 0)  # the last acknowledged values
        self.unsure = dict.fromkeys(self.keys, 0)
        self.sent_at = 0.0

    def go(self):
        if self.sock is None:
            self.open()
        if self.sock is None:
            return
        request = b""
        for _ in range(DEPTH):
            self.n_sent += 1
            word = f"{self.n}:{self.n_sent}"
            for key in self.random.sample(self.keys, min(3, len(self.keys))):
                request += encode("INCR", key) + encode("GET", key)
                self.waited += [("incr", key), ("get", key)]
            request += encode("ECHO", word)
            self.waited += [("echo", word.encode())]
        if self.crowd.splits and self.random.random() < 0.3:
            request += encode("MGET", *self.keys)
            self.waited += [("mget",)]
        self.sent_at = time.monotonic()
        try:
            self.sock.sendall(request)
        except OSError:
            self.lose()

    def lose(self):
        for kind, *rest in self.waited:
            if kind == "incr":
                self.unsure[rest[0]] += 1
        super().lose()
        self.n_unsure = 0
        self.buffer = b""

    def reply(self):
        found = parse(self.buffer)
        if found is None:
            return None
        self.buffer = self.buffer[found[1] :]
        return found[0]

    def on_readable(self):
        had = len(self.waited)
        super().on_readable()
        if had and not self.waited and self.sock:
            self.crowd.times.append((time.monotonic(), time.monotonic() - self.sent_at))

    def judge(self, kind, *rest, reply):
        if isinstance(reply, str):
            self.crowd.errors.append((time.monotonic(), self.n, kind, *rest, reply))
        elif kind == "echo":
            if reply != rest[0]:
                self.crowd.wrong.append((self.n, rest[0], reply))
        elif kind == "mget":
            for key, value in zip(self.keys, reply):
                self.check(kind, key, int(value or 0), 0)
        else:
            self.check(kind, rest[0], int(reply or 0), int(kind == "incr"))

    def check(self, kind, key, value, more):
        expected = self.values[key] + more
        if not expected <= value <= expected + self.unsure[key]:
            self.crowd.wrong.append((self.n, kind, key, f"{expected} and {self.unsure[key]} at most", value))
        self.unsure[key] -= min(self.unsure[key], max(0, value - expected))
        self.values[key] = value
        if kind == "incr":
            self.acks.append(time.monotonic())


class SpreadCounters(Counters):
    """`keys_of(n)` returns the keys of the n-th client; `splits`: with MGET over all keys of the
    client.
    """

    def __init__(self, address, n=50, keys_of=None, splits=True):
        self.keys_of = keys_of or (lambda n: [f"c{n}:{i}" for i in range(KEYS)])
        self.splits = splits
        self.times = []  # (when, seconds) of each pipeline
        super().__init__(address, 0)
        self.clients = [SpreadCounter(self, i) for i in range(n)]

    def all_keys(self):
        return [key for client in self.clients for key in client.keys]

    def wait_sent_anew(self, rounds=2):
        """Waits until each client has begun this many pipelines: then all earlier requests are
        answered.
        """
        for _ in range(rounds):
            since = time.monotonic()
            wait_until(lambda: all(client.sent_at > since for client in self.clients), "all clients send anew", 90)

    def p99(self, since, until):
        """Returns the 99th percentile of the pipelines that ended between these moments, in
        seconds.
        """
        found = sorted(took for at, took in self.times if since <= at < until)
        return found[int(0.99 * (len(found) - 1))] if found else None

    def assert_counted(self, call):
        """Checks after the end that each key has the number of its client's last reply; `call` asks
        for one key.
        """
        self.assert_sound()
        for client in self.clients:
            for key in client.keys:
                value, told = int(call("GET", key) or 0), client.values[key]
                assert told <= value <= told + client.unsure[key] + (DEPTH if client.waited else 0), (key, told, value)
