"""Fair share in front of a Redis Cluster: all nodes have one queue, also when the default node
changes.
"""

import threading

import pytest
from kit.cluster import Cluster, weir_before
from kit.harness import wait_until

pytestmark = pytest.mark.cluster


def test_flows_go_on_while_the_home_node_changes(farm):
    """Clients of several subjects contend, on shared and on private lanes. Each command runs once,
    through a failover of every shard.
    """
    cluster = Cluster(farm, replicas=1)
    weir = weir_before(cluster, workers=1, identity="name, ip", failover_wait="5s")
    keys = [cluster.key_at(node) for node in cluster.masters]
    failed, sent, stop = [], [0] * 6, threading.Event()

    def work(n):
        try:
            with weir.connect(timeout=60) as conn:
                conn.call("CLIENT", "SETNAME", f"tenant-{n % 3}")
                while not stop.is_set():
                    replies = conn.ask(*(f"INCR {key}" for key in keys for _ in range(90)))
                    for key in keys:
                        *queued, done = conn.ask("MULTI", *[f"INCR {key}"] * 10, "EXEC")
                        assert isinstance(done, list), (queued, done)
                        replies += done
                    bad = [reply for reply in replies if not isinstance(reply, int)]
                    assert not bad, bad[:3]
                    sent[n] += 100
        except Exception as problem:
            failed.append(problem)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    try:
        for master in cluster.masters:
            before = sum(sent)
            cluster.failover(cluster.replicas_of(master)[0])
            wait_until(lambda: failed or sum(sent) > before + 2000, "they go on")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failed
    with weir.connect() as conn:
        assert [int(conn.call("GET", key)) for key in keys] == [sum(sent)] * 3
