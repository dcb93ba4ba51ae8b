"""`upstream = cluster:a, b`: weir learns the nodes of a Redis Cluster, and follows changes."""

import contextlib
import re
import time

import pytest
from kit.admin import ADMIN, get, stats
from kit.cluster import SLOTS, Cluster, slot_of
from kit.harness import stopped, wait_until
from kit.resp import Closed, Error, encode
from kit.server import at_least

HURRY = {"WEIR_HURRY": "10"}  # in normal operation weir asks for the topology every second
SECONDS = 20


def before(cluster, upstream=None, **more):
    return cluster.farm.weir(upstream or cluster.upstream, **{"workers": 1, "env": HURRY, "sections": ADMIN, **more})


def served(weir):
    """Returns for each master that weir sends commands to, by address, how many slots the master
    serves.
    """
    return {node["address"]: node["slots"] for node in stats(weir)["upstream"]["nodes"] if node["use"] == "slots"}


def weir_nodes(weir):
    return {node["address"] for node in stats(weir)["upstream"]["nodes"]}


def table(cluster):
    return {node.upstream: len(cluster.slots_of(node)) for node in cluster.masters}


def wait_table(weir, cluster, what, seconds=SECONDS):
    wanted = table(cluster)
    wait_until(lambda: served(weir) == wanted, what, seconds)


def readyz(weir):
    return get(weir, "/readyz")[::2]


def questions(nodes):
    """Returns how often these nodes were asked CLUSTER NODES."""
    found = [re.search(r"cmdstat_cluster\|nodes:calls=(\d+)", str(node.call("INFO", "commandstats"))) for node in nodes]
    return sum(int(match[1]) for match in found if match)


def test_the_nodes_are_learnt_from_an_entry_point(farm):
    made = Cluster(farm)
    weir = before(made, made.entries(made.nodes[1]))
    weir.wait_for_log("3 masters serve all 16384 slots")
    assert served(weir) == table(made) and len(served(weir)) == 3
    assert readyz(weir) == (200, "ready\n")
    told = stats(weir)["upstream"]
    assert told["cluster"] and told["slots_up"] == told["slots_served"] == SLOTS
    weir.stop()


@pytest.mark.cluster
def test_a_slot_on_its_way_and_its_end(farm):
    made = Cluster(farm)
    weir = before(made)
    source, target = made.masters[:2]
    slot = slot_of(made.key_at(source))
    made.begin_move(slot, target)

    def moving():
        return {node["address"] for node in stats(weir)["upstream"]["nodes"] if node["slots_moving"] == 1}

    wait_until(lambda: moving() == {source.upstream, target.upstream}, "the slot is seen on its way", SECONDS)
    made.end_move(slot)
    wait_table(weir, made, "the slot is seen at its new owner")
    wait_until(lambda: not moving(), "it is on its way no more", SECONDS)
    weir.stop()


def test_a_shard_that_fails_over(farm):
    """kill -9 of a master: weir sees the replica within node-timeout and 3 s. The rows of other
    shards stay meanwhile.
    """
    made = Cluster(farm, replicas=1)
    weir = before(made)
    lost = made.masters[0]
    slots = made.kill(lost)
    killed = time.monotonic()
    assert len(served(weir)) == 3, "what fails leaves the rows as they are"
    heir = made.wait_served(slots)
    wait_until(lambda: heir.upstream in served(weir) and lost.upstream not in served(weir), "the failover is seen", SECONDS)
    took = time.monotonic() - killed
    assert took < 1 + 3, took
    weir.wait_for_log(f"{lost.upstream} no longer serves slots, {heir.upstream} serves slot")
    wait_until(lambda: readyz(weir) == (200, "ready\n"), "all slots are served", SECONDS)
    lost.start()
    made.wait_ok()
    made.failover(lost)
    wait_table(weir, made, "and back by hand")
    weir.stop()


@pytest.mark.cluster
def test_a_shard_that_is_away(farm):
    """weir stays ready for the other slots, and reports which part is missing."""
    made = Cluster(farm)
    weir = before(made, env={"WEIR_HURRY": "3"})
    lost = made.masters[2]
    slots = len(made.kill(lost))
    part = f"{SLOTS - slots} of {SLOTS} slots are served; {slots} slots are away with {lost.upstream}"
    wait_until(lambda: readyz(weir) == (200, f"ready: {part}\n"), "the part is named", SECONDS)
    weir.wait_for_log(part)
    assert any(finding["title"] == "Slots are not served" for finding in stats(weir)["findings"])
    lost.start()
    wait_until(lambda: readyz(weir) == (200, "ready\n"), "it is back", SECONDS)
    made.wait_ok()

    def is_calm():
        first = questions(made.nodes)
        time.sleep(1)
        return questions(made.nodes) <= first + 1

    wait_until(is_calm, "nothing is urgent any more", SECONDS)
    weir.stop()


@pytest.mark.cluster
def test_masters_come_and_go(farm):
    made = Cluster(farm, masters=2)
    weir = before(made)
    added = made.add_master()
    assert added.upstream not in served(weir), "a master without slots has no row"
    source = made.masters[0]
    made.move_all(source, added, slots=sorted(made.slots_of(source))[:4])
    wait_table(weir, made, "the one that is added serves slots")
    assert len(served(weir)) == 3
    made.move_all(added, source)
    made.remove(added)
    wait_table(weir, made, "it is gone")
    wait_until(lambda: added.upstream not in weir_nodes(weir), "weir has no connection to it any more", SECONDS)
    weir.stop()


@pytest.mark.cluster
def test_the_home_node_moves_only_where_it_must(farm):
    """Another master becomes the default node when the present one serves no slots any more."""
    made = Cluster(farm, masters=2, replicas=1)
    weir = before(made, made.entries(made.nodes[1]))
    home = made.nodes[1]
    (heir,) = made.replicas_of(home)
    with weir.connect() as conn:
        made.failover(heir)
        wait_table(weir, made, "the failover is seen")
        assert conn.call("PING") == "PONG"
    weir.stop()


@pytest.mark.cluster
def test_a_dead_shard_is_asked_about_at_most_ten_times_a_second(farm):
    made = Cluster(farm)
    weir = before(made, failover_wait="200ms")
    lost = made.masters[2]
    key = made.key_at(lost)
    made.kill(lost)
    alive = made.live()
    first, began = questions(alive), time.monotonic()
    while time.monotonic() < began + 3:
        with contextlib.suppress(Closed, ConnectionError), weir.connect() as conn:
            conn.ask(*(["GET", key] for _ in range(20)))
    asked = questions(alive) - first - 1  # one for the second look at the node
    assert asked <= 10 * (time.monotonic() - began), asked
    weir.stop()


def closed(conn):
    """True once the connection is closed, after any replies."""
    with contextlib.suppress(TimeoutError):
        try:
            while True:
                conn.read()
        except (Closed, ConnectionError):
            return True
    return False


@pytest.mark.cluster
def test_a_master_that_hangs_and_is_replaced(farm):
    """A client with a call on the master is closed once another master serves its slots. Other
    shards answer meanwhile.
    """
    made = Cluster(farm, replicas=1)
    weir = before(made, upstream_check="100ms", connect_timeout="500ms")
    lost, other = made.masters[:2]
    key, fine = made.key_at(lost), made.key_at(other)
    (heir,) = made.replicas_of(lost)
    with weir.connect() as conn, weir.connect() as beside:
        assert conn.call("SET", key, "1") == "OK"
        with stopped(lost):
            conn.send(b"GET %s\r\n" % key.encode())
            wait_until(lambda: heir.upstream in served(weir), "the failover is seen", SECONDS)
            assert beside.call("SET", fine, "1") == "OK"
            wait_until(lambda: closed(conn), "a client that hangs there is closed", SECONDS)
            with weir.connect() as again:
                assert again.call("SET", key, "2") == "OK"
        made.wait_ok()
    weir.stop()


@pytest.mark.cluster
def test_a_node_that_only_weir_cannot_reach(farm):
    made = Cluster(farm, masters=2, is_relayed=True)
    weir = before(made, upstream_check="100ms", connect_timeout="300ms", failover_wait="300ms")
    cut = made.masters[1]
    key, fine = made.key_at(cut), made.key_at(made.masters[0])
    with weir.connect() as conn:
        assert conn.ask(["SET", key, "1"], ["SET", fine, "1"]) == ["OK", "OK"]
        with cut.relay.parted():
            wait_until(lambda: "are away with " + cut.upstream in readyz(weir)[1], "it is away", SECONDS)
            with weir.connect() as beside:
                assert beside.call("GET", fine) == b"1"
            assert len(served(weir)) == 2
        wait_until(lambda: readyz(weir) == (200, "ready\n"), "it is back", SECONDS)
    with weir.connect() as conn:
        assert conn.call("GET", key) == b"1"
    weir.stop()


@pytest.mark.cluster
@pytest.mark.skipif(not at_least(7, 0), reason="up to 6.2 a subcommand is not taken away alone")
def test_a_user_that_may_not_ask(farm):
    made = Cluster(farm, masters=2)
    for node in made.nodes:
        node.call("ACL", "SETUSER", "weir", "on", ">pw", "~*", "&*", "+@all", "-cluster|nodes")
    secret = made.nodes[0].folder / "secret"
    secret.write_text("pw\n")
    weir = before(made, upstream_user="weir", upstream_password_file=secret)
    assert readyz(weir)[0] == 503 and "NOPERM" in readyz(weir)[1], readyz(weir)
    weir.wait_for_log("ACL SETUSER weir +cluster|nodes")
    made.nodes[1].call("ACL", "SETUSER", "weir", "+cluster|nodes")
    wait_until(lambda: readyz(weir)[0] == 200, "one that tells is enough", SECONDS)
    assert served(weir) == table(made)
    weir.stop()


@pytest.mark.cluster
def test_the_rights_that_a_cluster_wants(farm):
    """Without a user of weir's own, the line for operators also lists the rights for a cluster."""
    made = Cluster(farm, masters=2)
    for node in made.nodes:
        node.call("CONFIG", "SET", "masterauth", "pw")
        node.call("CONFIG", "SET", "requirepass", "pw")
    weir = before(made)
    weir.wait_for_log(" +cluster|nodes +role +asking")
    weir.stop()


@pytest.mark.cluster
def test_an_upgrade_before_a_cluster(farm):
    made = Cluster(farm, masters=2)
    weir = before(made)
    keys = made.keys_everywhere(4)
    with weir.connect() as conn:
        assert conn.ask(*(["SET", key, "1"] for key in keys)) == ["OK"] * 4
    weir.upgrade()
    with weir.connect() as conn:
        assert conn.ask(*(["GET", key] for key in keys)) == [b"1"] * 4
    weir.stop()


STORY = (
    r"{}, after (\S+) s without a master; commands that waited: (\d+), refused: (\d+), retried: \d+; "
    r"connections lost with commands in flight: (\d+)"
)


def told(weir, begin):
    found = lambda: re.search(STORY.format(begin), weir.log())
    missed, waited, refused, lost = wait_until(found, "the story is told", SECONDS).groups()
    return float(missed), int(waited), int(refused), int(lost)


@pytest.mark.cluster
def test_the_failover_of_a_shard_is_told_in_a_line(farm):
    """One log line for each shard that fails over, as for a replicated server. Other shards get no
    line.
    """
    made = Cluster(farm, replicas=1)
    weir = before(made, failover_wait="30s", env={})
    dead = made.masters[1]
    with weir.connect(timeout=60) as waits, weir.connect() as blocks:
        key = made.key_at(dead)
        assert waits.call("SET", key, "v") == "OK"
        assert waits.call("WAIT", 1, 5000) == 1
        blocks.send(encode("BLPOP", made.key_at(dead, 1), 0))
        wait_until(lambda: dead.waiting()[0] == 1, "it blocks")
        slots = made.kill(dead)
        with pytest.raises(Closed):
            blocks.read()
        assert waits.call("SET", key, "w") == "OK"
        heir = made.wait_served(slots)
    missed, waited, refused, lost = told(weir, f"failover: upstream {heir.upstream} is the master in place of {dead.upstream}")
    assert 0.3 <= missed < SECONDS and waited >= 1 and refused == 0 and lost >= 1
    assert weir.log().count("s without a master; commands that waited") == 1
    weir.stop()


@pytest.mark.cluster
def test_a_shard_that_is_back_is_told_of(farm):
    made = Cluster(farm)
    weir = before(made, failover_wait="100ms", when_upstream_down="error", env={})
    dead = made.masters[2]
    made.kill(dead)
    with weir.connect() as conn:
        wait_until(lambda: isinstance(conn.call("GET", made.key_at(dead)), Error), "it is missed", SECONDS)
        dead.start()
        wait_until(lambda: conn.call("GET", made.key_at(dead)) is None, "it is back", SECONDS)
    missed, _, refused, _ = told(weir, f"upstream {dead.upstream} is the master again")
    assert missed > 0 and refused >= 1
    assert weir.log().count("s without a master; commands that waited") == 1
    weir.stop()


@pytest.mark.cluster
def test_an_upgrade_while_no_entry_point_is_there(farm):
    """The new process asks the nodes that the old process knows."""
    made = Cluster(farm, replicas=1)
    entry = made.masters[0]
    weir = before(made, upstream=f"cluster:{entry.upstream}", failover_wait="10s")
    slots = made.kill(entry)
    heir = made.wait_served(slots)
    wait_until(lambda: heir.upstream in served(weir), "weir follows", SECONDS)
    with weir.connect() as conn:
        assert conn.call("SET", made.key_at(heir), "v") == "OK"
    weir.upgrade()
    with weir.connect() as conn:
        assert conn.call("GET", made.key_at(heir)) == b"v"
    wait_until(lambda: served(weir) == table(made), "all masters are known again", SECONDS)
    weir.stop()
