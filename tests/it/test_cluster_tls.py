"""A Redis Cluster with TLS: nodes announce their TLS port to clients that ask over TLS."""

import pytest
from kit.admin import ADMIN, stats
from kit.cluster import SLOTS, add_slots
from kit.harness import wait_until
from kit.server import at_least
from kit.tls import Authority, TlsRedis

pytestmark = pytest.mark.cluster


NAMED = ["--cluster-announce-ip", "10.9.9.9", "--cluster-announce-hostname", "localhost"]


# before 7.0 nodes have no host names
@pytest.mark.parametrize("announced", [[], NAMED][: 1 + at_least(7, 0)])
def test_nodes_are_dialled_at_their_port_for_tls(farm, tmp_path, announced):
    """weir connects by the announced name, which the node's certificate bears. Without a name weir
    uses the host that it asked.
    """
    authority = Authority(tmp_path)
    pair = authority.issue("redis")
    node = farm._start(TlsRedis(authority, pair, "--cluster-enabled", "yes", "--tls-cluster", "yes", *announced))
    assert node.call(*add_slots(range(SLOTS))) == "OK"
    wait_until(lambda: node.call("SET", "key", "1") == "OK", "the cluster is up")
    weir = farm.weir(
        f"cluster:{node.upstream}", workers=1, sections=ADMIN, env={"WEIR_HURRY": "10"}, upstream_tls_ca_file=authority.cert
    )
    weir.wait_for_log("1 master serves all 16384 slots")
    with weir.connect() as conn:
        assert conn.call("GET", "key") == b"1"
    assert [row["address"] for row in stats(weir)["upstream"]["nodes"]] == [node.upstream]
    weir.stop()
