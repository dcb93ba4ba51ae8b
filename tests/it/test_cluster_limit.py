"""LIMIT commands in front of a Redis Cluster: the node of the key's slot decides, also while slots
move and nodes fail.
"""

import re
import threading

import pytest
from kit.admin import ADMIN, get
from kit.cluster import Cluster, keys_in, slot_of, weir_before
from kit.decisions import admitted, decide, decision, decisions, fresh, place
from kit.harness import REPO, Farm, wait_until
from kit.resp import Conn, Error, pipeline
from kit.server import at_least

CROSSING = Error("CROSSSLOT Keys in request don't hash to the same slot")


@pytest.fixture(scope="module")
def shared():
    """A cluster that does not change, and a weir in front of it."""
    farm = Farm()
    cluster = Cluster(farm)
    yield cluster, weir_before(cluster, workers=2)
    farm.close()


@pytest.fixture
def cluster(shared):
    return shared[0]


@pytest.fixture
def conn(shared):
    with shared[1].connect() as conn:
        yield conn


def slot_in(key):
    """Returns the slot of the key that Redis stores for a limit key."""
    return slot_of(f"limit:{key}")


def keys_at(cluster, node, n, name="k"):
    """Returns n keys of different slots with limits that this node decides."""
    slots, found, taken = cluster.slots_of(node), [], set()
    for i in range(100_000):
        key = f"{fresh(name)}"
        slot = slot_in(key)
        if slot in slots and slot not in taken:
            taken.add(slot)
            found.append(key)
        if len(found) == n:
            return found
    raise AssertionError("too few keys")


def neighbours(cluster, node, n):
    """Returns a slot of the node, and n keys with limits in that slot."""
    slot = slot_in("{%s}" % cluster.tag_at(node))
    tag = fresh("{%s}" % cluster.tag_at(node))
    return slot, [f"{tag}-{i}" for i in range(n)]


# ---- which node decides ----

COMMANDS = [
    "LIMIT FUNNEL {} 5/h", "LIMIT BUCKET {} 5/h BURST 5", "LIMIT SLIDING {} 5/h", "LIMIT SLIDING {} 5/h APPROX",
    "LIMIT FIXED {} 5/h", "LIMIT THROTTLE {} 4 1 3600", "CL.THROTTLE {} 4 1 3600",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_each_algorithm_over_three_masters(cluster, conn, command):
    """For each key as many calls pass as on one server. Each node has only the keys of its own
    slots.
    """
    keys = [key for node in cluster.masters for key in keys_at(cluster, node, 10)]
    replies = conn.ask(*(command.format(key) for key in keys for _ in range(8)))
    assert [reply[0] for reply in replies] == ([0] * 5 + [1] * 3) * len(keys)
    for i, node in enumerate(cluster.masters):
        there = {key.decode() for key in node.keys()}
        assert {f"limit:{key}" for key in keys[10 * i : 10 * i + 10]} <= there
        assert {slot_of(key) for key in there} <= cluster.slots_of(node)


def test_warmup_bans_and_named_limits(cluster, shared):
    """Other features that scripts decide. The key of a named limit has its tag where the prefix has
    one.
    """
    weir = weir_before(cluster, limit_prefix="{all}:", sections="[limit sign-up]\nsliding = 2/h\n")
    with weir.connect() as conn:
        assert [decide(conn, f"LIMIT CHECK sign-up {fresh()}").limited for _ in range(5)] == [0] * 5
        owner = cluster.owner(slot_of("{all}"))
        assert sum(key.startswith(b"{all}:sign-up:") for key in owner.keys()) == 5
        one, other = fresh(), fresh()
        call = f"LIMIT ALL FUNNEL {one} 2/h AND FIXED {other} 1/h"
        assert [reply[0] for reply in conn.ask(call, call)] == [0, 1], "they share a slot"
        assert conn.call("LIMIT", "RESET", one, other) == 2


@pytest.mark.cluster
def test_two_workers_share_what_there_is(shared):
    """Many connections, on both workers: exactly as much passes as the limit allows."""
    cluster, weir = shared
    keys = [key for node in cluster.masters for key in keys_at(cluster, node, 3)]
    conns = [weir.connect() for _ in range(8)]
    for conn in conns:
        conn.send(pipeline(*(f"LIMIT FUNNEL {key} 20/d" for _ in range(5) for key in keys)))
    found = {key: 0 for key in keys}
    for conn in conns:
        for _ in range(5):
            for key in keys:
                found[key] += decision(conn.read()).limited == 0
        conn.close()
    assert set(found.values()) == {20}, found


def test_order_for_one_client(cluster, conn):
    """Commands for keys of several nodes in one pipeline: each sees the effects of earlier
    commands, and replies keep their order.
    """
    keys = [key for node in cluster.masters for key in keys_at(cluster, node, 2)]
    take, commands, wanted = "LIMIT FUNNEL {} 1/d", [], []
    for key in keys:
        commands += [f"LIMIT RESET {key}", take, take, f"LIMIT RESET {key}", take, f"LIMIT SLIDING {key} 1/d", f"LIMIT RESET {key}"]
        commands = [command.format(key) for command in commands]
        wanted += [0, 0, 1, 1, 0, "WRONGTYPE", 1]
    replies = conn.ask(*commands)
    said = [r if isinstance(r, int) else r.split()[0] if isinstance(r, Error) else decision(r).limited for r in replies]
    assert said == wanted


def test_scripts_flushed_on_one_node(cluster, conn):
    """weir repairs NOSCRIPT of one node at that node."""
    keys = [keys_at(cluster, node, 1)[0] for node in cluster.masters]
    assert admitted(decisions(conn, *(f"LIMIT SLIDING {key} 2/d" for key in keys))) == 3
    assert cluster.masters[1].call("SCRIPT", "FLUSH") == "OK"
    assert admitted(decisions(conn, *(f"LIMIT SLIDING {key} 2/d" for key in keys for _ in range(2)))) == 3


# ---- several keys ----


def test_keys_of_several_slots_are_refused_before_anything_is_taken(cluster, conn):
    one, other = (keys_at(cluster, node, 1)[0] for node in cluster.masters[:2])
    call = f"LIMIT ALL FUNNEL {one} 1/d AND FUNNEL {other} 1/d"
    assert conn.ask(call, call, "PING") == [CROSSING, CROSSING, "PONG"]
    assert not any(f"limit:{key}".encode() in node.keys() for node in cluster.masters for key in (one, other))
    same = f"LIMIT ALL FUNNEL {{{one}}}a 1/d AND FUNNEL {{{one}}}b 1/d"
    assert [reply[0] for reply in conn.ask(same, same)] == [0, 1]


def test_reset_is_split(cluster, conn):
    """Counts the keys that exist, over all nodes; a repeated key counts once. Afterwards no denial
    is remembered.
    """
    keys = [key for node in cluster.masters for key in keys_at(cluster, node, 5)]
    takes = [f"LIMIT FUNNEL {key} 1/d" for key in keys]
    assert admitted(decisions(conn, *takes)) == 15
    replies = conn.ask(*takes, "LIMIT RESET " + " ".join(keys + keys[:3] + [fresh()]), *takes, "LIMIT RESET " + " ".join(keys), "PING")
    assert [decision(r).limited for r in replies[:15]] == [1] * 15
    assert replies[15] == 15 and replies[-2:] == [15, "PONG"]
    assert [decision(r).limited for r in replies[16:31]] == [0] * 15


def test_acquire_waits_at_each_node(shared):
    """A holder that releases wakes the waiting clients, at whichever node the key is."""
    cluster, weir = shared
    with weir.connect() as holder, weir.connect() as waiter:
        for node in cluster.masters:
            key = keys_at(cluster, node, 1)[0]
            held = place(holder.call("LIMIT", "ACQUIRE", key, 1, 100_000))
            waiter.send(pipeline(f"LIMIT ACQUIRE {key} 1 100000 WAIT 100000"))
            wait_until(lambda: any(n.waiting()[1] > 0 for n in cluster.masters), "it listens")
            assert holder.call("LIMIT", "RELEASE", key, held.token) == 1
            got = place(waiter.read())
            assert got.limited == 0 and holder.call("LIMIT", "RENEW", key, got.token, 1000) == 1


def fields(reply):
    return {k.decode(): v.decode() if isinstance(v, bytes) else v for k, v in zip(reply[::2], reply[1::2])}


def test_explain_and_slow_log_name_the_node(farm):
    """LIMIT EXPLAIN names the slot, also that of the stored key, and the node that serves it. LIMIT
    SLOWLOG names the node that answered.
    """
    cluster = Cluster(farm)
    weir = weir_before(cluster, slowlog_log_slower_than="0", sections="[admin]\nsocket = {folder}/console\n")
    with weir.connect() as conn, Conn(str(weir.folder / "console")) as console:

        def explain(*words):
            found = fields(conn.call("LIMIT", "EXPLAIN", *words))
            return found["slot"], found["server"], found["server_why"]

        for node in cluster.masters:
            key, limited = cluster.key_at(node), keys_at(cluster, node, 1)[0]
            assert explain("GET", key) == (slot_of(key), node.upstream, "the node serves the slot")
            for call in (["FUNNEL", limited, "1/s"], ["RESET", limited]):
                assert explain("LIMIT", *call) == (slot_in(limited), node.upstream, "the node serves the slot")
            assert explain("CL.THROTTLE", limited, 1, 1, 1)[:2] == (slot_in(limited), node.upstream)
            assert decide(conn, f"LIMIT FUNNEL {limited} 5/d").limited == 0
            newest = console.call("LIMIT", "SLOWLOG", "GET", 1)[0]
            assert (newest[3][0], newest[10]) == (b"limit|funnel", node.upstream.encode())
        assert explain("LIMIT", "RESET", *keys_at(cluster, node, 2)) == (None, "several", "its keys have different slots")
        assert explain("MGET", *(cluster.key_at(node) for node in cluster.masters))[:2] == (None, "several")
        assert explain("PING")[0] is None and explain("LIMIT", "STATUS") == (None, "none", "weir itself answers")


# ---- moving slots ----

MOVING = [COMMANDS[0], *(pytest.param(command, marks=pytest.mark.cluster) for command in COMMANDS[1:5])]


@pytest.fixture
def moving(farm):
    cluster = Cluster(farm)
    return cluster, weir_before(cluster, redirect_timeout="1s")


@pytest.mark.parametrize("command", MOVING)
def test_totals_while_a_slot_moves_step_by_step(moving, command):
    """For each key exactly as much passes as its limit allows, whichever node decides."""
    cluster, weir = moving
    source, target = cluster.masters[:2]
    slot, keys = neighbours(cluster, source, 6)
    passed = dict.fromkeys(keys, 0)

    def take(n=1):
        some = [key for _ in range(n) for key in keys]
        with weir.connect() as conn:
            replies = conn.ask(*(command.format(key) for key in some))
        for key, reply in zip(some, replies):
            assert not isinstance(reply, Error), reply
            passed[key] += reply[0] == 0

    take()
    cluster.begin_move(slot, target)
    keys.append(f"{keys[0]}-new")
    passed[keys[-1]] = 0
    take()
    cluster.move_keys(slot, 3)
    take()
    cluster.move_keys(slot, 2)
    take()
    cluster.end_move(slot)
    take(3)
    assert set(passed.values()) == {5}, passed
    assert cluster.owner(slot).id == target.id
    cluster.begin_move(slot, source)
    cluster.move_keys(slot, 2)
    cluster.cancel_move(slot)
    take(2)
    assert set(passed.values()) == {5}, passed


def test_several_keys_while_their_slot_moves(moving):
    """Calls wait for the slot. In the end they pass once, or are refused according to
    limit-when-down. RESET always passes.
    """
    cluster, weir = moving
    source, target = cluster.masters[:2]
    slot, (one, other, third) = neighbours(cluster, source, 3)
    call = f"LIMIT ALL FUNNEL {one} 2/d AND FUNNEL {other} 2/d"
    with weir.connect() as conn, weir.connect() as waiter:
        assert [reply[0] for reply in conn.ask(call, f"LIMIT FUNNEL {third} 2/d")] == [0, 0]
        cluster.begin_move(slot, target)
        cluster.move_keys(slot, keys=[f"limit:{one}"])
        assert isinstance(conn.call(*call.split()), Error), "until redirect-timeout is over"
        assert conn.call("LIMIT", "RESET", third, fresh("{%s}" % one)) == 1
        waiter.send(pipeline(call, call, call))
        cluster.end_move(slot)
        assert [waiter.read()[0] for _ in range(3)] == [0, 1, 1]
        assert conn.call("LIMIT", "RESET", one, other, third) == 2


def rights_of_weir():
    """Returns the rights that the log tells operators to give weir's user on a cluster, without
    name and password.
    """
    source = (REPO / "src/upstream/lane/lack.h").read_text()
    line = "".join(re.findall(r'"([^"]*)"', source[source.index("#define LACK_ACL_LINE") : source.index("#define LACK_ACL_CLUSTER")]))
    more = re.search(r'#define LACK_ACL_CLUSTER "([^"]*)"', source)[1]
    named = re.search(r"^ACL SETUSER weir \.\.\. (.*)$", (REPO / "docs/cluster.md").read_text(), re.M)[1].split()
    assert set(more.split()) <= set(named) <= {*more.split(), *line.split()}
    return [*line.split()[5:], *more.split()]


@pytest.mark.cluster
@pytest.mark.parametrize("may_ask", [True, False])
def test_rights_of_weirs_user_while_a_slot_moves(farm, may_ask):
    """With the rights that weir names. Without +asking a limit in a moving slot is undecided, and
    nothing is counted twice.
    """
    cluster = Cluster(farm)
    for node in cluster.nodes:
        assert node.call("ACL", "SETUSER", "weir", "on", ">pw", *rights_of_weir(), "+asking" if may_ask else "-asking") == "OK"
    secret = cluster.nodes[0].folder / "secret"
    secret.write_text("pw")
    secret.chmod(0o600)
    weir = weir_before(cluster, upstream_user="weir", upstream_password_file=secret)
    source, target = cluster.masters[:2]
    slot, (one, other) = neighbours(cluster, source, 2)
    with weir.connect() as conn:
        assert decide(conn, f"LIMIT FUNNEL {one} 9/d").limited == 0
        cluster.begin_move(slot, target)
        assert isinstance(conn.call("LIMIT", "FUNNEL", other, "9/d"), Error) != may_ask
        cluster.end_move(slot)
        assert decide(conn, f"LIMIT FUNNEL {other} 9/d").remaining == (7 if may_ask else 8)
    said = f"upstream {target.upstream} denies ASKING: LIMIT commands"
    if may_ask:
        assert "denies" not in weir.log()
    else:
        weir.wait_for_log(said)
        assert weir.log().count(said) == 1 and "ACL SETUSER weir +asking" in weir.log()


@pytest.mark.cluster
@pytest.mark.skipif(not at_least(7), reason="up to 6.2 ACL LOG does not tell every refusal")
def test_the_rights_of_weirs_user_are_enough(farm):
    """Topology, limits, reads from replicas, WAIT and a moving slot: no node refuses a command of
    weir's user.
    """
    cluster = Cluster(farm, masters=2, replicas=1)
    for node in cluster.nodes:
        assert node.call("ACL", "SETUSER", "weir", "on", ">pw", *rights_of_weir()) == "OK"
        assert node.call("ACL", "SETUSER", "ann", "on", ">pw", "~*", "+get", "+set", "+wait", "+asking", "+readonly") == "OK"
    secret = cluster.nodes[0].folder / "secret"
    secret.write_text("pw")
    secret.chmod(0o600)
    source, target = cluster.masters[:2]
    weir = cluster.farm.weir(
        cluster.upstream, upstream_user="weir", upstream_password_file=secret, reads="replicas", env={"WEIR_HURRY": "10"}
    )
    slot, (one, other) = neighbours(cluster, source, 2)
    keys = cluster.keys_everywhere(4)
    replicas = [node for node in cluster.nodes if node not in cluster.masters]
    with weir.connect() as conn:
        assert conn.call("AUTH", "ann", "pw") == "OK"
        assert conn.ask(*(["SET", key, "v"] for key in keys)) == ["OK"] * len(keys)
        assert conn.call("WAIT", 1, 5000) == 1

        def are_read():  # about every second client reads from a shard's replica
            with weir.connect() as reader:
                assert reader.call("AUTH", "ann", "pw") == "OK"
                for _ in range(3):
                    assert reader.ask(*(["GET", key] for key in keys)) == [b"v"] * len(keys)
            return all("cmdstat_get:" in str(node.call("INFO", "commandstats")) for node in replicas)

        wait_until(are_read, "replicas are read from", 30)
        assert decide(conn, f"LIMIT FUNNEL {one} 9/d").limited == 0
        held = place(conn.call("LIMIT", "ACQUIRE", fresh("q"), 1, 100_000))
        assert held.limited == 0
        cluster.begin_move(slot, target)
        assert decide(conn, f"LIMIT FUNNEL {other} 9/d").limited == 0
        moved = next(key for key in keys_in(slot))
        assert conn.call("SET", moved, "v") == "OK"
        cluster.end_move(slot)
        assert decide(conn, f"LIMIT FUNNEL {other} 9/d").remaining == 7
        assert conn.call("GET", moved) == b"v"
    refused = [entry for node in cluster.nodes for entry in node.call("ACL", "LOG")]
    assert refused == []
    assert "does not" not in weir.log()
    weir.stop()


def hammer(weir, keys, amount, stop, found):
    with weir.connect() as conn:
        while not stop.is_set():
            replies = conn.ask(*(f"LIMIT FUNNEL {key} {amount}/d" for key in keys))
            for key, reply in zip(keys, replies):
                one = decision(reply)
                found.append((key, one if isinstance(one, Error) else one.limited))


@pytest.mark.cluster
def test_totals_under_a_reshard(moving):
    """Slots with their limits move back and forth under load: no errors, and exact totals."""
    cluster, weir = moving
    source, target = cluster.masters[:2]
    keys = keys_at(cluster, source, 8) + keys_at(cluster, target, 2)
    stop, found = threading.Event(), []
    threads = [threading.Thread(target=hammer, args=(weir, keys, 400, stop, found)) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            for key in keys[:8]:
                cluster.move(slot_in(key), target)
            for key in keys[:8]:
                cluster.move(slot_in(key), source)
        wait_until(lambda: sum(result == 0 for _, result in list(found)) >= 400 * len(keys), "all has passed")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not [result for _, result in found if isinstance(result, Error)]
    passed = {key: sum(k == key and result == 0 for k, result in found) for key in keys}
    assert set(passed.values()) == {400}, passed


def samples(weir, name):
    """Returns the samples of one metric: {the values of its labels: value}."""
    found = re.findall(rf"^{name}{{(.*)}} (\S+)$", get(weir, "/metrics")[2], re.M)
    return {tuple(re.findall('="([^"]*)"', labels)): float(value) for labels, value in found}


def test_metrics_by_node(farm):
    """What each node serves, and how many calls each node has redirected or refused."""
    cluster = Cluster(farm)
    weir = weir_before(cluster, redirect_timeout="20ms", sections=ADMIN)
    source, target, _ = cluster.masters
    slot, (one, other) = neighbours(cluster, source, 2)
    served = {(node.upstream,): float(len(cluster.slots_of(node))) for node in cluster.masters}
    wait_until(lambda: samples(weir, "weir_upstream_slots") == served, "each has its slots")
    assert samples(weir, "weir_slots") == {("up",): 16384, ("away",): 0, ("unserved",): 0}
    with weir.connect() as conn:
        assert decide(conn, f"LIMIT FUNNEL {one} 9/d").limited == 0
        cluster.begin_move(slot, target)
        assert decide(conn, f"LIMIT FUNNEL {other} 9/d").limited == 0
        assert isinstance(conn.call(*f"LIMIT ALL FUNNEL {one} 9/d AND FUNNEL {other} 9/d".split()), Error)
        cluster.end_move(slot)
        assert decide(conn, f"LIMIT FUNNEL {one} 9/d").remaining == 7

        def is_counted():
            found = samples(weir, "weir_upstream_redirects_total")
            assert all(found[(target.upstream, kind)] == 0 for kind in ("moved", "ask", "clusterdown"))
            return all(found[(source.upstream, kind)] >= 1 for kind in ("moved", "ask", "tryagain", "given-up"))

        wait_until(is_counted, "the redirects are counted where they came from")
        sent = samples(weir, "weir_upstream_requests_total")
        assert set(sent) == set(served) and sent[(source.upstream,)] > 0 and sent[(target.upstream,)] > 0


# ---- failing nodes ----


def test_a_dead_shard(farm):
    """Only limits in slots of the failed shard are answered according to limit-when-down."""
    cluster = Cluster(farm)
    weir = weir_before(cluster, failover_wait="100ms", sections="[limit open]\nfunnel = 1/d\nwhen-down = allow\n")
    dead, *others = cluster.masters
    with weir.connect() as conn:
        theirs = [key for node in others for key in keys_at(cluster, node, 3)]
        lost = keys_at(cluster, dead, 3)
        assert admitted(decisions(conn, *(f"LIMIT FUNNEL {key} 9/d" for key in theirs + lost))) == 9
        slots = cluster.kill(dead)
        named = next(key for key in (fresh() for _ in range(10_000)) if slot_of(f"limit:open:{key}") in slots)

        def ask():
            return conn.ask(*(f"LIMIT FUNNEL {key} 9/d" for key in theirs + lost), f"LIMIT CHECK open {named}")

        wait_until(lambda: all(isinstance(r, Error) for r in ask()[6:9]), "the node is known to be away")
        replies = ask()
        assert admitted([decision(reply) for reply in replies[:6]]) == 6 and decision(replies[9]).limited == 0
        assert all(isinstance(reply, Error) for reply in replies[6:9])
        dead.start()
        cluster.wait_ok()
        wait_until(lambda: not any(isinstance(r, Error) for r in ask()), "and is back")


@pytest.mark.cluster
def test_a_failover_of_a_shard(farm):
    """CLUSTER FAILOVER: nothing fails, and no limit admits more than it allows."""
    cluster = Cluster(farm, replicas=1)
    weir = weir_before(cluster, failover_wait="5s")
    old = cluster.masters[0]
    keys = keys_at(cluster, old, 4)
    stop, found = threading.Event(), []
    thread = threading.Thread(target=hammer, args=(weir, keys, 100_000, stop, found))
    thread.start()
    try:
        wait_until(lambda: len(found) > 100, "it works")
        cluster.failover(cluster.replicas_of(old)[0])
        n = len(found)
        wait_until(lambda: len(found) > n + 200, "it works again")
    finally:
        stop.set()
        thread.join()
    assert {result for _, result in found} == {0}
