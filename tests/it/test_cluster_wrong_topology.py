"""Wrong, forged or old answers of cluster nodes: weir names them in the log, and connects to no
address outside the topology.
"""

import contextlib
import socket
import threading
import time

import pytest
from kit.admin import ADMIN, get, stats
from kit.cluster import SLOTS, Cluster, slot_of
from kit.fake_node import HANG, FakeNode, node_id, nodes_reply, row
from kit.harness import free_port, wait_until
from kit.relay import shut

HURRY = {"WEIR_HURRY": "10"}
SECONDS = 20


def before(farm, *nodes, **more):
    upstream = "cluster:" + ", ".join(getattr(node, "upstream", node) for node in nodes)
    return farm.weir(upstream, **{"workers": 1, "env": HURRY, "sections": ADMIN, **more})


def readyz(weir):
    return get(weir, "/readyz")[::2]


def served(weir):
    return {node["address"]: node["slots"] for node in stats(weir)["upstream"]["nodes"] if node["use"] == "slots"}


@contextlib.contextmanager
def silence(host="127.0.0.1"):
    """A listener that answers nothing: its address, and a list of the connections to it."""
    taken = []
    listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                taken.append(listener.accept())

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1], taken
    shut(listener)
    listener.close()
    for sock, _ in taken:
        sock.close()


def line_of(fake, slots="0-16383", **more):
    return row(fake.id, fake.upstream, flags="myself,master", slots=slots, **more)


BAD = {
    "port 0": (lambda fake: [line_of(fake, "0-9000"), row(node_id(2), "10.9.9.9:0", slots="9001-16383")], "port"),
    "a node twice": (lambda fake: [line_of(fake, "0-9000"), row(fake.id, "127.0.0.1:7", slots="9001-16383")], "twice"),
    "slot 20000": (lambda fake: [line_of(fake, "0-20000")], "20000"),
    "a slot twice": (lambda fake: [line_of(fake), row(node_id(2), "127.0.0.1:7", slots="5-9")], "slot 5"),
    "no line": (lambda fake: ["nonsense"], "line 1 is incomplete"),
}


@pytest.mark.parametrize("name", [name if name == "port 0" else pytest.param(name, marks=pytest.mark.cluster) for name in BAD])
def test_an_answer_that_contradicts_itself_is_named(farm, name):
    """weir uses no part of the answer. Once the node sends a valid answer, weir is ready."""
    rows, named = BAD[name]
    with FakeNode() as fake:
        fake.answers["CLUSTER NODES"] = lambda args: nodes_reply(*rows(fake))
        weir = before(farm, fake)
        line = f"upstream {fake.upstream} does not list the nodes of the cluster: "
        weir.wait_for_log(line)
        status, text = readyz(weir)
        assert status == 503 and "no node has listed the nodes of the cluster" in text and named in text, text
        assert served(weir) == {}
        del fake.answers["CLUSTER NODES"]
        wait_until(lambda: readyz(weir)[0] == 200, "it tells", SECONDS)
        assert served(weir) == {fake.upstream: SLOTS}
        assert fake.most_in(1.0, "CLUSTER NODES") <= 10
        weir.stop()


@pytest.mark.cluster
def test_an_answer_of_ten_megabytes_is_named(farm):
    with FakeNode() as fake:
        fake.answers["CLUSTER NODES"] = b"$10000000\r\n" + b"x" * 10000000 + b"\r\n"
        weir = before(farm, fake)
        weir.wait_for_log("its reply to CLUSTER NODES is too long")
        assert readyz(weir)[0] == 503
        del fake.answers["CLUSTER NODES"]
        wait_until(lambda: readyz(weir)[0] == 200, "it tells", SECONDS)
        weir.stop()


@pytest.mark.cluster
def test_an_address_that_is_not_known_is_the_one_that_was_asked(farm):
    for unknown in ("", "?"):
        with FakeNode() as fake:
            line = row(fake.id, f"{unknown}:{fake.port}", flags="myself,master", slots="0-16383")
            fake.answers["CLUSTER NODES"] = nodes_reply(line)
            weir = before(farm, fake)
            wait_until(lambda: readyz(weir) == (200, "ready\n"), "ready", SECONDS)
            assert served(weir) == {fake.upstream: SLOTS}
            weir.stop()


@pytest.mark.cluster
def test_names_and_digits_of_either_kind_are_dialled(farm):
    """A host name is resolved if the address is unknown; [::1] is used as it is."""
    with FakeNode() as fake, FakeNode() as named, silence("::1") as (port, taken):
        for me in (fake, named):
            me.answers["CLUSTER NODES"] = lambda args, me=me: nodes_reply(
                row(fake.id, fake.upstream, flags="myself,master" if me is fake else "master", slots="0-99"),
                row(named.id, f":{named.port}", flags="myself,master" if me is named else "master", slots="100-199", more=",localhost"),
                row(node_id(3), f"::1:{port}", slots="200-16383"),
            )  # fmt: skip
        weir = before(farm, fake)
        wait_until(lambda: named.n_taken > 0 and taken, "both are dialled", SECONDS)
        wait_until(lambda: set(served(weir)) == {fake.upstream, f"localhost:{named.port}", f"[::1]:{port}"}, "named", SECONDS)
        wait_until(lambda: f"are away with ::1:{port}" in readyz(weir)[1], "what is silent is away", SECONDS)
        weir.stop()


def test_nothing_outside_upstream_allow_is_dialled(farm):
    with FakeNode() as fake, silence("127.0.0.2") as (port, taken):
        fake.answers["CLUSTER NODES"] = lambda args: nodes_reply(
            line_of(fake, "0-99"), row(node_id(3), f"127.0.0.2:{port}", slots="100-16383")
        )
        weir = before(farm, fake, upstream_allow="127.0.0.1/32")
        weir.wait_for_log(f"upstream 127.0.0.2:{port}: weir does not connect: upstream-allow does not contain its address")
        status, text = readyz(weir)
        assert status == 200 and f"16284 slots are away with 127.0.0.2:{port}" in text, text
        asked = fake.n_asked("CLUSTER NODES")
        wait_until(lambda: fake.n_asked("CLUSTER NODES") > asked + 3, "it goes on asking", SECONDS)
        assert not taken
        weir.stop()


@pytest.mark.cluster
def test_weir_itself_is_never_dialled(farm):
    port = free_port()
    with FakeNode() as fake:
        fake.answers["CLUSTER NODES"] = lambda args: nodes_reply(
            line_of(fake, "0-99"), row(node_id(3), f"127.0.0.1:{port}", slots="100-16383")
        )
        weir = before(farm, fake, listen=f"127.0.0.1:{port}")
        weir.wait_for_log(f"upstream 127.0.0.1:{port}: weir does not connect: weir itself listens at its address")
        weir.stop()


@pytest.mark.cluster
def test_upstream_map_says_where_an_announced_node_is(farm):
    with FakeNode() as fake:
        fake.answers["CLUSTER NODES"] = lambda args: nodes_reply(row(fake.id, "172.17.0.2:7000", flags="myself,master", slots="0-16383"))
        weir = before(farm, fake, upstream_map=f"172.17.0.2:7000={fake.upstream}")
        wait_until(lambda: readyz(weir) == (200, "ready\n"), "ready", SECONDS)
        assert served(weir) == {"172.17.0.2:7000": SLOTS}
        weir.stop()


@pytest.mark.cluster
def test_an_old_table_does_not_win(farm):
    """A node reports the state before a failover, as a node of a minority partition does. weir
    polls the node, and does not use its table.
    """
    made = Cluster(farm, replicas=1, is_relayed=True)
    liar = made.masters[1]
    with FakeNode(liar) as fake:
        old = liar.call("CLUSTER", "NODES").decode()
        weir = before(farm, *made.nodes[:3])
        before_it = served(weir)
        lost = made.masters[0]
        (heir,) = made.replicas_of(lost)
        fake.answers["CLUSTER NODES"] = nodes_reply(*old.splitlines())
        made.failover(heir)
        wait_until(lambda: heir.upstream in served(weir), "the failover is seen", SECONDS)
        after = served(weir)
        assert lost.upstream in before_it and lost.upstream not in after
        asked = fake.n_asked("CLUSTER NODES")

        def still():
            assert served(weir) == after
            return fake.n_asked("CLUSTER NODES") > asked + 3

        wait_until(still, "the liar is asked again", SECONDS)
        weir.stop()


# ---- entry points ----


def test_entry_points_that_are_wrong_are_named(farm):
    plain = farm.redis()
    with silence() as (port, _):
        gone = free_port()
        weir = before(farm, plain, f"127.0.0.1:{port}", f"127.0.0.1:{gone}", connect_timeout="500ms")
        status, text = readyz(weir)
        assert status == 503 and text.startswith("upstream cluster:"), text
        weir.wait_for_log(f"upstream {plain.upstream} cannot be served: it is not in a cluster (cluster_enabled:0): write upstream =")
        wait_until(lambda: f"127.0.0.1:{gone}: it is away" in readyz(weir)[1], "named", SECONDS)
        assert f"{plain.upstream}: it is not in a cluster" in readyz(weir)[1]
        weir.stop()


@pytest.mark.cluster
def test_one_entry_point_is_enough(farm):
    made = Cluster(farm, masters=2)
    plain = farm.redis()
    weir = before(farm, plain, f"127.0.0.1:{free_port()}", made.nodes[1])
    weir.wait_for_log("2 masters serve all 16384 slots")
    assert f"upstream {plain.upstream} cannot be served: it is not in a cluster" in weir.log()
    assert readyz(weir) == (200, "ready\n")
    weir.stop()


@pytest.mark.cluster
def test_an_entry_point_of_another_cluster_is_named(farm):
    with FakeNode() as one, FakeNode() as two, FakeNode() as other:
        tell = lambda me: lambda args: nodes_reply(
            *(row(node.id, node.upstream, flags="myself,master" if node is me else "master", slots=slots, epoch=epoch)
              for node, slots, epoch in ((one, "0-9000", 7), (two, "9001-16383", 8)))
        )  # fmt: skip
        one.answers["CLUSTER NODES"], two.answers["CLUSTER NODES"] = tell(one), tell(two)
        weir = before(farm, one, two, other)
        named = "does not list the nodes of the cluster: it belongs to a different cluster than the one that weir serves"
        weir.wait_for_log(named)  # weir serves the cluster of the entry point that answers first
        table = served(weir)
        wrong = [two, one] if set(table) == {other.upstream} else [other]
        for node in wrong:
            weir.wait_for_log(f"upstream {node.upstream} {named}")
        assert len(table) == 3 - len(wrong)
        weir.stop()


@pytest.mark.cluster
def test_a_node_that_keeps_silent_has_another_asked(farm):
    with FakeNode() as one, FakeNode() as two:
        for fake in (one, two):
            fake.answers["CLUSTER NODES"] = lambda args, me=fake: nodes_reply(
                *(row(node.id, node.upstream, flags="myself,master" if node is me else "master", slots=slots)
                  for node, slots in ((one, "0-9000"), (two, "9001-16383")))
            )  # fmt: skip
        hangs = one.answers["CLUSTER NODES"]
        one.answers["CLUSTER NODES"] = lambda args: HANG
        weir = before(farm, one, two)
        wait_until(lambda: readyz(weir) == (200, "ready\n"), "the other one tells", SECONDS)
        one.answers["CLUSTER NODES"] = hangs
        weir.stop()


WRONG_REDIRECTS = ("-MOVED", "-ASK", "-MOVED x y", "-MOVED 7 host", "-ASK 99999 a:b", "-MOVED  1 a:1", "-ASK 1 a:1 b", "-MOVED 1 a:99999")
REDIRECTED = {
    "on a shared lane": [["GET", "a"]],
    "in parts": [["DEL", "a", "b", "c"]],
    "without keys": [["PUBLISH", "news", "x"]],
    "at all masters": [["DBSIZE"]],
    "on lent lanes": [["FLUSHALL"]],
    "blocking": [["BLPOP", "a", "1"]],
    "a script": [["EVAL", "return 1", "1", "a"]],
    "large": [["SET", "a", "x" * 70_000]],
    "of a subscriber": [["SUBSCRIBE", "a"]],
    "of a shard's subscriber": [["SSUBSCRIBE", "a"]],
    "of all masters' subscriber": [["PSUBSCRIBE", "__key*"]],
    "watching": [["WATCH", "a"]],
    "queued": [["MULTI"], ["SET", "a", "1"], ["EXEC"]],
    "a login": [["AUTH", "ann", "pw"]],
    "INFO": [["INFO"]],
    "COMMAND": [["COMMAND"]],
    "a name": [["CLIENT", "SETNAME", "x"]],
    "by weir": [["LIMIT", "ACQUIRE", "a", "1", "1000"]],
    "weir's scripts": [["LIMIT", "ACQUIRE", "a", "1", "1000"]],
}  # fmt: skip


UNCOUNTED = ("a login", "INFO", "COMMAND", "a name", "weir's scripts")


@pytest.mark.parametrize("name", [name if "shared" in name else pytest.param(name, marks=pytest.mark.cluster) for name in REDIRECTED])
def test_a_redirect_without_a_slot_or_an_address_reaches_no_client(farm, name):
    calls = REDIRECTED[name]
    with FakeNode() as fake:
        weir = before(farm, fake, redirect_timeout="200ms", failover_wait="200ms")
        wait_until(lambda: readyz(weir)[0] == 200, "ready", SECONDS)
        for word in {*(call[0] for call in calls), "EVAL", "EVALSHA", "EXISTS", "CLIENT SETNAME"}:
            fake.answers[word] = lambda args: text.encode() + b"\r\n"
        fake.answers["MULTI"] = b"+OK\r\n"
        loaded = b"$40\r\n" + 40 * b"a" + b"\r\n"
        fake.answers["SCRIPT"] = lambda args: text.encode() + b"\r\n" if name == "weir's scripts" else loaded
        for text in WRONG_REDIRECTS:
            with weir.connect() as conn:
                replies = [str(conn.call(*call)) for call in calls]
                assert not any(reply.startswith(("MOVED", "ASK")) for reply in replies), (text, replies)
                assert replies[-1].startswith(("UPSTREAM moved", "UNBLOCKED", "EXECABORT")), (text, replies)
        if name not in ("a script", "on lent lanes", "by weir", *UNCOUNTED):
            weir.wait_for_log(f"upstream {fake.upstream} answers MOVED or ASK without a slot or an address")
            assert weir.log().count("without a slot or an address") == 1
        given_up = lambda: stats(weir)["upstream"]["nodes"][0]["redirects"]["given-up"]
        wait_until(lambda: name in UNCOUNTED or given_up() >= len(WRONG_REDIRECTS), "they are counted", SECONDS)
        weir.stop()


@pytest.mark.cluster
def test_storms_of_redirects_ask_at_most_ten_times_a_second(farm):
    """A node redirects each of its slots to itself, to other nodes and to unreachable addresses,
    for any request.
    """
    with FakeNode() as one, FakeNode() as two:
        for fake in (one, two):
            fake.answers["CLUSTER NODES"] = lambda args, me=fake: nodes_reply(
                *(row(node.id, node.upstream, flags="myself,master" if node is me else "master", slots=slots)
                  for node, slots in ((one, "0-9000"), (two, "9001-16383")))
            )  # fmt: skip
        targets = [one.upstream, two.upstream, "10.9.9.9:7000"]
        for fake in (one, two):
            fake.answers["GET"] = lambda args, n=[0]: (
                n.__setitem__(0, n[0] + 1), b"-MOVED %d %s\r\n" % (slot_of(args[1]), targets[n[0] % 3].encode())
            )[1]  # fmt: skip
        weir = before(farm, one, two, workers=2, redirect_timeout="100ms", failover_wait="100ms")
        ends = time.monotonic() + 3

        def storm():
            with contextlib.suppress(Exception):
                while time.monotonic() < ends:
                    with weir.connect() as conn:
                        conn.ask(*(f"GET key{n}" for n in range(50)))

        threads = [threading.Thread(target=storm) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        moments = sorted(at for fake in (one, two) for at, words in fake.asked if words == "CLUSTER NODES")
        most = max(sum(1 for at in moments if first <= at < first + 1) for first in moments)
        assert 2 < len(moments) and most <= 10, (most, moments)
        weir.stop()
