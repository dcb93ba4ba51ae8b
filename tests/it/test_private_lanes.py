"""What moves a client to a private lane, and back: nothing is lost, mixed up or left behind."""

import random
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from kit.harness import wait_until
from kit.resp import Closed, Conn, Error, Push, encode, pipeline
from kit.script import same_as_redis
from kit.server import at_least, quoted

LANES = ["shared", "private"]
# connections from weir to Redis in any case, with one worker: control connection, shared lanes, a
# small pool
FEW = 12
WRONGPASS = Error("WRONGPASS invalid username-password pair or user is disabled.")


class Watch:
    """What a Redis with one weir sees of that weir, asked over one connection."""

    def __init__(self, redis):
        self.conn = redis.connect()
        self.id = self.conn.call("CLIENT", "ID")
        self.before = self.opened()

    def opened(self):
        """Returns the connections to Redis since its start, without those by which weir checks
        every second whether Redis accepts it.
        """
        info = self.conn.call("INFO", "everything")
        looks = re.search(rb"cmdstat_slowlog(?:\|len)?:calls=(\d+)", info)
        return int(re.search(rb"total_connections_received:(\d+)", info)[1]) - int(looks[1] if looks else 0)

    def lanes(self):
        """Returns the other connections to Redis, as CLIENT LIST shows them."""
        lines = self.conn.call("CLIENT", "LIST").decode().splitlines()
        entries = [dict(word.split("=", 1) for word in line.split(" ")) for line in lines]
        return [entry for entry in entries if int(entry["id"]) != self.id]

    def few(self):
        """Checks that few connections are open, and that few were opened."""
        told = ("user", "db", "resp", "flags", "name", "cmd")
        lanes = [" ".join(f"{k}={e[k]}" for k in told if k in e) for e in self.lanes()]
        assert len(lanes) <= FEW, lanes
        assert self.opened() - self.before <= FEW, lanes


@pytest.fixture(scope="module")
def servers(shared_farm):
    """A Redis that only weir uses, and one weir for each kind of lanes."""
    redis = shared_farm.redis()
    return redis, {lanes: shared_farm.weir(redis, workers=1, lanes=lanes) for lanes in LANES}


@pytest.fixture
def redis(servers):
    redis = servers[0]
    redis.forget_data()
    add_users(redis)
    return redis


def add_users(redis):
    redis.call("ACL", "SETUSER", "joe", "reset", "on", ">secret", "~*", "&*", "+@all")
    redis.call("ACL", "SETUSER", "ann", "reset", "on", ">word", "~ann:*", "&*", "+@all", "-flushall")


@pytest.fixture(params=LANES)
def weir(request, redis, servers):
    return servers[1][request.param]


@pytest.fixture(scope="module")
def counting(shared_farm):
    """A Redis on which connections are counted."""
    return shared_farm.redis()


@pytest.fixture
def watch(counting):
    add_users(counting)
    watch = Watch(counting)
    wait_until(lambda: not watch.lanes(), "earlier connections are gone")
    watch.conn.ask("FLUSHALL", "RPUSH list " + "v " * 200, "XADD stream 1-1 f v")
    yield watch
    watch.conn.close()


@pytest.fixture
def shared(farm, watch, counting):
    """A fresh weir, the only one at the watched Redis."""
    return farm.weir(counting, workers=1)


@pytest.fixture
def crowd():
    """Opens connections, and closes them at the end."""
    conns = []

    def connect(server):
        conns.append(server.connect())
        return conns[-1]

    yield connect
    for conn in conns:
        conn.close()


# ---- lanes that are returned ----


def test_a_thousand_transactions_need_one_connection(shared, watch):
    with shared.connect() as a:
        a.call("SET", "n", 0)
        before = watch.opened()
        for i in range(500):
            assert a.ask("MULTI", "INCR n", "EXEC") == ["OK", "QUEUED", [i + 1]]
        replies = a.ask(*["GET n", "MULTI", "INCR n", "EXEC"] * 500)
        assert replies[3::4] == [[i] for i in range(501, 1001)]
        assert watch.opened() - before <= 1


def test_transactions_of_many_clients_need_no_more_connections_than_clients(shared, watch, crowd):
    clients = [crowd(shared) for _ in range(30)]
    before = watch.opened()
    for _ in range(20):
        for client in clients:
            client.send(pipeline("MULTI", "INCR n", "EXEC", "GET k"))
        for client in clients:
            assert [client.read() for _ in range(4)][1] == "QUEUED"
    assert watch.opened() - before <= len(clients)


# The state that a client creates, what ends it, and the number of replies.
STATES = {
    "WATCH and UNWATCH": ["WATCH k", "UNWATCH"],
    "WATCH and EXEC": ["WATCH k", "MULTI", "GET k", "EXEC"],
    "WATCH and a failed EXEC": ["WATCH k", "SET k v", "MULTI", "GET k", "EXEC"],
    "WATCH and DISCARD": ["WATCH k", "MULTI", "DISCARD"],
    "WATCH and RESET": ["WATCH k", "RESET"],
    "MULTI and DISCARD": ["MULTI", "SET k v", "DISCARD"],
    "MULTI and EXECABORT": ["MULTI", "FOO", "EXEC"],
    "MULTI and RESET": ["MULTI", "SET k v", "RESET"],
    "SUBSCRIBE": ["SUBSCRIBE c", "UNSUBSCRIBE c"],
    "PSUBSCRIBE": ["SUBSCRIBE c", "PSUBSCRIBE p*", "PUNSUBSCRIBE", "UNSUBSCRIBE"],
    "SSUBSCRIBE": ["SUBSCRIBE c", "SSUBSCRIBE s", "UNSUBSCRIBE", "SUNSUBSCRIBE"],
    "SUBSCRIBE and RESET": ["SUBSCRIBE c", "RESET"],
    "SUBSCRIBE in RESP3": ["HELLO 3", "SUBSCRIBE c", "GET k", "UNSUBSCRIBE"],
    "UNSUBSCRIBE from nothing": ["UNSUBSCRIBE"],
    "in a database, as somebody": ["AUTH joe secret", "SELECT 3", "CLIENT SETNAME me", "MULTI", "GET k", "EXEC"],
}


@pytest.mark.parametrize("commands", STATES.values(), ids=STATES.keys())
def test_who_has_no_state_any_more_is_shared_again(commands, shared, watch, crowd):
    for _ in range(40):
        crowd(shared).ask(*commands, "GET k", "PING")
    watch.few()


def test_a_subcommand_that_redis_does_not_know_leaves_nothing(shared, watch, crowd):
    for _ in range(40):
        assert "subcommand" in crowd(shared).call("CLIENT", "NOSUCH", "x")
    watch.few()


# Redis may keep these states even after RESET: no other client ever gets such a lane.
MARKS = {
    "tracking": ["HELLO 3", "CLIENT TRACKING ON", "GET none", "CLIENT TRACKING OFF"],
    "tracking and RESET": ["HELLO 3", "CLIENT TRACKING ON BCAST", "RESET"],
    "eviction": ["CLIENT NO-EVICT ON", "CLIENT NO-EVICT OFF"],
}


@pytest.mark.parametrize("commands", MARKS.values(), ids=MARKS.keys())
def test_a_lane_that_redis_may_remember_has_no_second_owner(commands, shared, watch, crowd):
    for _ in range(40):
        crowd(shared).ask(*commands, "GET k", "PING")
    assert watch.opened() - watch.before >= 40
    wait_until(lambda: len(watch.lanes()) <= 12, "none of them is kept")


@pytest.mark.parametrize("first", ["CLIENT NO-EVICT ON", "CLIENT TRACKING ON BCAST REDIRECT 0", "CLIENT SETNAME me", "SELECT 1"])
def test_a_lane_that_a_transaction_has_changed_has_no_second_owner(first, shared, watch):
    """The client keeps the lane, with or without RESET, and no other client gets the lane
    afterwards.
    """
    for _ in range(20):
        with shared.connect() as conn:
            conn.ask("MULTI", first, "EXEC", "RESET", "GET k", "PING")
    assert watch.opened() - watch.before >= 20
    wait_until(lambda: len(watch.lanes()) <= 12, "none of them is kept")


SINGLE = {
    "EVAL": ("EVAL", "return redis.call('GET', 'k')", 0),
    "EVALSHA": ("EVALSHA", "0" * 40, 0),
    "FCALL": ("FCALL", "none", 0),
    "BLPOP": ("BLPOP", "list", 0),
    "XREAD": ("XREAD", "BLOCK", 0, "STREAMS", "stream", 0),
    "WAIT": ("WAIT", 0, 0),
    "CLIENT LIST": ("CLIENT", "LIST"),
    "CLIENT KILL": ("CLIENT", "KILL", "ID", 999_999_999),
    "SCRIPT KILL": ("SCRIPT", "KILL"),
    "an unknown command": ("FOO", "a"),
    "an unknown subcommand": ("CONFIG", "FOO"),
}


@pytest.mark.parametrize("command", SINGLE.values(), ids=SINGLE.keys())
def test_one_such_command_of_many_clients(command, shared, watch, crowd):
    for i in range(200):
        client = crowd(shared)
        client.send(encode(*command) + encode("ECHO", i))
        client.read()
        assert client.read() == b"%d" % i
    watch.few()


HANDSHAKES = {
    "redis-py": ["AUTH joe secret", "CLIENT SETNAME me", "SELECT 2"],
    "redis-py 5": ["HELLO 3 AUTH joe secret", "CLIENT SETNAME me", "CLIENT SETINFO LIB-NAME redis-py", "SELECT 2"],
    "ioredis": ["AUTH joe secret", "SELECT 2", "CLIENT SETNAME me", "CLIENT SETINFO LIB-NAME ioredis", "INFO"],
    "node-redis": ["HELLO 3 AUTH joe secret SETNAME me", "SELECT 2", "CLIENT SETINFO LIB-NAME node-redis"],
    "go-redis": ["HELLO 3 AUTH joe secret", "SELECT 2", "CLIENT SETNAME me", "READONLY", "CLIENT SETINFO LIB-VER 9"],
    "Jedis": ["HELLO 3 AUTH joe secret SETNAME me", "CLIENT SETINFO lib-name jedis", "SELECT 2"],
    "lettuce": ["HELLO 3 AUTH joe secret SETNAME me", "CLIENT SETINFO lib-name Lettuce", "SELECT 2", "PING"],
    "without a user": ["HELLO 3", "SELECT 2", "CLIENT SETNAME me", "CLIENT GETNAME"],
}


@pytest.mark.parametrize("commands", HANDSHAKES.values(), ids=HANDSHAKES.keys())
def test_handshakes_cost_no_connection(commands, shared, watch, crowd):
    """One write for all commands, or one for each."""
    clients = [crowd(shared) for _ in range(100)]
    for i, client in enumerate(clients):
        if i % 2:
            client.ask(*commands)
        else:
            for command in commands:
                client.ask(command)
    for i, client in enumerate(clients):
        assert client.ask(f"SET {i} v", f"GET {i}", "CLIENT GETNAME") == ["OK", b"v", b"me"]
    watch.few()
    assert watch.conn.ask("SELECT 2", "DBSIZE") == ["OK", 100]


# ---- order ----


class Talk:
    """A pipeline that moves between lanes, and its expected replies."""

    def __init__(self, seed, name):
        self.random = random.Random(seed)
        self.name, self.tokens = name, 0
        self.data, self.wanted = [], []

    def say(self, *pairs):
        for command, want in pairs:
            self.data.append(encode(*(command.split() if isinstance(command, str) else command)))
            self.wanted.append(want)

    def token(self):
        self.tokens += 1
        return f"{self.name}:{self.tokens}"

    def step(self):
        t = self.token()
        b, name = t.encode(), self.name.encode()
        kinds = [
            [(f"ECHO {t}", b)] * 3,
            [(f"SET {self.name} {t}", "OK"), (f"GET {self.name}", b)],
            [("MULTI", "OK"), (f"ECHO {t}", "QUEUED"), ("EXEC", [b])],
            [("MULTI", "OK"), ("GET x", "QUEUED"), ("DISCARD", "OK")],
            [(f"WATCH {self.name}", "OK"), ("UNWATCH", "OK"), (f"ECHO {t}", b)],
            [(("EVAL", "return ARGV[1]", 0, t), b)],
            [(f"RPUSH list:{self.name} {t}", 1), (f"BLPOP list:{self.name} 0", [b"list:" + name, b])],
            [(f"SUBSCRIBE {t}", [b"subscribe", b, 1]), ("UNSUBSCRIBE", [b"unsubscribe", b, 0])],
            [("WAIT 0 0", 0), (f"ECHO {t}", b)],
            [("SELECT 3", "OK"), (f"SET {t} {t}", "OK"), (f"GET {t}", b), ("SELECT 0", "OK"), (f"GET {t}", None)],
            [("AUTH joe secret", "OK"), ("ACL WHOAMI", b"joe"), ("AUTH default x", "OK"), ("ACL WHOAMI", b"default")],
            [("AUTH joe wrong", WRONGPASS), (f"ECHO {t}", b), ("ACL WHOAMI", b"default")],
            [(f"CLIENT SETNAME {t}", "OK"), ("CLIENT GETNAME", b), ("RESET", "RESET"), ("CLIENT GETNAME", None)],
            [("FOO", Error(f"ERR unknown command {quoted('FOO')}, with args beginning with: ")), (f"ECHO {t}", b)],
        ]
        self.say(*self.random.choice(kinds))


def test_order_is_kept_when_clients_change_lanes(weir, crowd):
    for round in range(4):
        talks = [Talk(1000 * round + i, f"{round}.{i}") for i in range(25)]
        clients = [crowd(weir) for _ in talks]
        for talk in talks:
            for _ in range(60):
                talk.step()
        for piece in range(3):  # all in flight at once
            for client, talk in zip(clients, talks):
                third = len(talk.data) // 3
                client.send(b"".join(talk.data[piece * third : (piece + 1) * third if piece < 2 else None]))
        for client, talk in zip(clients, talks):
            for i, want in enumerate(talk.wanted):
                got = client.read()
                assert got == want, f"{talk.data[: i + 1][-8:]}"


@pytest.mark.parametrize("naming", ["CLIENT SETNAME me", "HELLO 2 SETNAME me"])
def test_a_name_is_gone_after_reset(weir, naming):
    """Also on a connection that is reused."""
    with weir.connect() as a:
        info = a.ask("CLIENT UNPAUSE", naming, "RESET", "CLIENT INFO")[-1]
        assert re.search(rb" name=(\S*)", info)[1] == b""


def test_subscriptions_are_over_when_reset_is_answered(weir):
    """Also for later commands, which another lane carries, and which other clients keep busy."""
    is_over = Event()

    def make_noise(which):
        with weir.connect() as noise:
            while not is_over.is_set():
                noise.ask(*[f"SET noise:{which}:{i} x" for i in range(20)])

    with ThreadPoolExecutor(2) as pool:
        makers = [pool.submit(make_noise, which) for which in range(2)]
        try:
            for i in range(300):
                with weir.connect() as a:
                    replies = a.ask(f"SUBSCRIBE c{i}", "RESET", f"PUBLISH c{i} x", f"PUBSUB NUMSUB c{i}")
                    assert replies[1:] == ["RESET", 0, [b"c%d" % i, 0]]
        finally:
            is_over.set()
        for maker in makers:
            maker.result()


# ---- a client on a shared lane sees nothing of other clients ----


def test_databases_are_apart(weir):
    with weir.connect() as a, weir.connect() as b, weir.connect() as c:
        assert a.call("SELECT", 1) == b.call("SELECT", 2) == "OK"
        for i in range(50):
            for conn, value in ((a, f"a{i}"), (b, f"b{i}"), (c, f"c{i}")):
                conn.send(pipeline(f"SET k {value}", "GET k"))
            assert [conn.read() for conn in (a, b, c)] == ["OK"] * 3
            assert [conn.read() for conn in (a, b, c)] == [b"a%d" % i, b"b%d" % i, b"c%d" % i]
        assert a.ask("SELECT 2", "GET k", "SELECT 0", "GET k") == ["OK", b"b49", "OK", b"c49"]


def test_protocols_are_apart(weir):
    with weir.connect() as a, weir.connect() as b:
        a.call("HSET", "h", "f", "v")
        for _ in range(20):
            assert a.call("HELLO", 3)[b"proto"] == 3
            assert a.call("HGETALL", "h") == {b"f": b"v"}
            assert b.call("HGETALL", "h") == [b"f", b"v"]
            b.send(encode("GET", "none"))
            assert b.line() == b"$-1"
            a.send(encode("GET", "none"))
            assert a.line() == b"_"
            assert a.call("HELLO", 2)[5] == 2
            assert a.call("HGETALL", "h") == [b"f", b"v"]


def test_a_name_is_on_the_lane_that_was_there_for_select(weir):
    """After SELECT a client may keep the lane on which SELECT went."""
    with weir.connect() as a:
        assert a.ask("CLIENT SETNAME me", "SELECT 11", "WATCH k") == ["OK", "OK", "OK"]
        assert a.call("CLIENT", "GETNAME") == b"me"
    with weir.connect() as b:
        assert b.ask("CLIENT SETNAME you", "SELECT 12") == ["OK", "OK"]
        assert b.ask("WATCH k", "CLIENT GETNAME") == ["OK", b"you"]


def test_users_are_apart(weir, redis):
    with redis.connect() as direct:
        no_key = direct.ask("AUTH ann word", "GET k")[1]
    assert no_key.startswith("NOPERM")
    with weir.connect() as joe, weir.connect() as ann, weir.connect() as nobody:
        assert joe.call("AUTH", "joe", "secret") == ann.call("AUTH", "ann", "word") == "OK"
        for _ in range(20):
            assert joe.ask("SET k v", "ACL WHOAMI") == ["OK", b"joe"]
            assert ann.ask("GET k", "ACL WHOAMI", "SET ann:k v") == [no_key, b"ann", "OK"]
            assert nobody.ask("GET k", "ACL WHOAMI") == [b"v", b"default"]
        assert ann.call("FLUSHALL").startswith("NOPERM")
        assert joe.call("FLUSHALL") == "OK"


def test_a_password_is_proven_by_redis_each_time(weir, redis):
    with weir.connect() as a, weir.connect() as b:
        assert a.ask("AUTH joe secret", "SET k v") == ["OK", "OK"]
        assert b.ask("AUTH joe wrong", "ACL WHOAMI") == [WRONGPASS, b"default"]
        assert b.ask("AUTH joe secre", "AUTH joe secret1", "ACL WHOAMI") == [WRONGPASS, WRONGPASS, b"default"]
        assert b.call("HELLO", 3, "AUTH", "joe", "wrong") == WRONGPASS
        b.send(encode("GET", "none"))
        assert b.line() == b"$-1", "HELLO failed: the protocol stays"
        assert b.ask("AUTH ann word", "AUTH joe wrong", "ACL WHOAMI") == ["OK", WRONGPASS, b"ann"]
        assert b.ask("AUTH none secret", "AUTH joe secret", "ACL WHOAMI") == [WRONGPASS, "OK", b"joe"]
        assert a.call("ACL", "WHOAMI") == b"joe"


def test_a_changed_password_leaves_those_who_are_in(weir, redis):
    with weir.connect() as a, weir.connect() as b:
        assert a.ask("AUTH joe secret", "SET k v") == ["OK", "OK"]
        redis.call("ACL", "SETUSER", "joe", "resetpass", ">other")
        assert a.ask("GET k", "ACL WHOAMI") == [b"v", b"joe"]
        assert b.ask("AUTH joe secret", "ACL WHOAMI") == [WRONGPASS, b"default"]
        assert b.ask("AUTH joe other", "ACL WHOAMI", "GET k") == ["OK", b"joe", b"v"]
        assert a.ask("GET k", "ACL WHOAMI") == [b"v", b"joe"]
        redis.call("CLIENT", "KILL", "USER", "joe")
        a.send(encode("GET", "k"))
        assert a.read_to_end() == b"", "its lane can no longer log in"


def test_a_deleted_user_is_out_and_nobody_else(weir, redis):
    with weir.connect() as joe, weir.connect() as busy, weir.connect() as ann, weir.connect() as nobody:
        assert joe.ask("AUTH joe secret", "SET k v") == ["OK", "OK"]
        assert busy.ask("AUTH joe secret", "WATCH k") == ["OK", "OK"]
        assert ann.ask("AUTH ann word", "SET ann:k v") == ["OK", "OK"]
        assert nobody.call("GET", "k") == b"v"
        redis.call("ACL", "DELUSER", "joe")
        assert joe.read_to_end() == busy.read_to_end() == b""
        assert ann.ask("GET ann:k", "ACL WHOAMI") == [b"v", b"ann"]
        assert nobody.call("GET", "k") == b"v"


def test_killing_a_shared_lane_closes_those_who_wait_on_it(shared, redis, watch):
    with shared.connect() as waiting, shared.connect() as idle:
        assert waiting.call("GET", "k") is None and idle.call("PING") == "PONG"
        watch.conn.call("CLIENT", "PAUSE", 60_000, "WRITE")
        waiting.send(encode("SET", "k", "v"))
        lane = wait_until(lambda: [e for e in watch.lanes() if e["cmd"] == "set" and "b" in e["flags"]], "it waits")
        assert watch.conn.call("CLIENT", "KILL", "ID", lane[0]["id"]) == 1
        assert waiting.read_to_end() == b""
        watch.conn.call("CLIENT", "UNPAUSE")
        assert idle.ask("GET k", "SET k w", "GET k") == [None, "OK", b"w"]


def test_losing_a_users_lane_again_and_again_is_nobody_elses_business(weir, redis):
    with weir.connect() as joe, weir.connect() as ann, weir.connect() as nobody:
        assert joe.ask("AUTH joe secret", "SET k v") == ann.ask("AUTH ann word", "SET ann:k v") == ["OK", "OK"]
        for _ in range(10):
            redis.call("CLIENT", "KILL", "USER", "joe")
            assert ann.call("GET", "ann:k") == b"v"
            with weir.connect() as late:
                assert nobody.call("GET", "k") == late.call("GET", "k") == b"v"


# ---- CLIENT ----


def test_a_client_finds_itself(weir):
    with weir.connect() as a, weir.connect() as b:
        a.call("CLIENT", "SETNAME", "me")
        number = a.call("CLIENT", "ID")
        assert a.ask("GET k", "CLIENT ID", "MULTI", "CLIENT ID", "EXEC") == [None, number, "OK", "QUEUED", [number]]
        for text in (a.call("CLIENT", "LIST"), a.call("CLIENT", "INFO"), b.call("CLIENT", "LIST", "ID", number)):
            line = next(line for line in text.splitlines() if line.startswith(b"id=%d " % number))
            assert b" name=me " in line and b" db=0 " in line
        assert a.call("CLIENT", "GETNAME") == b"me"
        if at_least(7, 0):
            assert a.call("CLIENT", "NO-EVICT", "ON") == "OK"
            assert b" flags=e " in a.call("CLIENT", "INFO")


def test_a_client_kills_itself(weir):
    with weir.connect() as a, weir.connect() as b:
        assert b.call("PING") == "PONG"
        a.send(encode("CLIENT", "KILL", "ID", a.call("CLIENT", "ID"), "SKIPME", "no"))
        assert a.read_to_end() in (b":1\r\n", b"")
        assert b.call("PING") == "PONG"


def test_a_client_unblocks_another(weir, redis):
    with weir.connect() as a, weir.connect() as b:
        number = a.call("CLIENT", "ID")
        a.send(pipeline("BLPOP none 0", "PING"))
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        assert b.call("CLIENT", "UNBLOCK", number, "ERROR") == 1
        assert a.read().startswith("UNBLOCKED")
        assert a.read() == "PONG"
        assert b.call("CLIENT", "UNBLOCK", number) == 0


@pytest.fixture
def paused(redis):
    """Redis delays writes meanwhile."""
    redis.call("CLIENT", "PAUSE", 60_000, "WRITE")
    yield redis
    redis.call("CLIENT", "UNPAUSE")


def test_unpause_overtakes_what_is_paused(weir, paused):
    with weir.connect() as a, weir.connect() as b, weir.connect() as c:
        assert c.call("GET", "k") is None
        for conn in (a, b):
            conn.send(pipeline("SET k v", "GET k"))
        wait_until(lambda: paused.waiting()[0] > 0, "they wait")
        assert c.ask("CLIENT UNPAUSE", "PING") == ["OK", "PONG"]
        assert [a.read(), a.read(), b.read(), b.read()] == ["OK", b"v"] * 2


def test_paused_writes_hold_up_no_later_reads(weir, paused):
    """A read that comes just after the lane fell silent may wait with the write. Later reads use
    another lane.
    """
    with weir.connect() as a:
        a.send(encode("SET", "k", "v"))
        wait_until(lambda: paused.waiting()[0] > 0, "it waits")
        wait_until(lambda: is_answered(weir), "a reader is answered")
        with weir.connect() as b:
            assert b.ask("GET k", "PING") == [None, "PONG"]


HELD_BACK = ["SET k v", "PUBLISH c m", "PFCOUNT h h2", "EVAL return{} 0", "MULTI|SET k v|EXEC"]


@pytest.mark.parametrize("longest", ["first", "last", "inside MULTI"])
def test_a_pause_that_weir_sees_holds_up_no_reads_at_all(longest, redis, farm, crowd):
    """Not even reads directly behind a write, and also not after a second CLIENT PAUSE."""
    weir = farm.weir(redis, workers=2)
    writers = [crowd(weir) for _ in range(4 * len(HELD_BACK))]
    readers = [crowd(weir) for _ in range(8)]
    for conn in writers + readers:
        assert conn.call("GET", "k") is None
    times = {"first": [60_000, 1], "last": [1, 60_000]}.get(longest, [])
    for time in times:
        assert readers[0].call("client", "pause", time, "Write") == "OK"
    if not times:
        queued = readers[0].ask("MULTI", "SET n 1", "CLIENT PAUSE 60000 WRITE", "EXEC")
        assert queued == ["OK", "QUEUED", "QUEUED", ["OK", "OK"]]
    try:
        for i, conn in enumerate(writers):
            conn.send(pipeline(*HELD_BACK[i % len(HELD_BACK)].split("|")))
            for reader in readers:
                reader.send(encode("GET", "k"))
            for reader in readers:
                assert reader.read() is None
        wait_until(lambda: redis.waiting()[0] == len(writers), "each of them waits by itself")
    finally:
        assert readers[0].call("CLIENT", "UNPAUSE") == "OK"
    for i, conn in enumerate(writers):
        last = [conn.read() for _ in HELD_BACK[i % len(HELD_BACK)].split("|")][-1]
        assert not isinstance(last, Error)


@pytest.mark.parametrize("end", ["by itself", "at once"])
def test_a_pause_that_is_over_takes_no_lanes(end, shared, watch, crowd):
    conns = [crowd(shared) for _ in range(20)]
    assert conns[0].call("CLIENT", "PAUSE", 60_000 if end == "at once" else 200, "WRITE") == "OK"
    if end == "at once":
        assert conns[0].call("CLIENT", "UNPAUSE") == "OK"
    assert conns[0].call("SET", "k", "v") == "OK"
    for conn in conns:
        conn.send(encode("SET", "k", "v"))
    for conn in conns:
        assert conn.read() == "OK"
    watch.few()


def test_a_pause_of_everything_takes_no_lanes(shared, watch, crowd):
    conns = [crowd(shared) for _ in range(20)]
    assert conns[0].call("CLIENT", "PAUSE", 300) == "OK"
    for conn in conns:
        conn.send(encode("SET", "k", "v"))
    for conn in conns:
        assert conn.read() == "OK"
    watch.few()


def test_who_may_not_pause_takes_nobody_off_a_lane(shared, watch, crowd):
    # before 7.0 rights cover whole commands only
    pause = "-client|pause" if at_least(7, 0) else "-client"
    assert watch.conn.call("ACL", "SETUSER", "low", "reset", "on", "nopass", "~*", "+@all", pause) == "OK"
    conns = [crowd(shared) for _ in range(20)]
    assert conns[0].call("AUTH", "low", "x") == "OK"
    assert isinstance(conns[0].call("CLIENT", "PAUSE", 60_000, "WRITE"), Error)
    for conn in conns[1:]:
        conn.send(encode("SET", "k", "v"))
    for conn in conns[1:]:
        assert conn.read() == "OK"
    watch.few()


def is_answered(weir):
    with weir.connect() as conn:
        conn.sock.settimeout(0.2)
        conn.send(encode("GET", "k"))
        try:
            return conn.read() is None
        except TimeoutError:
            return False


# ---- the same bytes as from Redis ----

SCRIPTS = {
    "SELECT queued": """
        a: MULTI | SELECT 3 | SET k three | EXEC | GET k
        b: GET k | SELECT 3 | GET k
        a: MULTI | SELECT 4 | DISCARD | GET k | RESET | GET k
    """,
    "a failed SELECT queued": "a: MULTI | SELECT 99 | SET k v | EXEC | GET k | SELECT 99 | GET k",
    "HELLO queued": """
        a: HSET h f v | MULTI | HELLO 2 | HGETALL h | EXEC | HGETALL h | GET none
        b: HELLO 3 AUTH joe secret | MULTI | HELLO 3 SETNAME me | EXEC | HGETALL h | ACL WHOAMI | CLIENT GETNAME
        b: RESET | ACL WHOAMI | CLIENT GETNAME | HGETALL h | HELLO 3 | HGETALL h
    """,
    "a session queued, and RESET": """
        a: AUTH joe secret | SELECT 3 | MULTI | SELECT 4 | CLIENT SETNAME me | SET k four | EXEC | GET k | RESET
        a: ACL WHOAMI | GET k | CLIENT GETNAME | SELECT 4 | GET k | AUTH ann word | ACL WHOAMI | RESET | ACL WHOAMI
    """,
    "SUBSCRIBE queued": """
        a: MULTI | SUBSCRIBE c d | PING | EXEC
        b: PUBLISH c m
        a: UNSUBSCRIBE c d | GET k | MULTI | GET k | EXEC
        b: PUBLISH c m
    """,
    "SUBSCRIBE queued, in RESP3": """
        a: HELLO 3 | MULTI | SUBSCRIBE c d | PING | EXEC | GET k
        b: PUBLISH c m
        a: UNSUBSCRIBE | GET k | MULTI | GET k | EXEC | RESET | GET k
        b: PUBLISH c m
    """,
    "RESET": """
        a: SELECT 4 | SET k four | HELLO 3 AUTH joe secret SETNAME me | CLIENT TRACKING ON | GET k
        a: RESET | GET k | CLIENT GETNAME | ACL WHOAMI | HGETALL none | CLIENT TRACKINGINFO | HELLO
    """,
    "RESET while silent": "a: CLIENT REPLY OFF | SELECT 2 | RESET\na: PING | GET k",
    "silent AUTH": """
        a: CLIENT REPLY OFF | AUTH joe secret | SELECT 3 | SET k v | CLIENT SETNAME me | CLIENT REPLY ON
        a: ACL WHOAMI | GET k | CLIENT REPLY SKIP | AUTH ann wrong | ACL WHOAMI
        a: CLIENT REPLY SKIP | AUTH ann word | ACL WHOAMI | CLIENT GETNAME
        a: CLIENT REPLY OFF | HELLO 3 AUTH joe secret | CLIENT REPLY ON | GET none | ACL WHOAMI
    """,
    "silent transactions": """
        a: CLIENT REPLY OFF | MULTI | SET k 1 | EXEC | WATCH k | UNWATCH | CLIENT REPLY ON | GET k
        a: CLIENT REPLY SKIP | MULTI | SET k 2 | EXEC | MULTI | CLIENT REPLY SKIP | SET k 3 | EXEC | GET k
        a: CLIENT REPLY OFF | MULTI | FOO | EXEC | DISCARD | CLIENT REPLY ON | GET k
    """,
    "silent subscriptions": """
        a: CLIENT REPLY OFF | SUBSCRIBE c d | CLIENT REPLY ON
        b: PUBLISH c m
        a: CLIENT REPLY SKIP | UNSUBSCRIBE c | UNSUBSCRIBE d | GET k
    """,
    "silent scripts and waits": """
        a: CLIENT REPLY OFF | EVAL 'return redis.call("SET", "k", 1)' 0 | FOO | WAIT 0 0
        a: CLIENT REPLY ON | GET k
        a: CLIENT REPLY SKIP | EVAL 'return 1' 0 | GET k | CLIENT REPLY SKIP | WAIT 0 0 | GET k
    """,
    "silence is one's own": """
        a: CLIENT REPLY OFF | GET k
        b: GET k | CLIENT REPLY SKIP | GET k | GET k
        a: CLIENT REPLY ON | GET k
    """,
    "tracking in the middle of things": """
        a: HELLO 3 | MSET x 1 y 1 z 1 | CLIENT TRACKING ON | MGET x y z
        b: MSET x 2 y 2
        a: GET x | MULTI | GET y | EXEC
        b: SET y 3 | DEL z | FLUSHDB
        a: GET z | CLIENT TRACKING OFF | PING
        b: SET x 4
        a: GET x | CLIENT TRACKING ON BCAST | CLIENT TRACKING OFF | CLIENT TRACKINGINFO
        b: SET x 5
    """,
    "tracking while subscribed": """
        a: HELLO 3 | SUBSCRIBE c | CLIENT TRACKING ON | SET k 1 | GET k
        b: SET k 2 | PUBLISH c m
        a: UNSUBSCRIBE | GET k
        b: SET k 3
        a: CLIENT TRACKING OFF | PING
        b: SET k 4
    """,
    "tracking for another connection": """
        a: SUBSCRIBE __redis__:invalidate
        b: CLIENT TRACKING ON BCAST REDIRECT 999999999 | CLIENT TRACKING ON | GET k | CLIENT TRACKING OFF
        a: UNSUBSCRIBE | GET k
    """,
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_same_as_redis(script, weir, redis):
    same_as_redis(weir, redis, script)


@pytest.mark.parametrize("proto", [2, 3])
def test_invalidations_reach_the_connection_they_are_redirected_to(proto, weir):
    with weir.connect() as target, weir.connect() as reader, weir.connect() as writer:
        target.call("HELLO", proto)
        number = target.call("CLIENT", "ID")
        if proto == 2:
            target.call("SUBSCRIBE", "__redis__:invalidate")
        assert reader.call("CLIENT", "TRACKING", "ON", "REDIRECT", number) == "OK"
        reader.call("GET", "k")
        writer.call("SET", "k", "v")
        message = [b"message", b"__redis__:invalidate", [b"k"]]
        assert target.read() == (message if proto == 2 else Push([b"invalidate", [b"k"]]))


def test_monitor_ends_with_reset(shared, watch, crowd):
    for _ in range(10):
        conn = crowd(shared)
        assert conn.call("MONITOR") == "OK"
        conn.send(encode("RESET"))
        while conn.read() != "RESET":
            pass
        assert conn.ask("GET k", "PING") == [None, "PONG"]
    wait_until(lambda: len(watch.lanes()) <= 12, "none of their lanes is kept")


# ---- the identity that limits use ----


@pytest.mark.parametrize("lanes", LANES)
def test_identity_follows_auth_wherever_it_stands(lanes, redis, farm):
    sections = "".join(f"[policy {user}]\nmatch = user:{user}\nwrite = 1/h\n" for user in ("joe", "ann"))
    sections += "[policy default]\nwrite = 1/h\n"
    weir = farm.weir(redis, workers=1, lanes=lanes, sections=sections)

    def binds(conn):
        """Returns the policy that refuses this connection's writes."""
        replies = conn.ask("DEL x", "DEL x")
        return re.fullmatch(r"THROTTLED retry_in_ms=\d+ limit=(\w+)/write", replies[1])[1]

    with weir.connect() as a, weir.connect() as b, weir.connect() as c:
        assert binds(a) == "default"
        assert "EXECABORT" in a.ask("MULTI", "AUTH joe secret", "EXEC")[2]
        assert binds(a) == "default"
        assert a.ask("MULTI", "CLIENT SETNAME me", "EXEC", "AUTH joe secret")[-1] == "OK"
        assert binds(a) == "joe"
        assert a.call("RESET") == "RESET" and binds(a) == "default"

        b.send(pipeline("CLIENT REPLY OFF", "AUTH ann word", "DEL x", "DEL x", "AUTH joe wrong", "CLIENT REPLY ON"))
        assert b.read() == "OK", "refusals are silent too"
        assert binds(b) == "ann"
        b.send(pipeline("CLIENT REPLY SKIP", "DEL x", "PING"))
        assert b.read() == "PONG"

        assert c.call("HELLO", 3, "AUTH", "ann", "word")[b"proto"] == 3
        assert binds(c) == "ann"


# ---- WAIT, replicas ----


@pytest.fixture(scope="module")
def replicated(shared_farm):
    redis = shared_farm.redis("--repl-diskless-sync-delay", "0", "--repl-timeout", "600")
    replica = shared_farm.redis("--replicaof", "127.0.0.1", str(redis.port))
    wait_until(lambda: replica.info("master_link_status") == "up", "the replica is in step", 20)
    return redis, replica, {lanes: shared_farm.weir(redis, workers=1, lanes=lanes) for lanes in LANES}


WRITES = {
    "SET": ["SET {0} v"],
    "another database": ["SELECT 5", "SET {0} v"],
    "EXEC": ["MULTI", "SET {0} v", "EXEC"],
    "EVAL": [("EVAL", "return redis.call('SET', KEYS[1], 'v')", 1, "{0}")],
    "private, then shared": ["BLPOP none 0.01", "SET {0} v", "GET {0}"],
    "shared, then private": ["SET {0} v", "WATCH {0}"],
}


@pytest.mark.parametrize("writes", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize("lanes", LANES)
def test_wait_never_counts_a_replica_that_has_not_got_it(lanes, writes, replicated, crowd):
    redis, replica, weirs = replicated
    clients = [crowd(weirs[lanes]) for _ in range(20)]

    def write(i):
        return [tuple(str(w).format(i) for w in (c.split() if isinstance(c, str) else c)) for c in writes]

    replica.signal(signal.SIGSTOP)
    try:
        for i, client in enumerate(clients):
            if i % 2:
                client.send(pipeline(*write(i), "WAIT 1 200"))
            else:
                client.ask(*write(i))
                client.send(encode("WAIT", 1, 200))
        for i, client in enumerate(clients):
            replies = [client.read() for _ in range(len(writes) + 1 if i % 2 else 1)]
            assert replies[-1] == 0, replies
    finally:
        replica.signal(signal.SIGCONT)
    for i, client in enumerate(clients):
        client.send(pipeline(*write(i), "WAIT 1 10000"))
    for client in clients:
        assert [client.read() for _ in range(len(writes) + 1)][-1] == 1


@pytest.mark.parametrize("lanes", LANES)
def test_wait_speaks_for_all_writes_of_a_pipeline(lanes, replicated):
    redis, replica, weirs = replicated
    with weirs[lanes].connect() as a:
        assert a.ask("SET k v", "WAIT 1 10000") == ["OK", 1]
        replica.signal(signal.SIGSTOP)
        try:
            assert a.ask("SET k w", "WAIT 1 50", "GET k", "SET k x", "WAIT 1 50") == ["OK", 0, b"w", "OK", 0]
        finally:
            replica.signal(signal.SIGCONT)
        assert a.call("WAIT", 1, 10_000) == 1


@pytest.mark.parametrize("diskless", ["yes", "no"])
@pytest.mark.parametrize("lanes", LANES)
def test_a_replica_attaches_through_weir(lanes, diskless, farm):
    redis = farm.redis(
        *("--repl-diskless-sync", diskless, "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")
    )
    weir = farm.weir(redis, workers=1, lanes=lanes)
    with weir.connect() as a:
        a.send(b"".join(encode("SET", i, "x" * 1000) for i in range(5000)))
        assert {a.read() for _ in range(5000)} == {"OK"}
        replica = farm.redis("--replicaof", "127.0.0.1", str(weir.address[1]))
        wait_until(lambda: replica.info("master_link_status") == "up", "the replica is in step", 20)
        assert replica.call("DBSIZE") == 5000
        assert redis.info("connected_slaves") == "1"
        for round in range(3):
            assert a.call("SET", "round", round) == "OK"
            wait_until(lambda: replica.call("GET", "round") == b"%d" % round, "writes arrive")
            beat = int(replica.info("slave_repl_offset"))
            wait_until(lambda: int(replica.info("slave_repl_offset")) > beat, "the master's heartbeat arrives")
        assert a.ask("SET last 1", "WAIT 1 10000") == ["OK", 1], "the replica's acknowledgements arrive"
        assert redis.info("sync_full") == "1" and redis.info("sync_partial_ok") == "0"
        wait_until(lambda: replica.call("DEBUG", "DIGEST") == redis.call("DEBUG", "DIGEST"), "both have the same data")


# ---- a busy server, and a server that stops ----


@pytest.fixture
def busy(farm):
    def start(lanes):
        redis = farm.redis("--lua-time-limit", "1")
        return redis, farm.weir(redis, workers=1, lanes=lanes)

    return start


FUNCTION = "#!lua name=lib\nredis.register_function('hang', function() while true do end end)"


@pytest.mark.parametrize("kind", ["SCRIPT", "FUNCTION"])
@pytest.mark.parametrize("lanes", LANES)
def test_others_are_told_busy_and_can_end_it(lanes, kind, busy):
    if kind == "FUNCTION" and not at_least(7, 0):
        pytest.skip("this redis-server has no functions")
    redis, weir = busy(lanes)
    with weir.connect() as slow, weir.connect() as other, weir.connect() as third:
        assert other.call("SET", "k", "v") == "OK" and third.call("PING") == "PONG"
        slow.call("FUNCTION", "LOAD", FUNCTION)
        slow.send(encode("EVAL", "while true do end", 0) if kind == "SCRIPT" else encode("FCALL", "hang", 0))
        slow.send(encode("ECHO", "after"))
        wait_until(lambda: third.call("PING") != "PONG", "Redis is busy")
        is_busy = redis.call("PING")
        assert re.fullmatch(rf"BUSY \w+ is busy running a script. .* {kind} KILL or SHUTDOWN NOSAVE.", is_busy)
        assert third.call("PING") == is_busy
        assert third.ask("GET k", "MULTI", "SELECT 1")[0] == is_busy
        with weir.connect() as late:
            assert late.call("GET", "k") == is_busy
        assert other.call(kind, "KILL") == "OK"
        assert "killed by user" in slow.read()
        assert slow.read() == b"after"
        assert other.call("GET", "k") == b"v"
        assert third.call("DISCARD") in ("OK", Error("ERR DISCARD without MULTI"))


@pytest.mark.parametrize("lanes", LANES)
def test_shutdown_ends_redis_even_when_it_is_busy(lanes, busy):
    redis, weir = busy(lanes)
    with weir.connect() as slow, weir.connect() as other:
        other.call("SET", "k", "v")
        slow.send(encode("EVAL", "redis.call('SET', 'k', 'v') while true do end", 0))
        wait_until(lambda: str(other.call("GET", "k")).startswith("BUSY"), "Redis is busy")
        assert other.call("SCRIPT", "KILL").startswith("UNKILLABLE")
        other.send(encode("SHUTDOWN", "NOSAVE"))
        assert other.read_to_end() == slow.read_to_end() == b""
        assert redis.child.wait(10) == 0


@pytest.mark.parametrize("lanes", LANES)
def test_shutdown_closes_who_asked_and_others_go_on(lanes, farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, lanes=lanes)
    with weir.connect() as a, weir.connect() as idle:
        assert a.call("SHUTDOWN", "BAD") == Error("ERR syntax error")
        assert idle.call("PING") == "PONG"
        a.send(encode("SHUTDOWN", "NOSAVE") + encode("PING"))
        assert a.read_to_end() == b""
        assert redis.child.wait(10) == 0
        redis.wait()
        redis.start()

        def works():
            try:
                with Conn(weir.address) as conn:
                    return conn.call("SET", "k", "v") == "OK"
            except Closed:
                return False

        wait_until(works, "weir finds Redis again")


@pytest.mark.parametrize("before", [["MULTI", "EXEC"], ["EVAL 'return 1' 0"], ["MULTI", "PING", "EXEC", "GET k"]])
def test_after_reset_it_has_no_name(farm, before):
    weir = farm.weir(farm.redis(), workers=1)
    with weir.connect() as a:
        assert a.ask("CLIENT SETNAME mine", *before)[0] == "OK"
        assert a.ask("RESET", "MULTI", "CLIENT GETNAME", "EXEC")[-1] == [None]
        assert b" name= " in a.call("CLIENT", "INFO")
