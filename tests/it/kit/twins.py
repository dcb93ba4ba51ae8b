"""Plays one sequence of steps on a real redis-server and on the model of tests/sim.

A step is ("open", n), ("send", n, bytes) or ("close", n), for connection n. A step ("later", us,
state) advances the model's clock, and waits until the real server has reached the state. After each
step both servers finish their work. Then the test compares what every connection has received. The
real server's connections are unix sockets, where written bytes are readable at once. Two replies to
a bystander's requests show that the real server has finished an iteration of its event loop.
"""

import os
import re
import select
import socket
import subprocess
import time
from contextlib import closing

from kit.harness import REPO, Redis, wait_until
from kit.server import _own_version, is_valkey

MODEL = os.environ.get("SIM_REDIS", REPO / "build/asan/sim_redis")
BYSTANDER = ["bystander", "on", ">secret", "~*", "&*", "+@all"]
QUESTION = b"*2\r\n$7\r\nSLOWLOG\r\n$3\r\nLEN\r\n"  # invisible to MONITOR
READ_SIZE = 1 << 20
SOCKET_BYTES = 1 << 16

HEALTHY = ["CONFIG SET maxmemory 0", "CONFIG SET min-replicas-to-write 0", "CONFIG SET replica-serve-stale-data yes"]

FREE = rb"(laddr|fd|age|idle|qbuf|qbuf-free|argv-mem|multi-mem|rbs|rbp|obl|oll|omem|tot-mem|events|tot-net-in|tot-net-out|tot-cmds|io-thread)=[^ \n]*"
MASKS = [
    (re.compile(rb"id=\d+ [^\n]*user=bystander[^\n]*\n"), b""),  # the bystander's own line
    (re.compile(FREE), rb"\1="),
    (re.compile(rb"flags=u"), b"flags="),  # unblocked, but not yet run
    (re.compile(rb"[$=]\d+\r\n(txt:)?(?=id=)"), rb"LEN \1"),  # in CLIENT LIST lines
    (re.compile(rb"\+\d+\.\d+ \["), b"+TIME ["),  # MONITOR
    (re.compile(rb"\$10\r\n\d{10}\r\n\$\d\r\n\d{1,6}\r\n"), b"TIME"),
    (re.compile(rb":\d{10,13}\r\n"), b":MOMENT\r\n"),
    # remaining ms
    (re.compile(rb":(\d+)\d{3}\r\n"), lambda m: b":%d000\r\n" % round(int(m[0][1:-2]) / 1000)),
]


def masked(data):
    for pattern, replacement in MASKS:
        data = pattern.sub(replacement, data)
    return data


def version():
    major, minor, patch = _own_version()
    return major * 10000 + minor * 100 + patch


class Real:
    """A real server, and a bystander connection that shows when the server has finished an
    iteration.
    """

    def __init__(self):
        self.server = Redis("--user", *BYSTANDER, unix=True)
        self.server.start()
        self.bystander = self.server.connect()
        self.bystander.call("AUTH", "bystander", "secret")
        self.first_id = self.bystander.call("CLIENT", "ID") + 1
        self.peer = f"{self.server.unix}:0"
        self.conns = {}

    def close(self):
        self.server.forget()

    def forget(self):
        """Resets the server to a fresh state, except for the ids of connections."""
        for conn in self.conns.values():
            conn.close()
        self.conns = {}
        self.come_round()
        self.bystander.call("CLIENT", "UNPAUSE")
        self.bystander.call("SCRIPT", "KILL")
        wait_until(self.is_idle, "no script runs")
        self.bystander.ask("REPLICAOF NO ONE", *HEALTHY)
        self.bystander.ask("CLIENT UNPAUSE", "FLUSHALL", "SCRIPT FLUSH", "CONFIG RESETSTAT")
        self.bystander.call("CONFIG", "SET", "requirepass", "")
        self.bystander.ask("ACL SETUSER default on nopass ~* &* +@all", "ACL DELUSER ann bob")
        self.come_round()
        # a server that becomes a replica counts its master as a client too
        with closing(self.server.connect()) as conn:
            self.first_id = conn.call("CLIENT", "ID") + 1

    def come_round(self, n_bytes=0):
        """Asks the bystander twice, and once more for each piece that the server reads at once. A
        last request frees what was closed.
        """
        sock = self.bystander.sock
        for _ in range(3 + n_bytes // 4096):
            sock.sendall(QUESTION)
            answer = b""
            while not answer.endswith(b"\r\n"):
                answer += sock.recv(100)

    def is_unblocked(self):
        return b"blocked_clients:0\r\n" in self.bystander.call("INFO", "clients")

    def is_round(self):
        """Waits 5 ms of the server's own clock; always true."""
        before = self.bystander.call("TIME")
        while self.bystander.call("TIME")[0] == before[0] and int(self.bystander.call("TIME")[1]) < int(before[1]) + 5000:
            pass
        return True

    def is_expired(self):
        return b"keys=" not in self.bystander.call("INFO", "keyspace")

    def is_busy(self):
        return str(self.bystander.call("GET", "none")).startswith("BUSY")

    def is_idle(self):
        return not self.is_busy()

    def do(self, step):
        kind, n, *rest = step
        if kind == "open":
            conn = socket.socket(socket.AF_UNIX)
            conn.connect(self.server.unix)
            conn.setblocking(False)
            self.conns[n] = conn
            self.first_id += 1
        elif n in self.conns and kind == "send":
            try:
                self.conns[n].sendall(rest[0])
            except OSError:
                pass
        elif kind == "later":
            wait_until(getattr(self, f"is_{rest[0]}"), rest[0])
            rest = []
        elif n in self.conns:
            self.conns.pop(n).close()
        self.come_round(len(rest[0]) if rest else 0)
        got = self.got()
        # the sockets may hold more bytes
        while any(len(data) > SOCKET_BYTES for data, _ in got.values()):
            self.come_round()
            more = self.got()
            if not more:
                break
            for conn, (data, is_closed) in more.items():
                got[conn] = got.get(conn, (b"",))[0] + data, is_closed
        return got

    def got(self):
        """Returns for each connection the received bytes, and whether the server closed after them.
        """
        got = {}
        for n, conn in list(self.conns.items()):
            data, is_closed = b"", False
            while not is_closed:
                try:
                    piece = conn.recv(READ_SIZE)
                except BlockingIOError:
                    break
                except ConnectionError:
                    piece = b""
                is_closed = not piece
                data += piece
            if is_closed:
                self.conns.pop(n).close()
            if data or is_closed:
                got[n] = data, is_closed
        return got

    def play(self, steps):
        self.forget()
        first_id, began_us = self.first_id, time.time_ns() // 1000
        return first_id, began_us, [self.do(step) for step in with_ids(steps, first_id)]


def id_of(n):
    """Returns a word of fixed length for the id of connection n, which is only known during the
    play.
    """
    return f"<id:{n:04}>"


def with_ids(steps, first_id):
    opened = [n for kind, n, *_ in steps if kind == "open"]

    def number(match):
        n = int(match[1])
        return b"%d" % (first_id + opened.index(n) if n in opened else 999999)

    def resolved(data):
        data = re.sub(rb"\$9\r\n<id:(\d{4})>", lambda m: b"$%d\r\n%s" % (len(number(m)), number(m)), data)
        return re.sub(rb"<id:(\d{4})>", number, data)

    return [(kind, n, resolved(rest[0])) if kind == "send" else (kind, n, *rest) for kind, n, *rest in steps]


def line_of(step, peer):
    kind, n, *rest = step
    lines = {"open": f"open {n} {peer}", "close": f"close {n}", "later": f"clock {n}"}
    return lines[kind] if kind in lines else f"send {n} {rest[0].hex()}"


def play_model(plays, peer):
    """Returns the model's results for each of (first id, unix time in us, steps)."""
    lines = []
    for first_id, began_us, steps in plays:
        lines.append(f"new {version()} {int(is_valkey())} 1 {began_us} {first_id} user {' '.join(BYSTANDER)}")
        for step in with_ids(steps, first_id):
            lines += [line_of(step, peer), "show"]
    done = subprocess.run([MODEL], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    shown = iter(done.stdout.splitlines())
    return [[_read_shown(shown) for _ in steps] for *_, steps in plays]


def _read_shown(lines):
    got = {}
    for line in lines:
        if line == ".":
            return got
        n, what = line.split(" ")
        data = got.get(int(n), (b"", False))[0]
        got[int(n)] = (data, True) if what == "closed" else (bytes.fromhex(what), False)
    raise AssertionError("the model has ended")


def _comparable(got, steps, i, is_ordered):
    def lines(n, data):
        return data if is_ordered(steps, i, n) else sorted(data.split(b"\r\n"))

    return {n: (lines(n, masked(data)), is_closed) for n, (data, is_closed) in got.items()}


def first_difference(steps, real, model, is_ordered):
    """Returns the number of the step after which the results differ; None if they do not differ."""
    for i, (a, b) in enumerate(zip(real, model)):
        if a != b and _comparable(a, steps, i, is_ordered) != _comparable(b, steps, i, is_ordered):
            return i
    return None


def differs(real, steps, is_ordered):
    first_id, began_us, got = real.play(steps)
    (shown,) = play_model([(first_id, began_us, steps)], real.peer)
    at = first_difference(steps, got, shown, is_ordered)
    return None if at is None else (at, got[at], shown[at])


def shrink(real, steps, is_ordered):
    """Returns fewer steps that show the same difference or another difference."""
    found = differs(real, steps, is_ordered)
    while found:
        steps = steps[: found[0] + 1]
        for i in reversed(range(len(steps) - 1)):
            fewer = steps[:i] + steps[i + 1 :]
            if differs(real, fewer, is_ordered):
                steps = fewer
        again = differs(real, steps, is_ordered)
        if again is None or again[0] == len(steps) - 1:
            return steps, again or found
        found = again
    return steps, None


def describe(steps, found):
    lines = [f"  {n}: {' '.join([kind, *map(repr, rest)])}" for kind, n, *rest in steps]
    if found is None:
        return "\n".join([*lines, "it does not show again"])
    return "\n".join([*lines, f"Redis: {found[1]}", f"model: {found[2]}"])
