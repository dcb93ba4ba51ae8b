"""A limit refuses what exceeds it, at the right position in the pipeline, and affects nothing else.

Where the count of commands matters rates are per hour, so what passes is the burst, however slow
the test is.
"""

import re
import selectors
import socket
import time

import pytest
from kit.harness import MODE_IDS, MODES, wait_until
from kit.resp import Conn, Error, encode, pipeline
from kit.server import at_least

KEYED = "[class keyed]\ncommands = @string, @scripting\n[policy default]\nkeyed = 1/h\n"
REFUSED = re.compile(r"THROTTLED retry_in_ms=(\d+) limit=(\S+)")
EXECABORT = Error("EXECABORT Transaction discarded because of previous errors.")


def limit_of(reply):
    """Returns the limit that refused, or None for any other reply."""
    match = isinstance(reply, Error) and REFUSED.fullmatch(reply)
    return match[2] if match else None


def passed(replies):
    return sum(limit_of(reply) is None for reply in replies)


@pytest.fixture
def limited(farm, redis):
    """Returns a function that starts a weir with the given sections in front of the shared Redis.
    """

    def start(sections, **settings):
        return farm.weir(redis, sections=sections, **settings)

    return start


@pytest.fixture(params=MODES, ids=MODE_IDS)
def limited_in_every_mode(request, limited):
    workers, lanes = request.param
    return lambda sections, **settings: limited(sections, workers=workers, lanes=lanes, **settings)


# ---- the reply, and its position ----


def test_the_text_of_a_refusal(limited_in_every_mode):
    weir = limited_in_every_mode("[policy free]\nmatch = ip:127.0.0.1\nwrite = 2/h\n")
    with weir.connect() as a:
        assert a.ask("SET k 1", "SET k 2") == ["OK", "OK"]
        a.send(encode("SET", "k", "3"))
        line = a.line()
        retry = re.fullmatch(rb"-THROTTLED retry_in_ms=(\d+) limit=free/write", line)
        assert retry, line
        assert 0 < int(retry[1]) <= 1_800_000
        assert a.ask("GET k", "PING") == [b"2", "PONG"]


def test_neighbours_in_a_pipeline_are_untouched(limited_in_every_mode):
    weir = limited_in_every_mode("[policy default]\nwrite = 2/h\n")
    with weir.connect() as a:
        replies = a.ask(
            *["GET k", "SET k 1", "GET k", "SET k 2", "SET k 3", "GET k", "INCR k", "ECHO x", "LPUSH l v", "GET k"]
        )
        refused = [limit_of(reply) for reply in replies]
        assert refused == [None] * 4 + ["default/write", None, "default/write", None, "default/write", None]
        kept = [reply for reply, limit in zip(replies, refused) if not limit]
        assert kept == [None, "OK", b"1", "OK", b"2", b"x", b"2"]


def test_a_long_pipeline_keeps_its_order(limited_in_every_mode):
    weir = limited_in_every_mode("[policy default]\nwrite = 100/h\n")
    with weir.connect() as a:
        commands = []
        for i in range(500):
            commands += [f"ECHO {i}", f"SET k {i}"]
        replies = a.ask(*commands)
        assert replies[::2] == [b"%d" % i for i in range(500)]
        assert replies[1:200:2] == ["OK"] * 100
        assert all(limit_of(reply) == "default/write" for reply in replies[201::2])
        assert a.call("GET", "k") == b"99"


def test_a_refusal_waits_for_earlier_replies(limited_in_every_mode, redis):
    """Also for a reply that takes time."""
    weir = limited_in_every_mode("[policy default]\nwrite = 2/h\n")
    with weir.connect() as a:
        a.send(pipeline("SET k v", "BLPOP l 0", "LPUSH other v", "ECHO end"))
        assert a.read() == "OK"
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        redis.call("RPUSH", "l", "v")
        assert a.read() == [b"l", b"v"]
        assert limit_of(a.read()) == "default/write"
        assert a.read() == b"end"


def test_refused_large_and_inline_requests(limited_in_every_mode):
    weir = limited_in_every_mode("[policy default]\nwrite = 1/h\n")
    with weir.connect() as a:
        assert a.call("SET", "k", "v") == "OK"
        a.send(encode("SET", "k", b"x" * 2_000_000) + b'SET k "a b"\r\n"\\x53ET" k v\r\n' + pipeline("GET k"))
        assert [limit_of(a.read()) for _ in range(3)] == ["default/write"] * 3
        assert a.read() == b"v"


def test_what_is_refused_is_answered_beside_a_lane_of_its_own(limited_in_every_mode):
    """In another database SCRIPT KILL needs a separate lane. A refused SCRIPT KILL keeps its
    position among the replies.
    """
    weir = limited_in_every_mode(KEYED)
    with weir.connect() as a:
        assert a.ask("CLIENT SETNAME me", "SELECT 1", "GET k") == ["OK", "OK", None]
        replies = a.ask("PING", "SCRIPT KILL", "GET k", "ECHO x", "SCRIPT KILL", "SCRIPT KILL", "PING")
        assert [limit_of(reply) for reply in replies] == [None, *["default/keyed"] * 2, None, *["default/keyed"] * 2, None]
        assert [replies[i] for i in (0, 3, 6)] == ["PONG", b"x", "PONG"]


def test_what_is_refused_opens_no_connection(farm, redis):
    weir = farm.weir(redis, sections=KEYED, lanes="shared")

    def opened(conn):
        return re.search(rb"total_connections_received:(\d+)", conn.call("INFO", "stats"))[1]

    with weir.connect() as a, redis.connect() as direct:
        assert a.ask("GET k", "GET k")[0] is None
        before = opened(direct)
        assert limit_of(a.call("EVAL", "return 1", "0")) == "default/keyed"
        assert opened(direct) == before


def test_the_error_prefix(limited):
    weir = limited("[policy default]\nall = 1/h\n", error_prefix="SLOWDOWN")
    with weir.connect() as a:
        replies = a.ask("SET k v", "GET k")
    assert replies[0] == "OK"
    assert re.fullmatch(r"SLOWDOWN retry_in_ms=\d+ limit=default/all", replies[1])


def test_retry_in_ms_tells_when_it_passes(limited):
    weir = limited("[policy default]\nwrite = 10/s burst 1\n")
    with weir.connect() as a:
        assert a.call("SET", "k", "1") == "OK"
        while True:
            reply = a.call("SET", "k", "2")
            if reply == "OK":
                break
            assert 0 < int(REFUSED.fullmatch(reply)[1]) <= 100


# ---- MULTI ----


def test_a_refused_command_voids_the_transaction(limited_in_every_mode):
    weir = limited_in_every_mode("[policy default]\nwrite = 3/h\n")
    with weir.connect() as a:
        replies = a.ask("SET a 0", "MULTI", "SET a 1", "SET b 1", "SET c 1", "GET a", "EXEC", "MGET a b c")
        assert replies[:4] == ["OK", "OK", "QUEUED", "QUEUED"]
        assert limit_of(replies[4]) == "default/write"
        assert replies[5:] == ["QUEUED", EXECABORT, [b"0", None, None]]
        assert a.ask("MULTI", "GET a", "EXEC") == ["OK", "QUEUED", [b"0"]]


def test_a_refused_command_step_by_step(limited_in_every_mode):
    weir = limited_in_every_mode("[policy default]\nwrite = 1/h\n")
    with weir.connect() as a:
        assert a.call("WATCH", "k") == "OK"
        assert a.call("MULTI") == "OK"
        assert a.call("SET", "k", "1") == "QUEUED"
        assert limit_of(a.call("SET", "k", "2")) == "default/write"
        assert a.call("EXEC") == EXECABORT
        assert a.call("EXEC") == Error("ERR EXEC without MULTI")
        assert a.call("GET", "k") is None


def test_discard_and_reset_after_a_refusal(limited_in_every_mode):
    weir = limited_in_every_mode("[policy default]\nwrite = 1/h\n")
    with weir.connect() as a:
        a.call("SET", "k", "0")
        for end in ("DISCARD", "RESET"):
            replies = a.ask("MULTI", "SET k 1", end, "GET k", "MULTI", "GET k", "EXEC")
            assert limit_of(replies[1]) == "default/write"
            assert replies[3:] == [b"0", "OK", "QUEUED", [b"0"]]


def test_a_transaction_within_the_limit_runs(limited_in_every_mode):
    weir = limited_in_every_mode("[policy default]\nwrite = 2/h\nread = 1/h\n")
    with weir.connect() as a:
        assert a.ask("MULTI", "SET k 1", "INCR k", "GET k", "EXEC")[-1] == ["OK", 2, b"2"]


# ---- control ----


def test_control_commands_are_never_refused(limited_in_every_mode, users):
    weir = limited_in_every_mode("[policy default]\nall = 1/h\n[policy users]\nmatch = user:*\nall = 1/h\n")
    with weir.connect() as a:
        assert a.call("SET", "k", "v") == "OK"
        assert limit_of(a.call("SET", "k", "v")) == "default/all"
        assert limit_of(a.call("CLIENT", "LIST")) == "default/all"
        for command in """
            PING|ECHO x|TIME|SELECT 1|SELECT 0|INFO server|ROLE|COMMAND COUNT|COMMAND INFO get|READONLY|READWRITE|ASKING
            WATCH k|UNWATCH|MULTI|EXEC|MULTI|DISCARD|EXEC|UNSUBSCRIBE|PUNSUBSCRIBE|SUNSUBSCRIBE|CLIENT ID|CLIENT GETNAME
            CLIENT SETNAME me|CLIENT INFO|CLIENT NO-EVICT OFF|CLIENT REPLY ON|HELLO|HELLO 2|AUTH alice pw|RESET|PING
        """.replace("\n", "|").split("|"):
            is_known = at_least(7, 0) or command != "SUNSUBSCRIBE"
            if command.strip() and is_known:
                assert limit_of(a.call(*command.split())) is None, command
        assert limit_of(a.call("GET", "k")) == "default/all"
        assert a.call("QUIT") == "OK"


def test_a_refused_command_says_nothing_when_replies_are_off(limited_in_every_mode):
    weir = limited_in_every_mode("[policy default]\nwrite = 1/h\n")
    with weir.connect() as a:
        a.send(pipeline("SET k 1", "CLIENT REPLY OFF", "SET k 2", "SET k 3", "CLIENT REPLY ON", "GET k"))
        assert [a.read() for _ in range(3)] == ["OK", "OK", b"1"]
        a.send(pipeline("CLIENT REPLY SKIP", "SET k 4", "GET k", "SET k 5", "GET k"))
        assert a.read() == b"1"
        assert limit_of(a.read()) == "default/write"
        assert a.read() == b"1"


# ---- classes ----

CLASSES = [
    ("read", "GET k", "SET k v"),
    ("read", "HGETALL h", "HSET h f v"),
    ("write", "SET k v", "GET k"),
    ("write", "EXPIRE k 10", "TTL k"),
    ("all", "GET k", "PING"),
    ("@string", "GET k", "LPUSH l v"),
    ("@list", "LPUSH l v", "SET k v"),
    ("@dangerous", "KEYS x", "GET k"),
    ("@scripting", "EVAL 1 0", "GET k"),
    ("@pubsub", "PUBLISH c x", "GET k"),
    ("@blocking", "BLPOP none 0.01", "GET k"),
    ("cmd.get", "get k", "MGET k"),
    ("cmd.SET", "sEt k v", "SETNX k v"),
    ("cmd.config|get", "CONFIG get maxmemory", "CONFIG RESETSTAT"),
    ("cmd.config", "Config RESETSTAT", "GET k"),
    ("cmd.subscribe", "SUBSCRIBE c", "GET k"),
]


@pytest.mark.parametrize("what, limited_command, other", CLASSES, ids=[f"{c[0]} {c[1]}" for c in CLASSES])
def test_a_limit_binds_the_commands_of_its_class(what, limited_command, other, farm, redis):
    weir = farm.weir(redis, workers=1, sections=f"[policy p]\nmatch = ip:127.0.0.0/8\n{what} = 1/h\n")
    with weir.connect() as a, weir.connect() as b:
        assert limit_of(a.call(*limited_command.split())) is None
        assert limit_of(b.call(*limited_command.split())) == f"p/{what.lower()}"
        for _ in range(3):
            assert limit_of(b.call(*other.split())) is None


def test_an_operators_own_class(limited):
    weir = limited(
        "[class heavy]\ncommands = keys, sort, @hash, -hget, config|get\n"
        "[class most]\ncommands = heavy, @string\n"
        "[policy default]\nheavy = 2/h\nmost = 4/h\n"
    )
    with weir.connect() as a:
        assert passed(a.ask("KEYS *", "HSET h f v")) == 2
        refused = a.ask("SORT none", "HGETALL h", "CONFIG GET save")
        assert [limit_of(reply) for reply in refused] == ["default/heavy"] * 3
        assert a.ask("HGET h f", "HGET h f", "LPUSH l v") == [b"v", b"v", 1]
        assert a.ask("SET k v", "GET k") == ["OK", b"v"]
        assert limit_of(a.call("GET", "k")) == "default/most"


def test_unknown_commands_are_in_all(limited):
    weir = limited("[policy default]\nall = 1/h\nread = 1/h\n")
    with weir.connect() as a:
        assert a.call("FOO").startswith("ERR unknown command")
        assert limit_of(a.call("FOO")) == "default/all"


# ---- several limits ----


def test_several_limits_pass_together_or_charge_nothing(limited_in_every_mode):
    weir = limited_in_every_mode("[policy default]\nall = 10/h\nwrite = 2/h\n")
    with weir.connect() as a:
        assert a.ask("SET k v", "SET k v") == ["OK", "OK"]
        refused = a.ask(*["SET k v"] * 20)
        assert {limit_of(reply) for reply in refused} == {"default/write"}
        replies = [limit_of(reply) for reply in a.ask(*["GET k"] * 10)]
        assert replies == [None] * 8 + ["default/all"] * 2


def test_several_limits_in_one_line(limited_in_every_mode):
    weir = limited_in_every_mode("[policy default]\nread = 1000/h burst 3, 5/h\n")
    with weir.connect() as a:
        replies = a.ask(*["GET k"] * 10)
        assert passed(replies) == 3
        # The tighter burst limits, not the slower rate: an hour is 1000 reads.
        assert all(int(REFUSED.fullmatch(reply)[1]) <= 3600 for reply in replies[3:])


def test_the_longest_wait_is_told(limited):
    weir = limited("[policy default]\nread = 2/h\n@string = 1/d burst 2\n")
    with weir.connect() as a:
        reply = a.ask(*["GET k"] * 3)[2]
        assert limit_of(reply) == "default/@string"
        assert int(REFUSED.fullmatch(reply)[1]) > 3_600_000


def test_burst_and_refill(limited):
    """A burst passes from rest, then the rate: with one rate nothing for an hour, with the other at
    once.
    """
    weir = limited("[policy default]\nread = 1/h burst 7\nwrite = 1000/s burst 1\n")
    with weir.connect() as a:
        assert passed(a.ask(*["GET k"] * 20)) == 7
        deadline = time.monotonic() + 5
        done = 0
        while done < 20 and time.monotonic() < deadline:
            done += a.call("SET", "k", "v") == "OK"
        assert done == 20


# ---- identity ----


def test_policies_match_by_user_ip_and_name(limited_in_every_mode, users):
    weir = limited_in_every_mode(
        "[policy vip]\nmatch = user:vip-*, user:root\nread = 9/h\n"
        "[policy batch]\nmatch = name:batch*\nread = 3/h\n"
        "[policy elsewhere]\nmatch = ip:10.0.0.0/8\nread = 1/h\n"
        "[policy here]\nmatch = ip:127.0.0.1\nread = 2/h\n"
        "[policy default]\nread = 1/h\n",
        identity="user, name, ip",
    )

    def reads(*before):
        with weir.connect() as a:
            for command in before:
                a.call(*command.split())
            replies = a.ask(*["GET k"] * 12)
            return passed(replies), limit_of(replies[-1])

    assert reads() == (2, "here/read")
    assert reads("AUTH vip-1 pw") == (9, "vip/read")
    assert reads("CLIENT SETNAME batch-7") == (3, "batch/read")
    assert reads("AUTH vip-2 pw", "CLIENT SETNAME batch-7") == (9, "vip/read")
    assert reads("AUTH alice pw") == (2, "here/read")
    assert reads("CLIENT SETNAME other") == (2, "here/read")


def test_nobody_is_limited_without_a_policy(limited):
    weir = limited("[policy elsewhere]\nmatch = ip:10.0.0.0/8\nall = 1/h\n")
    with weir.connect() as a:
        assert a.ask(*["GET k"] * 10) == [None] * 10


def test_subjects_do_not_touch_each_other(limited_in_every_mode, users):
    weir = limited_in_every_mode("[policy default]\nread = 3/h\n")
    with weir.connect() as a, weir.connect() as b, weir.connect() as nobody:
        a.call("AUTH", "alice", "pw")
        b.call("AUTH", "bob", "pw")
        assert passed(a.ask(*["GET k"] * 10)) == 3
        assert passed(b.ask(*["GET k"] * 10)) == 3
        assert passed(nobody.ask(*["GET k"] * 10)) == 3
        assert passed(a.ask("GET k")) == 0


def test_connections_of_one_subject_share(limited_in_every_mode, users):
    weir = limited_in_every_mode("[policy default]\nread = 20/h\n")
    conns = [weir.connect() for _ in range(16)]
    try:
        for conn in conns:
            assert conn.call("AUTH", "alice", "pw") == "OK"
        for conn in conns:
            conn.send(pipeline(*["GET k"] * 5))
        assert passed(conn.read() for conn in conns for _ in range(5)) == 20
    finally:
        for conn in conns:
            conn.close()


def test_identity_follows_the_connection(limited_in_every_mode, users):
    weir = limited_in_every_mode("[policy default]\nread = 2/h\n")

    def drained(conn):
        return passed(conn.ask(*["GET k"] * 3))

    with weir.connect() as a:
        assert drained(a) == 2, "as an address"
        assert a.call("AUTH", "alice", "wrong").startswith("WRONGPASS")
        assert drained(a) == 0, "a failed AUTH changes nothing"
        assert a.call("AUTH", "alice", "pw") == "OK"
        assert drained(a) == 2, "as alice"
        assert a.call("HELLO", 3, "AUTH", "bob", "pw")[b"proto"] == 3
        assert drained(a) == 2, "as bob"
        assert a.call("AUTH", "alice", "pw") == "OK"
        assert drained(a) == 0, "as alice again"
        assert a.call("RESET") == "RESET"
        assert drained(a) == 0, "as the address again"


def test_identity_changes_within_a_pipeline(limited_in_every_mode, users):
    weir = limited_in_every_mode("[policy default]\nread = 2/h\n")
    with weir.connect() as a:
        reads = ["GET k"] * 3
        commands = list(reads)
        for change in ("AUTH alice pw", "AUTH bob wrong", "AUTH bob pw", "RESET"):
            commands += [change, *reads]
        replies = a.ask(*commands)
        groups = [passed(replies[i : i + 3]) for i in range(0, len(replies), 4)]
        assert groups == [2, 2, 0, 2, 0]


def test_names_as_identity(limited_in_every_mode):
    weir = limited_in_every_mode("[policy default]\nread = 2/h\n", identity="name, ip")
    with weir.connect() as a, weir.connect() as b:
        assert a.call("CLIENT", "SETNAME", "one") == "OK"
        assert b.call("HELLO", 2, "SETNAME", "two")
        assert passed(a.ask(*["GET k"] * 3)) == 2
        assert passed(b.ask(*["GET k"] * 3)) == 2
        b.call("CLIENT", "SETNAME", "one")
        assert passed(b.ask("GET k")) == 0
        b.call("CLIENT", "SETNAME", "bad name\n")
        b.call("RESET")
        assert passed(b.ask(*["GET k"] * 3)) == 2, "as the address"


def test_users_only_count_once_logged_in(limited, users):
    """`user` names only clients that logged in as a user other than default."""
    weir = limited("[policy users]\nmatch = user:*\nread = 9/h\n[policy default]\nread = 2/h\n")
    with weir.connect() as a:
        assert limit_of(a.ask(*["GET k"] * 3)[2]) == "default/read"
        a.call("AUTH", "alice", "pw")
        assert passed(a.ask(*["GET k"] * 12)) == 9


def test_reconnecting_does_not_refill(limited_in_every_mode, users):
    weir = limited_in_every_mode("[policy default]\nread = 5/h\n")
    count = 0
    for _ in range(20):
        with weir.connect() as a:
            a.call("AUTH", "alice", "pw")
            count += passed(a.ask("GET k", "GET k"))
    assert count == 5


def test_addresses_with_a_prefix_are_one_subject(limited):
    weir = limited("[policy default]\nread = 4/h\n", identity="ip/8", listen="127.0.0.1:0")
    with weir.connect() as a, weir.connect() as b:
        assert passed(a.ask(*["GET k"] * 3) + b.ask(*["GET k"] * 3)) == 4


# ---- accuracy ----

RATE, SECONDS = 2000, 5.0
BURST = 1000  # half a second: longer than a busy machine interrupts the test
BATCH = 64


class Hammer:
    """Connections of one subject, each with a batch of writes in flight at all times; counts by
    replies.
    """

    def __init__(self, weir, connections):
        self.conns = [Conn(weir.address) for _ in range(connections)]
        self.batch = encode("SET", "hammered", "v") * BATCH
        self.left = {}
        self.tail = {}
        self.admitted = self.refused = 0
        self.first = self.last = None

    def start(self, selector):
        self.first = time.monotonic()
        for conn in self.conns:
            conn.sock.setblocking(False)
            selector.register(conn.sock, selectors.EVENT_READ, self)
            self.send(conn.sock)

    def send(self, sock):
        sock.send(self.batch)
        self.left[sock], self.tail[sock] = BATCH, b""

    def on_readable(self, sock, go_on):
        """Counts replies; true when this connection is done."""
        data = self.tail[sock] + sock.recv(65536)
        self.last = time.monotonic()
        *lines, self.tail[sock] = data.split(b"\r\n")
        admitted = lines.count(b"+OK")
        assert all(line.startswith((b"+OK", b"-THROTTLED ")) for line in lines)
        self.admitted += admitted
        self.refused += len(lines) - admitted
        self.left[sock] -= len(lines)
        if self.left[sock] == 0 and go_on:
            self.send(sock)
        return self.left[sock] == 0

    def close(self):
        for conn in self.conns:
            conn.close()


def test_what_passes_is_burst_and_rate_to_a_hundredth(farm, redis):
    """Never more than burst + rate * time, and at least 99 % of it, with 1, 2 and 8 connections on
    2 workers.
    """
    sections = f"[policy default]\nwrite = {RATE}/s burst {BURST}\n"
    hammers = [Hammer(farm.weir(redis, workers=2, sections=sections), n) for n in (1, 2, 8)]
    try:
        with selectors.DefaultSelector() as selector:
            for hammer in hammers:
                hammer.start(selector)
            end = time.monotonic() + SECONDS
            while selector.get_map():
                for key, _ in selector.select(10):
                    if key.data.on_readable(key.fileobj, time.monotonic() < end):
                        selector.unregister(key.fileobj)
    finally:
        for hammer in hammers:
            hammer.close()
    for hammer in hammers:
        allowed = BURST + RATE * (hammer.last - hammer.first)
        assert hammer.refused > hammer.admitted, "it was not hammered"
        assert 0.99 * allowed <= hammer.admitted <= allowed, f"{len(hammer.conns)} connections"


def test_accuracy_of_two_subjects(farm, redis, users):
    """A subject far over its limit takes nothing from a subject within its limit."""
    weir = farm.weir(redis, workers=2, sections="[policy default]\nwrite = 200/s burst 100\n")
    with weir.connect() as calm, weir.connect() as wild:
        calm.call("AUTH", "alice", "pw")
        wild.call("AUTH", "bob", "pw")
        for _ in range(100):
            wild.send(pipeline(*["SET k v"] * 20))
            assert calm.call("SET", "k", "v") == "OK"
            for _ in range(20):
                wild.read()


def test_no_window_admits_too_much(farm, redis):
    """GCRA holds over every window, by the times of replies and requests."""
    rate, burst = 500, 10
    weir = farm.weir(redis, workers=2, sections=f"[policy default]\nwrite = {rate}/s burst {burst}\n")
    conns = [weir.connect() for _ in range(4)]
    sent, came = [], []
    try:
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            for conn in conns:
                before = time.monotonic()
                reply = conn.call("SET", "k", "v")
                if reply == "OK":
                    sent.append(before)
                    came.append(time.monotonic())
    finally:
        for conn in conns:
            conn.close()
    for i in range(len(sent)):
        for j in range(i, len(sent), 7):
            assert j - i + 1 <= burst + rate * (came[j] - sent[i]) + 1e-6
    assert len(sent) > rate


def test_who_is_refused_last_and_ends_is_let_go(limited_in_every_mode):
    """The client has a private lane without requests in flight, so nothing else wakes it."""
    weir = limited_in_every_mode(KEYED)
    with weir.connect() as a:
        assert a.ask("WATCH k", "GET k") == ["OK", None]
        assert limit_of(a.call("GET", "k")) == "default/keyed"
        a.sock.shutdown(socket.SHUT_WR)
        assert a.sock.recv(1) == b""
