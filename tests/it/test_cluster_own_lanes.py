"""Connections of a client's own before a cluster: logins, outages, ends and silence, node by node."""

import itertools
import socket

import pytest
from kit.cluster import Cluster, slot_of, weir_before
from kit.harness import Farm
from kit.resp import Closed, Error, encode

FRESH = itertools.count(90)  # a slot for each test that moves one
INCR = "return redis.call('INCR', KEYS[1])"


@pytest.fixture(scope="module")
def made():
    farm = Farm()
    yield Cluster(farm)
    farm.close()


@pytest.fixture(scope="module")
def weir(made):
    for node in made.nodes:
        assert node.call("ACL", "SETUSER", "alice", "on", ">pw", "~*", "&*", "+@all") == "OK"
    return weir_before(made, workers=2)


def logins(node):
    """AUTH and HELLO that it has carried out."""
    lines = node.call("INFO", "commandstats").decode().split("\r\n")
    return sum(int(line.split("calls=")[1].split(",")[0]) for line in lines if line.startswith(("cmdstat_auth", "cmdstat_hello")))


def test_a_login_is_proven_once_at_each_node(made, weir):
    keys = [made.key_at(node) for node in made.masters]
    with weir.connect() as conn:
        assert conn.call("AUTH", "alice", "pw") == "OK"
        for key in keys:
            assert conn.ask(["EVAL", INCR, 1, key], "MULTI", ["GET", key], "EXEC")[1:3] == ["OK", "QUEUED"]
        before = [logins(node) for node in made.masters]
        for _ in range(10):
            for key in keys:
                assert isinstance(conn.call("EVAL", INCR, 1, key), int)
        assert all(logins(node) - was <= 20 for node, was in zip(made.masters, before))  # a lane that another had had


def test_a_node_that_refuses_the_login_answers_that_command_alone(made, weir):
    first, second, _ = made.masters
    for node in made.masters:
        if node is not second:
            assert node.call("ACL", "SETUSER", "carol", "on", ">pw", "~*", "+@all") == "OK"
    home, other = made.key_at(first), made.key_at(second)
    with weir.connect() as conn:
        if conn.call("AUTH", "carol", "pw") != "OK":
            pytest.skip("the node that does not know the user is the home node")
        assert isinstance(conn.call("EVAL", INCR, 1, home), int)
        assert conn.call("EVAL", INCR, 1, other).startswith("WRONGPASS")
        assert conn.call("GET", other).startswith("WRONGPASS")
        assert isinstance(conn.call("EVAL", INCR, 1, home), int)
        assert second.call("ACL", "SETUSER", "carol", "on", ">pw", "~*", "+@all") == "OK"
        assert isinstance(conn.call("EVAL", INCR, 1, other), int)


def test_a_client_that_ends_its_side_is_answered(made, weir):
    source, target, _ = made.masters
    key = made.key_at(source, next(FRESH))
    made.move(slot_of(key), target)
    with weir.connect() as conn:
        conn.send(encode("EVAL", INCR, 1, key) + encode("MULTI") + encode("INCR", key) + encode("EXEC"))
        conn.sock.shutdown(socket.SHUT_WR)
        assert [conn.read() for _ in range(4)] == [1, "OK", "QUEUED", [2]]
        with pytest.raises(Closed):
            conn.read()


def test_a_client_that_hears_nothing_is_served(made, weir):
    source, target, _ = made.masters
    key = made.key_at(source, next(FRESH))
    with weir.connect() as conn:
        conn.send(encode("CLIENT", "REPLY", "OFF"))
        made.move(slot_of(key), target)
        conn.send(encode("EVAL", INCR, 1, key))
        conn.send(encode("MULTI") + encode("INCR", key) + encode("EXEC"))
        assert conn.call("CLIENT", "REPLY", "ON") == "OK"
        assert conn.call("GET", key) == b"2"


def test_subscribers_run_scripts_at_other_nodes(made, weir):
    with weir.connect() as conn:
        conn.call("HELLO", 3)
        assert conn.call("SUBSCRIBE", "c")[0] == b"subscribe"
        for node in made.masters:
            key = made.key_at(node, 2)
            conn.call("SET", key, 0)
            assert conn.ask(["EVAL", INCR, 1, key], "MULTI", ["INCR", key], "EXEC") == [1, "OK", "QUEUED", [2]]


@pytest.mark.cluster
def test_an_outage_is_that_of_its_slots(farm):
    made = Cluster(farm)
    weir = weir_before(made, failover_wait="300ms")
    home, second, third = made.masters
    here, gone = made.key_at(third), made.key_at(second)
    with weir.connect() as conn, weir.connect() as other:
        assert conn.call("EVAL", INCR, 1, gone) == 1
        made.kill(second)
        conn.send(encode("EVAL", INCR, 1, gone))
        assert other.ask(["EVAL", INCR, 1, here], "MULTI", ["INCR", here], "EXEC") == [1, "OK", "QUEUED", [2]]
        try:
            assert isinstance(conn.read(), Error)
        except Closed:
            pass
        assert other.call("EVAL", INCR, 1, here) == 3
