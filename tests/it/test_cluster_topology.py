"""`upstream = cluster:a, b`: weir learns the nodes of a Redis Cluster, and follows what becomes of them."""

from kit.cluster import Cluster, weir_before


def test_the_nodes_are_learnt_from_an_entry_point(farm):
    made = Cluster(farm, masters=3)
    weir = weir_before(made, upstream=made.entries(made.nodes[1]), workers=1)
    weir.wait_for_log("3 masters serve all 16384 slots")
    weir.wait_for_log("ready")
    assert f"forwarding to {made.nodes[1].upstream}" in weir.log(), weir.log()
    weir.stop()
