"""A client's address is the address that accept() returned, also if the client resets its
connection before weir's worker sees it.
"""

import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
from pathlib import Path

import pytest
from kit.admin import ADMIN
from kit.harness import wait_until
from kit.limits import OPERATOR, TOO_MANY, limit_of
from kit.resp import Conn, dial, encode
from test_admin_http import metrics
from test_proxy_protocol import binary, text

NAMELESS = Path(__file__).parent / "kit" / "nameless.c"
RESETS = 40
INCR = encode("INCR", "k")
LOOPBACK = {"IPv4": ("127.0.0.1:0", "ip:127.0.0.0/8"), "IPv6": ("[::1]:0", "ip:::1")}


@pytest.fixture(params=[1, 2], ids=["1 worker", "2 workers"])
def limited(request, farm, redis):
    """With shared lanes: a request is sent before weir learns that its client has closed."""
    return lambda sections, **settings: farm.weir(redis, sections=sections, workers=request.param, **settings)


def reset(sock):
    """Closes with a RST instead of a FIN."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


@contextlib.contextmanager
def stopped(weir):
    """weir is stopped meanwhile, and accepts nothing."""
    weir.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        weir.signal(signal.SIGCONT)


def total(weir, name):
    return sum(n for (metric, _), n in metrics(weir).items() if metric == name)


def closed(weir):
    """Returns how many connections the listeners have accepted and closed, for any reason."""
    return total(weir, "weir_connections_closed_total")


def send_and_reset(weir, request, address=None, n=RESETS):
    """Opens n connections that send a request and a RST before weir accepts them. Returns when weir
    is done with the connections.
    """
    before = closed(weir)
    with stopped(weir):
        for _ in range(n):
            sock = dial(address or weir.address)
            sock.sendall(request)
            reset(sock)
    wait_until(lambda: closed(weir) >= before + n, "weir is done with all that were reset", 30)


def count(redis):
    """Returns how many INCR Redis has run."""
    return int(redis.call("GET", "k") or 0)


@pytest.mark.parametrize("family", LOOPBACK)
def test_a_reset_connection_is_bound_by_the_policy_of_its_address(family, limited, redis):
    listen, match = LOOPBACK[family]
    weir = limited(f"[policy here]\nmatch = {match}\nall = 5/h\n" + ADMIN, listen=listen)
    with weir.connect() as conn:
        assert conn.call("GET", "k") is None, "a lane is up, so a request is sent before weir learns of the reset"
        send_and_reset(weir, INCR)
        refused = [limit_of(conn.call("INCR", "k")) for _ in range(5)]
        assert refused[-1] == "here/all"
        assert count(redis) <= 4, "the GET, each INCR of a reset connection and each INCR here are charged to one address"


def test_what_is_denied_to_an_address_is_denied_to_its_reset_connections(limited, redis):
    weir = limited("[policy here]\nmatch = ip:127.0.0.0/8\n@string = deny\n" + ADMIN)
    send_and_reset(weir, INCR)
    assert count(redis) == 0


def test_reset_connections_are_charged_to_connects(limited, redis):
    weir = limited("[policy here]\nmatch = ip:127.0.0.0/8\nconnects = 5/h\n" + ADMIN)
    send_and_reset(weir, INCR)
    assert count(redis) <= 5
    with weir.connect() as conn:
        assert conn.call("GET", "k") == TOO_MANY


def test_reset_connections_spend_nothing_of_a_unix_socket(limited, redis):
    weir = limited("[policy default]\nall = 5/h\n" + ADMIN, listen="127.0.0.1:0, unix:{folder}/weir.sock")
    send_and_reset(weir, INCR)
    with Conn(str(weir.folder / "weir.sock")) as conn:
        assert [limit_of(conn.call("GET", "k")) for _ in range(6)] == [None] * 5 + ["default/all"]
    assert count(redis) <= 5


@pytest.mark.parametrize("header", [text, binary])
def test_a_reset_connection_is_no_balancer_of_a_unix_socket(header, limited, redis):
    weir = limited(ADMIN, listen="127.0.0.1:0 proxy", proxy_protocol_from="unix")
    send_and_reset(weir, header("192.0.2.7") + INCR)
    assert count(redis) == 0


def test_behind_a_balancer_a_reset_connection_is_bound_by_the_announced_address(limited, redis):
    sections = "[policy anne]\nmatch = ip:192.0.2.7\n@string = deny\n" + ADMIN
    weir = limited(sections, listen="127.0.0.1:0 proxy", proxy_protocol_from="127.0.0.1")
    with weir.connect() as conn:
        conn.send(binary("192.0.2.8") + encode("GET", "k"))
        assert conn.read() is None, "the connection to Redis is there"
        send_and_reset(weir, binary("192.0.2.7") + INCR)
        assert count(redis) == 0
        send_and_reset(weir, binary("192.0.2.8") + INCR)
        assert count(redis) > 0


def test_the_log_names_the_address_of_a_reset_connection(farm, redis):
    weir = farm.weir(redis, workers=1, listen="127.0.0.1:0 proxy", proxy_protocol_from="127.0.0.1", sections=ADMIN)
    send_and_reset(weir, b"no header\r\n", n=1)
    weir.wait_for_log("client 127.0.0.1:")


@pytest.fixture
def nameless(farm, redis, tmp_path):
    """weir on a system where accept() returns no peer address for TCP."""
    library = tmp_path / "nameless.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, NAMELESS, "-ldl"], check=True)
    options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    env = {"LD_PRELOAD": str(library), "ASAN_OPTIONS": options}
    return farm.weir(redis, env=env, listen="127.0.0.1:0, unix:{folder}/weir.sock", sections=OPERATOR)


def test_over_tcp_a_connection_without_an_address_is_closed_unserved(nameless):
    with nameless.connect() as conn:
        conn.send(encode("PING"))
        assert conn.read_to_end() == b""
    with Conn(nameless.addresses[1]) as conn:
        assert conn.call("PING") == "PONG"
    nameless.wait_for_log("is closed: the system does not return its peer address")
    with Conn(str(nameless.folder / "operator.sock")) as conn:
        # connected, accepted, turned away, closed
        columns = r"^127\.0\.0\.1:0[ \t]+0[ \t]+1[ \t]+1[ \t]+0\b"
        wait_until(lambda: re.search(columns, conn.call("INFO", "clients").decode(), re.M), "it is counted")
