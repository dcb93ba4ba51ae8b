"""Session changes inside a transaction: weir does not track them. weir refuses a change, or pins
the client to its lane.
"""

import pytest
from kit.harness import wait_until
from kit.resp import Closed, encode


@pytest.fixture
def farm_with_users(farm):
    redis = farm.redis()
    redis.call("ACL", "SETUSER", "tenant", "on", ">pw", "~*", "&*", "+@all")
    return farm.weir(redis, workers=1), redis


def transaction(conn, *commands):
    """Returns the reply to EXEC."""
    conn.send(encode("MULTI") + b"".join(encode(*command) for command in commands) + encode("EXEC"))
    return [conn.read() for _ in range(len(commands) + 2)][-1]


def lane_of(conn):
    """Returns the id of the lane that carries its commands. HELLO pins nothing outside MULTI."""
    answer = conn.call("HELLO")
    answer = answer if isinstance(answer, dict) else dict(zip(answer[::2], answer[1::2]))
    return answer[b"id"]


def is_ended(conn):
    try:
        while True:
            conn.call("PING")
    except (Closed, ConnectionError):
        return True


@pytest.fixture
def tenant(redis):
    """A user of the shared Redis, with the password pw."""
    redis.call("ACL", "SETUSER", "tenant", "on", ">pw", "~*", "&*", "+@all")
    yield
    redis.call("ACL", "DELUSER", "tenant")


# ---- refused ----

REFUSED = {
    "AUTH": ("AUTH tenant pw", "ERR AUTH is not allowed inside MULTI: log in before MULTI"),
    "AUTH of default": ("AUTH pw", "ERR AUTH is not allowed inside MULTI: log in before MULTI"),
    "HELLO with a login": ("HELLO 2 AUTH tenant pw", "ERR HELLO with AUTH is not allowed inside MULTI: log in before MULTI"),
    "another protocol": ("HELLO 3", "ERR HELLO cannot change the protocol inside MULTI: send HELLO before MULTI"),
    "another protocol, and a name": ("HELLO 3 SETNAME x", "ERR HELLO cannot change the protocol inside MULTI: send HELLO before MULTI"),
    "no protocol": ("HELLO x", "ERR HELLO inside MULTI has wrong arguments"),
    "an option too few": ("HELLO 2 AUTH tenant", "ERR HELLO inside MULTI has wrong arguments"),
}


@pytest.mark.parametrize("lanes", ["shared", "private"])
@pytest.mark.parametrize("how", ["steps", "at once"])
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_voids_the_transaction(kept, tenant, case, how, lanes):
    command, error = REFUSED[case]
    with kept(workers=1, lanes=lanes).connect() as conn:
        asked = ["MULTI", "SET k v", command, "EXEC"]
        replies = conn.ask(*asked) if how == "at once" else [conn.ask(one)[0] for one in asked]
        assert replies[:2] == ["OK", "QUEUED"] and str(replies[2]) == error and "EXECABORT" in replies[3]
        assert conn.ask("GET k", "ACL WHOAMI", "CLIENT GETNAME") == [None, b"default", None]
        assert type(conn.call("LIMIT", "FUNNEL", "k", "3/s")) is list
        assert [str(reply) for reply in conn.ask("MULTI", command, "DISCARD", "GET k")] == ["OK", error, "OK", "None"]


def test_back_to_the_older_protocol_is_refused(farm_with_users):
    weir, _ = farm_with_users
    with weir.connect() as conn:
        conn.call("HELLO", 3)
        assert "EXECABORT" in transaction(conn, ["HELLO", 2])
        assert isinstance(conn.call("LIMIT", "FUNNEL", "k", "3/s"), dict)


def test_a_refused_login_is_no_attempt(farm):
    """Redis is not asked: passwords cannot be guessed that way, and no client is locked out."""
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, sections="[policy default]\nauth-failures = 1/1h\n")
    with weir.connect() as conn:
        for _ in range(3):
            assert "EXECABORT" in transaction(conn, ["AUTH", "default", "wrong"])
        assert conn.call("PING") == "PONG"


def test_a_login_in_multi_right_behind_a_subscription_s_end(farm_with_users):
    """The subscriber's refused MULTI has no effect on the next MULTI, nor on the state of the
    subscription.
    """
    weir, _ = farm_with_users
    with weir.connect() as conn:
        for login in ("AUTH tenant pw", "HELLO 2 AUTH tenant pw"):
            replies = conn.ask("SUBSCRIBE ch", "MULTI", "UNSUBSCRIBE", "MULTI", login, "EXEC", "ACL WHOAMI", "RESET")
            assert replies[1].startswith("ERR Can't execute 'multi'") and replies[3] == "OK"
            assert "not allowed inside MULTI" in replies[4] and "EXECABORT" in replies[5]
            assert replies[6:] == [b"default", "RESET"]


# ---- pins ----

PINS = {
    "SELECT": "SELECT 3",
    "HELLO": "HELLO 2",
    "HELLO, and a name": "HELLO 2 SETNAME me",
    "HELLO alone": "HELLO",
    "CLIENT SETNAME": "CLIENT SETNAME me",
    "CLIENT SETINFO": "CLIENT SETINFO LIB-NAME mine",
    "CLIENT TRACKING": "CLIENT TRACKING ON BCAST PREFIX none REDIRECT 0",
    "CLIENT NO-EVICT": "CLIENT NO-EVICT ON",
    "CLIENT NO-TOUCH": "CLIENT NO-TOUCH ON",
    "CLIENT ID": "CLIENT ID",
}


@pytest.mark.parametrize("end", ["EXEC", "DISCARD"])
@pytest.mark.parametrize("case", PINS)
def test_what_is_not_followed_pins(kept, redis, tenant, case, end):
    """Until the client closes; RESET does not end the pin. Limits, LIMIT and weir's own replies go
    on.
    """
    weir = kept(workers=1)
    with weir.connect() as conn, weir.connect() as other:
        conn.ask("MULTI", "SET k v", PINS[case], end)
        lane = lane_of(conn)
        assert lane != lane_of(other)
        assert conn.ask("GET none", "LIMIT FUNNEL a 3/s", "GET none")[::2] == [None, None]
        assert conn.call("RESET") == "RESET"
        assert conn.ask("CLIENT GETNAME", "ACL WHOAMI") == [None, b"default"]
        assert lane_of(conn) == lane
        assert conn.ask("AUTH tenant pw", "ACL WHOAMI") == ["OK", b"tenant"]
        assert conn.ask("RESET", "ACL WHOAMI", "SET where here") == ["RESET", b"default", "OK"]
        assert lane_of(conn) == lane and other.call("GET", "where") == b"here"


def test_who_has_nothing_pinned_has_no_lane_of_its_own(farm_with_users):
    weir, _ = farm_with_users
    with weir.connect() as conn, weir.connect() as other:
        transaction(conn, ["SET", "k", "v"], ["GET", "k"])
        wait_until(lambda: lane_of(conn) == lane_of(other), "both share a lane")


def test_a_pin_counts_as_a_lane(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, max_lanes=4)
    conns = [weir.connect() for _ in range(4)]
    answers = [conn.ask("MULTI", "CLIENT SETNAME me", "EXEC")[-1] for conn in conns]
    assert any("UPSTREAM" in str(answer) or "EXECABORT" in str(answer) for answer in answers)
    for conn in conns:
        conn.close()
    with weir.connect() as conn:
        wait_until(lambda: conn.ask("MULTI", "PING", "EXEC")[-1] == ["PONG"], "their lanes are free again")


def test_limits_hold_for_who_is_pinned(farm):
    weir = farm.weir(farm.redis(), workers=1, sections="[policy default]\ncmd.strlen = deny\n")
    with weir.connect() as conn:
        assert transaction(conn, ["CLIENT", "SETNAME", "me"]) == ["OK"]
        for _ in range(3):
            replies = conn.ask("SET a b", "STRLEN a", "GET a", "MULTI", "STRLEN a", "EXEC")
            assert replies[:3:2] == ["OK", b"b"] and "denied by policy" in replies[1] and "EXECABORT" in replies[5]


def test_a_tracker_tracks(farm_with_users):
    weir, redis = farm_with_users
    with weir.connect() as conn:
        conn.call("HELLO", 3)
        assert transaction(conn, ["CLIENT", "TRACKING", "ON"], ["PING"]) == ["OK", "PONG"]
        conn.call("GET", "k")
        redis.call("SET", "k", "new")
        assert conn.read() == [b"invalidate", [b"k"]]


def test_a_subscriber_that_says_hello_in_a_transaction_is_answered(farm_with_users):
    """In RESP3 an array that begins like a message is a reply, also after another HELLO."""
    weir, redis = farm_with_users
    with weir.connect() as conn:
        conn.call("HELLO", 3)
        conn.call("SUBSCRIBE", "ch")
        assert isinstance(transaction(conn, ["HELLO", 3])[0], dict)
        assert conn.call("EVAL", "return {'message', 'a', 'b'}", 0) == [b"message", b"a", b"b"]
        redis.call("PUBLISH", "ch", "news")
        assert conn.read() == [b"message", b"ch", b"news"]
        assert conn.call("RESET") == "RESET"
        redis.call("PUBLISH", "ch", "news")
        assert conn.call("PING") == "PONG"


def test_a_reset_that_a_script_forges_is_not_believed(farm_with_users):
    """Redis 7.0 passes on line ends in a script's reply: a pinned client keeps its lane, or is
    closed.
    """
    weir, _ = farm_with_users
    for forged in ("RESET", "RESET\\r\\n+RESET", "x\\r\\n+RESET", "x\\r\\n+RESET\\r\\n+RESET"):
        with weir.connect() as conn:
            conn.ask("AUTH tenant pw", "MULTI", "CLIENT SETNAME me", "EXEC")
            try:
                conn.send(encode("EVAL", f"return {{ok='{forged}'}}", 0) + encode("RESET") + encode("ACL", "WHOAMI"))
                while conn.read() != b"default":
                    pass
            except (Closed, ConnectionError):
                pass


# ---- CLIENT REPLY OFF ----


@pytest.mark.parametrize("command", ["SUBSCRIBE c", "UNSUBSCRIBE", "MONITOR", "CLIENT REPLY ON", "CLIENT REPLY SKIP", "PSYNC ? -1"])
def test_who_hears_nothing_and_queues_what_would_be_heard_is_closed(farm_with_users, command):
    weir, _ = farm_with_users
    with weir.connect() as conn:
        conn.ask("PING")
        conn.send(encode("CLIENT", "REPLY", "OFF") + encode("MULTI") + encode(*command.split()) + encode("EXEC"))
        with pytest.raises((Closed, ConnectionError)):
            conn.read()
    wait_until(lambda: "it queues a command with uncountable replies while CLIENT REPLY is off" in weir.log(), "the log says why")


# ---- the database ----

TRANSACTIONS = {
    "one": ("SELECT 3", 3),
    "the last": ("SELECT 3 | SELECT 4 | GET a | SELECT 5", 5),
    "the last good one": ("SELECT 3 | SELECT 99 | SELECT 4 | SELECT -1 | SELECT x", 4),
    "none that is good": ("SELECT 99 | SELECT x", 2),
    "many": (" | ".join(["SELECT 3", "GET a"] * 100 + ["SELECT 7"]), 7),
    "and a name": ("CLIENT SETNAME me | SELECT 3", 3),
}


@pytest.fixture
def raw(kept, redis):
    """CL.THROTTLE with the raw key depends on its client's database."""
    return kept(workers=1, cl_throttle="raw")


@pytest.mark.parametrize("name", TRANSACTIONS)
@pytest.mark.parametrize("is_at_once", [False, True], ids=["steps", "at once"])
def test_a_select_in_a_transaction(raw, redis, name, is_at_once):
    commands, database = TRANSACTIONS[name]
    commands = ["MULTI", *commands.split(" | "), "EXEC"]
    with raw.connect() as conn:
        assert conn.ask("SELECT 2", "CL.THROTTLE raw:k 5 10 60")[0] == "OK"
        if is_at_once:
            conn.ask(*commands)
        else:
            for command in commands:
                conn.ask(command)
        assert b" db=%d " % database in conn.call("CLIENT", "INFO")
        conn.call("SET", "where", "here")
        with redis.connect() as direct:
            direct.call("SELECT", database)
            assert direct.call("GET", "where") == b"here"
        for _ in range(2):
            assert str(conn.call("CL.THROTTLE", "raw:k", 5, 10, 60)).startswith("ERR weir does not know the key's database")
            assert isinstance(conn.call("LIMIT", "FUNNEL", "raw:k", "3/s"), list)
            assert conn.ask("RESET", "GET none") == ["RESET", None]
        assert b" db=0 " in conn.call("CLIENT", "INFO")


def test_a_name_in_a_transaction_is_redis_alone(farm, redis):
    """Limits by name use the name from before the transaction."""
    weir = farm.weir(redis, workers=1, identity="name, ip", sections="[policy default]\nall = 100000/s\n")
    with weir.connect() as conn:
        conn.call("CLIENT", "SETNAME", "before")
        assert transaction(conn, ["CLIENT", "SETNAME", "after"]) == ["OK"]
        assert conn.call("CLIENT", "GETNAME") == b"after"
        assert conn.call("LIMIT", "STATUS")[1] == b"name:before"
        assert conn.ask("CLIENT SETNAME third", "CLIENT GETNAME") == ["OK", b"third"]
        assert conn.call("LIMIT", "STATUS")[1] == b"name:third"


@pytest.mark.parametrize("lanes", ["shared", "private"])
@pytest.mark.parametrize("how", ["steps", "at once"])
@pytest.mark.parametrize("login", ["AUTH tenant pw", "HELLO 2 AUTH tenant pw"])
@pytest.mark.parametrize("naming", ["CLIENT SETNAME after", "HELLO 2 SETNAME after"])
@pytest.mark.parametrize("end, name", [("EXEC", b"after"), ("DISCARD", b"before")])
def test_a_login_leaves_the_name_as_the_transaction_left_it(kept, tenant, naming, login, end, name, how, lanes):
    with kept(workers=1, lanes=lanes).connect() as conn:
        asked = ["CLIENT SETNAME before", "MULTI", naming, end, login, "CLIENT GETNAME", "ACL WHOAMI"]
        replies = conn.ask(*asked) if how == "at once" else [conn.ask(one)[0] for one in asked]
        assert replies[-2:] == [name, b"tenant"]
        assert conn.ask(login, "GET k", "CLIENT GETNAME")[-1] == name
        assert conn.ask("CLIENT SETNAME third", login, "CLIENT GETNAME")[-1] == b"third"


# ---- the library ----

NAMED = ["CLIENT SETINFO LIB-NAME A", "CLIENT SETINFO LIB-VER 1"]
LIBRARIES = {  # the question, and the library's name and version then
    "EXEC": ([*NAMED, "MULTI", "CLIENT SETINFO LIB-NAME B", "EXEC"], "B", "1"),
    "the version": ([*NAMED, "MULTI", "CLIENT SETINFO LIB-VER 2", "EXEC"], "A", "2"),
    "both": ([*NAMED, "MULTI", "CLIENT SETINFO LIB-VER 2", "CLIENT SETINFO LIB-NAME B", "EXEC"], "B", "2"),
    "neither": ([*NAMED, "MULTI", "CLIENT SETINFO X y", "CLIENT SETINFO LIB-NAME b\x01", "EXEC"], "A", "1"),
    "taken back": ([*NAMED, "MULTI", ["CLIENT", "SETINFO", "LIB-NAME", ""], "EXEC"], "", "1"),
    "DISCARD": ([*NAMED, "MULTI", "CLIENT SETINFO LIB-NAME B", "DISCARD"], "A", "1"),
    "DISCARD, then EXEC": ([*NAMED, "MULTI", "CLIENT SETINFO LIB-NAME B", "DISCARD", "MULTI", "PING", "EXEC"], "A", "1"),
    "EXECABORT": ([*NAMED, "MULTI", "CLIENT SETINFO LIB-NAME B", "NOSUCH", "EXEC"], "A", "1"),
    "a watched key": ([*NAMED, "WATCH k", "SET k v", "MULTI", "CLIENT SETINFO LIB-NAME B", "EXEC"], "A", "1"),
    "a watched key, RESP3": (["HELLO 3", *NAMED, "WATCH k", "SET k v", "MULTI", "CLIENT SETINFO LIB-NAME B", "EXEC"], "A", "1"),
    "twice": ([*NAMED, *["MULTI", "CLIENT SETINFO LIB-NAME B", "EXEC", "MULTI", "CLIENT SETINFO LIB-VER 3", "EXEC"]], "B", "3"),
    "RESET within": ([*NAMED, "MULTI", "CLIENT SETINFO LIB-NAME B", "RESET"], "A", "1"),
    "RESET behind": ([*NAMED, "MULTI", "CLIENT SETINFO LIB-NAME B", "EXEC", "RESET"], "B", "1"),
    "nothing before": (["MULTI", "CLIENT SETINFO LIB-NAME B", "EXEC", "CLIENT SETINFO LIB-VER 2"], "B", "2"),
    "told before": ([*NAMED, "CLIENT ID", "MULTI", "CLIENT SETINFO LIB-NAME B", "EXEC"], "B", "1"),
    "and told before": ([*NAMED, "CLIENT ID", "MULTI", "CLIENT SETINFO LIB-NAME B", "DISCARD"], "A", "1"),
    "behind tracking": ([*NAMED, "CLIENT TRACKING ON BCAST PREFIX none REDIRECT 0", "CLIENT SETINFO LIB-VER 2"], "A", "2"),
    "no MULTI, RESET": ([*NAMED, "RESET", "CLIENT SETINFO LIB-VER 2"], "A", "2"),
}


@pytest.mark.parametrize("lanes", ["shared", "private"])
@pytest.mark.parametrize("how", ["steps", "at once"])
@pytest.mark.parametrize("case", LIBRARIES)
def test_a_library_is_as_directly(kept, redis, case, how, lanes):
    if redis.call("CLIENT", "SETINFO", "LIB-NAME", "x") != "OK":
        pytest.skip("this Redis knows of no libraries: CLIENT SETINFO came with 7.2")
    asked, name, version = LIBRARIES[case]
    for server in (redis, kept(workers=1, lanes=lanes)):
        with server.connect() as conn:
            replies = conn.ask(*asked, "CLIENT INFO") if how == "at once" else [conn.ask(one)[0] for one in [*asked, "CLIENT INFO"]]
            assert f" lib-name={name} lib-ver={version}" in str(replies[-1])
