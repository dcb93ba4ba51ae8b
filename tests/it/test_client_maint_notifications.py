"""CLIENT MAINT_NOTIFICATIONS: weir refuses it as a server without the command does, without a
connection to Redis.
"""

import pytest
from kit.resp import Conn, pipeline
from kit.server import at_least

ASK = ("CLIENT", "MAINT_NOTIFICATIONS", "ON", "moving-endpoint-type", "internal-fqdn")
HANDSHAKE = [ASK, ("CLIENT", "SETINFO", "LIB-NAME", "x"), ("CLIENT", "SETINFO", "LIB-VER", "1"), ("GET", "k")]
SESSIONS = {
    "alone": [ASK],
    "other-case": [("client", "Maint_Notifications"), ("PING",)],
    "in-multi": [("MULTI",), ("SET", "k", "v"), ASK, ("EXEC",), ("GET", "k")],
    "unheard": [("CLIENT", "REPLY", "OFF"), ASK, ("CLIENT", "REPLY", "ON"), ("PING",)],
    "skipped": [("CLIENT", "REPLY", "SKIP"), ASK, ("PING",)],
    "between": [("SET", "k", "v"), ASK, ("GET", "k")],
    "handshake": [ASK, ("CLIENT", "SETINFO", "LIB-NAME", "x"), ("GET", "k")],
}


def played(server, commands):
    with server.connect() as conn:
        conn.send(pipeline(*commands, ("ECHO", "end")))
        replies = [conn.read()]
        while replies[-1] != b"end":
            replies.append(conn.read())
        return replies


@pytest.mark.skipif(not at_least(7), reason="Redis 6.2 queues a subcommand that it does not know")
@pytest.mark.parametrize("session", SESSIONS)
def test_refused_as_redis_refuses_an_unknown_subcommand(weir, redis, session):
    direct = played(redis, SESSIONS[session])
    redis.forget_data()
    assert played(weir, SESSIONS[session]) == direct


def crowd(farm, n, lanes, words, is_pipelined):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, lanes=lanes, max_lanes=20, unauthenticated=0)
    with redis.connect() as direct:
        right = direct.ask(*words)
    before = int(redis.info("total_connections_received"))
    conns = [Conn(weir.address, timeout=10) for _ in range(n)]
    if is_pipelined:
        for conn in conns:
            conn.send(pipeline(*words))
        heard = [[conn.read() for _ in words] for conn in conns]
    else:
        heard = [[conn.call(*one) for one in words] for conn in conns]
    for conn in conns:
        conn.close()
    assert [replies for replies in heard if replies != right][:3] == []
    assert int(redis.info("total_connections_received")) - before <= 12


HOW = pytest.mark.parametrize("is_pipelined", [True, False], ids=["pipelined", "one-by-one"])


@HOW
def test_a_crowd_needs_no_connection(farm, is_pipelined):
    crowd(farm, 200, "shared", HANDSHAKE, is_pipelined)


@pytest.mark.moves
@HOW
def test_two_thousand_need_no_connection(farm, is_pipelined):
    crowd(farm, 2000, "shared", HANDSHAKE, is_pipelined)


@pytest.mark.moves
@HOW
def test_two_thousand_with_lanes_of_their_own(farm, is_pipelined):
    """All their commands are refused, so no client needs its lane."""
    crowd(farm, 2000, "private", [ASK], is_pipelined)


def test_charged_as_any_subcommand_of_client(limited):
    """As a command, and for its bytes."""
    sections = "[policy default]\nall = 10/h burst 10\nbytes-in = 1kb/h burst 4kb\n"
    remaining = []
    for words in [ASK, ("CLIENT", "MAINT_NOTIFICATIONZ", *ASK[2:])]:
        with limited(sections).connect() as conn:
            conn.ask(*[words] * 5)
            told = conn.call("LIMIT", "STATUS")
            limits = told[told.index(b"limits") + 1]
            remaining.append([limit[limit.index(b"remaining") + 1] for limit in limits])
    assert remaining[0][0] == remaining[1][0] == 5
    assert abs(remaining[0][1] - remaining[1][1]) <= 2 and remaining[0][1] < 4000, remaining


def test_passed_where_the_operator_says_so(farm, redis):
    weir = farm.weir(redis, workers=1, maint_notifications="pass")
    session = [("SET", "k", "v"), ASK, ("GET", "k")]
    assert played(weir, session) == played(redis, session)
    assert int(redis.info("total_error_replies")) > 0
