"""Private lanes in front of a cluster: logins, outages, closed and silent connections, node by
node.
"""

import itertools
import random
import socket
import threading

import pytest
from kit.cluster import Cluster, slot_of, weir_before
from kit.harness import Farm
from kit.resp import Closed, Error, encode

FRESH = itertools.count(90)  # a fresh slot for each test that moves one
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
    """Returns how many AUTH and HELLO the node has run."""
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
        # some lanes were another user's before
        assert all(logins(node) - was <= 20 for node, was in zip(made.masters, before))


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


class Busy(threading.Thread):
    """A client that counts in its own keys with every command that needs a private lane, and knows
    each reply.
    """

    def __init__(self, weir, number, tags):
        super().__init__()
        self.conn, self.number, self.tags = weir.connect(), number, tags
        self.dice = random.Random(number)
        self.counts = {}
        self.has_ended = False
        self.wrong = None

    def step(self):
        tag = self.dice.choice(self.tags)
        key, large, queue = (f"{{{tag}}}{kind}{self.number}" for kind in "clq")
        n = self.counts.get(key, 0)
        kind = self.dice.randrange(6)
        if kind == 0:
            got = self.conn.ask("MULTI", ["INCR", key], ["INCR", key], "PING", "EXEC")
            expected, n = ["OK", "QUEUED", "QUEUED", "QUEUED", [n + 1, n + 2, "PONG"]], n + 2
        elif kind == 1:
            got, expected, n = self.conn.call("EVAL", INCR, 1, key), n + 1, n + 1
        elif kind == 2:
            got = self.conn.ask(["INCR", key], ["EVAL", INCR, 1, key], ["INCR", key])
            expected, n = [n + 1, n + 2, n + 3], n + 3
        elif kind == 3:
            got = self.conn.ask(["WATCH", key], "MULTI", ["INCR", key], "EXEC")
            is_lost = got[3] is None
            expected, n = ["OK", "OK", "QUEUED", None if is_lost else [n + 1]], n + (not is_lost)
        elif kind == 4:
            got = self.conn.ask(["RPUSH", queue, "v"], ["BLPOP", queue, 5])
            expected = [1, [queue.encode(), b"v"]]
        else:
            got = self.conn.ask(["SET", large, "v" * 70000], ["STRLEN", large])
            expected = got if got[0] == Error("UPSTREAM moved") else ["OK", 70000]
        self.counts[key] = n
        if got != expected:
            self.wrong = (kind, key, got, expected)

    def run(self):
        while not self.has_ended and self.wrong is None:
            self.step()


@pytest.mark.cluster
def test_slots_move_under_clients_that_count(farm):
    made = Cluster(farm)
    weir = weir_before(made, workers=2, redirect_timeout="5s")
    masters = made.masters
    tags = [made.tag_at(masters[n % 3], 200 + n) for n in range(30)]
    clients = [Busy(weir, n, tags) for n in range(8)]
    for client in clients:
        client.start()
    for n, tag in enumerate(tags):  # each slot moves once, and none moves back
        slot = slot_of(f"{{{tag}}}")
        made.begin_move(slot, masters[(n + 1) % 3])
        made.move_keys(slot, 5)
        made.end_move(slot)
    for client in clients:
        client.has_ended = True
        client.join(20)
    assert [client.wrong for client in clients if client.wrong] == []
    with weir.connect() as conn:
        counts = {key: n for client in clients for key, n in client.counts.items() if n > 0}
        assert {key: int(conn.call("GET", key)) for key in counts} == counts
