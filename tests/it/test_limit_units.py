"""Units of limits besides commands: cost, bytes, calls in flight, connections, failed logins; and
the scope of a limit (`per`).

Where a count matters rates are per day or a thousandth of that, so nothing is refilled, however
slow the test is.
"""

import socket
import time

import pytest
from kit.crowd import RST
from kit.harness import MODE_IDS, MODES, wait_until
from kit.limits import OPERATOR, TOO_MANY, limit_of, login, order, passed, plain, refusal, remaining, tallies
from kit.resp import Error, encode, pipeline
from kit.server import at_least
from test_identity import connect_from

MIB = 1 << 20


@pytest.fixture(params=MODES, ids=MODE_IDS)
def limited(request, farm, redis):
    """Returns a function that starts a weir with the given sections, in every mode."""
    workers, lanes = request.param
    return lambda sections, **settings: farm.weir(redis, sections=sections, workers=workers, lanes=lanes, **settings)


def abort(conn):
    """Closes without QUIT, with a reset."""
    conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)
    conn.close()


def try_to(connect, n):
    """Opens n clients. Returns them with the accepted ones first, and how many those are: two
    workers may accept out of order.
    """
    conns = [connect() for _ in range(n)]
    welcome = {conn: first_reply(conn) != TOO_MANY for conn in conns}
    return sorted(conns, key=lambda conn: not welcome[conn]), sum(welcome.values())


def first_reply(conn):
    """Sends PING. Returns PONG, or the reason why the client is closed."""
    conn.send(encode("PING"))
    reply = conn.read()
    if reply != "PONG":
        assert conn.read_to_end() == b""
    return reply


# ---- cost ----

COSTS = [
    ("get = 3", "GET k", 3),
    ("get = 3", "SET k v", 1),
    ("mget = 1 per key", "MGET a b c d", 4),
    ("mget = 2 per key", "mGeT a b c", 6),
    ("mset = 1 per key", "MSET a 1 b 2 c 3", 3),
    ("del = 1 per key", "DEL a b a", 3),
    ("eval = 5", "EVAL 1 2 a b", 5),
    ("eval = 5 per key", "EVAL 1 3 a b c x y", 15),
    ("eval = 5 per key", "EVAL 1 0 x y", 5),
    ("@keyspace = 7", "KEYS none*", 7),
    ("read = 2, get = 9", "GET k", 9),
    ("zunionstore = 1 per key", "ZUNIONSTORE d 2 a b", 3),
    ("sinter = 1 per key", "SINTER a b c", 3),
    ("xread = 1 per key", "XREAD COUNT 1 STREAMS a b 0 0", 2),
    ("config|get = 4", "CONFIG GET save", 4),
    ("config|get = 4", "CONFIG RESETSTAT", 1),
    ("object|encoding = 1 per key", "OBJECT ENCODING k", 1),
    ("ping = 50", "PING", 0),  # of class control: no limit on cost applies
]


@pytest.mark.parametrize("costs, command, cost", COSTS, ids=[f"{c[0]}: {c[1]}" for c in COSTS])
def test_what_a_command_costs(costs, command, cost, farm, redis):
    lines = costs.replace(", ", "\n")
    weir = farm.weir(redis, workers=1, sections=f"[cost]\n{lines}\n[policy default]\ncost = 1000/d\n")
    with weir.connect() as a:
        assert remaining(a) == 1000
        a.call(*command.split())
        assert remaining(a) == 1000 - cost
        a.send(command.encode() + b"\r\n")  # inline
        a.read()
        assert remaining(a) == 1000 - 2 * cost
        explained = a.call("LIMIT", "EXPLAIN", *command.split())
        explained = dict(zip(explained[::2], explained[1::2]))
        assert explained[b"cost"] == (cost or 50)
        assert remaining(a) == 1000 - 2 * cost


def test_costs_add_up(limited):
    weir = limited("[cost]\nmget = 1 per key\nkeys = 100\n[policy default]\ncost = 10/d\n")
    with weir.connect() as a:
        replies = a.ask("MGET a b c", "MGET a b c d", "MGET a b c d", "MGET a b c", "GET a", "KEYS *")
        assert [limit_of(reply) for reply in replies] == [None, None, "default/cost", None, *["default/cost"] * 2]
        assert refusal(replies[-1]) == ("default/cost", -1), "more than the burst never passes"
        assert 0 < refusal(replies[2])[1] < 86_400_000


def test_a_large_request_costs_its_keys(limited):
    weir = limited("[cost]\nmset = 1 per key\n[policy default]\ncost = 5/d\n")
    with weir.connect() as a:
        assert a.call("MSET", "a", b"x" * MIB, "b", b"y" * 100, "c", b"z") == "OK"
        assert limit_of(a.call("MSET", "d", b"x" * MIB, "e", "", "f", "")) == "default/cost"
        assert a.call("SET", "g", b"x" * MIB) == "OK"
        assert a.call("EXISTS", *"abcdefg") == 4


LONG_SCRIPT = b"--" + b"x" * MIB + b"\nreturn #KEYS"


def test_what_cannot_be_seen_costs_the_most_it_could(limited):
    """The number of keys comes after a script that is not buffered: all later arguments may be
    keys.
    """
    weir = limited("[cost]\neval = 10 per key\n[policy default]\ncost = 100/d\n" + OPERATOR)

    def costs(*args):
        before = tallies(weir)[0][1]
        assert a.call("EVAL", *args) == args[1]
        return tallies(weir)[0][1] - before

    with weir.connect() as a:
        assert costs("return #KEYS", 2, "a", "b", "x") == 20
        assert costs(LONG_SCRIPT, 2, "a", "b") == 20
        assert costs(LONG_SCRIPT, 1, "a", "x", "y") == 30
        assert costs(LONG_SCRIPT, 0) == 10
        assert limit_of(a.call("EVAL", LONG_SCRIPT, 3, "a", "b", "c")) == "default/cost"


@pytest.mark.skipif(not at_least(7, 0), reason="this redis-server has no functions")
def test_functions_and_scripts_have_their_costs(limited, redis):
    redis.call("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 1 end)")
    weir = limited("[cost]\nfcall = 2 per key\neval_ro = 4\nevalsha = 4\n[policy default]\ncost = 16/d\n")
    sha = redis.call("SCRIPT", "LOAD", "return 1")
    with weir.connect() as a:
        replies = a.ask("FCALL f 2 a b", f"EVALSHA {sha.decode()} 0", "EVAL_RO 1 0", "FCALL f 3 a b c", "FCALL f 2 a b")
        assert [limit_of(reply) for reply in replies] == [None, None, None, "default/cost", None]


# ---- bytes ----

STATUS_BYTES = len(encode("LIMIT", "STATUS"))


def test_bytes_in_are_counted_exactly(limited):
    weir = limited("[policy default]\nbytes-in = 100mb/1000d\n")
    with weir.connect() as a:
        for replies, data in (
            (1, encode("SET", "k", "v")),
            (1, encode("SET", "k", b"x" * 10_000)),
            (1, encode("SET", "k", b"x" * 3 * MIB)),
            (1, encode("PING")),
            (1, b"SET k 'a b'\r\n"),
            (500, pipeline(*["SET k v"] * 500)),
            (1, encode("EVAL", "return 1", 0)),
            (3, pipeline("MULTI", "SET k v", "EXEC")),
            (1, encode("BLPOP", "none", "0.01")),
        ):
            before = remaining(a)
            a.send(data)
            for _ in range(replies):
                a.read()
            # the first question was counted when it was answered
            used = before - remaining(a) - STATUS_BYTES
            assert abs(used - len(data)) <= 2, data[:40]


def test_bytes_in_refuse_what_follows(limited):
    weir = limited("[policy default]\nbytes-in = 1000/1000d\n")
    with weir.connect() as a, weir.connect() as b:
        request = encode("SET", "k", b"x" * 600)
        a.send(request * 2)
        assert [a.read(), a.read()] == ["OK", "OK"], "one byte still fitted"
        limit, retry = refusal(b.call("GET", "k"))
        assert limit == "default/bytes-in"
        debt_ms = (2 * len(request) - 1000) * 86_400_000
        assert debt_ms * 0.99 < retry < debt_ms * 1.1
        for _ in range(2):  # a refused request is not counted, however long it is
            assert limit_of(a.call("SET", "k", b"x" * 2 * MIB)) == "default/bytes-in"
        assert refusal(b.call("GET", "k"))[1] < debt_ms * 1.3


def test_bytes_out_are_counted_exactly(limited):
    weir = limited("[policy default]\nbytes-out = 100mb/1000d\n")
    with weir.connect() as a:
        a.call("SET", "big", b"x" * 3 * MIB)
        a.call("RPUSH", "list", *range(1000))
        for command in ("GET big", "GET none", "LRANGE list 0 -1", "PING", "EVAL return{1,2,3} 0", "BLPOP none 0.01"):
            before = remaining(a)
            a.send(pipeline(command, "ECHO end"))
            data = bytearray()
            while not data.endswith(b"$3\r\nend\r\n"):
                data += a.sock.recv(1 << 18)
            assert abs(before - remaining(a) - len(data)) <= 2, command


def test_bytes_out_refuse_what_follows(limited):
    weir = limited("[policy default]\nbytes-out = 1mb/1000d\n")
    with weir.connect() as a, weir.connect() as b:
        a.call("SET", "k", b"x" * (MIB - 100))
        assert len(a.call("GET", "k")) == MIB - 100
        assert len(a.call("GET", "k")) == MIB - 100, "one byte still fitted"
        assert limit_of(a.call("GET", "k")) == "default/bytes-out"
        assert limit_of(b.call("GET", "none")) == "default/bytes-out"


def test_what_is_not_heard_is_bytes_out(limited):
    weir = limited("[policy default]\nbytes-out = 10mb/1000d\n")
    with weir.connect() as a:
        a.call("SET", "k", b"x" * 100_000)
        before = remaining(a)
        a.send(pipeline("CLIENT REPLY OFF", *["GET k"] * 20, "CLIENT REPLY ON"))
        assert a.read() == "OK"
        assert before - remaining(a) >= 20 * 100_000


@pytest.mark.parametrize("protocol", [2, 3])
def test_messages_are_bytes_out(protocol, limited, redis):
    weir = limited("[policy default]\nbytes-out = 100kb/1000d per connection\n" + OPERATOR)
    with weir.connect() as a, weir.connect() as b:
        a.call("HELLO", protocol)
        a.call("SUBSCRIBE", "c")
        for _ in range(10):
            redis.call("PUBLISH", "c", b"x" * 10_000)
            assert len(a.read()[2]) == 10_000
        if protocol == 3:
            assert remaining(a) < 3_000
            redis.call("PUBLISH", "c", b"x" * 10_000)
            a.read()
            assert limit_of(a.call("GET", "k")) == "default/bytes-out"
        assert b.call("GET", "k") is None
        assert tallies(weir)[0][1] > 100_000


@pytest.mark.parametrize("over, workers", [("refuse", 1), ("delay 5s", 1), ("refuse", 2)])
def test_megabytes_at_a_rate(over, workers, farm, redis):
    """10 MiB/s within 5 %, in values of 1 MiB, between two moments when the burst is used up."""
    seconds = 5.0 if workers == 1 else 3.0
    limit = f"bytes-out = 10mb/s burst 5mb over {over}"
    weir = farm.weir(redis, workers=workers, sections=f"[policy default]\n{limit}\n" + OPERATOR)
    redis.call("SET", "k", b"x" * MIB)
    conns = [weir.connect() for _ in range(workers)]
    moments, got = [], 0
    for i in range(1000):
        conn = conns[i % workers]
        if over != "refuse" and plain(order(weir, "STATUS", "FOR", "ip:127.0.0.1"))["limits"][0]["remaining"] == 0:
            moments.append((time.monotonic(), got))
        conn.send(encode("GET", "k"))
        line = conn.line()
        if line.startswith(b"-"):
            moments.append((time.monotonic(), got))
            time.sleep(refusal(Error(line[1:].decode()))[1] / 1000)
        else:
            got += len(line) + 2 + len(conn.read_bytes(MIB + 2))
        if moments and moments[-1][0] - moments[0][0] > seconds:
            break
    for conn in conns:
        conn.close()
    (start, before), (end, after) = moments[0], moments[-1]
    rate = (after - before) / (end - start) / MIB
    assert 9.5 <= rate <= 10.5, f"{rate:.2f} MiB/s"


def test_a_large_request_waits_for_bytes_in(limited, redis):
    """Debt of one client delays requests of another client of the same subject, whole or streamed.
    """
    weir = limited("[policy default]\nbytes-in = 10mb/s burst 1mb over delay 5s\n")
    value = b"x" * 3 * MIB
    with weir.connect() as a, weir.connect() as b:
        start = time.monotonic()
        assert a.call("SET", "a", value) == "OK"  # 2 MiB of debt
        assert b.call("SET", "b", value) == "OK"  # after 0.2 s
        assert time.monotonic() - start >= 0.19
        assert a.call("SET", "c", "x") == "OK"  # and 0.3 s more
        assert time.monotonic() - start >= 0.49
        assert redis.call("MGET", "a", "b", "c") == [value, value, b"x"]


# ---- calls in flight ----


class Pause:
    """Redis delays writes, scripts too, between on and off; weir does not know."""

    def __init__(self, conn):
        self.conn = conn

    def on(self):
        self.conn.call("CLIENT", "PAUSE", 60_000, "WRITE")

    def off(self):
        self.conn.call("CLIENT", "UNPAUSE")


@pytest.fixture
def pause(redis):
    with redis.connect() as conn:
        yield Pause(conn)
        conn.call("CLIENT", "UNPAUSE")


def test_calls_in_flight(limited, pause):
    weir = limited("[policy default]\ninflight = 3\n")
    pause.on()
    conns = [weir.connect() for _ in range(6)]
    for n, conn in enumerate(conns[:3]):
        conn.send(encode("SET", "k", "v"))
        wait_until(lambda n=n: remaining(conns[5]) == 2 - n, "it is in flight")
    assert refusal(conns[3].call("GET", "k")) == ("default/inflight", 0)
    assert refusal(conns[4].call("SET", "k", b"x" * MIB)) == ("default/inflight", 0)
    pause.off()
    assert [conn.read() for conn in conns[:3]] == ["OK"] * 3
    wait_until(lambda: remaining(conns[5]) == 3, "all is answered")
    for conn in conns:
        assert conn.call("SET", "k", b"x" * MIB) == "OK"
        assert conn.ask("EVAL 1 0", "MULTI", "GET k", "EXEC", "GET k")[4] == b"x" * MIB
        assert remaining(conn) == 3
        conn.close()


def test_a_pipeline_in_flight(limited, pause):
    weir = limited("[policy default]\ninflight = 3 per connection\n" + OPERATOR)
    pause.on()
    with weir.connect() as a, weir.connect() as b:
        a.send(pipeline(*["SET k v"] * 5, "PING"))
        b.send(pipeline(*["SET k v"] * 2))
        wait_until(lambda: sum(tallies(weir)[0][1:]) == 7, "all have been asked")
        pause.off()
        assert [limit_of(a.read()) for _ in range(6)] == [None] * 3 + ["default/inflight"] * 2 + [None]
        assert [b.read(), b.read()] == ["OK", "OK"]
        assert passed(a.ask(*["GET k"] * 3)) == 3


def test_reading_a_stream_is_in_flight_unless_it_blocks(limited, redis):
    weir = limited("[policy default]\ninflight = 2\n" + OPERATOR)
    redis.call("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
    waiting = [
        ("XREAD", "BLOCK", 0, "STREAMS", "s", "$"),
        ("XREAD", "COUNT", 1, "BLOCK", 0, "STREAMS", "s", "$"),
        ("XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "s", ">"),
    ]
    conns = [weir.connect() for _ in waiting]
    for conn, command in zip(conns, waiting):
        conn.send(encode(*command))
    wait_until(lambda: redis.waiting()[0] == 3, "they block")
    with weir.connect() as a:
        assert remaining(a) == 2
        a.send(pipeline("XREAD STREAMS s 0", "XREAD COUNT 1 STREAMS s 0", "XREADGROUP GROUP g c STREAMS s 0", "PING"))
        replies = [a.read() for _ in range(4)]
        assert [limit_of(reply) for reply in replies] == [None, None, "default/inflight", None]
        assert a.call("XREAD", "STREAMS", "s", 0) is None
        assert remaining(a) == 2
    redis.call("XADD", "s", "*", "f", "v")
    for conn in conns:
        assert conn.read()[0][0] == b"s"
        conn.close()


def test_calls_in_flight_of_clients_that_leave(limited, pause):
    weir = limited("[policy default]\ninflight = 3\n")
    pause.on()
    with weir.connect() as watcher:
        conns = [weir.connect() for _ in range(3)]
        for conn, command in zip(conns, ("INCR k", "EVAL 1 0", "SET k v")):
            conn.send(pipeline(command))
        wait_until(lambda: remaining(watcher) == 0, "all are in flight")
        abort(conns[0])
        abort(conns[1])
        conns[2].close()
        pause.off()
        wait_until(lambda: remaining(watcher) == 3, "all have been answered")
        assert watcher.call("GET", "none") is None


def test_calls_in_flight_when_redis_dies(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=2, sections="[policy default]\ninflight = 3\n")
    with weir.connect() as watcher:
        for _ in range(3):
            redis.call("CLIENT", "PAUSE", 60_000, "WRITE")
            conns = [weir.connect() for _ in range(3)]
            for conn, command in zip(conns, ("INCR k", "EVAL 1 0", "SET k v")):
                conn.send(pipeline(command))
            wait_until(lambda: remaining(watcher) == 0, "all are in flight")
            redis.kill()
            wait_until(lambda: remaining(watcher) == 3, "none is")
            redis.start()
            wait_until(weir.serves, "weir serves again")


def test_what_blocks_is_not_in_flight(limited, redis):
    weir = limited("[policy default]\ninflight = 1\n")
    conns = [weir.connect() for _ in range(4)]
    for conn, command in zip(conns, ("BLPOP l 0", "BRPOP l 0", "BZPOPMIN z 0", "XREAD BLOCK 0 STREAMS s $")):
        conn.send(pipeline(command))
    wait_until(lambda: redis.waiting()[0] == 4, "all block")
    with weir.connect() as a:
        assert remaining(a) == 1
        assert a.call("GET", "k") is None
    for conn in conns:
        conn.close()


def test_subscribing_is_in_flight_until_it_is_confirmed(limited):
    weir = limited("[policy default]\ninflight = 2\n")
    with weir.connect() as a, weir.connect() as b:
        for command in ("SUBSCRIBE a b c", "PSUBSCRIBE p", "UNSUBSCRIBE a b", "SSUBSCRIBE s"):
            a.call(*command.split())
            wait_until(lambda: remaining(b) == 2, command)
        assert b.ask("MULTI", "SUBSCRIBE x", "EXEC")[:2] == ["OK", "QUEUED"]
        with weir.connect() as c:
            wait_until(lambda: remaining(c) == 2, "EXEC is confirmed")


# ---- connections ----


def test_connections_at_accept(limited):
    weir = limited("[policy default]\nconnections = 3\n")
    conns, welcome = try_to(weir.connect, 5)
    assert welcome == 3
    conns[0].close()
    abort(conns[1])

    def let_in():
        conn = weir.connect()
        return conn if first_reply(conn) == "PONG" else conn.close()

    again = [wait_until(let_in, "a place is free") for _ in range(2)]
    assert let_in() is None
    for conn in conns + again:
        conn.close()


def test_too_many_connections_are_told_at_their_first_command(limited):
    weir = limited("[policy default]\nconnections = 1\n")
    with weir.connect() as a:
        a.call("PING")
        with weir.connect() as b:
            assert b.call("PING") == TOO_MANY
            assert b.read_to_end() == b""


@pytest.mark.parametrize("auth", ["AUTH alice pw", "HELLO 3 AUTH alice pw", "HELLO 2 AUTH alice pw SETNAME me"])
def test_connections_of_a_user(auth, limited, users):
    weir = limited("[policy users]\nmatch = user:*\nconnections = 2\n")
    conns = [weir.connect() for _ in range(3)]
    words = auth.split()
    assert all(not isinstance(conn.call(*words), Error) for conn in conns[:2])
    assert conns[2].call(*words) == TOO_MANY
    assert conns[2].read_to_end() == b""
    with login(weir, "bob") as bob:
        assert bob.call("GET", "k") is None
    with weir.connect() as stranger:
        assert stranger.ask("PING", "AUTH alice wrong", "PING")[::2] == ["PONG", "PONG"]
    assert conns[0].call(*words) != TOO_MANY, "the same again"
    conns[1].call("AUTH", "bob", "pw")
    with login(weir, "alice"):
        pass
    for conn in conns:
        conn.close()


def test_one_connection_too_many_in_a_pipeline(limited, users, redis):
    weir = limited("[policy users]\nmatch = user:*\nconnections = 1\n")
    with login(weir, "alice"), weir.connect() as a:
        a.send(pipeline("SET a 1", "ECHO x", "AUTH alice pw", "SET b 1"))
        assert [a.read() for _ in range(3)] == ["OK", b"x", TOO_MANY]
        assert a.read_to_end() == b""
        assert redis.call("EXISTS", "a", "b") == 1


def test_a_change_of_identity_moves_the_connection(limited, users):
    weir = limited("[policy users]\nmatch = user:*\nconnections = 1\n[policy default]\nconnections = 1\n")
    with weir.connect() as a:
        assert a.call("AUTH", "alice", "pw") == "OK"
        with weir.connect() as b:
            assert b.call("AUTH", "bob", "wrong").startswith("WRONGPASS")
            assert b.call("PING") == "PONG"
            with weir.connect() as c:
                assert c.call("PING") == TOO_MANY
            assert b.call("AUTH", "bob", "pw") == "OK"
            with weir.connect() as c:
                assert c.call("PING") == "PONG"
                assert a.ask("RESET", "PING") == ["RESET", TOO_MANY], "an address again, and one too many"
                assert a.read_to_end() == b""
            wait_until(lambda: is_let_in(weir), "a and c have left")


def is_let_in(weir):
    with weir.connect() as conn:
        return first_reply(conn) == "PONG"


def test_connections_per_policy(limited, users):
    weir = limited("[policy users]\nmatch = user:*\nconnections = 3 per policy\n")
    conns = [login(weir, "alice"), login(weir, "bob"), login(weir, "alice")]
    with weir.connect() as a:
        assert a.call("AUTH", "bob", "pw") == TOO_MANY
    for conn in conns:
        conn.close()
    wait_until(lambda: any(conn.call("AUTH", "bob", "pw") == "OK" for conn in [weir.connect()]), "places are free")


def test_connects_are_limited(limited):
    weir = limited("[policy default]\nconnects = 4/d\n")
    welcome = 0
    for _ in range(7):
        with weir.connect() as a:
            welcome += first_reply(a) == "PONG"
    assert welcome == 4


def test_connects_of_a_user(limited, users):
    """Each change of the user is one; a repeated login as the same user is none."""
    weir = limited("[policy users]\nmatch = user:*\nconnects = 3/d\n")
    with weir.connect() as a:
        for user in ("alice", "alice", "bob", "alice", "bob", "alice", "bob"):
            assert a.call("AUTH", user, "pw") == "OK"
        assert a.call("AUTH", "alice", "pw") == TOO_MANY
    with weir.connect() as a:
        assert a.call("HELLO", 3, "AUTH", "bob", "pw") == TOO_MANY


def test_connects_per_policy(limited, users):
    weir = limited("[policy users]\nmatch = user:*\nconnects = 3/d per policy\n" + OPERATOR)
    replies = []
    for user in ("alice", "bob", "vip-1", "alice", "bob"):
        with weir.connect() as a:
            replies.append(a.call("AUTH", user, "pw"))
    assert replies == ["OK"] * 3 + [TOO_MANY] * 2
    assert tallies(weir) == [("users/connects", 3, 0, 2, 0)]


# ---- failed logins ----

BARRED = Error("ERR too many failed logins, try again later")


def test_failed_logins_are_limited_by_address(limited, users):
    weir = limited("[policy default]\nauth-failures = 3/d\n[policy users]\nmatch = user:*\nread = 1/d\n" + OPERATOR)
    with weir.connect() as before:
        for auth in ("AUTH alice x", "HELLO 3 AUTH alice x", "AUTH nobody x"):
            with weir.connect() as a:
                assert a.call(*auth.split()).startswith("WRONGPASS")
                assert a.call("PING") == "PONG"
        for auth in ("AUTH alice pw", "auth alice x", "HELLO 3 AUTH alice pw", "HELLO 2 SETNAME me AUTH alice pw"):
            with weir.connect() as a:
                a.send(pipeline("SET k v", auth, "SET k after"))
                assert [a.read(), a.read()] == ["OK", BARRED], auth
                assert a.read_to_end() == b""
        assert before.call("GET", "k") == b"v"
        assert before.call("HELLO", 3)[b"proto"] == 3
        assert before.call("HELLO", 3, "SETNAME", "me")[b"proto"] == 3, "it is no login"
    assert tallies(weir)[0] == ("default/auth-failures", 3, 0, 4, 0)


def test_logins_that_succeed_are_not_counted(limited, users):
    weir = limited("[policy default]\nauth-failures = 2/d\n[policy users]\nmatch = user:*\nauth-failures = 2/d\n")
    with weir.connect() as a:
        for _ in range(10):
            assert a.call("AUTH", "alice", "pw") == "OK"
            assert a.call("RESET") == "RESET"


GUESSER = {
    "logged in": ["AUTH bob pw"],
    "by HELLO": ["HELLO 3 AUTH bob pw"],
    "named": ["CLIENT SETNAME friend"],
    "named in HELLO": ["HELLO 2 SETNAME friend"],
    "logged in and reset": ["AUTH bob pw", "RESET"],
    "twice": ["AUTH bob pw", "AUTH vip-1 pw"],
}


GUESSES = ["AUTH alice guess", "HELLO 2 AUTH alice guess"]


@pytest.mark.parametrize("become", GUESSER)
@pytest.mark.parametrize("guess", GUESSES)
def test_guessing_as_somebody_else(become, guess, kept_limited, users):
    """Whichever user the client has become: failures count for its address, by the policy that
    bound the connection at first.
    """
    policies = "[policy friends]\nmatch = user:*, name:friend\nauth-failures = 100/d\n[policy default]\nauth-failures = 3/d\n"
    weir = kept_limited(policies + OPERATOR)
    before = tallies(weir)
    address = f"127.0.{1 + GUESSES.index(guess)}.{2 + list(GUESSER).index(become)}"  # of this case alone
    with connect_from(weir.address, address) as a:
        a.ask(*GUESSER[become])
        a.send(pipeline(*[guess] * 20))
        replies = [a.read() for _ in range(4)]
        assert [reply.split()[0] for reply in replies] == ["WRONGPASS"] * 3 + ["ERR"]
        assert a.read_to_end() == b""
    added = [(label, *(n - m for n, m in zip(after, then))) for (label, *after), (_, *then) in zip(tallies(weir), before)]
    assert added == [("friends/auth-failures", 0, 0, 0, 0), ("default/auth-failures", 3, 0, 1, 0)]


def test_failures_of_newcomers_by_listener(farm, redis, users):
    """By the policy of the client's listener, not of its later user."""
    sections = "[policy users]\nmatch = user:*\nauth-failures = 1/d\n[policy default]\nread = 1000/s\n"
    weir = farm.weir(redis, sections=sections)
    with weir.connect() as a:
        a.call("AUTH", "bob", "pw")
        assert all(reply.startswith("WRONGPASS") for reply in a.ask(*["AUTH alice x"] * 5))


def test_guessing_in_a_pipeline(limited, users):
    weir = limited("[policy default]\nauth-failures = 3/d\n")
    with weir.connect() as a:
        a.send(pipeline(*[f"AUTH alice guess{i}" for i in range(20)]))
        replies = [a.read() for _ in range(4)]
        assert [reply.split()[0] for reply in replies] == ["WRONGPASS"] * 3 + ["ERR"]
        assert a.read_to_end() == b""


def test_guessing_where_replies_cannot_be_told_apart(limited, users):
    """After SUBSCRIBE inside MULTI."""
    weir = limited("[policy default]\nauth-failures = 3/d\n")
    with weir.connect() as a:
        assert a.ask("MULTI", "SUBSCRIBE c", "EXEC")[:2] == ["OK", "QUEUED"]
        a.call("UNSUBSCRIBE")
        a.send(pipeline(*[f"AUTH alice guess{i}" for i in range(20)]))
        assert a.read_to_end().count(b"WRONGPASS") <= 3


# ---- scope ----

GETS = 3  # pass
GET_BYTES, NIL_BYTES = len(encode("GET", "none")), len(b"$-1\r\n")
RATES = {
    "read": f"{GETS}/d",
    "cost": f"{GETS}/d",
    "bytes-in": f"{GETS * GET_BYTES - 1}/1000d",
    "bytes-out": f"{GETS * NIL_BYTES - 1}/1000d",
}
SCOPES = [("subject", 2 * GETS), ("connection", 4 * GETS), ("policy", GETS)]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("scope, wanted", SCOPES, ids=[s[0] for s in SCOPES])
@pytest.mark.parametrize("unit", RATES)
def test_per_says_whose_funnels_are_charged(unit, scope, wanted, workers, farm, redis, users):
    """Two users with two connections each."""
    sections = f"[policy users]\nmatch = user:*\n{unit} = {RATES[unit]} per {scope}\n"
    weir = farm.weir(redis, workers=workers, sections=sections)
    conns = [login(weir, user) for user in ("alice", "alice", "bob", "bob")]
    replies = [conn.call("GET", "none") for _ in range(5) for conn in conns]
    assert passed(replies) == wanted
    assert {limit_of(reply) for reply in replies} == {None, f"users/{unit}"}
    for conn in conns:
        conn.close()


@pytest.mark.parametrize("scope, wanted", [("subject", 4), ("connection", 8), ("policy", 2)])
def test_in_flight_per(scope, wanted, limited, users, pause):
    weir = limited(f"[policy users]\nmatch = user:*\ninflight = 2 per {scope}\n" + OPERATOR)
    conns = [login(weir, user) for user in ("alice", "alice", "bob", "bob")]
    pause.on()
    for conn in conns:
        conn.send(pipeline(*["SET k v"] * 3))
    wait_until(lambda: sum(tallies(weir)[0][1:]) == 12, "all have been asked")
    pause.off()
    assert passed(conn.read() for conn in conns for _ in range(3)) == wanted
    for conn in conns:
        conn.close()


def test_cost_of_limit_commands(farm, redis):
    """By the commands' own COST, as [cost] says, however the option is spelled."""
    sections = "[cost]\n@limit = 2 per cost\n[policy default]\ncost = 100/d\n[limit named]\nfixed = 5/d\n" + OPERATOR
    weir = farm.weir(redis, workers=1, sections=sections)
    with weir.connect() as a:
        calls = [
            ("LIMIT FUNNEL f 50/d COST 10", 20),
            ("limit bucket COST 50/d BURST 90 cost 5", 10),
            ("LIMIT CHECK named cost", 2),
            ("CL.THROTTLE c 20 20 60 +07", 14),
            ("LIMIT FIXED x 5/s COST nonsense", 2),
            ("GET k", 1),
        ]
        left = 100
        for call, cost in calls:
            assert limit_of(a.ask(call)[0]) is None
            left -= cost
            assert remaining(a) == left
        explained = a.call("LIMIT", "EXPLAIN", "LIMIT", "FIXED", "x", "99/s", "COST", "30")
        assert dict(zip(explained[::2], explained[1::2]))[b"cost"] == 60
        assert refusal(a.ask("LIMIT FIXED x 999/s COST 30")[0])[0] == "default/cost"
        assert refusal(a.ask("LIMIT FIXED x 5/s COST 9007199254740993")[0]) == ("default/cost", -1)
        assert limit_of(a.ask("GET k")[0]) is None


# ---- how rates are written ----


def test_rates_with_a_point(farm, redis):
    """In the file, in LIMIT SET, in LIMIT commands and in named limits: 0.3/s is 3/10s."""
    sections = "[policy default]\nwrite = 0.3/s\n[limit slow]\nsliding = 0.25/s\n" + OPERATOR
    weir = farm.weir(redis, workers=1, sections=sections)
    row = plain(order(weir, "LIST"))[0]
    assert (row["rate"], row["burst"]) == ("3/10s", 3)
    assert order(weir, "SET", "default", "read", "0.5/m", "burst", "7") == "OK"
    row = plain(order(weir, "LIST"))[1]
    assert (row["rate"], row["burst"]) == ("1/2m", 7)
    with weir.connect() as a:
        assert passed(a.ask(*["SET k v"] * 5)) == 3
        assert a.call("LIMIT", "FUNNEL", "f", "0.3/s") == [0, 3, 2, -1, 3334]
        assert a.call("LIMIT", "FIXED", "g", "2.0/h")[:3] == [0, 2, 1]
        assert a.call("LIMIT", "SLIDING", "h", "0.01/s") == [0, 1, 0, -1, 100000]
        assert a.call("LIMIT", "CHECK", "slow", "x") == [0, 1, 0, -1, 4000]
        for rate, says in (
            ("0./s", "a point has a number before it and 1 to 6 digits after it, like 0.3 or 1.5k"),
            (".5/s", "a point has a number before it and 1 to 6 digits after it, like 0.3 or 1.5k"),
        ):
            count = rate.split("/")[0]
            assert a.call("LIMIT", "FUNNEL", "f", rate) == Error(f'ERR "{count}" is not a count: {says}')
        assert a.call("LIMIT", "FUNNEL", "f", "0.0/s").startswith("ERR a rate of 0 never lets anything pass")
        assert a.call("LIMIT", "FUNNEL", "f", "0.000001/d") == Error('ERR "0.000001/d" is 1 in more than 100 years')
    wrong = order(weir, "SET", "default", "read", "1e3/s")
    assert wrong.startswith('ERR [policy default] read: "1e3" is not a count: write a whole number')
