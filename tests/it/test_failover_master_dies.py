"""A master is killed, stopped or cut off under clients that count; the old master returns."""

import contextlib
import os
import signal
import time

import pytest
from kit.counting import Counters
from kit.harness import MODE_IDS, MODES, wait_until
from kit.sentinel import Deployment, calls, follows

CLIENTS, IDLE = 50, 20
IS_STARVED = os.getloadavg()[0] > 2 * os.cpu_count()
RECOVERY = 6.0 if IS_STARVED else 1.5  # seconds after the sentinels' own switch
WAITS = {"failover_wait": "10s"}


def kill(node):
    node.signal(signal.SIGKILL)
    node.wait()


def stop(node):
    node.signal(signal.SIGSTOP)


def part(node):
    node.relay.cut()


def come_back(node, way):
    """The old master returns, and reports itself as master until a sentinel corrects it."""
    {kill: node.start, stop: lambda: node.signal(signal.SIGCONT), part: lambda: node.relay.heal()}[way]()
    wait_until(lambda: node.role() == "master", "the old master is back")


@contextlib.contextmanager
def silent(sentinels):
    for sentinel in sentinels:
        sentinel.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for sentinel in sentinels:
            sentinel.signal(signal.SIGCONT)


@pytest.fixture(params=MODES, ids=MODE_IDS)
def start(request, farm):
    workers, lanes = request.param
    return lambda made, **settings: farm.weir(made.listed, workers=workers, lanes=lanes, **{**WAITS, **settings})


def idle_clients(weir):
    """Returns clients without requests in flight and without state. With private lanes there are
    none: each client has state at its lane.
    """
    conns = [weir.connect(timeout=30) for _ in range(IDLE if weir.lanes == "shared" else 0)]
    for n, conn in enumerate(conns):
        assert conn.call("SET", f"idle:{n}", 100 + n) == "OK"
    with weir.connect() as conn:
        assert conn.call("WAIT", 2, 10000) == 2
    return conns


def assert_not_written_to(old, weir, counters):
    """No present write arrives at the old master, which reports itself as master."""

    def written():
        return calls(old, "incr"), calls(old, "set")

    def has_done_what_it_had():
        """True once the old master has run its requests in flight; their replies reach no client.
        """
        before = written()
        counters.wait_served(time.monotonic())
        return written() == before

    wait_until(has_done_what_it_had, "nothing more is written")
    before = written()
    began = time.monotonic()
    counters.wait_served(began)
    counters.wait_served(time.monotonic())
    with weir.connect() as conn:
        assert conn.call("SET", "late", "1") == "OK"
    assert old.role() == "master", "or else what it gets is its new master's"
    assert written() == before


@pytest.mark.failover
@pytest.mark.parametrize("way", [kill, stop, part], ids=lambda way: way.__name__)
def test_under_clients_that_count(way, farm, start):
    """Each acknowledged write is counted once, none is sent twice, and no reply reaches another
    client. Clients without requests in flight notice nothing; the others reconnect. The old master
    that returns gets no writes.
    """
    made = Deployment(farm, is_relayed=way is part)
    weir = start(made)
    idle = idle_clients(weir)
    old = made.master
    with Counters(weir.address, CLIENTS) as counters, made.switches() as switches:
        way(old)
        began = time.monotonic()
        new = made.wait_switched(old)
        switched = switches.first(new)
        took = counters.wait_served(switched) - switched
        for n, conn in enumerate(idle):
            assert conn.call("INCRBY", f"idle:{n}", 0) == 100 + n
        with silent(made.sentinels):
            come_back(old, way)
            assert_not_written_to(old, weir, counters)
    counters.assert_sound()
    assert not counters.errors, counters.errors[:3]
    assert weir.lanes == "private" or all(n_waited for _, _, n_waited in counters.closed), "only what is in flight ends"
    print("recovered within", took, "s of the switch")
    assert took <= RECOVERY, (took, switched - began)
    assert follows(weir, new)
