"""How TLS connections of clients end. A FIN without close_notify, as many libraries' close() sends
it, is a half-close, as over TCP. A cut record and an incomplete request are dropped.
"""

import os
import signal
import socket
import ssl
import struct

import pytest
from kit.harness import rounds, wait_until
from kit.limits import OPERATOR, limit_of, operator
from kit.resp import Conn, dial, encode, pipeline
from kit.tls import Authority, TlsConn, shaken, tls_settings, trusting

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
KINDS = ["TCP", *VERSIONS]
EVAL = ["EVAL", "return redis.call('INCR', KEYS[1])", 1, "n"]
REQUESTS = {
    "INCR": ([["INCR", "n"]] * 100, list(range(1, 101))),
    "EVAL": ([EVAL] * 100, list(range(1, 101))),
    "MULTI": (["MULTI", "INCR n", "EXEC"] * 100, [x for i in range(1, 101) for x in ("OK", "QUEUED", [i])]),
    "delayed": (["INCRBY slow 1"] * 20, list(range(1, 21))),
}
SLOW = "[policy slow]\nmatch = key:slow\ncmd.incrby = 100/s burst 1 over delay 1m\n"


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def pair(ca):
    return ca.issue("weir")


def both(pair, **more):
    """Settings of a weir that listens for TCP and for TLS, in this order."""
    return tls_settings(pair, **{"workers": 1, **more, "listen": "127.0.0.1:0, tls:127.0.0.1:0"})


@pytest.fixture(scope="module")
def ends_weir(shared_farm, shared_redis, pair):
    return shared_farm.weir(shared_redis, sections=SLOW, **both(pair))


def context_of(kind, ca):
    context = trusting(ca)
    context.minimum_version = context.maximum_version = VERSIONS[kind]
    return context


def connect(weir, kind, ca):
    if kind == "TCP":
        return Conn(weir.addresses[0])
    return TlsConn(weir.addresses[1], context_of(kind, ca))


def send_fin(conn):
    """Half-closes the socket without close_notify; replies can still be read."""
    with socket.socket(fileno=os.dup(conn.sock.fileno())) as raw:
        raw.shutdown(socket.SHUT_WR)


class Records:
    """A TLS client with records in memory, so the test can cut them anywhere."""

    def __init__(self, address, context):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self.sock = dial(address)
        while not self.try_to(self.tls.do_handshake):
            self.sock.sendall(self.outgoing.read())
            self.incoming.write(self.sock.recv(1 << 16))
        self.last = self.outgoing.read()  # the handshake's last message

    @staticmethod
    def try_to(step):
        try:
            step()
            return True
        except ssl.SSLWantReadError:
            return False

    def record(self, data):
        """Returns one encrypted record with `data`."""
        self.tls.write(data)
        return self.outgoing.read()

    def read_to_end(self):
        got = b""
        while data := self.sock.recv(1 << 16):
            self.incoming.write(data)
            try:
                while more := self.tls.read(1 << 16):
                    got += more
            except ssl.SSLError:  # nothing more yet, or close_notify
                pass
        self.sock.close()
        return got


@pytest.mark.parametrize("case", REQUESTS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_came_whole_is_answered(kind, case, ends_weir, redis, ca):
    commands, wanted = REQUESTS[case]
    with connect(ends_weir, kind, ca) as conn:
        conn.send(pipeline(*commands))
        send_fin(conn)
        assert [conn.read() for _ in wanted] == wanted
        assert conn.read_to_end() == b""


@pytest.mark.parametrize("case", ["INCR", "EVAL", "MULTI"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_came_whole_is_carried_out_for_a_client_that_has_closed(kind, case, farm, pair, ca):
    """The first reply causes a reset. The remaining requests run, and their replies reach no
    client.
    """
    redis = farm.redis()
    weir = farm.weir(redis, **both(pair))
    with connect(weir, kind, ca) as conn:
        # this also reads TLS' own messages, so close() sends no RST
        assert conn.call("PING") == "PONG"
        redis.signal(signal.SIGSTOP)
        try:
            conn.send(pipeline(*REQUESTS[case][0]))
            conn.close()
        finally:
            redis.signal(signal.SIGCONT)
    wait_until(lambda: redis.call("GET", "n") == b"100", "all have been carried out")


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_that_has_closed_loses_its_place_in_a_queue(kind, farm, redis, pair, ca):
    weir = farm.weir(redis, sections="[policy default]\nwrite = 20/s over delay 1m\n" + OPERATOR, **both(pair))
    with connect(weir, kind, ca) as conn:
        conn.send(pipeline(*["INCR n"] * 1000))
        assert conn.read() == 1
        send_fin(conn)
    with operator(weir) as conn:
        wait_until(lambda: "ip:127.0.0.1" not in str(conn.call("LIMIT", "CLIENTS")), "weir has seen that it is gone")
    assert int(redis.call("GET", "n")) < 100


@pytest.mark.parametrize("version", VERSIONS)
def test_a_record_that_is_cut_is_dropped(version, ends_weir, redis, ca):
    """Only the cut record is dropped: each request is a record."""
    request = encode("INCR", "n")
    for kept in (0, 1, 4, 5, 6, 20, len(request) + 5, -1):
        redis.call("DEL", "n")
        client = Records(ends_weir.addresses[1], context_of(version, ca))
        whole = b"".join(client.record(request) for _ in range(10))
        client.sock.sendall(client.last + whole + client.record(request)[:kept])
        client.sock.shutdown(socket.SHUT_WR)
        assert client.read_to_end() == b"".join(b":%d\r\n" % i for i in range(1, 11)), kept
        assert redis.call("GET", "n") == b"10"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("value", [b"v" * 20, b"v" * 200000], ids=["small", "large"])
def test_a_request_that_is_cut_is_not_carried_out(value, version, ends_weir, redis, ca):
    request = encode("SET", "k", value)
    for kept in [*range(1, len(request), max(1, len(request) // 20)), len(request) - 2, len(request) - 1]:
        with connect(ends_weir, version, ca) as conn:
            conn.send(encode("INCR", "n") + request[:kept])
            send_fin(conn)
            assert conn.read_to_end()[:1] == b":"
    assert redis.call("EXISTS", "k") == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_calls_stay_in_flight_behind_the_end(version, farm, pair, ca):
    redis = farm.redis()
    weir = farm.weir(redis, sections="[policy default]\ninflight = 10\n", **both(pair))
    with connect(weir, version, ca) as conn, connect(weir, version, ca) as other:
        assert conn.call("PING") == other.call("PING") == "PONG"
        redis.signal(signal.SIGSTOP)
        try:
            conn.send(pipeline(*["INCR n"] * 10))
            send_fin(conn)
            other.send(pipeline(*["INCR n"] * 10))
            assert [limit_of(other.read()) for _ in range(10)] == ["default/inflight"] * 10
        finally:
            redis.signal(signal.SIGCONT)
        assert [conn.read() for _ in range(10)] == list(range(1, 11))
        assert other.call("INCR", "n") == 11


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_and_a_reset_right_behind_the_handshake(version, ends_weir, redis, ca):
    """weir cannot send the end of its handshake. The requests that came count all the same."""
    for i in range(1, rounds(20) + 1):
        client = Records(ends_weir.addresses[1], context_of(version, ca))
        client.sock.sendall(client.last + client.record(encode("INCR", "n")))
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sock.close()
        wait_until(lambda i=i: redis.call("GET", "n") == b"%d" % i, "it is carried out")


def test_a_blocking_command_does_not_outlive_the_end(ends_weir, redis, ca):
    sock = shaken(ends_weir.addresses[1], trusting(ca))
    sock.sendall(pipeline("BLPOP q 0"))
    wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
    sock.close()
    wait_until(lambda: redis.waiting()[0] == 0, "its command has gone with it")
