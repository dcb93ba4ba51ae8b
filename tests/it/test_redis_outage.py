"""What a client gets while Redis is away or hangs: the table of docs/protocol.md."""

import contextlib
import time

import pytest
from kit.fake import blackhole
from kit.harness import stopped, wait_until
from kit.limits import OPERATOR
from kit.resp import Closed, Conn, Error, encode, pipeline
from test_tls_upstream import ca, pair, serve  # noqa: F401: fixtures

UNAVAILABLE = Error("UPSTREAM unavailable")
TIMEOUT = Error("UPSTREAM timeout")
BUSY = Error("UPSTREAM busy max-lanes")
WAIT = 0.3  # failover-wait of most tests
LATE = 4.0  # seconds that a loaded machine may add to weir's promised times
LONG = "60s"  # a failover-wait that no test waits for
LANES = ["shared", "private"]
HANDSHAKES = [
    "HELLO 3",
    "AUTH x",
    *(pytest.param(words, marks=pytest.mark.moves)
      for words in ("HELLO 3 AUTH default x", "SELECT 1", "CLIENT SETNAME me", "CLIENT SETINFO lib-name l")),
]


def start(farm, redis, *, wait=f"{WAIT * 1000:.0f}ms", **settings):
    weir = farm.weir(redis, failover_wait=wait, **{"workers": 1, **settings})
    assert weir.serves()
    return weir


def lose(weir, redis):
    """Redis goes away, and weir knows."""
    redis.kill()
    weir.wait_for_log("is away" if weir.lanes == "shared" else "the control connection failed")


def end_of(conn):
    """Returns what came before the end, and how long that took."""
    began = time.monotonic()
    return conn.read_to_end(), time.monotonic() - began


def is_after_wait(seconds, wait=WAIT):
    return wait * 0.9 <= seconds < wait + LATE


# ---- Redis is away ----


@pytest.mark.parametrize("lanes", LANES)
def test_a_command_waits_and_its_connection_is_closed(lanes, farm):
    redis = farm.redis()
    weir = start(farm, redis, lanes=lanes)
    with weir.connect() as idle, weir.connect() as silent:
        assert lanes == "private" or idle.call("SET", "k", "v") == "OK"
        lose(weir, redis)
        for conn in (idle, weir.connect()):
            conn.send(pipeline("GET k", "GET k"))
            reply, seconds = end_of(conn)
            assert reply == b"" and is_after_wait(seconds)
        redis.start()
        assert silent.call("GET", "k") is None, "a client that has asked for nothing has noticed nothing, and Redis is found at once"
        assert weir.log().count("weir could not connect to Redis within failover-wait") >= 1


@pytest.mark.parametrize("lanes", LANES)
def test_with_error_it_is_told_after_the_wait_and_stays(lanes, farm):
    redis = farm.redis()
    weir = start(farm, redis, lanes=lanes, when_upstream_down="error")
    with weir.connect() as conn:
        lose(weir, redis)
        began = time.monotonic()
        assert conn.call("GET", "k") == UNAVAILABLE
        assert is_after_wait(time.monotonic() - began)
        began = time.monotonic()
        assert conn.ask(*["GET k"] * 50) == [UNAVAILABLE] * 50
        assert time.monotonic() - began < 5 * WAIT + LATE, "a pipeline waits once"
        redis.start()
        wait_until(lambda: conn.call("SET", "k", "v") == "OK", "the same connection serves it")


@pytest.mark.parametrize("answer", ["close", "error"])
@pytest.mark.parametrize("lanes", LANES)
def test_what_waits_is_carried_out_once_when_redis_is_back(lanes, answer, farm):
    """A command, a pipeline, a transaction, a handshake: none of them was sent, so each may wait.
    """
    redis = farm.redis("--appendonly", "yes")
    weir = start(farm, redis, lanes=lanes, wait=LONG, when_upstream_down=answer)
    with contextlib.ExitStack() as stack:
        conns = [stack.enter_context(weir.connect()) for _ in range(6)]
        lose(weir, redis)
        conns[0].send(encode("INCR", "n"))
        conns[1].send(pipeline("INCR n", "GET none", "INCR n"))
        conns[2].send(pipeline("MULTI", "INCR n", "EXEC"))
        conns[3].send(pipeline("SELECT 1", "CLIENT SETNAME me", "HELLO 2"))
        conns[4].send(encode("BLPOP", "none", "0.01"))
        conns[5].send(pipeline("AUTH default x", "PING"))
        redis.start()
        assert conns[0].read() >= 1
        assert [type(conns[1].read()) for _ in range(3)] == [int, type(None), int]
        replies = [conns[2].read() for _ in range(3)]
        assert replies[:2] == ["OK", "QUEUED"] and len(replies[2]) == 1
        assert [conns[3].read() for _ in range(2)] == ["OK", "OK"] and b"server" in conns[3].read()
        assert conns[4].read() is None
        assert [conns[5].read() for _ in range(2)] == ["OK", "PONG"]
        assert redis.call("GET", "n") == b"4"


@pytest.mark.parametrize("answer", ["close", "error"])
@pytest.mark.parametrize("handshake", HANDSHAKES)
def test_a_handshake_is_closed_and_never_told(handshake, answer, farm):
    redis = farm.redis()
    weir = start(farm, redis, when_upstream_down=answer)
    lose(weir, redis)
    with weir.connect() as conn:
        conn.send(encode(*handshake.split()))
        reply, seconds = end_of(conn)
        assert reply == b"" and is_after_wait(seconds, 5 * WAIT)


@pytest.mark.parametrize("lanes", LANES)
def test_a_redis_that_flaps_closes_a_client_that_waits_at_its_time(lanes, farm):
    """The time counts from the moment when the command is next, however often weir tries meanwhile.
    """
    redis = farm.redis()
    weir = start(farm, redis, lanes=lanes, wait="2s")
    with weir.connect() as conn:
        lose(weir, redis)
        conn.send(encode("GET", "k"))
        reply, seconds = end_of(conn)
        assert reply == b"" and is_after_wait(seconds, 2)


def test_an_operator_is_told_and_never_closed(farm):
    redis = farm.redis()
    weir = start(farm, redis, sections="[policy operators]\nmatch = ip:127.0.0.1\nadmin = yes\n" + OPERATOR)
    lose(weir, redis)
    with weir.connect() as admin, Conn(str(weir.folder / "operator.sock")) as console:
        assert admin.call("GET", "k") == UNAVAILABLE
        began = time.monotonic()
        assert console.call("GET", "k") == UNAVAILABLE
        assert time.monotonic() - began < WAIT
        assert isinstance(admin.call("LIMIT", "LIST"), list) and isinstance(console.call("LIMIT", "LIST"), list)
        admin.send(encode("SELECT", "1"))
        time.sleep(2 * WAIT)
        assert not admin.is_closed() and not admin.buffer
        redis.start()
        assert admin.read() == "OK"


# ---- Redis hangs, or is full ----


@pytest.mark.parametrize("lanes", LANES)
def test_a_silent_redis_is_not_away(lanes, farm):
    redis = farm.redis()
    weir = start(farm, redis, lanes=lanes)
    with weir.connect() as a, weir.connect() as b:
        with stopped(redis):
            a.send(encode("SET", "k", "v"))
            b.send(pipeline("HELLO 3", "BLPOP none 0.01"))
            time.sleep(3 * WAIT)
            assert not a.buffer and not b.buffer
        assert a.read() == "OK"
        assert b"server" in b.read() and b.read() is None


def test_a_silent_redis_and_upstream_timeout(farm):
    """Unsent commands get -UPSTREAM timeout, except a handshake. Sent commands are lost with their
    connection.
    """
    redis = farm.redis()
    weir = start(farm, redis, lanes="private", upstream_timeout="300ms")
    with stopped(redis), weir.connect() as a, weir.connect() as b:
        a.send(encode("GET", "k"))
        b.send(encode("SELECT", "1"))
        assert a.read() == TIMEOUT
        reply, seconds = end_of(b)
        assert reply == b"" and seconds < LATE


def test_a_handshake_waits_for_room(farm):
    weir = start(farm, farm.redis(), max_lanes=4)
    with contextlib.ExitStack() as stack:
        conns = [stack.enter_context(weir.connect()) for _ in range(8)]
        replies = [conn.call("MULTI") for conn in conns]
        assert BUSY in replies and "OK" in replies
        late = conns[replies.index(BUSY)]
        assert late.call("EXEC").startswith("EXECABORT")
        late.send(encode("SELECT", "3"))
        time.sleep(2 * WAIT)
        assert not late.buffer
        for conn, reply in zip(conns, replies):
            if reply == "OK":
                assert conn.call("DISCARD") == "OK"
        assert late.read() == "OK"


def test_an_operator_waits_for_room_no_longer_than_a_handshake_may(farm):
    """After handshake-timeout the operator gets an error: perhaps only its own admin command can
    free a lane.
    """
    sections = "[policy operators]\nmatch = ip:127.0.0.1\nadmin = yes\n"
    weir = start(farm, farm.redis(), max_lanes=4, handshake_timeout="300ms", sections=sections)
    with contextlib.ExitStack() as stack:
        conns = [stack.enter_context(weir.connect()) for _ in range(8)]
        replies = [conn.call("MULTI") for conn in conns]
        late = conns[replies.index(BUSY)]
        assert late.call("EXEC").startswith("EXECABORT")
        began = time.monotonic()
        assert late.call("SELECT", "3") == BUSY and is_after_wait(time.monotonic() - began)
        assert late.call("LIMIT", "STATUS")


# ---- LIMIT: Redis is away, or up but unable to decide ----

NAMED = """
[limit own]
funnel = 5/h
when-error = error
[limit down]
funnel = 5/h
when-down = deny
when-error = down
"""


def is_out_of_memory(redis):
    redis.call("CONFIG", "SET", "maxmemory", "1")


def wants_replicas(redis):
    redis.call("CONFIG", "SET", "min-replicas-to-write", "1")


UNABLE = {"OOM": is_out_of_memory, "NOREPLICAS": wants_replicas, "READONLY": None}


@pytest.mark.parametrize("code", UNABLE)
@pytest.mark.parametrize("word", ["error", "down"])
def test_a_redis_that_cannot_decide(word, code, farm):
    redis = farm.redis(*(("--replicaof", "127.0.0.1", "1") if code == "READONLY" else ()))
    weir = start(farm, redis, sections=NAMED, limit_when_down="allow", limit_when_error=word)
    with weir.connect() as conn:
        if UNABLE[code] is not None:
            assert conn.call("LIMIT", "FUNNEL", "a", "5/h")[0] == 0
            UNABLE[code](redis)
        reply = conn.call("LIMIT", "FUNNEL", "b", "5/h")
        assert reply == [0, 5, 0, -1, 0] if word == "down" else reply.startswith(code)
        assert conn.call("LIMIT", "CHECK", "own", "b").startswith(code)
        assert conn.call("LIMIT", "CHECK", "down", "b")[:1] == [1]
        both = conn.call("LIMIT", "ALL", "CHECK", "own", "b", "CHECK", "down", "b")
        assert isinstance(both, Error) and not both.startswith("UPSTREAM")
        assert conn.call("LIMIT", "ACQUIRE", "b", 1, 1000).startswith(code), "no token can be made up"


def test_limit_is_answered_at_once_and_what_follows_waits(farm):
    redis = farm.redis()
    weir = start(farm, redis, sections=NAMED, wait=LONG, limit_when_down="allow")
    lose(weir, redis)
    with weir.connect() as conn:
        conn.send(pipeline("LIMIT FUNNEL k 5/h", "LIMIT CHECK down k", "GET k", "LIMIT FUNNEL k 5/h"))
        assert [conn.read()[0], conn.read()[0]] == [0, 1]
        time.sleep(WAIT)
        assert not conn.buffer
        redis.start()
        assert conn.read() is None and conn.read()[0] == 0


# ---- connects ----

FULL = Error("ERR max number of clients reached")


def dials(weir, n):
    conns = [weir.connect() for _ in range(n)]
    replies = []
    for conn in conns:
        with contextlib.suppress(Closed, OSError):
            replies.append(conn.call("GET", "k"))
    return conns, replies


def test_who_is_closed_for_an_outage_comes_again_uncounted(farm):
    """Each close by an outage allows one reconnection that `connects` does not count, and no more;
    through an outage of any length.
    """
    redis = farm.redis()
    weir = farm.weir(redis, workers=2, failover_wait="400ms", sections="[policy local]\nmatch = ip:127.0.0.1\nconnects = 4/d over close\n")
    conns, replies = dials(weir, 4)
    assert replies == [None] * 4
    lose(weir, redis)
    for _ in range(3):
        for conn in conns:
            with contextlib.suppress(OSError):
                conn.send(encode("GET", "k"))
        assert all(conn.read_to_end() == b"" for conn in conns), "closed for the outage, not refused"
        conns = [weir.connect() for _ in range(4)]
    redis.start()
    assert [conn.call("GET", "k") for conn in conns] == [None] * 4
    assert dials(weir, 2)[1] == [FULL] * 2


@pytest.mark.parametrize("lanes", LANES)
def test_a_restart_at_once_is_an_outage_to_connects(lanes, farm):
    redis = farm.redis()
    weir = farm.weir(redis, lanes=lanes, sections="[policy local]\nmatch = ip:127.0.0.1\nconnects = 4/d over close\n")
    conns, replies = dials(weir, 4)
    assert replies == [None] * 4
    for conn in conns:
        conn.send(encode("BLPOP", "k", "0"))
    wait_until(lambda: redis.waiting()[0] == 4, "they block")
    redis.kill()
    redis.start()
    assert all(conn.read_to_end() == b"" for conn in conns)
    wait_until(lambda: "control connection is back" in weir.log(), "it is back")
    again, replies = dials(weir, 4)
    assert replies == [None] * 4
    assert dials(weir, 2)[1] == [FULL] * 2


def test_a_connection_that_a_client_has_closed_itself_is_counted(farm):
    """Without an outage every reconnection counts."""
    redis = farm.redis()
    weir = farm.weir(redis, sections="[policy default]\nconnects = 4/d over close\n")
    for _ in range(4):
        with weir.connect() as conn:
            assert conn.call("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
            redis.call("CLIENT", "KILL", "TYPE", "pubsub")
            assert conn.read_to_end() == b""
    assert dials(weir, 2)[1] == [FULL] * 2


# ---- users, and TLS ----


@pytest.mark.parametrize("lanes", LANES)
def test_a_client_that_has_logged_in_waits_too(lanes, farm):
    """weir sends the client's own login again when Redis is back (docs/sharing.md), and the client
    waits for that, too.
    """
    redis = farm.redis("--user", "joe", "on", ">pw", "~*", "&*", "+@all")
    weir = start(farm, redis, lanes=lanes, wait=LONG)
    with weir.connect() as conn, weir.connect() as new:
        assert conn.call("AUTH", "joe", "pw") == "OK"
        assert lanes == "private" or conn.call("SET", "k", "v") == "OK"
        lose(weir, redis)
        conn.send(pipeline("ACL WHOAMI", "GET k", "SUBSCRIBE c"))
        new.send(pipeline("AUTH joe pw", "ACL WHOAMI", "HELLO 3 AUTH joe pw", "ECHO x"))
        time.sleep(WAIT)
        assert not conn.buffer and not new.buffer
        redis.start()
        assert [conn.read() for _ in range(3)] == [b"joe", None, [b"subscribe", b"c", 1]]
        assert [new.read(), new.read()] == ["OK", b"joe"] and b"server" in new.read() and new.read() == b"x"


@pytest.mark.parametrize("answer", ["close", "error"])
def test_a_client_that_has_logged_in_is_closed_or_told(answer, farm):
    redis = farm.redis("--user", "joe", "on", ">pw", "~*", "&*", "+@all")
    weir = start(farm, redis, when_upstream_down=answer)
    with weir.connect() as conn:
        assert conn.ask("AUTH joe pw", "SET k v") == ["OK", "OK"]
        lose(weir, redis)
        conn.send(encode("GET", "k"))
        if answer == "close":
            reply, seconds = end_of(conn)
            assert reply == b"" and is_after_wait(seconds)
        else:
            assert conn.read() == UNAVAILABLE
            redis.start()
            wait_until(lambda: conn.call("GET", "k") is None, "it is served again")


@pytest.mark.parametrize("lanes", LANES)
def test_over_tls(lanes, farm, serve, ca):
    """A stopped Redis accepts connections and makes no handshake: it hangs, and is not away."""
    redis = serve()
    weir = start(farm, redis, lanes=lanes, wait="500ms", connect_timeout="200ms", upstream_tls_ca_file=ca.cert)
    with weir.connect() as a, weir.connect() as b:
        with stopped(redis):
            a.send(encode("BLPOP", "none", "0.01"))
            time.sleep(1.5)
            assert not a.is_closed() and not a.buffer
        assert a.read() is None
        lose(weir, redis)
        b.send(encode("GET", "k"))
        reply, seconds = end_of(b)
        assert reply == b"" and is_after_wait(seconds, 0.5)


# ---- names ----


@pytest.mark.parametrize("lanes", LANES)
def test_a_name_that_does_not_resolve_is_an_outage(lanes, farm):
    weir = farm.weir("no-such-host.invalid:6379", lanes=lanes, workers=1, failover_wait="300ms", limit_when_down="deny")
    with weir.connect() as a, weir.connect() as b:
        a.send(encode("GET", "k"))
        b.send(pipeline("LIMIT FUNNEL k 5/h", "AUTH x"))
        assert b.read()[0] == 1
        for conn in (a, b):
            reply, seconds = end_of(conn)
            assert reply == b"" and seconds < WAIT + LATE


@pytest.mark.parametrize("lanes", LANES)
def test_weir_is_ready_again_though_no_client_asks(lanes, farm):
    """A balancer that checks readiness sends no client before."""
    redis = farm.redis()
    weir = start(farm, redis, lanes=lanes)
    with weir.connect() as conn:
        conn.call("PING")
        lose(weir, redis)
    with weir.connect() as conn:
        conn.send(encode("GET", "k"))
        assert end_of(conn)[0] == b""
    wait_until(lambda: "is away" in weir.log(), "it is away")
    redis.start()
    weir.wait_for_log("is back")


@pytest.mark.parametrize("lanes", LANES)
def test_an_idle_operator_outlives_redis(lanes, farm):
    """On the socket and by its policy, though the operator has sent a command to Redis."""
    redis = farm.redis()
    sections = "[policy operators]\nmatch = ip:127.0.0.1\nadmin = yes\n[admin]\nsocket = {folder}/admin\n"
    weir = start(farm, redis, lanes=lanes, sections=sections)
    with weir.connect() as conn, Conn(str(weir.folder / "admin")) as console:
        assert conn.call("SET", "k", "v") == "OK" and console.call("GET", "k") == b"v"
        lose(weir, redis)
        assert isinstance(console.call("LIMIT", "TOP"), list)
        redis.start()
        wait_until(lambda: conn.call("SET", "k", "again") == "OK", "it is served")
        assert console.call("GET", "k") == b"again"


def test_an_operator_with_state_on_its_lane_is_closed(farm):
    redis = farm.redis()
    weir = start(farm, redis, lanes="private", sections="[policy operators]\nmatch = ip:127.0.0.1\nadmin = yes\n")
    with contextlib.ExitStack() as stack:
        states = {words: stack.enter_context(weir.connect()) for words in ("WATCH k", "MULTI", "SUBSCRIBE c", "MONITOR")}
        for words, conn in states.items():
            conn.call(*words.split())
        lose(weir, redis)
        for words, conn in states.items():
            wait_until(lambda: conn.is_closed(), f"it is closed with {words}")


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("handshake", ["AUTH default x", "HELLO 3 AUTH default x"])
def test_a_login_waits_no_longer_where_a_connection_is_being_opened(handshake, lanes, farm):
    """The greeting of a new connection gets no answer; connect-timeout is far longer than the wait.
    """
    redis = farm.redis()
    weir = start(farm, redis, lanes=lanes, connect_timeout="50s", handshake_timeout="50s")
    lose(weir, redis)
    with weir.connect() as early, weir.connect() as late:
        early.send(encode(*handshake.split()))
        wait_until(lambda: "is away" in weir.log(), "weir knows")
        with blackhole(redis.address):
            late.send(encode(*handshake.split()))
            for conn in (late, early):
                reply, seconds = end_of(conn)
                assert reply == b"" and seconds < 5 * WAIT + LATE


def test_an_operators_handshake_ends_where_redis_takes_no_more_connections(farm):
    redis = farm.redis()
    sections = "[policy operators]\nmatch = ip:127.0.0.1\nadmin = yes\n"
    weir = start(farm, redis, sections=sections, handshake_timeout="600ms")
    with redis.connect() as other:
        assert other.call("CONFIG", "SET", "maxclients", 1) == "OK"
        other.call("CLIENT", "KILL", "TYPE", "normal")  # without itself
        wait_until(lambda: "is away: it refuses new connections" in weir.log(), "weir is turned away")
        with weir.connect() as conn:
            conn.send(encode("AUTH", "default", "x"))
            reply, seconds = end_of(conn)
            assert reply == b"" and seconds < 0.6 + LATE
        assert other.call("CONFIG", "SET", "maxclients", 1000) == "OK"
    with weir.connect() as conn:
        wait_until(lambda: conn.call("PING") == "PONG", "it is served again")
