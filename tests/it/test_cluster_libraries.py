"""Client libraries behind weir in front of a cluster: ordinary clients while slots move and masters
change, and cluster clients.

The ordinary programs are those of test_restart_libraries.py. None of them knows about clusters.
"""

import os
import subprocess

import pytest
import redis as redis_py
from kit.cluster import Cluster, slot_of, weir_before
from kit.harness import NODE_SOURCES
from kit.programs import Program, collapsed
from test_failover_libraries import PROGRAMS
from test_restart_libraries import QUEUES, in_go, in_php, in_ruby, need

pytestmark = pytest.mark.cluster

ROUNDS = 3


def moved(made):
    """Moves each slot with keys to the next master, in two steps."""
    masters = made.masters
    slots = {slot_of(key) for node in masters for key in node.keys()}
    for slot in slots:
        owner = made.owner(slot)
        target = masters[(masters.index(owner) + 1) % len(masters)]
        made.begin_move(slot, target, owner)
    for slot in slots:
        made.end_move(slot)


def failed_over(made):
    for master in made.masters:
        (replica,) = made.replicas_of(master)
        made.failover(replica)
        made.wait_ok()


@pytest.mark.parametrize("change", [moved, failed_over], ids=lambda change: change.__name__)
@pytest.mark.parametrize("library", [name for name in PROGRAMS if name not in QUEUES])
def test_libraries_see_nothing(library, change, request, farm):
    """The busy program gets no error and loses no connection. The idle program stays in its
    blocking pop while slots move. A master that becomes a replica ends the pop, as without weir,
    and the program asks again.
    """
    argv, behind = PROGRAMS[library](request)
    made = Cluster(farm, replicas=change is failed_over)
    weir = weir_before(made, workers=2, failover_wait="20s")
    port = weir.address[1]
    with Program([*argv, port, "busy", *behind]) as busy, Program([*argv, port, "idle", *behind]) as idle:

        def works():
            seen = busy.lines.count("ok")
            busy.until(lambda: busy.lines.count("ok") > seen + 3, "it works")

        def pops(word):
            idle.until(lambda: sum(node.waiting()[0] for node in made.masters) == 1, "it blocks")
            with weir.connect() as conn:
                assert conn.call("RPUSH", "q", word) in (0, 1)
            idle.until(lambda: f"popped {word}" in idle.lines, f"it pops {word!r}")

        works()
        pops("0")
        for n in range(1, ROUNDS + 1):
            idle.until(lambda: sum(node.waiting()[0] for node in made.masters) == 1, "it blocks")
            change(made)
            works()
            pops(str(n))
        pops("end")
        with weir.connect() as conn:
            conn.call("SET", "stop", "yes")
        assert [busy.code(), idle.code()] == [0, 0], (busy.stderr(), idle.stderr())
    events = collapsed(busy.lines), collapsed(idle.lines)
    assert set(busy.lines) == {"ok"}, events[0]
    popped = [line for line in idle.lines if line.startswith("popped")]
    assert popped == [*(f"popped {n}" for n in range(ROUNDS + 1)), "popped end"], events[1]
    assert change is failed_over or idle.lines == popped, events[1]


def test_clients_of_a_cluster_in_node(node_modules, farm):
    weir = weir_before(Cluster(farm), workers=2)
    argv = ["node", str(NODE_SOURCES / "cluster_behind.js"), str(weir.address[1])]
    done = subprocess.run(argv, env={"NODE_PATH": str(node_modules), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def in_go_with_both(request):
    for name in ("github.com/mna/redisc", "gopkg.in/redis.v5"):
        need(name, not os.path.isdir(f"/usr/share/gocode/src/{name}"))
    return in_go("clusters_behind.go")(request)


OF_CLUSTERS = {
    "go": (in_go_with_both, 2),
    "php": (in_php("cluster_behind.php"), 1),
    "ruby": (in_ruby("cluster_behind.rb"), 1),
}


@pytest.mark.parametrize("language", OF_CLUSTERS)
def test_clients_of_a_cluster_while_slots_move(language, request, farm):
    command, n_clients = OF_CLUSTERS[language]
    argv, _ = command(request)
    made = Cluster(farm)
    weir = weir_before(made, workers=2)
    rounds = 5
    with Program([*argv, weir.address[1], rounds]) as program:
        program.until(lambda: "ok" in program.lines, "it works")
        while not program.has_ended():
            moved(made)
        assert program.code() == 0, (program.lines, program.stderr())
    assert program.lines == ["ok"] * n_clients * rounds


def test_a_client_of_a_cluster_in_python(farm):

    made = Cluster(farm)
    weir = weir_before(made, workers=2)
    host, port = weir.address
    with redis_py.RedisCluster(host, port, decode_responses=True) as cluster:
        keys = [f"k{i}" for i in range(60)]
        assert all(cluster.set(key, key) for key in keys)
        assert [cluster.get(key) for key in keys] == keys
        assert [(node.host, node.port) for node in cluster.get_nodes()] == [(host, port)]
        moved(made)
        assert [cluster.get(key) for key in keys] == keys
        assert cluster.mget_nonatomic(keys) == keys
        assert cluster.delete(*keys) == len(keys)
        with cluster.pipeline() as pipe:
            for key in keys:
                pipe.incr(key)
            assert pipe.execute() == [1] * len(keys)
