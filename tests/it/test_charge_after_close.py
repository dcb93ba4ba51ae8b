"""Work of closed clients is still charged: what Redis does for a closed client is charged to its
subject until Redis has answered.

The tests count by Redis' own statistics what Redis ran and sent, not what clients received.
"""

import contextlib
import re
import signal
import socket
import threading
import time

import pytest
from kit.crowd import RST
from kit.harness import MODE_IDS, MODES, wait_until
from kit.limits import OPERATOR, limit_of, order, plain, tallies
from kit.resp import encode, pipeline
from kit.tls import Authority, TlsConn, TlsRedis, tls_settings, trusting

KIB, MIB = 1 << 10, 1 << 20
SUBJECT = "ip:127.0.0.1"


@pytest.fixture
def own_redis(farm):
    """A Redis of the test's own, which the test may stop."""
    server = farm.redis("--user", *"alice on >pw ~* &* +@all".split())
    yield server
    if server.is_running():
        server.signal(signal.SIGCONT)


@pytest.fixture(params=MODES, ids=MODE_IDS)
def limited(request, farm, own_redis):
    workers, lanes = request.param
    return lambda sections, **settings: farm.weir(
        own_redis, sections=sections + "\n" + OPERATOR, workers=workers, lanes=lanes, **settings
    )


def reset(conn):
    conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)
    conn.close()


def end(conn):
    conn.close()


def calls_of(redis, command):
    """Returns how many calls of the command Redis has run."""
    found = re.search(rf"cmdstat_{command}:calls=(\d+)", redis.call("INFO", "commandstats").decode())
    return int(found[1]) if found else 0


def charged(weir):
    return tallies(weir)[0][1]


def clients(weir):
    return plain(order(weir, "CLIENTS"))


def has_read(weir, conn):
    """Returns how many bytes of the client weir has read."""
    return sum(row["bytes_in"] for row in clients(weir) if row["address"] == conn.name)


def places(weir, subject=SUBJECT):
    """Returns how many more calls may be in flight."""
    return order(weir, "STATUS", "FOR", subject)[b"limits"][0][b"remaining"]


def in_output_buffers(redis):
    """Returns the bytes of replies that Redis buffers for its clients."""
    return sum(int(omem) for omem in re.findall(r"omem=(\d+)", redis.call("CLIENT", "LIST").decode()))


def under_way(weir):
    """Returns the calls in flight of connected clients."""
    return sum(row["in_flight"] for row in clients(weir))


# ---- calls in flight ----

HELD = {"plain": (), "own lane": ("WATCH w",), "other database": ("SELECT 1", "GET none")}


@pytest.mark.parametrize("held", HELD.values(), ids=HELD)
@pytest.mark.parametrize("leave", [reset, end], ids=["RST", "FIN"])
def test_places_in_flight_come_back_when_redis_has_answered(leave, held, limited, own_redis):
    weir = limited("[policy default]\ninflight = 10\n")
    conns = [weir.connect() for _ in range(6)]
    for conn in conns:
        conn.ask("PING", *held)
    before = has_read(weir, conns[0])
    data = encode("INCR", "k") * 10
    own_redis.signal(signal.SIGSTOP)
    for conn in conns:
        conn.send(data)
        wait_until(lambda: has_read(weir, conn) == before + len(data), "weir has read it")
        leave(conn)
    assert places(weir) == 0
    own_redis.signal(signal.SIGCONT)
    wait_until(lambda: places(weir) == 10, "all came back")
    if leave is reset:  # for a half-closed client waiting requests also run
        assert calls_of(own_redis, "incr") <= 10
    with weir.connect() as other:
        assert other.call("GET", "none") is None


def test_places_come_back_when_the_lane_has_gone(limited, own_redis):
    weir = limited("[policy default]\ninflight = 10\n")
    conns = [weir.connect() for _ in range(2)]
    conns[0].ask("PING", "WATCH w")
    conns[1].ask("PING")
    own_redis.signal(signal.SIGSTOP)
    for i, conn in enumerate(conns):
        conn.send(encode("INCR", "k"))
        wait_until(lambda: places(weir) == 9 - i, "it is under way")
        reset(conn)
    assert places(weir) == 8
    own_redis.kill()
    wait_until(lambda: places(weir) == 10, "all came back")


@pytest.mark.parametrize("leave", [reset, end], ids=["RST", "FIN"])
def test_a_command_that_blocks_ends_with_its_client(leave, limited, own_redis):
    weir = limited("[policy default]\ninflight = 10\n")
    conn = weir.connect()
    conn.send(encode("BLPOP", "l", 0) + encode("INCR", "k") * 10)
    wait_until(lambda: own_redis.waiting()[0] == 1 and places(weir) == 0, "it blocks, and others wait behind it")
    leave(conn)
    wait_until(lambda: own_redis.waiting()[0] == 0, "it ends")
    wait_until(lambda: places(weir) == 10, "places come back")
    assert own_redis.call("RPUSH", "l", "x") == 1 and own_redis.call("LLEN", "l") == 1
    assert calls_of(own_redis, "incr") == 0


@pytest.mark.parametrize("before", [[], ["PING", "GET k", "BLPOP full 0"]], ids=["first", "later"])
@pytest.mark.parametrize("leave", [reset, end], ids=["RST", "FIN"])
def test_a_command_that_blocks_ends_with_a_client_that_is_not_read(before, leave, limited, own_redis):
    """weir reads 512 KiB of the bytes behind the blocking command. weir sees the end, or a reset
    behind unread bytes.
    """
    weir = limited("")
    own_redis.call("RPUSH", "full", "x")
    conn = weir.connect()
    conn.send(pipeline(*before) + encode("BLPOP", "l", 0))
    wait_until(lambda: own_redis.waiting()[0] == 1, "it blocks")
    if leave == end:  # the close comes behind all these bytes
        conn.send(encode("PING") * 20_000)
    else:
        conn.sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                conn.sock.send(encode("PING") * 1000)
    leave(conn)
    wait_until(lambda: own_redis.waiting()[0] == 0, "it ends")
    assert own_redis.call("RPUSH", "l", "x") == 1 and own_redis.call("LLEN", "l") == 1


@pytest.mark.parametrize("size", [70_000, 200_000, 3_000_000])
def test_a_client_that_ends_behind_a_large_request_takes_no_element(size, limited, own_redis):
    weir = limited("")
    conn = weir.connect()
    conn.send(encode("BLPOP", "l", 0))
    wait_until(lambda: own_redis.waiting()[0] == 1, "it blocks")
    conn.send(encode("SET", "k", b"x" * size))
    end(conn)
    wait_until(lambda: own_redis.waiting()[0] == 0, "it ends")
    assert own_redis.call("RPUSH", "l", "x") == 1 and own_redis.call("LLEN", "l") == 1
    assert own_redis.call("EXISTS", "k") == 0


PINNED = {"SELECT": ("MULTI", "SELECT 3", "EXEC"), "CLIENT ID": ("CLIENT ID",), "WAIT": ("SET k v", "WAIT 0 0")}


@pytest.mark.parametrize("before", PINNED.values(), ids=PINNED)
def test_a_pinned_client_that_has_gone_behind_a_command_that_blocks_is_closed(before, limited, own_redis):
    """The client's socket fails first, as replies cannot be delivered. Then weir finds that the
    command blocks.
    """
    weir = limited("")
    for _ in range(25):
        conn = weir.connect()
        conn.send(pipeline(*before, "BLPOP l 0", "GET k"))
        conn.close()
    wait_until(lambda: not [row for row in clients(weir) if row["address"].startswith("127.0.0.1")], "all are closed")
    assert own_redis.waiting()[0] == 0


# ---- bytes of replies ----

ASKED = {
    "GET": [("GET", "big")] * 5,
    "EVAL": [("EVAL", "return redis.call('get', 'big')", "0")] * 5,
    "EXEC": [("MULTI",), *[("GET", "big")] * 5, ("EXEC",)],
    "one reply": [("MGET", "big", "big", "big", "big", "big")],
}


@pytest.mark.parametrize("requests", ASKED.values(), ids=ASKED)
def test_replies_that_nobody_is_there_to_read_are_charged(requests, limited, own_redis):
    own_redis.call("SET", "big", b"x" * 20 * KIB)
    weir = limited("[policy default]\nbytes-out = 100kb/1000d burst 30kb\n")
    conn, other = weir.connect(), weir.connect()
    assert [c.ask("PING", "WATCH w") for c in (conn, other)] == [["PONG", "OK"]] * 2
    before = charged(weir)
    own_redis.signal(signal.SIGSTOP)
    conn.send(b"".join(encode(*request) for request in requests))
    wait_until(lambda: under_way(weir) > 0, "they are under way")
    reset(conn)
    own_redis.signal(signal.SIGCONT)
    wait_until(lambda: charged(weir) >= before + 30 * KIB, "what came is charged")
    assert limit_of(other.call("GET", "none")) == "default/bytes-out"
    other.close()


WHO = {
    "a user": ("user, ip", ("AUTH", "alice", "pw"), "user:alice"),
    "an address": ("user, ip", ("PING",), SUBJECT),
    "a connection, where keys are limited": ("key:1, ip", ("PING",), SUBJECT),
}


@pytest.mark.parametrize("identity, word, subject", WHO.values(), ids=WHO)
def test_every_connection_of_the_subject_waits(identity, word, subject, limited, own_redis):
    """Other connections pay for what a closed connection left in flight."""
    own_redis.call("SET", "k:big", b"x" * 40 * KIB)
    sections = "[policy default]\nbytes-out = 100kb/1000d burst 30kb\ninflight = 3\n"
    weir = limited(sections, identity=identity)
    conns = [weir.connect() for _ in range(3)]
    for conn in conns:
        assert conn.call(*word) in ("OK", "PONG")
        assert conn.call("WATCH", "w") == "OK"
    own_redis.signal(signal.SIGSTOP)
    conns[0].send(encode("GET", "k:big"))
    wait_until(lambda: order(weir, "STATUS", "FOR", subject)[b"limits"][1][b"remaining"] == 2, "it is under way")
    reset(conns[0])
    assert order(weir, "STATUS", "FOR", subject)[b"limits"][1][b"remaining"] == 2
    own_redis.signal(signal.SIGCONT)
    wait_until(lambda: charged(weir) >= 40 * KIB, "it is charged")
    for conn in conns[1:]:
        assert limit_of(conn.call("GET", "k:none")) == "default/bytes-out"
        conn.close()
    assert order(weir, "STATUS", "FOR", subject)[b"limits"][1][b"remaining"] == 3


@pytest.mark.parametrize("workers", [1, 4])
def test_tls_clients_that_go_owe_too(workers, farm, own_redis, tmp_path):
    authority = Authority(tmp_path)
    own_redis.call("SET", "big", b"x" * 40 * KIB)
    sections = "[policy default]\nbytes-out = 100kb/1000d burst 30kb\ninflight = 10\n" + OPERATOR
    weir = farm.weir(own_redis, workers=workers, sections=sections, **tls_settings(authority.issue("weir")))
    conns = [TlsConn(weir.address, trusting(authority)) for _ in range(2)]
    for conn in conns:
        assert conn.ask("PING", "WATCH w") == ["PONG", "OK"]
    own_redis.signal(signal.SIGSTOP)
    conns[0].send(encode("GET", "big"))
    wait_until(lambda: order(weir, "STATUS", "FOR", SUBJECT)[b"limits"][1][b"remaining"] == 9, "it is under way")
    reset(conns[0])
    own_redis.signal(signal.SIGCONT)
    wait_until(lambda: charged(weir) >= 40 * KIB, "it is charged")
    assert limit_of(conns[1].call("GET", "none")) == "default/bytes-out"
    conns[1].close()


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_a_redis_in_tls_ends_what_is_left_to_it(lanes, farm, tmp_path):
    """The end of the connection comes after close_notify."""
    authority = Authority(tmp_path)
    redis = farm._start(TlsRedis(authority, authority.issue("redis")))
    sections = "[policy default]\ninflight = 10\n" + OPERATOR
    weir = farm.weir(redis, workers=1, lanes=lanes, sections=sections, upstream_tls_ca_file=authority.cert)
    for request in (("BLPOP", "l", "0"), ("SUBSCRIBE", "c"), ("MULTI",)):
        conn = weir.connect()
        conn.send(encode(*request) + encode("INCR", "k") * 3)
        wait_until(lambda: request != ("BLPOP", "l", "0") or redis.waiting()[0] == 1, "it blocks")
        reset(conn)
        wait_until(lambda: redis.waiting()[:2] == (0, 0) and places(weir) == 10, "nothing is left")
    assert calls_of(redis, "exec") == 0


def test_a_reload_finds_who_pays(limited, own_redis):
    """Replies after a reload are charged at the new rate, if the policy still exists."""
    own_redis.call("SET", "big", b"x" * 40 * KIB)
    weir = limited("[policy default]\nbytes-out = 1kb/1000s burst 1kb\n")
    conn = weir.connect()
    assert conn.ask("WATCH w") == ["OK"]
    own_redis.signal(signal.SIGSTOP)
    conn.send(encode("GET", "big"))
    wait_until(lambda: under_way(weir) > 0, "it is under way")
    reset(conn)
    assert order(weir, "SET", "default", "bytes-out", "100kb/s burst 100kb") == "OK"
    own_redis.signal(signal.SIGCONT)
    wait_until(lambda: charged(weir) >= 40 * KIB, "it is charged")
    assert order(weir, "STATUS", "FOR", SUBJECT)[b"limits"][0][b"reset_after_ms"] < 60_000


@pytest.mark.parametrize("mode", ["OFF", "SKIP"])
@pytest.mark.parametrize("requests", ASKED.values(), ids=ASKED)
def test_replies_that_are_not_heard_are_charged(requests, mode, limited, own_redis):
    own_redis.call("SET", "big", b"x" * 20 * KIB)
    weir = limited("[policy default]\nbytes-out = 100mb/1000d\n")
    with weir.connect() as conn:
        data = b"".join((encode("CLIENT", "REPLY", "SKIP") if mode == "SKIP" else b"") + encode(*r) for r in requests)
        conn.send(encode("CLIENT", "REPLY", "OFF") * (mode == "OFF") + data)
        wait_until(lambda: charged(weir) >= 100 * KIB, "all is charged")


@pytest.mark.parametrize("mode", ["OFF", "SKIP"])
def test_a_client_that_does_not_listen_is_held_to_its_rate(mode, limited, own_redis):
    """Counted by Redis: the GETs that it has run."""
    own_redis.call("SET", "big", b"x" * 20 * KIB)
    rate, burst = 200 * KIB, 100 * KIB
    weir = limited(f"[policy default]\nbytes-out = 200kb/s burst {burst} over delay 10s\n")
    words = {"OFF": encode("GET", "big"), "SKIP": encode("CLIENT", "REPLY", "SKIP") + encode("GET", "big")}
    conns = [weir.connect() for _ in range(3)]
    start = time.monotonic()
    for conn in conns:
        conn.send(encode("CLIENT", "REPLY", "OFF") * (mode == "OFF"))
    while time.monotonic() < start + 1:
        for conn in conns:
            conn.sock.setblocking(False)
            try:
                conn.sock.send(words[mode])
            except BlockingIOError:
                pass
        sent = calls_of(own_redis, "get") * 20 * KIB
        in_flight = 64 * 20 * KIB  # of each connection: sent before the first reply came
        assert sent <= burst * 2 + rate * (time.monotonic() - start) + 3 * in_flight
    for conn in conns:
        conn.close()


def test_redis_keeps_no_replies_for_a_client_that_ends_its_side(limited, own_redis):
    """weir reads the replies at once and charges them. At the pace of the limit they would stay in
    Redis for minutes.
    """
    own_redis.call("SET", "big", b"x" * 5 * MIB)
    weir = limited("[policy default]\nbytes-out = 100kb/s burst 100kb\n")
    conn = weir.connect()
    conn.send(pipeline("MULTI", *["GET big"] * 8, "EXEC"))
    end(conn)
    wait_until(lambda: calls_of(own_redis, "exec") == 1, "EXEC is carried out")
    wait_until(lambda: in_output_buffers(own_redis) < MIB, "Redis keeps nothing", 20)
    wait_until(lambda: charged(weir) >= 40 * MIB, "all is charged")


# ---- left in flight, without any limit ----


def test_few_calls_of_clients_that_have_gone_are_under_way(limited, own_redis):
    """The size of a reply is unknown beforehand. Of closed clients two calls may be in flight.
    Calls of connected clients are sent.
    """
    weir = limited("[policy default]\ninflight = 100\n")
    own_redis.call("SET", "big", b"x" * MIB)
    conns = [weir.connect() for _ in range(10)]
    for conn in conns:
        conn.ask("PING", "GET k")
    own_redis.signal(signal.SIGSTOP)
    for conn in conns[:3]:
        conn.send(encode("MGET", *["big"] * 20))
    wait_until(lambda: places(weir) == 97, "they are under way")
    for conn in conns[:3]:
        reset(conn)
    wait_until(lambda: len(plain(order(weir, "CLIENTS"))) == 8, "they have gone, and the operator is there")
    for conn in conns[3:]:
        conn.send(encode("MGET", *["big"] * 20))
        reset(conn)
    wait_until(lambda: len(plain(order(weir, "CLIENTS"))) == 1, "so have the others")
    own_redis.signal(signal.SIGCONT)
    wait_until(lambda: places(weir) == 100, "all places came back")
    assert calls_of(own_redis, "mget") == 3


@pytest.mark.parametrize("depth", [1, 200])
@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_resets_behind_large_values_leave_little_under_way(depth, lanes, farm, own_redis):
    """Redis buffers replies until it can write them. For closed clients Redis buffers at most 64
    MiB.
    """
    own_redis.call("SET", "big", b"x" * MIB)
    weir = farm.weir(own_redis, workers=2, lanes=lanes)
    until = time.monotonic() + 2

    def come_and_go():
        while time.monotonic() < until:
            conn = weir.connect()
            conn.send(encode("GET", "big") * depth)
            reset(conn)

    with own_redis.connect() as observer:
        observer.sock.settimeout(60)
        before = int(own_redis.info("used_memory"))
        threads = [threading.Thread(target=come_and_go) for _ in range(2)]
        for thread in threads:
            thread.start()
        most = 0
        while any(thread.is_alive() for thread in threads):
            text = observer.call("INFO", "memory").decode()
            most = max(most, int(re.search(r"used_memory:(\d+)", text)[1]) - before)
        for thread in threads:
            thread.join()
    assert most < 160 * MIB, "64 MiB, and what is under way of clients that are there"
    with weir.connect() as conn:
        assert len(conn.call("GET", "big")) == MIB
