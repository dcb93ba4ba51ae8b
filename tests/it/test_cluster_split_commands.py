"""Commands with keys in several slots of a cluster: one part for each slot, merged into one reply.
"""

import itertools
import threading

import pytest
from kit.cluster import Cluster, slot_of, weir_before
from kit.fake_node import FakeNode, nodes_reply, row
from kit.harness import wait_until
from kit.resp import Closed, Error, encode

CROSSSLOT = Error("CROSSSLOT Keys in request don't hash to the same slot")


@pytest.fixture
def made(farm):
    return Cluster(farm, masters=3)


@pytest.fixture
def conn(made):
    with weir_before(made, workers=1).connect() as conn:
        yield conn


def fill(conn, keys):
    assert conn.ask(*(["SET", key, f"v-{key}"] for key in keys)) == ["OK"] * len(keys)


def values(keys):
    return [f"v-{key}".encode() for key in keys]


def seven(made):
    """Returns keys of different slots at all nodes, in mixed order, some repeated."""
    keys = made.keys_everywhere(6)
    return [keys[4], keys[0], keys[5], keys[1], keys[0], keys[2], keys[3], keys[5]]


def test_each_command_that_is_split(made, conn):
    keys = seven(made)
    fill(conn, keys)
    missing = [made.key_at(node, 7) for node in made.masters]
    want = [v for pair in zip(values(keys), [None] * 8) for v in pair]
    mixed = [k for pair in zip(keys, missing * 3) for k in pair]
    for protocol in ("2", "3"):
        conn.call("HELLO", protocol)
        assert conn.call("MGET", *keys) == values(keys)
        assert conn.call("mget", *mixed) == want
        assert conn.call("EXISTS", *keys, *missing) == 8
        # Redis counts a repeated key as often as it is named
        assert conn.call("TOUCH", *keys, *missing) == 8
        fill(conn, keys)
        assert conn.call("DEL", *keys, *missing) == 6
        fill(conn, keys)
        assert conn.call("UNLINK", *keys) == 6
        assert conn.call("EXISTS", *keys) == 0
        fill(conn, keys)


@pytest.mark.cluster
def test_what_is_not_split_hears_crossslot(made, conn):
    a, b, c = made.keys_everywhere(3)
    for words in (
        ["MSET", a, 1, b, 2], ["MSETNX", a, 1, b, 2], ["RENAME", a, b], ["SUNIONSTORE", a, b, c], ["SINTER", a, b],
        ["LMOVE", a, b, "LEFT", "LEFT"], ["SORT", a, "STORE", b], ["PFCOUNT", a, b],
    ):  # fmt: skip
        assert conn.call(*words) == CROSSSLOT, words
    assert conn.call("MGET", *("x" * 40000 + n for n in "abc")) == CROSSSLOT
    assert conn.call("MGET", "x" * 100000, a) == CROSSSLOT
    assert conn.call("PING") == "PONG"
    assert conn.call("EXISTS", a, b, c) == 0


@pytest.mark.cluster
def test_split_all_and_refuse(made, farm):
    a, b, c = made.keys_everywhere(3)
    with weir_before(made, workers=1, cross_slot="split-all").connect() as conn:
        assert conn.call("MSET", a, 1, b, 2, c, 3, a, 4, b, "") == "OK"
        assert conn.call("MGET", a, b, c) == [b"4", b"", b"3"]
        assert conn.call("MSETNX", a, 1, b, 2) == CROSSSLOT
        assert conn.call("MSET", a, 1, b) == CROSSSLOT
    with weir_before(made, workers=1, cross_slot="refuse").connect() as conn:
        for words in (["MSET", a, 1, b, 2], ["MGET", a, b], ["DEL", a, b], ["EXISTS", a, b]):
            assert conn.call(*words) == CROSSSLOT
        assert conn.call("MGET", a, a) == [b"4", b"4"]


@pytest.mark.cluster
def test_replies_keep_their_order_in_a_pipeline(made, conn):
    keys = seven(made)
    fill(conn, keys)
    commands, want = [], []
    for n in range(60):
        key = keys[n % len(keys)]
        commands += [["GET", key], ["MGET", *keys[n % 5 :]], ["SET", key, f"v-{key}"], ["EXISTS", *keys], ["PING"]]
        want += [*values([key]), values(keys[n % 5 :]), "OK", 8, "PONG"]
    assert conn.ask(*commands) == want
    assert conn.ask(*commands) == want


@pytest.mark.cluster
def test_a_pipeline_is_carried_out_in_its_order(made, conn):
    keys = seven(made)
    for _ in range(10):
        got = conn.ask(
            *(["SET", key, "1"] for key in keys), ["MGET", *keys], ["DEL", *keys], ["EXISTS", *keys], ["SET", keys[0], "2"], ["MGET", *keys]
        )
        assert got[8:] == [[b"1"] * 8, 6, 0, "OK", [None if key != keys[0] else b"2" for key in keys]]


@pytest.mark.cluster
def test_large_and_many(made, conn):
    keys = [f"key:{n}" for n in range(3000)]
    fill(conn, keys[:1000])
    assert conn.call("MGET", *keys) == values(keys[:1000]) + [None] * 2000
    big = made.keys_everywhere(6)
    for n, key in enumerate(big):
        assert made.masters[n % 3].call("SET", key, "x" * 300000) == "OK"
    assert conn.call("MGET", *big) == [b"x" * 300000] * 6
    assert conn.call("DEL", *keys) == 1000


@pytest.mark.cluster
def test_nothing_is_heard_of_what_is_not_to_be(made, conn):
    a, b, c = made.keys_everywhere(3)
    fill(conn, [a, b, c])
    conn.send(b"".join([b"CLIENT REPLY SKIP\r\n", f"MGET {a} {b}\r\n".encode(), b"PING\r\n"]))
    assert conn.read() == "PONG"
    conn.send(b"".join([b"CLIENT REPLY OFF\r\n", f"DEL {a} {b}\r\n".encode(), b"CLIENT REPLY ON\r\n"]))
    assert conn.read() == "OK"
    assert conn.call("EXISTS", a, b, c) == 1


@pytest.mark.cluster
def test_a_user_without_rights_on_one_key(made, farm):
    a, b, c = made.keys_everywhere(3)
    for node in made.nodes:
        assert node.call("ACL", "SETUSER", "joe", "on", ">pw", f"~{a}", f"~{b}", "+@all") == "OK"
    with weir_before(made, workers=1).connect() as conn:
        assert conn.call("AUTH", "joe", "pw") == "OK"
        assert conn.call("DEL", a, b) == 0
        for words in (["MGET", a, b, c], ["EXISTS", c, a], ["DEL", a, c, b]):
            assert conn.call(*words).startswith("NOPERM"), words
        assert conn.call("MGET", a, b) == [None, None]


def test_slots_that_move(made, conn):
    source, target, third = made.masters
    slot = slot_of(made.key_at(source))
    tag = made.tag_at(source)
    moving = [f"{{{tag}}}{n}" for n in range(6)]
    others = [made.key_at(target), made.key_at(third)]
    keys = [moving[0], others[0], *moving[1:4], others[1], *moving[4:], moving[0]]

    def check():
        fill(conn, keys)
        assert conn.call("MGET", *keys) == values(keys)
        assert conn.ask(["MGET", *keys], ["EXISTS", *keys], ["TOUCH", *keys], ["MGET", *moving]) == [values(keys), 9, 9, values(moving)]
        assert conn.ask(["DEL", *keys], ["EXISTS", *keys], ["MGET", *keys]) == [8, 0, [None] * 9]
        fill(conn, keys)

    check()
    made.begin_move(slot, target)
    check()
    fill(conn, keys)
    made.move_keys(slot, 3)
    assert conn.call("MGET", *keys) == values(keys)
    assert conn.call("MGET", *moving) == values(moving)
    check()
    made.end_move(slot)
    check()


@pytest.mark.cluster
def test_one_slot_whose_keys_are_at_two_nodes(made, conn):
    source, target, _ = made.masters
    slot = slot_of(made.key_at(source))
    keys = [f"{{{made.tag_at(source)}}}{n}" for n in range(5)]
    fill(conn, keys)
    made.begin_move(slot, target)
    made.move_keys(slot, 2)
    assert conn.ask(["MGET", *keys], ["EXISTS", *keys, keys[0]], ["GET", keys[1]]) == [values(keys), 6, values(keys)[1]]
    assert conn.ask(["PING"], ["DEL", *keys[:4], keys[0]], ["EXISTS", *keys]) == ["PONG", 4, 1]
    # SINTER is not split: the client gets Redis' error, after retries
    assert conn.call("SADD", keys[0], "a") == 1
    made.end_move(slot)
    assert conn.call("SINTER", *keys[:4]) == []


@pytest.mark.cluster
def test_some_of_the_slots_of_one_node_have_moved(made, conn):
    """The node gets one request for several slots, and some of them have moved. The parts that
    stayed are answered once.
    """
    first, second = made.masters[:2]
    keys = [made.key_at(first, n) for n in range(8)] + [made.key_at(second, 0)]
    fill(conn, keys)
    for key in keys[1:6:2]:
        made.move(slot_of(key), second)  # weir does not know yet
        assert conn.call("MGET", *keys) == values(keys)
    tag = made.tag_at(first, 20)
    pair = [f"{{{tag}}}a", f"{{{tag}}}b"]
    fill(conn, pair)
    made.begin_move(slot_of(pair[0]), second)
    made.move_keys(slot_of(pair[0]), keys=pair[:1])  # TRYAGAIN for both keys, ASK for one
    for asked in ([*pair, *keys], [keys[0], *pair, *keys[1:]], [*keys, pair[0]]):
        assert conn.call("MGET", *asked) == values(asked)
        assert conn.ask(("MGET", *asked), ("EXISTS", *asked), ("GET", keys[0])) == [values(asked), len(asked), values(keys)[0]]
    assert conn.call("DEL", *pair, *keys) == len(keys) + 2
    assert conn.call("EXISTS", *pair, *keys) == 0


@pytest.mark.cluster
def test_mset_of_keys_that_move(made, farm):
    source, target, third = made.masters
    slot = slot_of(made.key_at(source))
    tag = made.tag_at(source)
    moving = [f"{{{tag}}}{n}" for n in range(4)]
    other = made.key_at(third)
    words = [moving[0], "1", other, "2", moving[1], "3", moving[0], "4", moving[2], "5"]
    with weir_before(made, workers=1, cross_slot="split-all").connect() as conn:
        for step in (lambda: None, lambda: made.begin_move(slot, target), lambda: made.move_keys(slot, 1), lambda: made.end_move(slot)):
            step()
            assert conn.call("MSET", *words) == "OK"
            assert conn.call("MGET", *moving, other) == [b"4", b"3", b"5", None, b"2"]


@pytest.mark.cluster
def test_a_dead_shard_is_an_error_and_no_nil(farm):
    made = Cluster(farm, masters=3)
    weir = weir_before(made, workers=1, failover_wait="200ms", when_upstream_down="error")
    keys = made.keys_everywhere(6)
    alive = [key for n, key in enumerate(keys) if n % 3 != 1]
    with weir.connect() as conn:
        fill(conn, keys)
        made.kill(made.nodes[1])

        def refused():
            with weir.connect() as new:
                try:
                    got = new.call("MGET", *keys)
                except Closed:
                    return False
                assert isinstance(got, Error), got
                return got.startswith(("UPSTREAM", "CLUSTERDOWN"))

        wait_until(refused, "an error of the dead shard", 20)
    with weir.connect() as conn:
        assert conn.call("MGET", *alive) == values(alive)
        assert isinstance(conn.call("DEL", *keys), Error)
        assert conn.call("EXISTS", *alive) == 0


@pytest.mark.cluster
def test_a_client_that_goes_in_the_middle(made, farm):
    weir = weir_before(made, workers=1)
    keys = [f"key:{n}" for n in range(500)]
    for _ in range(20):
        with weir.connect() as conn:
            conn.send(b"".join([f"MGET {' '.join(keys)}\r\n".encode()] * 5))
    with weir.connect() as conn:
        assert conn.call("MGET", *keys) == [None] * 500


@pytest.mark.cluster
def test_limits_count_it_once(made, farm):
    sections = "[policy all]\nmatch = ip:0.0.0.0/0\nall = 3/h burst 3\ninflight = 1\n"
    weir = weir_before(made, workers=1, sections=sections)
    keys = seven(made)
    with weir.connect() as conn:
        assert [conn.call("MGET", *keys) for _ in range(3)] == [[None] * 8] * 3
        assert conn.call("MGET", *keys).startswith("THROTTLED")


@pytest.mark.cluster
def test_pipelines_while_slots_move_to_and_fro(made, farm):
    weir = weir_before(made, cross_slot="split-all", redirect_timeout="10s")
    first, second, third = made.masters
    slots = [slot_of(made.key_at(first, n)) for n in range(4)]
    tags = [made.tag_at(first, n) for n in range(4)] + [made.tag_at(second), made.tag_at(third)]
    stop = threading.Event()
    wrong = []

    def client(n):
        conn = conns[n]
        keys = [f"{{{tag}}}:{n}:{i}" for tag in tags for i in range(3)]
        mixed = keys[::2] + keys[1::2]
        for turn in itertools.count():
            if stop.is_set():
                return
            value = f"{n}-{turn}".encode()
            got = conn.ask(
                ["MSET", *(word for key in mixed for word in (key, value))], ["MGET", *mixed], ["GET", keys[turn % 18]],
                ["EXISTS", *keys], ["SET", keys[0], "x"], ["MGET", keys[0], keys[-1]], ["DEL", *mixed[:9]], ["EXISTS", *mixed],
            )  # fmt: skip
            want = ["OK", [value] * 18, value, 18, "OK", [b"x", value], 9, 9]
            if got != want:
                wrong.append((n, turn, [(i, a, b) for i, (a, b) in enumerate(zip(got, want)) if a != b]))
                return

    def watched(n):
        try:
            client(n)
        except BaseException as error:
            wrong.append((n, error))

    conns = [weir.connect(timeout=60) for _ in range(6)]
    for slot in slots:
        made.move(slot, second)
    threads = [threading.Thread(target=watched, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for turn in range(8):
        for slot in slots:
            source, target = made.agreed_owner(slot), (third, first, second)[turn % 3]
            if source is target:
                continue  # an old claim, still on its way, has taken the slot back
            made.begin_move(slot, target, source)
            made.move_keys(slot, 5)
            made.end_move(slot)
    stop.set()
    for thread in threads:
        thread.join()
    for conn in conns:
        conn.close()
    assert not wrong, repr(wrong[0])[:2000]


@pytest.mark.cluster
def test_parts_that_have_not_come_whole_count_together_against_output_limit(farm):
    """Each of two nodes sends less than the limit, as a part of a value that does not end."""
    with FakeNode() as one, FakeNode() as two:
        for fake in (one, two):
            fake.answers["CLUSTER NODES"] = lambda args, me=fake: nodes_reply(
                *(row(node.id, node.upstream, flags="myself,master" if node is me else "master", slots=slots)
                  for node, slots in ((one, "0-9000"), (two, "9001-16383")))
            )  # fmt: skip
            fake.answers["MGET"] = b"*1\r\n$1000000\r\n" + b"x" * 600_000
        weir = farm.weir(f"cluster:{one.upstream}", workers=1, output_limit="1mb")
        first = next(f"k{n}" for n in itertools.count() if slot_of(f"k{n}") <= 9000)
        second = next(f"k{n}" for n in itertools.count() if slot_of(f"k{n}") > 9000)
        with weir.connect() as conn, weir.connect() as reader:
            reader.send(encode("MGET", first, second, f"{{{first}}}", f"{{{second}}}"))
            with pytest.raises(Closed):
                reader.read()
            weir.wait_for_log("of replies are unread, more than output-limit")
            assert conn.call("SET", first, "v") == "OK"
        weir.stop()
