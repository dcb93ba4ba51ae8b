"""TLS to Redis: every kind of connection, which servers weir trusts, and what weir reports when it
does not.
"""

import re
import signal
import socket

import pytest
from kit.harness import TOLD_AT_ONCE, wait_until
from kit.moving import TlsAt
from kit.resp import Error, pipeline
from kit.server import has_tls
from kit.tls import Authority, TlsConn, TlsRedis, tls_settings, trusting

LANES = ["shared", "private"]
SUBSCRIBED = b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
UNSUBSCRIBED = b"*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n"


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def pair(ca):
    return ca.issue("redis", "/CN=redis")


@pytest.fixture
def serve(farm, ca, pair):
    """A redis-server with a TLS port, and with that certificate if one is given."""
    if not has_tls():
        pytest.skip("this redis-server is built without TLS")
    return lambda shown=pair, *options, **how: farm._start(TlsRedis(ca, shown, *options, **how))


def away(weir):
    """Returns the error that a client gets while weir does not trust the upstream; no request may
    get through.
    """
    with weir.connect() as conn:
        reply = conn.call("SET", "k", "v")
        assert isinstance(reply, Error) and reply.startswith("UPSTREAM"), reply


def says(weir, text):
    wait_until(lambda: re.search(text, weir.log()), f"the log says {text}")


# ---- every kind of connection ----


@pytest.mark.parametrize("lanes", LANES)
def test_every_kind_of_lane_speaks_tls(lanes, farm, serve, ca):
    redis = serve()
    weir = farm.weir(redis, lanes=lanes, upstream_tls_ca_file=ca.cert)
    with weir.connect() as conn, weir.connect() as other:
        assert conn.ask("SET k v", "GET k") == ["OK", b"v"]
        assert conn.ask("MULTI", "INCR n", "EXEC") == ["OK", "QUEUED", [1]]
        assert conn.call("EVAL", "return 7", 0) == 7
        assert other.call("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
        assert conn.call("PUBLISH", "c", "m") == 1
        assert conn.call("LIMIT", "FIXED", "x", "1/60s")[0] == 0
        assert conn.call("LIMIT", "FIXED", "x", "1/60s")[0] == 1
        assert conn.call("SELECT", 3) == "OK" and conn.call("GET", "k") is None


def test_a_client_that_ends_its_side_behind_answers_that_nobody_can_count(farm, serve, ca):
    weir = farm.weir(serve(), workers=1, upstream_tls_ca_file=ca.cert)
    with weir.connect() as conn:
        conn.send(pipeline("MULTI", "SUBSCRIBE c", "UNSUBSCRIBE c", "EXEC", "PING"))
        conn.sock.shutdown(socket.SHUT_WR)
        assert conn.read_to_end().endswith(b"+QUEUED\r\n*2\r\n" + SUBSCRIBED + UNSUBSCRIBED + b"+PONG\r\n")


def test_tls_on_both_sides(farm, serve, ca, pair):
    weir = farm.weir(serve(), upstream_tls_ca_file=ca.cert, **tls_settings(pair))
    with TlsConn(weir.address, trusting(ca)) as conn:
        value = b"v" * (8 << 20)
        assert conn.call("SET", "k", value) == "OK" and conn.call("GET", "k") == value


def test_a_certificate_may_name_an_address(farm, serve, ca):
    """The certificate names 127.0.0.1 as an address."""
    redis = serve()
    weir = farm.weir(f"tls:127.0.0.1:{redis.tls_port}", upstream_tls_ca_file=ca.cert)
    assert weir.serves()


def test_weir_logs_in_over_tls(farm, serve, ca, tmp_path):
    redis = serve(ca.issue("redis-login"), "--requirepass", "word")
    secret = tmp_path / "secret"
    secret.write_text("word")
    secret.chmod(0o600)
    weir = farm.weir(redis, upstream_tls_ca_file=ca.cert, upstream_password_file=secret)
    with weir.connect() as conn:
        assert conn.call("GET", "k").startswith("NOAUTH")
        assert conn.call("AUTH", "word") == "OK" and conn.call("GET", "k") is None


def test_redis_comes_back(farm, serve, ca):
    redis = serve()
    weir = farm.weir(redis, upstream_tls_ca_file=ca.cert)
    assert weir.serves()
    redis.kill()
    redis.launch(redis.child.args)
    wait_until(weir.serves, "Redis is served again", 20)


# ---- trust ----


def test_a_client_certificate(farm, serve, ca):
    redis = serve(auth="yes")
    mine = ca.issue("client", "/CN=weir", names=None)
    weir = farm.weir(
        redis, upstream_tls_ca_file=ca.cert, upstream_tls_cert_file=mine.cert, upstream_tls_key_file=mine.key
    )
    assert weir.serves()


def test_without_the_certificate_it_wants(farm, serve, ca):
    away(farm.weir(serve(auth="yes"), upstream_tls_ca_file=ca.cert, **TOLD_AT_ONCE))


def test_a_stranger_s_certificate(farm, serve, ca, tmp_path):
    redis = serve()
    weir = farm.weir(redis, upstream_tls_ca_file=Authority(tmp_path, "stranger").cert, **TOLD_AT_ONCE)
    away(weir)
    says(weir, "its certificate is refused: ")
    assert redis.call("DBSIZE") == 0


def test_by_default_the_system_is_trusted(farm, serve):
    weir = farm.weir(serve(), **TOLD_AT_ONCE)
    away(weir)
    says(weir, "its certificate is refused: ")


@pytest.mark.parametrize("name", ["redis.example", "127.0.0.2"])
def test_a_certificate_of_another_name_is_refused(name, farm, serve, ca):
    weir = farm.weir(serve(), upstream_tls_ca_file=ca.cert, upstream_tls_server_name=name, **TOLD_AT_ONCE)
    away(weir)
    says(weir, "its certificate is refused: .*mismatch")


def test_the_name_to_verify(farm, serve, ca):
    redis = serve(ca.issue("elsewhere", names="DNS:*.redis.example"))
    assert farm.weir(redis, upstream_tls_ca_file=ca.cert, upstream_tls_server_name="a.redis.example").serves()


def test_an_expired_certificate(farm, serve, ca):
    weir = farm.weir(serve(ca.issue("expired", days=-1)), upstream_tls_ca_file=ca.cert, **TOLD_AT_ONCE)
    away(weir)
    says(weir, "its certificate is refused: certificate has expired")


def test_without_verification_any_certificate_will_do(farm, serve, ca):
    assert farm.weir(serve(ca.issue("anybody", days=-1)), upstream_tls_verify="no").serves()


def test_a_plain_redis(farm, redis, ca):
    """Redis takes the handshake for an endless command, or answers with an error."""
    weir = farm.weir(f"tls:127.0.0.1:{redis.port}", upstream_tls_ca_file=ca.cert, connect_timeout="200ms", upstream_timeout="300ms")
    away(weir)


def test_a_tls_redis_taken_for_plain(farm, serve):
    away(farm.weir(f"127.0.0.1:{serve().tls_port}", connect_timeout="200ms", **TOLD_AT_ONCE))


# ---- reload ----


def test_trust_is_read_anew(farm, serve, ca, tmp_path):
    """A wrong authority is corrected while weir runs. Then weir finds Redis by itself."""
    trust = tmp_path / "trust.crt"
    trust.write_bytes(Authority(tmp_path, "stranger").cert.read_bytes())
    weir = farm.weir(serve(), upstream_tls_ca_file=trust, **TOLD_AT_ONCE)
    away(weir)
    trust.write_bytes(ca.cert.read_bytes())
    weir.signal(signal.SIGHUP)
    wait_until(weir.serves, "Redis is trusted", 20)


# ---- several servers ----


@pytest.mark.parametrize("shown", ["its own", "the other's"])
def test_each_server_of_a_list_bears_its_own_name(shown, farm, ca):
    """A certificate is compared with the server's own address in `upstream`."""
    if not has_tls():
        pytest.skip("this redis-server is built without TLS")
    pairs = {n: ca.issue(f"list-{n}", "/CN=redis", f"IP:127.0.0.{n}") for n in (2, 3)}
    replica = farm._start(TlsAt(2, ca, pairs[2]))
    master = farm._start(TlsAt(3, ca, pairs[3 if shown == "its own" else 2]))
    replica.call("REPLICAOF", *master.address)
    upstream = ", ".join(f"tls:{server.ip}:{server.tls_port}" for server in (replica, master))
    weir = farm.weir(upstream, upstream_tls_ca_file=ca.cert)
    if shown == "its own":
        wait_until(weir.serves, "the master is served")
        with weir.connect() as conn:
            assert conn.call("SET", "key", "1") == "OK" and master.call("GET", "key") == b"1"
        return
    says(weir, "its certificate is refused: IP address mismatch")
    says(weir, "not ready")
