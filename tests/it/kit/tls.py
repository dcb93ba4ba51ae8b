"""Certificates made by the openssl command for a test, and connections that use the certificates.
"""

import socket
import ssl
import subprocess
from collections import namedtuple

import pytest
from kit.harness import Redis, free_port
from kit.resp import TIMEOUT, Conn, dial
from kit.server import has_tls

Pair = namedtuple("Pair", "cert key")

EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
HERE = "DNS:localhost,IP:127.0.0.1"


def openssl(*argv, data=None):
    done = subprocess.run(["openssl", *map(str, argv)], input=data, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


class Authority:
    """A certificate authority in a folder. Certificates of the authority are named after `file`."""

    def __init__(self, folder, file="ca"):
        self.folder = folder
        self.cert, self.key = folder / f"{file}.crt", folder / f"{file}.key"
        where = ["-keyout", self.key, "-out", self.cert]
        openssl("req", "-x509", *EC, "-days", 30, "-subj", f"/CN=weir test {file}", *where)

    @classmethod
    def at(cls, folder, file="ca"):
        """Returns the authority that was made in this folder."""
        authority = cls.__new__(cls)
        authority.folder, authority.cert, authority.key = folder, folder / f"{file}.crt", folder / f"{file}.key"
        return authority

    def issue(self, file, subject="/CN=weir", names=HERE, days=30):
        """Makes a certificate and its key. `names` are alternative names as openssl writes names;
        None: no alternative names.
        """
        pair = Pair(self.folder / f"{file}.crt", self.folder / f"{file}.key")
        request = self.folder / f"{file}.csr"
        more = ["-addext", f"subjectAltName={names}"] if names else []
        openssl("req", *EC, "-subj", subject, *more, "-keyout", pair.key, "-out", request)
        sign = ["-CA", self.cert, "-CAkey", self.key, "-CAcreateserial", "-copy_extensions", "copy"]
        openssl("x509", "-req", "-in", request, *sign, "-days", days, "-out", pair.cert)
        return pair

    def issue_bytes(self, file, written, meant, **how):
        """As issue, with the bytes `meant` in place of the equally long `written` of the request:
        openssl cannot write arbitrary bytes.
        """
        pair = self.issue(file, **how)
        der = openssl("x509", "-in", pair.cert, "-outform", "DER")
        _, start, _ = der_element(der, 0)
        _, _, end = der_element(der, start)
        _, _, algorithm_end = der_element(der, end)
        assert der[start:end].count(written) == 1 and len(written) == len(meant)
        body = der[start:end].replace(written, meant)
        signature = openssl("dgst", "-sha256", "-sign", self.key, data=body)
        der = der_wrap(0x30, body + der[end:algorithm_end] + der_wrap(0x03, b"\0" + signature))
        pair.cert.write_text(ssl.DER_cert_to_PEM_cert(der))
        return pair


def der_element(data, at):
    """Returns (tag, start of the content, end of the content)."""
    first = data[at + 1]
    if first < 0x80:
        return data[at], at + 2, at + 2 + first
    start = at + 2 + (first & 0x7F)
    return data[at], start, start + int.from_bytes(data[at + 2 : start], "big")


def der_wrap(tag, content):
    length = len(content)
    if length < 0x80:
        return bytes([tag, length]) + content
    size = (length.bit_length() + 7) // 8
    return bytes([tag, 0x80 | size]) + length.to_bytes(size, "big") + content


def trusting(authority, pair=None):
    """Returns the context that a client needs to verify a server, and to present its own
    certificate.
    """
    context = ssl.create_default_context(cafile=authority.cert)
    if pair:
        context.load_cert_chain(pair.cert, pair.key)
    return context


def shaken(address, context, timeout=TIMEOUT, **how):
    """Returns a TLS socket to that address after the handshake."""
    return context.wrap_socket(dial(address, timeout), server_hostname="localhost", **how)


class TlsConn(Conn):
    def __init__(self, address, context, timeout=TIMEOUT, **how):
        self.sock = shaken(address, context, timeout, **how)
        self.buffer = bytearray()

    def has_ended(self):
        """True if the other side has ended the TLS connection (close_notify). Does not wait; any
        other data is an error.
        """
        timeout = self.sock.gettimeout()
        self.sock.setblocking(False)  # messages of TLS itself may wait: only a read tells
        try:
            data = self.sock.recv(1)
        except ssl.SSLWantReadError:
            return False
        finally:
            self.sock.settimeout(timeout)
        assert not data, "nobody asked for anything"
        return True


def is_refused(address, context):
    """True if the server refuses this client, in the handshake or, in TLS 1.3, after it."""
    try:
        with TlsConn(address, context) as conn:
            conn.sock.sendall(b"PING\r\n")
            return conn.sock.recv(100) == b""
    except (ssl.SSLError, ConnectionError):
        return True


def tls_settings(pair, **more):
    """Returns weir's settings for listeners with that certificate."""
    return {"listen": "tls:127.0.0.1:0", "tls_cert_file": pair.cert, "tls_key_file": pair.key, **more}


class TlsRedis(Redis):
    """redis-server that also listens for TLS."""

    def __init__(self, authority, pair, *options, auth="no"):
        files = ["--tls-auth-clients", auth]
        files += ["--tls-cert-file", pair.cert, "--tls-key-file", pair.key, "--tls-ca-cert-file", authority.cert]
        super().__init__(*map(str, files), *options)
        self.tls_port = None

    @property
    def upstream(self):
        return f"tls:localhost:{self.tls_port}"

    def _launch(self, where):
        self.tls_port = self.tls_port or free_port()
        is_good = super()._launch([*where, "--tls-port", str(self.tls_port)])
        if not is_good:
            self.tls_port = None
        return is_good


def behind(kind, farm, folder):
    """Returns a Redis with or without TLS, and weir's settings for that Redis."""
    if kind == "plain":
        return farm.redis(), {}
    if not has_tls():
        pytest.skip("this redis-server is built without TLS")
    ca = Authority(folder)
    return farm._start(TlsRedis(ca, ca.issue("redis", "/CN=redis"))), {"upstream_tls_ca_file": ca.cert}


def cut_connection(sock):
    """Ends a TLS connection without close_notify."""
    raw = socket.socket(fileno=sock.detach())
    raw.shutdown(socket.SHUT_WR)
    return raw
