"""Listeners behind a proxy that announces its clients by the PROXY protocol. Headers are valid,
broken or late, from trusted and untrusted addresses. haproxy itself is tested too.
"""

import contextlib
import re
import select
import shutil
import socket
import struct
import time

import pytest
from kit.harness import Process, free_port, wait_until
from kit.limits import OPERATOR, TOO_MANY, limit_of, order, plain
from kit.reloading import reload
from kit.resp import Closed, Conn, Error, encode, pipeline
from kit.server import quoted
from test_admin_http import ADMIN, metrics, value

LANES = ["shared", "private"]
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
ANNE, BERT = "192.0.2.7", "198.51.100.9"
HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")


def text(address, port=4711):
    """Returns a header of version 1."""
    family = "TCP6" if ":" in address else "TCP4"
    return f"PROXY {family} {address} {'::1' if ':' in address else '127.0.0.1'} {port} 6380\r\n".encode()


def binary(address, port=4711, extra=b""):
    """Returns a header of version 2; `extra` follows the addresses."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    here = "::1" if ":" in address else "127.0.0.1"
    body = socket.inet_pton(family, address) + socket.inet_pton(family, here) + struct.pack(">HH", port, 6380) + extra
    return block(0x21, 0x21 if ":" in address else 0x11, body)


def block(command, family, body):
    return SIGNATURE + struct.pack(">BBH", command, family, len(body)) + body


NOBODY = {
    "UNKNOWN": b"PROXY UNKNOWN\r\n",
    "UNKNOWN with words": b"PROXY UNKNOWN 192.0.2.7 127.0.0.1 1 2\r\n",
    "LOCAL": block(0x20, 0x00, b""),
    "LOCAL with addresses": block(0x20, 0x11, bytes([192, 0, 2, 7, 127, 0, 0, 1, 0, 1, 0, 2])),
    "UNSPEC": block(0x21, 0x00, b""),
    "UNSPEC with bytes": block(0x21, 0x00, b"*1\r\n$8\r\nFLUSHALL\r\n"),
    "UNIX": block(0x21, 0x31, b"\0" * 216),
}

BAD = {
    "a request": b"*1\r\n$4\r\nPING\r\n",
    "inline": b"PING\r\n",
    "small letters": b"proxy TCP4 192.0.2.7 127.0.0.1 1 2\r\n",
    "no port": b"PROXY TCP4 192.0.2.7 127.0.0.1 1\r\n",
    "a bad port": b"PROXY TCP4 192.0.2.7 127.0.0.1 1 65536\r\n",
    "a bad address": b"PROXY TCP4 192.0.2.07 127.0.0.1 1 2\r\n",
    "another family": b"PROXY TCP6 192.0.2.7 127.0.0.1 1 2\r\n",
    "no CR": b"PROXY TCP4 192.0.2.7 127.0.0.1 1 2\n",
    "too long": b"PROXY UNKNOWN " + b"x" * 100 + b"\r\n",
    "a signature gone wrong": SIGNATURE[:11] + b"\r",
    "version 3": SIGNATURE + b"\x31\x11\x00\x0c" + bytes(12),
    "an unknown command": SIGNATURE + b"\x22\x11\x00\x0c" + bytes(12),
    "an unknown family": SIGNATURE + b"\x21\x41\x00\x0c" + bytes(12),
    "datagrams": SIGNATURE + b"\x21\x12\x00\x0c" + bytes(12),
    "too short for IPv4": SIGNATURE + b"\x21\x11\x00\x0b" + bytes(11),
    "too short for IPv6": SIGNATURE + b"\x21\x21\x00\x23" + bytes(35),
    "too short for a path": SIGNATURE + b"\x21\x31\x00\x10" + bytes(16),
    "longer than anybody's": SIGNATURE + b"\x21\x11\xff\xff" + bytes(12),
}


@pytest.fixture(params=LANES)
def make(request, farm, redis):
    def weir(sections="", listen="127.0.0.1:0 proxy", proxy_protocol_from="127.0.0.0/8", **settings):
        settings["proxy_protocol_from"] = proxy_protocol_from
        return farm.weir(redis, lanes=request.param, listen=listen, sections=sections, **settings)

    return weir


@pytest.fixture(params=LANES)
def behind(request, kept, redis):
    """A weir that the tests share: one listener behind a proxy on this machine."""
    return kept(lanes=request.param, listen="127.0.0.1:0 proxy", proxy_protocol_from="127.0.0.0/8", sections=ADMIN)


def come(weir, header, address=None):
    conn = Conn(address or weir.address)
    conn.send(header)
    return conn


def subject_of(conn):
    return plain(conn.call("LIMIT", "STATUS"))[1]


def closed(weir, reason):
    found = metrics(weir)
    listener = next(dict(labels)["listener"] for name, labels in found if name == "weir_connections")
    return value(found, "weir_connections_closed_total", listener=listener, reason=reason)


# ---- the announced client ----


@pytest.mark.parametrize("header", [text, binary])
def test_the_announced_address_is_the_clients(header, behind):
    for address in (ANNE, "2001:db8::7", "::ffff:192.0.2.9"):
        with come(behind, header(address)) as conn:
            assert subject_of(conn) == "ip:" + address.replace("::ffff:", "")
            assert conn.ask("SET k v", "GET k", "MULTI", "GET k", "EXEC")[-1] == [b"v"]
            assert conn.call("RESET") == "RESET" and subject_of(conn) == "ip:" + address.replace("::ffff:", "")
    with come(behind, binary(ANNE, extra=b"\x03\x00\x04abcd" + b"\x04\x01\x00" + bytes(256))) as conn:
        assert subject_of(conn) == f"ip:{ANNE}"


@pytest.mark.parametrize("header", NOBODY)
def test_who_is_not_announced_keeps_its_own_address(header, behind):
    with come(behind, NOBODY[header]) as conn:
        assert conn.call("SET", "k", "v") == "OK"
        assert subject_of(conn) == "ip:127.0.0.1"


@pytest.mark.parametrize("header", [text(ANNE), binary(ANNE), binary("2001:db8::7", extra=bytes(40)), NOBODY["UNKNOWN"]])
def test_however_it_is_cut(header, behind):
    requests = pipeline("SET k v", "GET k", "LIMIT STATUS") + b"PING\r\n"
    answers = []
    with come(behind, header + requests) as conn:
        answers.append([conn.read() for _ in range(4)])
    with come(behind, b"") as conn:
        for byte in header + requests:
            conn.send(bytes([byte]))
        answers.append([conn.read() for _ in range(4)])
    with come(behind, header[:-1]) as conn:
        conn.send(header[-1:] + requests)
        answers.append([conn.read() for _ in range(4)])
    assert answers[0][:2] == ["OK", b"v"] and answers[0][3] == "PONG"
    assert answers[0] == answers[1] == answers[2]


def test_a_large_request_behind_the_header(behind):
    with come(behind, text(ANNE) + encode("SET", "k", "x" * 1_000_000) + encode("STRLEN", "k")) as conn:
        assert conn.read() == "OK" and conn.read() == 1_000_000


def test_limits_are_those_of_the_announced(make):
    weir = make("[policy here]\nmatch = ip:192.0.2.0/24\nread = 2/d\n", identity="ip/24")
    with come(weir, text(ANNE)) as a, come(weir, binary("192.0.2.200")) as b, come(weir, text(BERT)) as other:
        assert [limit_of(conn.call("GET", "k")) for conn in (a, b, a, b)] == [None, None, "here/read", "here/read"]
        assert subject_of(b) == "ip:192.0.2.0/24"
        assert not any(map(limit_of, other.ask(*["GET k"] * 5)))


def test_failed_logins_are_those_of_the_announced(make, redis, users):
    weir = make("[policy default]\nauth-failures = 1/h\n")
    barred = Error("ERR too many failed logins, try again later")
    with come(weir, text(ANNE)) as conn, come(weir, binary(BERT)) as other:
        assert str(conn.call("AUTH", "alice", "wrong")).startswith("WRONGPASS")
        assert conn.call("AUTH", "alice", "pw") == barred and conn.read_to_end() == b""
        assert other.call("AUTH", "alice", "pw") == "OK"
    with come(weir, binary(ANNE)) as conn:
        assert conn.call("AUTH", "alice", "pw") == barred


def test_connections_are_counted_when_the_header_is_here(make):
    weir = make("[policy default]\nconnects = 2/h\nconnections = 1\n")
    nobodies = [come(weir, text(ANNE)[:-1]) for _ in range(5)]
    with come(weir, text(ANNE)) as first:
        assert first.call("PING") == "PONG"
        with come(weir, binary(ANNE)) as second:
            assert second.call("PING") == TOO_MANY and second.read_to_end() == b""
        with come(weir, text(BERT)) as other:
            assert other.call("PING") == "PONG"
    with come(weir, text("192.0.2.8")) as third:
        assert third.call("PING") == "PONG"
    for conn in nobodies:
        conn.close()


def test_the_operator_sees_the_announced(make):
    weir = make(OPERATOR)
    with come(weir, text(ANNE)) as conn:
        conn.ask(*["GET k"] * 50)
        wait_until(lambda: f"ip:{ANNE}" in str(plain(order(weir, "TOP"))), "it is among the heaviest")
    assert "ip:127.0.0.1" not in str(plain(order(weir, "TOP")))


@pytest.mark.parametrize("header, name", [(text(ANNE), f"{ANNE}:4711"), (binary("2001:db8::7", 99), "[2001:db8::7]:99")])
def test_the_log_names_the_announced(header, name, make):
    weir = make(request_timeout="100ms")
    with come(weir, header + b"*1\r\n") as conn:
        assert conn.read_to_end() == b""
    said = f"client {name} is closed: it did not finish a request"
    wait_until(lambda: said in weir.log(), "the log tells it")


# ---- trusted proxies ----


def test_a_stranger_is_not_listened_to(make):
    weir = make(ADMIN, proxy_protocol_from="192.0.2.1, 2001:db8::/32")
    for _ in range(30):
        with come(weir, text(ANNE) + pipeline("SET stranger 1")) as conn:
            assert conn.read_to_end() == b""
    wait_until(lambda: closed(weir, "proxy") >= 30, "all are counted")
    said = r"client 127\.0\.0\.1:\d+ on 127\.0\.0\.1:0 is closed: its address is not in"
    wait_until(lambda: len(re.findall(said, weir.log())) >= 10, "the log tells it")
    assert len(re.findall(said, weir.log())) < 30, "strangers do not fill the log"


def test_a_bad_header_ends_the_connection(behind, redis):
    weir, before = behind, closed(behind, "proxy")
    for name, header in BAD.items():
        for cut in (len(header), 1):
            with come(weir, header[:-cut]) as conn:
                conn.send(header[-cut:] + pipeline(("SET", name, 1)))
                assert conn.read_to_end() == b"", name
        with come(weir, text(ANNE)) as conn:
            assert conn.call("PING") == "PONG", name
    assert [name for name in BAD if redis.call("EXISTS", name)] == []
    wait_until(lambda: closed(weir, "proxy") >= before + 2 * len(BAD), "all are counted")


def test_a_plain_listener_believes_nobody(make):
    weir = make(listen="127.0.0.1:0, 127.0.0.1:0 proxy")
    plain_address, proxied = weir.addresses
    with come(weir, text(ANNE), plain_address) as conn:
        assert str(conn.read()).startswith(f"ERR unknown command {quoted('PROXY')}")
        assert subject_of(conn) == "ip:127.0.0.1"
    with come(weir, text(ANNE), proxied) as conn:
        assert subject_of(conn) == f"ip:{ANNE}"


def test_over_a_unix_socket(make):
    weir = make(listen="unix:{folder}/socket proxy", proxy_protocol_from="unix")
    with come(weir, text(ANNE)) as conn:
        assert subject_of(conn) == f"ip:{ANNE}"
    with come(weir, NOBODY["LOCAL"]) as conn:
        assert subject_of(conn) == "ip:unix"


def test_whom_to_believe_changes_with_a_reload(make):
    weir = make(proxy_protocol_from="192.0.2.1")
    weir.own_settings = weir.config.read_text().replace("proxy-protocol-from = 192.0.2.1\n", "")
    with come(weir, text(ANNE)) as conn:
        assert conn.read_to_end() == b""
    assert reload(weir, "", proxy_protocol_from="127.0.0.1")

    def is_believed():
        with come(weir, text(ANNE)) as conn, contextlib.suppress(Closed, OSError):
            return conn.call("PING") == "PONG"

    wait_until(is_believed, "each worker knows")
    assert not reload(weir, ""), "a listener asks for it"
    with come(weir, text(ANNE)) as conn:
        assert conn.call("PING") == "PONG"


# ---- slow headers ----


@pytest.mark.parametrize("begun", [b"", b"PROXY TCP4 192.0.2.7", binary(ANNE, extra=bytes(3000))[:-1]])
def test_a_late_header_ends_the_connection(begun, make):
    weir = make(ADMIN, handshake_timeout="200ms")
    began = time.monotonic()
    with come(weir, begun) as conn:
        assert conn.read_to_end() == b"" and time.monotonic() - began >= 0.2
    wait_until(lambda: closed(weir, "handshake") == 1, "it is counted")


def test_dribbling_does_not_help(make):
    weir = make(handshake_timeout="300ms")
    header = binary(ANNE, extra=bytes(3000))
    began = time.monotonic()
    with come(weir, header[:1]) as conn:
        for byte in header[1:]:
            conn.send(bytes([byte]))
            if select.select([conn.sock], [], [], 0.01)[0]:
                break
        assert conn.read_to_end() == b"" and time.monotonic() - began >= 0.3


def test_they_end_with_weir(make):
    weir = make()
    with come(weir, text(ANNE)[:10]) as conn, come(weir, text(ANNE)) as other:
        assert other.call("PING") == "PONG"
        assert reload(weir, "[policy default]\nconnections = 5\n")
        assert other.call("PING") == "PONG"
        weir.stop()
        assert conn.read_to_end() == b""


# ---- haproxy ----


class Haproxy(Process):
    """haproxy in front of weir, with PROXY headers of this version."""

    def __init__(self, weir, option):
        super().__init__("haproxy")
        self.address = ("127.0.0.1", free_port())
        (self.folder / "haproxy.cfg").write_text(
            "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n  timeout check 20s\n"
            f"frontend in\n  bind 127.0.0.1:{self.address[1]}\n  default_backend out\n"
            "backend out\n  option tcp-check\n  tcp-check connect send-proxy\n  tcp-check send PING\\r\\n\n  tcp-check expect string +PONG\n"
            f"  server weir {weir.address[0]}:{weir.address[1]} {option} check inter 200ms fall 100000\n"
        )

    def start(self):
        self.launch([HAPROXY, "-db", "-f", str(self.folder / "haproxy.cfg")])
        wait_until(lambda: self.answers() or not self.is_running(), "haproxy passes clients on", 20)
        return self.is_running()

    def answers(self):
        try:
            with Conn(self.address, 5) as conn:
                return conn.call("PING") == "PONG"
        except Exception:
            return False


@pytest.fixture
def haproxy(farm):
    def start(weir, option):
        for _ in range(10):  # another process may have taken the port meanwhile
            proxy = Haproxy(weir, option)
            farm.servers.append(proxy)
            if proxy.start():
                return proxy
        raise AssertionError(proxy.log())

    return start


@pytest.mark.skipif(not HAPROXY, reason="haproxy is not installed")
@pytest.mark.parametrize("option", ["send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options unique-id,crc32c"])
def test_behind_haproxy_the_clients_address_counts(option, make, haproxy):
    weir = make("[policy here]\nmatch = ip:127.0.0.2\nread = 3/d\n" + ADMIN)
    proxy = haproxy(weir, option)

    def connect(source):
        conn = Conn.__new__(Conn)
        conn.buffer = bytearray()
        conn.sock = socket.create_connection(proxy.address, 15, (source, 0))
        return conn

    with connect("127.0.0.2") as conn, connect("127.0.0.3") as other:
        assert subject_of(conn) == "ip:127.0.0.2" and subject_of(other) == "ip:127.0.0.3"
        assert [limit_of(reply) for reply in conn.ask(*["GET k"] * 4)] == [None, None, None, "here/read"]
        assert not any(map(limit_of, other.ask(*["GET k"] * 4)))
        assert other.call("SET", "k", "x" * 300_000) == "OK" and len(other.call("GET", "k")) == 300_000
    assert closed(weir, "proxy") == 0, "haproxy's own checks are understood too"
