"""Hosts that vanish without a word, and clients that are up and read nothing."""

import socket
import time

import pytest
from kit.far_host import FarHost, is_possible
from kit.harness import wait_until
from kit.resp import encode

HURRY = 60  # a second stands for a minute; the three keepalive times are at least a second each
VALUE = 1 << 20
pytestmark = pytest.mark.skipif(not is_possible(), reason="needs root and network namespaces")


@pytest.fixture
def host():
    host = FarHost()
    yield host
    host.close()


@pytest.fixture
def weir(farm, redis, host):
    return farm.weir(redis, workers=1, listen=f"{host.address}:0", env={"WEIR_HURRY": str(HURRY)}, output_limit="1gb")


def is_connected(host, weir):
    """True if weir's side of the connection from the far host exists: see proc(5), tcp."""
    far = socket.inet_aton(host.far_address)[::-1].hex().upper()
    with open(f"/proc/{weir.child.pid}/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return any(int(row[1][9:], 16) == weir.address[1] and row[2][:8] == far and row[3] == "01" for row in rows)


def arrive(host, weir):
    host.do("connect", *weir.address)
    host.do("send", encode("PING").hex())
    host.do("expect", b"+PONG\r\n".hex())
    assert is_connected(host, weir)


def wait_for_close(host, weir):
    wait_until(lambda: not is_connected(host, weir), "the client is closed", 20)


def test_a_host_that_vanishes_with_replies_under_way(host, weir):
    arrive(host, weir)
    host.do("send", encode("SUBSCRIBE", "news").hex())
    host.do("expect", b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n".hex())
    host.vanish()
    with weir.connect() as conn:
        conn.call("PUBLISH", "news", "x")
    wait_for_close(host, weir)


@pytest.mark.moves
def test_a_host_that_vanishes_while_idle(host, weir):
    arrive(host, weir)
    host.vanish()
    wait_for_close(host, weir)


def read_nothing(host, weir):
    with weir.connect() as conn:
        conn.call("SET", "k", b"x" * VALUE)
    host.do("send", (encode("GET", "k") * 64).hex())


@pytest.mark.moves
def test_a_host_that_vanishes_behind_a_shut_window(host, weir):
    arrive(host, weir)
    read_nothing(host, weir)
    time.sleep(1)  # the host's TCP window closes, and the kernel probes the window
    host.vanish()
    wait_for_close(host, weir)


@pytest.mark.moves
def test_a_living_client_that_reads_nothing_for_five_minutes(host, weir):
    arrive(host, weir)
    read_nothing(host, weir)
    time.sleep(5 * 60 / HURRY + 1)
    assert is_connected(host, weir)
    host.do("take", 64 * (VALUE + len(f"${VALUE}\r\n\r\n")))
