"""WAIT on a cluster: the lowest count over the masters that the client has written to, and never an
early reply.
"""

import time

import pytest
from kit.cluster import Cluster, weir_before
from kit.harness import wait_until
from kit.resp import encode

pytestmark = pytest.mark.cluster


@pytest.fixture
def made(farm):
    return Cluster(farm, masters=2, replicas=1)


def test_wait_counts_replicas_of_what_was_written(made):
    a, b = (made.key_at(node) for node in made.masters)
    with weir_before(made, workers=1).connect() as conn:
        assert conn.call("SET", a, "1") == "OK"
        assert conn.call("WAIT", "1", "5000") == 1
        assert conn.ask(["SET", b, "1"], ["WAIT", "1", "5000"], ["GET", b]) == ["OK", 1, b"1"]
        assert conn.call("DEL", a, b) == 2
        assert conn.call("WAIT", "1", "5000") == 1
        assert conn.call("WAIT", "x", "0").startswith("ERR")


def test_wait_is_never_early(made):
    weir = weir_before(made, workers=1)
    first, second = made.masters
    a, b = made.key_at(first), made.key_at(second)
    (replica,) = made.replicas_of(second)
    replica.signal(19)
    try:
        with weir.connect() as conn:
            assert conn.call("SET", a, "1") == "OK"
            assert conn.call("WAIT", "1", "5000") == 1  # nothing was written at the other master
            assert conn.call("SET", b, "1") == "OK"
            began = time.monotonic()
            assert conn.call("WAIT", "1", "300") == 0
            assert time.monotonic() - began > 0.25
            assert conn.ask(["MGET", a, b], ["WAIT", "1", "50"]) == [[b"1", b"1"], 0]
        with weir.connect() as conn:
            assert conn.call("SET", b, "2") == "OK"
            conn.send(encode("WAIT", "1", "0") + encode("PING"))
            replica.signal(18)
            assert [conn.read(), conn.read()] == [1, "PONG"]
    finally:
        replica.signal(18)


def test_a_client_that_goes_while_it_waits(made):
    weir = weir_before(made, workers=1)
    second = made.masters[1]
    b = made.key_at(second)
    (replica,) = made.replicas_of(second)
    replica.signal(19)
    try:
        with weir.connect() as conn:
            assert conn.call("SET", b, "1") == "OK"
            conn.send(encode("WAIT", "1", "0"))
            wait_until(lambda: "cmd=wait" in second.call("CLIENT", "LIST").decode(), "WAIT has come")
        wait_until(lambda: "cmd=wait" not in second.call("CLIENT", "LIST").decode(), "it is not waited for any more")
    finally:
        replica.signal(18)
    with weir.connect() as conn:
        # WAIT 0 does not block
        conn.send(encode("SET", b, "2") + encode("WAIT", "0", "0") + encode("GET", b))
        conn.sock.shutdown(1)
        assert [conn.read(), conn.read() in (0, 1), conn.read()] == ["OK", True, b"2"]
        assert conn.read_to_end() == b""
