"""Redis goes away, returns, wants a password, is full, or is not a server that weir serves."""

import contextlib
import socket
import threading
import time

import pytest
from kit.harness import TOLD_AT_ONCE, Redis, free_port, wait_until
from kit.resp import Closed, Conn, Error, encode, pipeline

UNAVAILABLE = Error("UPSTREAM unavailable")
AT_ONCE = 5.0  # far less than NEVER
NEVER = "60s"  # a time-out that no test waits for: weir must not need it
BACK_WITHIN = 5.0
SLOWLY = 0.03  # seconds; without this pause weir would have tried forty times in a second
LANES = ["shared", "private"]


def timed(call):
    start = time.monotonic()
    value = call()
    return value, time.monotonic() - start


@pytest.mark.parametrize("lanes", LANES)
def test_away_at_start(lanes, farm):
    redis = Redis()
    redis.port = free_port()
    farm.servers.append(redis)
    weir = farm.weir(redis, lanes=lanes, workers=1, connect_timeout=NEVER, **TOLD_AT_ONCE)
    with weir.connect() as a, weir.connect() as b:
        reply, seconds = timed(lambda: a.call("SET", "k", "v"))
        assert reply == UNAVAILABLE and seconds < AT_ONCE
        assert a.ask("GET k", "PING", "MULTI", "SUBSCRIBE c", "HELLO 3", "SELECT 1") == [UNAVAILABLE] * 6
        assert b.call("PING") == UNAVAILABLE
        redis.start()
        wait_until(weir.serves, "weir finds Redis", BACK_WITHIN)
        assert a.call("SET", "k", "v") == UNAVAILABLE, "what follows a refused MULTI must not run by itself"
        assert a.call("EXEC").startswith("EXECABORT")
        assert a.call("SET", "k", "v") == "OK"
        assert b.ask("GET k", "PING") == [b"v", "PONG"]


def test_the_log_says_once_that_it_is_away(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=4, **TOLD_AT_ONCE)
    conns = [weir.connect() for _ in range(16)]
    assert [conn.call("PING") for conn in conns] == ["PONG"] * 16
    for _ in range(2):
        away = weir.log().count(f"upstream {redis.upstream} is away")
        back = weir.log().count(f"upstream {redis.upstream} is back")
        redis.kill()
        wait_until(lambda: all(conn.call("PING") == UNAVAILABLE for conn in reconnected(weir, 16)), "all workers know")
        weir.wait_for_log(f"upstream {redis.upstream} is away", away + 1)
        assert weir.log().count(f"upstream {redis.upstream} is away") == away + 1
        redis.start()
        wait_until(lambda: all(conn.call("PING") == "PONG" for conn in reconnected(weir, 16)), "all workers know")
        weir.wait_for_log(f"upstream {redis.upstream} is back", back + 1)
        assert weir.log().count(f"upstream {redis.upstream} is back") == back + 1


def reconnected(weir, n):
    """Reconnects one client after the other, on any worker."""
    for _ in range(n):
        with weir.connect() as conn:
            yield conn


@pytest.mark.parametrize("lanes", LANES)
def test_away_later_and_back(lanes, farm):
    redis = farm.redis()
    weir = farm.weir(redis, lanes=lanes, workers=1, connect_timeout=NEVER, **TOLD_AT_ONCE)
    with weir.connect() as idle, weir.connect() as new:
        assert weir.serves()
        redis.kill()
        wait_until(lambda: new.call("PING") == UNAVAILABLE, "weir knows")
        reply, seconds = timed(lambda: idle.call("GET", "k"))
        assert reply == UNAVAILABLE and seconds < AT_ONCE
        assert idle.ask("GET k", "SET k v") == [UNAVAILABLE] * 2
        redis.start()
        wait_until(weir.serves, "weir finds Redis again", BACK_WITHIN)
        assert idle.call("SET", "k", "v") == "OK"
        assert new.ask("GET k", "ECHO x") == [b"v", b"x"]


@pytest.mark.parametrize("lanes", LANES)
def test_a_transaction_begun_while_away_runs_not_even_in_part(lanes, farm):
    redis = farm.redis()
    weir = farm.weir(redis, lanes=lanes, workers=1, **TOLD_AT_ONCE)
    with weir.connect() as a:
        redis.kill()
        wait_until(lambda: a.call("PING") == UNAVAILABLE, "weir knows")
        assert a.ask("MULTI", "SET k 1") == [UNAVAILABLE] * 2
        redis.start()
        wait_until(weir.serves, "weir finds Redis again", BACK_WITHIN)
        assert a.call("SET", "k", "2") == UNAVAILABLE, "it belongs to a transaction that cannot be"
        assert a.call("EXEC") == Error("EXECABORT Transaction discarded because of previous errors.")
        assert a.ask("GET k", "MULTI", "SET k 3", "EXEC") == [None, "OK", "QUEUED", ["OK"]]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("word", ["OFF", "SKIP"])
def test_who_cannot_be_silenced_is_closed(word, lanes, farm):
    """Redis answers neither CLIENT REPLY nor the next command: an error would be taken for the
    reply to a later command.
    """
    redis = farm.redis()
    weir = farm.weir(redis, lanes=lanes, workers=1, **TOLD_AT_ONCE)
    with weir.connect() as a, weir.connect() as b:
        assert a.call("SET", "k", "v") == "OK"
        redis.kill()
        wait_until(lambda: b.call("PING") == UNAVAILABLE, "weir knows")
        a.send(pipeline(f"CLIENT REPLY {word}", "SET k w", "GET k"))
        assert a.read_to_end() in (b"", b"-UPSTREAM unavailable\r\n")


def test_who_cannot_be_silenced_for_want_of_room_waits(farm):
    weir = farm.weir(farm.redis(), workers=1, max_lanes=4)
    with contextlib.ExitStack() as stack:
        a, *others = [stack.enter_context(weir.connect()) for _ in range(9)]
        assert a.ask("SET k v", "SELECT 7") == ["OK", "OK"]
        replies = [conn.call("MULTI") for conn in others]
        assert Error("UPSTREAM busy max-lanes") in replies
        a.send(pipeline("CLIENT REPLY SKIP", "SET k w", "ECHO mine"))
        wait_until(lambda: others[replies.index("OK")].call("DISCARD") == "OK", "there is room")
        assert a.read() == b"mine", "it waits for a lane, as every handshake does"


def test_away_and_back_many_times(farm):
    redis = farm.redis()
    weir = farm.weir(redis, **TOLD_AT_ONCE)
    with weir.connect() as client:
        for round in range(5):
            assert client.call("SET", "k", round) == "OK"
            redis.kill()
            wait_until(lambda: client.call("GET", "k") == UNAVAILABLE, "weir knows")
            redis.start()
            wait_until(lambda: client.call("PING") == "PONG", "weir finds Redis again", BACK_WITHIN)


@pytest.mark.parametrize("lanes", LANES)
def test_clients_in_flight_are_closed(lanes, farm):
    """A client with a call or state on a lost lane is closed. weir invents no reply."""
    redis = farm.redis()
    weir = farm.weir(redis, lanes=lanes)
    with weir.connect() as blocked, weir.connect() as subscribed, weir.connect() as queued, weir.connect() as paused:
        blocked.send(encode("BLPOP", "none", 0))
        assert subscribed.call("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
        assert queued.ask("MULTI", "SET k v") == ["OK", "QUEUED"]
        redis.call("CLIENT", "PAUSE", 60_000, "WRITE")
        paused.send(pipeline("SET k v", "GET k"))
        wait_until(lambda: redis.waiting()[:2] == (2, 1), "they wait")
        redis.kill()
        for conn in (blocked, subscribed, queued, paused):
            assert conn.read_to_end() == b""


def clients(redis):
    return redis.call("CLIENT", "LIST").decode()


def test_replies_before_the_loss_arrive(farm):
    redis = farm.redis()
    weir = farm.weir(redis)
    with weir.connect() as a:
        a.send(pipeline("SET k v", "GET k", "BLPOP none 0", "GET k"))
        assert [a.read(), a.read()] == ["OK", b"v"]
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        redis.kill()
        assert a.read_to_end() == b""


def test_over_a_unix_socket(farm):
    redis = farm.redis(unix=True)
    weir = farm.weir(redis, workers=2)
    with weir.connect() as a, weir.connect() as b:
        assert a.ask("SET k v", "GET k", "MULTI", "GET k", "EXEC") == ["OK", b"v", "OK", "QUEUED", [b"v"]]
        assert b.call("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
        assert a.call("PUBLISH", "c", "hello") == 1
        assert b.read() == [b"message", b"c", b"hello"]
        redis.kill()
        assert b.read_to_end() == b""
        redis.start()
        wait_until(weir.serves, "weir finds Redis again", BACK_WITHIN)


def test_half_close_behind_subscribe_in_multi_over_a_unix_socket(farm):
    """weir half-closes its connection to Redis, and reads until Redis has closed."""
    redis = farm.redis(unix=True)
    weir = farm.weir(redis, workers=1)
    with weir.connect() as a:
        a.send(pipeline("MULTI", "SUBSCRIBE c", "EXEC", "UNSUBSCRIBE c", *["ECHO end"] * 1000))
        a.sock.shutdown(socket.SHUT_WR)
        assert a.read_to_end().count(b"$3\r\nend\r\n") == 1000


def test_by_host_name(farm):
    redis = farm.redis()
    weir = farm.weir(f"localhost:{redis.port}")
    assert weir.serves()


def test_something_else_answers(farm):
    """A server that does not speak Redis' protocol is as good as none."""
    with socket.create_server(("127.0.0.1", free_port())) as server:
        server.settimeout(10)
        weir = farm.weir("127.0.0.1:%d" % server.getsockname()[1], wait=False, **TOLD_AT_ONCE)
        conn, _ = server.accept()
        conn.recv(4096)
        conn.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        conn.close()
        server.close()
        weir.wait_ready()
        with weir.connect() as a:
            assert a.call("PING") == UNAVAILABLE


@pytest.mark.parametrize("lanes", LANES)
def test_who_waits_is_told_where_each_connection_ends_slowly(lanes, farm):
    """Connections end no faster than weir may retry. No connection was ever accepted, so the fault
    is not taken for a short one.
    """
    with socket.create_server(("127.0.0.1", free_port())) as server:
        weir = farm.weir("%s:%d" % server.getsockname(), lanes=lanes, workers=1, **TOLD_AT_ONCE)
        over = threading.Event()

        def shut():
            """As a Redis that wants a certificate: the connection opens, and then closes."""
            while not over.is_set():
                conn, _ = server.accept()
                conn.recv(1)
                time.sleep(SLOWLY)
                conn.close()

        thread = threading.Thread(target=shut)
        thread.start()
        try:
            with weir.connect() as conn:
                assert conn.call("SET", "k", "v") == UNAVAILABLE
        finally:
            over.set()
            socket.create_connection(server.getsockname()).sendall(b"x")
            thread.join()


# ---- passwords ----


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text("s3cret word\n")
    return path


@pytest.mark.parametrize("lanes", LANES)
def test_behind_a_password(lanes, farm, secret):
    redis = farm.redis(password="s3cret word")
    weir = farm.weir(redis, lanes=lanes, upstream_password_file=secret)
    assert redis.call("ACL", "LOG") == []
    with weir.connect() as a:
        assert a.call("GET", "k").startswith("NOAUTH")
        assert a.call("AUTH", "s3cret word") == "OK"
        assert a.ask("SET k v", "GET k") == ["OK", b"v"]
    redis.kill()
    redis.start()
    with weir.connect() as a:
        wait_until(lambda: a.call("AUTH", "s3cret word") == "OK", "weir finds Redis again", BACK_WITHIN)
        assert a.call("SET", "k", "v") == "OK"
    assert redis.call("ACL", "LOG") == []


@pytest.mark.parametrize("lanes", LANES)
def test_as_a_user_of_its_own(lanes, farm, secret):
    redis = farm.redis("--user", "weir", "on", ">s3cret word", "~*", "&*", "+@all", password="of default")
    weir = farm.weir(redis, lanes=lanes, upstream_user="weir", upstream_password_file=secret)
    assert "user=weir " in clients(redis)
    with weir.connect() as a:
        assert a.ask("GET k", "ACL WHOAMI")[0].startswith("NOAUTH"), "weir's own user is not the clients'"
        assert a.call("AUTH", "of default") == "OK"
        assert a.call("ACL", "WHOAMI") == b"default"
        assert a.ask("SET k v", "GET k") == ["OK", b"v"]


def test_as_a_user_with_few_rights(farm, secret):
    """COMMAND, PING and INFO are enough for the control connection."""
    redis = farm.redis("--user", "weir", "on", ">s3cret word", "-@all", "+command", "+ping", "+info", "+hello")
    weir = farm.weir(redis, upstream_user="weir", upstream_password_file=secret)
    assert weir.serves()


def test_with_a_wrong_password(farm, tmp_path):
    """The control connection fails, and the log tells so. Clients still log in by themselves."""
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong")
    redis = farm.redis(password="right")
    weir = farm.weir(redis, upstream_password_file=wrong)
    wait_until(lambda: "rejects the password in upstream-password-file" in weir.log(), "the log tells")
    with weir.connect() as a:
        assert a.call("AUTH", "right") == "OK"
        assert a.call("SET", "k", "v") == "OK"


def test_without_a_password(farm):
    """weir has no password: Redis' errors before AUTH reach clients, and AUTH works."""
    redis = farm.redis(password="right")
    weir = farm.weir(redis)
    with weir.connect() as a:
        assert a.call("GET", "k").startswith("NOAUTH")
        assert a.ask("AUTH right", "SET k v", "GET k") == ["OK", "OK", b"v"]


# ---- refusals, and a full Redis ----


def test_a_cluster_is_not_served(farm):
    """Redirects of the cluster would lead clients around weir: no command reaches the cluster, and
    weir waits for another server.
    """
    redis = farm.redis("--cluster-enabled", "yes")
    weir = farm.weir(redis)
    assert f"upstream {redis.upstream} cannot be served: it is a node of a cluster" in weir.log()
    with weir.connect() as conn:
        assert conn.call("GET", "k") == UNAVAILABLE
    assert weir.is_running()


@pytest.mark.parametrize("lanes", LANES)
def test_redis_takes_no_more_clients(lanes, farm):
    """The refusal of a new connection is no reply to any client. weir retries at the next request.
    """
    redis = farm.redis()
    weir = farm.weir(redis, lanes=lanes)
    with weir.connect() as settled, weir.connect() as a:
        if lanes == "private":
            assert settled.call("PING") == "PONG"
        with redis.connect() as admin:
            used = int(redis.info("connected_clients")) - 1
            assert admin.call("CONFIG", "SET", "maxclients", used) == "OK"
            replies = [a.call("BLPOP", "none", 0.01)]
            assert replies == [UNAVAILABLE]
            assert settled.call("PING") == "PONG"
            assert admin.call("CONFIG", "SET", "maxclients", 1000) == "OK"
        wait_until(lambda: a.call("BLPOP", "none", 0.01) is None, "Redis takes it again", BACK_WITHIN)


def test_a_killed_connection_is_replaced(farm):
    """CLIENT KILL of weir's connections closes clients with calls on them, and no others."""
    redis = farm.redis()
    weir = farm.weir(redis, workers=1)
    with weir.connect() as idle:
        assert idle.call("PING") == "PONG"
        redis.call("CLIENT", "KILL", "TYPE", "normal")
        wait_until(lambda: idle.call("PING") == "PONG", "another connection serves it", BACK_WITHIN)
        with Conn(weir.address) as new:
            assert new.call("PING") == "PONG"


@pytest.mark.parametrize("pause_ms", [0, 0.5, 1, 2, 3])
@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_connections_closed_again_and_again_are_no_outage(farm, lanes, pause_ms):
    """A client that asks in between waits for the next connection, and gets no error. The
    exception: its request went to a connection that had just closed, and is not sent twice.
    """
    redis = farm.redis()
    weir = farm.weir(redis, lanes=lanes)
    with redis.connect() as killer, weir.connect() as a, weir.connect() as b:
        for _ in range(10):
            killer.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            time.sleep(pause_ms / 1000)  # at a random state of weir's next connection
        try:
            assert a.call("GET", "k") is None
        except Closed:
            assert b.call("GET", "k") is None
    assert "is away" not in weir.log()
