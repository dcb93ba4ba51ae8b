"""Whatever the upstream sends, a reply reaches the client that asked, or none."""

import socket
import threading

import pytest
import test_command_transparency
from kit.harness import free_port, wait_until
from kit.meddler import Meddler
from kit.resp import Closed, Error, encode, pipeline
from kit.script import same_as_redis

LANES = ["shared", "private"]
TOKEN = b"a-token-of-this-test"
REPLY = b"$%d\r\n%s\r\n" % (len(TOKEN), TOKEN)


@pytest.fixture
def meddler(redis):
    with Meddler(redis.address) as meddler:
        yield meddler


@pytest.mark.parametrize(
    "name", ["collections in RESP3", "types of RESP3", "MULTI", "SUBSCRIBE in RESP3", "EVAL", "a mixed pipeline"]
)
@pytest.mark.parametrize("lanes", LANES)
def test_replies_byte_by_byte(name, lanes, farm, redis, meddler):
    weir = farm.weir(meddler, lanes=lanes)
    meddler.piece = 1
    same_as_redis(weir, redis, test_command_transparency.SCRIPTS[name])


@pytest.fixture(scope="module")
def shared_meddler(shared_redis):
    with Meddler(shared_redis.address) as meddler:
        yield meddler


@pytest.fixture(params=LANES)
def behind(request, kept, shared_meddler):
    """A weir behind a meddling relay, which the tests share."""
    yield kept(shared_meddler, workers=1, lanes=request.param)
    shared_meddler.change = None


ODD = [b"-\r\n", b"-10001\r\n", b"+\r\n", b"$0\r\n\r\n", b"$-1\r\n", b"*0\r\n", b"*-1\r\n", b"_\r\n", b",inf\r\n"]
ODD += [b"(-1234567890123456789012\r\n", b"!5\r\nERR x\r\n", b"|1\r\n+k\r\n+v\r\n:1\r\n", b"*2\r\n%0\r\n~1\r\n#f\r\n"]


@pytest.mark.parametrize("reply", ODD)
def test_odd_replies_pass(reply, behind, shared_meddler):
    shared_meddler.change = lambda data: data.replace(REPLY, reply)
    with behind.connect() as a:
        a.send(encode("ECHO", TOKEN) + encode("ECHO", "next"))
        assert a.read_bytes(len(reply)) == reply
        assert a.read() == b"next"


BROKEN = [
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"\x00\x00",
    b"\r\n",
    b"$-2\r\n",
    b"$x\r\n",
    b"$5\r\nhelloXX",
    b"*-2\r\n",
    b":abc\r\n",
    b"%9223372036854775807\r\n",
    b"*1\r\n" * 100_000,
    b"_x\r\n",
    b"#x\r\n",
    b"$?\r\n",
    b"+a line\rwithout its end\r\n",
]


@pytest.mark.parametrize("reply", BROKEN, ids=lambda reply: repr(reply[:24]))
def test_a_broken_reply_closes_who_waits(reply, behind, shared_meddler):
    shared_meddler.change = lambda data: data.replace(REPLY, reply)
    with behind.connect() as a, behind.connect() as idle:
        assert idle.call("PING") == "PONG"
        a.send(encode("ECHO", TOKEN) + encode("ECHO", "next"))
        assert b"next" not in a.read_to_end()
        assert idle.call("ECHO", "mine") == b"mine"
        wait_until(behind.serves, "weir serves")


@pytest.mark.parametrize("lanes", LANES)
def test_one_reply_too_many(lanes, farm, meddler):
    weir = farm.weir(meddler, workers=1, lanes=lanes)
    meddler.change = lambda data: data.replace(REPLY, REPLY + b"$5\r\nstray\r\n")
    for _ in range(20):
        with weir.connect() as a, weir.connect() as b:
            b.send(encode("ECHO", "of b"))
            assert b.read() == b"of b"
            try:
                assert a.call("ECHO", TOKEN) == TOKEN
            except Closed:
                pass
            for _ in range(5):
                assert b.call("ECHO", "mine") == b"mine"


@pytest.mark.parametrize("lanes", LANES)
def test_replies_nobody_asked_for(lanes, farm, meddler):
    weir = farm.weir(meddler, lanes=lanes)
    conns = [weir.connect() for _ in range(8)]
    for conn in conns:
        assert conn.call("PING") == "PONG"
    meddler.inject(b"$5\r\nstray\r\n")
    wait_until(weir.serves, "weir serves")
    for conn in conns:
        conn.send(encode("ECHO", "mine"))
        assert b"stray" not in (conn.read() if lanes == "shared" else conn.read_to_end())
        conn.close()


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize("lanes", LANES)
def test_a_reply_cut_in_the_middle(size, lanes, farm, redis, meddler):
    """The client is closed; weir does not replace the missing part."""
    redis.call("SET", "k", TOKEN + b"x" * size)
    weir = farm.weir(meddler, workers=1, lanes=lanes)
    with weir.connect() as a, weir.connect() as other:
        assert a.call("PING") == other.call("PING") == "PONG"

        def change(data):
            """Half of the value, then nothing."""
            if TOKEN not in data:
                return data
            meddler.change = lambda _: None
            return data[: data.index(TOKEN) + 5]

        meddler.change = change
        a.send(pipeline("GET k", "PING", "PING"))
        wait_until(lambda: meddler.change is not change, "the value comes")
        redis.call("CLIENT", "KILL", "TYPE", "normal")
        received = a.read_to_end()
        assert received in (b"$%d\r\n" % (len(TOKEN) + size) + TOKEN[:5], b"") or received.startswith(b"$")
        assert b"UPSTREAM" not in received and b"PONG" not in received
        meddler.change = None
        wait_until(weir.serves, "weir serves")


def test_an_upstream_that_never_answers(farm):
    """The server accepts, and then is silent: after upstream-timeout as good as down."""
    with socket.create_server(("127.0.0.1", free_port())) as silent:
        weir = farm.weir("127.0.0.1:%d" % silent.getsockname()[1], connect_timeout="200ms", upstream_timeout="200ms")
        with weir.connect() as a:
            assert a.call("PING") == Error("UPSTREAM timeout")


def test_no_reply_of_one_that_left_reaches_another(farm, meddler):
    """The redis-py bug of 2023, with a slow upstream."""
    held = threading.Event()

    def change(data):
        if TOKEN in data:
            held.wait(10)
        return data

    weir = farm.weir(meddler, workers=1)
    with weir.connect() as first:
        assert first.call("PING") == "PONG"
    meddler.change = change
    for _ in range(5):
        held.clear()
        gone = weir.connect()
        gone.send(encode("ECHO", TOKEN))
        with weir.connect() as other:
            other.send(encode("ECHO", "other"))
            gone.close()
            held.set()
            assert other.read() == b"other"
            assert other.call("ECHO", "again") == b"again"
