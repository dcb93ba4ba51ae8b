"""`over delay`: a leaky bucket as a queue. Commands over the limit run later, in order, and other
clients do not wait.

The tests check to the microsecond that nothing runs early. A busy machine may make commands late,
so that bound is loose.
"""

import contextlib
import os
import select
import signal
import socket
import time

import pytest
from kit.crowd import RST
from kit.harness import TOLD_AT_ONCE, wait_until
from kit.limits import OPERATOR, limit_of, login, order, passed, refusal, tallies
from kit.resp import TIMEOUT, Error, encode, pipeline

UNIX = "unix:{folder}/weir.sock"
LATE = 3.0  # seconds that a loaded machine may add


@pytest.fixture
def queue(farm, redis):
    """One worker, which keeps the order of arrival. 4/s: the first command runs, four may wait, 250
    ms apart.
    """
    return farm.weir(redis, workers=1, sections="[policy default]\nwrite = 4/s over delay 1s\n" + OPERATOR)


def close_all(conns):
    for conn in conns:
        conn.close()


def arrivals(conns):
    """Returns when each connection got one reply, and the reply; in the order of the connections.
    """
    found = []
    for conn in conns:
        reply = conn.read()
        found.append((time.monotonic(), reply))
    return found


# ---- departures ----


def test_a_burst_on_one_connection(limited, redis):
    weir = limited("[policy default]\nwrite = 100/s over delay 1s\n")
    with weir.connect() as a:
        a.call("GET", "k")
        start = time.monotonic()
        a.send(pipeline(*[f"RPUSH l {i}" for i in range(100)]))
        for i in range(100):
            assert a.read() == i + 1
            assert time.monotonic() >= start + i * 0.01, "early"
        assert time.monotonic() < start + 1 + LATE
    assert redis.call("LRANGE", "l", 0, -1) == [b"%d" % i for i in range(100)]


@contextlib.contextmanager
def asleep(weir):
    """weir is stopped meanwhile. Bytes sent over a unix socket are all there when weir continues,
    in the order of sending, on any machine.
    """
    weir.signal(signal.SIGSTOP)
    os.waitid(os.P_PID, weir.child.pid, os.WSTOPPED)
    try:
        yield
    finally:
        weir.signal(signal.SIGCONT)


@contextlib.contextmanager
def order_of_replies(conns):
    """Returns the connections in the order in which replies become readable. The kernel knows that
    order even if the test looks late.
    """
    by_fd = {conn.sock.fileno(): conn for conn in conns}
    with select.epoll() as epoll:
        for fd in by_fd:
            epoll.register(fd, select.EPOLLIN | select.EPOLLONESHOT)
        yield (by_fd[epoll.poll(TIMEOUT, maxevents=1)[0][0]] for _ in conns)


def is_in_order(pushed, redis):
    """Checks that consecutive commands run in order. If Redis is slow to answer, weir has two
    connections to Redis, and Redis chooses which of two commands it reads first.
    """
    n_lanes = redis.call("CLIENT", "LIST").count(b" cmd=rpush ")
    return pushed == sorted(pushed) or n_lanes > 1


@pytest.mark.parametrize("workers", [1, 2])
def test_a_burst_on_many_connections(workers, farm, redis):
    """The first command runs and a hundred may wait. All others are refused at once."""
    sections = "[policy default]\nwrite = 100/s over delay 1s\n" + OPERATOR
    weir = farm.weir(redis, workers=workers, sections=sections, listen=UNIX)
    conns = [weir.connect() for _ in range(150)]
    for conn in conns:
        conn.call("GET", "k")
    with asleep(weir):
        for i, conn in enumerate(conns):
            conn.send(encode("RPUSH", "l", i))
        start = time.monotonic()
    wait_until(lambda: counted(weir) == 150, "all have been asked")
    decided = time.monotonic() - start
    replies = []
    for conn in conns:
        replies.append(conn.read())
        went = sum(limit_of(reply) is None for reply in replies)
        assert time.monotonic() >= start + (went - 1) * 0.01 or limit_of(replies[-1]), "early"
    took = time.monotonic() - start
    waited = passed(replies)
    assert 101 <= waited <= 101 + 100 * decided
    assert took >= (waited - 1) * 0.01 and took < 1 + decided + LATE
    retries = [refusal(reply)[1] for reply in replies if limit_of(reply)]
    assert all(0 < retry <= 10 * len(retries) for retry in retries)
    (_, admitted, delayed, refused, _), = tallies(weir)
    assert (admitted, refused) == (waited, 150 - waited)
    assert delayed >= waited - 1 - 100 * decided
    if workers == 1:
        assert is_in_order([int(i) for i in redis.call("LRANGE", "l", 0, -1)], redis)
    close_all(conns)


def test_the_one_too_many_is_refused_at_once(farm, redis):
    """The first command runs, four wait, and the sixth is refused before the second runs."""
    weir = farm.weir(redis, workers=1, sections="[policy default]\nwrite = 4/s over delay 1s\n" + OPERATOR, listen=UNIX)
    conns = [weir.connect() for _ in range(6)]
    for conn in conns:
        conn.call("GET", "k")
    with order_of_replies(conns) as came:
        with asleep(weir):
            for i, conn in enumerate(conns):
                conn.send(encode("RPUSH", "l", i))
            start = time.monotonic()
        assert conns[5] in (next(came), next(came)), "it did not wait"
    limit, retry = refusal(conns[5].read())
    assert limit == "default/write" and 0 < retry <= 250
    came = arrivals(conns[:5])
    assert all(at >= start + i * 0.25 for i, (at, _) in enumerate(came)), "early"
    assert is_in_order([reply for _, reply in came], redis)
    close_all(conns)


def counted(weir):
    """Returns the number of decisions up to now."""
    return sum(row[1] + row[3] for row in tallies(weir))


def test_a_burst_goes_at_once(farm, redis):
    weir = farm.weir(redis, workers=1, sections="[policy default]\nwrite = 5/s burst 20 over delay 5s\n")
    with weir.connect() as a:
        start = time.monotonic()
        a.send(pipeline(*["INCR k"] * 23))
        for i in range(23):
            assert a.read() == i + 1
            assert time.monotonic() >= start + max(0, i - 19) * 0.2, "early"
        assert time.monotonic() - start < 0.6 + LATE


def test_no_window_admits_too_much(farm, redis):
    """The funnel law over every window of a queue on two workers."""
    weir = farm.weir(redis, workers=2, sections="[policy default]\nwrite = 200/s burst 5 over delay 100ms\n")
    conns = [weir.connect() for _ in range(12)]
    sent, came = [], []
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        before = time.monotonic()
        for conn in conns:
            conn.send(encode("INCR", "k"))
        for conn in conns:
            assert isinstance(conn.read(), int)
            sent.append(before)
            came.append(time.monotonic())
    for i in range(0, len(sent), 3):
        for j in range(i, len(sent), 5):
            assert j - i + 1 <= 5 + 200 * (came[j] - sent[i]) + 1e-6
    close_all(conns)


def test_delays_per_connection_do_not_add_up(farm, redis):
    weir = farm.weir(redis, workers=1, sections="[policy default]\nwrite = 10/s per connection over delay 1s\n")
    conns = [weir.connect() for _ in range(5)]
    start = time.monotonic()
    for conn in conns:
        conn.send(pipeline(*["INCR k"] * 4))
    for conn in conns:
        for i in range(4):
            conn.read()
            assert time.monotonic() >= start + i * 0.1, "early"
    assert time.monotonic() - start < 0.3 + LATE
    close_all(conns)


@pytest.mark.parametrize("unit", ["cost = 10/s burst 10", "bytes-in = 1000/s burst 1000", "bytes-out = 1000/s burst 1000"])
def test_a_debt_of_cost_or_bytes_is_waited_for(unit, farm, redis):
    """A debt of 20 units of cost, or of 2000 bytes, delays the next command."""
    redis.call("SET", "big", b"x" * 3000)
    weir = farm.weir(
        redis, workers=1, sections=f"[cost]\nget = 20\nsetrange = 20\n[policy default]\n{unit} over delay 9s\n"
    )
    with weir.connect() as a:
        first, waits = time.monotonic(), 0
        a.call(*(["GET", "big"] if "out" in unit else ["SETRANGE", "big", 0, b"y" * 3000]))
        begin = time.monotonic()
        a.call("SET", "k", "v")
        waits = time.monotonic() - first
        assert waits >= 1, "early"
        assert time.monotonic() - begin < 4 + LATE


# ---- the client's connection ----


def test_replies_keep_their_order(limited):
    weir = limited("[policy default]\nwrite = 10/s over delay 1s\n")
    with weir.connect() as a:
        start = time.monotonic()
        replies = a.ask("INCR k", "PING", "INCR k", "ECHO x", "GET k", "INCR k", "LIMIT STATUS", "BLPOP none 0.01", "GET k")
        assert time.monotonic() - start >= 0.2, "early"
        assert replies[:6] == [1, "PONG", 2, b"x", b"2", 3]
        assert replies[6][0] == b"subject" and replies[7:] == [None, b"3"]


def test_time_counts_from_when_a_command_is_next(queue):
    """A pipeline of any length is late, but not refused: the wait of a command counts from when it
    is next.
    """
    with queue.connect() as a:
        a.send(pipeline(*["INCR k"] * 8))
        assert [a.read() for _ in range(8)] == list(range(1, 9))


def test_commands_in_multi_are_delayed(limited):
    weir = limited("[policy default]\nwrite = 10/s over delay 1s\n")
    with weir.connect() as a:
        start = time.monotonic()
        replies = a.ask("MULTI", "INCR k", "INCR k", "INCR k", "EXEC", "GET k")
        assert time.monotonic() - start >= 0.2, "early"
        assert replies == ["OK", *["QUEUED"] * 3, [1, 2, 3], b"3"]


def test_a_transaction_with_a_command_that_may_not_wait_so_long(limited, redis):
    weir = limited("[policy default]\nwrite = 1/h over delay 1s\n")
    with weir.connect() as a:
        replies = a.ask("MULTI", "INCR k", "INCR k", "EXEC", "GET k")
        assert limit_of(replies[2]) == "default/write"
        assert replies[3].startswith("EXECABORT") and replies[4] is None


def test_a_large_request_waits_for_its_turn(limited, redis):
    weir = limited("[policy default]\nwrite = 5/s over delay 1s\n")
    value = bytes(range(256)) * 8192
    with weir.connect() as a, weir.connect() as b:
        start = time.monotonic()
        a.send(encode("SET", "a", value) + encode("SET", "b", value) + encode("GET", "a"))
        assert [a.read(), a.read()] == ["OK", "OK"]
        assert time.monotonic() - start >= 0.2, "early"
        assert a.read() == value
        assert b.call("SET", "c", value) == "OK"
        assert time.monotonic() - start >= 0.4, "early"
        assert redis.call("MGET", "b", "c") == [value, value]


def test_a_large_request_that_would_wait_too_long(limited, redis):
    weir = limited("[policy default]\nwrite = 1/h over delay 1s\n")
    with weir.connect() as a:
        a.send(encode("SET", "a", "v") + encode("SET", "b", b"x" * 2_000_000) + encode("EXISTS", "a", "b"))
        assert a.read() == "OK"
        assert limit_of(a.read()) == "default/write"
        assert a.read() == 1


def test_silent_clients_wait_too(queue, redis):
    with queue.connect() as a:
        start = time.monotonic()
        a.send(pipeline("CLIENT REPLY OFF", *["INCR k"] * 3, "CLIENT REPLY ON", "GET k"))
        assert [a.read(), a.read()] == ["OK", b"3"]
        assert time.monotonic() - start >= 0.5, "early"


def test_what_another_limit_refuses_is_refused_at_once(farm, redis):
    """The delaying limit gives no position to such a command, and EXPLAIN shows that."""
    weir = farm.weir(
        redis, workers=1, sections="[policy default]\nall = 2/s over delay 20s\nwrite = 1/h\n" + OPERATOR
    )
    with weir.connect() as a, weir.connect() as b:
        start = time.monotonic()
        assert a.ask("SET k 1", "GET k") == ["OK", b"1"]
        explained = a.call("LIMIT", "EXPLAIN", "SET", "k", "2")
        verdict = dict(zip(explained[::2], explained[1::2]))
        assert (verdict[b"verdict"], verdict[b"limit"]) == (b"refuse", b"default/write")
        assert [limit_of(reply) for reply in a.ask(*["SET k 2"] * 10)] == ["default/write"] * 10
        assert time.monotonic() - start < 0.5 + LATE
        assert b.call("GET", "k") == b"1"
        assert time.monotonic() - start < 1 + LATE, "as if nobody had been refused"
    assert [row[1:4] for row in tallies(weir)] == [(3, 2, 0), (1, 0, 10)]


def test_what_the_key_refuses_the_connection_does_not_delay(farm, redis):
    redis.call("SET", "a:big", b"x" * 30000)
    weir = farm.weir(
        redis,
        workers=1,
        identity="key:1, ip",
        sections="[policy default]\nwrite = 1/h\nbytes-out = 1000/s burst 1000 over delay 10m\n",
    )
    with weir.connect() as a:
        assert a.call("SET", "a:1", "v") == "OK"
        start = time.monotonic()
        assert len(a.call("GET", "a:big")) == 30000
        assert limit_of(a.call("SET", "a:2", "v")) == "default/write"
        assert time.monotonic() - start < 20, "it waited for the debt"


def test_other_limits_are_asked_on_departure(farm, redis):
    """A command refused at departure gives its position back, as no command is behind it."""
    weir = farm.weir(
        redis, workers=1, sections="[policy default]\n@string = 20/m over delay 6s\nwrite = 3/h\n" + OPERATOR
    )
    with weir.connect() as a, weir.connect() as b:
        assert a.call("SET", "k", 1) == "OK"
        a.send(encode("SET", "k", 2))
        wait_until(lambda: tallies(weir)[0][2] == 1, "it has its place")
        assert b.ask("RPUSH l 1", "RPUSH l 2") == [1, 2]
        assert limit_of(a.read()) == "default/write"
        assert redis.call("GET", "k") == b"1"
    assert [row[1:4] for row in tallies(weir)] == [(1, 1, 0), (3, 0, 1)]


def test_two_limits_that_delay_starve_nobody(limited, redis):
    """Readers wait for the narrower limit, and then not for a position behind all writers: each
    limit is charged once.
    """
    weir = limited("[policy default]\nread = 50/s over delay 20s\nall = 100/s over delay 20s\n" + OPERATOR)
    redis.call("SET", "k", "v")
    readers = [weir.connect() for _ in range(8)]
    writers = [weir.connect() for _ in range(8)]
    for conn in writers:
        conn.send(pipeline(*["SET k v"] * 40))
    for conn in readers:
        conn.send(pipeline(*["GET k"] * 10))
    for conn in readers:
        assert [conn.read() for _ in range(10)] == [b"v"] * 10
    passed_by_then = {row[0]: row[1] for row in tallies(weir)}
    assert passed_by_then["default/read"] == 80
    assert passed_by_then["default/all"] < 300, "writers went before readers all the time"
    for conn in writers:
        assert [conn.read() for _ in range(40)] == ["OK"] * 40
    assert [row[1] for row in tallies(weir)] == [80, 400]
    close_all(readers + writers)


# ---- clients that close ----


def test_who_leaves_loses_its_place(queue, redis):
    """The position stays used: later commands run no earlier. Nothing of the closed client runs."""
    conns = [queue.connect() for _ in range(4)]
    for conn in conns:
        conn.call("GET", "k")
    start = time.monotonic()
    for i, conn in enumerate(conns):
        conn.send(encode("RPUSH", "l", i))
        wait_until(lambda i=i: counted(queue) == i + 1, "it has its place")
    conns[1].sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)
    conns[1].close()
    assert conns[0].read() == 1
    assert conns[2].read() == 2
    assert time.monotonic() >= start + 0.5, "early"
    assert conns[3].read() == 3
    assert time.monotonic() >= start + 0.75, "early"
    assert redis.call("LRANGE", "l", 0, -1) == [b"0", b"2", b"3"]
    close_all(conns)


def test_the_last_in_the_queue_gives_its_place_back(farm, redis):
    """The next command gets the position, as if it had never been used."""
    weir = farm.weir(redis, workers=1, sections="[policy default]\nwrite = 1/s over delay 1m\n" + OPERATOR)
    conns = [weir.connect() for _ in range(12)]
    for i, conn in enumerate(conns):
        conn.send(encode("RPUSH", "l", i))
        wait_until(lambda i=i: counted(weir) == i + 1, "it has its place")
    for left, conn in reversed(list(enumerate(conns[1:], 1))):
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)
        conn.close()
        wait_until(lambda left=left: counted(weir) == left, "it is gone")
    start = time.monotonic()
    with weir.connect() as late:
        assert late.call("RPUSH", "l", "late") == 2
        assert time.monotonic() - start < 2 + LATE
    assert redis.call("LRANGE", "l", 0, -1) == [b"0", b"late"]
    assert conns[0].read() == 1
    conns[0].close()


def test_a_long_pipeline_is_not_carried_out_for_nobody(farm, redis):
    """weir notices the closed client when the first reply cannot be delivered."""
    weir = farm.weir(redis, workers=1, sections="[policy default]\nwrite = 50/s over delay 1s\n")
    with weir.connect() as a:
        a.send(pipeline(*["INCR k"] * 100))
        assert a.read() == 1
    with weir.connect() as b:
        time.sleep(0.5)
        assert int(b.call("GET", "k")) < 12


def test_who_sends_no_more_still_waits_for_its_turn(queue):
    with queue.connect() as a:
        a.send(pipeline(*["INCR k"] * 3))
        a.sock.shutdown(socket.SHUT_WR)
        assert [a.read() for _ in range(3)] == [1, 2, 3]
        assert a.read_to_end() == b""


# ---- commands that do not wait ----


def test_others_go_on(limited, users):
    weir = limited("[policy users]\nmatch = user:alice\nwrite = 1/s over delay 10s\n")
    waiting = [login(weir, "alice") for _ in range(3)]
    for conn in waiting:
        conn.send(pipeline("INCR k", "INCR k"))
    with login(weir, "bob") as bob, weir.connect() as other, login(weir, "alice") as reader:
        for i in range(50):
            assert bob.call("INCR", "bob") == i + 1
            assert other.call("ECHO", i) == b"%d" % i
            assert reader.ask("GET bob", "PING") == [b"%d" % (i + 1), "PONG"]
    close_all(waiting)


def test_subscribed_clients_never_wait(limited, redis):
    weir = limited("[policy default]\nread = 1/h over delay 1h\n")
    with weir.connect() as a:
        a.call("HELLO", 3)
        a.call("SUBSCRIBE", "c")
        assert a.call("GET", "k") is None
        for i in range(3):
            limit, retry = refusal(a.call("GET", "k"))
            assert limit == "default/read" and retry > 0
            redis.call("PUBLISH", "c", i)
            assert a.read() == [b"message", b"c", b"%d" % i]
        assert a.call("UNSUBSCRIBE", "c")[2] == 0
        assert a.call("PING") == "PONG"


def test_messages_come_while_a_command_waits(limited, redis):
    """The command had to wait before Redis confirmed the subscription."""
    weir = limited("[policy default]\nread = 2/s over delay 10s\n")
    with weir.connect() as a:
        a.call("HELLO", 3)
        assert a.call("GET", "k") is None
        a.send(pipeline("SUBSCRIBE c", "GET k"))
        assert a.read() == [b"subscribe", b"c", 1]
        wait_until(lambda: redis.call("PUBLISH", "c", "now"), "it is subscribed")
        replies = [a.read(), a.read()]
        assert [b"message", b"c", b"now"] in replies


def test_what_blocks_is_answered_while_the_next_waits(limited, redis):
    weir = limited("[policy default]\nread = 1/h over delay 1h\n")
    with weir.connect() as a:
        assert a.call("GET", "k") is None
        a.send(pipeline("BLPOP l 0", "GET k"))
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        redis.call("RPUSH", "l", "v")
        assert a.read() == [b"l", b"v"]
    wait_until(lambda: not any(redis.waiting()), "it has gone")


def test_class_control_waits_and_is_never_refused(farm, redis):
    weir = farm.weir(redis, workers=1, sections="[policy default]\ncontrol = 20/s over delay 50ms\n" + OPERATOR)
    conns = [weir.connect() for _ in range(8)]
    start = time.monotonic()
    for conn in conns:
        conn.send(encode("PING"))
    assert [reply for _, reply in arrivals(conns)] == ["PONG"] * 8
    assert time.monotonic() - start >= 0.35, "early"
    assert conns[0].ask(*["GET k"] * 20) == [None] * 20
    assert [row[3] for row in tallies(weir)] == [0]
    close_all(conns)


# ---- reloads ----


def waiters(weir, n):
    """Opens n connections with waiting commands; an earlier command of another connection has run.
    """
    conns = [weir.connect() for _ in range(n + 1)]
    for i, conn in enumerate(conns):
        conn.send(encode("RPUSH", "l", i))
        wait_until(lambda i=i: counted(weir) == i + 1, "it has its place")
    assert conns[0].read() == 1
    conns.pop(0).close()
    return conns


@pytest.mark.parametrize("rate", [20, 2, 4])
def test_a_queue_keeps_its_order_and_is_timed_anew(rate, queue, redis):
    """First 4/s, then another rate. Positions stay, also if the wait is now longer than TIME."""
    start = time.monotonic()
    conns = waiters(queue, 3)
    changed = time.monotonic()
    assert order(queue, "SET", "default", "write", f"{rate}/s", "over", "delay", "1ms") == "OK"
    arrived = []
    for i, conn in enumerate(conns):
        assert conn.read() == i + 2
        arrived.append(time.monotonic())
    owed = 3 - (changed - start) * 4  # at least, of the three positions
    assert arrived[-1] >= changed + owed / rate - 0.01, "early"
    assert arrived[-1] < changed + 3 / rate + LATE
    close_all(conns)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_an_hour_s_wait_ends_when_the_rate_rises(n_workers, farm, redis):
    sections = "[policy default]\nwrite = 1/h over delay 1d\n" + OPERATOR
    weir = farm.weir(redis, workers=n_workers, sections=sections)
    conns = waiters(weir, 4)
    assert order(weir, "SET", "default", "write", "1000/s", "over", "delay", "1s") == "OK"
    assert sorted(conn.read() for conn in conns) == [2, 3, 4, 5]
    close_all(conns)


def test_a_subject_by_key_waits_anew(farm, redis):
    sections = "[policy default]\nwrite = 1/h over delay 1d\n" + OPERATOR
    weir = farm.weir(redis, workers=1, sections=sections, identity="key:1, ip")
    with weir.connect() as a:
        assert a.call("SET", "acme:1", "v") == "OK"
        a.send(encode("SET", "acme:2", "v"))
        wait_until(lambda: counted(weir) == 2, "it has its place")
        assert order(weir, "SET", "default", "write", "1000/s", "over", "delay", "1s", "FOR", "key:acme") == "OK"
        assert a.read() == "OK"


def test_a_debt_of_bytes_is_waited_for_anew(farm, redis):
    sections = "[policy default]\nbytes-in = 100/d burst 10 over delay 100d\n" + OPERATOR
    weir = farm.weir(redis, workers=1, sections=sections)
    with weir.connect() as a:
        assert a.call("SET", "k", "v" * 200) == "OK"
        a.send(encode("GET", "k"))
        wait_until(lambda: tallies(weir)[0][2] == 1, "it waits")
        assert order(weir, "SET", "default", "bytes-in", "10mb/s", "over", "delay", "1s") == "OK"
        assert a.read() == b"v" * 200


def test_waiting_ends_with_the_limit(queue):
    assert order(queue, "SET", "default", "write", "1/h", "over", "delay", "1d") == "OK"
    conns = waiters(queue, 3)
    assert order(queue, "UNSET", "default", "write") == "OK"
    assert sorted(conn.read() for conn in conns) == [2, 3, 4]
    close_all(conns)


@pytest.mark.parametrize(
    "what, expression, reply",
    [
        ("write", "deny", "NOPERM denied by policy default"),
        ("write", "1/h over refuse", "THROTTLED"),
        ("write", "1/h over close", "THROTTLED"),
    ],
)
def test_who_waits_is_bound_by_what_comes(what, expression, reply, queue):
    assert order(queue, "SET", "default", "write", "1/h", "over", "delay", "1d") == "OK"
    conns = waiters(queue, 3)
    assert order(queue, "SET", "default", what, *expression.split()) == "OK"
    for conn in conns:
        assert conn.read().startswith(reply)
        assert not expression.endswith("close") or conn.read_to_end() == b""
    close_all(conns)


def test_waiting_ends_with_mode_shadow(queue):
    assert order(queue, "SET", "default", "write", "1/h", "over", "delay", "1d") == "OK"
    conns = waiters(queue, 3)
    assert order(queue, "MODE", "shadow") == "OK"
    assert sorted(conn.read() for conn in conns) == [2, 3, 4]
    close_all(conns)


def test_forgiving_lets_newcomers_go(queue):
    """Waiting commands keep their positions."""
    assert order(queue, "SET", "default", "write", "1/h", "over", "delay", "1d") == "OK"
    conns = waiters(queue, 1)
    assert order(queue, "FORGIVE", "ip:127.0.0.1") == 1
    with queue.connect() as a:
        assert a.call("RPUSH", "l", "x") == 2
    close_all(conns)


def test_stopping_while_clients_wait(queue):
    assert order(queue, "SET", "default", "write", "1/h", "over", "delay", "1d") == "OK"
    conns = waiters(queue, 3)
    queue.stop()
    for conn in conns:
        assert conn.read_to_end() == b""


def test_upstream_lost_while_a_command_waits(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, sections="[policy default]\nwrite = 2/s over delay 5s\n", **TOLD_AT_ONCE)
    with weir.connect() as a:
        a.send(pipeline("INCR k", "INCR k", "PING"))
        assert a.read() == 1
        redis.kill()
        assert a.read() == Error("UPSTREAM unavailable")
        redis.start()
        wait_until(weir.serves, "weir serves again")
