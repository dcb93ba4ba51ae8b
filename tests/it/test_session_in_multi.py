"""What a transaction does to its client's session: it is known afterwards, or the client is closed; never guessed."""

import pytest
from kit.resp import Closed, encode
from kit.server import at_least


@pytest.fixture
def farm_with_users(farm):
    redis = farm.redis()
    redis.call("ACL", "SETUSER", "tenant", "on", ">pw", "~*", "&*", "+@all")
    return farm.weir(redis, workers=1), redis


def transaction(conn, *commands):
    """What EXEC answers."""
    conn.send(encode("MULTI") + b"".join(encode(*command) for command in commands) + encode("EXEC"))
    return [conn.read() for _ in range(len(commands) + 2)][-1]


def is_ended(conn):
    try:
        while True:
            conn.call("PING")
    except (Closed, ConnectionError):
        return True


@pytest.mark.parametrize("is_back", [False, True])
def test_hello_in_a_transaction_says_how_limit_answers(farm_with_users, is_back):
    weir, _ = farm_with_users
    with weir.connect() as conn:
        if is_back:
            conn.call("HELLO", 3)
        transaction(conn, ["HELLO", 2 if is_back else 3])
        conn.send(encode("LIMIT", "FUNNEL", "k", "3/s") + encode("GET", "none"))
        assert isinstance(conn.read(), list if is_back else dict)
        assert conn.read() is None


def test_a_hello_that_is_discarded_says_nothing(farm_with_users):
    weir, _ = farm_with_users
    with weir.connect() as conn:
        conn.send(encode("MULTI") + encode("HELLO", 3) + encode("DISCARD") + encode("LIMIT", "FUNNEL", "k", "3/s"))
        assert [conn.read() for _ in range(3)] == ["OK", "QUEUED", "OK"]
        assert isinstance(conn.read(), list)
        assert "EXECABORT" in transaction(conn, ["HELLO", 3], ["NOSUCH"])
        assert isinstance(conn.call("LIMIT", "FUNNEL", "k", "3/s"), list)


def test_a_subscriber_that_says_hello_in_a_transaction_is_answered(farm_with_users):
    """An array that begins as a message does is an answer in RESP3, whoever has said HELLO again."""
    weir, _ = farm_with_users
    with weir.connect() as conn:
        conn.call("HELLO", 3)
        conn.call("SUBSCRIBE", "ch")
        transaction(conn, ["HELLO", 3])
        assert conn.call("EVAL", "return {'message', 'a', 'b'}", 0) == [b"message", b"a", b"b"]


def test_who_logs_in_in_a_transaction_is_in_the_database_that_it_chose(farm_with_users):
    weir, redis = farm_with_users
    with weir.connect() as conn:
        assert transaction(conn, ["SELECT", 1], ["AUTH", "tenant", "pw"]) == ["OK", "OK"]
        assert conn.call("SET", "where", "here") == "OK"
        assert conn.call("ACL", "WHOAMI") == b"tenant"
    assert redis.call("GET", "where") is None


def test_a_tracker_that_logs_in_in_a_transaction_tracks_on(farm_with_users):
    weir, redis = farm_with_users
    with weir.connect() as conn:
        conn.call("HELLO", 3)
        conn.call("CLIENT", "TRACKING", "ON")
        conn.call("GET", "k")
        assert transaction(conn, ["AUTH", "tenant", "pw"], ["PING"]) == ["OK", "PONG"]
        assert conn.call("ACL", "WHOAMI") == b"tenant"
        redis.call("SET", "k", "new")
        assert conn.read() == [b"invalidate", [b"k"]]


def test_a_subscriber_that_logs_in_in_a_transaction_hears_on(farm_with_users):
    weir, redis = farm_with_users
    with weir.connect() as conn:
        conn.call("HELLO", 3)
        conn.call("SUBSCRIBE", "ch")
        assert transaction(conn, ["AUTH", "tenant", "pw"]) == ["OK"]
        redis.call("PUBLISH", "ch", "news")
        assert conn.read() == [b"message", b"ch", b"news"]
        assert conn.call("ACL", "WHOAMI") == b"tenant"


@pytest.mark.parametrize("first", [["SUBSCRIBE", "ch"], ["CLIENT", "TRACKING", "ON"]], ids=["subscriber", "tracker"])
def test_who_did_not_log_in_in_a_transaction_does_not_wait_for_what_never_comes(farm_with_users, first):
    weir, _ = farm_with_users
    with weir.connect() as conn:
        conn.call("HELLO", 3)
        conn.call(*first)
        transaction(conn, ["AUTH", "tenant", "pw"], ["NOSUCH"])
        assert is_ended(conn)


def test_who_logs_in_in_a_transaction_goes_on_as_that_user(farm_with_users):
    weir, _ = farm_with_users
    with weir.connect() as conn:
        assert transaction(conn, ["AUTH", "tenant", "pw"]) == ["OK"]
        assert conn.call("ACL", "WHOAMI") == b"tenant"
        assert transaction(conn, ["HELLO", 3], ["AUTH", "tenant", "pw"])[1] == "OK"
        assert isinstance(conn.call("LIMIT", "FUNNEL", "k", "3/s"), dict)
        assert isinstance(conn.call("HELLO"), dict)


def test_a_login_in_multi_right_behind_a_subscription_s_end(farm_with_users):
    """The MULTI that a subscriber was refused says nothing of the one that follows, nor whether it still subscribes."""
    weir, _ = farm_with_users
    with weir.connect() as conn:
        for login in ("AUTH tenant pw", "HELLO 2 AUTH tenant pw"):
            replies = conn.ask("SUBSCRIBE ch", "MULTI", "UNSUBSCRIBE", "MULTI", login, "EXEC", "ACL WHOAMI", "RESET")
            assert replies[1].startswith("ERR Can't execute 'multi'") and replies[3:5] == ["OK", "QUEUED"]
            assert replies[6:] == [b"tenant", "RESET"]


# ---- what EXEC refuses ----

OTHERS = ["ACL SETUSER tenant on >pw ~* &* +@all", "ACL SETUSER nameless on >pw ~* &* +@all -client|setname"]
REFUSED = {
    "a user that is off for a while, in HELLO": ("ACL SETUSER tenant off | HELLO 3 AUTH tenant pw SETNAME x | ACL SETUSER tenant on", b"default", None),
    "a name beside it": ("ACL SETUSER tenant off | CLIENT SETNAME x | AUTH tenant pw | ACL SETUSER tenant on", b"default", b"x"),
    "a good one, then a wrong one": ("AUTH tenant pw | AUTH other wrong", b"tenant", None),
    "a wrong one, then a good one": ("AUTH other wrong | HELLO 2 AUTH tenant pw", b"tenant", None),
    "a user that is off for a while": ("ACL SETUSER tenant off | AUTH tenant pw | ACL SETUSER tenant on", b"default", None),
    "a name that is denied": ("AUTH nameless pw | CLIENT SETNAME x", b"nameless", None),
    "a name before that": ("CLIENT SETNAME x | AUTH nameless pw | CLIENT SETNAME y", b"nameless", b"x"),
}  # fmt: skip


def gist(answer):
    """HELLO's names the connection."""
    return type(answer) if isinstance(answer, (list, dict)) else str(answer)


@pytest.mark.parametrize("lanes", ["shared", "private"])
@pytest.mark.parametrize("case", REFUSED)
def test_of_a_session_in_a_transaction_what_redis_refuses_has_no_effect(farm, case, lanes):
    commands, user, name = REFUSED[case]
    if at_least(7, 2) and user != b"nameless":
        pytest.skip("this server leaves the refusal of a login out of what EXEC answers")
    if not at_least(7) and user == b"nameless":
        pytest.skip("this server takes no subcommand away")
    redis = farm.redis()
    for other in OTHERS:
        redis.call(*other.split())
    weir = farm.weir(redis, workers=1, lanes=lanes, identity="user", sections="[policy t]\nmatch = user:tenant\ncmd.strlen = deny\n")
    with weir.connect() as conn, redis.connect() as direct:
        asked = [command.split() for command in commands.split(" | ")]
        expected = transaction(direct, *asked)
        assert list(map(gist, transaction(conn, *asked))) == list(map(gist, expected))
        assert conn.call("ACL", "WHOAMI") == direct.call("ACL", "WHOAMI") == user
        assert conn.call("CLIENT", "GETNAME") == direct.call("CLIENT", "GETNAME") == name
        limited = conn.call("STRLEN", "a")
        assert ("denied by policy t" in str(limited)) == (user == b"tenant")
        assert type(conn.call("LIMIT", "FUNNEL", "k", "3/s")) is list
        assert conn.call("ACL", "WHOAMI") == user



@pytest.mark.parametrize("login", [["AUTH", "tenant", "wrong"], ["HELLO", 3, "AUTH", "tenant", "wrong", "SETNAME", "x"]], ids=["AUTH", "HELLO"])
def test_a_wrong_password_in_a_transaction_ends_the_client(farm_with_users, login):
    weir, _ = farm_with_users
    with weir.connect() as conn:
        conn.send(encode("MULTI") + encode(*login) + encode("EXEC"))
        assert [conn.read() for _ in range(2)] == ["OK", "QUEUED"]
        assert is_ended(conn)


# ---- the database ----


@pytest.fixture
def raw(farm, redis):
    """CL.THROTTLE with the raw key shows in which database weir takes its client to be."""
    redis.call("ACL", "SETUSER", "tenant", "on", ">pw", "~*", "&*", "+@all")
    redis.call("ACL", "SETUSER", "chained", "on", ">pw", "~*", "&*", "+@all", "-select")
    return farm.weir(redis, workers=1, cl_throttle="raw")


def throttled_in(conn, redis):
    """The database of its next CL.THROTTLE."""
    conn.call("CL.THROTTLE", "raw:k", 5, 10, 60)
    with redis.connect() as direct:
        for database in range(16):
            direct.call("SELECT", database)
            if direct.call("DEL", "raw:k"):
                return database
    return None


TRANSACTIONS = {
    "one": ("SELECT 3", 3),
    "among others": ("SET a 1 | GET a | SELECT 3 | GET a | PING", 3),
    "the last": ("SELECT 3 | SELECT 4 | GET a | SELECT 5", 5),
    "back": ("SELECT 3 | SELECT 0", 0),
    "the last good one": ("SELECT 3 | SELECT 99 | SELECT 4 | SELECT -1 | SELECT x", 4),
    "none that is good": ("SELECT 99 | SELECT x", 2),
    "behind arrays, nulls and errors": (
        "GET none | LRANGE l 0 -1 | INCR l | HGETALL h | EVAL 'return {1,{2,{3}},false}' 0 | CONFIG GET max* | SELECT 3 | GET none",
        3,
    ),
    "behind much": ("GET big | SELECT 3 | GET big", 3),
    "what says OK all the same": ("SET a 1 | SELECT 99 | SET a 2", 2),
    "many": (" | ".join(["SELECT 3", "GET a"] * 100 + ["SELECT 7"]), 7),
    "as another user": ("SELECT 3 | AUTH tenant pw", 3),
    "before, as another user": ("AUTH tenant pw | SELECT 3", 3),
    "by whom may not": ("AUTH chained pw | SELECT 3", 2),
    "and another protocol": ("HELLO 3 | HGETALL h | SELECT 3", 3),
    "and a name": ("CLIENT SETNAME me | SELECT 3", 3),
}


@pytest.mark.parametrize("name", TRANSACTIONS)
@pytest.mark.parametrize("is_at_once", [False, True], ids=["steps", "at once"])
def test_a_select_in_a_transaction(raw, redis, name, is_at_once):
    commands, database = TRANSACTIONS[name]
    commands = ["MULTI", *commands.split(" | "), "EXEC"]
    with raw.connect() as conn:
        conn.ask("SELECT 2", "RPUSH l 1 2", "HSET h f v", f"SET big {'v' * 200000}")
        if is_at_once:
            conn.ask(*commands)
        else:
            for command in commands:
                conn.ask(command)
        assert throttled_in(conn, redis) == database
        assert b" db=%d " % database in conn.call("CLIENT", "INFO")
        conn.call("SET", "where", "here")
        with redis.connect() as direct:
            direct.call("SELECT", database)
            assert direct.call("GET", "where") == b"here"


@pytest.mark.parametrize(
    "end", ["DISCARD", "NOSUCH | EXEC", "WATCHED | EXEC", "RESET | SELECT 2"], ids=["discarded", "aborted", "watched", "reset"]
)
def test_a_select_that_is_not_carried_out(raw, redis, end):
    with raw.connect() as conn:
        conn.ask("SELECT 2", "WATCH w", "MULTI", "SELECT 3")
        for command in end.split(" | "):
            if command == "WATCHED":
                with redis.connect() as direct:
                    direct.ask("SELECT 2", "SET w 1")
            else:
                conn.ask(command)
        assert throttled_in(conn, redis) == 2


def test_a_select_in_the_transaction_behind(raw, redis):
    """What the one before has queued is counted apart, though its answer is not here yet."""
    with raw.connect() as conn:
        conn.ask("SELECT 2", "MULTI", "SET a 1", "SET b 1", "EXEC", "MULTI", "SET a 1", "SELECT 3", "GET a", "EXEC", "MULTI", "EXEC")
        assert throttled_in(conn, redis) == 3


def test_more_selects_than_weir_looks_at(raw, redis):
    """The last eight are: if none of them is good, and others came before, nobody knows, and nobody guesses."""
    with raw.connect() as conn:
        assert transaction(conn, ["SELECT", 3], *[["SELECT", 99]] * 7)[0] == "OK"
        assert throttled_in(conn, redis) == 3
        assert len(transaction(conn, ["SELECT", 4], *[["SELECT", 99]] * 8)) == 9
        assert is_ended(conn)


@pytest.mark.parametrize("name", ["me", ""])
def test_a_name_in_a_transaction_is_known(farm, redis, name):
    weir = farm.weir(redis, workers=1, identity="name, ip", sections="[policy default]\nall = 100000/s\n")
    with weir.connect() as conn:
        conn.call("CLIENT", "SETNAME", "before")
        assert transaction(conn, ["CLIENT", "SETNAME", name], ["CLIENT", "SETNAME", "not one"])[0] == "OK"
        assert conn.call("LIMIT", "STATUS")[1] == (b"name:me" if name else b"ip:127.0.0.1")
        transaction(conn, ["CLIENT", "SETNAME", "other"], ["NOSUCH"])
        assert conn.call("LIMIT", "STATUS")[1] == (b"name:me" if name else b"ip:127.0.0.1")
        assert conn.call("CLIENT", "GETNAME") == (b"me" if name else None)
