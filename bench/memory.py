#!/usr/bin/python3
"""weir's memory: a 512 MiB value, 50 clients with 1 MiB values, many commands, idle connections.

Each row is the resident memory of a weir with one worker and shared lanes: before, at the peak, and
3 s afterwards (VmRSS, VmHWM). All replies are checked. The program measures and does not judge: it
exits with 0.
"""

import argparse
import contextlib
import os
import sys
import threading
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
os.environ.setdefault("WEIR", str(REPO / "build/weir"))
sys.path.insert(0, str(REPO / "tests/it"))

from kit.harness import Farm  # noqa: E402
from kit.resp import CHUNK, Conn, dial, encode  # noqa: E402

MIB = 1 << 20
LATER = 3.0
PIECE = bytes(range(256)) * (MIB // 256)


class Memory:
    """The resident memory of a process, in KiB."""

    def __init__(self, pid):
        self.folder = Path(f"/proc/{pid}")

    def field(self, name):
        line = next(line for line in (self.folder / "status").read_text().splitlines() if line.startswith(name))
        return int(line.split()[1])

    def now(self):
        return self.field("VmRSS")

    def peak(self):
        return self.field("VmHWM")

    def forget_peak(self):
        (self.folder / "clear_refs").write_text("5")


def receive(sock, wanted):
    """Reads exactly these bytes, given as pieces."""
    for piece in wanted:
        view, at = memoryview(bytearray(len(piece))), 0
        while at < len(piece):
            n = sock.recv_into(view[at:])
            assert n > 0, "weir closed the connection"
            at += n
        assert view == piece, "other bytes came back"


def pass_value(address, key, pieces):
    """SETs and GETs a value of `pieces` MiB, a piece at a time."""
    size = len(PIECE) * pieces
    with contextlib.closing(dial(address, timeout=60)) as sock:
        sock.sendall(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n" % (len(key), key, size))
        for _ in range(pieces):
            sock.sendall(PIECE)
        sock.sendall(b"\r\n")
        receive(sock, [b"+OK\r\n"])
        sock.sendall(encode("GET", key))
        receive(sock, [b"$%d\r\n" % size, *[PIECE] * pieces, b"\r\n"])


def one_huge_value(weir):
    pass_value(weir.address, b"huge", 512)
    return "512 MiB SET, then GET"


def many_large_values(weir):
    errors = []

    def work(number):
        try:
            for _ in range(5):
                pass_value(weir.address, b"large:%d" % number, 1)
        except Exception as error:  # shown by the main thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    return "50 clients, 1 MiB SET and GET"


def slow_large_values(weir):
    """50 clients GET 1 MiB values. No client reads before all have sent their request."""
    conns = [Conn(weir.address, timeout=60) for _ in range(50)]
    for number, conn in enumerate(conns):
        conn.send(encode("GET", b"large:%d" % number))
    time.sleep(0.5)
    answered = 0
    for conn in conns:
        with contextlib.suppress(Exception):
            answered += conn.read() == PIECE
        conn.close()
    return f"50 clients, 1 MiB GET unread for 0.5 s ({answered} answered)"


def many_commands(weir, request, reply):
    count = 1_000_000
    with contextlib.closing(dial(weir.address, timeout=60)) as sock:
        sock.sendall(request * count)
        took, wanted = 0, len(reply) * count
        while took < wanted:
            data = sock.recv(CHUNK)
            assert data, f"weir closed the connection after {took} of {wanted} bytes"
            start = took % len(reply)
            assert (reply * (len(data) // len(reply) + 2))[start : start + len(data)] == data, "other bytes came back"
            took += len(data)


def million_pings(weir):
    many_commands(weir, encode("PING"), b"+PONG\r\n")
    return "1,000,000 PINGs written, then read"


def million_gets(weir):
    with weir.connect() as conn:
        conn.call("SET", "k", b"v" * 16)
    many_commands(weir, encode("GET", "k"), b"$16\r\n" + b"v" * 16 + b"\r\n")
    return "1,000,000 GETs written, then read"


def idle_connections(weir, memory, count=1000):
    """Each connection has sent one SET and one GET. Returns the row's title, with the bytes per
    connection."""
    before = memory.now()
    conns = [weir.connect() for _ in range(count)]
    for conn in conns:
        conn.ask("SET idle 1", "GET idle")
    held = (memory.now() - before) * 1024 / count
    for conn in conns:
        conn.close()
    return f"{count:,} connections, then closed ({held:.0f} bytes each)"


def main():
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    with contextlib.closing(Farm()) as farm:
        redis = farm.redis()
        print(f"{'KiB':62} {'before':>7} {'peak':>7} {'growth':>7} {'3 s later':>9}")

        def show(work, *settings):
            """Each row has a weir of its own, since memory kept from one row would hide that of
            another."""
            weir = farm.weir(redis, workers=1, lanes="shared")
            pass_value(weir.address, b"warm", 1)  # the first request pays for tables and buffers
            time.sleep(0.2)
            memory = Memory(weir.child.pid)
            memory.forget_peak()
            before = memory.now()
            text = work(weir, memory) if work is idle_connections else work(weir)
            peak = memory.peak()
            time.sleep(LATER)
            print(f"{text:62} {before:7} {peak:7} {peak - before:7} {memory.now():9}", flush=True)
            weir.stop()

        for work in (
            one_huge_value,
            many_large_values,
            slow_large_values,
            million_pings,
            million_gets,
            idle_connections,
        ):
            show(work)


if __name__ == "__main__":
    main()
