"""WAIT and WAITAOF cover all writes of the client, on whichever lanes they travelled, and never
claim too much.
"""

import signal

import pytest
from kit.harness import Farm, wait_until
from kit.resp import encode

LANES = ["shared", "private"]
USER = ("ACL", "SETUSER", "writer", "on", ">pw", "~*", "&*", "-@all", "+set", "+wait", "+multi", "+exec", "+get", "+del")
OWN = ("ACL", "SETUSER", "weir", "on", ">secret", "-@all", "+info", "+command", "+set", "~limit:*", "resetchannels")


class Pair:
    """A Redis and its replica, which the test stops and resumes."""

    def __init__(self, farm, *options):
        self.redis = farm.redis("--repl-diskless-sync-delay", "0", *options)
        self.replica = farm.redis("--replicaof", "127.0.0.1", str(self.redis.port))
        wait_until(lambda: self.replica.info("master_link_status") == "up", "the replica is in step", 20)

    def stop(self):
        """Later writes are on no replica. Earlier writes are."""
        assert self.redis.call("SET", "before", "1") == "OK"
        with self.redis.connect() as conn:
            assert conn.ask("SET before 2", "WAIT 1 10000") == ["OK", 1]
        self.replica.signal(signal.SIGSTOP)

    def go_on(self):
        self.replica.signal(signal.SIGCONT)


@pytest.fixture
def pair(farm):
    pair = Pair(farm)
    yield pair
    pair.go_on()


@pytest.fixture(params=LANES)
def lanes(request):
    return request.param


@pytest.fixture(scope="module")
def kept_pair():
    farm = Farm()
    yield Pair(farm)
    farm.close()


@pytest.fixture
def both(kept_pair, kept, lanes):
    """A pair and a weir in front of it, which the tests share."""
    yield kept_pair, kept(kept_pair.redis, workers=1, lanes=lanes)
    kept_pair.go_on()


def weir_of(farm, pair, lanes, **settings):
    return farm.weir(pair.redis, lanes=lanes, workers=1, **settings)


HISTORIES = {
    "a write": ["SET k v"],
    "a transaction": ["MULTI", "SET k v", "EXEC"],
    "a write, and a transaction that writes nothing": ["SET k v", "MULTI", "DEL nothing", "EXEC"],
    "a transaction, and a read": ["MULTI", "SET k v", "EXEC", "GET k"],
    "a script": ["EVAL redis.call('SET','k','v') 0"],
    "a write in another database": ["SELECT 1", "SET k v", "SELECT 0", "GET k"],
    "a write as somebody else": ["SET k v", "AUTH default x"],
    "a write before RESET": ["SET k v", "RESET", "PING"],
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_no_replica_is_counted_that_stands_still(both, lanes, history):
    pair, weir = both
    pair.stop()
    with weir.connect() as a:
        a.ask(*history)
        assert a.call("WAIT", 1, 100) == 0
        assert a.call("WAIT", 1, 100) == 0, "nor when it is asked again"
        pair.go_on()
        # writes before RESET were on another lane
        if not (lanes == "private" and "RESET" in history):
            assert a.call("WAIT", 1, 10_000) == 1
        assert a.ask("SET k w", "WAIT 1 10000") == ["OK", 1]


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_the_same_in_one_write(both, history):
    pair, weir = both
    pair.stop()
    with weir.connect() as a:
        assert a.ask(*history, "WAIT 1 100", "ECHO x")[-2:] == [0, b"x"]


def test_replicas_that_keep_up_are_counted(both):
    weir = both[1]
    with weir.connect() as a:
        assert a.ask("SET k v", "WAIT 1 5000", "SET k w", "GET k", "WAIT 1 5000") == ["OK", 1, "OK", b"w", 1]
    with weir.connect() as a:
        assert a.ask("MULTI", "SET k v", "EXEC", "WAIT 1 5000")[-1] == 1
    with weir.connect() as a:
        assert str(a.ask("WAIT 0 0", "WAIT x 0")[-1]) == "ERR value is not an integer or out of range"


@pytest.mark.parametrize("how", ["steps", "at once"])
def test_a_write_after_reset_is_counted(both, how):
    """After RESET the client has another lane. A write on that lane covers the earlier writes: the
    replica has them, too.
    """
    weir = both[1]
    for history in (["SET k v", "RESET", "SET k w"], ["MULTI", "SET k v", "EXEC", "RESET", "INCR n"], ["SET k v", "RESET"]):
        asked = [*history, "WAIT 1 10000", "WAIT 1 10000"]
        with weir.connect() as a:
            replies = a.ask(*asked) if how == "at once" else [a.ask(one)[0] for one in asked]
            assert replies[-2:] == [1, 1], history


@pytest.mark.parametrize("history", [["SET k v", "RESET", "SET k w"], ["SET k v", "RESET"]], ids=["a write", "no write"])
def test_after_reset_no_replica_is_counted_that_stands_still(both, history):
    pair, weir = both
    pair.stop()
    with weir.connect() as a:
        assert a.ask(*history, "WAIT 1 100")[-1] == 0
        assert a.call("WAIT", 1, 100) == 0
        pair.go_on()
        assert a.call("WAIT", 1, 10_000) == 1


@pytest.mark.parametrize("history", [["SET k v"], ["SET k v", "MULTI", "SET k w", "EXEC"]], ids=["a write", "and a transaction"])
def test_what_a_restart_has_lost_is_on_no_replica(farm, pair, history):
    """A client without requests in flight stays connected, and gets no false count."""
    weir = weir_of(farm, pair, "shared")
    pair.stop()
    with weir.connect() as a:
        a.ask(*history)
        pair.redis.kill()
        pair.redis.start()
        pair.go_on()
        wait_until(lambda: pair.replica.info("master_link_status") == "up", "the replica is in step again", 20)
        wait_until(lambda: a.call("GET", "k") is None, "weir finds Redis again")
        assert a.call("WAIT", 1, 100) == 0
        assert a.ask("SET k x", "WAIT 1 10000") == ["OK", 1]


def test_many_clients_wait_side_by_side(farm, pair):
    weir = weir_of(farm, pair, "shared")
    pair.stop()
    conns = [weir.connect() for _ in range(20)]
    try:
        for conn in conns:
            assert conn.call("SET", "k", "v") == "OK"
        for conn in conns:
            conn.send(encode("WAIT", 1, 0))
        with weir.connect() as other:
            assert other.ask("SET k w", "GET k") == ["OK", b"w"]
        pair.go_on()
        assert [conn.read() for conn in conns] == [1] * 20
    finally:
        for conn in conns:
            conn.close()


def test_a_user_with_few_rights(farm, pair, lanes):
    """weir sends nothing in the user's name that the user may not send."""
    pair.redis.call(*USER)
    pair.redis.call(*OWN)
    pair.redis.call("ACL", "SETUSER", "default", "off")
    with pair.redis.connect() as admin:
        assert str(admin.call("PING")).startswith("NOAUTH")
    (pair.redis.folder / "pw").write_text("secret")
    weir = weir_of(farm, pair, lanes, upstream_user="weir", upstream_password_file=str(pair.redis.folder / "pw"))
    with weir.connect() as a:
        assert a.ask("AUTH writer pw", "SET k v", "WAIT 1 5000", "GET k") == ["OK", "OK", 1, b"v"]
        assert a.ask("SET k w", "WAIT 1 5000") == ["OK", 1]


def test_without_leave_to_write_less_is_said_than_is_true(farm, pair):
    pair.redis.call(*USER)
    pair.redis.call("ACL", "SETUSER", "default", "resetkeys", "~before")
    weir = weir_of(farm, pair, "shared")
    with weir.connect() as a:
        assert a.ask("AUTH writer pw", "SET k v", "WAIT 1 5000", "WAIT 1 5000") == ["OK", "OK", 0, 0]
        assert a.ask("DEL nothing", "WAIT 1 5000") == [0, 0]
        wrong = [str(reply) for reply in a.ask("WAIT x 0", "WAIT 1 -1")]
        assert wrong == ["ERR value is not an integer or out of range", "ERR timeout is negative"]
        assert a.ask("SET k w", "WAIT 1 5000") == ["OK", 1]
        pair.stop()
        assert a.ask("SET k x", "WAIT 1 100") == ["OK", 0]


def test_bound_to_a_lane_less_is_said_than_is_true(farm, pair):
    weir = weir_of(farm, pair, "shared")
    with weir.connect() as a:
        assert a.ask("SET k v", "WATCH k", "WAIT 1 5000") == ["OK", "OK", 0]
        assert a.ask("SET k w", "WAIT 1 5000") == ["OK", 1]


def test_the_silenced_hear_nothing_of_it(farm, pair):
    weir = weir_of(farm, pair, "shared")
    with weir.connect() as a:
        a.send(encode("SET", "k", "v") + encode("CLIENT", "REPLY", "OFF") + encode("WAIT", 1, 1000))
        a.send(encode("CLIENT", "REPLY", "ON") + encode("WAIT", 1, 1000))
        assert [a.read(), a.read(), a.read()] == ["OK", "OK", 1]


def test_waitaof_counts_what_its_client_wrote(farm, pair):
    redis = pair.redis
    if str(redis.call("WAITAOF", 0, 0, 0)).startswith("ERR unknown command"):
        pytest.skip("this Redis has no WAITAOF, which came with 7.2")
    redis.call("CONFIG", "SET", "appendonly", "yes")
    for lanes in LANES:
        weir = weir_of(farm, pair, lanes)
        with weir.connect() as a:
            assert a.ask("SET k v", "WAITAOF 1 0 5000", "SET k w", "WAITAOF 1 0 5000") == ["OK", [1, 0], "OK", [1, 0]]
        with weir.connect() as a, weir.connect() as b:
            pair.stop()
            assert [replicas for _, replicas in a.ask("SET k v", "WAITAOF 0 1 50", "WAITAOF 0 1 50")[1:]] == [0, 0]
            assert b.ask("SET k v", "WATCH k", "WAITAOF 0 0 0")[-1][1] == 0
        pair.go_on()


@pytest.fixture
def synced_never(farm):
    """A Redis without a replica that writes its append-only file without fsync."""
    redis = farm.redis("--appendonly", "yes", "--appendfsync", "no")
    if str(redis.call("WAITAOF", 0, 0, 0)).startswith("ERR unknown command"):
        pytest.skip("this Redis has no WAITAOF, which came with 7.2")
    return redis


@pytest.mark.parametrize("how", ["steps", "at once"])
@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_no_disk_is_counted_before_the_file_is_on_it(farm, synced_never, lanes, history, how):
    weir = farm.weir(synced_never, lanes=lanes, workers=1)
    asked = [*history, "WAITAOF 1 0 50", "WAITAOF 1 0 50", "WAIT 0 0", "WAITAOF 1 0 50"]
    with weir.connect() as a:
        replies = a.ask(*asked) if how == "at once" else [a.ask(one)[0] for one in asked]
        assert replies[-4:] == [[0, 0], [0, 0], 0, [0, 0]]
        synced_never.call("CONFIG", "SET", "appendfsync", "always")
        assert a.ask("SET k w", "WAITAOF 1 0 10000") == ["OK", [1, 0]]


def test_a_disk_is_counted_once_the_file_is_on_it(farm, synced_never, lanes):
    synced_never.call("CONFIG", "SET", "appendfsync", "everysec")
    weir = farm.weir(synced_never, lanes=lanes, workers=1)
    with weir.connect() as a, weir.connect() as b:
        assert a.ask("SET k v", "WAITAOF 1 0 10000", "WAITAOF 1 0 10000") == ["OK", [1, 0], [1, 0]]
        assert b.ask("SET k v", "WAIT 0 0", "WAITAOF 1 0 10000") == ["OK", 0, [1, 0]]
    wait_until(lambda: synced_never.call("EXISTS", "limit:weir:written") == 0, "what weir has written is gone")


@pytest.mark.parametrize("silent", [False, True])
def test_a_client_that_leaves_while_it_waits(farm, pair, silent):
    weir = weir_of(farm, pair, "shared")
    pair.stop()
    with weir.connect() as a:
        a.send((encode("CLIENT", "REPLY", "OFF") if silent else b"") + encode("SET", "k", "v") + encode("WAIT", 1, 0))
        wait_until(lambda: pair.redis.info("blocked_clients") == "1", "it waits")
    wait_until(lambda: pair.redis.info("blocked_clients") == "0", "nobody waits")
