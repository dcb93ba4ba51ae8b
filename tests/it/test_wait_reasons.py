"""The wait reason of a client: in LIMIT CLIENTS, and in the log of a weir that stops."""

import contextlib
import re
import signal

import pytest


from kit.harness import stopped, wait_until
from kit.limits import OPERATOR, login, order, plain
from kit.resp import encode

TEXTS = {
    "answer": "the reply to a command that decides how the next one is sent",
    "replies": "blocks in Redis",
    "lane": "a connection to Redis",
    "login": "its login",
    "delay": "a limit that delays",
    "bytes": "a limit on bytes",
    "decision": "Redis to decide LIMIT commands",
    "upstream": "Redis to be available again",
    "memory": "memory: it has many unread replies",
}
PATIENT = {"upstream_timeout": "0", "drain_timeout": "3s"}


def waits_of(weir, conn):
    address = "%s:%d" % conn.sock.getsockname()
    rows = plain(order(weir, "CLIENTS"))
    return next((row["waits"] for row in rows if row["address"] == address), None)


def is_told(weir, conn, name):
    """Checks LIMIT CLIENTS, and then the log."""
    wait_until(lambda: waits_of(weir, conn) == name, f"it waits for {name}")
    weir.signal(signal.SIGTERM)
    port = conn.sock.getsockname()[1]
    said = wait_until(lambda: re.search(rf"draining: .*:{port} \((?:waits for )?([^)]*)\)", weir.log()), "the log says so")
    assert said[1] == TEXTS[name]


def ask(conn, *requests):
    conn.send(b"".join(encode(*request.split()) for request in requests))


WHILE_STOPPED = {
    "answer": ("SELECT 1", "GET k"),
    "lane": ("BLPOP none 0",),
    "login": ("AUTH default x",),
    "decision": ("LIMIT FUNNEL k 5/s", "PING"),
}


@pytest.mark.parametrize("name", WHILE_STOPPED)
def test_what_waits_for_redis(name, farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, sections=OPERATOR, **PATIENT)
    with weir.connect() as conn:
        # there are lanes of both databases
        assert conn.ask("SELECT 1", "GET k", "SELECT 0", "GET k") == ["OK", None] * 2
        assert conn.call("LIMIT", "FUNNEL", "warm", "5/s")[0] == 0
        with stopped(redis):
            ask(conn, *WHILE_STOPPED[name])
            is_told(weir, conn, name)


def test_what_waits_for_a_redis_that_is_away(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, sections=OPERATOR, failover_wait="60s", **PATIENT)
    with weir.connect() as conn:
        assert conn.call("GET", "k") is None
        redis.kill()
        ask(conn, "GET k", "GET k")
        is_told(weir, conn, "upstream")


def test_what_waits_for_replies(farm, redis):
    weir = farm.weir(redis, workers=1, sections=OPERATOR, **PATIENT)
    with weir.connect() as conn:
        ask(conn, "BLPOP none 0", "LIMIT STATUS")
        is_told(weir, conn, "replies")


def test_what_a_limit_delays(farm, redis):
    weir = farm.weir(redis, workers=1, sections="[policy default]\nwrite = 1/m burst 1 over delay 5m\n" + OPERATOR, **PATIENT)
    with weir.connect() as conn:
        ask(conn, "SET k v", "SET k v")
        is_told(weir, conn, "delay")


def test_a_large_request_that_pays(farm, redis):
    weir = farm.weir(redis, workers=1, sections="[policy default]\nbytes-in = 1kb/s burst 200kb over delay 5m\n" + OPERATOR, **PATIENT)
    with weir.connect() as conn:
        conn.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9000000\r\n" + b"x" * 1_000_000)
        is_told(weir, conn, "bytes")


def test_memory_that_is_short(farm, redis):
    redis.call("SET", "k", b"x" * 1000)
    weir = farm.weir(redis, workers=1, memory_limit="1mb", sections=OPERATOR, **PATIENT)
    with weir.connect() as conn:
        requests, left = encode("GET", "k") * 10_000, b""
        conn.sock.setblocking(False)

        def is_stalled():
            nonlocal left
            left = left or requests
            with contextlib.suppress(BlockingIOError):
                left = left[conn.sock.send(left):]
            return "memory" in waits_of(weir, conn)

        wait_until(is_stalled, "it is stalled", 60)


def test_a_tenant_that_has_had_its_share(farm, redis, users):
    """Two tenants send more than Redis can run: one of them waits at nearly every moment."""
    weir = farm.weir(redis, workers=1, sections=OPERATOR)
    with login(weir, "alice") as alice, login(weir, "bob") as bob:
        requests = encode("GET", "k") * 20_000
        left = {alice: b"", bob: b""}
        for conn in left:
            conn.sock.setblocking(False)

        def is_held_up():
            for conn in left:
                left[conn] = left[conn] or requests
                with contextlib.suppress(BlockingIOError):
                    left[conn] = left[conn][conn.sock.send(left[conn]):]
                with contextlib.suppress(BlockingIOError):
                    conn.sock.recv(1 << 20)
            return "share" in (waits_of(weir, alice), waits_of(weir, bob))

        wait_until(is_held_up, "one waits for its share", 60)


def test_an_admin_command_waits_for_itself(farm, redis):
    weir = farm.weir(redis, workers=1, sections=OPERATOR)
    row, = plain(order(weir, "CLIENTS"))
    assert (row["subject"], row["waits"]) == ("ip:unix", "admin")


def test_who_waits_for_nothing(farm, redis):
    weir = farm.weir(redis, workers=1, sections=OPERATOR)
    with weir.connect() as conn, weir.connect() as half:
        assert conn.call("PING") == "PONG"
        half.send(b"*1\r\n$4\r\nPI")
        assert waits_of(weir, conn) == "" and waits_of(weir, half) == ""


TIMED_WHILE_STOPPED = {"watch": ("lane", "WATCH k"), "limit|status": ("decision", "LIMIT FUNNEL k 5/s", "LIMIT STATUS")}


@pytest.mark.parametrize("command", TIMED_WHILE_STOPPED)
def test_what_a_slow_command_waited_for(command, farm):
    name, *requests = TIMED_WHILE_STOPPED[command]
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, sections=OPERATOR, slowlog_log_slower_than="0", **PATIENT)
    with weir.connect() as conn:
        assert conn.call("LIMIT", "FUNNEL", "warm", "5/s")[0] == 0
        with stopped(redis):
            ask(conn, *requests)
            wait_until(lambda: waits_of(weir, conn) == name, f"it waits for {name}")
        for _ in requests:
            conn.read()
        assert conn.call("PING") == "PONG"
    rows = {row[3][0]: row[9] for row in plain(order(weir, "SLOWLOG", "GET", "-1"))}
    assert (rows[command], rows["ping"], rows["limit|funnel"]) == (name, "", "")
