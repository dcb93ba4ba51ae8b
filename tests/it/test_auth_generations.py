"""Lanes belong to a user, and a client must have proved its password. Events that close a client
directly close it through weir, and other events do not.
"""

import contextlib
import re
import socket
import threading
import time

import pytest
from kit.harness import wait_until
from kit.meddler import Meddler, cut
from kit.moving import NAME, Names, two
from kit.relay import Relay
from kit.resp import Closed, Conn, Error, encode, pipeline
from kit.server import has_tls
from kit.tls import Authority, TlsRedis
from kit.tokens import Tokens

WRONGPASS = Error("WRONGPASS invalid username-password pair or user is disabled.")
RULES = ("~*", "&*", "+@all")
LANES = ["shared", "private"]
WORKERS = [1, 2]

every_way = [
    pytest.param(1, "shared"),
    *(pytest.param(workers, lanes, marks=pytest.mark.moves) for workers in WORKERS for lanes in LANES
      if (workers, lanes) != (1, "shared")),
]


def set_user(redis, *rules):
    assert redis.call("ACL", "SETUSER", "app", "on", *(rules or (">P1",)), *RULES) == "OK"


def kill(redis):
    """Kills connections as an operator does after a password change: then no client is connected by
    the old password.
    """
    with redis.connect() as conn:
        return conn.call("CLIENT", "KILL", "USER", "app")


def change_password(redis):
    with redis.connect() as conn:
        assert conn.call("ACL", "SETUSER", "app", ">P2", "<P1") == "OK"
        conn.call("CLIENT", "KILL", "USER", "app")


def enter(weir, password="P1", *commands):
    conn = weir.connect()
    assert conn.call("AUTH", "app", password) == "OK"
    for command in commands:
        conn.ask(command)
    return conn


def is_lost(conn, *command):
    """True if the connection is closed, at the latest when the client sends something."""
    try:
        conn.call(*command)
    except (Closed, OSError):
        return True
    return False


def users(redis):
    """Returns the ids of weir's connections as app."""
    with redis.connect() as conn:
        return [line.split()[0] for line in conn.call("CLIENT", "LIST").decode().splitlines() if " user=app " in line]


def client_of(redis, mark):
    """Returns the client's line of CLIENT LIST."""
    with redis.connect() as conn:
        lines = conn.call("CLIENT", "LIST").decode().splitlines()
    return next((line for line in lines if mark in line), "omem=0")


# ---- a new password, and a client that only knows the old one ----

THIEVES = {
    "idle": [],
    "in use": ["SET seen 1"],
    "subscribed": ["SUBSCRIBE news"],
    "in MULTI": ["MULTI", "SET stolen 1"],
    "watching": ["WATCH seen"],
    "blocked": None,
}


@pytest.mark.parametrize("state", THIEVES)
@pytest.mark.parametrize("workers, lanes", every_way)
def test_who_knows_only_the_old_password_is_out(state, workers, lanes, farm):
    redis = farm.redis()
    set_user(redis)
    weir = farm.weir(redis, workers=workers, lanes=lanes)
    with contextlib.ExitStack() as stack:
        thief = stack.enter_context(enter(weir))
        if THIEVES[state] is None:
            thief.send(encode("BLPOP", "list", 0))
            wait_until(lambda: redis.waiting()[0] == 1, "the thief is blocked")
        for command in THIEVES[state] or []:
            thief.ask(command)
        sleepers = [stack.enter_context(enter(weir)) for _ in range(8)]  # on every worker
        for sleeper in sleepers[::2]:
            assert sleeper.call("PING") == "PONG"
        change_password(redis)
        owners = [stack.enter_context(enter(weir, "P2")) for _ in range(8)]
        for i, owner in enumerate(owners):
            assert owner.ask(f"SET mine:{i} 1", "MULTI", "INCR n", "EXEC") == ["OK", "OK", "QUEUED", [i + 1]]
        for sleeper in sleepers:
            assert is_lost(sleeper, "SET", "stolen", "1")
        assert owners[0].call("PUBLISH", "news", "secret") == 0
        assert owners[0].call("RPUSH", "list", "secret") == 1
        if state == "blocked":
            assert thief.read_to_end() == b""
        elif state == "in MULTI":
            assert is_lost(thief, "EXEC")
        else:
            assert is_lost(thief, "SET", "stolen", "1")
        assert redis.call("EXISTS", "stolen") == 0 and redis.call("LLEN", "list") == 1
        assert [owner.call("GET", "mine:3") for owner in owners] == [b"1"] * 8


@pytest.mark.parametrize("lanes", ["shared", pytest.param("private", marks=pytest.mark.moves)])
def test_a_thief_that_reads_nothing_hides_no_kill(lanes, farm):
    """While the thief does not read its reply, weir does not see that Redis has closed the only
    connection of its user.
    """
    redis = farm.redis()
    set_user(redis)
    redis.call("SETRANGE", "big", 64 << 20, "x")
    weir = farm.weir(redis, workers=1, lanes=lanes)
    with enter(weir) as deaf, enter(weir) as idle:
        deaf.send(encode("EVAL", "return redis.call('GET', 'big')", 0))
        assert not deaf.is_closed()
        wait_until(lambda: "omem=0" not in client_of(redis, "cmd=eval"), "its reply is stuck")
        change_password(redis)
        with enter(weir, "P2", "SET mine 1") as owner:
            assert is_lost(idle, "SET", "stolen", "1")
            assert owner.ask("EXISTS stolen", "GET mine") == [0, b"1"]


def test_limit_commands_need_a_proof_too(farm):
    redis = farm.redis()
    set_user(redis)
    weir = farm.weir(redis, workers=1)
    with enter(weir) as thief, enter(weir) as other:
        assert [thief.call("LIMIT", "FIXED", "k", "9/60s")[0] for _ in range(3)] == [0] * 3
        kill(redis)
        assert thief.call("LIMIT", "FIXED", "k", "9/60s")[0] == 0
        change_password(redis)
        assert is_lost(thief, "LIMIT", "FIXED", "k", "9/60s") and is_lost(other, "LIMIT", "FIXED", "k", "9/60s")
        with enter(weir, "P2") as owner:
            assert owner.call("LIMIT", "FIXED", "k", "9/60s")[2] == 4  # five of nine


def test_a_password_that_is_only_taken_away_ends_nobody(farm):
    redis = farm.redis()
    set_user(redis)
    weir = farm.weir(redis, workers=1)
    with enter(weir, "P1", "SET k v") as old:
        redis.call("ACL", "SETUSER", "app", ">P2", "<P1")
        with enter(weir, "P2", "SET k w") as new:
            assert old.ask("GET k", "MULTI", "GET k", "EXEC") == [b"w", "OK", "QUEUED", [b"w"]]
            assert new.call("GET", "k") == b"w"
        with weir.connect() as late:
            assert late.call("AUTH", "app", "P1") == WRONGPASS


@pytest.mark.parametrize("workers", [2, pytest.param(1, marks=pytest.mark.moves)])
def test_a_newer_password_helps_clients_of_every_worker(workers, farm):
    redis = farm.redis()
    set_user(redis)
    weir = farm.weir(redis, workers=workers)
    with contextlib.ExitStack() as stack:
        conns = [stack.enter_context(enter(weir, "P1", "GET k")) for _ in range(12)]
        redis.call("ACL", "SETUSER", "app", ">P2", "<P1")
        with enter(weir, "P2"):
            assert [conn.call("EVAL", "return 7", 0) for conn in conns] == [7] * 12
            assert [conn.ask("MULTI", "PING", "EXEC") for conn in conns] == [["OK", "QUEUED", ["PONG"]]] * 12


# ---- events that end an auth generation, and a new check of clients that may stay ----


@pytest.mark.parametrize("workers, lanes", every_way)
def test_a_shared_lane_that_is_killed_ends_nobody_whose_words_still_hold(workers, lanes, farm):
    redis = farm.redis()
    set_user(redis)
    weir = farm.weir(redis, workers=workers, lanes=lanes)
    with contextlib.ExitStack() as stack:
        conns = [stack.enter_context(enter(weir)) for _ in range(40)]
        assert [conn.call("PING") for conn in conns[:20]] == ["PONG"] * 20
        for _ in range(3):
            kill(redis)
            if lanes == "private":  # a private lane is lost with the client
                conns[:20] = [stack.enter_context(enter(weir, "P1", "PING")) for _ in range(20)]
            for conn in conns[:20]:
                assert conn.ask("SET k v", "GET k") == ["OK", b"v"]
        assert [conn.call("PING") for conn in conns] == ["PONG"] * 40


@pytest.mark.moves
@pytest.mark.parametrize("workers", WORKERS)
def test_a_storm_of_kills_is_told_to_nobody_as_an_outage(workers, farm):
    """A command in flight is lost with its connection, as directly. All other clients wait for the
    next lane.
    """
    redis = farm.redis()
    set_user(redis, ">P1", ">P2")
    weir = farm.weir(redis, workers=workers)
    errors, n_ok, over = [], [0], threading.Event()

    def work(password):
        while not over.is_set():
            with contextlib.suppress(Closed, OSError), weir.connect() as conn:
                conn.call("AUTH", "app", password)
                while not over.is_set():
                    reply = conn.call("SET", "k", "v")
                    if reply == "OK":
                        n_ok[0] += 1
                    else:
                        errors.append(reply)

    threads = [threading.Thread(target=work, args=(f"P{i % 2 + 1}",)) for i in range(16)]
    with redis.connect() as admin:
        for thread in threads:
            thread.start()
        end = time.monotonic() + 4
        while time.monotonic() < end:
            admin.call("CLIENT", "KILL", "USER", "app")
            time.sleep(0.01)
        over.set()
        for thread in threads:
            thread.join()
    assert errors == [] and n_ok[0] > 100


@pytest.mark.moves
@pytest.mark.parametrize("command, reply", [(["EXEC"], ["OK"]), (["GET", "k"], "QUEUED")])
def test_who_is_asked_about_while_redis_is_paused_waits(command, reply, farm):
    redis = farm.redis()
    set_user(redis)
    # an auth lane has half a second to answer
    weir = farm.weir(redis, workers=1, env={"WEIR_HURRY": "20"})
    with enter(weir, "P1", "MULTI", "SET k 1") as conn, enter(weir) as other, redis.connect() as admin:
        assert other.call("EXISTS", "k") == 0
        lane = client_of(redis, "cmd=exists").split()[0].removeprefix("id=")
        assert admin.ask(f"CLIENT KILL ID {lane}", "CLIENT PAUSE 3000 ALL") == [1, "OK"]
        begun = time.monotonic()
        other.send(encode("PING"))
        assert conn.call(*command) == reply and other.read() == "PONG"
        assert time.monotonic() - begun > 1.5


@pytest.mark.parametrize("workers, lanes", every_way)
def test_a_user_of_the_same_name_is_another_user(workers, lanes, farm):
    redis = farm.redis()
    set_user(redis)
    weir = farm.weir(redis, workers=workers, lanes=lanes)
    with enter(weir) as idle, enter(weir, "P1", "PING") as used:
        with redis.connect() as conn:
            conn.call("ACL", "DELUSER", "app")
            conn.call("ACL", "SETUSER", "app", "on", ">P2", *RULES)
        with enter(weir, "P2", "SET mine 1") as other:
            assert is_lost(idle, "GET", "mine") and is_lost(used, "GET", "mine")
            assert other.call("GET", "mine") == b"1"


@pytest.mark.moves
@pytest.mark.parametrize("workers, lanes", every_way)
def test_acl_load_ends_what_it_ends_directly(workers, lanes, farm, tmp_path):
    """Up to 7.0 ACL LOAD closes no client with a remaining user; later versions close clients of
    changed users.
    """
    file = tmp_path / "users.acl"
    file.write_text("user default on nopass ~* &* +@all\nuser app on >P1 ~* &* +@all\n")
    redis = farm.redis("--aclfile", str(file))
    weir = farm.weir(redis, workers=workers, lanes=lanes)
    with enter(weir) as idle, enter(weir, "P1") as used, enter(redis, "P1") as direct:
        assert used.call("PING") == direct.call("PING") == "PONG"
        file.write_text("user default on nopass ~* &* +@all\nuser app on >P2 ~* &* +@all\n")
        redis.call("ACL", "LOAD")
        is_out = is_lost(direct, "PING")
        with enter(weir, "P2") as other:
            assert other.call("SET", "mine", "1") == "OK"
            assert is_lost(used, "GET", "mine") == is_out
            assert not is_out or is_lost(idle, "GET", "mine")
            file.write_text("user default on nopass ~* &* +@all\n")
            redis.call("ACL", "LOAD")
            for conn in (idle, used, direct, other):
                assert is_lost(conn, "GET", "mine")


@pytest.mark.moves
@pytest.mark.parametrize("workers, lanes", every_way)
def test_a_restart_asks_every_client_again(workers, lanes, farm):
    redis = farm.redis("--user", "app", "on", ">P1", ">P0", "~*", "&*", "+@all")
    weir = farm.weir(redis, workers=workers, lanes=lanes)
    with enter(weir, "P0") as old, enter(weir) as idle:
        if lanes == "shared":
            assert old.call("PING") == idle.call("PING") == "PONG"
        redis.kill()
        redis.options.remove(">P0")
        redis.start()
        wait_until(lambda: _serves(weir), "weir serves again", 20)
        assert idle.ask("SET k v", "GET k") == ["OK", b"v"]
        assert is_lost(old, "GET", "k")


def _serves(weir):
    with weir.connect() as conn:
        return conn.call("PING") == "PONG"


class Contrary(Meddler):
    """A Redis that accepts a client's login, and refuses the lane that logs in with it."""

    def _requests(self, weir, redis):
        try:
            while data := weir.recv(1 << 16):
                if b"\r\naUTH\r\n" in data:
                    weir.sendall(b"-WRONGPASS invalid username-password pair or user is disabled.\r\n")
                else:
                    redis.sendall(data)
        except OSError:
            pass
        cut(weir, redis)


@pytest.mark.parametrize("lanes", LANES)
def test_a_redis_that_takes_a_login_and_refuses_its_lane_is_not_asked_for_ever(lanes, farm):
    redis = farm.redis()
    set_user(redis)
    with Contrary(redis.address) as contrary:
        weir = farm.weir(contrary.upstream, workers=1, lanes=lanes)
        with enter(weir) as conn:
            for _ in range(3):
                assert conn.call("GET", "k") == WRONGPASS
            assert conn.call("AUTH", "app", "P1") == "OK"
        assert len(contrary.links) < 20


class Between(Meddler):
    """Runs an action before the next login of a lane reaches Redis."""

    def __init__(self, address, act):
        super().__init__(address)
        self.act = act
        self.is_armed = False

    def _requests(self, weir, redis):
        try:
            while data := weir.recv(1 << 16):
                if self.is_armed and b"\r\naUTH\r\n" in data:
                    self.is_armed = False
                    self.act()
                redis.sendall(data)
        except OSError:
            pass
        cut(weir, redis)


def test_who_is_put_out_between_its_login_and_the_answer_hears_no_error_and_stays(farm):
    """After an error the client would not be logged in directly. weir therefore closes the client's
    connection.
    """
    redis = farm.redis()
    set_user(redis, ">P1", ">P2")

    def take_p1_away():
        redis.call("ACL", "SETUSER", "app", "<P1")
        kill(redis)

    with Between(redis.address, take_p1_away) as between:
        weir = farm.weir(between.upstream, workers=1)
        with enter(weir, "P2", "GET k") as other, weir.connect() as conn:
            between.is_armed = True
            assert is_lost(conn, "HELLO", "3", "AUTH", "app", "P1")
            assert other.call("GET", "k") is None


class Late(Meddler):
    """weir learns of closed connections only when the test says so, as with lost packets or a
    firewall that dropped its state.
    """

    def __init__(self, address):
        super().__init__(address)
        self.told = threading.Event()

    def _requests(self, weir, redis):
        try:
            while data := weir.recv(1 << 16):
                with contextlib.suppress(OSError):
                    redis.sendall(data)
        except OSError:
            pass
        cut(weir, redis)

    def _replies(self, weir, redis):
        try:
            while data := redis.recv(1 << 16):
                weir.sendall(data)
        except OSError:
            pass
        self.told.wait(20)
        cut(weir, redis)

    def __exit__(self, *_):
        self.told.set()
        super().__exit__()


PUSH = ("EVAL", "return redis.call('RPUSH', 'trail', ARGV[1])", 0)


@pytest.mark.parametrize("how", ["killed", pytest.param("deleted", marks=pytest.mark.moves)])
@pytest.mark.parametrize("workers, lanes", every_way)
def test_nobody_is_served_by_a_newer_password_before_its_kill_is_seen(workers, lanes, how, farm):
    redis = farm.redis()
    set_user(redis, ">P1", ">P2")
    with Late(redis.address) as late:
        weir = farm.weir(late.upstream, workers=workers, lanes=lanes)
        with contextlib.ExitStack() as stack:
            thieves = [stack.enter_context(enter(weir)) for _ in range(4)]
            if lanes == "shared":
                assert [thief.call("PING") for thief in thieves] == ["PONG"] * 4
            owners = [stack.enter_context(enter(weir, "P2", "GET k")) for _ in range(4)]
            if how == "killed":
                redis.call("ACL", "SETUSER", "app", "<P1")
                kill(redis)
            else:
                redis.call("ACL", "DELUSER", "app")
                redis.call("ACL", "SETUSER", "app", "on", ">P2", *RULES)
            assert redis.call("RPUSH", "trail", "mark") == 1
            for thief in thieves:
                thief.send(encode(*PUSH, "thief"))
            if lanes == "shared":
                assert owners[0].call(*PUSH, "owner") == 2
                for thief in thieves:
                    assert not thief.is_closed()
                late.told.set()
            for thief in thieves:
                assert is_lost(thief, "PING")
            late.told.set()
            with enter(weir, "P2") as owner:
                assert b"thief" not in owner.call("LRANGE", "trail", 0, -1)


@pytest.mark.parametrize("command", ["EVAL", pytest.param("SUBSCRIBE", marks=pytest.mark.moves)])
def test_a_lapsed_password_is_served_where_a_newer_one_opens_the_connection(command, farm):
    """An older connection of the user shows that the user was not killed."""
    commands = {"EVAL": (["EVAL", "return 7", 0], 7), "SUBSCRIBE": (["SUBSCRIBE", "c"], [b"subscribe", b"c", 1])}
    words, reply = commands[command]
    redis = farm.redis()
    set_user(redis, ">P0", ">P1", ">P2")
    weir = farm.weir(redis, workers=1)
    with enter(weir, "P1", "GET k") as old, enter(weir, "P0", "GET k") as older, enter(weir, "P2", "GET k"):
        redis.call("ACL", "SETUSER", "app", "<P1", "<P0")
        assert [conn.call(*words) for conn in (old, older)] == [reply] * 2
        kill(redis)
        assert is_lost(old, "PING") and is_lost(older, "PING")


@pytest.mark.parametrize("workers, lanes", every_way)
def test_another_address_asks_every_client_again(workers, lanes, farm, tmp_path):
    """What one server has said of a client proves nothing at another server."""
    names = Names(tmp_path)
    first, second = two(farm)
    set_user(first, ">P1", ">P0")
    set_user(second, ">P1")
    names.point(first)
    weir = farm.weir(f"{NAME}:{first.port}", workers=workers, lanes=lanes, prefix=names.prefix, env={"WEIR_HURRY": "20"})
    with enter(weir) as mine, enter(weir, "P0") as old, enter(weir, "P0", "MULTI", "SET stolen 1") as thief:
        assert mine.call("GET", "who") == old.call("GET", "who") == b"first"
        names.point(second)
        wait_until(lambda: mine.call("GET", "who") == b"second", "the name is followed")
        assert is_lost(old, "SET", "stolen", "1")
        # its transaction is still open
        assert thief.call("EXEC") == ["OK"] and first.call("GET", "stolen") == b"1"
        assert is_lost(thief, "SET", "stolen", "1")
        assert mine.ask("EXISTS stolen", "ACL WHOAMI") == [0, b"app"]


# ---- one user, many passwords ----


def test_clients_with_a_token_each_share_the_lanes_of_their_user(farm):
    n = 200
    redis = farm.redis()
    set_user(redis, *(f">token-{i}" for i in range(n)))
    weir = farm.weir(redis, workers=1)
    with contextlib.ExitStack() as stack:
        conns = [stack.enter_context(weir.connect()) for _ in range(n)]
        for i, conn in enumerate(conns):
            conn.send(encode("AUTH", "app", f"token-{i}") + encode("INCR", "n"))
        assert sorted(conn.read() == "OK" and conn.read() for conn in conns) == list(range(1, n + 1))
        assert len(users(redis)) <= 1 + 4  # a lane, and the auth lanes
        redis.call("ACL", "SETUSER", "app", "resetpass", ">token-0")
        assert [conn.call("PING") for conn in conns] == ["PONG"] * n


@pytest.mark.moves
def test_two_thousand_clients_with_a_token_each(farm):
    n = 2000
    redis = farm.redis("--maxclients", "9000")
    with redis.connect() as conn:
        for i in range(0, n, 100):
            conn.call("ACL", "SETUSER", "app", "on", *(f">token-{k}" for k in range(i, i + 100)), *RULES)
    weir = farm.weir(redis, workers=2, max_clients=3000)
    with contextlib.ExitStack() as stack:
        conns = []
        for i in range(0, n, 500):  # fewer than `unauthenticated` allows
            some = [stack.enter_context(weir.connect()) for _ in range(500)]
            for k, conn in enumerate(some):
                conn.send(encode("AUTH", "app", f"token-{i + k}") + encode("INCR", "n"))
            assert [conn.read() for conn in some] == ["OK"] * 500
            conns += some
        assert sorted(conn.read() for conn in conns) == list(range(1, n + 1))
        assert len(users(redis)) <= 2 * (3 + 4)
        begun = time.monotonic()
        kill(redis)
        for conn in conns:
            conn.send(encode("PING"))
        assert [conn.read() for conn in conns] == ["PONG"] * n
        assert time.monotonic() - begun < 10
        assert len(users(redis)) <= 2 * (3 + 4)


@pytest.mark.moves
@pytest.mark.parametrize("lanes", LANES)
def test_connections_live_on_while_newer_passwords_are_said(lanes, farm):
    """Clients log in again as their library does. Where a client does not, weir keeps the
    connection alive with a newer password of the user.
    """
    redis = farm.redis()
    set_user(redis, "resetpass")
    with Tokens(redis, "app", 4) as tokens:
        weir = farm.weir(tokens.upstream, workers=1, lanes=lanes, env={"WEIR_HURRY": "60"})
        with enter(weir, tokens.issue()) as conn, enter(weir, tokens.issue()) as other:
            assert conn.ask("SET k v", "WATCH k") == ["OK", "OK"] and other.call("GET", "k") == b"v"
            end = time.monotonic() + 9
            while time.monotonic() < end:
                time.sleep(1)
                assert conn.call("AUTH", "app", tokens.issue()) == "OK"
                assert other.call("GET", "k") == b"v"  # its own token has expired by now
            assert conn.ask("MULTI", "GET k", "EXEC") == ["OK", "QUEUED", [b"v"]]
        assert weir.log().count("a shared connection is closed") == 0
        assert weir.log().count("a private connection is closed") == 0


# ---- AUTH again ----

STATES = {
    "in RESP3, subscribed": (["HELLO 3", "SUBSCRIBE news"], ["PING"]),
    "tracking": (["HELLO 3", "CLIENT TRACKING ON", "GET k"], ["GET k"]),
    "watching": (["WATCH k"], ["MULTI", "GET k", "EXEC"]),
    "on a shared connection": (["GET k"], ["GET k"]),
}


def login_again(server, before, after):
    with server.connect() as conn:
        replies = [conn.call("AUTH", "app", "P1")]
        replies += conn.ask(*before)
        replies += [conn.call("AUTH", "app", "P2"), conn.call("AUTH", "app", "wrong"), conn.call("AUTH", "app", "P1")]
        replies += conn.ask(*after)
        return [reply if not isinstance(reply, (list, dict)) or "id" not in str(reply) else "HELLO" for reply in replies]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("workers, lanes", every_way)
def test_auth_again_does_what_it_does_directly(state, workers, lanes, farm):
    redis = farm.redis()
    set_user(redis, ">P1", ">P2")
    redis.call("SET", "k", "v")
    weir = farm.weir(redis, workers=workers, lanes=lanes)
    before, after = STATES[state]
    assert login_again(weir, before, after) == login_again(redis, before, after)


def test_auth_again_in_a_pipeline_and_behind_what_blocks(farm):
    redis = farm.redis()
    set_user(redis, ">P1", ">P2")
    weir = farm.weir(redis, workers=1)
    with enter(weir) as conn, weir.connect() as other:
        conn.send(pipeline("SET k 1", "AUTH app P2", "INCR k", "AUTH app P1", "INCR k"))
        conn.send(encode("EVAL", "return 7", 0) + pipeline("AUTH app P2", "GET k"))
        assert [conn.read() for _ in range(8)] == ["OK", "OK", 2, "OK", 3, 7, "OK", b"3"]
        conn.send(encode("BLPOP", "list", 0) + encode("AUTH", "app", "P1") + encode("GET", "k"))
        wait_until(lambda: redis.waiting()[0] == 1, "it is blocked")
        other.call("RPUSH", "list", "x")
        assert [conn.read() for _ in range(3)] == [[b"list", b"x"], "OK", b"3"]


# ---- the last connection of a user ----


def test_the_last_connection_of_a_user_stays_while_a_client_does(farm):
    redis = farm.redis()
    set_user(redis)
    weir = farm.weir(redis, workers=1, env={"WEIR_HURRY": "60"})
    with enter(weir, "P1") as conn, weir.connect() as busy:
        assert conn.call("EVAL", "return 1", 0) == 1
        end = time.monotonic() + 3
        while time.monotonic() < end:
            assert busy.call("PING") == "PONG" and users(redis)
            time.sleep(0.1)
        conn.close()
        # The auth lane stays, as the user that it last checked.
        wait_until(lambda: len(users(redis)) == 1 and busy.call("PING"), "the connection is given up", 20)


def test_where_max_lanes_takes_it_the_client_is_asked_again(farm):
    redis = farm.redis()
    set_user(redis)
    weir = farm.weir(redis, workers=1, max_lanes=4)
    with enter(weir) as conn, contextlib.ExitStack() as stack:
        assert conn.call("EVAL", "return 1", 0) == 1
        for i in range(2, 5):
            other = stack.enter_context(weir.connect())
            other.sock.close()
            # few from one address
            other.sock = socket.create_connection(weir.address, 10, (f"127.0.0.{i}", 0))
            redis.call("ACL", "SETUSER", f"u{i}", "on", ">pw", *RULES)
            assert other.ask(f"AUTH u{i} pw", "WATCH a") == ["OK", "OK"]
        redis.call("ACL", "SETUSER", "app", ">P2", "<P1")
        assert is_lost(conn, "EVAL", "return 1", 0)


def test_an_auth_lane_that_is_the_first_to_be_refused_is_an_outage(farm):
    """No part of weir has missed Redis before. The client's next requests wait for Redis, and get
    no error. The client is closed if its request went out on a killed connection.
    """
    redis = farm.redis()
    set_user(redis)
    relay = farm._start(Relay(redis.address))
    weir = farm.weir(relay, workers=1, failover_wait="60s")
    for n in range(5):
        with enter(weir, "P1", f"SET a {n}") as conn:
            with relay.refusing():
                kill(redis)
                conn.send(encode("INCR", "a"))
                weir.wait_for_log("cannot open another connection", n + 1)
            with contextlib.suppress(Closed):
                assert conn.read() == n + 1


# ---- with TLS to Redis ----


@pytest.mark.moves
def test_who_knows_only_the_old_password_is_out_behind_tls(farm, tmp_path):
    if not has_tls():
        pytest.skip("this redis-server is built without TLS")
    ca = Authority(tmp_path)
    redis = farm._start(TlsRedis(ca, ca.issue("redis", "/CN=redis")))
    set_user(redis)
    weir = farm.weir(redis, workers=1, upstream_tls_ca_file=ca.cert)
    with enter(weir) as idle, enter(weir, "P1", "MULTI", "SET stolen 1") as thief:
        change_password(redis)
        with enter(weir, "P2", "SET mine 1") as owner:
            assert is_lost(idle, "SET", "stolen", "1") and is_lost(thief, "EXEC")
            assert owner.ask("GET mine", "EXISTS stolen") == [b"1", 0]


# ---- a newer password and a shortage of lanes ----


def logins(redis):
    found = re.search(rb"cmdstat_auth:calls=(\d+)", redis.call("INFO", "commandstats"))
    return int(found[1]) if found else 0


def test_the_connection_that_is_kept_for_a_client_says_its_newer_password(farm):
    redis = farm.redis()
    redis.call("ACL", "SETUSER", "app", "on", ">T0", ">T1", "~*", "+@all")
    weir = farm.weir(redis, workers=1)
    with weir.connect() as conn:
        assert conn.call("AUTH", "app", "T0") == "OK"
        for _ in range(3):
            assert conn.call("EVAL", "return 1", "0") == 1
        assert conn.call("AUTH", "app", "T1") == "OK"
        before = logins(redis)
        assert conn.call("EVAL", "return 2", "0") == 2
        assert logins(redis) == before + 1
        assert conn.call("EVAL", "return 3", "0") == 3
        assert logins(redis) == before + 1


def connect_from(weir, host):
    """Returns a client from that address: each address has its share of max-lanes."""
    conn = Conn(weir.address)
    conn.close()
    conn.sock = socket.create_connection(weir.address, 10, (host, 0))
    return conn


def test_max_lanes_takes_what_is_kept_open_for_the_proofs_of_idle_clients(farm):
    redis = farm.redis()
    names = [f"o{n}" for n in range(4)]
    for name in names:
        redis.call("ACL", "SETUSER", name, "on", ">pw", "~*", "+@all")
    redis.call("ACL", "SETUSER", "default", "resetkeys")
    weir = farm.weir(redis, workers=1, max_lanes=4, env={"WEIR_HURRY": "10"})
    conns = [connect_from(weir, f"127.0.0.{n + 2}") for n in range(len(names))]
    for conn, name in zip(conns, names):
        assert conn.call("AUTH", name, "pw") == "OK"
        wait_until(lambda conn=conn: conn.call("PING") == "PONG", f"{name} is served")
    assert [conn.call("PING") for conn in conns[3:]] == ["PONG"]
    wait_until(lambda: conns[0].call("PING") == "PONG", "the first is proven again")
    for conn in conns:
        conn.close()
