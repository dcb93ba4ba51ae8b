"""TLS on listeners: real clients, half-open connections, huge values, garbage; and configuration
errors.
"""

import os
import random
import signal
import socket
import ssl
import subprocess
import threading
from pathlib import Path

import pytest
import redis as redis_py
from kit.harness import NODE_SOURCES, REPO, run_weir, wait_until
from kit.resp import Closed, Conn, Error, dial, encode, pipeline
from kit.tls import Authority, Pair, TlsConn, cut_connection, is_refused, openssl, shaken, tls_settings, trusting

HUGE = 64 << 20


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def pair(ca):
    return ca.issue("weir")


@pytest.fixture(scope="module")
def tls_weir(shared_farm, shared_redis, pair):
    return shared_farm.weir(shared_redis, **tls_settings(pair))


@pytest.fixture
def connect(tls_weir, redis, ca):
    """Returns a new TLS connection to a weir in front of the shared, empty Redis."""
    conns = []

    def one(**how):
        conns.append(TlsConn(tls_weir.address, trusting(ca), **how))
        return conns[-1]

    yield one
    for conn in conns:
        conn.close()


# ---- clients ----


def test_redis_cli_speaks_tls_to_weir(tls_weir, redis, ca):
    argv = ["redis-cli", "--tls", "--cacert", ca.cert, "-h", "localhost", "-p", tls_weir.address[1]]
    done = subprocess.run([*map(str, argv)], input="SET k v\nGET k\n", capture_output=True, text=True, timeout=30)
    assert done.stdout == "OK\nv\n", done


def test_redis_py_speaks_tls_to_weir(tls_weir, redis, ca):
    host, port = "localhost", tls_weir.address[1]
    client = redis_py.Redis(host, port, ssl=True, ssl_ca_certs=str(ca.cert), socket_timeout=10, decode_responses=True)
    assert client.set("k", "v") and client.get("k") == "v"
    pipe = client.pipeline(transaction=True)
    for i in range(500):
        pipe.rpush("l", i)
    assert pipe.execute()[-1] == 500
    pubsub = client.pubsub(ignore_subscribe_messages=True)
    pubsub.subscribe("c")
    wait_until(lambda: pubsub.get_message() is None and client.pubsub_numsub("c")[0][1] == 1, "subscribed")
    client.publish("c", "hello")
    assert wait_until(pubsub.get_message, "the message")["data"] == "hello"
    threading.Timer(0.05, lambda: client.rpush("q", "x")).start()
    assert client.blpop("q", 10) == ("q", "x")
    pubsub.close()
    client.close()


@pytest.mark.parametrize("library", ["ioredis", "redis"])
def test_node_speaks_tls_to_weir(library, tls_weir, redis, ca, node_modules):
    argv = ["node", str(NODE_SOURCES / f"{library}.js"), str(tls_weir.address[1]), "3"]
    env = {**os.environ, "NODE_PATH": str(node_modules), "CA": str(ca.cert)}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_protocol_versions_are_those_configured(version, tls_weir, redis, ca):
    context = trusting(ca)
    context.minimum_version = context.maximum_version = version
    with TlsConn(tls_weir.address, context) as conn:
        assert conn.sock.version() == {"TLSv1_2": "TLSv1.2", "TLSv1_3": "TLSv1.3"}[version.name]
        assert conn.ask("SET k v", "GET k") == ["OK", b"v"]


def test_old_versions_are_refused(tls_weir):
    where = f"localhost:{tls_weir.address[1]}"
    argv = ["openssl", "s_client", "-connect", where, "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]
    done = subprocess.run(argv, input="", capture_output=True, text=True, timeout=30)
    assert done.returncode != 0 and "alert protocol version" in done.stderr, done


def test_renegotiation_is_refused(tls_weir, redis):
    where = f"localhost:{tls_weir.address[1]}"
    argv = ["openssl", "s_client", "-connect", where, "-tls1_2"]
    done = subprocess.run(argv, input="R\n", capture_output=True, text=True, timeout=30)
    assert "no renegotiation" in done.stderr, done


def test_sessions_are_resumed(tls_weir, redis, ca):
    context = trusting(ca)
    with TlsConn(tls_weir.address, context) as first:
        assert first.call("PING") == "PONG"  # a session ticket of TLS 1.3 comes after the handshake
        session = first.sock.session
    with TlsConn(tls_weir.address, context, session=session) as again:
        assert again.sock.session_reused and again.call("PING") == "PONG"


# ---- byte streams ----


def test_pipelines_of_many_sizes(connect):
    dice = random.Random(7)
    conn = connect()
    for _ in range(60):
        values = [dice.randbytes(dice.choice((0, 1, 100, 8000, 16300, 16400, 40000))) for _ in range(dice.randrange(1, 12))]
        words = [word for i, value in enumerate(values) for word in (("SET", f"k{i}", value), ("GET", f"k{i}"))]
        assert conn.ask(*words) == [reply for value in values for reply in ("OK", value)]


class Dribble:
    """A TLS client that sends and receives its encrypted bytes one at a time."""

    def __init__(self, address, context, before=b"", together=False):
        """`before` precedes the handshake, in one packet with its first message or alone."""
        self.raw = dial(address)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        if together:
            with pytest.raises(ssl.SSLWantReadError):
                self.tls.do_handshake()
        self.raw.sendall(before + self.outgoing.read())
        self.until_done(self.tls.do_handshake)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.raw.close()

    def flush(self):
        for byte in self.outgoing.read():
            self.raw.sendall(bytes([byte]))

    def until_done(self, work, *args):
        while True:
            try:
                result = work(*args)
                self.flush()
                return result
            except ssl.SSLWantReadError:
                self.flush()
                data = self.raw.recv(1)
                assert data, "the connection was closed"
                self.incoming.write(data)


def test_every_byte_alone(tls_weir, redis, ca):
    with Dribble(tls_weir.address, trusting(ca)) as client:
        for i in range(3):
            client.until_done(client.tls.write, pipeline(f"SET k{i} {'v' * 300}", f"GET k{i}"))
            wanted = b"+OK\r\n$300\r\n" + b"v" * 300 + b"\r\n"
            got = b""
            while len(got) < len(wanted):
                got += client.until_done(client.tls.read, 1000)
            assert got == wanted


def test_records_of_a_byte(connect):
    conn = connect()
    for byte in pipeline("SET k v", "GET k"):
        conn.sock.sendall(bytes([byte]))
    assert [conn.read(), conn.read()] == ["OK", b"v"]


def test_a_request_behind_the_handshake(tls_weir, redis, ca):
    """In the same packet as the handshake's last message."""
    raw = dial(tls_weir.address)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting(ca).wrap_bio(incoming, outgoing, server_hostname="localhost")
    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            raw.sendall(outgoing.read())
            incoming.write(raw.recv(1 << 16))
    client.write(pipeline("SET k v", "GET k"))
    raw.sendall(outgoing.read())
    got = b""
    while len(got) < len(b"+OK\r\n$1\r\nv\r\n"):
        try:
            got += client.read(100)
        except ssl.SSLWantReadError:
            incoming.write(raw.recv(1 << 16))
    assert got == b"+OK\r\n$1\r\nv\r\n"
    raw.close()


def memory_kb(weir, field):
    lines = Path(f"/proc/{weir.child.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


@pytest.fixture
def lean_weir(farm, redis, pair, monkeypatch):
    """A weir with meaningful memory use: the sanitizer returns freed memory at once."""
    options = os.environ.get("ASAN_OPTIONS", "")
    monkeypatch.setenv("ASAN_OPTIONS", options + (":" if options else "") + "quarantine_size_mb=2")
    return farm.weir(redis, workers=1, **tls_settings(pair))


def test_huge_values_stream(lean_weir, ca):
    value = random.Random(1).randbytes(1 << 20) * (HUGE >> 20)
    with TlsConn(lean_weir.address, trusting(ca), timeout=60) as conn:
        assert conn.call("SET", "warm", value[: 1 << 20]) == "OK" and conn.call("GET", "warm") == value[: 1 << 20]
        before = memory_kb(lean_weir, "VmRSS")
        assert conn.call("SET", "huge", value) == "OK"
        assert conn.call("GET", "huge") == value
    assert memory_kb(lean_weir, "VmHWM") - before < 24 << 10


def test_a_slow_reader_waits_alone(lean_weir, redis, ca):
    with redis.connect() as conn:
        conn.call("SET", "huge", b"v" * HUGE)
    with TlsConn(lean_weir.address, trusting(ca), timeout=60) as slow:
        with TlsConn(lean_weir.address, trusting(ca)) as other:
            before = memory_kb(lean_weir, "VmRSS")
            slow.send(encode("GET", "huge"))
            # the reply has begun, and the client reads no further
            assert slow.line() == b"$%d" % HUGE
            for _ in range(200):
                assert other.call("GET", "none") is None
            assert memory_kb(lean_weir, "VmHWM") - before < 24 << 10
        assert slow._bulk(HUGE) == b"v" * HUGE
        assert slow.call("PING") == "PONG"


# ---- closing ----


def test_the_end_of_requests_is_no_end_of_replies(connect):
    """As on a plain connection: requests before close_notify get replies."""
    conn = connect()
    conn.send(pipeline("SET k v", "GET k"))
    raw = conn.sock
    raw.settimeout(10)
    assert [conn.read(), conn.read()] == ["OK", b"v"]
    raw.unwrap()  # sends close_notify, and waits for that of weir


def test_close_notify_after_quit(connect):
    conn = connect()
    assert conn.call("QUIT") == "OK"
    assert conn.sock.recv(1) == b""  # raises if the connection is merely cut


def test_a_cut_connection_is_gone(tls_weir, redis, ca):
    sock = shaken(tls_weir.address, trusting(ca))
    sock.sendall(pipeline("CLIENT SETNAME cut", "BLPOP q 0"))
    wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
    raw = cut_connection(sock)
    wait_until(lambda: redis.waiting()[0] == 0, "its command has gone with it")
    raw.close()


def test_weir_stops_while_clients_are_there(farm, redis, pair, ca):
    weir = farm.weir(redis, **tls_settings(pair))
    conns = [TlsConn(weir.address, trusting(ca)) for _ in range(5)]
    half = dial(weir.address)  # in the handshake
    assert all(conn.call("PING") == "PONG" for conn in conns)
    weir.stop(signal.SIGTERM)
    for conn in conns:
        with pytest.raises(Closed):
            conn.read()
    half.close()


def test_whose_handshake_has_just_ended_is_not_let_go(farm, redis, ca, pair):
    """At each tick of the drain weir closes silent clients. A client that came since the last tick
    is not silent.
    """
    weir = farm.weir(redis, workers=1, drain_timeout="15s", **tls_settings(pair))
    with TlsConn(weir.address, trusting(ca)) as idle:
        assert idle.call("PING") == "PONG"
        late, never = dial(weir.address), dial(weir.address)
        weir.signal(signal.SIGTERM)
        assert idle.sock.recv(1) == b"", "the first tick"
        with trusting(ca).wrap_socket(late, server_hostname="localhost") as sock:
            assert never.recv(1) == b"", "the second: it has not said a word"
            sock.sendall(encode("SET", "k", "v"))
            assert sock.recv(100) == b"+OK\r\n"
            assert sock.recv(1) == b""
        never.close()
    assert weir.wait() == 0, weir.log()
    assert not weir.complaint(), weir.log()


# ---- behind a load balancer ----


@pytest.mark.parametrize("together", [True, False])
def test_a_proxy_header_before_the_handshake(together, farm, redis, pair, ca):
    settings = {**tls_settings(pair), "listen": "tls:127.0.0.1:0 proxy", "proxy_protocol_from": "127.0.0.1"}
    weir = farm.weir(redis, **settings)
    header = b"PROXY TCP4 192.0.2.7 127.0.0.1 4711 6390\r\n"
    with Dribble(weir.address, trusting(ca), before=header, together=together) as client:
        client.until_done(client.tls.write, encode("LIMIT", "STATUS"))
        got = b""
        while b"ip:192.0.2.7" not in got:
            got += client.until_done(client.tls.read, 1000)


# ---- clients without a certificate, and garbage ----


def closed_by_peer(sock):
    sock.settimeout(15)
    try:
        while sock.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


def test_a_plain_client_on_a_tls_port(farm, redis, pair, ca):
    weir = farm.weir(redis, **tls_settings(pair))
    with Conn(weir.address) as conn:
        conn.send(pipeline("PING", "PING"))
        assert closed_by_peer(conn.sock)
    wait_until(lambda: "it does not speak TLS" in weir.log(), "the log says why")
    with TlsConn(weir.address, trusting(ca)) as conn:
        assert conn.call("PING") == "PONG"


def test_a_tls_client_on_a_plain_port(farm, redis, ca):
    weir = farm.weir(redis)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        shaken(weir.address, trusting(ca))
    assert weir.serves()


def hello(ca):
    """Returns the first message of a client."""
    outgoing = ssl.MemoryBIO()
    client = trusting(ca).wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def garbage(dice, ca):
    kind = dice.randrange(4)
    if kind == 0:
        return dice.randbytes(dice.randrange(1, 2000))
    if kind == 1:  # a record's header, then arbitrary bytes
        return b"\x16\x03\x01" + dice.randrange(1, 20000).to_bytes(2, "big") + dice.randbytes(dice.randrange(3000))
    first = bytearray(hello(ca))
    if kind == 2:
        for _ in range(dice.randrange(1, 6)):
            first[dice.randrange(len(first))] = dice.randrange(256)
        return bytes(first)
    return bytes(first) + dice.randbytes(dice.randrange(1, 3000))


def test_garbage_instead_of_a_handshake_harms_nobody_else(tls_weir, connect, ca):
    dice = random.Random(11)
    for _ in range(150):
        sock = dial(tls_weir.address)
        try:
            sock.sendall(garbage(dice, ca))
            sock.shutdown(socket.SHUT_WR)
        except ConnectionError:
            pass
        assert closed_by_peer(sock)
        sock.close()
    assert connect().call("PING") == "PONG"


def test_garbage_in_a_connection(tls_weir, ca, connect):
    dice = random.Random(13)
    for _ in range(60):
        sock = shaken(tls_weir.address, trusting(ca))
        raw = socket.socket(fileno=sock.detach())
        raw.settimeout(15)
        try:
            raw.sendall(b"\x17\x03\x03" + (20 + dice.randrange(500)).to_bytes(2, "big") + dice.randbytes(600))
            raw.shutdown(socket.SHUT_WR)
        except (ConnectionError, OSError):
            pass
        assert closed_by_peer(raw)
        raw.close()
    assert connect().call("PING") == "PONG"


def test_a_handshake_has_its_time(farm, redis, pair, ca):
    weir = farm.weir(redis, handshake_timeout="100ms", **tls_settings(pair))
    with TlsConn(weir.address, trusting(ca)) as ready:
        silent, half = dial(weir.address), dial(weir.address)
        half.sendall(hello(ca)[:50])
        assert closed_by_peer(silent) and closed_by_peer(half)
        silent.close()
        half.close()
        assert ready.call("PING") == "PONG"


def test_one_too_many_is_closed(farm, redis, pair, ca):
    weir = farm.weir(redis, max_clients=1, **tls_settings(pair))
    with TlsConn(weir.address, trusting(ca)) as conn:
        assert conn.call("PING") == "PONG"
        with pytest.raises((ssl.SSLError, ConnectionError)):
            shaken(weir.address, trusting(ca))


def test_one_connection_too_many_is_told(farm, redis, pair, ca):
    weir = farm.weir(redis, sections="[policy default]\nconnections = 1\n", **tls_settings(pair))
    with TlsConn(weir.address, trusting(ca)) as conn:
        assert conn.call("PING") == "PONG"
        with TlsConn(weir.address, trusting(ca)) as more:
            assert more.call("PING") == Error("ERR max number of clients reached")


# ---- the configuration ----


def checked(folder, text):
    path = folder / "weir.conf"
    path.write_text(f"[weir]\n{text}")
    done = run_weir("-t", "-c", path)
    return done.returncode, done.stderr.replace(str(path), "weir.conf").replace(str(folder), "DIR")


@pytest.fixture
def folder(ca, pair, tmp_path):
    """With a good.crt and good.key, and broken files."""
    (tmp_path / "good.crt").write_bytes(pair.cert.read_bytes())
    (tmp_path / "good.key").write_bytes(pair.key.read_bytes())
    (tmp_path / "good.key").chmod(0o600)
    (tmp_path / "no.pem").write_text("no PEM at all\n")
    (tmp_path / "ca.crt").write_bytes(ca.cert.read_bytes())
    return tmp_path


CERT = "tls-cert-file = DIR/good.crt\n"
KEY = "tls-key-file = DIR/good.key\n"
TLS = "listen = tls:127.0.0.1:0\n"

MISTAKES = [
    (TLS, "weir.conf:2: [weir] listen: tls: needs tls-cert-file and tls-key-file\n"),
    (TLS + CERT, "weir.conf:3: [weir] tls-cert-file: needs tls-key-file\n"),
    (TLS + KEY, "weir.conf:3: [weir] tls-key-file: needs tls-cert-file\n"),
    (
        TLS + KEY + "tls-cert-file = DIR/none.crt\n",
        "weir.conf:4: [weir] tls-cert-file: DIR/none.crt cannot be opened: No such file or directory\n",
    ),
    (TLS + CERT + "tls-key-file = DIR\n", "weir.conf:4: [weir] tls-key-file: DIR is not a regular file\n"),
    (TLS + KEY + "tls-cert-file = DIR/no.pem\n", "tls-cert-file: DIR/no.pem holds no usable certificate in PEM: "),
    (TLS + CERT + "tls-key-file = DIR/no.pem\n", "tls-key-file: DIR/no.pem holds no usable private key in PEM: "),
    (TLS + CERT + KEY + "tls-ca-cert-file = DIR/no.pem\n", "tls-ca-cert-file: DIR/no.pem holds no usable certificates in PEM"),
    (TLS + CERT + KEY + "tls-auth-clients = maybe\n", "tls-auth-clients: \"maybe\" is neither no nor optional nor yes\n"),
    (TLS + CERT + KEY + "tls-auth-clients = yes\n", "weir.conf:5: [weir] tls-auth-clients: needs tls-ca-cert-file, the authorities"),
    (TLS + CERT + KEY + "tls-protocols = TLSv1.1\n", "tls-protocols: \"TLSv1.1\" is not supported: write TLSv1.2"),
    (TLS + CERT + KEY + "tls-ciphers = NONSENSE\n", "tls-ciphers: \"NONSENSE\" names no cipher that OpenSSL knows\n"),
    (TLS + CERT + KEY + "tls-ciphersuites = NONSENSE\n", "tls-ciphersuites: \"NONSENSE\" names a cipher suite that"),
    ("listen = tls:unix:/x\n", "weir.conf:2: [weir] listen: \"tls:unix:/x\": TLS is not supported on a unix socket\n"),
    ("listen = tls:6390\n", "weir.conf:2: [weir] listen: \"6390\" is a port without a host: write tls:127.0.0.1:6390, or 0.0.0.0 instead for all addresses of this machine\n"),
    ("upstream = tls:localhost:1\nupstream-tls-ca-file = DIR/no.pem\n", "weir.conf:3: [weir] upstream-tls-ca-file: DIR/no.pem holds"),
    ("upstream = tls:localhost:1\nupstream-tls-verify = maybe\n", "upstream-tls-verify: \"maybe\" is neither yes nor no\n"),
    ("[admin]\nlisten = tls:127.0.0.1:0\n", "[admin] listen: \"tls:127.0.0.1:0\": TLS is not supported here\n"),
]


@pytest.mark.parametrize("text, said", MISTAKES, ids=[said[:60] for _, said in MISTAKES])
def test_mistakes_in_tls_keys_are_told_with_their_line(text, said, folder):
    code, err = checked(folder, text.replace("DIR", str(folder)))
    assert code == 1 and said in err, err


def test_a_key_of_another_certificate(folder, ca):
    rsa = folder / "rsa.key"
    openssl("genrsa", "-out", rsa, "2048")
    for key in (ca.issue("other").key, rsa):
        code, err = checked(folder, f"{TLS}{CERT}tls-key-file = {key}\n".replace("DIR", str(folder)))
        assert code == 1 and f"the key in {key} does not belong to the certificate in" in err.replace("DIR", str(folder)), err


def test_an_encrypted_key(folder, pair):
    openssl("ec", "-in", pair.key, "-aes128", "-passout", "pass:x", "-out", folder / "locked.key")
    code, err = checked(folder, f"{TLS}{CERT}tls-key-file = DIR/locked.key\n".replace("DIR", str(folder)))
    assert code == 1 and "DIR/locked.key is encrypted: write it without a passphrase" in err, err


def test_an_expired_certificate_and_an_open_key_are_warned_of(folder, ca):
    expired = ca.issue("expired", days=-1)
    expired.key.chmod(0o644)
    code, err = checked(folder, f"{TLS}tls-cert-file = {expired.cert}\ntls-key-file = {expired.key}\n")
    assert code == 0, err
    assert "warning: weir.conf:3: [weir] tls-cert-file: the certificate in" in err and "has expired" in err, err
    assert "warning: weir.conf:4: [weir] tls-key-file: other users can read" in err, err


def test_what_does_nothing_is_said(folder):
    code, err = checked(folder, (CERT + KEY + "upstream-tls-server-name = redis\n").replace("DIR", str(folder)))
    assert code == 0, err
    assert "warning: weir.conf:2: [weir] tls-cert-file: has no effect: no address of listen begins with tls:" in err
    assert "warning: weir.conf:4: [weir] upstream-tls-server-name: has no effect: upstream does not begin with tls:" in err


def test_a_good_file(folder):
    code, err = checked(folder, (TLS + CERT + KEY).replace("DIR", str(folder)))
    assert (code, err) == (0, "")


# ---- the page ----


def test_the_commands_of_the_page(farm, redis, tmp_path):
    """docs/tls.md makes certificates that work, for weir and for a client."""
    commands = (REPO / "docs/tls.md").read_text().split("```sh\n")[1].split("```")[0]
    done = subprocess.run(["bash", "-euc", commands], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    ca, pair = Authority.at(tmp_path), Pair(tmp_path / "weir.crt", tmp_path / "weir.key")
    more = {"tls_ca_cert_file": ca.cert, "tls_auth_clients": "yes", "identity": "tls, user, ip"}
    weir = farm.weir(redis, **tls_settings(pair, **more))
    shown = trusting(ca, Pair(tmp_path / "billing.crt", tmp_path / "billing.key"))
    with TlsConn(weir.address, shown) as conn:
        assert b"tls:billing" in conn.call("LIMIT", "STATUS")
    assert "can read" not in weir.log()


# ---- reload ----


def reload(weir):
    before = weir.log().count("configuration reloaded"), weir.log().count("not reloaded")
    weir.signal(signal.SIGHUP)

    def outcome():
        now = weir.log().count("configuration reloaded"), weir.log().count("not reloaded")
        return now != before and now

    return wait_until(outcome, "the reload has an outcome", 20)[0] > before[0]


def shown(weir, context):
    """Returns the serial number of the certificate that a new client sees."""
    with TlsConn(weir.address, context) as conn:
        assert conn.call("PING") == "PONG"
        return conn.sock.getpeercert()["serialNumber"]


def test_new_certificates_for_new_connections(farm, redis, ca, tmp_path):
    pair = Authority(tmp_path, "other").issue("served")
    mine = ca.issue("reloaded")
    weir = farm.weir(redis, workers=1, **tls_settings(pair))
    old, new = trusting(Authority.at(tmp_path, "other")), trusting(ca)
    first = shown(weir, old)
    with TlsConn(weir.address, old) as before:
        assert before.call("PING") == "PONG"
        pair.cert.write_bytes(mine.cert.read_bytes())
        assert not reload(weir)  # the key does not match the certificate
        assert shown(weir, old) == first
        pair.key.write_bytes(mine.key.read_bytes())
        assert reload(weir)
        wait_until(lambda: not is_refused(weir.address, new), "the worker has it")
        assert shown(weir, new) != first
        assert is_refused(weir.address, old)
        assert before.ask("SET k v", "GET k") == ["OK", b"v"]


def test_limits_change_without_the_files(farm, redis, pair, ca):
    """LIMIT SET reads no certificates: it works whatever has become of the files."""
    cert = pair.cert.parent / "fleeting.crt"
    cert.write_bytes(pair.cert.read_bytes())
    settings = {**tls_settings(pair), "tls_cert_file": cert}
    sections = "[policy default]\nread = 1000/s\n[admin]\nsocket = {folder}/admin.sock\n"
    weir = farm.weir(redis, sections=sections, **settings)
    cert.unlink()
    with Conn(str(weir.folder / "admin.sock")) as operator:
        assert operator.call("LIMIT", "SET", "default", "read", "7/h") == "OK"
    with TlsConn(weir.address, trusting(ca)) as conn:
        assert isinstance(conn.ask(*["GET k"] * 8)[7], Error)
    assert not reload(weir)
