"""LIMIT across a failover: state on a replica is kept, and losses of Redis' are bounded."""

import signal
import threading

import pytest
from kit.harness import wait_until
from kit.relay import Relay
from kit.resp import Error
from kit.sentinel import Deployment, Node, follows

MOST = 10
RATES = {
    "FUNNEL": f"{MOST}/3600s BURST {MOST}",
    "BUCKET": f"{MOST}/3600s BURST {MOST}",
    "FIXED": f"{MOST}/3600s FROM FIRST",
    "SLIDING": f"{MOST}/3600s",
    "SLIDING-APPROX": f"{MOST}/3600s APPROX",
}
ALGORITHMS = pytest.mark.parametrize("algorithm", RATES)


def passes(conn, algorithm, times):
    """Returns how many of this many calls pass."""
    words = f"LIMIT {algorithm.partition('-')[0]} {algorithm} {RATES[algorithm]}".split()
    replies = [conn.call(*words) for _ in range(times)]
    assert not any(isinstance(reply, Error) for reply in replies), replies
    return sum(reply[0] == 0 for reply in replies)


def kill(node):
    node.signal(signal.SIGKILL)
    node.wait()


@pytest.mark.failover
@pytest.mark.parametrize("way", ["killed", "by hand"])
def test_decisions_and_permits_are_kept(way, farm):
    """All state that the replicas had survives."""
    made = Deployment(farm)
    weir = farm.weir(made.upstream, failover_wait="10s")
    old = made.master
    with weir.connect() as conn:
        assert {algorithm: passes(conn, algorithm, 7) for algorithm in RATES} == dict.fromkeys(RATES, 7)
        token = conn.call("LIMIT", "ACQUIRE", "permit", 1, 600000)[1]
        assert conn.call("WAIT", 2, 10000) == 2
        if way == "killed":
            kill(old)
        else:
            made.begin_failover()
        new = made.wait_switched(old)
        wait_until(lambda: follows(weir, new), "weir follows")
    with weir.connect() as conn:
        assert {algorithm: passes(conn, algorithm, 7) for algorithm in RATES} == dict.fromkeys(RATES, MOST - 7)
        assert conn.call("LIMIT", "ACQUIRE", "permit", 1, 600000)[:2] == [1, None]
        assert conn.call("LIMIT", "RENEW", "permit", token, 600000) == 1
        assert conn.call("LIMIT", "RELEASE", "permit", token) == 1
        assert conn.call("LIMIT", "ACQUIRE", "permit", 1, 600000)[0] == 0


@pytest.fixture
def lagging(farm):
    """A master, a replica, and the relay between them."""
    old = farm._start(Node())
    relay = farm._start(Relay(old.address))
    new = farm._start(Node())
    assert new.call("REPLICAOF", *relay.address) == "OK"
    wait_until(lambda: new.call("ROLE")[3] == b"connected", "it follows")
    return old, relay, new


@pytest.mark.failover
def test_what_redis_loses_is_bounded(farm, lagging):
    """Units that the replica lacked pass once more, and no more than that: at most the burst."""
    old, relay, new = lagging
    weir = farm.weir(f"{old.upstream}, {new.upstream}", failover_wait="20s")
    with weir.connect() as conn:
        assert {algorithm: passes(conn, algorithm, 4) for algorithm in RATES} == dict.fromkeys(RATES, 4)
        kept = conn.call("LIMIT", "ACQUIRE", "permits", 2, 600000)[1]
        assert conn.call("WAIT", 1, 10000) == 1
        relay.cut()
        assert {algorithm: passes(conn, algorithm, 9) for algorithm in RATES} == dict.fromkeys(RATES, MOST - 4)
        lost = conn.call("LIMIT", "ACQUIRE", "permits", 2, 600000)[1]
    kill(old)
    relay.reset()
    assert new.call("REPLICAOF", "NO", "ONE") == "OK"
    wait_until(lambda: follows(weir, new), "weir follows")
    with weir.connect() as conn:
        for algorithm in RATES:  # weir may remember a refusal for a second
            wait_until(lambda: passes(conn, algorithm, 1), "it passes again")
        assert {algorithm: passes(conn, algorithm, 20) for algorithm in RATES} == dict.fromkeys(RATES, MOST - 4 - 1)
        assert conn.call("LIMIT", "RENEW", "permits", kept, 600000) == 1
        assert conn.call("LIMIT", "RENEW", "permits", lost, 600000) == 0, "its holder hears that it has none any more"
        assert [conn.call("LIMIT", "ACQUIRE", "permits", 2, 600000)[0] for _ in range(2)] == [0, 1]


@pytest.mark.failover
def test_those_that_wait_for_a_permit(farm):
    """Each client gets the permit after the one before, or an error that Redis was away. No two
    hold it at once.
    """
    made = Deployment(farm)
    weir = farm.weir(made.upstream, failover_wait="10s")
    with weir.connect() as conn:
        token = conn.call("LIMIT", "ACQUIRE", "permit", 1, 600000)[1]
        assert conn.call("WAIT", 2, 10000) == 2
    heard, holders, most = [], [], []

    def wait_for_one():
        with weir.connect(timeout=60) as conn:
            reply = conn.call("LIMIT", "ACQUIRE", "permit", 1, 600000, "WAIT", 40000)
            if isinstance(reply, Error):
                heard.append(reply)
                return
            holders.append(reply[1])
            most.append(len(holders))
            holders.remove(reply[1])
            heard.append("granted" if reply[0] == 0 and conn.call("LIMIT", "RELEASE", "permit", reply[1]) == 1 else reply)

    threads = [threading.Thread(target=wait_for_one) for _ in range(4)]
    for thread in threads:
        thread.start()
    wait_until(lambda: made.master.waiting()[1] > 0, "they listen")
    new = made.failover()
    wait_until(lambda: follows(weir, new), "weir follows")
    with weir.connect() as conn:
        assert conn.call("LIMIT", "RELEASE", "permit", token) == 1
    for thread in threads:
        thread.join()
    assert len(heard) == 4 and set(most) <= {1}
    assert all(word == "granted" or word.startswith("UPSTREAM") for word in heard), heard
