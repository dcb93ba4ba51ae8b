"""Time-outs of clients: weir closes an idle client, and a client that does not finish a request. No
other client is closed, and none too early.
"""

import select
import time

import pytest
from kit.harness import wait_until
from kit.reloading import reload
from kit.resp import Closed, encode, pipeline
from test_admin_http import ADMIN, metrics, value

LANES = ["shared", "private"]
IDLE = 0.2  # seconds
IDLE_TEXT = "200ms"


@pytest.fixture(params=LANES)
def make(request, farm, redis):
    return lambda **settings: farm.weir(redis, lanes=request.param, **settings)


def closes(conn):
    """Reads until weir closes; returns what came before."""
    return conn.read_to_end()


def come(weir, requests, n):
    """Returns a client that has sent these requests and got n replies. Retries if the machine is
    too slow for idle-timeout.
    """
    for _ in range(50):
        conn = weir.connect()
        conn.send(requests)
        try:
            return conn, [conn.read() for _ in range(n)]
        except Closed:
            conn.close()
    raise AssertionError("they are closed too soon")


def outlast(weir, times=3):
    """Clients connect one after the other, do nothing, and are closed for that."""
    for _ in range(times):
        with weir.connect() as canary:
            assert closes(canary) == b""


def closed(weir, reason):
    found = metrics(weir)
    listener = next(dict(labels)["listener"] for name, labels in found if name == "weir_connections")
    return value(found, "weir_connections_closed_total", listener=listener, reason=reason)


# ---- idle-timeout ----


def test_who_does_nothing_is_closed(make):
    weir = make(idle_timeout=IDLE_TEXT, sections=ADMIN)
    began = time.monotonic()
    with weir.connect() as silent:
        assert closes(silent) == b"" and time.monotonic() - began >= IDLE, "it never said a word"
    for _ in range(50):  # until the machine is fast enough
        conn = weir.connect()
        try:
            for _ in range(3):
                began = time.monotonic()
                assert conn.call("SET", "k", "v") == "OK"
            break
        except Closed:
            conn.close()
    assert closes(conn) == b"" and time.monotonic() - began >= IDLE
    wait_until(lambda: closed(weir, "idle") >= 2, "both are counted")


@pytest.mark.parametrize("commands", ["MULTI,SET k v", "WATCH k", "CLIENT SETNAME x,SELECT 2", "HELLO 3"])
def test_what_redis_remembers_of_it_does_not_help(commands, make):
    commands = commands.split(",")
    conn, _ = come(make(idle_timeout=IDLE_TEXT), pipeline(*commands), len(commands))
    assert closes(conn) == b""


@pytest.mark.parametrize("hello", [2, 3])
@pytest.mark.parametrize("command", ["SUBSCRIBE ch", "PSUBSCRIBE c*"])
def test_who_listens_is_not_idle(command, hello, make, redis):
    weir = make(idle_timeout=IDLE_TEXT)
    conn, _ = come(weir, pipeline(f"HELLO {hello}", command), 2)
    outlast(weir)
    assert redis.call("PUBLISH", "ch", "word") == 1
    assert conn.read()[-1] == b"word"
    outlast(weir)
    conn.ask("UNSUBSCRIBE ch" if command.startswith("SUB") else "PUNSUBSCRIBE c*")
    assert closes(conn) == b"", "it listens no more"


def test_who_monitors_is_not_idle(make, redis):
    weir = make(idle_timeout=IDLE_TEXT)
    conn, _ = come(weir, encode("MONITOR"), 1)
    outlast(weir)
    redis.call("SET", "watched", "v")
    while '"watched"' not in conn.read():
        pass


def test_who_waits_for_redis_is_not_idle(make, redis):
    weir = make(idle_timeout=IDLE_TEXT)
    blocked, _ = come(weir, pipeline("PING", "BLPOP list 0"), 1)
    slow, _ = come(weir, pipeline("PING", "BLPOP nothing 1"), 1)
    outlast(weir)
    began = time.monotonic()
    assert redis.call("RPUSH", "list", "x") == 1
    assert blocked.read() == [b"list", b"x"]
    assert closes(blocked) == b"" and time.monotonic() - began >= IDLE, "its time begins with the answer"
    assert slow.read() is None
    assert closes(slow) == b""


def test_who_waits_for_a_limit_is_not_idle(make):
    weir = make(idle_timeout=IDLE_TEXT, sections="[policy default]\nwrite = 1/s over delay 5s\n")
    conn, replies = come(weir, pipeline("SET k v", "SET k w", "GET k"), 1)
    assert replies + [conn.read(), conn.read()] == ["OK", "OK", b"w"]
    assert closes(conn) == b""


def test_who_waits_for_its_turn_is_not_idle(make):
    conn, _ = come(make(idle_timeout=IDLE_TEXT), pipeline("PING", *["LIMIT FUNNEL turn 1/s WAIT 5000"] * 2), 1)
    assert [conn.read()[0], conn.read()[0]] == [0, 0]
    assert closes(conn) == b""


def test_who_has_still_to_read_is_not_idle(make, redis):
    weir = make(idle_timeout=IDLE_TEXT)
    redis.call("SET", "big", "x" * 20_000_000)
    conn, _ = come(weir, pipeline("PING", "GET big"), 1)
    outlast(weir)
    assert len(conn.read()) == 20_000_000


def test_who_is_to_be_closed_has_so_long_to_read(make, redis):
    """All its replies have come; the reply to QUIT is the last."""
    redis.call("SET", "large", b"x" * 200_000)
    weir = make(idle_timeout=IDLE_TEXT, sections=ADMIN)
    with weir.connect() as silent:
        silent.send(pipeline(*["GET large"] * 100, "QUIT"))
        wait_until(lambda: closed(weir, "idle") == 1, "nobody waits for it any more")


def test_idle_timeout_comes_and_goes_with_a_reload(make):
    weir = make(idle_timeout="0")
    with weir.connect() as conn, weir.connect() as other:
        assert conn.call("PING") == other.call("PING") == "PONG"
        own = weir.config.read_text()
        weir.own_settings = own.replace("idle-timeout = 0\n", "")
        assert reload(weir, "", idle_timeout="50ms")
        assert closes(conn) == b"" == closes(other)
        assert reload(weir, "", idle_timeout="1h")
    with weir.connect() as conn:
        assert conn.call("PING") == "PONG"


# ---- request-timeout ----


def dribble(conn, head, drop):
    """Sends the head, then a drop now and then until weir closes; returns how long that took."""
    began = time.monotonic()
    conn.send(head)
    for _ in range(100_000):
        conn.send(drop)
        if select.select([conn.sock], [], [], 0.01)[0]:
            assert conn.read_to_end() == b""
            return time.monotonic() - began
    raise AssertionError("it may dribble for ever")


HALVES = {
    "nothing but a star": (b"*", b""),
    "a name": (b"*2\r\n$4\r\nECHO\r\n$100000\r\n", b"x"),
    "inline": (b"PING", b" "),
    "streaming": (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000000\r\n" + b"x" * 200_000, b"x"),
}


@pytest.mark.parametrize("half", HALVES)
def test_who_does_not_finish_is_closed(half, make, redis):
    weir = make(request_timeout="300ms", sections=ADMIN)
    with weir.connect() as other, weir.connect() as conn:
        assert other.call("PING") == conn.call("PING") == "PONG"
        assert dribble(conn, *HALVES[half]) >= 0.3
        assert other.call("PING") == "PONG", "to have nothing under way is no offence"
        assert redis.call("EXISTS", "k") == 0
        wait_until(lambda: closed(weir, "request") == 1, "it is counted")
    said = "did not finish a request within request-timeout"
    wait_until(lambda: said in weir.log(), "the log tells it")


def test_each_request_has_its_own_time(make):
    """One half is always on its way. On a slow machine a single half may be late, and closing is
    right then.
    """
    weir = make(request_timeout="1s")
    request = encode("ECHO", "0123456789")
    with weir.connect() as conn:
        began = half_sent = time.monotonic()
        conn.send(request[:9])
        while time.monotonic() - began < 1.5:
            sending = time.monotonic()
            conn.send(request[9:] + request[:9])
            try:
                assert conn.read() == b"0123456789"
            except Closed:
                assert time.monotonic() - half_sent >= 1
                return
            half_sent = sending
            select.select([conn.sock], [], [], 0.05)


def test_what_has_come_whole_may_wait(make, redis):
    weir = make(request_timeout="100ms", sections="[policy default]\nwrite = 1/s over delay 5s\n")
    with weir.connect() as conn, redis.connect() as admin:
        assert conn.call("PING") == "PONG"
        admin.send(encode("DEBUG", "SLEEP", 0.5))
        assert conn.ask("GET none", "SET k v", "SET k w", "BLPOP nothing 1") == [None, "OK", "OK", None]
        assert admin.read() == "OK"
