"""Difficult neighbours. Each kind is a function that runs until its process is ended. All
neighbours connect from one address.
"""

import contextlib
import multiprocessing
import os
import random
import select
import signal
import socket
import threading
import time
from pathlib import Path

import machine
from kit.resp import CHUNK, Closed, encode

DRIVE = Path(os.environ.get("DRIVE", Path(__file__).resolve().parents[1] / "build/release/drive"))
ADDRESS = "127.0.1.1"  # address of the neighbours
# seconds until values are set and got once, and until all are connected
WARM_UP = {"64 MiB values": 0.7, "1,000 connections": 0.7}
WARM_UP_ELSE = 0.2  # seconds for the neighbours to become difficult
MIB = 1 << 20
HUGE = 64 * MIB
PIECE = b"x" * MIB

processes = multiprocessing.get_context("fork")


def dial(address):
    """A connected socket of a neighbour."""
    sock = socket.socket()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.bind((ADDRESS, 0))
    sock.connect(address)
    return sock


def forever(work, count):
    """Runs `count` threads that repeat work(number), also after their connections are closed."""

    def repeat(number):
        while True:
            try:
                work(number)
            except (OSError, Closed):
                time.sleep(0.05)

    for number in range(count):
        threading.Thread(target=repeat, args=(number,), daemon=True).start()


def drip(sock, seconds):
    """Reads 10 KB a second."""
    for _ in range(round(seconds * 10)):
        sock.recv(1024)
        time.sleep(0.1)


def slow_readers(address):
    """20 connections that GET 1 MiB values, one or eight at once, unread or at 10 KB/s. Each
    reconnects after 0.1 to 2 s."""

    def work(number):
        with contextlib.closing(dial(address)) as sock:
            sock.sendall(encode("GET", "big") * (8 if number % 4 >= 2 else 1))
            seconds = random.uniform(0.1, 2)
            drip(sock, seconds) if number % 2 else time.sleep(seconds)

    forever(work, 20)


def half_requests(address):
    """
    50 connections that stop in the middle of requests of all sizes, and reconnect after a while.
    """
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
    """Two connections that SET and GET 64 MiB."""

    def work(number):
        with contextlib.closing(dial(address)) as sock:
            while True:
                set_huge(sock, b"huge:%d" % number)
                get_huge(sock, b"huge:%d" % number)

    forever(work, 2)


def huge_strangers(address):
    """Consecutive connections, each without a history: each GETs 64 MiB and closes."""

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
    """200 connections that wait in BLPOP, 0.5 to 1.5 seconds each time."""
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
    """Four connections that run scripts of some tens of microseconds, without a pause."""
    script = "for i = 1, 50 do redis.call('INCR', KEYS[1]) end return 1"

    def work(number):
        request = encode("EVAL", script, 1, b"script:%d" % number)
        with contextlib.closing(dial(address)) as sock:
            while True:
                sock.sendall(request)
                take(sock, len(b":1\r\n"))

    forever(work, 4)


def flood(address):
    """One connection that writes 100,000 PINGs at once, reads the replies, and repeats."""
    pings = encode("PING") * 100_000

    def work(_):
        with contextlib.closing(dial(address)) as sock:
            while True:
                reader = threading.Thread(target=take, args=(sock, 7 * 100_000))
                reader.start()
                sock.sendall(pings)
                reader.join()

    forever(work, 1)


def thousand(address):
    """1,000 connections that each send small GETs, one after the other."""
    argv = [DRIVE, "-c", 1000, "-s", 3600, "-b", ADDRESS, f"{address[0]}:{address[1]}", "GET", "none:{k}"]
    os.execv(DRIVE, [str(word) for word in argv])


def assert_let_in(address):
    with contextlib.closing(dial(address)) as sock:
        sock.sendall(encode("PING"))
        take(sock, len(b"+PONG\r\n"))


KINDS = {
    "slow readers": [slow_readers],
    "half requests": [half_requests],
    "64 MiB values": [huge_values],
    "64 MiB, anew": [huge_strangers],
    "200 blocked": [blocked],
    "scripts": [scripts],
    "flood": [flood],
    "1,000 connections": [thousand],
    "all at once": [slow_readers, half_requests, huge_values, blocked, scripts, flood],
}


def neighbour_process(kind, address, is_realtime):
    machine.end_with_parent()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    if is_realtime:
        machine.put_first(0, machine.SECOND)
    kind(address)
    threading.Event().wait()


@contextlib.contextmanager
def neighbours(name, address, is_realtime):
    """Starts the neighbours. Yields their process ids once they are difficult."""
    them = [(kind, address, is_realtime) for kind in KINDS[name]]
    running = [processes.Process(target=neighbour_process, args=args, daemon=True) for args in them]
    for process in running:
        process.start()
    try:
        time.sleep(WARM_UP.get(name, WARM_UP_ELSE))
        assert_let_in(address)
        yield [process.pid for process in running]
        assert all(process.is_alive() for process in running), f"{name} have ended"
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.join()
        time.sleep(0.05)
