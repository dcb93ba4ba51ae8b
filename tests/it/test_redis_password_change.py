"""A password is set or removed while weir runs. Clients from before stay connected; new clients
must know the new password.
"""

import pytest
from kit.harness import wait_until
from kit.resp import Closed, Error, encode
from kit.server import at_least

LANES = ["shared", "private"]
MANY = 12  # clients: enough for several on each worker
WIDE = ["MSET", *[f"k{i}" for i in range(24)]]  # more arguments than Redis accepts before a login
EVERYTHING = ("reset", "on", "nopass", "~*", "&*", "+@all")


@pytest.fixture
def redis(farm):
    redis = farm.redis()
    redis.call("ACL", "SETUSER", "admin", *EVERYTHING)
    return redis


@pytest.fixture
def weir(farm, redis):
    return farm.weir(redis, workers=2)


def as_admin(server):
    conn = server.connect()
    assert conn.call("AUTH", "admin", "") == "OK"
    return conn


def by_config(conn):
    assert conn.call("CONFIG", "SET", "requirepass", "word") == "OK"


def by_config_among_others(conn):
    # before 7.0 CONFIG SET takes one parameter
    other = ["maxmemory-samples", 6] if at_least(7, 0) else []
    assert conn.call("config", "set", *other, "RequirePass", "word") == "OK"


def by_acl(conn):
    assert conn.call("ACL", "SETUSER", "default", "resetpass", ">word") == "OK"


def by_transaction(conn):
    queued = conn.ask("MULTI", "CONFIG SET requirepass word", "SET k v", "EXEC")
    assert queued == ["OK", "QUEUED", "QUEUED", ["OK", "OK"]]


def by_silence(conn):
    conn.send(encode("CLIENT", "REPLY", "SKIP") + encode("CONFIG", "SET", "requirepass", "word"))
    assert conn.call("PING") == "PONG"


def crowd(weir, first="PING"):
    conns = [weir.connect() for _ in range(MANY)]
    return conns, [conn.call(*first.split()) for conn in conns]


def is_noauth(reply):
    return isinstance(reply, Error) and str(reply).startswith("NOAUTH")


def all_are_judged(weir):
    """New clients get NOAUTH for any command, and can log in."""
    for first in ("GET k", "HELLO 3", "MULTI", "SELECT 1", "EVAL return{} 0", "CLIENT GETNAME"):
        conns, heard = crowd(weir, first)
        assert all(map(is_noauth, heard)), (first, heard)
        for conn in conns:
            assert conn.ask("AUTH word", "SET k v", "MULTI", "GET k", "EXEC") == ["OK", "OK", "OK", "QUEUED", [b"v"]]
            conn.close()


def all_are_served(weir):
    conns, heard = crowd(weir, "GET k")
    for conn in conns:
        conn.close()
    return not any(map(is_noauth, heard))


@pytest.mark.parametrize("who", ["anonymous", "admin"])
@pytest.mark.parametrize("change", [by_config, by_config_among_others, by_acl, by_transaction, by_silence])
def test_a_password_set_through_weir_holds_at_once(change, who, weir):
    old, heard = crowd(weir)
    assert heard == ["PONG"] * MANY
    for conn in old:
        assert conn.ask("MULTI", "EXEC") == ["OK", []], "lanes that will be idle have been let in"
    with weir.connect() if who == "anonymous" else as_admin(weir) as conn:
        change(conn)
    all_are_judged(weir)
    for _ in range(2):
        for conn in old:
            assert conn.call("SET", "k", "v") == "OK" and conn.call(*WIDE) == "OK"
            assert conn.call("CLIENT", "GETNAME") is None
    for conn in old:
        conn.close()
    all_are_judged(weir)


def test_a_password_set_behind_weirs_back_holds_soon(weir, redis):
    old, _ = crowd(weir)
    by_config(as_admin(redis))
    wait_until(lambda: not all_are_served(weir), "newcomers are judged", 3)
    all_are_judged(weir)
    for conn in old:
        assert conn.call("SET", "k", "v") == "OK" and conn.call(*WIDE) == "OK"


@pytest.mark.parametrize("lanes", LANES)
def test_who_hears_nothing_and_is_let_in_no_more_is_closed(lanes, farm, redis):
    """The client's connection to Redis is gone. A new one needs the password. With CLIENT REPLY OFF
    the client would not see that error, nor a reply to CLIENT REPLY ON.
    """
    weir = farm.weir(redis, workers=1, lanes=lanes)
    deaf = weir.connect()
    deaf.send(encode("CLIENT", "REPLY", "OFF") + encode("SET", "deaf", "v"))
    secret = as_admin(redis)
    wait_until(lambda: secret.call("GET", "deaf") == b"v", "it is silent, and served")
    by_config(secret)
    secret.call("CLIENT", "KILL", "TYPE", "normal")
    wait_until(lambda: all(map(is_noauth, crowd(weir, "GET k")[1])), "newcomers are judged", 3)
    with pytest.raises((Closed, ConnectionError)):
        deaf.send(encode("SET", "deaf", "w") + encode("CLIENT", "REPLY", "ON"))
        deaf.read()
    assert secret.call("GET", "deaf") == b"v"


@pytest.mark.parametrize("behind", [False, True])
def test_a_password_removed(behind, weir, redis):
    by_config(as_admin(weir))
    all_are_judged(weir)
    strangers, heard = crowd(weir)
    assert all(map(is_noauth, heard))
    with as_admin(redis if behind else weir) as admin:
        assert admin.call("CONFIG", "SET", "requirepass", "") == "OK"
    assert all_are_served(weir)
    for conn in strangers:
        assert conn.call("SET", "k", "v") == "OK", "as in Redis"

    def reads_wide():
        with weir.connect() as conn:
            assert conn.call("GET", "k") == b"v"
            try:
                return conn.call(*WIDE) == "OK"
            except Closed:
                return False

    wait_until(reads_wide, "what was true of strangers is so no more", 3)
    by_acl(as_admin(redis if behind else weir))
    wait_until(lambda: not all_are_served(weir), "newcomers are judged again", 3 if behind else 0.5)
    all_are_judged(weir)


@pytest.mark.parametrize("lanes", LANES)
def test_who_says_nothing_but_limit_is_judged_too(lanes, farm, redis):
    """LIMIT uses no connection of the client's, so Redis cannot say which user the client is."""
    weir = farm.weir(redis, workers=2, lanes=lanes)

    def heard():
        conns, heard = crowd(weir, "LIMIT FUNNEL k 1000000/s")
        for conn in conns:
            conn.close()
        return heard

    secret = as_admin(redis)
    assert not any(map(is_noauth, heard()))
    by_config(secret)
    wait_until(lambda: all(map(is_noauth, heard())), "newcomers are judged", 3)
    old, _ = crowd(weir, "LIMIT FUNNEL k 1000000/s")
    assert secret.call("CONFIG", "SET", "requirepass", "") == "OK"
    wait_until(lambda: not any(map(is_noauth, heard())), "no password is wanted any more", 3)
    for conn in old:
        assert not is_noauth(conn.call("LIMIT", "FUNNEL", "k", "1000000/s")), "nor of those who came before"


def test_many_changes_cost_nobody_anything(weir):
    old, _ = crowd(weir)
    with as_admin(weir) as admin:
        for _ in range(30):
            by_config(admin)
            assert is_noauth(crowd(weir)[1][0])
            assert admin.call("CONFIG", "SET", "requirepass", "") == "OK"
            assert all_are_served(weir)
            for conn in old:
                assert conn.call("SET", "k", "v") == "OK"


def test_what_concerns_no_password_opens_no_lanes(weir, redis):
    def lanes():
        return redis.call("CLIENT", "LIST").decode().count("\n")

    assert all_are_served(weir)
    wait_until(lambda: lanes() <= 5, "the way in is closed again")
    with weir.connect() as conn:
        for i in range(50):
            assert conn.call("CONFIG", "SET", "maxmemory-samples", 5 + i % 2) == "OK"
            assert conn.call("ACL", "SETUSER", "joe", "on") == "OK"
            with weir.connect() as other:
                assert other.call("PING") == "PONG"
    assert lanes() <= 8


@pytest.mark.parametrize("lanes", LANES)
def test_reset_makes_a_newcomer(lanes, farm, redis):
    weir = farm.weir(redis, workers=2, lanes=lanes)
    with weir.connect() as conn, weir.connect() as other:
        assert conn.call("WATCH", "k") == "OK" and other.call("PING") == "PONG"
        by_config(other)
        assert conn.call("GET", "k") is None
        assert conn.call("RESET") == other.call("RESET") == "RESET"
        assert is_noauth(conn.call("GET", "k")) and is_noauth(other.call("GET", "k"))
        assert conn.ask("AUTH word", "GET k") == ["OK", None]


@pytest.mark.parametrize("lanes", LANES)
def test_a_deleted_user_without_a_lane_is_out(lanes, farm, redis):
    """CLIENT UNPAUSE in a database other than 0 leaves its client without a lane."""
    redis.call("ACL", "SETUSER", "joe", *EVERYTHING)
    weir = farm.weir(redis, workers=1, lanes=lanes)
    with weir.connect() as joe:
        assert joe.ask("AUTH joe x", "SELECT 3", "CLIENT UNPAUSE") == ["OK"] * 3
        with as_admin(weir) as admin:
            assert admin.call("ACL", "DELUSER", "joe") == 1
        try:
            joe.send(encode("GET", "k"))
            assert joe.read_to_end() == b""
        except (Closed, OSError):
            pass


def test_who_came_before_keeps_a_lane_through_hard_times(farm, redis):
    """No second lane of the clients' kind can be opened now. Neither a huge reply nor a hanging
    Redis may close the present lane.
    """
    weir = farm.weir(redis, workers=1)
    with weir.connect() as a, weir.connect() as b, as_admin(redis) as admin:
        assert admin.call("SET", "huge", "x" * 2_000_000) == "OK"
        assert a.call("SET", "k", "v") == b.call("SET", "k", "v") == "OK"
        by_config(admin)
        wait_until(lambda: not all_are_served(weir), "newcomers are judged", 3)
        for conn in (a, b):
            conn.send(encode("GET", "huge") + encode("GET", "k"))
        for conn in (a, b):
            assert len(conn.read()) == 2_000_000 and conn.read() == b"v"
        admin.send(encode("DEBUG", "SLEEP", 0.2))
        for _ in range(2):
            b.send(encode("GET", "k"))
            assert a.call("GET", "k") == b"v" == b.read()
        assert admin.read() == "OK"
        all_are_judged(weir)


@pytest.fixture
def before(farm, redis):
    """A weir, and four clients that connected before the password was set."""
    weir = farm.weir(redis, workers=1)
    assert redis.call("SET", "huge", "x" * 2_000_000) == redis.call("SET", "k", "v") == "OK"
    conns = [weir.connect() for _ in range(4)]
    assert [conn.call("PING") for conn in conns] == ["PONG"] * 4
    return weir, conns


def judged_from_now_on(weir, redis):
    by_config(as_admin(redis))
    wait_until(lambda: not all_are_served(weir), "newcomers are judged", 3)


def n_lanes(redis):
    with as_admin(redis) as admin:
        return len(admin.call("CLIENT", "LIST").splitlines())


@pytest.mark.parametrize("is_huge_before", [False, True])
def test_a_first_read_goes_where_its_like_were_let_in(is_huge_before, before, redis):
    """First reads after huge values use a separate lane. The separate lane must be from before the
    password.
    """
    weir, (a, b, c, _) = before
    if is_huge_before:
        assert len(a.call("GET", "huge")) == 2_000_000
    judged_from_now_on(weir, redis)
    for conn in (a, b):
        assert len(conn.call("GET", "huge")) == 2_000_000
        wait_until(lambda: n_lanes(redis) > 1 and b.call("GET", "k") == b"v", "other lanes have been opened by now")
    for conn in (c, a, b, c):
        for _ in range(50):
            assert conn.call("GET", "k") == b"v"


def test_who_does_not_read_is_not_waited_for_by_who_came_before(before, redis):
    weir, (silent, *others) = before
    judged_from_now_on(weir, redis)
    assert others[0].call("SET", "giant", "x" * 1000) == "OK"
    with as_admin(redis) as admin:
        assert admin.call("SET", "giant", "x" * 100_000_000) == "OK"
    silent.send(encode("GET", "giant") * 2)
    for _ in range(3):
        for conn in others:
            conn.send(encode("GET", "k") + encode("SET", "mine", b"x"))
        for conn in others:
            assert conn.read() == b"v" and conn.read() == "OK"
    with pytest.raises((Closed, OSError)):
        silent.read()


def test_a_pause_of_writes_holds_who_came_before(before, redis):
    weir, (a, b, c, d) = before
    judged_from_now_on(weir, redis)
    with as_admin(weir) as admin:
        assert admin.call("CLIENT", "PAUSE", "60000", "WRITE") == "OK"
        for conn in (a, b):
            conn.send(encode("SET", "k", "w"))
        for _ in range(3):
            assert c.call("GET", "k") == d.call("GET", "k") == b"v"
        assert admin.call("CLIENT", "UNPAUSE") == "OK"
    assert a.read() == b.read() == "OK"


def test_a_long_pipeline_of_who_came_before(before, redis):
    weir, (a, b, *_) = before
    judged_from_now_on(weir, redis)
    n = 20_000
    a.send(encode("SET", "k", "v" * 50) * n)
    assert [a.read() for _ in range(n)] == ["OK"] * n
    assert b.call("GET", "k") == b"v" * 50 == a.call("GET", "k")


@pytest.mark.parametrize("hard", ["huge", "sleep"])
def test_a_password_set_in_hard_times(hard, before, redis):
    """One lane is silent or full, so weir opens further lanes. New lanes need a password that weir
    does not know about yet.
    """
    weir, conns = before
    with as_admin(redis) as admin:
        by_config(admin)
        for conn in conns:
            conn.send(encode("GET", "huge") if hard == "huge" else b"")
        admin.send(encode("DEBUG", "SLEEP", 0.1) if hard == "sleep" else b"")
        for conn in conns:
            assert hard == "sleep" or len(conn.read()) == 2_000_000
        for _ in range(200):
            for conn in conns:
                conn.send(encode("GET", "k"))
            for conn in conns:
                assert conn.read() == b"v"
        assert hard == "huge" or admin.read() == "OK"
    wait_until(lambda: not all_are_served(weir), "newcomers are judged", 3)
    all_are_judged(weir)
