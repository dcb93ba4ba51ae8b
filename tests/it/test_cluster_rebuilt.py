"""A cluster is rebuilt with new epochs. weir follows once the nodes agree, and does not follow a
single node that was reset.
"""

import pytest
from kit.admin import ADMIN, stats
from kit.cluster import SLOTS, Cluster, add_slots
from kit.harness import wait_until
from kit.relay import Relay
from kit.resp import Error
from kit.server import at_least

pytestmark = pytest.mark.cluster
HURRY = {"WEIR_HURRY": "10"}  # in normal operation weir asks for the topology every second
SECONDS = 30


def before(farm, upstream):
    return farm.weir(upstream, workers=1, env=HURRY, sections=ADMIN)


def served(weir):
    """Returns for each master that weir sends commands to, by address, how many slots the master
    serves.
    """
    return {node["address"]: node["slots"] for node in stats(weir)["upstream"]["nodes"] if node["use"] == "slots"}


def reset(node):
    assert node.call("FLUSHALL") == "OK"
    assert node.call("CLUSTER", "RESET", "HARD") == "OK"
    node.id = node.call("CLUSTER", "MYID").decode()


def build_anew(made, bounds):
    """Rebuilds the cluster from the same servers, with new names, epochs from 1, and these shares
    of the slots.
    """
    for node in made.nodes:
        reset(node)
    for n, node in enumerate(made.nodes):
        with node.connect() as conn:
            done = conn.ask(add_slots(range(bounds[n], bounds[n + 1])), f"CLUSTER SET-CONFIG-EPOCH {n + 1}")
        assert done == ["OK"] * 2, done
    for node in made.nodes[1:]:
        made._meet(node, made.nodes[0])
    made.wait_ok()


def is_at(node, key):
    return not isinstance(node.call("GET", key), Error)


# Up to 6.2 all subcommands of CLUSTER are counted together.
CLUSTER_NODES = "cluster|nodes" if at_least(7, 0) else "cluster"


def questions(node):
    """Returns how often the node was asked CLUSTER NODES."""
    told = node.call("INFO", "commandstats").decode()
    return int(told.partition(f"cmdstat_{CLUSTER_NODES}:calls=")[2].partition(",")[0] or 0)


def check(weir, made):
    with weir.connect() as conn:
        for node in made.masters:
            key = made.key_at(node)
            wait_until(lambda: conn.call("SET", key, "new") == "OK", f"a write to {node.upstream}", SECONDS)
            assert node.call("GET", key) == b"new"


def test_the_same_servers(farm):
    made = Cluster(farm)
    for node in made.nodes:
        # the old epochs are higher than the new ones
        assert node.call("CLUSTER", "BUMPEPOCH") != ""
    weir = before(farm, made.upstream)
    wait_until(lambda: len(served(weir)) == 3, "weir knows the cluster", SECONDS)
    build_anew(made, [0, 1000, 9000, SLOTS])
    wanted = {node.upstream: n for node, n in zip(made.nodes, (1000, 8000, SLOTS - 9000))}
    wait_until(lambda: served(weir) == wanted, "weir follows the cluster that was built anew", SECONDS)
    check(weir, made)
    weir.stop()


def test_other_servers_behind_the_entry_point(farm):
    made = Cluster(farm)
    entry = farm._start(Relay())
    entry.target = made.nodes[0].address
    weir = before(farm, f"cluster:{entry.address[0]}:{entry.port}")
    wait_until(lambda: len(served(weir)) == 3, "weir knows the cluster", SECONDS)
    other = Cluster(farm, masters=2)
    entry.target = other.nodes[0].address
    for node in made.nodes:
        node.kill()
    wanted = {node.upstream: SLOTS // 2 for node in other.nodes}
    wait_until(lambda: served(weir) == wanted, "weir follows the other cluster", SECONDS)
    check(weir, other)
    weir.stop()


def test_one_node_that_is_reset_and_used_for_itself(farm):
    made = Cluster(farm)
    weir = before(farm, made.upstream)
    wait_until(lambda: len(served(weir)) == 3, "weir knows the cluster", SECONDS)
    known, lost = served(weir), made.nodes[0]
    reset(lost)
    with lost.connect() as conn:
        assert conn.ask(add_slots(range(SLOTS)), "CLUSTER SET-CONFIG-EPOCH 100") == ["OK"] * 2
    start = [questions(node) for node in made.nodes]
    wait_until(lambda: sum(map(questions, made.nodes)) > sum(start) + 10, "nodes are asked in their turn", SECONDS)
    # the nodes heard of the new name, and no longer know where the old node is
    del known[lost.upstream]
    assert served(weir).items() >= known.items() and served(weir).get(lost.upstream) in (None, SLOTS // 3)
    with weir.connect() as conn:
        for node in made.nodes[1:]:
            key = next(f"k{i}" for i in range(10**6) if is_at(node, f"k{i}"))
            assert conn.call("SET", key, "v") == "OK" and node.call("GET", key) == b"v"
    weir.stop()
