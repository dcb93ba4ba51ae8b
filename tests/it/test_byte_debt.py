"""Debt of bytes: commands that are never refused wait for the debt, and large ones are slowed down.
No client builds up more debt than one burst and its data in flight.

The tests check that nothing comes early; a busy machine may make replies late.
"""

import contextlib
import select
import threading
import time

import pytest
from kit.harness import MODE_IDS, MODES, wait_until
from kit.limits import OPERATOR, limit_of, order, plain, refusal, status, tallies
from kit.resp import encode, pipeline

KIB, MIB = 1 << 10, 1 << 20
SLACK = 3 * 262144  # what one connection may have in flight: two reads and weir's buffer
HOPELESS = "1000/1000d"


@pytest.fixture(params=MODES, ids=MODE_IDS)
def limited(request, farm, redis):
    workers, lanes = request.param
    return lambda sections, **settings: farm.weir(
        redis, sections=sections + "\n" + OPERATOR, workers=workers, lanes=lanes, **settings
    )


@contextlib.contextmanager
def meanwhile(work, *args):
    """Runs `work` on a thread; the thread has ended when the block ends."""
    thread = threading.Thread(target=work, args=args)
    thread.start()
    try:
        yield thread
    finally:
        thread.join()


def run_into_debt(conn, n):
    """Runs into debt with n bytes that pass at once."""
    assert conn.call("SET", "k", b"x" * n) == "OK"


def flood(conn, request, seconds):
    """Sends the request again and again, and reads the replies."""
    until = time.monotonic() + seconds
    data = request * (1 + 65536 // len(request))
    at = 0
    conn.sock.setblocking(False)
    while (left := until - time.monotonic()) > 0:
        readable, writable, _ = select.select([conn.sock], [conn.sock], [], left)
        if writable:
            at = (at + conn.sock.send(data[at:])) % len(data)
        if readable:
            conn.sock.recv(262144)


def passed_bytes(weir, i=0):
    return tallies(weir)[i][1]


# ---- commands that are never refused ----

FLOODS = {
    "echo": encode("ECHO", b"x" * 1000),
    "large": encode("ECHO", b"x" * 100_000),
    "ping": encode("PING"),
    "reset": encode("RESET"),
    "getname": encode("CLIENT", "GETNAME"),
    "inline": b"PING\r\n",
    "own": encode("LIMIT", "STATUS"),
    "nothing": b"*0\r\n",
    "lines": b"\r\n",
    "unwatch": encode("UNWATCH"),
}


@pytest.mark.parametrize("request_", FLOODS.values(), ids=FLOODS)
def test_a_flood_of_what_is_never_refused_is_bounded(request_, limited):
    rate, burst = MIB, 100 * KIB
    weir = limited(f"[policy default]\nbytes-in = 1mb/s burst {burst}\n")
    with weir.connect() as a:
        start = time.monotonic()
        flood(a, request_, 0.3)
        passed = passed_bytes(weir)
        assert passed <= burst + rate * (time.monotonic() - start) + len(request_)
    with weir.connect() as b:
        retry = refusal(b.call("GET", "k"))
        assert retry is None or retry[1] <= 1000 * (burst + SLACK) / rate


@pytest.mark.parametrize("name", ["echo", "large", "ping", "inline"])
def test_a_flood_of_replies_is_bounded(name, limited):
    rate, burst = MIB, 100 * KIB
    weir = limited(f"[policy default]\nbytes-out = 1mb/s burst {burst}\n")
    with weir.connect() as a:
        start = time.monotonic()
        flood(a, FLOODS[name], 0.3)
        passed = passed_bytes(weir)
        assert passed <= burst + rate * (time.monotonic() - start) + SLACK
    with weir.connect() as b:
        retry = refusal(b.call("GET", "k"))
        assert retry is None or retry[1] <= 1000 * (burst + SLACK) / rate


@pytest.mark.parametrize("over", ["refuse", "delay 10ms", "close"])
def test_a_heartbeat_is_late_but_arrives(over, limited):
    weir = limited(f"[policy default]\nbytes-in = 10kb/s burst 10kb over {over}\n")
    with weir.connect() as a, weir.connect() as b:
        a.call("GET", "k")
        b.call("GET", "k")
        start = time.monotonic()
        run_into_debt(a, 15 * KIB)
        assert a.ask("PING", "ECHO x") == ["PONG", b"x"]
        assert time.monotonic() - start >= 0.45
        assert b.call("PING") == "PONG"
        assert plain(order(weir, "LIST"))[0]["delayed"] >= 1


def test_order_is_kept_in_transactions_and_pipelines(limited):
    weir = limited("[policy default]\nbytes-in = 20kb/s burst 10kb\n")
    with weir.connect() as a:
        assert a.ask("MULTI", "SET k 1") == ["OK", "QUEUED"]
        start = time.monotonic()
        assert a.call("SET", "l", b"x" * 15 * KIB) == "QUEUED"
        assert a.ask("PING", "ECHO x", "EXEC", "PING", "CLIENT GETNAME", "RESET", "PING") == [
            "QUEUED", "QUEUED", ["OK", "OK", "PONG", b"x"], "PONG", None, "RESET", "PONG",
        ]  # fmt: skip
        assert time.monotonic() - start >= 0.2


def test_a_handshake_is_never_late(limited):
    weir = limited(f"[policy default]\nbytes-in = {HOPELESS}\n")
    with weir.connect() as a, weir.connect() as b:
        run_into_debt(a, 5000)
        start = time.monotonic()
        hello = b.call("HELLO", 3, "SETNAME", "b")
        assert hello[b"proto"] == 3
        b.call("CLIENT", "SETINFO", "LIB-NAME", "x")  # Redis may not know SETINFO
        assert b.ask("CLIENT SETNAME c", "SELECT 1", "PING", "CLIENT GETNAME") == ["OK", "OK", "PONG", b"c"]
        assert b"redis_version" in b.call("INFO")
        assert time.monotonic() - start < 5
        assert limit_of(b.call("GET", "k")) == "default/bytes-in"
        delayed = tallies(weir)[0][2]
        b.send(encode("PING"))
        wait_until(lambda: tallies(weir)[0][2] == delayed + 1, "what comes after a command waits")


def test_a_login_is_never_late(limited, users, redis):
    weir = limited(f"[policy default]\nbytes-in = {HOPELESS}\n")
    with weir.connect() as a, weir.connect() as b:
        a.call("AUTH", "alice", "pw")
        run_into_debt(a, 5000)
        b.send(pipeline("HELLO 2 AUTH alice pw", "CLIENT SETNAME c", "PING", "AUTH alice pw", "GET k"))
        assert b.read()[1] == redis.call("HELLO", 2)[1]
        assert [b.read() for _ in range(3)] == ["OK", "PONG", "OK"]
        assert limit_of(b.read()) == "default/bytes-in"


def test_a_long_greeting_is_no_greeting(limited):
    weir = limited(f"[policy default]\nbytes-in = {HOPELESS}\n")
    with weir.connect() as a, weir.connect() as b:
        run_into_debt(a, 5000)
        answered = 4096 // len(encode("ECHO", b"x" * 100))
        b.send(encode("ECHO", b"x" * 100) * 100)
        assert [len(b.read()) for _ in range(answered)] == [100] * answered
        wait_until(lambda: tallies(weir)[0][2] == 1, "the next one waits")
        assert not select.select([b.sock], [], [], 0)[0] and not b.buffer


def test_replies_of_a_handshake_are_small(limited):
    """A handshake's allowance ends with 16 KiB of replies, plus the reply in progress."""
    weir = limited(f"[policy default]\nbytes-out = {HOPELESS}\n")
    with weir.connect() as a, weir.connect() as b:
        a.call("ECHO", b"x" * 5000)
        b.send(encode("INFO", "everything") * 100)
        wait_until(lambda: tallies(weir)[0][2] == 1, "the next one waits")
        b.sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while data := b.sock.recv(MIB):
                b.buffer += data
        longest = len(b.buffer) // b.buffer.count(b"redis_version:")
        assert 16 * KIB <= len(b.buffer) <= 16 * KIB + longest + 1000


@pytest.mark.parametrize("request_", [("COMMAND",), ("COMMAND", "DOCS", "get"), ("COMMAND", "COUNT")], ids=" ".join)
def test_command_is_no_part_of_a_handshake(request_, limited):
    weir = limited(f"[policy default]\nbytes-out = {HOPELESS}\n")
    with weir.connect() as a, weir.connect() as b:
        a.call("ECHO", b"x" * 5000)
        assert b.call("PING") == "PONG"
        b.send(encode(*request_))
        wait_until(lambda: tallies(weir)[0][2] == 1, "it waits")
        assert not select.select([b.sock], [], [], 0)[0] and not b.buffer


@pytest.mark.parametrize("unit", ["bytes-in", "bytes-out"])
def test_handshakes_shut_nobody_out_for_long(unit, limited):
    """However many handshakes come, their debt is at most one burst."""
    rate, burst = 10 * KIB, 10 * KIB
    weir = limited(f"[policy default]\n{unit} = 10kb/s burst {burst}\n")
    for _ in range(30):
        with weir.connect() as a:
            a.send(encode("ECHO", b"x" * 1000) * 3)
            assert [len(a.read()) for _ in range(3)] == [1000] * 3
    with weir.connect() as b:
        retry = refusal(b.call("GET", "k"))
        assert retry is not None and retry[1] <= 1000 * (burst + 4 * KIB) / rate


def test_who_has_gone_is_not_waited_for(farm, redis):
    sections = f"[policy default]\nbytes-in = {HOPELESS}\nconnections = 2\n" + OPERATOR
    weir = farm.weir(redis, sections=sections)
    with weir.connect() as a:
        run_into_debt(a, 5000)
        with weir.connect() as b:
            b.send(pipeline("GET k", "PING"))
            assert limit_of(b.read()) == "default/bytes-in"
            wait_until(lambda: tallies(weir)[0][2] == 1, "it waits")
        wait_until(lambda: order(weir, "STATUS", "FOR", "ip:127.0.0.1")[b"limits"][1][b"remaining"] == 1, "it has gone")


# ---- bytes that are not commands ----


def test_bytes_that_are_no_command_count(limited):
    weir = limited("[policy default]\nbytes-in = 100mb/1000d\n")
    with weir.connect() as a:
        for data in (b"*0\r\n", b"\r\n", b"   \r\n", b"*-1\r\n", b"*0\r\n\r\n" * 1000):
            before = passed_bytes(weir)
            a.send(data + encode("PING"))
            assert a.read() == "PONG"
            assert passed_bytes(weir) - before == len(data) + len(encode("PING")), data[:10]


# ---- large requests and replies ----


@pytest.mark.parametrize("command", [("SET", "k"), ("ECHO",), ("APPEND", "k"), ("PUBLISH", "c")])
def test_a_large_request_is_slowed(command, limited):
    rate, burst = 10 * MIB, 100 * KIB
    weir = limited(f"[policy default]\nbytes-in = 10mb/s burst {burst}\n")
    with weir.connect() as a, weir.connect() as b:
        b.call("GET", "none")
        start = time.monotonic()
        with meanwhile(a.send, encode(*command, b"x" * 5 * MIB)):
            wait_until(lambda: passed_bytes(weir) > 2 * MIB, "much of it has passed")
            retry = refusal(b.call("GET", "k"))
            assert retry is None or retry[1] <= 1000 * (burst + SLACK) / rate
        a.read()
        assert time.monotonic() - start >= (5 * MIB - 2 * burst - SLACK) / rate
        retry = refusal(b.call("GET", "k"))
        assert retry is None or retry[1] <= 1000 * (burst + SLACK) / rate


def test_a_large_reply_is_slowed(limited, redis):
    rate, burst = 10 * MIB, 100 * KIB
    redis.call("SET", "big", b"x" * 8 * MIB)
    weir = limited(f"[policy default]\nbytes-out = 10mb/s burst {burst}\n")
    with weir.connect() as a, weir.connect() as b:
        for _ in range(2):  # the first read may use a lane that other clients share
            wait_until(lambda: limit_of(b.call("GET", "none")) is None, "nothing is owed")
            start = time.monotonic()
            with meanwhile(a.send, encode("GET", "big")):
                wait_until(lambda: status(b)["retry_after_ms"] > 0, "it owes")
                retry = refusal(b.call("GET", "none"))
                assert retry is None or retry[1] <= 1000 * (burst + SLACK) / rate
                assert len(a.read()) == 8 * MIB
            assert time.monotonic() - start >= (8 * MIB - 2 * burst - SLACK) / rate
            retry = refusal(b.call("GET", "none"))
            assert retry is None or retry[1] <= 1000 * (burst + SLACK) / rate


def test_slowed_is_not_late(limited):
    """A delay that weir itself causes is not a time-out."""
    weir = limited("[policy default]\nbytes-in = 2mb/s burst 10kb\n", request_timeout="500ms", upstream_timeout="500ms")
    with weir.connect() as a:
        start = time.monotonic()
        assert a.call("SET", "k", b"x" * 4 * MIB) == "OK"
        assert time.monotonic() - start >= 1.5


# ---- subscribers ----


@pytest.mark.parametrize("how", ["SUBSCRIBE c", "PSUBSCRIBE *", "MONITOR"])
def test_a_listener_in_debt_is_not_read_for(how, limited, redis):
    rate, burst = MIB, 100 * KIB
    weir = limited(f"[policy default]\nbytes-out = 1mb/s burst {burst}\n")
    with weir.connect() as a, redis.connect() as publisher:
        a.send(pipeline(how))
        a.read()
        start = time.monotonic()
        with meanwhile(lambda: [publisher.call("PUBLISH", "c", b"x" * 10_000) for _ in range(200)]):
            got = 0
            while got < 180 * 10_000:
                got += len(a.sock.recv(262144))
                passed = passed_bytes(weir)
                assert passed <= burst * 2 + rate * (time.monotonic() - start) + SLACK
        assert time.monotonic() - start >= (180 * 10_000 - 2 * burst - SLACK) / rate


def test_a_listener_in_debt_can_stop_listening(limited, redis):
    weir = limited("[policy default]\nbytes-out = 10mb/s burst 100kb\n")
    with weir.connect() as a, redis.connect() as publisher:
        a.ask("GET k", "SUBSCRIBE c")
        with meanwhile(lambda: [publisher.call("PUBLISH", "c", b"x" * 10_000) for _ in range(1000)]):
            wait_until(lambda: passed_bytes(weir) > 500 * KIB, "it owes")
            a.send(pipeline("PING", "UNSUBSCRIBE c"))
            kinds = []
            while b"unsubscribe" not in kinds:
                kinds.append(a.read()[0])
        assert b"pong" in kinds


# ---- a dry run ----


def test_a_dry_run_owes_no_more_than_enforcement_would(limited):
    weir = limited("[policy default]\nbytes-in = 1mb/s burst 100kb over shadow\n")
    with weir.connect() as a:
        assert a.call("ECHO", b"x" * 5 * MIB) == b"x" * 5 * MIB
        flood(a, FLOODS["echo"], 0.2)
    with weir.connect() as b:
        assert status(b)["reset_after_ms"] <= 1000 * (200 * KIB + SLACK) / MIB


def test_explain_says_that_it_waits(limited):
    weir = limited(f"[policy default]\nbytes-in = {HOPELESS}\n")
    with weir.connect() as a:
        run_into_debt(a, 5000)
        subject = "ip:127.0.0.1"
        explained = plain(order(weir, "EXPLAIN", "PING", "FOR", subject))
        assert (explained["verdict"], explained["limit"]) == ("delay", "default/bytes-in")
        assert explained["wait_ms"] > 1000 and explained["limits"][0]["binds"] == 1
