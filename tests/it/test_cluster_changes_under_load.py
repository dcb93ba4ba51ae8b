"""Clusters change under pipelined clients that count: slots move, masters fail over, fail, join and
leave.
"""

import os
import random
import re
import shutil
import subprocess
import threading
import time
import traceback

import pytest
from kit.admin import ADMIN
from kit.cluster import Cluster, slot_of, weir_before
from kit.harness import IS_LONG, wait_until
from kit.server import REDIS_SERVER
from kit.spread_counting import SpreadCounters
from test_cluster_topology import served

pytestmark = pytest.mark.cluster

CLIENTS = 50
SECONDS = 60 if IS_LONG else 15
WORKERS = [2, 1] if IS_LONG else [2]
NODE_TIMEOUT = 1.0
RECOVERY = NODE_TIMEOUT + 3.0
IS_STARVED = os.getloadavg()[0] > 2 * os.cpu_count()


def home_first(weir, made):
    """Returns the masters, with the default node (for commands without keys) first."""
    with weir.connect() as conn:
        address = re.search(r"weir_node:(\S+)", conn.call("INFO", "server").decode())[1]
    return sorted(made.masters, key=lambda node: node.upstream != address)


def final(weir):
    conn = weir.connect(timeout=30)
    return conn.call


def redis_cli():
    """Returns the redis-cli beside the server, or the installed one."""
    beside = shutil.which(REDIS_SERVER).replace("-server", "-cli")
    return beside if os.access(beside, os.X_OK) else "redis-cli"


class Mover:
    """Moves slots back and forth, from `with` to its end."""

    def __init__(self, made, slots, seed=1):
        self.made, self.slots = made, slots
        self.random = random.Random(seed)
        self.n_moved, self.error, self.is_over = 0, None, False
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()
        assert self.error is None, self.error

    def _move(self):
        slot = self.random.choice(self.slots)
        source = self.made.agreed_owner(slot)
        target = self.random.choice([node for node in self.made.masters if node is not source])
        self.made.move(slot, target, source)
        self.n_moved += 1

    def _run(self):
        try:
            while not self.is_over:
                self._move()
        except Exception:  # noqa: BLE001  (told by the thread that waits)
            self.error = traceback.format_exc()


class Resharder(Mover):
    """Reshards as an operator does: redis-cli --cluster reshard, and --cluster rebalance with other
    weights each time.
    """

    SLOTS = 500 if IS_LONG else 100

    def _move(self):
        masters = self.made.masters
        source, target, _ = self.random.sample(masters, 3)
        self._manage("reshard", "--cluster-from", source.id, "--cluster-to", target.id, "--cluster-slots", self.SLOTS, "--cluster-yes")
        weights = [f"{node.id}={self.random.choice(['1', '1.1'])}" for node in masters]
        self._manage("rebalance", "--cluster-threshold", 1, "--cluster-weight", *weights)

    def _manage(self, *words):
        self.made.wait_ok()  # otherwise redis-cli refuses
        argv = [redis_cli(), "--cluster", words[0], self.made.masters[0].upstream, *map(str, words[1:])]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr
        self.n_moved += len(re.findall(r"^Moving slot \d+ from \S+ to ", done.stdout, re.M))
        self.n_moved += sum(map(int, re.findall(r"^Moving (\d+) slots from ", done.stdout, re.M)))


@pytest.mark.parametrize("how", [Mover, Resharder])
@pytest.mark.parametrize("workers", WORKERS)
def test_slots_that_move_to_and_fro(workers, how, farm):
    made = Cluster(farm)
    weir = weir_before(made, workers=workers)
    with SpreadCounters(weir.address, CLIENTS) as counters:
        slots = sorted({slot_of(key) for key in counters.all_keys()})
        with how(made, slots) as mover:
            until = time.monotonic() + SECONDS
            wait_until(lambda: time.monotonic() > until or mover.error or counters.wrong, "slots move", SECONDS + 5)
        counters.wait_served(time.monotonic())
    counters.assert_undisturbed()
    counters.assert_counted(final(weir))
    print(mover.n_moved, "slots moved in", SECONDS, "s;", sum(len(client.acks) for client in counters.clients), "INCR")
    assert mover.n_moved > 2 * SECONDS, mover.n_moved


@pytest.mark.parametrize("workers", WORKERS)
def test_failovers_by_hand(workers, farm):
    made = Cluster(farm, replicas=1)
    weir = weir_before(made, workers=workers, failover_wait="5s")
    with SpreadCounters(weir.address, CLIENTS) as counters:
        for _ in range(3 if IS_LONG else 1):
            for master in made.masters:
                (replica,) = made.replicas_of(master)
                made.failover(replica)
                counters.wait_served(time.monotonic())
                made.wait_ok()
    counters.assert_undisturbed()
    counters.assert_counted(final(weir))


def test_a_master_that_is_killed(farm):
    """Clients of other slots notice nothing. Clients with calls on the killed master lose their
    connections, and go on at its replica.
    """
    made = Cluster(farm, replicas=1)
    weir = weir_before(made, workers=2, failover_wait="5s")
    *others, dead = home_first(weir, made)
    there = [made.key_at(dead, n) for n in range(20)]
    elsewhere = [made.key_at(others[n % 2], n) for n in range(40)]
    idle = [weir.connect(timeout=30) for _ in range(20)]
    for n, conn in enumerate(idle):
        assert conn.call("SET", f"idle:{n}", n) == "OK"
        assert conn.call("SET", there[n], n) == "OK"
    assert dead.call("WAIT", 1, 5000) == 1
    with SpreadCounters(weir.address, 40, lambda n: [elsewhere[n]]) as untouched:
        with SpreadCounters(weir.address, 20, lambda n: [f"x{n}{there[n]}"]) as hit:
            began = time.monotonic()
            wait_until(lambda: time.monotonic() > began + 2, "time passes without a fault", 5)
            killed = time.monotonic()
            slots = made.kill(dead)
            took = hit.wait_served(killed + 0.1) - killed
            made.wait_served(slots)
            ended = time.monotonic()
            quiet, beside = untouched.p99(began, killed), untouched.p99(killed, ended)
            for n, conn in enumerate(idle):
                assert conn.call("GET", there[n]) == b"%d" % n, "with nothing in flight there it sees nothing"
    untouched.assert_undisturbed()
    untouched.assert_counted(final(weir))
    hit.assert_sound()
    assert not hit.errors, hit.errors[:3]
    assert all(n_waited for _, _, n_waited in hit.closed), "only what is in flight ends"
    print("recovered within", took, "s; p99 of others", quiet, "and", beside)
    assert took <= RECOVERY * (2 if IS_STARVED else 1), took
    assert beside <= max(2 * quiet, 0.05), (quiet, beside)


def test_a_master_that_is_killed_without_a_replica(farm):
    """The slots of the killed master are unavailable until the master returns; all other slots
    work. No client's call waits behind another client's call for these slots.
    """
    made = Cluster(farm)
    weir = weir_before(made, workers=1, failover_wait="300ms", when_upstream_down="error")
    dead, *others = home_first(weir, made)
    key, other = made.key_at(dead), made.key_at(others[0], 50)
    with weir.connect() as conn, weir.connect() as waits:
        assert conn.ask(["SET", key, "v"], ["SET", other, "w"]) == ["OK", "OK"]
        made.kill(dead)
        began = time.monotonic()
        assert waits.call("GET", key).startswith(("UPSTREAM", "CLUSTERDOWN"))
        assert time.monotonic() - began < 5
        wait_until(lambda: waits.call("ECHO", "x") == b"x", "commands without a key go elsewhere", 15)
        with SpreadCounters(weir.address, 10, lambda n: [f"x{made.key_at(others[n % 2], n)}"]) as untouched:
            untouched.wait_served(time.monotonic())
        untouched.assert_undisturbed()
        dead.start()
        made.wait_ok()
        wait_until(lambda: waits.call("SET", key, "v") == "OK", "its slots are served", 15)


@pytest.mark.parametrize("workers", WORKERS)
def test_masters_that_come_and_go(workers, farm):
    made = Cluster(farm)
    weir = weir_before(made, workers=workers, failover_wait="5s", sections=ADMIN)
    with SpreadCounters(weir.address, CLIENTS) as counters:
        slots = sorted({slot_of(key) for key in counters.all_keys()})
        added = made.add_master()
        owners = {slot: node for node in made.masters for slot in made.slots_of(node)}
        for slot in slots[:100]:
            made.move(slot, added, owners[slot])
        counters.wait_served(time.monotonic())
        assert made.slots_of(added) == set(slots[:100])
        made.move_all(added, made.masters[0])
        wait_until(lambda: added.upstream not in served(weir), "weir sends nothing there any more", 15)
        # requests in flight are lost with the master, and their clients are closed
        counters.wait_sent_anew()
        made.remove(added)
        counters.wait_served(time.monotonic())
    counters.assert_undisturbed()
    counters.assert_counted(final(weir))
