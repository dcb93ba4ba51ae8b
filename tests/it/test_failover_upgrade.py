"""A new process that takes over (SIGUSR2) follows the master as the old process did."""

import pytest
from kit.harness import wait_until
from kit.sentinel import SECONDS, Deployment, Node, follows

pytestmark = pytest.mark.failover


def test_over_a_failover(farm):
    """Failovers before, during, and after the upgrade."""
    made = Deployment(farm)
    weir = farm.weir(made.upstream, failover_wait="90s", drain_timeout="10s")
    assert follows(weir, made.master)
    with weir.connect() as kept:
        assert kept.call("SET", "kept", "1") == "OK"
        made.begin_failover()
        weir.upgrade()
    new = made.wait_switched(made.nodes[0])
    wait_until(lambda: follows(weir, new), "the new process follows", SECONDS)
    made.wait_settled()
    newest = made.failover()
    wait_until(lambda: follows(weir, newest), "and again", SECONDS)


def test_without_a_master(farm):
    """The old process is not ready either, so the new one takes over. The new one serves as soon as
    there is a master.
    """
    first, second = farm._start(Node()), farm._start(Node())
    first.become_replica_of(second)
    second.become_replica_of(first)
    weir = farm.weir(f"{first.upstream}, {second.upstream}", failover_wait="90s", env={"WEIR_HURRY": "4"})
    assert "has no master" in weir.log()
    weir.upgrade()
    assert second.call("REPLICAOF", "NO", "ONE") == "OK"
    wait_until(lambda: follows(weir, second), "the new process serves it", SECONDS)
