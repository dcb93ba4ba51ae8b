"""Pub/sub on a cluster: classic at one node, channels of shards at the node of their slot, keyspace notifications from all."""

import pytest
from kit.cluster import Cluster, slot_of, weir_before
from kit.harness import wait_until
from kit.resp import Push, encode


BOTH = pytest.mark.parametrize("protocol", [2, pytest.param(3, marks=pytest.mark.cluster)])
BOTH_3 = pytest.mark.parametrize("protocol", [pytest.param(2, marks=pytest.mark.cluster), 3])


def kind(protocol):
    """What frames of pub/sub are."""
    return Push if protocol == 3 else list


def subscriber(weir, protocol, *login):
    conn = weir.connect()
    if protocol == 3 or login:
        conn.call("HELLO", protocol, *login)
    return conn


def channel_at(cluster, node, n=0):
    return f"ch{n}{{{cluster.tag_at(node, n)}}}"


def said(conn, word, channel, n):
    """The next frame is this confirmation or message."""
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
    conn.send(encode("SUNSUBSCRIBE", channels[2]))
    said(conn, "sunsubscribe", channels[2], 5)
    conn.send(encode("SUNSUBSCRIBE"))
    left = [conn.read() for _ in range(5)]
    assert sorted(frame[1] for frame in left) == sorted(c.encode() for c in channels if c != channels[2])
    assert [frame[2] for frame in left] == [4, 3, 2, 1, 0]
    conn.send(encode("SUNSUBSCRIBE"))
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
