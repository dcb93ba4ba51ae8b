"""weir without free file descriptors: connected clients are served, new clients get an error, and
no loop spins.
"""

import resource
import shutil
import time

import pytest
from kit.decisions import place
from kit.harness import TOLD_AT_ONCE, wait_until
from kit.resp import Error, encode
from test_admin_http import ADMIN, get, metrics, value

UNAVAILABLE = Error("UPSTREAM unavailable")


class Starved:
    """Meanwhile the process gets no new descriptor."""

    def __init__(self, weir):
        self.pid = weir.child.pid

    def __enter__(self):
        self.before = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (3, self.before[1]))
        self.since = time.monotonic()

    def __exit__(self, *_):
        self.seconds = time.monotonic() - self.since
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, self.before)


def test_who_waits_for_a_place_hears_of_it_though_weir_could_not_listen_at_first(farm, redis):
    weir = farm.weir(redis, workers=1)
    holder, waiter = weir.connect(), weir.connect()
    held = place(holder.call("LIMIT", "ACQUIRE", "one", 1, 100_000))
    with Starved(weir):
        waiter.send(encode("LIMIT", "ACQUIRE", "one", "1", "100000", "WAIT", "100000"))
        wait_until(lambda: "cannot open a connection: too many open files" in weir.log(), "it cannot listen")
    assert holder.call("LIMIT", "RELEASE", "one", held.token) == 1
    assert place(waiter.read()).limited == 0


def lane_errors(weir, redis):
    return value(metrics(weir), "weir_upstream_errors_total", upstream=redis.upstream, reason="system")


def works(conn, *command):
    """True if the reply is not -UPSTREAM unavailable. For wait_until."""
    return conn.call(*command) != UNAVAILABLE


def test_no_lane_to_be_had(farm, redis):
    weir = farm.weir(redis, workers=1, sections=ADMIN)
    conns = [weir.connect() for _ in range(10)]
    other = weir.connect()
    assert [conn.call("PING") for conn in [other, *conns]] == ["PONG"] * 11
    starved = Starved(weir)
    with starved:
        # Some clients may get a lane that was idle.
        heard = [conn.call("SUBSCRIBE", "c") for conn in conns]
        assert UNAVAILABLE in heard
        conn = conns[heard.index(UNAVAILABLE)]
        for i in range(300):
            assert conn.call("BLPOP", "nothing", "0.01") == UNAVAILABLE
            assert other.ask(f"SET k {i}", "GET k") == ["OK", b"%d" % i]
        assert conn.ask("MULTI", "SET k v", "EXEC")[0] == UNAVAILABLE
    wait_until(lambda: works(conn, "BLPOP", "nothing", "0.01"), "lanes are opened again")
    assert conn.call("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
    wait_until(lambda: "cannot open a connection: too many open files" in weir.log(), "it is told")
    # weir waits at least 25 ms between two attempts.
    wait_until(lambda: lane_errors(weir, redis) >= 1, "it is counted")
    assert lane_errors(weir, redis) <= 2 + starved.seconds / 0.025
    for each in [other, *conns]:
        each.close()


def test_the_shared_lane_is_lost_and_cannot_be_had_again(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, sections=ADMIN, **TOLD_AT_ONCE)
    with weir.connect() as conn:
        assert conn.call("SET", "k", "v") == "OK"
        starved = Starved(weir)
        with starved:
            redis_conn = redis.connect()
            redis_conn.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            redis_conn.close()
            wait_until(lambda: conn.call("GET", "k") == UNAVAILABLE, "its lane has gone")
            for _ in range(300):
                assert conn.call("GET", "k") == UNAVAILABLE
        wait_until(lambda: conn.call("GET", "k") == b"v", "the same client goes on")
        wait_until(lambda: get(weir, "/readyz")[0] == 200, "weir serves again")
        assert lane_errors(weir, redis) <= 3 + starved.seconds / 0.025


def test_newcomers_wait_and_nothing_spins(farm, redis):
    weir = farm.weir(redis, workers=2, sections=ADMIN)
    listener = {"listener": "127.0.0.1:0"}
    with weir.connect() as old:
        assert old.call("PING") == "PONG"
        starved = Starved(weir)
        with starved:
            conns = [weir.connect() for _ in range(8)]
            wait_until(lambda: "cannot accept a connection: too many open files" in weir.log(), "it is told")
            for i in range(200):
                assert old.ask(f"SET k {i}", "GET k") == ["OK", b"%d" % i]
        assert [conn.call("PING") for conn in conns] == ["PONG"] * 8, "they are let in"
        for conn in conns:
            conn.close()
    wait_until(lambda: value(metrics(weir), "weir_accept_errors_total", **listener) >= 1, "it is counted")
    # Each worker tries again after 100 ms.
    assert value(metrics(weir), "weir_accept_errors_total", **listener) <= 2 * (1 + starved.seconds / 0.1)


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_max_clients_leaves_room_for_weir_itself(lanes, farm, redis):
    """With few descriptors allowed, weir serves max-clients clients completely, and one more client
    gets an error.
    """
    assert shutil.which("prlimit")
    weir = farm.weir(redis, workers=2, lanes=lanes, max_clients=10_000, sections=ADMIN, prefix=["prlimit", "--nofile=256"])
    wait_until(lambda: "max-clients is lowered from 10000 to" in weir.log(), "it is told")
    most = int(value(metrics(weir), "weir_connections_limit"))
    assert 50 < most < 256
    conns = [weir.connect() for _ in range(most)]
    assert [conn.call("SET", "k", "v") for conn in conns] == ["OK"] * most
    with weir.connect() as more:
        assert more.read_to_end() == b"-ERR max number of clients reached\r\n"
    assert get(weir, "/readyz")[0] == 200
    own = [conn.call("SUBSCRIBE", "c") for conn in conns[: most // 8 if lanes == "shared" else most]]
    assert UNAVAILABLE not in own
    assert "cannot accept" not in weir.log() and "cannot open" not in weir.log()
    for conn in conns:
        conn.close()
