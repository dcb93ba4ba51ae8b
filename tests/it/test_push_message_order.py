"""In RESP3 a push message that Redis writes after a reply arrives before weir's own next reply, and
before the end of the connection.
"""

import pytest
from kit.resp import Closed, Error, Push, pipeline

ROUNDS = 20
BEFORE = {
    "an invalidation": ["CLIENT TRACKING on", "GET pushed", "SET pushed v"],
    "one's own message": ["SUBSCRIBE pushed", "PUBLISH pushed x"],
    "one's own message in MULTI": ["SUBSCRIBE pushed", "MULTI", "PUBLISH pushed x", "EXEC"],
}
SECTIONS = "[policy default]\ncmd.lcs = deny\ncmd.getdel = 1/h over close\n"


@pytest.fixture(scope="module")
def weir(kept):
    weir = kept(workers=1, sections=SECTIONS)
    with weir.connect() as conn:
        conn.call("GETDEL", "nothing")  # refused from here on
    return weir


def replies_to_the_end(conn, *requests):
    """Returns all that comes, without HELLO's reply."""
    conn.send(b"".join(r if isinstance(r, bytes) else pipeline(r) for r in ["HELLO 3", *requests]))
    replies = []
    while True:
        try:
            replies.append(conn.read())
        except Closed:
            return replies[1:]


def kinds(replies):
    return ["error" if isinstance(r, Error) else "push" if isinstance(r, Push) else "reply" for r in replies]


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
@pytest.mark.parametrize(
    ("then", "expected"),
    [
        (["QUIT"], ["reply"]),
        (["RESET", "QUIT"], ["reply", "reply"]),
        (["LCS a b", "LCS a b", "QUIT"], ["error", "error", "reply"]),
        (["MULTI", "LCS a b", "QUIT"], ["reply", "error", "reply"]),
        (["LIMIT FUNNEL pushes 9/s", "QUIT"], ["reply", "reply"]),
        (["GETDEL a"], ["error"]),
        ([b"*1\r\n$x\r\n"], ["error"]),
        (["LCS a b", "SUBSCRIBE other", "LCS a b", "QUIT"], ["error", "push", "error", "reply"]),
        (["CLIENT REPLY off", "QUIT"], []),
    ],
    ids=["QUIT", "RESET", "denied", "denied in MULTI", "LIMIT", "over close", "protocol error", "SUBSCRIBE", "deaf"],
)
def test_a_push_behind_a_reply_comes_before_what_weir_says(before, then, expected, weir, redis):
    for number in range(ROUNDS):
        with redis.connect() as direct:
            direct.call("DEL", "pushed")
            heard = kinds(replies_to_the_end(direct, *before, "PING", "QUIT"))[:-2]
        redis.call("DEL", "pushed")
        with weir.connect() as conn:
            assert kinds(replies_to_the_end(conn, *before, *then)) == heard + expected, f"round {number}"


