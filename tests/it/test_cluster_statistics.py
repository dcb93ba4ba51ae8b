"""What operators see of a cluster: LIMIT UPSTREAM, the statistics, the page and the metrics."""

import pytest
from kit.admin import get, stats
from kit.browser import page_of
from kit.cluster import SLOTS, Cluster, slot_of
from kit.harness import wait_until
from test_upstream_statistics import metric, start, upstream


def seen(weir, node):
    row = upstream(weir)[node.upstream]
    return row["used_for"], row["slots"], row["slots_moving"]


def test_slots_of_each_node(browser, farm):
    made = Cluster(farm)
    weir = start(farm, made.upstream)
    slots = {node: len(made.slots_of(node)) for node in made.nodes}
    wait_until(lambda: all(seen(weir, node) == ("slots", slots[node], 0) for node in made.nodes), "all nodes are seen")
    assert metric(weir, "weir_upstream_slots") == {node.upstream: slots[node] for node in made.nodes}
    assert metric(weir, "weir_upstream_up") == metric(weir, "weir_upstream_master") == dict.fromkeys(metric(weir, "weir_upstream_slots"), 1)
    told = stats(weir)["upstream"]
    assert told["cluster"] and not told["replicated"]
    assert sum(node["slots"] for node in told["nodes"]) == SLOTS
    rows = page_of(browser, weir).tables["nodes"]
    assert rows[0][4] == "Slots" and "5,461" in [row[4] for row in rows]


@pytest.mark.cluster
def test_slots_that_move_and_are_lost(farm):
    made = Cluster(farm)
    weir = start(farm, made.upstream)
    first, second, _ = made.masters
    slot = slot_of(made.key_at(first))
    n = len(made.slots_of(first))
    made.begin_move(slot, second)
    wait_until(lambda: seen(weir, first) == ("slots", n, 1), "a slot is on its way", 30)
    wait_until(lambda: metric(weir, "weir_upstream_slots_moving")[first.upstream] == 1, "the metrics tell it")
    made.end_move(slot)
    wait_until(lambda: seen(weir, first) == ("slots", n - 1, 0), "it has moved", 30)
    made.kill(second)
    wait_until(lambda: upstream(weir)[second.upstream]["state"] == "away", "a node is away", 30)
    wait_until(lambda: metric(weir, "weir_upstream_up")[second.upstream] == 0, "the metrics tell it")
