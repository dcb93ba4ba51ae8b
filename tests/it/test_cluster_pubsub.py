"""Pub/sub on a cluster: classic at one node, shard channels at the node of their slot, keyspace
notifications from all nodes.
"""

import re

import pytest
from kit.admin import ADMIN, get, stats
from kit.cluster import Cluster, slot_of, weir_before
from kit.harness import wait_until
from kit.resp import Closed, Error, Push, encode, pipeline
from kit.server import at_least, valkey_at_least

SHARDED = pytest.mark.skipif(not at_least(7, 0), reason="this redis-server has no channels of shards")
BOTH = pytest.mark.parametrize("protocol", [2, pytest.param(3, marks=pytest.mark.cluster)])
BOTH_3 = pytest.mark.parametrize("protocol", [pytest.param(2, marks=pytest.mark.cluster), 3])


def kind(protocol):
    """Returns the Python type of pub/sub frames in this protocol."""
    return Push if protocol == 3 else list


def subscriber(weir, protocol, *login):
    conn = weir.connect()
    if protocol == 3 or login:
        conn.call("HELLO", protocol, *login)
    return conn


def channel_at(cluster, node, n=0):
    return f"ch{n}{{{cluster.tag_at(node, n)}}}"


def said(conn, word, channel, n):
    """Checks that the next frame is this confirmation or message."""
    frame = conn.read()
    assert frame[0] == word.encode() and frame[1] == channel.encode(), frame
    assert frame[2] == (n if isinstance(n, int) else n.encode()), frame
    return frame


@BOTH
def test_classic_counts_are_those_of_one_server(farm, protocol):
    made = Cluster(farm)
    weir = weir_before(made, workers=2)
    listeners = [subscriber(weir, protocol) for _ in range(6)]
    for n, conn in enumerate(listeners):
        conn.send(encode("SUBSCRIBE", "a", f"own{n}"))
        said(conn, "subscribe", "a", 1)
        frame = said(conn, "subscribe", f"own{n}", 2)
        assert type(frame) is kind(protocol)
    with weir.connect() as conn:
        assert conn.call("PUBLISH", "a", "hello") == 6
        assert conn.call("PUBLISH", "own3", "x") == 1
        assert conn.call("PUBSUB", "NUMSUB", "a", "own1", "none") == [b"a", 6, b"own1", 1, b"none", 0]
        assert sorted(conn.call("PUBSUB", "CHANNELS", "o*")) == [b"own%d" % n for n in range(6)]
    for n, conn in enumerate(listeners):
        said(conn, "message", "a", "hello")
        if n == 3:
            said(conn, "message", "own3", "x")
        conn.send(encode("PSUBSCRIBE", "p*"))
        said(conn, "psubscribe", "p*", 3)
    with weir.connect() as conn:
        assert conn.call("PUBSUB", "NUMPAT") == 1
        for n in range(50):
            assert conn.call("PUBLISH", "pq", n) == 6
    for conn in listeners:
        assert [conn.read()[3] for _ in range(50)] == [b"%d" % n for n in range(50)]
        conn.send(encode("UNSUBSCRIBE"))
        assert {bytes(conn.read()[1]) for _ in range(2)} >= {b"a"}
        conn.send(encode("PUNSUBSCRIBE"))
        said(conn, "punsubscribe", "p*", 0)
        assert conn.call("PING") == "PONG"
    weir.stop()


def test_a_subscriber_goes_on_as_its_protocol_allows(farm):
    made = Cluster(farm)
    weir = weir_before(made, workers=1)
    keys = made.keys_everywhere(3)
    two, three = subscriber(weir, 2), subscriber(weir, 3)
    assert two.call("SUBSCRIBE", "a") == [b"subscribe", b"a", 1]
    assert three.call("SUBSCRIBE", "a") == [b"subscribe", b"a", 1]
    for key in keys:
        assert str(two.call("GET", key)).startswith("ERR Can't execute 'get': only (P|S)SUBSCRIBE / ")
        assert three.call("SET", key, "x") == "OK"
        assert three.call("GET", key) == b"x"
    assert two.call("PING") == [b"pong", b""]
    assert two.call("PING", "w") == [b"pong", b"w"]
    assert three.call("PING") == "PONG"
    assert three.ask("MULTI", "PING", "EXEC") == ["OK", "QUEUED", ["PONG"]]
    with weir.connect() as conn:
        assert conn.call("PUBLISH", "a", "m") == 2
    for conn in (two, three):
        said(conn, "message", "a", "m")
        assert conn.call("RESET") == "RESET"
    with weir.connect() as conn:
        assert conn.call("PUBLISH", "a", "m") == 0
        assert conn.call("PUBSUB", "CHANNELS") == []
    for conn in (two, three):
        assert [conn.call("GET", key) for key in keys] == [b"x"] * 3
        assert conn.call("UNSUBSCRIBE") == [b"unsubscribe", None, 0]
        assert conn.call("SUBSCRIBE", "b", "c") == [b"subscribe", b"b", 1]
        said(conn, "subscribe", "c", 2)
        assert conn.call("QUIT") == "OK"
    weir.stop()


@SHARDED
@BOTH_3
def test_channels_of_shards_at_several_nodes(farm, protocol):
    made = Cluster(farm)
    weir = weir_before(made, workers=2)
    channels = [channel_at(made, node, n) for n in range(2) for node in made.masters]
    conn = subscriber(weir, protocol)
    for n, channel in enumerate(channels):
        conn.send(encode("SSUBSCRIBE", channel))
        assert type(said(conn, "ssubscribe", channel, n + 1)) is kind(protocol)
    conn.send(encode("SSUBSCRIBE", channels[0], channels[1]))
    assert str(conn.read()).startswith("CROSSSLOT")
    conn.send(encode("SUBSCRIBE", "a"))
    said(conn, "subscribe", "a", 1)
    with weir.connect() as other:
        for channel in channels:
            assert other.call("SPUBLISH", channel, "m") == 1
            said(conn, "smessage", channel, "m")
        assert sorted(other.call("PUBSUB", "SHARDCHANNELS")) == sorted(channel.encode() for channel in channels)
        some = [channels[4], "none", channels[0]]
        assert other.call("PUBSUB", "SHARDNUMSUB", *some) == [some[0].encode(), 1, b"none", 0, some[2].encode(), 1]
    conn.send(encode("SUNSUBSCRIBE", channels[2]))
    said(conn, "sunsubscribe", channels[2], 5)
    conn.send(encode("SUNSUBSCRIBE"))
    left = [conn.read() for _ in range(5)]
    assert sorted(frame[1] for frame in left) == sorted(c.encode() for c in channels if c != channels[2])
    assert [frame[2] for frame in left] == [4, 3, 2, 1, 0]
    conn.send(encode("SUNSUBSCRIBE"))
    if valkey_at_least(8, 0):  # the node that is asked has no subscription of this client
        assert str(conn.read()).startswith("NOSUB")
    else:
        assert list(conn.read()) == [b"sunsubscribe", None, 0]
    conn.send(encode("UNSUBSCRIBE", "a"))
    said(conn, "unsubscribe", "a", 0)
    assert conn.call("SET", made.key_at(made.masters[2]), "x") == "OK"
    weir.stop()


@BOTH_3
def test_keyspace_notifications_come_from_all_masters(farm, protocol):
    made = Cluster(farm, "--notify-keyspace-events", "KEA")
    weir = weir_before(made, workers=1)
    keys = made.keys_everywhere(3)
    conn = subscriber(weir, protocol)
    conn.send(encode("PSUBSCRIBE", "news", "__keyspace@0__:*"))
    said(conn, "psubscribe", "news", 1)
    said(conn, "psubscribe", "__keyspace@0__:*", 2)
    with weir.connect() as other:
        for key in keys:
            assert other.call("SET", key, "x") == "OK"
            assert list(conn.read()) == [b"pmessage", b"__keyspace@0__:*", b"__keyspace@0__:" + key.encode(), b"set"]
        assert other.call("PUBLISH", "news", "m") == 1
        assert conn.read()[3] == b"m"
    conn.send(encode("PUNSUBSCRIBE", "__keyspace@0__:*"))
    said(conn, "punsubscribe", "__keyspace@0__:*", 1)
    with weir.connect() as other:
        assert [other.call("SET", key, "y") for key in keys] == ["OK"] * 3
        assert other.call("PUBLISH", "news", "last") == 1
    assert conn.read()[3] == b"last"
    conn.send(encode("SUBSCRIBE", "__keyevent@0__:del"))
    said(conn, "subscribe", "__keyevent@0__:del", 2)
    with weir.connect() as other:
        for key in keys:
            assert other.call("DEL", key) == 1
            said(conn, "message", "__keyevent@0__:del", key)
    conn.send(encode("PUNSUBSCRIBE"))
    said(conn, "punsubscribe", "news", 1)
    conn.send(encode("UNSUBSCRIBE"))
    said(conn, "unsubscribe", "__keyevent@0__:del", 0)
    assert conn.call("PING") == "PONG"
    weir.stop()


@SHARDED
@BOTH
def test_a_slot_that_moves_takes_its_subscribers_along(farm, protocol):
    made = Cluster(farm)
    weir = weir_before(made, workers=2)
    first, second, third = made.masters
    channel = channel_at(made, first)
    stays = channel_at(made, second)
    slot = slot_of(channel)
    conns = [subscriber(weir, protocol) for _ in range(4)]
    for conn in conns:
        for n, name in enumerate((channel, stays)):
            conn.send(encode("SSUBSCRIBE", name))
            said(conn, "ssubscribe", name, n + 1)
    made.begin_move(slot, third)
    with weir.connect() as other:
        wait_until(lambda: other.call("SPUBLISH", channel, "while it moves") == 4, "all are subscribed", 15)
        for conn in conns:
            said(conn, "smessage", channel, "while it moves")
        made.end_move(slot)
        wait_until(lambda: third.call("PUBSUB", "SHARDNUMSUB", channel) == [channel.encode(), 4], "all are there", 15)
        assert other.call("SPUBLISH", channel, "at its new node") == 4
    for conn in conns:
        said(conn, "smessage", channel, "at its new node")
        conn.send(encode("SSUBSCRIBE", channel))
        said(conn, "ssubscribe", channel, 2)
        conn.send(encode("SUNSUBSCRIBE", channel))
        said(conn, "sunsubscribe", channel, 1)
    weir.stop()


def closed(conn):
    """Reads until the connection closes."""
    with pytest.raises(Closed):
        while True:
            conn.read()


def classic_node(made):
    """Returns the node of classic pub/sub: the master with the lowest address, as text."""
    return min(made.masters, key=lambda node: node.upstream)


@SHARDED
@pytest.mark.cluster
def test_messages_stand_between_replies_and_never_within_one(farm):
    made = Cluster(farm)
    weir = weir_before(made, workers=2)
    keys = made.keys_everywhere(3)
    channels = [channel_at(made, node) for node in made.masters]
    value = b"v" * 3_000_000
    conn, other = subscriber(weir, 3), weir.connect()
    for key in keys:
        assert made.owner(slot_of(key)).call("SET", key, value) == "OK"
    for n, channel in enumerate(channels):
        conn.send(encode("SSUBSCRIBE", channel))
        said(conn, "ssubscribe", channel, n + 1)
    conn.send(encode("SUBSCRIBE", "a"))
    said(conn, "subscribe", "a", 1)
    rounds, replies, heard = 8, [], {name: [] for name in ["a", *channels]}
    for n in range(rounds):
        conn.send(b"".join(encode("GET", key) + encode("PING", f"{n}") for key in keys))
        for m in range(10):
            for channel in channels:
                assert other.call("SPUBLISH", channel, f"{n}.{m}") == 1
            assert other.call("PUBLISH", "a", f"{n}.{m}" + "x" * 100_000 * (m % 2)) == 1
    while len(replies) < rounds * 6 or any(len(got) < rounds * 10 for got in heard.values()):
        frame = conn.read()
        if isinstance(frame, Push):
            heard[frame[1].decode()].append(frame[2].rstrip(b"x").decode())
        else:
            replies.append(frame)
    assert replies == [reply for n in range(rounds) for _ in keys for reply in (value, b"%d" % n)]
    assert all(got == [f"{n}.{m}" for n in range(rounds) for m in range(10)] for got in heard.values()), heard
    weir.stop()


@SHARDED
@pytest.mark.cluster
def test_users_hear_what_each_may(farm):
    made = Cluster(farm)
    for node in made.nodes:
        assert node.call("ACL", "SETUSER", "ann", "on", ">pw", "resetchannels", "&ann:*", "~*", "+@all") == "OK"
        assert node.call("ACL", "SETUSER", "bob", "on", ">pw", "allchannels", "~*", "+@all", "-ssubscribe") == "OK"
    weir = weir_before(made, workers=2)
    tags = [made.tag_at(node) for node in made.masters]
    ann = subscriber(weir, 3, "AUTH", "ann", "pw")
    bob = subscriber(weir, 2, "AUTH", "bob", "pw")
    for n, tag in enumerate(tags):
        ann.send(encode("SSUBSCRIBE", f"ann:{{{tag}}}"))
        said(ann, "ssubscribe", f"ann:{{{tag}}}", n + 1)
        assert str(ann.call("SSUBSCRIBE", f"other:{{{tag}}}")).startswith("NOPERM")
        assert str(bob.call("SSUBSCRIBE", f"ann:{{{tag}}}")).startswith("NOPERM")
    assert str(ann.call("SUBSCRIBE", "other")).startswith("NOPERM")
    assert str(ann.call("PSUBSCRIBE", "__key*")).startswith("NOPERM")
    ann.send(encode("SUBSCRIBE", "ann:x"))
    said(ann, "subscribe", "ann:x", 1)
    bob.send(encode("SUBSCRIBE", "ann:x"))
    said(bob, "subscribe", "ann:x", 1)
    assert str(bob.call("AUTH", "ann", "pw")).startswith("ERR Can't execute 'auth'")
    with subscriber(weir, 2, "AUTH", "ann", "pw") as conn:
        assert conn.call("PUBLISH", "ann:x", "m") == 2
        assert str(conn.call("PUBLISH", "other", "m")).startswith("NOPERM")
        for tag in tags:
            assert conn.call("SPUBLISH", f"ann:{{{tag}}}", tag) == 1
    said(bob, "message", "ann:x", "m")
    frames = [ann.read() for _ in range(4)]
    assert [frame[2] for frame in frames if frame[0] == b"message"] == [b"m"]
    assert sorted(frame[2].decode() for frame in frames if frame[0] == b"smessage") == sorted(tags)
    for node in made.nodes:
        assert node.call("ACL", "DELUSER", "ann") == 1
    closed(ann)
    assert bob.call("PING") == [b"pong", b""]
    weir.stop()


@SHARDED
@BOTH_3
def test_a_subscriber_has_its_name_at_each_node_and_is_timed(farm, protocol):
    made = Cluster(farm)
    weir = weir_before(made, sections=ADMIN)
    conn = subscriber(weir, protocol)
    assert conn.call("CLIENT", "SETNAME", "listener") == "OK"
    channels = [channel_at(made, node) for node in made.masters]
    for n, channel in enumerate(channels):
        conn.send(encode("SSUBSCRIBE", channel))
        said(conn, "ssubscribe", channel, n + 1)
    conn.send(encode("PSUBSCRIBE", "__keyspace*"))
    said(conn, "psubscribe", "__keyspace*", 1)
    for node in made.masters:
        listed = node.call("CLIENT", "LIST", "TYPE", "pubsub").decode()
        assert len(re.findall(r" name=listener ", listed)) == 2, listed
    with weir.connect() as other:
        for channel in channels:
            assert other.call("SPUBLISH", channel, "m") == 1
            said(conn, "smessage", channel, "m")
    n_calls = 1 + (protocol == 3) + 3 + 1 + 3
    count = lambda: re.search(r"^weir_request_duration_seconds_count (\d+)", get(weir, "/metrics")[2], re.M)
    wait_until(lambda: (found := count()) and int(found[1]) == n_calls, "each request is timed once")
    weir.stop()


@pytest.mark.cluster
def test_a_node_without_the_user_says_so_to_subscribers_of_its_shards(farm):
    made = Cluster(farm)
    rights = ("on", ">pw", "allchannels", "~*", "+@all")
    for node in made.nodes:
        assert node.call("ACL", "SETUSER", "joe", *rights) == "OK"
    weir = weir_before(made)
    for node in made.masters:
        assert node.call("ACL", "DELUSER", "joe") == 1
        with weir.connect() as conn:
            # otherwise the node is the default node, which refuses the login
            if conn.call("AUTH", "joe", "pw") == "OK":
                for _ in range(2):
                    assert str(conn.call("SSUBSCRIBE", channel_at(made, node))).startswith("WRONGPASS")
                other = next(master for master in made.masters if master is not node)
                assert conn.call("SSUBSCRIBE", channel_at(made, other)) == [b"ssubscribe", channel_at(made, other).encode(), 1]
        assert node.call("ACL", "SETUSER", "joe", *rights) == "OK"
    weir.stop()


@pytest.mark.cluster
def test_a_node_that_is_lost_closes_its_subscribers_alone(farm):
    made = Cluster(farm, replicas=1)
    weir = weir_before(made, workers=2, failover_wait="5s")
    classic = classic_node(made)
    others = [node for node in made.masters if node is not classic]
    hears, sharded, elsewhere = (subscriber(weir, 3) for _ in range(3))
    lost, kept = channel_at(made, classic), channel_at(made, others[0])
    assert hears.call("SUBSCRIBE", "a") == [b"subscribe", b"a", 1]
    assert sharded.call("SSUBSCRIBE", lost) == [b"ssubscribe", lost.encode(), 1]
    assert elsewhere.call("SSUBSCRIBE", kept) == [b"ssubscribe", kept.encode(), 1]
    slots = made.kill(classic)
    closed(hears)
    closed(sharded)
    made.wait_served(slots)
    again = subscriber(weir, 3)
    assert again.call("SUBSCRIBE", "a") == [b"subscribe", b"a", 1]
    assert again.call("SSUBSCRIBE", lost) == [b"ssubscribe", lost.encode(), 1]
    with weir.connect() as conn:
        assert conn.call("PUBLISH", "a", "m") == 1
        assert conn.call("SPUBLISH", lost, "m") == 1
        assert conn.call("SPUBLISH", kept, "m") == 1
    said(elsewhere, "smessage", kept, "m")
    assert {bytes(again.read()[0]) for _ in range(2)} == {b"message", b"smessage"}
    weir.stop()


@SHARDED
@pytest.mark.cluster
def test_a_planned_failover_keeps_subscribers_of_shards(farm):
    made = Cluster(farm, replicas=1)
    weir = weir_before(made, workers=2, failover_wait="5s")
    master = next(node for node in made.masters if node is not classic_node(made))
    channel = channel_at(made, master)
    conn = subscriber(weir, 3)
    assert conn.call("SSUBSCRIBE", channel) == [b"ssubscribe", channel.encode(), 1]
    made.failover(made.replicas_of(master)[0])
    new = made.owner(slot_of(channel))
    wait_until(lambda: new.call("PUBSUB", "SHARDNUMSUB", channel) == [channel.encode(), 1], "it is there", 15)
    with weir.connect() as other:
        assert other.call("SPUBLISH", channel, "m") == 1
    said(conn, "smessage", channel, "m")
    weir.stop()


@pytest.mark.cluster
def test_masters_that_come_are_heard_of_too(farm):
    made = Cluster(farm, "--notify-keyspace-events", "KEA")
    weir = weir_before(made, workers=1)
    conn = subscriber(weir, 3)
    conn.send(encode("PSUBSCRIBE", "__keyspace@0__:*"))
    said(conn, "psubscribe", "__keyspace@0__:*", 1)
    source = made.masters[0]
    key = made.key_at(source)
    classic = classic_node(made)
    new = made.add_master()
    made.move(slot_of(key), new)
    # then classic pub/sub is at the new node, and its subscribers are closed
    if new.upstream < classic.upstream:
        closed(conn)
        conn = subscriber(weir, 3)
        conn.send(encode("PSUBSCRIBE", "__keyspace@0__:*"))
        said(conn, "psubscribe", "__keyspace@0__:*", 1)
    wait_until(lambda: new.call("PUBSUB", "NUMPAT") == 1, "the new master is told", 30)
    with weir.connect() as other:
        assert other.call("SET", key, "x") == "OK"
    while (frame := conn.read())[3] != b"set":  # MIGRATE sends del
        pass
    assert frame[2] == b"__keyspace@0__:" + key.encode()
    weir.stop()


@SHARDED
def test_the_end_of_a_subscriber(farm):
    made = Cluster(farm)
    weir = weir_before(made, workers=1)
    channel = channel_at(made, made.masters[1])
    with weir.connect() as conn:
        conn.send(encode("SUBSCRIBE", "a") + encode("SSUBSCRIBE", channel) + encode("UNSUBSCRIBE") + encode("SUNSUBSCRIBE"))
        conn.send(encode("SET", channel, "x") + encode("GET", channel))
        conn.sock.shutdown(1)
        said(conn, "subscribe", "a", 1)
        said(conn, "ssubscribe", channel, 1)
        said(conn, "unsubscribe", "a", 0)
        said(conn, "sunsubscribe", channel, 0)
        assert [conn.read(), conn.read()] == ["OK", b"x"]
        closed(conn)
    with weir.connect() as conn:
        conn.send(encode("SUBSCRIBE", "a") + encode("SSUBSCRIBE", channel))
        said(conn, "subscribe", "a", 1)
        said(conn, "ssubscribe", channel, 1)
        conn.sock.shutdown(1)
        closed(conn)
    with weir.connect() as conn:
        wait_until(lambda: conn.call("PUBLISH", "a", "m") == 0 and conn.call("SPUBLISH", channel, "m") == 0, "gone", 15)
        assert conn.call("CLIENT", "REPLY", "ON") == "OK"
        conn.send(encode("CLIENT", "REPLY", "OFF") + encode("SUBSCRIBE", "b") + encode("UNSUBSCRIBE", "b") + encode("GET", channel))
        conn.send(encode("CLIENT", "REPLY", "ON"))
        said(conn, "subscribe", "b", 1)
        said(conn, "unsubscribe", "b", 0)
        assert conn.read() == "OK"
    weir.stop()


@SHARDED
@pytest.mark.cluster
def test_a_slot_that_nobody_serves_and_one_that_comes_back(farm):
    made = Cluster(farm)
    weir = weir_before(made, workers=1, failover_wait="10s")
    channel = channel_at(made, made.masters[0])
    slot, owner = slot_of(channel), made.masters[0]
    for node in made.nodes:
        assert node.call("CLUSTER", "DELSLOTS", slot) == "OK"
    with weir.connect() as conn:
        conn.send(encode("SSUBSCRIBE", channel) + encode("PING"))
        wait_until(lambda: all(owner.call("PUBSUB", "SHARDCHANNELS") == [] for _ in range(3)), "nothing is there", 5)
        for node in made.nodes:
            assert node.call("CLUSTER", "SETSLOT", slot, "NODE", owner.id) == "OK"
        said(conn, "ssubscribe", channel, 1)
        assert conn.read() == [b"pong", b""]
    weir.stop()


@SHARDED
@pytest.mark.cluster
def test_slots_that_move_to_and_fro_under_subscribers(farm):
    made = Cluster(farm)
    weir = weir_before(made, workers=2)
    masters = made.masters
    channels = [channel_at(made, node, n) for n in range(2) for node in masters]
    home = {channel: made.owner(slot_of(channel)) for channel in channels}
    conns = [subscriber(weir, 2 + n % 2) for n in range(6)]
    heard = [{channel: [] for channel in channels} for _ in conns]
    for conn in conns:
        for n, channel in enumerate(channels):
            conn.send(encode("SSUBSCRIBE", channel))
            said(conn, "ssubscribe", channel, n + 1)
    with weir.connect() as other:
        for turn in range(6):
            for channel in channels:
                made.wait_ok()
                made.move(slot_of(channel), masters[(masters.index(home[channel]) + turn + 1) % 3])
                sent = other.call("SPUBLISH", channel, turn)
                assert isinstance(sent, int), sent
            conn = conns[turn % len(conns)]
            conn.send(encode("SUNSUBSCRIBE", channels[turn % 6]) + encode("SSUBSCRIBE", channels[turn % 6]))
        for channel in channels:
            wait_until(lambda: other.call("SPUBLISH", channel, "probe") == len(conns), "all are subscribed again", 15)
            assert other.call("SPUBLISH", channel, "end") == len(conns)
    for conn, got in zip(conns, heard):
        while any(not values or values[-1] != b"end" for values in got.values()):
            frame = conn.read()
            if frame[0] == b"smessage":
                got[frame[1].decode()].append(frame[2])
            else:
                assert frame[0] in (b"sunsubscribe", b"ssubscribe") and frame[2] in (5, 6), frame
        for values in got.values():
            turns = [int(value) for value in values if value.isdigit()]
            assert turns == sorted(set(turns)), values
    weir.stop()


@pytest.mark.cluster
def test_a_subscriber_keeps_its_protocol(farm):
    made = Cluster(farm)
    weir = weir_before(made, workers=1)
    conn = subscriber(weir, 3)
    assert conn.call("SUBSCRIBE", "a") == [b"subscribe", b"a", 1]
    assert str(conn.call("HELLO", 2)).startswith("ERR HELLO cannot change")
    assert conn.call("HELLO", 3)[b"proto"] == 3
    conn.send(encode("UNSUBSCRIBE"))
    said(conn, "unsubscribe", "a", 0)
    assert conn.call("HELLO", 2)[4:6] == [b"proto", 2]
    weir.stop()


@SHARDED
@pytest.mark.cluster
def test_many_channels_in_one_write(farm):
    made = Cluster(farm)
    weir = weir_before(made, workers=1)
    node = made.masters[0]
    tag = made.tag_at(node)
    names = [f"c{n}{{{tag}}}" for n in range(1500)]
    with weir.connect() as conn, weir.connect() as other:
        conn.send(b"".join(encode("SSUBSCRIBE", name) + encode("SUBSCRIBE", name) for name in names[:300]))
        for n, name in enumerate(names[:300]):
            said(conn, "ssubscribe", name, n + 1)
            said(conn, "subscribe", name, n + 1)
        conn.send(encode("SSUBSCRIBE", *names))
        assert [conn.read()[2] for _ in names][-1] == 1500
        target = made.masters[1]
        made.move(slot_of(tag), target)
        wait_until(lambda: len(target.call("PUBSUB", "SHARDCHANNELS")) == 1500, "all are subscribed again", 15)
        assert other.call("SPUBLISH", names[7], "m") == 1
        said(conn, "smessage", names[7], "m")
        assert str(conn.call("SUBSCRIBE", *(["x" * 100] * 700))).startswith("ERR more than 64 KiB of channels")
        assert conn.call("RESET") == "RESET"
        assert target.call("PUBSUB", "SHARDCHANNELS") == [] and other.call("PUBSUB", "CHANNELS") == []
        assert conn.call("SET", tag, "x") == "OK"
    weir.stop()


@SHARDED
@pytest.mark.cluster
def test_a_subscriber_that_does_not_read(farm):
    made = Cluster(farm)
    weir = weir_before(made, workers=1, output_limit="2mb")
    channel = channel_at(made, made.masters[1])
    with weir.connect() as slow, weir.connect() as reads, weir.connect() as other:
        for conn in (slow, reads):
            conn.send(encode("SSUBSCRIBE", channel))
            said(conn, "ssubscribe", channel, 1)
        text = "x" * 60000
        for _ in range(100):
            assert other.call("SPUBLISH", channel, text) == 2
            said(reads, "smessage", channel, text)
        slow.send(encode("PING"))
        for _ in range(100):
            said(slow, "smessage", channel, text)
        assert slow.read() == [b"pong", b""]
        big = "y" * 3_000_000
        assert made.owner(slot_of(channel)).call("SPUBLISH", channel, big) == 2
        closed(slow)
        closed(reads)
        assert "bytes of replies are unread, more than output-limit" in weir.log()
        assert other.call("PING") == "PONG"
    weir.stop()


@pytest.mark.cluster
def test_no_connection_is_left_for_a_subscriber(farm):
    made = Cluster(farm)
    weir = weir_before(made, workers=1, max_lanes=8, failover_wait="200ms", when_upstream_down="error")
    conns = [weir.connect() for _ in range(12)]
    got = [conn.call("SUBSCRIBE", "a") for conn in conns]
    refused = [reply for reply in got if isinstance(reply, Error)]
    assert refused and all("max-lanes" in reply for reply in refused), got
    assert [b"subscribe", b"a", 1] in got
    with weir.connect() as conn:
        assert conn.call("PUBLISH", "a", "m") == len(got) - len(refused)
    for conn, reply in zip(conns, got):
        if isinstance(reply, Error):
            assert conn.call("PING") == "PONG"
    weir.stop()


@SHARDED
@pytest.mark.cluster
def test_connections_of_subscribers_are_used_again(farm):
    made = Cluster(farm)
    weir = weir_before(made, workers=1, sections=ADMIN)
    channel = channel_at(made, made.masters[0])
    conns = [weir.connect() for _ in range(4)]
    round = pipeline(["SSUBSCRIBE", channel], ["SUNSUBSCRIBE", channel], ["SUBSCRIBE", "x"], ["UNSUBSCRIBE", "x"])
    for _ in range(30):
        for conn in conns:
            conn.send(round)
        for conn in conns:
            said(conn, "ssubscribe", channel, 1)
            said(conn, "sunsubscribe", channel, 0)
            said(conn, "subscribe", "x", 1)
            said(conn, "unsubscribe", "x", 0)
    assert conns[0].call("SSUBSCRIBE", channel) == [b"ssubscribe", channel.encode(), 1]

    def connections(kind):
        return stats(weir)["upstream"]["connections"][kind]

    wait_until(lambda: connections("private") == 1, "all is counted")
    assert stats(weir)["upstream"]["connects"] <= len(made.masters) + 2 * len(conns)
    wait_until(lambda: connections("idle") == 0, "nobody needs them")
    assert connections("private") == 1
    conns[1].send(encode("SPUBLISH", channel, "m"))
    said(conns[0], "smessage", channel, "m")
    assert conns[1].read() == 1
    weir.stop()
