"""The contract of lanes. A client on a shared lane reads no reply to another client. The user of a
client is the one that Redis has confirmed.
"""

import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from kit.harness import wait_until
from kit.resp import Closed, Error, Push, encode, pipeline
from kit.server import at_least

WRONGPASS = Error("WRONGPASS invalid username-password pair or user is disabled.")
NO_OPERATOR = "NOPERM this command is for operators"
NO_CLIENT = Error("ERR The client ID you want redirect to does not exist")
OPERATORS = "[policy operators]\nmatch = user:admin\nadmin = yes\n"
HURRY = {"WEIR_HURRY": "30"}  # a minute becomes two seconds


def forgery(*frames):
    """Returns a script with an error that contains these frames too: the script's first line is
    unescaped before Redis repeats it.
    """
    text = "".join(frame.replace("\r\n", r"\r\n") for frame in frames)
    return encode("EVAL", '#!"x\\r\\n' + text.removesuffix(r"\r\n") + '"\nreturn 1', 0)


# A tenth of a second. Since 7.2 the clock stands still for scripts.
SLOW = encode("EVAL", "for i = 1, ARGV[1] do redis.call('ECHO', i) end return 'slow'", 0, 100_000)


def add_users(redis):
    redis.call("ACL", "SETUSER", "admin", "on", ">secret", "~*", "&*", "+@all")
    redis.call("ACL", "SETUSER", "tenant", "on", ">pw", "~*", "&*", "+@all")
    redis.call("ACL", "SETUSER", "open", "on", "nopass", "~*", "&*", "+@all")


def connections(redis):
    with redis.connect() as conn:
        return len(conn.call("CLIENT", "LIST").splitlines()) - 1


def opened(redis):
    return int(redis.info("total_connections_received"))


def drain(conn, seconds=0.5):
    """Returns all bytes until the other side closes or falls silent. The client is not trusted."""
    conn.sock.settimeout(seconds)
    try:
        while True:
            conn.more()
    except (Closed, OSError):
        data = bytes(conn.buffer)
        conn.buffer.clear()
        return data


def try_an_order(weir, *before):
    """Sends the given bytes, and then an admin command."""
    with weir.connect() as conn:
        for data in before:
            conn.send(data)
        conn.send(encode("LIMIT", "MODE", "shadow"))
        drain(conn)


# ---- one role for life ----


@pytest.mark.parametrize("how", [["AUTH tenant pw"], ["SELECT 3"], ["HELLO 3"], ["AUTH tenant pw", "SELECT 3", "HELLO 3"]],
                         ids=" ".join)
def test_a_shared_connection_that_rests_is_nobody_elses_afterwards(how, farm):
    redis = farm.redis()
    add_users(redis)
    weir = farm.weir(redis, workers=1, env=HURRY)
    with weir.connect() as quiet, weir.connect() as other:
        quiet.ask(*how, "SET mine 1", "GET mine")
        seen = connections(redis)
        # the last lane of a user stays while a client of the user is connected
        if how != ["AUTH tenant pw"]:
            wait_until(lambda: connections(redis) < seen, "it is given up", 20)
        other.ask(*how)
        assert other.ask("MULTI", "SET secret mine") == ["OK", "QUEUED"]
        assert [quiet.call("GET", "mine") for _ in range(20)] == [b"1"] * 20
        assert other.call("EXEC") == ["OK"]
        assert quiet.ask("GET mine", "GET secret") == [b"1", b"mine"]


# ---- a shared lane has no session state ----


FORGING = {
    "SCRIPT LOAD": encode("SCRIPT", "LOAD", '#!"x\\r\\n$8\\r\\nATTACKER"\nreturn 1'),
    "EVAL": forgery("$8\r\nATTACKER"),
    "FUNCTION LOAD": encode("FUNCTION", "LOAD", '#!"x\\r\\n$8\\r\\nATTACKER"\nreturn 1'),
    "FUNCTION LIST": encode("FUNCTION", "LIST", "x\r\n$8\r\nATTACKER"),
    "an unknown subcommand": encode("CONFIG", "x\r\n$8\r\nATTACKER"),
    "an unknown command": encode("x\r\n$8\r\nATTACKER", "y\r\n$8\r\nATTACKER"),
    "ACL SETUSER": encode("ACL", "SETUSER", "u", "x\r\n$8\r\nATTACKER"),
    "ACL SETUSER of a key": encode("ACL", "SETUSER", "u", "%x\r\n$8\r\nATTACKER~"),
    "CONFIG SET": encode("CONFIG", "SET", "x\r\n$8\r\nATTACKER", "y"),
    "a script's error in MULTI": encode("MULTI") + forgery("$8\r\nATTACKER") + encode("EXEC"),
}


@pytest.mark.parametrize("request_bytes", FORGING.values(), ids=FORGING.keys())
def test_who_forges_replies_forges_his_own(request_bytes, kept, redis):
    weir = kept(workers=1)
    with weir.connect() as victim:
        for i in range(10):
            with weir.connect() as forger:
                assert forger.call("ECHO", "before") == b"before"
                forger.send(request_bytes)
                assert [victim.call("ECHO", f"{i}-{k}") for k in range(30)] == [b"%d-%d" % (i, k) for k in range(30)]


# ---- one answer to which user a client is ----


LIES = [
    encode("HELLO", 3, "SETNAME", "b d", "AUTH", "admin", "wrong"),
    encode("HELLO", 3, "AUTH", "admin", "wrong", "SETNAME", "b d"),
    encode("HELLO", 2, "AUTH", "tenant", "pw", "AUTH", "admin", "wrong"),
    encode("HELLO", 3, "AUTH", "tenant", "pw", "AUTH", "admin", "wrong", "SETNAME", "x y"),
    encode("HELLO", 3, "AUTH", "admin", "wrong", "BOGUS"),
    encode("HELLO", 3, "BOGUS", "AUTH", "admin", "wrong"),
    encode("HELLO", 4, "AUTH", "admin", "wrong"),
    encode("HELLO", 3, "AUTH", "admin"),
    encode("HELLO", "AUTH", "admin", "wrong"),
    encode("AUTH", "admin", "wrong"),
    encode("AUTH", "admin", "secret", "more"),
    encode("AUTH", "secret"),
    encode("AUTH", "admin"),
    encode("AUTH", "open", "anything") + encode("AUTH", "admin", "wrong"),
    encode("MULTI") + encode("AUTH", "admin", "wrong") + encode("EXEC"),
    encode("MULTI") + encode("HELLO", 3, "AUTH", "admin", "wrong") + encode("EXEC"),
    encode("MULTI") + encode("AUTH", "admin", "wrong") + encode("DISCARD"),
    encode("WATCH", "k") + encode("AUTH", "admin", "wrong"),
    encode("CLIENT", "ID") + encode("AUTH", "admin", "wrong") + encode("GET", "k"),
    encode("CLIENT", "REPLY", "OFF") + encode("AUTH", "admin", "wrong"),
    # What a script makes of replies proves nothing.
    SLOW + forgery("+OK\r\n", "+OK\r\n") + encode("AUTH", "admin", "wrong"),
    forgery("+OK\r\n") + encode("AUTH", "admin", "wrong"),
    forgery("+OK\r\n", "+OK\r\n", "+OK\r\n") + encode("HELLO", 3, "AUTH", "admin", "wrong"),
    forgery("+OK\r\n") + encode("MULTI") + encode("AUTH", "admin", "wrong") + encode("EXEC"),
    SLOW + forgery("+OK\r\n", "+QUEUED\r\n", "*1\r\n+OK\r\n", "$5\r\nadmin\r\n") + encode("MULTI")
    + encode("AUTH", "admin", "wrong") + encode("EXEC"),
    encode("MULTI") + forgery("+OK\r\n") + encode("AUTH", "admin", "wrong") + encode("EXEC"),
    forgery("+RESET\r\n", "+OK\r\n") + encode("RESET") + encode("AUTH", "admin", "wrong"),
    encode("SUBSCRIBE", "c") + encode("AUTH", "admin", "wrong"),
    encode("MULTI") + encode("SUBSCRIBE", "c") + encode("EXEC") + encode("AUTH", "admin", "wrong"),
]


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_nobody_becomes_operator_without_the_password(lanes, farm):
    redis = farm.redis()
    add_users(redis)
    weir = farm.weir(redis, workers=1, lanes=lanes, sections=OPERATORS)
    tenant = encode("AUTH", "tenant", "pw")
    tries = [before for lie in LIES for before in ([lie], [tenant, lie], [tenant, SLOW, lie])]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda before: try_an_order(weir, *before), tries))
    with weir.connect() as conn:
        assert conn.ask("AUTH admin secret", "LIMIT MODE") == ["OK", b"enforce"]
        assert conn.ask("AUTH admin secret", "LIMIT MODE shadow", "LIMIT MODE enforce") == ["OK", "OK", "OK"]


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_hello_means_one_thing(lanes, farm):
    redis = farm.redis()
    add_users(redis)
    weir = farm.weir(redis, workers=1, lanes=lanes)
    syntax = "ERR Syntax error in HELLO option '%s'"
    name = Error("ERR Client names cannot contain spaces, newlines or special characters.")
    with weir.connect() as conn:
        who = lambda: conn.call("ACL", "WHOAMI")  # noqa: E731
        assert conn.call("HELLO", 2, "AUTH", "tenant", "pw", "AUTH", "admin", "wrong") == Error(syntax % "AUTH")
        assert conn.call("HELLO", 2, "AUTH", "tenant", "pw", "BOGUS") == Error(syntax % "BOGUS") and who() == b"default"
        assert conn.call("HELLO", 2, "AUTH", "tenant", "pw", "SETNAME", "b d") == name and who() == b"default"
        assert conn.call("HELLO", 2, "SETNAME", "auth")[0] == b"server" and conn.call("CLIENT", "GETNAME") == b"auth"
        assert conn.call("HELLO", 2, "AUTH", "tenant", "wrong", "SETNAME", "n") == WRONGPASS and who() == b"default"
        assert conn.call("CLIENT", "GETNAME") == b"auth"
        assert conn.call("HELLO", 3, "SETNAME", "n", "AUTH", "tenant", "pw")[b"proto"] == 3 and who() == b"tenant"
        assert conn.call("CLIENT", "GETNAME") == b"n"
        assert conn.call("HELLO", 9, "AUTH", "admin", "secret").startswith("NOPROTO") and who() == b"tenant"
        assert conn.call("HELLO", "x").startswith("ERR Protocol version") and who() == b"tenant"
        assert conn.call("HELLO")[b"proto"] == 3
        assert conn.call("AUTH", "a", "b", "c") == Error("ERR syntax error") and who() == b"tenant"


@pytest.mark.parametrize("end", ["ACL DELUSER admin", "ACL SETUSER admin resetpass >other", "ACL SETUSER admin off"])
@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_who_is_no_operator_any_more_gives_no_orders(lanes, end, farm):
    redis = farm.redis()
    add_users(redis)
    weir = farm.weir(redis, workers=1, lanes=lanes, sections=OPERATORS)
    with weir.connect() as idle, weir.connect() as busy:
        assert idle.ask("AUTH admin secret", "LIMIT MODE enforce") == ["OK", "OK"]
        assert busy.ask("AUTH admin secret", "SET k v", "LIMIT MODE") == ["OK", "OK", b"enforce"]
        redis.call(*end.split())
        for conn in (idle, busy):
            conn.send(encode("LIMIT", "MODE", "shadow"))
            assert b"+OK" not in conn.read_to_end()


def test_who_is_no_operator_any_more_and_whose_lane_has_gone_gives_no_orders(farm):
    redis = farm.redis()
    add_users(redis)
    weir = farm.weir(redis, workers=1, sections=OPERATORS)
    with weir.connect() as conn, weir.connect() as other:
        # the client's former lane belongs to another user now
        assert conn.ask("SET k v", "AUTH admin secret") == ["OK", "OK"]
        redis.call("CLIENT", "KILL", "TYPE", "normal")
        wait_until(lambda: other.call("GET", "k") == b"v", "weir has another lane")
        redis.call("ACL", "SETUSER", "admin", "resetpass", ">other")
        conn.send(encode("LIMIT", "MODE", "shadow"))
        assert b"+OK" not in conn.read_to_end()
        assert other.call("PING") == "PONG"


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_concurrent_logins_are_not_taken_for_each_other(lanes, farm):
    redis = farm.redis()
    add_users(redis)
    weir = farm.weir(redis, workers=2, lanes=lanes, sections=OPERATORS)
    wrong = []

    def log_in(i):
        with weir.connect() as conn:
            for k in range(6):
                is_right = (i + k) % 2 == 0
                reply = conn.call("AUTH", "admin" if k % 3 else "tenant", ("secret" if k % 3 else "pw") if is_right else "no")
                if (reply == "OK") != is_right or (not is_right and reply != WRONGPASS):
                    wrong.append((i, k, reply))

    threads = [threading.Thread(target=log_in, args=(i,)) for i in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_failed_login_behind_pending_replies_is_answered(farm):
    redis = farm.redis()
    add_users(redis)
    for lanes in ("shared", "private"):
        weir = farm.weir(redis, workers=1, lanes=lanes)
        for first in ([], ["WATCH w"], ["CLIENT ID"], ["EVAL 1 0"]):
            with weir.connect() as conn:
                conn.ask(*first)
                assert conn.ask("GET k", "AUTH x wrong", "GET j", "HELLO 2 AUTH x wrong", "PING") == [
                    None, WRONGPASS, None, WRONGPASS, "PONG"]


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_the_password_alone_is_asked_as_it_was_said(lanes, farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, lanes=lanes)
    with weir.connect() as conn, redis.connect() as direct:
        assert conn.call("AUTH", "pw") == direct.call("AUTH", "pw")
        assert direct.call("CONFIG", "SET", "requirepass", "pw") == "OK"
        assert conn.ask("AUTH wrong", "AUTH pw", "PING") == [
            Error("WRONGPASS invalid username-password pair or user is disabled."), "OK", "PONG"]


# ---- one owner at a time ----


def test_who_comes_next_finds_a_private_connection_clean(farm):
    """An owner makes its lane look idle while Redis still works for the owner there."""
    redis = farm.redis()
    add_users(redis)
    weir = farm.weir(redis, workers=1, env={"WEIR_HURRY": "5"})
    for leftover in (encode("BLPOP", "theirs", 0), SLOW + encode("SET", "a", 1), encode("SUBSCRIBE", "c"),
                     encode("MULTI"), encode("WATCH", "k"), encode("SELECT", 5)):
        for frames in (["+x\r\n"] * 1, ["+OK\r\n"] * 2, ["+RESET\r\n", "+OK\r\n", "+OK\r\n"]):
            attacker = weir.connect()
            attacker.send(forgery(*frames) + leftover)
            drain(attacker, 0.2)
            with weir.connect() as victim, redis.connect() as direct:
                victim.sock.settimeout(8)
                direct.call("DEL", "mine", "theirs")
                direct.call("RPUSH", "mine", "job")
                assert victim.call("BLPOP", "mine", 5) == [b"mine", b"job"]
                direct.call("RPUSH", "theirs", "loot")
                assert victim.ask("MULTI", "GET none", "EXEC") == ["OK", "QUEUED", [None]]
                assert victim.call("EVAL", "return 'me'", 0) == b"me"
            attacker.close()


def test_nothing_of_the_next_owner_goes_before_the_nonce(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1)
    with redis.connect() as monitor, weir.connect() as a, weir.connect() as b:
        assert a.call("EVAL", "return 1", 0) == 1
        time_of_rest = time.monotonic()
        wait_until(lambda: time.monotonic() > time_of_rest + 0.01, "its owner does not come back")
        assert monitor.call("MONITOR") == "OK"
        assert b.call("EVAL", "return 2", 0) == 2
        seen = drain(monitor)
    assert seen.index(b'"rESET"') < seen.index(b'"EVAL"')
    assert b"WEIR.NONCE" not in seen, "Redis looks for the command before it shows it"


def test_a_connection_that_does_not_come_clean_holds_nobody_up(farm):
    """The last owner has left the lane blocked. The next owner gets another lane, within a second.
    """
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, env={"WEIR_HURRY": "5"})
    attacker = weir.connect()
    attacker.send(forgery("+x\r\n") + encode("BLPOP", "theirs", 0))
    if b"\n+x" not in drain(attacker):
        pytest.skip("this redis-server repeats no script's first line as it is")
    with weir.connect() as victim:
        assert victim.ask("MULTI", "PING", "EXEC") == ["OK", "QUEUED", ["PONG"]]
    attacker.close()


@pytest.mark.parametrize("protocol", [2, 3])
def test_what_an_owner_subscribed_to_is_not_the_next_ones(protocol, farm):
    redis = farm.redis()
    add_users(redis)
    weir = farm.weir(redis, workers=1)
    for _ in range(6):
        with weir.connect() as before:
            before.call("HELLO", protocol)
            before.send(encode("SUBSCRIBE", "a", "b"))
            assert [before.read()[2], before.read()[2]] == [1, 2]
            assert before.call("RESET") == "RESET"
        assert redis.call("PUBLISH", "a", "m") == 0, "Redis has forgotten it at once"
        with weir.connect() as conn:
            assert isinstance(conn.call("CLIENT", "ID"), int)
            assert conn.ask("AUTH tenant pw", "SELECT 1", "SET a b") == ["OK", "OK", "OK"]
            conn.send(encode("UNSUBSCRIBE"))
            with redis.connect() as direct:
                assert conn.read() == direct.call("UNSUBSCRIBE")
            assert conn.ask("PING", "GET a") == ["PONG", b"b"]


# ---- no client waits for ever ----


def gone_are_all(weir, redis, few=12):
    """Checks that weir has forgotten closed clients, and stops at once."""
    wait_until(lambda: connections(redis) <= few, "their connections are closed", 20)
    began = time.monotonic()
    weir.stop()
    assert time.monotonic() - began < 5


ENDLESS = {
    "a forged bulk": forgery("$500\r\n") + encode("MULTI"),
    "a forged array": forgery("*9\r\n") + encode("WATCH", "k"),
    "MONITOR twice": encode("MONITOR") + encode("MONITOR"),
    "MONITOR among others": encode("WATCH", "k") + encode("MONITOR") + encode("MONITOR") + encode("PING"),
}


@pytest.mark.parametrize("request_bytes", ENDLESS.values(), ids=ENDLESS.keys())
def test_who_leaves_is_not_kept(request_bytes, farm):
    redis = farm.redis()
    add_users(redis)
    weir = farm.weir(redis, workers=1, drain_timeout="30s", env={"WEIR_HURRY": "10"})
    for _ in range(15):
        with weir.connect() as conn:
            conn.send(request_bytes)
            drain(conn, 0.05)
    gone_are_all(weir, redis)


def test_a_library_that_cannot_be_read_is_on_no_lane(farm):
    """RESET does not clear the library name, so the next owner would inherit it."""
    redis = farm.redis()
    weir = farm.weir(redis, workers=1)
    with weir.connect() as conn:
        replies = conn.ask(["CLIENT", "SETINFO", "LIB-NAME", "x" * 100_000], "PING")
        assert [str(reply) for reply in replies] == ["ERR the arguments are too long", "PONG"]


def test_monitor_is_answered_once(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1)
    with weir.connect() as conn:
        conn.send(encode("MONITOR") + encode("MONITOR") + encode("SELECT", 1) + encode("PING"))
        seen = [conn.read()]
        while "PONG" not in seen:
            seen.append(conn.read())
        assert [line for line in seen if line in ("OK", "PONG")] == ["OK", "OK", "PONG"]


@pytest.fixture
def blind(redis):
    redis.call("ACL", "SETUSER", "blind", "on", ">secret", "+@all", "-monitor", "~*", "&*")
    yield redis
    redis.call("ACL", "DELUSER", "blind")


MONITORS_AGAIN = {
    "words": ["MONITOR", "MONITOR x", "PING"],
    "subscribed": ["MONITOR", "SUBSCRIBE a", "MONITOR", "PING"],
    "rights": ["MONITOR", "AUTH blind secret", "MONITOR", "PING", "GET k", "MONITOR"],
    "silent": ["MONITOR", "CLIENT REPLY SKIP", "MONITOR x", "MONITOR", "PING"],
}


@pytest.mark.parametrize("lanes", ("shared", "private"))
@pytest.mark.parametrize("case", MONITORS_AGAIN)
def test_monitor_again_is_answered_where_redis_answers(case, lanes, kept, blind):
    redis, weir = blind, kept(workers=1, lanes=lanes)
    answers = []
    for server in (redis, weir):
        with server.connect() as conn:
            conn.send(pipeline(*MONITORS_AGAIN[case], "QUIT"))
            answers.append(re.sub(rb"\+\d+\.\d+ \[.*?\r\n", b"", conn.read_to_end()))
    assert answers[0] == answers[1]


def test_many_who_do_not_read_hold_others_up_no_longer_than_one(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1)
    redis.call("SET", "big", "x" * 8_000_000)
    readers = [weir.connect() for _ in range(20)]
    with weir.connect() as victim:
        for conn in readers:
            assert conn.call("ECHO", "here") == b"here"
        assert victim.call("GET", "small") is None
        for conn in readers:
            conn.send(encode("GET", "big"))
        began = time.monotonic()
        victim.sock.settimeout(20)
        assert victim.call("ECHO", "soon") == b"soon"
        assert time.monotonic() - began < 8, "a second each would be 20"
    for conn in readers:
        conn.close()


# ---- no client names another client's lane ----


def test_redirect_reaches_only_ones_own(farm):
    redis = farm.redis()
    add_users(redis)
    weir = farm.weir(redis, workers=2)
    with weir.connect() as a, weir.connect() as b, weir.connect() as other, weir.connect() as busy:
        assert busy.call("GET", "k") is None
        for conn in (a, b):
            assert conn.call("AUTH", "tenant", "pw") == "OK"
        own = a.call("CLIENT", "ID")
        assert a.call("SUBSCRIBE", "__redis__:invalidate")[0] == b"subscribe"
        with redis.connect() as direct:
            ids = [int(line.split(b" ")[0].split(b"=")[1]) for line in direct.call("CLIENT", "LIST").splitlines()]
        for conn in (b, other):
            for id in ids:
                if conn is b and id == own:
                    continue
                assert conn.call("CLIENT", "TRACKING", "ON", "REDIRECT", id, "BCAST") == NO_CLIENT, id
                assert conn.ask("MULTI", f"CLIENT TRACKING ON REDIRECT {id}", "EXEC")[2] == [NO_CLIENT]
        with weir.connect() as uncounted:
            uncounted.ask("MULTI", "CLIENT REPLY ON", "EXEC")
            for id in ids:
                assert uncounted.call("CLIENT", "TRACKING", "ON", "REDIRECT", id, "BCAST") == NO_CLIENT, id
        assert other.call("CLIENT", "TRACKING", "ON", "PREFIX", "REDIRECT", "BCAST", "REDIRECT", own) == NO_CLIENT
        assert b.call("CLIENT", "TRACKING", "ON", "REDIRECT", own, "BCAST") == "OK"
        assert busy.ask("SET k v", "GET k") == ["OK", b"v"]
        assert a.read() == [b"message", b"__redis__:invalidate", [b"k"]]
        # When the client closes, its connection to Redis closes too.
        a.close()
        wait_until(lambda: own not in [int(line.split(b" ")[0].split(b"=")[1])
                                       for line in redis.call("CLIENT", "LIST").splitlines()], "the target is closed")


def test_the_process_outlives_a_redirect_to_weirs_own_connections(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1)
    with weir.connect() as holder, weir.connect() as waiter, weir.connect() as attacker, redis.connect() as direct:
        assert holder.call("LIMIT", "ACQUIRE", "k", 1, 60_000)[0] == 0
        waiter.send(encode("LIMIT", "ACQUIRE", "k", 1, 60_000, "WAIT", 20_000))
        wait_until(lambda: b"sub=1" in direct.call("CLIENT", "LIST"), "weir listens")
        ids = [int(line.split(b" ")[0].split(b"=")[1]) for line in direct.call("CLIENT", "LIST").splitlines()]
        for id in ids:
            attacker.call("CLIENT", "TRACKING", "OFF")
            attacker.call("CLIENT", "TRACKING", "ON", "REDIRECT", id, "BCAST")
            # A client that bypasses weir can give true ids.
            direct.call("CLIENT", "TRACKING", "OFF")
            if id != direct.call("CLIENT", "ID"):
                direct.call("CLIENT", "TRACKING", "ON", "REDIRECT", id, "BCAST")
            assert attacker.call("SET", "x", id) == "OK"
        assert attacker.call("PING") == "PONG"


# ---- unsolicited replies ----


def test_in_resp3_an_array_is_a_reply_whatever_is_in_it(weir, redis):
    with weir.connect() as conn, redis.connect() as direct:
        assert conn.call("HELLO", 3)[b"proto"] == 3
        conn.send(encode("SUBSCRIBE", "c"))
        assert conn.read() == Push([b"subscribe", b"c", 1])
        for word in ("message", "pmessage", "smessage", "subscribe", "unsubscribe", "invalidate"):
            direct.call("DEL", "l")
            direct.call("RPUSH", "l", word, "c", "1")
            assert conn.call("LRANGE", "l", 0, -1) == [word.encode(), b"c", b"1"]
            assert conn.call("ECHO", word) == word.encode()


# ---- max-lanes is shared fairly ----


def wander(conn, databases=range(16)):
    for protocol in (2, 3):
        conn.call("HELLO", protocol)
        for database in databases:
            assert conn.ask(f"SELECT {database}", "GET k") == ["OK", None]


def test_who_wanders_leaves_few_connections_behind(farm):
    redis = farm.redis("--databases", "64")
    weir = farm.weir(redis, workers=1)
    with weir.connect() as conn, weir.connect() as neighbour:
        neighbour.ask("SELECT 60", "GET k")
        wander(conn, range(60))
        assert connections(redis) <= 16 + 16
        assert neighbour.call("GET", "k") is None


def test_who_invents_passwords_leaves_few_connections_behind(farm):
    redis = farm.redis()
    add_users(redis)
    weir = farm.weir(redis, workers=1)
    with weir.connect() as conn:
        for i in range(300):
            assert conn.ask(f"AUTH open {i}", "GET k") == ["OK", None]
        assert connections(redis) <= 16 + 16


BUSY = Error("UPSTREAM busy max-lanes")


def test_there_are_no_more_connections_than_max_lanes(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, max_lanes=12)
    clients = [weir.connect() for _ in range(30)]
    for conn in clients:
        conn.send(encode("BLPOP", "none", 0))
    wait_until(lambda: len(ready(clients)) >= len(clients) - 11, "the rest is told")
    told = [conn for conn in clients if conn.sock in ready(clients)]
    assert {str(conn.read()) for conn in told} == {str(BUSY)}
    # Up to half of the lanes any client may take; the rest is for other subjects, too.
    assert 6 <= len(clients) - len(told) <= 11
    with weir.connect() as other:
        assert other.ask("SET k v", "GET k") == ["OK", b"v"]
    for conn in clients:
        conn.close()
    with weir.connect() as later:
        wait_until(lambda: later.call("EVAL", "return 1", 0) == 1, "there is room again")


def ready(conns):
    import select

    return select.select([conn.sock for conn in conns], [], [], 0.05)[0]


def test_what_is_kept_makes_room(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, max_lanes=10)
    clients = [weir.connect() for _ in range(8)]
    try:
        for _ in range(5):
            for conn in clients:
                assert conn.ask("MULTI", "EXEC") == ["OK", []]
        assert connections(redis) <= 14
    finally:
        for conn in clients:
            conn.close()


def test_the_last_quarter_is_there_to_be_used(farm):
    """weir does not keep scarce lanes unused. A client that was given a lane keeps it."""
    redis = farm.redis()
    for user in "abcdef":
        redis.call("ACL", "SETUSER", user, "on", "nopass", "~*", "&*", "+@all")
    # no client has an address
    weir = farm.weir(redis, workers=1, max_lanes=16, listen="unix:{folder}/s")
    clients = []
    for user in "aaaabbbccdef":
        conn = weir.connect()
        clients.append(conn)
        assert conn.call("AUTH", user, "x") == "OK"
        conn.send(encode("BLPOP", "none", 0))
    before = opened(redis)
    others = [weir.connect() for _ in range(4)]
    for conn in others:
        reply = conn.call("EVAL", "return 1", 0)
        assert reply == 1 or reply == BUSY
    assert opened(redis) - before < 40
    for conn in clients + others:
        conn.close()


def test_what_is_scarce_goes_from_hand_to_hand(farm):
    """When lanes are nearly used up, a client that needs one for a script gets another client's
    lane, and weir opens none.
    """
    redis = farm.redis()
    users = [f"u{i}" for i in range(17)]
    for user in users:
        redis.call("ACL", "SETUSER", user, "on", "nopass", "~*", "&*", "+@all")
    # no client has an address
    weir = farm.weir(redis, workers=1, max_lanes=16, listen="unix:{folder}/s")
    clients = [weir.connect() for _ in users]
    for conn, user in zip(clients, users):
        assert conn.call("AUTH", user, "x") == "OK"
    holders, others = clients[:11], clients[11:]
    for conn in holders:
        conn.send(encode("BLPOP", "none", 0))
    wait_until(lambda: redis.call("CLIENT", "LIST").count(b"cmd=blpop") == 11, "they block")
    before = opened(redis)
    n_answered = 0
    for _ in range(60):
        for conn, user in zip(others, users[11:]):
            conn.send(encode("EVAL", "return ARGV[1]", 0, user))
        for conn, user in zip(others, users[11:]):
            reply = conn.read()
            assert reply in (user.encode(), BUSY)
            n_answered += reply != BUSY
    assert n_answered > 300
    assert opened(redis) - before < n_answered / 6, "a lane on which Redis is late for 10 ms is replaced"
    for conn in clients:
        conn.close()


def test_who_has_gone_with_his_session_leaves_room(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, max_lanes=8)
    for i in range(20):
        redis.call("ACL", "SETUSER", f"u{i}", "on", "nopass", "~*", "&*", "+@all")
        with weir.connect() as conn:
            assert conn.ask(f"AUTH u{i} x", "SET k v") == ["OK", "OK"]
    with weir.connect() as conn:
        assert conn.ask("AUTH u1 x", "EVAL 1 0", "MULTI", "EXEC")[2:] == ["OK", []]


def test_one_users_end_is_nobody_elses(farm):
    redis = farm.redis()
    add_users(redis)
    for lanes in ("shared", "private"):
        weir = farm.weir(redis, workers=1, lanes=lanes)
        with redis.connect() as direct:
            for i in range(30):
                with weir.connect() as victim, weir.connect() as other:
                    other.send(encode("AUTH", "open", "x") + encode("GET", "k"))
                    victim.send(encode("AUTH", "tenant", "pw") + encode("SET", "k", i) + encode("GET", "k"))
                    direct.call("CLIENT", "KILL", "USER", "open")
                    assert [victim.read() for _ in range(3)] == ["OK", "OK", b"%d" % i]


def names_libraries(redis):
    return redis.call("CLIENT", "SETINFO", "LIB-NAME", "x") == "OK"


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_what_a_client_says_of_its_library_is_its_own(farm, lanes):
    redis = farm.redis()
    if not names_libraries(redis):
        pytest.skip("this Redis knows of no libraries: CLIENT SETINFO came with 7.2")
    weir = farm.weir(redis, workers=1, lanes=lanes)
    with weir.connect() as a, weir.connect() as b:
        assert a.ask("CLIENT SETINFO LIB-NAME mine", "CLIENT SETINFO lib-ver 1.2") == ["OK", "OK"]
        assert b"lib-name=mine" not in b.call("CLIENT", "INFO")
        assert (b"lib-name=mine" in redis.call("CLIENT", "LIST")) == (lanes == "private")
        wrong = a.ask("CLIENT SETINFO LIB-NAME", "CLIENT SETINFO NAME x", "CLIENT SETINFO LIB-NAME x\x01y")
        assert all(str(reply).startswith("ERR") for reply in wrong)
        assert b"name=me " in a.ask("CLIENT SETNAME me", "CLIENT LIST")[1]
        assert b"lib-name=mine lib-ver=1.2" in a.call("CLIENT", "INFO")
        assert a.ask("CLIENT SETINFO LIB-VER 1.3", "MULTI", "CLIENT INFO", "EXEC")[0] == "OK"
        assert b"lib-name=mine lib-ver=1.3" in a.call("CLIENT", "INFO")
    for _ in range(3):
        with weir.connect() as c:
            c.ask("MULTI", "PING", "EXEC")
            assert b"lib-name=mine" not in c.call("CLIENT", "INFO")


def test_a_user_who_may_not_say_it_is_not_told_of(farm):
    redis = farm.redis()
    if not names_libraries(redis):
        pytest.skip("this Redis knows of no libraries: CLIENT SETINFO came with 7.2")
    redis.call("ACL", "SETUSER", "u", "on", ">pw", "~*", "+@all", "-client|setinfo")
    weir = farm.weir(redis, workers=1)
    with weir.connect() as a:
        a.call("AUTH", "u", "pw")
        assert str(a.call("CLIENT", "SETINFO", "LIB-NAME", "mine")).startswith("NOPERM")
        redis.call("ACL", "LOG", "RESET")
        assert b"lib-name= " in a.call("CLIENT", "INFO")
    assert redis.call("ACL", "LOG") == []


def test_what_weir_asks_for_its_own_sake_needs_no_rights(farm):
    """No request of weir's own on a client's lane appears in ACL LOG."""
    redis = farm.redis()
    redis.call("ACL", "SETUSER", "u", "on", ">pw", "~*", "resetchannels", "-@all", "+get", "+set", "+multi", "+exec", "+wait")
    redis.call("ACL", "SETUSER", "u", "+client|setname" if redis.call("COMMAND", "DOCS") else "+client")
    for lanes in ("shared", "private"):
        weir = farm.weir(redis, workers=1, lanes=lanes)
        redis.call("ACL", "LOG", "RESET")
        for _ in range(3):
            with weir.connect() as a:
                asked = ["AUTH u pw", "CLIENT SETNAME me", "SET k v", "MULTI", "GET k", "EXEC", "WAIT 0 0", "GET k"]
                assert a.ask(*asked) == ["OK", "OK", "OK", "OK", "QUEUED", [b"v"], 0, b"v"]
        # 6.2 wants a right for RESET, see docs/sharing.md
        expected = [] if at_least(7) else [b"reset"]
        assert [entry[entry.index(b"object") + 1] for entry in redis.call("ACL", "LOG")] in ([], expected)


def test_a_monitor_sees_what_clients_say_and_not_what_weir_does(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1)
    with weir.connect() as monitor, weir.connect() as a:
        assert monitor.call("MONITOR") == "OK"
        said = ["CLIENT SETNAME me", "SET k v", "MULTI", "GET k", "EXEC", "EVAL 'return 1' 0", "WAIT 0 0", "HELLO 2"]
        a.ask(*said, "CLIENT SETINFO LIB-NAME x", "CLIENT INFO", "ECHO end")
        seen = []
        while not seen or '"ECHO"' not in seen[-1]:
            seen.append(monitor.read().split("] ", 1)[1])
        words = [line.split('"')[1] for line in seen]
        expected = ["CLIENT", "SET", "MULTI", "GET", "EXEC", "EVAL", "WAIT", "HELLO", "CLIENT", "CLIENT", "ECHO"]
        if not at_least(7, 2):  # CLIENT SETINFO is unknown there, and 6.2 shows no CLIENT
            del expected[-2]
        if not at_least(7):
            expected = [word for word in expected if word != "CLIENT"]
        assert words == expected


def test_nobody_hides_from_a_monitor(farm):
    """A client may spell commands as weir spells its own. weir hides only harmless commands from
    MONITOR.
    """
    redis = farm.redis()
    weir = farm.weir(redis, workers=1)
    with weir.connect() as monitor, weir.connect() as a:
        assert monitor.call("MONITOR") == "OK"
        a.ask("pUBLISH secret x", "pUBLISH secret ''", "cLIENT TRACKINGINFO", "sET k v", "sET weir:written x", "gET rESET", "rESET x", "ECHO end")
        seen = []
        while not seen or '"ECHO"' not in seen[-1]:
            seen.append(monitor.read().split("] ", 1)[1])
        assert sum('"pUBLISH" "secret"' in line for line in seen) == 2
        assert not at_least(7) or any(line.startswith('"cLIENT" "TRACKINGINFO"') for line in seen)
        assert {'"sET" "k" "v"', '"sET" "weir:written" "x"', '"gET" "rESET"'} <= set(seen)


def test_a_stranger_with_few_rights_is_asked_for_nothing(farm):
    redis = farm.redis()
    redis.call("ACL", "SETUSER", "admin", "on", "nopass", "~*", "&*", "+@all")
    redis.call("ACL", "SETUSER", "default", "-@all", "+get", "+info", "+command", "+slowlog", "+ping")
    weir = farm.weir(redis, workers=1)
    with weir.connect() as a:
        assert a.call("GET", "k") is None
    with redis.connect() as conn:
        conn.call("AUTH", "admin", "x")
        assert conn.call("ACL", "LOG") == []


def test_what_another_worker_keeps_makes_room(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=4, max_lanes=24)
    for _ in range(4):  # earlier clients have left lanes at some worker
        clients = [weir.connect() for _ in range(10)]
        for conn in clients:
            conn.send(encode("MULTI") + encode("EXEC"))
        for conn in clients:
            assert conn.read() == "OK" and conn.read() == []
            conn.close()
    # A quarter of max-lanes is for shared lanes and spares. Any client may take lanes up to half.
    clients = [weir.connect() for _ in range(6)]
    for conn in clients:
        assert conn.ask("MULTI", "GET k") == ["OK", "QUEUED"]
    for conn in clients:
        assert conn.call("EXEC") == [None]
        conn.close()


def test_a_short_name_for_a_socket_is_no_crash(weir):
    """Half a greeting, then nothing."""
    with socket.create_connection(weir.address) as sock:
        sock.sendall(b"*2\r\n$4\r\nAUTH\r\n$3\r\nab")
