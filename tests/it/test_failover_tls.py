"""Servers and sentinels that speak only TLS."""

import pytest
from kit.harness import free_port, wait_until
from kit.sentinel import NAME, SECONDS, Node, Sentinel, follows
from kit.server import has_tls
from kit.tls import Authority, TlsConn, trusting

pytestmark = [pytest.mark.failover, pytest.mark.skipif(not has_tls(), reason="this redis-server is built without TLS")]


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def files(authority, pair):
    return ["tls-cert-file", pair.cert, "tls-key-file", pair.key, "tls-ca-cert-file", authority.cert]


class TlsNode(Node):
    """Has a plain port for the tests alone: replicas and sentinels use the TLS port."""

    def __init__(self, authority, pair):
        self.tls_port = free_port()
        words = [f"--{word}" if i % 2 == 0 else str(word) for i, word in enumerate(files(authority, pair))]
        super().__init__("--tls-port", str(self.tls_port), "--tls-replication", "yes", "--tls-auth-clients", "no", *words)

    @property
    def announced(self):
        return ("127.0.0.1", self.tls_port)

    @property
    def upstream(self):
        return f"tls:127.0.0.1:{self.tls_port}"


class TlsSentinel(Sentinel):
    def __init__(self, master, authority, pair, **settings):
        words = list(map(str, files(authority, pair)))
        lines = [f"{key} {value}" for key, value in zip(words[::2], words[1::2])]
        super().__init__(master, *lines, "tls-replication yes", "tls-auth-clients no", **settings)
        self.context = trusting(authority)
        self.lines[0] = "port 0"
        self.lines.insert(0, f"tls-port {self.port}")

    def connect(self, timeout=15):
        return TlsConn(self.address, self.context, timeout)


def make(farm, authority, names="DNS:localhost,IP:127.0.0.1"):
    pair = authority.issue("redis", "/CN=redis", names=names)
    first, second = (farm._start(TlsNode(authority, pair)) for _ in range(2))
    second.become_replica_of(first)
    wait_until(lambda: second.follows(first), "the replica follows", SECONDS)
    return first, second, pair


def test_a_list(farm, authority):
    first, second, _ = make(farm, authority)
    weir = farm.weir(f"{first.upstream}, {second.upstream}", upstream_tls_ca_file=authority.cert, failover_wait="30s")
    assert follows(weir, first)
    assert second.call("REPLICAOF", "NO", "ONE") == "OK"
    first.become_replica_of(second)
    wait_until(lambda: follows(weir, second), "the new master is followed", SECONDS)


def test_sentinels(farm, authority):
    first, second, pair = make(farm, authority)
    sentinels = [farm._start(TlsSentinel(first, authority, pair)) for _ in range(3)]
    addresses = ", ".join(f"tls:127.0.0.1:{sentinel.port}" for sentinel in sentinels)
    weir = farm.weir(f"sentinel:{NAME}@{addresses}", upstream_tls_ca_file=authority.cert, failover_wait="90s")
    wait_until(lambda: follows(weir, first), "the master is followed", SECONDS)
    wait_until(lambda: sentinels[0].call("SENTINEL", "FAILOVER", NAME) == "OK", "a failover begins", SECONDS)
    wait_until(lambda: follows(weir, second), "the new master is followed", SECONDS)


def test_a_certificate_of_another_name(farm, authority):
    """weir accepts neither server, as the certificate is of another name."""
    first, second, _ = make(farm, authority, names="DNS:other.example")
    weir = farm.weir(f"{first.upstream}, {second.upstream}", upstream_tls_ca_file=authority.cert, failover_wait="100ms")
    assert "not ready" in weir.log() and "certificate" in weir.log()
