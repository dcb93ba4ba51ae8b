"""Tests the cluster kit itself, without weir."""

import pytest
from kit.cluster import SLOTS, Cluster, keys_in, slot_of
from kit.fake_node import BYE, HANG, FakeNode, moved, node_id, nodes_reply, row
from kit.resp import Closed, Conn, Error, encode
from kit.server import at_least

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize(
    "key, slot", [("foo", 12182), ("{foo}bar", 12182), ("{}z", slot_of(b"{}z")), ("x}{foo}", 12182), ("123456789", 12739)]
)
def test_slots_are_those_of_redis(farm, key, slot):
    node = farm.redis("--cluster-enabled", "yes")
    assert node.call("CLUSTER", "KEYSLOT", key) == slot_of(key) == slot


def test_a_slot_moves_step_by_step(farm):
    made = Cluster(farm)
    source, target, third = made.masters
    assert sum(len(made.slots_of(node)) for node in made.nodes) == SLOTS
    slot = slot_of(made.key_at(source))
    tag = made.tag_at(source)
    keys = [f"{{{tag}}}{n}" for n in range(4)]
    with source.connect() as conn:
        assert conn.ask(*(["SET", key, "v"] for key in keys)) == ["OK"] * 4
        moved = Error("MOVED %d %s" % (slot, source.upstream))
        assert target.call("GET", keys[0]) == third.call("GET", keys[0]) == moved
        made.begin_move(slot, target)
        assert made.move_keys(slot, keys=keys[:2]) == 2
        assert conn.call("GET", keys[0]) == Error("ASK %d %s" % (slot, target.upstream))
        assert conn.call("GET", keys[2]) == b"v"
        assert conn.call("MGET", *keys).startswith("TRYAGAIN" if at_least(7, 0) else "ASK")
    with target.connect() as conn:
        assert conn.ask("ASKING", ["GET", keys[0]]) == ["OK", b"v"]
    made.cancel_move(slot)
    assert source.call("MGET", *keys) == [b"v"] * 4
    made.begin_move(slot, target)
    made.end_move(slot)
    assert made.owner(slot) is target and target.call("MGET", *keys) == [b"v"] * 4
    made.wait_ok()


def test_failovers(farm):
    made = Cluster(farm, replicas=1)
    first = made.masters[0]
    (replica,) = made.replicas_of(first)
    made.failover(replica)
    assert replica in made.masters and first not in made.masters
    made.wait_ok()
    slots = made.kill(replica)
    assert made.wait_served(slots) is first
    replica.start()
    made.wait_ok()
    assert replica.role() == "slave"


def test_masters_come_and_go(farm):
    made = Cluster(farm, masters=2)
    added = made.add_master()
    slot = slot_of(made.key_at(made.masters[0]))
    key = next(keys_in(slot))
    assert made.masters[0].call("SET", key, "v") == "OK"
    made.move(slot, added)
    assert added in made.masters and added.call("GET", key) == b"v"
    made.remove(added)
    made.wait_ok()
    assert made.owner(slot).call("GET", key) == b"v"


def test_cut_off_from_clients_and_behind_a_password(farm):
    made = Cluster(farm, masters=1, replicas=1, is_relayed=True, password="secret")
    master, replica = made.nodes
    assert all(row["address"] == node.upstream for node in made.nodes for row in [made.table()[node.id]])
    with master.relay.parted():
        assert made.is_ok()
    made.failover(replica, "TAKEOVER")
    assert made.masters == [replica]


def test_a_node_that_lies(farm):
    made = Cluster(farm, is_relayed=True)
    node = made.masters[0]
    key = made.key_at(node)
    address = node.announced
    with FakeNode(node) as fake:
        with Conn(address) as conn:
            assert conn.call("SET", key, "v") == "OK"
            fake.answers["GET"] = moved(slot_of(key), "10.9.9.9:6379")
            assert conn.call("GET", key) == Error(f"MOVED {slot_of(key)} 10.9.9.9:6379")
            fake.answers["GET"] = HANG
            conn.send(encode("GET", key))
            assert conn.call("STRLEN", key) == 1
            fake.answers["CLUSTER NODES"] = nodes_reply(row(node_id(1), "?:7000", slots="0-5 7"))
            said = conn.call("CLUSTER", "NODES").decode()
            assert said == node_id(1) + " ?:7000@17000 master - 0 1 1 connected 0-5 7\n"
            assert fake.n_asked("GET") == 2 and fake.most_in(60, "CLUSTER NODES") == 1
    with Conn(address) as conn:
        assert conn.call("GET", key) == b"v"


def test_a_node_that_is_nothing_else(farm):
    with FakeNode() as fake, Conn(fake.address) as conn:
        assert conn.call("HELLO", 3)[b"mode"] == b"cluster"
        assert conn.call("CLUSTER", "NODES").decode().endswith(" 0-16383\n")
        assert conn.call("GET", "k") == b"from the fake node"
        fake.answers["*"] = BYE
        with pytest.raises(Closed):
            conn.call("PING")
