"""Slow readers of a cluster's split replies: weir applies back-pressure up to output-limit, as in
front of one server.
"""

import socket
import time

import pytest
from kit.admin import ADMIN, get
from kit.cluster import Cluster, weir_before
from kit.harness import wait_until
from kit.resp import Closed, pipeline

pytestmark = pytest.mark.cluster
MB = 1_000_000
STALL_SECONDS = 1.5  # a reader has a second if other clients wait behind it


def fill(weir, made, size):
    keys = [made.key_at(master) for master in made.masters]
    with weir.connect(timeout=30) as conn:
        for n, key in enumerate(keys):
            assert conn.call("SET", key, b"%d" % n * size) == "OK"
    return keys


def slow_reader(weir, keys, n):
    conn = weir.connect(timeout=60)
    conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20000)
    conn.send(pipeline(*[["MGET", *keys]] * n))
    return conn


def closed_for_buffer(weir):
    lines = get(weir, "/metrics")[2].splitlines()
    found = [line for line in lines if line.startswith("weir_connections_closed_total") and 'reason="buffer"' in line]
    return sum(int(line.split()[-1]) for line in found)


@pytest.mark.parametrize("n_readers,n_requests", [(1, 30), (8, 5)])
def test_they_stop_redis_and_hold_nobody_up(farm, n_readers, n_requests):
    """One reader alone has asked for more than output-limit. Together the readers are owed more
    than a worker reads ahead.
    """
    made = Cluster(farm, masters=3)
    weir = weir_before(made, workers=1, sections=ADMIN)
    keys = fill(weir, made, MB)
    others = [key + "x" for key in keys]
    readers = [slow_reader(weir, keys, n_requests) for _ in range(n_readers)]
    with weir.connect(timeout=10) as conn:
        end = time.monotonic() + STALL_SECONDS
        while time.monotonic() < end:
            for key in others:
                assert conn.call("SET", key, "v") == "OK"
            assert conn.call("MGET", *others) == [b"v"] * 3
    for reader in readers:
        for _ in range(n_requests):
            assert [(value[:1], len(value)) for value in reader.read()] == [(b"%d" % n, MB) for n in range(3)]
        assert reader.call("PING") == "PONG"
    assert closed_for_buffer(weir) == 0
    weir.stop()


def test_one_that_reads_nothing_is_closed_at_output_limit(farm):
    """After a while, replies still in Redis count too, as the sum of all parts. Each part alone is
    within the limit.
    """
    made = Cluster(farm, masters=3)
    weir = weir_before(made, workers=1, output_limit="16mb", sections=ADMIN)
    keys = fill(weir, made, 4 * MB)
    reader = slow_reader(weir, keys, 2)
    wait_until(lambda: closed_for_buffer(weir) == 1, "it is closed", seconds=20)
    assert "of replies are unread, more than output-limit" in weir.log()
    with pytest.raises(Closed):
        for _ in range(2):
            reader.read()
    with weir.connect() as conn:
        assert conn.call("PING") == "PONG"
    weir.stop()
