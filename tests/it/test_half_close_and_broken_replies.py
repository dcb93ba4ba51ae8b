"""Faults on either side of weir, with exact bytes. No client gets a reply to another client, nor
half a reply as if it were whole. A client without requests in flight notices nothing. Later
requests are answered, or get an error at once.
"""

import contextlib
import os
import re
import select
import signal
import socket
import struct
import threading
import time
import uuid

import pytest
from kit.fake import Fake, hang, say_and_close
from kit.harness import TOLD_AT_ONCE, WEIR, Weir, wait_until
from kit.resp import Closed, Conn, Error, dial, encode, pipeline

LANES = ["shared", "private"]
LATE = 4.0  # seconds that a loaded machine may take on top of what weir promises
BACK_WITHIN = 1 + LATE
NEVER = "60s"  # a time-out that no test waits for: weir must not need it
GET_K = encode("GET", "k")
# not a read: a client's first read is answered before weir sends the second
INCR_K = encode("INCR", "k")
UNAVAILABLE = Error("UPSTREAM unavailable")
MAX_CLIENTS = b"-ERR max number of clients reached\r\n"


@pytest.fixture
def fake():
    with Fake() as fake:
        yield fake


@pytest.fixture(params=LANES)
def front(request, fake, farm):
    """weir in front of the fake, in both lane modes, ready with all lanes that it opens by itself.
    """
    return weir_before(fake, farm, lanes=request.param)


@pytest.fixture(scope="module")
def kept_fake():
    with Fake() as fake:
        yield fake


@pytest.fixture(scope="module", params=LANES)
def kept_front(request, kept_fake, kept):
    """As `front`, for tests that share it."""
    return ready(kept(kept_fake.upstream, workers=1, lanes=request.param, **TOLD_AT_ONCE))


def weir_before(fake, farm, **settings):
    return ready(farm.weir(fake.upstream, workers=1, **{**TOLD_AT_ONCE, **settings}))


def ready(weir):
    with weir.connect() as first:
        assert first.call("ECHO", "ready") == b"ready"
    return weir


def send_in_one_turn(fake, *sent):
    """Sends each (connection, bytes) in this order, from RESP3 clients, so all of them may go to
    one shared lane.

    A lane with calls that have waited for some milliseconds gets no new calls, and a busy machine
    may take longer between two clients. All clients therefore wait for a lane that is being opened,
    and their requests go when the lane is ready.
    """
    held = []

    def hold(lane):
        hang(lane)
        held.append(lane)

    for conn, _ in sent:
        conn.call("HELLO", "3")  # RESP3 has no shared lane yet
    fake.on_accept = hold
    for conn, data in sent:
        conn.send(encode("LIMIT", "HELP") + data)
        conn.read()  # weir's own reply: weir has read the bytes that came with the question
    wait_until(lambda: held, "weir opens a lane")
    fake.on_accept = None
    for lane in held:
        lane.answer_again()


def is_told(reply):
    """True for an error of weir's own about a missing Redis."""
    return isinstance(reply, Error) and reply.startswith("UPSTREAM ")


def works_again(conn, seconds=BACK_WITHIN):
    """A client without requests in flight is still connected: it gets at worst errors until Redis
    answers.
    """

    def answered():
        reply = conn.call("ECHO", "token")
        assert reply == b"token" or is_told(reply), reply
        return reply == b"token"

    wait_until(answered, "this client is served again", seconds)


def after_its_lane_ended(conn, weir):
    """A client without requests in flight: weir replaces a shared lane, and closes the client of a
    private one.
    """
    if weir.lanes == "shared":
        works_again(conn)
    else:
        assert end_of(conn) == b""


def end_of(conn):
    """Returns what came until weir closed the connection."""
    return conn.read_to_end()


def open_files(weir):
    return len(os.listdir(f"/proc/{weir.child.pid}/fd"))


def is_sanitized(weir):
    """True for a sanitizer build. A sanitizer keeps freed memory and pads the rest, so memory use
    says little about weir.
    """
    with open(f"/proc/{weir.child.pid}/maps") as maps:
        text = maps.read()
    return "libasan" in text or "libtsan" in text


def memory(weir):
    """Returns the resident bytes."""
    with open(f"/proc/{weir.child.pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def reset(conn):
    """Closes with RST."""
    conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


# ---- bytes that are not replies ----

GARBAGE = {
    "http": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "nul": b"\x00\x00",
    "bulk-length-minus-2": b"$-2\r\n",
    "array-length-minus-2": b"*-2\r\n",
    "integer-abc": b":abc\r\n",
    "map-count-overflow": b"%9223372036854775807\r\n",
    "nested-100000": b"*1\r\n" * 100000,
    "bulk-without-crlf": b"$5\r\nhelloXX",
    "null-with-text": b"_x\r\n",
    "boolean-x": b"#x\r\n",
    "verbatim-too-short": b"=3\r\ntx\r\n",
    "streamed-string": b"$?\r\n",
    "line-with-lone-cr": b"+O\rK\r\n",
}

# Lengths that the protocol allows but only a broken server sends: the next bytes decide.
UNFINISHED = {
    "ok-without-end": b"+OK",
    "bulk": b"$100\r\nabc",
    "bulk-of-93-gib": b"$99999999999\r\n",
    "array-of-4294967295": b"*4294967295\r\n",
    "map-of-4294967295": b"%4294967295\r\n",
    "attribute-alone": b"|1\r\n+k\r\n+v\r\n",
    "in-an-array": b"*2\r\n$1\r\na\r\n$5\r\nb",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_from_redis_closes_only_who_waited_for_it(garbage, kept_fake, kept_front):
    with kept_front.connect() as victim, kept_front.connect() as bystander:
        assert bystander.call("ECHO", "x") == b"x"
        victim.send(GET_K)
        lane = kept_fake.expect(GET_K)
        lane.send(garbage)
        got = end_of(victim)
        assert garbage.startswith(got), "what it got is no whole reply, nor anything of weir's"
        lane.wait_gone()
        works_again(bystander)


def test_garbage_behind_a_reply(fake, front):
    """The reply before the garbage is whole and is delivered. Clients with later calls are closed.
    """
    with front.connect() as first, front.connect() as second, front.connect() as bystander:
        assert bystander.call("ECHO", "x") == b"x"
        first.send(GET_K)
        lane = fake.expect(GET_K)
        second.send(encode("GET", "other"))
        other = fake.expect(encode("GET", "other"))
        lane.send(b"+mine\r\n")
        assert first.read() == "mine"
        other.send(b"?\r\n")
        assert end_of(second) in (b"", b"?\r\n"[:1])
        other.wait_gone()
        works_again(bystander)


@pytest.mark.parametrize("ending", ["finish", "reset"])
@pytest.mark.parametrize("begun", UNFINISHED.values(), ids=UNFINISHED.keys())
def test_half_a_reply(begun, ending, kept_fake, kept_front):
    """The client gets at most that half, and then its connection closes."""
    before = memory(kept_front)
    with kept_front.connect() as victim, kept_front.connect() as bystander:
        assert bystander.call("ECHO", "x") == b"x"
        victim.send(GET_K)
        lane = kept_fake.expect(GET_K)
        lane.send(begun)
        getattr(lane, ending)()
        assert begun.startswith(end_of(victim))
        assert memory(kept_front) - before < 16 << 20, "memory for what was announced"
        works_again(bystander)


def test_a_reply_nobody_waits_for(fake, front):
    with front.connect() as first, front.connect() as bystander:
        assert bystander.call("ECHO", "x") == b"x"
        first.send(GET_K)
        lane = fake.expect(GET_K)
        lane.send(b"+mine\r\n")
        assert first.read() == "mine"
        lane.send(b"+whose\r\n")
        lane.wait_gone()
        works_again(bystander)
        assert not first.buffer, "it went to nobody"


def test_two_replies_to_one_request(fake, front):
    """Both come in one packet. The first reply is delivered, the second never."""
    with front.connect() as first, front.connect() as bystander:
        assert bystander.call("ECHO", "x") == b"x"
        first.send(GET_K)
        lane = fake.expect(GET_K)
        lane.send(b"+mine\r\n+whose\r\n")
        lane.wait_gone()
        works_again(bystander)
        first.send(encode("ECHO", "next"))
        replies = [first.read()]
        with contextlib.suppress(Closed):
            replies.append(first.read())
        assert replies in (["mine"], ["mine", b"next"], ["mine", UNAVAILABLE])


def test_a_reply_before_any_request(fake, front):
    """On connections without calls."""
    with front.connect() as bystander:
        assert bystander.call("ECHO", "x") == b"x"
        idle = [lane for lane in fake.greeted() if not lane.is_control]
        for lane in idle:
            lane.send(b"+whose\r\n")
        for lane in idle:
            lane.wait_gone()
        after_its_lane_ended(bystander, front)
        with front.connect() as new:
            works_again(new)
        assert not bystander.buffer


def test_a_reply_on_the_control_connection(fake, front):
    """No question is open there: weir would take an answer out of place for the answer to its next
    question.
    """
    control = next(lane for lane in fake.greeted() if lane.is_control)
    control.send(b"+whose\r\n")
    control.wait_gone()
    wait_until(lambda: any(lane.is_control for lane in fake.greeted()), "weir makes another one", BACK_WITHIN)
    with front.connect() as new:
        works_again(new)


@pytest.mark.parametrize("lanes", LANES)
def test_a_reply_before_the_greeting(lanes, fake, farm):
    """A server that sends first is not Redis: its bytes answer no request."""
    weir = weir_before(fake, farm, lanes=lanes)
    fake.on_accept = lambda lane: lane.send(b"+whose\r\n+PONG\r\n+PONG\r\n")
    for lane in list(fake.lanes):
        lane.reset()
    before, asked = fake.accepted, 0
    start = time.monotonic()
    while time.monotonic() - start < 1:
        with weir.connect() as conn:
            asked += 1
            try:
                reply = conn.call("ECHO", "x")
                assert is_told(reply), reply
            except Closed:
                pass  # the client's lane broke after the client got it
    assert fake.accepted - before <= asked + 40, "weir takes its time between attempts"
    fake.on_accept = None
    with weir.connect() as conn:
        works_again(conn)


def test_a_greeting_that_is_answered_amiss(fake, farm):
    """Once: one client gets an error, the next client gets a connection. Always: weir treats Redis
    as away, and does not keep trying.
    """
    weir = weir_before(fake, farm, lanes="private")

    def garble(lane):
        fake.on_accept = garble if always else None
        lane.by_hand = True
        lane.send(GARBAGE["http"])

    with weir.connect() as victim, weir.connect() as bystander:
        always, fake.on_accept = False, garble
        assert is_told(victim.call("ECHO", "x"))
        assert bystander.call("ECHO", "x") == b"x"
        always, fake.on_accept, before = True, garble, fake.accepted
        for _ in range(100):
            with weir.connect() as conn:
                assert is_told(conn.call("ECHO", "x"))
        assert fake.accepted - before < 50
        assert bystander.call("ECHO", "x") == b"x"


PUSH = b">2\r\n+a\r\n+b\r\n"


def test_a_push_in_resp2(fake, front):
    with front.connect() as victim, front.connect() as bystander:
        assert bystander.call("ECHO", "x") == b"x"
        victim.send(GET_K)
        lane = fake.expect(GET_K)
        lane.send(PUSH + b"+mine\r\n")
        assert end_of(victim) == b""
        lane.wait_gone()
        works_again(bystander)


def test_a_push_on_a_shared_lane(fake, farm):
    """No client on a shared lane has asked for push messages, so none gets them, and every client
    gets its replies.
    """
    weir = weir_before(fake, farm, lanes="shared")
    with weir.connect() as victim, weir.connect() as bystander:
        assert victim.call("HELLO", "3") == {"server": "redis", "proto": 3}
        assert bystander.call("ECHO", "x") == b"x"
        victim.send(INCR_K)
        lane = fake.expect(INCR_K)
        victim.send(encode("INCR", "second"))
        lane.expect(encode("INCR", "second"))
        lane.send_slowly(PUSH + b"+mine\r\n" + PUSH + b"+second\r\n" + PUSH)
        assert victim.read() == "mine" and victim.read() == "second"
        lane.answer_again()
        assert victim.call("ECHO", "y") == b"y" and bystander.call("ECHO", "y") == b"y"


# ---- legal but odd replies, and errors of Redis' own ----

VERBATIM = [
    b"-\r\n",
    b"-10001\r\n",
    b"-X\r\n",
    b"+\r\n",
    b"$0\r\n\r\n",
    b"$-1\r\n",
    b"*0\r\n",
    b"*-1\r\n",
    b"(1234567890123456789012\r\n",
    b",inf\r\n",
    b"!5\r\nERR x\r\n",
    b"|1\r\n+k\r\n+v\r\n+reply\r\n",
    b"(123  123\r\n",  # a script may reply anything
    b"*2\r\n*0\r\n*1\r\n$1\r\nx\r\n",
    b"*1\r\n" * 7000 + b"-ERR reached lua stack limit\r\n",
    b"$7\r\n+OK\r\n-E\r\n",
    b"-LOADING Redis is loading the dataset in memory\r\n",
    b"-NOAUTH Authentication required.\r\n",
    b"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
    b"-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n",
    b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    b"-READONLY You can't write against a read only replica.\r\n",
    b"-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.\r\n",
    b"-NOREPLICAS Not enough good replicas to write.\r\n",
    b"-CLUSTERDOWN The cluster is down\r\n",
]


def test_odd_replies_are_passed_on_byte_for_byte(fake, front):
    """The replies pass byte for byte, and the connection is kept."""
    with front.connect() as conn:
        lanes = set()
        for reply in VERBATIM:
            conn.send(GET_K)
            lane = fake.expect(GET_K)
            lanes.add(lane)
            lane.send(reply)
            assert conn.read_bytes(len(reply)) == reply
        assert len(lanes) == 1
        conn.send(pipeline(*["GET k"] * len(VERBATIM)))
        lane.expect(GET_K * len(VERBATIM))
        lane.send(b"".join(VERBATIM))
        assert conn.read_bytes(sum(map(len, VERBATIM))) == b"".join(VERBATIM)
        lane.answer_again()
        assert conn.call("ECHO", "after") == b"after"


def test_byte_by_byte(fake, front):
    """However a reply is cut, the client gets the same reply, and the same next one."""
    with front.connect() as first, front.connect() as second:
        first.send(pipeline("INCR k", "INCR k"))
        lane = fake.expect(INCR_K * 2)
        second.send(encode("INCR", "other"))
        other = fake.expect(encode("INCR", "other"))
        long = b"*3\r\n$5\r\nhello\r\n:12\r\n*2\r\n+OK\r\n$-1\r\n"
        lane.send_slowly(long + b"-ERR no\r\n")
        other.send_slowly(b"$13\r\n+second\r\n:1\r\n\r\n")
        assert [first.read(), first.read()] == [[b"hello", 12, ["OK", None]], Error("ERR no")]
        assert second.read() == b"+second\r\n:1\r\n"


@pytest.mark.parametrize("lanes", LANES)
def test_loading_at_the_greeting(lanes, fake, farm):
    """A loading server answers, so it is up: clients get its error."""
    loading = b"-LOADING Redis is loading the dataset in memory\r\n"
    fake.own.update({b"HELLO": loading, b"PING": loading, b"INFO": loading, b"GET": loading})
    weir = farm.weir(fake.upstream, workers=1, lanes=lanes)
    with weir.connect() as conn:
        wait_until(lambda: conn.call("GET", "k").startswith("LOADING"), "it is told by Redis", BACK_WITHIN)
        assert conn.ask("GET k", "PING") == [Error(loading[1:-2].decode())] * 2
        fake.own.update({b"PING": b"+PONG\r\n", b"GET": b"$1\r\nv\r\n"})
        assert conn.ask("GET k", "PING") == [b"v", "PONG"]


# ---- Redis refuses weir's greeting of a connection ----


@pytest.mark.parametrize("lanes", LANES)
def test_a_user_who_may_not_select(lanes, farm):
    """The client stays in the database that it chose before its login."""
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, lanes=lanes)
    assert redis.call("ACL", "SETUSER", "bob", "on", ">pw", "~*", "+set", "+get", "+eval", "+multi", "+exec") == "OK"
    with weir.connect() as bob, weir.connect() as other:
        assert bob.ask("SELECT 9", "SET k 9", "AUTH bob pw", "GET k") == ["OK", "OK", "OK", b"9"]
        assert bob.call("EVAL", "return redis.call('get', 'k')", 0) == b"9"
        assert bob.ask("MULTI", "GET k", "EXEC", "GET k") == ["OK", "QUEUED", [b"9"], b"9"]
        assert bob.call("SELECT", 0).startswith("NOPERM")
        assert other.ask("SET k 0", "GET k") == ["OK", b"0"]


@pytest.mark.parametrize("lanes", LANES)
def test_a_busy_redis_is_told_of_and_can_be_freed(lanes, farm):
    """While an endless script runs, clients in any database get Redis' BUSY error, and one of them
    can end the script.
    """
    redis = farm.redis("--lua-time-limit", "10")
    weir = farm.weir(redis, workers=1, lanes=lanes)
    with weir.connect() as runs, weir.connect() as ends, weir.connect() as queues:
        assert ends.call("SELECT", 9) == "OK"
        assert queues.ask("SELECT 9", "SET n 1") == ["OK", "OK"]
        runs.send(encode("EVAL", "while true do end", 0))
        wait_until(lambda: is_busy(redis.call("GET", "k")), "the script runs")
        assert is_busy(ends.call("GET", "k"))
        assert is_busy(ends.call("EVAL", "return 1", 0))
        multi, increment = queues.ask("MULTI", "INCR n")
        assert (multi == "OK" or is_busy(multi)) and isinstance(increment, Error)
        assert ends.call("SCRIPT", "KILL") == "OK"
        assert isinstance(runs.read(), Error)
        _, execute, n = queues.ask("INCR n", "EXEC", "GET n")
        assert execute.startswith("EXECABORT") and n == b"1", "all of it or nothing"


def is_busy(reply):
    return isinstance(reply, Error) and reply.startswith("BUSY ")


def test_a_refused_transaction_does_not_run_in_part(fake, front):
    """Redis is away at MULTI and back for the next commands: none of them may run outside the
    transaction.
    """
    fake.refuse()
    for lane in list(fake.lanes):
        lane.reset()
    with front.connect() as conn, front.connect() as other:
        wait_until(lambda: is_told(other.call("ECHO", "x")), "weir knows")
        assert is_told(conn.call("MULTI"))
        fake.listen()
        works_again(other)
        fake.own[b"INCR"] = b":1\r\n"
        conn.send(pipeline("INCR n", "EXEC"))
        try:
            assert is_told(conn.read()) and conn.read().startswith("EXECABORT")
            assert conn.call("ECHO", "x") == b"x"
        except Closed:
            pass


# ---- connections that close or cannot be made ----


@pytest.mark.parametrize("ending", ["finish", "reset"])
def test_the_end_of_a_stream(ending, fake, front):
    """A replica's stream has no replies to count: when the stream ends, the client is closed."""
    with front.connect() as replica, front.connect() as bystander:
        assert bystander.call("ECHO", "x") == b"x"
        replica.send(encode("SYNC"))
        lane = fake.expect(encode("SYNC"))
        lane.send(b"$5\r\nhello" + encode("SET", "k", "v"))
        assert replica.read_bytes(9) == b"$5\r\nhello"
        getattr(lane, ending)()
        assert encode("SET", "k", "v").startswith(end_of(replica))
        works_again(bystander)


def test_what_came_before_the_end_is_delivered(fake, front):
    """Redis ends after it has sent replies. The replies arrive, then the client's connection ends
    as Redis' did.
    """
    with front.connect() as victim, front.connect() as bystander:
        assert bystander.call("ECHO", "x") == b"x"
        victim.send(pipeline("INCR k", "INCR k", "INCR k"))
        lane = fake.expect(INCR_K * 3)
        lane.send(b"+one\r\n$3\r\ntwo\r\n")
        lane.finish()
        assert end_of(victim) == b"+one\r\n$3\r\ntwo\r\n"
        lane.wait_gone()
        works_again(bystander)


def test_what_came_before_the_end_is_delivered_to_who_reads_late(fake, front):
    """More bytes than the sockets hold. Lost replies are replaced by nothing."""
    values = encode(b"x" * (4 << 20))[4:] * 4
    with front.connect() as victim, front.connect() as bystander:
        assert bystander.call("ECHO", "x") == b"x"
        victim.send(pipeline("WATCH w", "INCR k", "INCR k", "INCR k", "INCR k", "INCR k", "LIMIT STATUS", "ECHO x"))
        lane = fake.expect(encode("WATCH", "w"))
        lane.send(b"+OK\r\n")
        assert fake.expect(INCR_K * 5) is lane
        sender = threading.Thread(target=lambda: (lane.send(values), lane.finish()))
        sender.start()
        works_again(bystander)
        assert end_of(victim) == b"+OK\r\n" + values
        sender.join()


def test_half_close_with_nothing_in_flight(fake, front):
    """No request is open. With shared lanes no client notices; with private lanes the client is
    closed too.
    """
    with front.connect() as idle:
        assert idle.call("ECHO", "x") == b"x"
        lanes = list(fake.lanes)
        for lane in lanes:
            lane.finish()
        for lane in lanes:
            lane.wait_gone()
        after_its_lane_ended(idle, front)
        with front.connect() as new:
            works_again(new)


@pytest.mark.parametrize("ending", ["finish", "reset"])
def test_no_client_reconnects_that_had_nothing_in_flight(ending, fake, farm):
    """Redis goes away and returns. On shared lanes only clients with an open request are closed."""
    weir = weir_before(fake, farm, lanes="shared", connect_timeout=NEVER)
    idle = [weir.connect() for _ in range(20)]
    with weir.connect() as victim:
        for conn in idle:
            assert conn.call("ECHO", "x") == b"x"
        victim.send(GET_K)
        fake.expect(GET_K)
        fake.refuse()
        for lane in list(fake.lanes):
            getattr(lane, ending)()
        assert end_of(victim) == b""
        wait_until(lambda: is_told(idle[0].call("ECHO", "x")), "what comes after is told at once")
        fake.listen()
        for conn in idle:
            works_again(conn)
            conn.close()


@pytest.mark.parametrize("lanes", LANES)
def test_refused_connections_are_told_and_tried_again(lanes, fake, farm):
    weir = weir_before(fake, farm, lanes=lanes, connect_timeout=NEVER)
    fake.refuse()
    for lane in list(fake.lanes):
        lane.reset()
    with weir.connect() as conn:
        wait_until(lambda: is_told(conn.call("ECHO", "x")), "weir knows")
        assert conn.ask("GET k", "PING", "EVAL x 0") == [UNAVAILABLE] * 3
        fake.listen()
        works_again(conn)


def told_in_time(weir, milliseconds):
    """While nothing answers, a new client gets an error after the time-out, and later ones at once.
    """
    with weir.connect() as conn:
        start = time.monotonic()
        assert is_told(conn.call("GET", "k"))
        assert time.monotonic() - start < milliseconds / 1000 + LATE
        assert is_told(conn.call("PING"))


@pytest.mark.parametrize("lanes", LANES)
def test_connect_timeout_ends_a_connection_that_nobody_answers(lanes, fake, farm):
    """Connection attempts are not even refused: connect-timeout counts, not the kernel's time-out.
    """
    weir = weir_before(fake, farm, lanes=lanes, connect_timeout="200ms")
    with fake.blackhole():
        for lane in list(fake.lanes):
            lane.reset()
        told_in_time(weir, 200)
    with weir.connect() as conn:
        works_again(conn, 10)  # the kernel itself retries after 1 s, 2 s ...


@pytest.mark.parametrize("lanes", LANES)
def test_hang_after_accept(lanes, fake, farm):
    weir = weir_before(fake, farm, lanes=lanes, upstream_timeout="200ms")
    fake.on_accept = hang
    for lane in list(fake.lanes):
        lane.reset()
    told_in_time(weir, 200)
    fake.on_accept = None
    with weir.connect() as conn:
        works_again(conn)


@pytest.mark.parametrize("lanes", LANES)
def test_maxclients_at_the_greeting(lanes, fake, farm):
    """Redis refuses a new connection: no client gets that error as a reply, and clients with lanes
    go on.
    """
    weir = weir_before(fake, farm, lanes=lanes)
    with weir.connect() as settled, weir.connect() as new:
        assert settled.call("ECHO", "x") == b"x"
        fake.on_accept = say_and_close(MAX_CLIENTS)
        assert is_told(new.call("EVAL", "return 1", 0)), "it needs a connection of its own"
        assert settled.call("ECHO", "x") == b"x"
        fake.on_accept = None
        works_again(new)
        new.send(encode("EVAL", "return 1", 0))
        wait_until(lambda: fake.unanswered() or new.is_closed() or new.buffer, "it travels or is told", BACK_WITHIN)


def test_no_connection_for_a_second_login(fake, farm):
    """While one login waits for its answer, Redis refuses every further connection. The second
    login waits for the first one's lane, and weir does not retry meanwhile.
    """
    weir = weir_before(fake, farm)
    del fake.own[b"AUTH"]
    with weir.connect() as first, weir.connect() as second, weir.connect() as other:
        assert other.call("ECHO", "x") == b"x"
        first.send(encode("AUTH", "ann", "pw"))
        door = fake.expect(encode("AUTH", "ann", "pw"))
        fake.on_accept = say_and_close(MAX_CLIENTS)
        accepted = fake.accepted
        second.send(encode("AUTH", "bob", "pw"))
        wait_until(lambda: fake.accepted > accepted, "weir tries to open another connection")
        for _ in range(50):
            assert other.call("ECHO", "x") == b"x", "meanwhile weir has time to try more often"
        assert fake.accepted - accepted == 1
        door.send(b"+OK\r\n")
        assert first.read() == "OK"
        door.expect(encode("AUTH", "bob", "pw"))
        door.send(b"-WRONGPASS no\r\n")
        assert second.read() == Error("WRONGPASS no")


# ---- upstream-timeout ----


def hung_weir(fake, farm, lanes="shared"):
    return weir_before(fake, farm, lanes=lanes, upstream_timeout="300ms", connect_timeout="500ms")


@pytest.mark.parametrize("lanes", LANES)
def test_hang_in_traffic(lanes, fake, farm):
    """A client that waits too long is closed, and so is its lane, so the late reply reaches no
    client.
    """
    weir = hung_weir(fake, farm, lanes)
    with weir.connect() as victim, weir.connect() as bystander:
        assert bystander.call("ECHO", "x") == b"x"
        start = time.monotonic()
        victim.send(GET_K)
        lane = fake.expect(GET_K)
        assert end_of(victim) == b""
        assert 0.25 < time.monotonic() - start < 0.3 + LATE
        lane.wait_gone()
        lane.send(b"+late\r\n")
        works_again(bystander)
        assert not bystander.buffer
        if lanes == "shared":
            wait_until(lambda: "upstream-timeout" in weir.log(), "the log says why")


@pytest.mark.parametrize("lanes", LANES)
def test_a_hung_reply_is_not_finished_by_time(lanes, fake, farm):
    """Half a reply came in time; the other half does not."""
    weir = hung_weir(fake, farm, lanes)
    with weir.connect() as victim, weir.connect() as bystander:
        assert bystander.call("ECHO", "x") == b"x"
        victim.send(pipeline("INCR k", "INCR k"))
        lane = fake.expect(INCR_K * 2)
        lane.send(b"+one\r\n$10\r\nhal")
        assert b"+one\r\n$10\r\nhal".startswith(end_of(victim))
        lane.wait_gone()
        works_again(bystander)


def test_all_of_it_hangs(fake, farm):
    """Clients with requests in flight are closed. Later clients get errors within upstream-timeout
    while Redis hangs, and stay connected.
    """
    weir = hung_weir(fake, farm)
    with weir.connect() as victim, weir.connect() as bystander:
        assert bystander.call("ECHO", "x") == b"x"
        fake.on_accept = hang
        victim.send(GET_K)
        fake.expect(GET_K)
        assert end_of(victim) == b""
        wait_until(lambda: is_told(bystander.call("ECHO", "x")), "it is told")
        start, n = time.monotonic(), 5
        assert all(bystander.call("ECHO", "x") == Error("UPSTREAM timeout") for _ in range(n))
        assert n * 0.3 <= time.monotonic() - start < n * 0.3 + LATE
        fake.on_accept = None
        works_again(bystander)


def test_answers_in_time_keep_a_lane(fake, farm):
    """One reply at a time, each in time, for longer than upstream-timeout: the time-out is per
    call, not per connection.
    """
    weir = hung_weir(fake, farm)
    with weir.connect() as conn:
        start = time.monotonic()
        conn.send(INCR_K)
        lane = fake.expect(INCR_K)
        while time.monotonic() - start < 1:
            conn.send(INCR_K)
            lane.expect(INCR_K)
            lane.send(b"+v\r\n")
            assert conn.read() == "v"
        lane.send(b"+v\r\n")
        assert conn.read() == "v"


@pytest.mark.parametrize("lanes", LANES)
def test_blocking_calls_may_take_longer(lanes, fake, farm):
    """BLPOP, WAIT and subscribers wait without a limit. A call that times out beside them does not
    affect them.
    """
    weir = hung_weir(fake, farm, lanes)
    fake.own[b"SUBSCRIBE"] = b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
    fake.own[b"MULTI"] = b"+OK\r\n"
    requests = [encode("BLPOP", "q", 0), encode("XREAD", "BLOCK", 0, "STREAMS", "s", "$"), encode("WAIT", 1, 0)]
    waiting = [weir.connect() for _ in requests]
    with weir.connect() as victim, weir.connect() as subscriber, weir.connect() as idle_in_multi:
        assert subscriber.call("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
        assert idle_in_multi.call("MULTI") == "OK"
        lanes = []
        for conn, request in zip(waiting, requests):
            conn.send(request)
            lanes.append(fake.expect(request))
        victim.send(GET_K)
        fake.expect(GET_K)
        assert end_of(victim) == b""
        for conn, lane in zip(waiting, lanes):
            assert not conn.is_closed() and not lane.is_gone
            lane.send(b"*-1\r\n")
            assert conn.read() is None
            conn.close()
        assert not subscriber.is_closed() and not idle_in_multi.is_closed()


# ---- clients that close ----


@pytest.mark.parametrize("leave", [reset, Conn.close], ids=["rst", "fin"])
def test_leaving_in_the_middle_of_a_request(leave, fake, front):
    """No part of the request travels."""
    with front.connect() as stays:
        assert stays.call("ECHO", "x") == b"x"
        for part in (b"*2\r\n$3\r\nGET\r\n$5\r\nhal", b"*2\r\n", b"*", b"GET ha", b"*2\r\n$3\r\nGET\r\n$5\r\nhalf!\r"):
            with front.connect() as leaver:
                assert leaver.call("ECHO", "x") == b"x"
                leaver.send(part)
                assert stays.call("ECHO", "x") == b"x"
                leave(leaver)
        with front.connect() as last:
            assert last.call("ECHO", "x") == b"x"
        assert fake.unanswered() == b""


def test_leaving_in_the_middle_of_a_large_request(fake, front):
    """The part that has travelled used a private lane, which is closed with the client."""
    with front.connect() as stays:
        assert stays.call("ECHO", "x") == b"x"
        begun = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9000000\r\n" + b"x" * 1_000_000
        with front.connect() as leaver:
            leaver.send(begun)
            lane = fake.expect(begun)
        lane.wait_gone()
        works_again(stays)


@pytest.mark.parametrize("leave", [reset, Conn.close], ids=["rst", "fin"])
def test_leaving_before_the_reply(leave, fake, farm):
    """The call of a closed client keeps its position: the next reply goes to the client of the next
    call.
    """
    weir = weir_before(fake, farm, lanes="shared")
    with weir.connect() as leaver, weir.connect() as stays, weir.connect() as last:
        first, second = encode("INCR", "first"), encode("INCR", "second")
        send_in_one_turn(fake, (stays, first), (leaver, INCR_K * 3), (last, second))
        lane = fake.expect(first + INCR_K * 3 + second)
        leave(leaver)
        lane.send(b"+first\r\n" + b"+gone\r\n" * 3 + b"+second\r\n")
        assert [stays.read(), last.read()] == ["first", "second"]
        lane.answer_again()
        assert stays.call("ECHO", "x") == last.call("ECHO", "x") == b"x"


@pytest.mark.parametrize("leave", [reset, Conn.close], ids=["rst", "fin"])
def test_leaving_in_the_middle_of_a_reply(leave, fake, farm):
    weir = weir_before(fake, farm, lanes="shared")
    with weir.connect() as leaver, weir.connect() as stays:
        send_in_one_turn(fake, (leaver, GET_K), (stays, encode("GET", "second")))
        lane = fake.expect(GET_K + encode("GET", "second"))
        lane.send(b"*2\r\n+half\r\n$16\r\n+mine\r\n")
        wait_until(lambda: leaver.buffer or select.select([leaver.sock], [], [], 0)[0], "half of it is here")
        leave(leaver)
        lane.send(b"+mine\r\n\r\n\r\n" + b"+second\r\n")
        assert stays.read() == "second"


def test_leaving_a_lane_of_its_own(fake, farm):
    weir = weir_before(fake, farm, lanes="private")
    with weir.connect() as stays:
        with weir.connect() as leaver:
            leaver.send(GET_K)
            lane = fake.expect(GET_K)
        lane.send(b"+late\r\n")
        for _ in range(5):  # as many clients as might get that lane
            with weir.connect() as new:
                assert new.call("ECHO", "x") == b"x"
        assert stays.call("ECHO", "x") == b"x"


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("leave", [reset, Conn.close], ids=["rst", "fin"])
def test_leaving_while_blocked(leave, lanes, fake, farm):
    """The lane is closed at once. Otherwise Redis would send the next element to no client."""
    weir = weir_before(fake, farm, lanes=lanes)
    for request in (encode("BLPOP", "q", 0), encode("XREADGROUP", *"GROUP g me BLOCK 0 STREAMS s >".split())):
        with weir.connect() as leaver:
            leaver.send(request)
            lane = fake.expect(request)
            assert not lane.is_gone
            leave(leaver)
            lane.wait_gone(2)


@pytest.mark.parametrize("leave", [reset, Conn.close], ids=["rst", "fin"])
def test_nothing_is_popped_for_nobody(leave, redis, weir):
    for _ in range(20):
        with weir.connect() as leaver:
            leaver.send(encode("BLPOP", "q", 0))
            wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
            leave(leaver)
        wait_until(lambda: redis.waiting()[0] == 0, "Redis knows it has left")
        redis.call("RPUSH", "q", "element")
        assert redis.call("LPOP", "q") == b"element"


# ---- half-close: no more requests, but replies ----


def half_closed(weir, data):
    with weir.connect() as conn:
        conn.send(data)
        conn.sock.shutdown(socket.SHUT_WR)
        return conn.read_to_end()


def test_half_close_after_a_pipeline(redis, weir):
    """printf '...' | nc"""
    assert half_closed(weir, b"PING\r\nSET k v\r\nGET k\r\n") == b"+PONG\r\n+OK\r\n$1\r\nv\r\n"
    assert half_closed(weir, pipeline(*["INCR n"] * 5000)) == b"".join(b":%d\r\n" % (i + 1) for i in range(5000))
    error = redis.call("NOSUCH")
    assert error.startswith("ERR unknown command")
    assert half_closed(weir, pipeline("GET k", "NOSUCH")) == b"$1\r\nv\r\n-%s\r\n" % error.encode()
    assert half_closed(weir, b"") == b""
    assert half_closed(weir, encode("GET", "k") + b"*2\r\n$3\r\nGE") == b"$1\r\nv\r\n"


def test_half_close_on_a_private_lane(redis, weir):
    transaction = pipeline("SET k v", "MULTI", "GET k", "INCR n", "EXEC", "GET k")
    assert half_closed(weir, transaction) == b"+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$1\r\nv\r\n:1\r\n$1\r\nv\r\n"
    assert half_closed(weir, pipeline("GET k", "WATCH k", "GET k", "UNWATCH", "GET k")) == (
        b"$1\r\nv\r\n+OK\r\n$1\r\nv\r\n+OK\r\n$1\r\nv\r\n"
    )
    script = pipeline(["EVAL", "return 1", 0], "GET k", ["EVAL", "return 2", 0], "PING")
    assert half_closed(weir, script) == b":1\r\n$1\r\nv\r\n:2\r\n+PONG\r\n"
    assert half_closed(weir, pipeline("GET k", "HELLO 2", "SELECT 1", "GET k"))[-5:] == b"$-1\r\n"
    assert half_closed(weir, pipeline("MULTI", "SET k lost")) == b"+OK\r\n+QUEUED\r\n"
    assert redis.call("GET", "k") == b"v"
    subscribed = half_closed(weir, pipeline("SUBSCRIBE c", "PING", "UNSUBSCRIBE c", "GET k"))
    assert subscribed.endswith(b"$1\r\nv\r\n") and subscribed.startswith(b"*3\r\n$9\r\nsubscribe")
    # A subscriber that only listens would stay for ever: like Redis, weir closes it.
    assert half_closed(weir, pipeline("SUBSCRIBE c")) in (b"", b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
    wait_until(lambda: redis.waiting() == (0, 0, 0), "Redis forgets them")


UNCOUNTED = {  # their EXEC answers in frames that cannot be counted
    "subscribe": ["PING", "MULTI", "SUBSCRIBE a", "PSUBSCRIBE p*", "GET k", "EXEC", "PING"],
    "unsubscribe": ["SUBSCRIBE a b", "MULTI", "UNSUBSCRIBE", "EXEC", "GET k"],
    "monitor": ["MULTI", "MONITOR", "EXEC"],
    "silence": ["MULTI", "CLIENT REPLY OFF", "EXEC", "GET k", "CLIENT REPLY ON", "GET k"],
    "many": ["MULTI", "SUBSCRIBE a", "INCR n", "UNSUBSCRIBE a", "EXEC"] * 1000,
}


@pytest.mark.parametrize("case", UNCOUNTED)
def test_half_close_behind_answers_that_nobody_can_count(case, redis, weir):
    data = pipeline("SET n 0", "SET k v", *UNCOUNTED[case])
    expected = half_closed(redis, data)
    assert half_closed(weir, data) == expected
    assert half_closed(weir, data + data) == half_closed(redis, data + data)
    assert half_closed(weir, data + b"*2\r\n$3\r\nGET\r\n$2\r\nk") == expected, "a part of a request"
    wait_until(lambda: redis.waiting() == (0, 0, 0), "Redis forgets them")


def test_half_close_of_one_that_hears_on(redis, weir):
    """The client has its replies before its end, and takes no element while it waits for the next
    reply.
    """
    with weir.connect() as conn:
        assert conn.ask("MULTI", "SUBSCRIBE a", "EXEC")[:2] == ["OK", "QUEUED"]
        conn.send(pipeline("UNSUBSCRIBE a", "BLPOP q 0"))
        conn.sock.shutdown(socket.SHUT_WR)
        conn.read_to_end()
    wait_until(lambda: redis.waiting() == (0, 0, 0), "Redis forgets it")
    redis.call("RPUSH", "q", "kept")
    assert redis.call("LPOP", "q") == b"kept"


def test_half_close_before_a_redis_that_hangs(farm):
    """weir does not wait for ever, though no countable reply is open."""
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, upstream_check=0, env={"WEIR_HURRY": "100"})
    with weir.connect() as conn:
        conn.ask("MULTI", "SUBSCRIBE a", "EXEC")
        os.kill(redis.child.pid, signal.SIGSTOP)
        try:
            conn.sock.shutdown(socket.SHUT_WR)
            assert conn.read_to_end().count(b"subscribe") <= 1
        finally:
            os.kill(redis.child.pid, signal.SIGCONT)


def test_half_close_with_blocking_commands(redis, weir):
    """Blocking commands that find an element do not block. A client that blocks is closed, as by
    Redis, and takes nothing.
    """
    assert half_closed(weir, pipeline("RPUSH q a b", "BLPOP q 0", "BLPOP q 0", "PING")) == (
        b":2\r\n*2\r\n$1\r\nq\r\n$1\r\na\r\n*2\r\n$1\r\nq\r\n$1\r\nb\r\n+PONG\r\n"
    )
    assert half_closed(weir, pipeline("PING", "BLPOP q 0")) in (b"", b"+PONG\r\n")
    wait_until(lambda: redis.waiting()[0] == 0, "nobody blocks")
    redis.call("RPUSH", "q", "kept")
    assert redis.call("LPOP", "q") == b"kept"


def test_half_close_far_before_a_blocking_command(redis, weir):
    """Whether the command blocks is unknown until Redis reaches it. Until then the client may read
    slowly.
    """
    redis.call("SET", "dear", b"x" * 200_000)
    redis.call("SET", "large", b"x" * 200_000)
    end = b":1\r\n*2\r\n$1\r\nq\r\n$1\r\na\r\n$3\r\nend\r\n"
    behind = pipeline("RPUSH q a", "BLPOP q 1", "ECHO end")
    assert half_closed(weir, encode("BITCOUNT", "dear") * 3000 + behind) == b":800000\r\n" * 3000 + end
    many = pipeline("MULTI", *["ECHO aaaaaaaaaa"] * 10_000, "EXEC")
    assert half_closed(weir, many + behind).endswith(end)
    with weir.connect() as conn:
        conn.send(encode("GET", "large") * 50 + behind)
        conn.sock.shutdown(socket.SHUT_WR)
        for _ in range(50):
            assert len(conn.read()) == 200_000
        assert conn.read_to_end() == end


LONG_READ = ["GET large"] * 10


def gets(redis):
    """Returns how many GETs Redis has run."""
    return int(re.search(r"cmdstat_get:calls=(\d+)", redis.call("INFO", "commandstats").decode())[1])


@pytest.mark.parametrize(
    "words",
    [
        ["MULTI", "CLIENT REPLY OFF", "NOSUCH", "EXEC", *LONG_READ, "QUIT"],
        ["MULTI", "SUBSCRIBE c", "EXEC", "UNSUBSCRIBE c", *LONG_READ, "QUIT"],
    ],
    ids=["CLIENT REPLY in an EXEC that fails", "SUBSCRIBE in EXEC"],
)
def test_quit_where_replies_cannot_be_told_apart(words, redis, weir):
    """Redis closes after its reply to QUIT. weir delivers all that came before, when the client
    reads.
    """
    redis.call("SET", "large", b"x" * (1 << 20))
    with redis.connect() as plain, weir.connect() as conn:
        plain.send(pipeline(*words))
        expected = plain.read_to_end()
        assert expected.endswith(b"+OK\r\n")
        conn.send(pipeline(*words))
        assert conn.read() == "OK"
        wait_until(lambda: gets(redis) == 2 * len(LONG_READ), "Redis has carried them out", 5)
        heard = bytearray(b"+OK\r\n" + conn.buffer)
        while piece := conn.sock.recv(1 << 13):  # weir has the bytes earlier
            heard += piece
        assert heard == expected


def test_half_close_before_the_replies_come(fake, front):
    """A half-closed client gets its replies, however late they come."""
    with front.connect() as conn:
        conn.send(pipeline("INCR k", "INCR k"))
        conn.sock.shutdown(socket.SHUT_WR)
        lane = fake.expect(INCR_K * 2)
        lane.send_slowly(b"$3\r\none\r\n")
        assert conn.read() == b"one"
        lane.send_slowly(b"$3\r\ntwo\r\n")
        assert conn.read_to_end() == b"$3\r\ntwo\r\n"


# ---- a large request that is cut in the middle ----

LARGE = encode("SET", "k", "x" * 200_000)
END_LARGE = {"broken": lambda conn: conn.send(b"XX"), "fin": lambda conn: conn.sock.shutdown(socket.SHUT_WR)}
EXPECTED_CRLF = b"-ERR Protocol error: expected CRLF\r\n"


@pytest.mark.parametrize("end", END_LARGE)
def test_half_a_large_request(end, fake, front):
    """The lane that got half of it delivers the earlier replies, then closes. No other client is on
    the lane.
    """
    with front.connect() as victim, front.connect() as bystander:
        assert bystander.call("ECHO", "x") == b"x"
        victim.send(LARGE)
        lane = fake.expect(LARGE)
        lane.send(b"+stored\r\n")
        assert victim.read() == "stored", "it has a connection of its own now"
        victim.send(GET_K * 3 + LARGE[:-2])
        lane.expect(GET_K * 3 + LARGE[:-2])
        lane.send(b"+one\r\n+t")
        assert victim.read() == "one"
        END_LARGE[end](victim)
        works_again(bystander)
        lane.send_slowly(b"wo\r\n+three\r\n")
        assert end_of(victim) == b"+two\r\n+three\r\n" + (EXPECTED_CRLF if end == "broken" else b"")
        lane.wait_gone()
        works_again(bystander)
        assert not bystander.is_closed()


def test_half_a_large_request_that_waited(fake, front):
    """The client half-closes before the request can go: the request is cut all the same."""
    with front.connect() as victim, front.connect() as bystander:
        works_again(bystander)
        victim.send(GET_K + LARGE[:100])
        victim.sock.shutdown(socket.SHUT_WR)
        for _ in range(3):
            bystander.call("LIMIT", "STATUS")  # weir has noticed the half-close by then
        lane = fake.expect(GET_K)
        lane.send(b"+one\r\n")
        assert end_of(victim) == b"+one\r\n"
        assert not bystander.is_closed()


# ---- clients that do not read, and too many clients ----


@pytest.mark.parametrize("lanes", LANES)
def test_a_client_that_never_reads(lanes, farm):
    """Unread replies of a client are bounded. Above the bound the client is closed and logged, and
    other clients have never waited.
    """
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, lanes=lanes, output_limit="1mb")
    redis.call("SET", "big", "x" * (1 << 20))
    before = memory(weir)
    with weir.connect() as other, weir.connect() as deaf:
        assert other.call("SET", "k", "v") == "OK"
        sender = threading.Thread(target=deaf.send, args=(pipeline(*["GET big"] * 200),))
        sender.start()

        def is_named():
            assert other.call("GET", "k") == b"v"
            return any(deaf.name in line and "closed" in line for line in weir.log().splitlines())

        wait_until(is_named, "the log names it")
        sender.join()
        assert memory(weir) - before < 64 << 20
        assert other.call("GET", "k") == b"v"


@pytest.mark.parametrize("lanes", LANES)
def test_storm_of_short_connections(lanes, farm):
    """Connections that close at every stage leave nothing behind."""
    redis = farm.redis()
    weir = farm.weir(redis, workers=2, lanes=lanes)
    stages = [b"", b"*1\r\n$4\r\nPI", encode("PING"), pipeline(*["GET k"] * 20), pipeline("MULTI", "GET k"), b"\x00"]
    with weir.connect() as stays:
        assert stays.call("SET", "k", "v") == "OK"

        def burst(n):
            for i in range(n):
                conn = weir.connect()
                conn.send(stages[i % len(stages)])
                (reset if i % 7 else Conn.close)(conn)

        burst(100)
        wait_until(lambda: clients_of(redis) < 30, "the first ones are forgotten")
        files = open_files(weir)
        burst(3000)
        wait_until(lambda: open_files(weir) <= files + 2, "weir has as many files open as before")
        assert stays.call("GET", "k") == b"v"


def clients_of(redis):
    return int(redis.info("connected_clients"))


def test_announced_and_not_sent(farm):
    """A thousand connections announce half a gigabyte each: memory grows only with the bytes that
    have come.
    """
    weir = farm.weir(farm.redis(), workers=1)
    with weir.connect() as first:
        assert first.call("PING") == "PONG"
        # brings the fixed cost of connections into memory before the test
        crowd = [dial(weir.address) for _ in range(100)]
        before = memory(weir)
        crowd += [dial(weir.address) for _ in range(1000)]
        for sock in crowd[100:]:
            sock.sendall(b"*2\r\n$4\r\nECHO\r\n$536870912\r\n")
        for _ in range(3):
            assert first.call("PING") == "PONG"
        assert memory(weir) - before < (64 if is_sanitized(weir) else 16) << 20
        for sock in crowd:
            sock.close()
        assert first.call("PING") == "PONG"


class FewFiles(Weir):
    """weir with a low limit of open files."""

    def start(self):
        self.launch(["prlimit", "--nofile=256:256", str(WEIR), "-c", str(self.config)])


@pytest.mark.parametrize("lanes", LANES)
def test_without_descriptors_who_is_connected_is_served(lanes, farm):
    """Connected clients are served, also with a new connection to Redis. Further clients get an
    error.
    """
    redis = farm.redis()
    weir = farm._start(FewFiles(redis, workers=2, lanes=lanes))
    weir.wait_ready()
    with weir.connect() as early:
        assert early.call("SET", "k", "v") == "OK"
        crowd, told = [], None
        try:
            while told is None and len(crowd) < 300:
                conn = weir.connect()
                crowd.append(conn)
                conn.send(encode("PING"))
                reply = conn.read()
                assert reply == "PONG" or is_told(reply) or reply == Error(MAX_CLIENTS[1:-2].decode())
                told = None if reply == "PONG" else reply
            assert told == Error(MAX_CLIENTS[1:-2].decode())
            assert crowd[-1].read_to_end() == b""
            assert early.ask("GET k", "PING") == [b"v", "PONG"]
            assert crowd[0].call("GET", "k") == b"v"
            assert early.call("EVAL", "return 7", 0) == 7, "a connection to Redis can still be made"
        finally:
            for conn in crowd:
                conn.close()
        wait_until(lambda: is_welcome(weir), "there is room again")


def is_welcome(weir):
    with weir.connect() as conn:
        try:
            return conn.call("PING") == "PONG"
        except Closed:
            return False


# ---- a Redis that stops ----


class Traffic:
    """Clients that check every reply, until they are stopped."""

    def __init__(self, weir, commands, n=6):
        self.weir, self.commands = weir, commands
        self.stops = threading.Event()
        self.wrong = []
        self.done = [0] * n
        self.threads = [threading.Thread(target=self._run, args=(i,)) for i in range(n)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        wait_until(lambda: all(self.done), "everybody has begun")
        return self

    def __exit__(self, *_):
        self.stops.set()
        for thread in self.threads:
            thread.join()

    def _run(self, i):
        try:
            with self.weir.connect() as conn:
                while not self.stops.is_set():
                    token = b"%d:%d" % (i, self.done[i])
                    for request, wanted in self.commands(token):
                        reply = conn.call(*request)
                        if reply != wanted:
                            self.wrong.append((request, reply))
                            return
                    self.done[i] += 1
        except Closed:
            self.wrong.append((i, "closed"))

    def goes_on(self):
        before = list(self.done)
        wait_until(lambda: self.wrong or all(now > then for now, then in zip(self.done, before)), "everybody goes on")


def ordinary(token):
    key = b"key:" + token.split(b":")[0]
    yield ("ECHO", token), token
    yield ("SET", key, token), "OK"
    yield ("GET", key), token


def also_private(token):
    yield from ordinary(token)
    yield ("EVAL", "return ARGV[1]", 0, token), token
    yield ("MULTI",), "OK"
    yield ("ECHO", token), "QUEUED"
    yield ("EXEC",), [token]


def test_redis_stands_still_and_goes_on(farm):
    """Redis stops for two seconds: every reply comes, late, to its client."""
    redis = farm.redis()
    with Traffic(farm.weir(redis), also_private) as traffic:
        redis.signal(signal.SIGSTOP)
        try:
            time.sleep(2)  # the duration of the fault
        finally:
            redis.signal(signal.SIGCONT)
        traffic.goes_on()
    assert not traffic.wrong


@pytest.mark.parametrize("lanes", LANES)
def test_client_pause_holds_back_everything_and_then_all_goes_on(lanes, farm):
    """CLIENT PAUSE delays every command, and weir's own greeting: all of it waits, and then goes
    on.
    """
    redis = farm.redis()
    weir = farm.weir(redis, lanes=lanes)
    with Traffic(weir, also_private) as traffic:
        assert redis.call("CLIENT", "PAUSE", 1500, "ALL") == "OK"
        with weir.connect() as new, weir.connect() as scripting:
            new.send(encode("ECHO", "new"))
            scripting.send(encode("EVAL", "return 7", 0))
            assert [new.read(), scripting.read()] == [b"new", 7]
        traffic.goes_on()
    assert not traffic.wrong


@pytest.mark.parametrize("lanes", LANES)
def test_client_pause_of_writes(lanes, farm):
    """CLIENT PAUSE ... WRITE delays writers, and soon delays no client that only reads. UNPAUSE
    lets writers go.
    """
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, lanes=lanes)
    with weir.connect() as writer, weir.connect() as reader:
        assert reader.ask("SET k v", "CLIENT PAUSE 60000 WRITE") == ["OK", "OK"]
        writer.send(encode("SET", "k", "later"))
        wait_until(lambda: redis.waiting()[0] == 1, "the writer waits")
        try:
            wait_until(lambda: reads(weir, b"v"), "what comes once the lane has fallen silent goes elsewhere")
            assert reader.ask("GET k", "GET k") == [b"v", b"v"]
            assert reader.call("CLIENT", "UNPAUSE") == "OK"
        finally:
            redis.call("CLIENT", "UNPAUSE")
        assert writer.read() == "OK"
        assert reader.call("GET", "k") == b"later"


def reads(weir, value):
    with weir.connect() as conn:
        conn.sock.settimeout(0.2)
        conn.send(encode("GET", "k"))
        try:
            return conn.read() == value
        except TimeoutError:
            return False


@pytest.mark.parametrize("lanes", LANES)
def test_restart_in_traffic(lanes, farm):
    """Redis is killed and restarts empty. Some clients are closed, and a command that waited finds
    no key. No client gets another client's reply, and all clients are served within two seconds.
    """
    redis = farm.redis()
    weir = farm.weir(redis, lanes=lanes)
    with Traffic(weir, ordinary) as traffic:
        redis.kill()
        redis.start()
    for what, reply in traffic.wrong:
        is_empty = reply is None and what[0] == "GET"
        assert reply == "closed" or is_empty or is_told(reply), (what, reply)
    with weir.connect() as conn:
        works_again(conn)


# ---- a pipeline of huge values ----


def test_the_first_read_is_answered_before_the_second(fake, farm):
    """weir sends the next reads once it knows that the first one is not huge."""
    weir = weir_before(fake, farm, lanes="shared")
    with weir.connect() as conn:
        conn.send(INCR_K + GET_K * 3 + INCR_K)
        lane = fake.expect(INCR_K + GET_K)
        assert not lane.data
        lane.send(b":1\r\n+one\r\n")
        lane.expect(GET_K * 2 + INCR_K)
        lane.send(b"+two\r\n+three\r\n:2\r\n")
        assert [conn.read() for _ in range(5)] == [1, "one", "two", "three", 2]


def test_who_pipelines_huge_values_holds_up_nobody(fake, farm):
    """Two new clients pipeline huge values. Only the first value of each is on the shared lane, the
    second client's even behind the first client's.
    """
    huge = b"$1000000\r\n" + b"x" * 1000000 + b"\r\n"
    weir = weir_before(fake, farm, lanes="shared")
    with weir.connect() as first, weir.connect() as second, weir.connect() as other:
        send_in_one_turn(fake, (first, GET_K * 2), (second, GET_K * 2), (other, INCR_K * 2))
        lane = fake.expect(GET_K * 2 + INCR_K * 2)
        assert not lane.data
        lane.send(huge)
        lane.send(huge)
        lane.send(b":1\r\n")
        assert other.read() == 1
        assert [len(conn.read()) for conn in (first, second)] == [1000000] * 2
        own = [fake.expect(GET_K) for _ in range(2)]
        assert lane not in own and own[0] is not own[1]
        for each in own:
            each.send(b"+rest\r\n")
        assert [conn.read() for conn in (first, second)] == ["rest"] * 2
        lane.send(b":2\r\n")  # until now the lane had a call to answer, and was not private
        assert other.read() == 2


def test_after_a_huge_value_first_reads_have_a_lane_of_their_own(farm):
    """The size of a new client's first value is unknown, so only new clients wait behind it. The
    client's next read uses the shared lane again.
    """
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, lanes="shared")
    redis.call("SET", "huge", "x" * 1_000_000)
    with redis.connect() as monitor, weir.connect() as known, weir.connect() as first:
        assert monitor.call("MONITOR") == "OK"

        def lane_of(conn):
            """Returns the lane of the connection's next read."""
            key = uuid.uuid4().hex
            assert conn.call("GET", key) is None
            line = next(line for line in iter(monitor.read, None) if key in line)
            return line.split("]")[0].split()[-1]

        assert lane_of(known) == lane_of(known)
        assert len(first.call("GET", "huge")) == 1_000_000

        def goes_apart():
            with weir.connect() as stranger:
                lanes = [lane_of(each) for each in (known, stranger, stranger, known)]
                assert lanes[0] == lanes[2] == lanes[3]
                return lanes[0] != lanes[1]

        wait_until(goes_apart, "a lane for first reads is ready")


# ---- reused connections ----

RESET = encode("rESET")  # weir's spelling of its own commands


@pytest.fixture
def used(fake, farm):
    """weir in front of a fake that knows transactions, and one idle connection."""
    fake.own.update({b"MULTI": b"+OK\r\n", b"EXEC": b"*0\r\n"})
    weir = weir_before(fake, farm)
    with weir.connect() as conn:
        assert conn.ask("MULTI", "EXEC") == ["OK", []]
    del fake.own[b"RESET"]
    return weir


def test_a_lane_lost_while_it_is_reset_says_nothing_of_the_others(fake, used):
    for _ in range(2):
        with used.connect() as conn:
            conn.call("AUTH", "joe", "pw")
            conn.send(pipeline("MULTI"))
            fake.expect(RESET).reset()
            assert conn.read() == "OK", "on another"
            assert conn.ask("EXEC", "MULTI", "EXEC") == [[], "OK", []]
        with used.connect() as conn:
            conn.send(pipeline("MULTI", "EXEC"))
            lane = fake.expect(RESET)
            lane.send(b"+RESET\r\n")
            lane.answer_again()
            assert [conn.read(), conn.read()] == ["OK", []]


@pytest.mark.parametrize("answer", [
    b"-ERR unknown command 'RESET'\r\n", b"-NOPERM this user has no permissions to run the 'reset' command\r\n",
    b"+OK\r\n", b"+RESET\r\n+OK\r\n", b"+RESET\r\n+OK\r\n+OK\r\n", b"+RESET \r\n", b"*1\r\n+RESET\r\n", b"RESET",
])
def test_a_connection_that_does_not_come_clean_is_closed(answer, fake, used):
    """Any reply that differs from that of a clean connection may mean a leftover session. No client
    gets such a reply.
    """
    with used.connect() as conn:
        conn.call("AUTH", "joe", "pw")
        conn.send(pipeline("MULTI"))
        lane = fake.expect(RESET)
        lane.send(answer)
        lane.wait_gone()
        assert conn.read() == "OK", "on another"
        assert conn.ask("EXEC", "MULTI", "EXEC") == [[], "OK", []]
    with used.connect() as conn:
        assert conn.ask("MULTI", "EXEC") == ["OK", []]
