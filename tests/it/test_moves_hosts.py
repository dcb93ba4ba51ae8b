"""Hosts that vanish without a word, and clients that live and read nothing."""

import os
import time

import pytest
from kit.far_host import FarHost, is_possible
from kit.harness import wait_until
from kit.resp import encode

HURRY = 60  # a second stands for a minute; keepalive's three numbers are at least a second each
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


def sockets(weir):
    return len([fd for fd in os.listdir(f"/proc/{weir.child.pid}/fd") if _is_socket(weir, fd)])


def _is_socket(weir, fd):
    try:
        return os.readlink(f"/proc/{weir.child.pid}/fd/{fd}").startswith("socket:")
    except OSError:
        return False


def arrive(host, weir):
    """Connect; returns how many sockets weir has without the client."""
    with weir.connect() as conn:
        conn.call("PING")
    before = wait_until(lambda: sockets(weir), "weir runs")
    host.do("connect", *weir.address)
    host.do("send", encode("PING").hex())
    host.do("expect", b"+PONG\r\n".hex())
    return before


def wait_for_close(weir, before, what):
    wait_until(lambda: sockets(weir) <= before, what, 20)


def test_a_host_that_vanishes_with_replies_under_way(host, weir):
    before = arrive(host, weir)
    host.do("send", encode("SUBSCRIBE", "news").hex())
    host.do("expect", b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n".hex())
    host.vanish()
    with weir.connect() as conn:
        conn.call("PUBLISH", "news", "x")
    wait_for_close(weir, before, "the client is closed")


@pytest.mark.moves
def test_a_host_that_vanishes_while_idle(host, weir):
    before = arrive(host, weir)
    host.vanish()
    wait_for_close(weir, before, "the client is closed")


def read_nothing(host, weir):
    with weir.connect() as conn:
        conn.call("SET", "k", b"x" * VALUE)
    host.do("send", (encode("GET", "k") * 64).hex())


@pytest.mark.moves
def test_a_host_that_vanishes_behind_a_shut_window(host, weir):
    before = arrive(host, weir)
    read_nothing(host, weir)
    time.sleep(1)  # its window shuts, and is probed
    host.vanish()
    wait_for_close(weir, before, "the client is closed")


@pytest.mark.moves
def test_a_living_client_that_reads_nothing_for_five_minutes(host, weir):
    before = arrive(host, weir)
    read_nothing(host, weir)
    time.sleep(5 * 60 / HURRY + 1)
    assert sockets(weir) > before
    host.do("take", 64 * (VALUE + len(f"${VALUE}\r\n\r\n")))
