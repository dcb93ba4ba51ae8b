"""What a transaction does to its client's session: it is known afterwards, or the client is closed; never guessed."""

import pytest
from resp import Closed, encode



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
