"""Client certificates: which clients may connect, and which limits bind a client with a
certificate.
"""

import ssl
import threading

import pytest
from kit.harness import wait_until
from kit.limits import passed, plain
from kit.resp import Error
from kit.tls import Authority, TlsConn, is_refused, tls_settings, trusting


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def pair(ca):
    return ca.issue("weir")


@pytest.fixture
def start(farm, redis, ca, pair):
    """Returns a function that starts a weir that asks for certificates."""

    def one(sections="", auth="yes", identity="tls, user, ip", **settings):
        settings = {**tls_settings(pair), "tls_ca_cert_file": ca.cert, "tls_auth_clients": auth, **settings}
        return farm.weir(redis, sections=sections, identity=identity, **settings)

    return one


def come(weir, ca, pair=None, **how):
    return TlsConn(weir.address, trusting(ca, pair), **how)


def subject_of(conn):
    return plain(conn.call("LIMIT", "STATUS"))[1]


LIMITED = "[policy named]\nmatch = tls:app-*\nread = 3/d\n[policy default]\nread = 1000/d\n"


def named(ca, name):
    return ca.issue(name, f"/CN={name}", names=None)


# ---- which clients may connect ----


def test_who_has_no_certificate_is_refused(start, ca):
    weir = start()
    assert is_refused(weir.address, trusting(ca))
    wait_until(lambda: "peer did not return a certificate" in weir.log(), "the log says why")


def test_a_stranger_s_certificate(start, ca, tmp_path):
    stranger = Authority(tmp_path).issue("stranger")
    for auth in ("yes", "optional"):
        assert is_refused(start(auth=auth).address, trusting(ca, stranger))


def test_an_expired_certificate(start, ca):
    weir = start()
    assert is_refused(weir.address, trusting(ca, ca.issue("expired", "/CN=app-old", days=-1)))
    wait_until(lambda: "certificate has expired" in weir.log(), "the log says why")


def test_an_optional_certificate_names_who_has_one(start, ca):
    weir = start(LIMITED, auth="optional")
    with come(weir, ca) as nobody, come(weir, ca, named(ca, "app-1")) as app:
        assert subject_of(nobody) == "ip:127.0.0.1" and subject_of(app) == "tls:app-1"


def test_not_asked_for(start, ca):
    weir = start(LIMITED, auth="no")
    with come(weir, ca, named(ca, "app-2")) as conn:
        assert subject_of(conn) == "ip:127.0.0.1"


# ---- which limits bind ----


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_limits_of_a_name_survive_reconnects(version, start, ca):
    weir = start(LIMITED)
    one, two = named(ca, "app-3"), named(ca, "app-4")
    context = trusting(ca, one)
    context.maximum_version = version
    replies = []
    for _ in range(5):
        with TlsConn(weir.address, context) as conn:
            replies.append(conn.call("GET", "k"))
    assert passed(replies) == 3
    with come(weir, ca, two) as conn:
        assert passed(conn.ask(*["GET k"] * 5)) == 3


def test_a_resumed_session_has_its_name(start, ca):
    weir = start(LIMITED)
    context = trusting(ca, named(ca, "app-5"))
    with TlsConn(weir.address, context) as first:
        assert subject_of(first) == "tls:app-5"
        session = first.sock.session
    with TlsConn(weir.address, context, session=session) as again:
        assert again.sock.session_reused and subject_of(again) == "tls:app-5"


def test_many_connections_of_a_name(start, ca):
    weir = start("[policy default]\nread = 50/d\n", workers=2)
    context = trusting(ca, named(ca, "app-6"))
    replies = []

    def work():
        with TlsConn(weir.address, context) as conn:
            replies.extend(conn.ask(*["GET k"] * 20))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(replies) == 120 and passed(replies) == 50


@pytest.mark.parametrize(
    "names, subject",
    [
        ("DNS:a.example,URI:spiffe://acme/x", "tls:a.example"),
        ("IP:127.0.0.1,URI:spiffe://acme/x,DNS:a.example", "tls:spiffe://acme/x"),
        ("email:ann@example.com", "tls:ann@example.com"),
        ("IP:127.0.0.1", "tls:My%20App"),
        (None, "tls:My%20App"),
    ],
)
def test_which_name_counts(names, subject, start, ca):
    shown = ca.issue("naming", "/O=acme/CN=outer/CN=My App", names=names)
    with come(start(), ca, shown) as conn:
        assert subject_of(conn) == subject


def test_a_certificate_without_a_name(start, ca):
    shown = ca.issue("nameless", "/O=acme", names=None)
    with come(start(), ca, shown) as conn:
        assert subject_of(conn) == "ip:127.0.0.1"


def test_the_connection_counts_for_the_name(start, ca):
    """The connection is not first charged to its address: clients without the name, at the same
    address, take nothing from it.
    """
    weir = start("[policy named]\nmatch = tls:*\nconnections = 2\n[policy default]\nconnections = 1\n", auth="optional")
    context = trusting(ca, named(ca, "app-7"))
    with come(weir, ca) as stranger, TlsConn(weir.address, context) as a, TlsConn(weir.address, context) as b:
        assert [conn.call("PING") for conn in (stranger, a, b)] == ["PONG"] * 3
        with TlsConn(weir.address, context) as more:
            assert more.call("PING") == Error("ERR max number of clients reached")


# ---- misleading names ----


@pytest.mark.parametrize("byte", [b"\0", b"\n", b"\x1b", b"\x7f"], ids=repr)
def test_control_characters_in_the_common_name(byte, start, ca):
    shown = ca.issue_bytes("evil", b"app-1Xevil", b"app-1" + byte + b"evil", subject="/CN=app-1Xevil", names=None)
    weir = start(LIMITED)
    assert is_refused(weir.address, trusting(ca, shown))
    wait_until(lambda: "has a NUL or a control character in it" in weir.log(), "the log says why")


def test_a_nul_in_an_alternative_name(start, ca):
    shown = ca.issue_bytes("evil-san", b"appX1.example", b"app\0" + b"1.example", names="DNS:appX1.example")
    assert is_refused(start(LIMITED).address, trusting(ca, shown))


def test_a_name_of_ordinary_bytes_is_as_it_was_made(start, ca):
    """The two tests above rely on this: the certificate itself is accepted."""
    shown = ca.issue_bytes("good", b"app-1Xgood", b"app-1-good", subject="/CN=app-1Xgood", names=None)
    with come(start(), ca, shown) as conn:
        assert subject_of(conn) == "tls:app-1-good"


def test_a_name_that_is_too_long(start, ca):
    shown = ca.issue("long", names="URI:spiffe://acme/" + "x" * 250)
    assert is_refused(start().address, trusting(ca, shown))
