"""Servers that do not repeat the argument of an unknown command. weir uses another check that a
used lane is clean, or lends none.
"""

import re

import pytest
from kit.meddler import Meddler

UNKNOWN = re.compile(rb"-ERR unknown command .WEIR.NONCE.[^\r]*\r\n")
OPTION = re.compile(rb"-ERR Syntax error in HELLO option[^\r]*\r\n")
ECHO = re.compile(rb"\$22\r\n[-_A-Za-z0-9]{22}\r\n")
UNKNOWN_PROXY = b"-NOPERM this command is not allowed\r\n"

# name: what the server answers instead of Redis' answer, and whether lanes are lent.
SERVERS = {
    "redis": ([], True),
    "no-arguments": ([(UNKNOWN, b"-ERR unknown command `WEIR.NONCE`\r\n")], True),
    "a-proxy": ([(UNKNOWN, UNKNOWN_PROXY)], True),
    "no-options": ([(UNKNOWN, UNKNOWN_PROXY), (OPTION, b"-ERR syntax error\r\n")], True),
    "nothing": ([(UNKNOWN, UNKNOWN_PROXY), (OPTION, b"-ERR syntax error\r\n"), (ECHO, UNKNOWN_PROXY)], False),
}


@pytest.fixture(params=SERVERS)
def server(request, redis):
    """A relay between weir and Redis that answers as another server does, and whether it lets weir
    lend lanes.
    """
    changes, is_lent = SERVERS[request.param]

    def change(data):
        for pattern, answer in changes:
            data = pattern.sub(answer, data)
        return data

    with Meddler(redis.address) as meddler:
        meddler.change = change
        yield meddler, is_lent


def use_and_leave(weir, n):
    """Runs a client that needs a private lane for a while."""
    with weir.connect() as conn:
        assert conn.call("EVAL", "return ARGV[1]", "0", str(n)) == str(n).encode()
        assert conn.call("WATCH", "k") == "OK"
        assert conn.call("UNWATCH") == "OK"
        assert conn.call("GET", "k") == b"v"


def test_a_used_connection_is_lent_only_where_something_proves_it_clean(farm, redis, server):
    meddler, is_lent = server
    redis.call("SET", "k", "v")
    weir = farm.weir(meddler.upstream, workers=1)
    use_and_leave(weir, 0)
    before = int(redis.info("total_connections_received"))
    for n in range(10):
        use_and_leave(weir, n)
    opened = int(redis.info("total_connections_received")) - before
    assert opened <= 4 if is_lent else opened >= 10, opened
    told = "weir cannot verify used connections"
    assert weir.log().count(told) == (0 if is_lent else 1)
    assert "its replies do not match the requests" not in weir.log()


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_the_session_goes_on_behind_a_script(farm, redis, server, lanes):
    weir = farm.weir(server[0].upstream, workers=1, lanes=lanes)
    with weir.connect() as conn:
        conn.call("WATCH", "k")
        conn.call("EVAL", "return 1", "0")
        assert conn.call("SELECT", "1") == "OK"
        assert conn.call("SET", "here", "1") == "OK"
        assert conn.call("RESET") == "RESET"
        assert conn.call("GET", "here") is None


def test_a_user_that_may_not_echo_has_no_lane_lent(farm, redis):
    """ECHO is the check there: lanes of that user are closed, those of other users are lent."""
    redis.call("ACL", "SETUSER", "mute", "on", ">pw", "~*", "+@all", "-echo")

    def change(data):
        return OPTION.sub(b"-ERR syntax error\r\n", UNKNOWN.sub(UNKNOWN_PROXY, data))

    with Meddler(redis.address) as meddler:
        meddler.change = change
        weir = farm.weir(meddler.upstream, workers=1)
        for user in ("mute", "default"):
            before = int(redis.info("total_connections_received"))
            for n in range(10):
                with weir.connect() as conn:
                    assert user == "default" or conn.call("AUTH", user, "pw") == "OK"
                    assert conn.call("EVAL", "return ARGV[1]", "0", str(n)) == str(n).encode()
            opened = int(redis.info("total_connections_received")) - before
            assert opened >= 9 if user == "mute" else opened <= 4, (user, opened)
    redis.call("ACL", "DELUSER", "mute")
