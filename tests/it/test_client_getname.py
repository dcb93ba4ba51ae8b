"""CLIENT GETNAME on a shared lane: Redis tells whether the client may ask, and weir tells the name.
"""

import pytest
from kit.resp import Closed, pipeline
from kit.server import at_least

pytestmark = pytest.mark.skipif(not at_least(7), reason="up to 6.2 a subcommand is taken away otherwise")
USERS = {
    "all": "on >pw ~* &* +@all",
    "none of CLIENT": "on >pw ~* &* +@all -client",
    "no GETNAME": "on >pw ~* &* +@all -client|getname",
    "only GETNAME": "on >pw ~* &* -@all +client|getname +get",
}
SEQUENCES = {
    "by HELLO": ["HELLO 3 AUTH joe pw SETNAME me", "CLIENT GETNAME"],
    "without one": ["AUTH joe pw", "CLIENT GETNAME"],
    "without one in RESP3": ["HELLO 3 AUTH joe pw", "CLIENT GETNAME"],
    "among others": ["HELLO 2 AUTH joe pw SETNAME me", "GET k", "CLIENT GETNAME", "GET k", "CLIENT GETNAME", "CLIENT GETNAME", "GET k"],
    "with too many words": ["HELLO 2 AUTH joe pw SETNAME me", "CLIENT GETNAME me"],
    "behind CLIENT REPLY SKIP": ["HELLO 2 AUTH joe pw SETNAME me", "CLIENT REPLY SKIP", "CLIENT GETNAME", "GET k"],
    "while nobody hears": ["HELLO 2 AUTH joe pw SETNAME me", "CLIENT REPLY OFF", "CLIENT GETNAME", "CLIENT REPLY ON", "GET k"],
    "in MULTI": ["HELLO 2 AUTH joe pw SETNAME me", "MULTI", "CLIENT GETNAME", "EXEC", "CLIENT GETNAME"],
    "behind QUIT's": ["HELLO 2 AUTH joe pw SETNAME me", "CLIENT GETNAME", "QUIT"],
}  # fmt: skip


def answers(conn, words):
    """Returns all replies until the end, except that to HELLO, which contains the connection's id.
    """
    conn.send(pipeline(*words, "QUIT"))
    replies = []
    try:
        while True:
            replies.append(conn.read())
    except Closed:
        return list(map(str, replies[1:]))


@pytest.mark.parametrize("lanes", ["shared", "private"])
@pytest.mark.parametrize("rights", USERS.values(), ids=USERS)
def test_whoever_asks_for_his_name_is_answered_as_by_redis(farm, redis, rights, lanes):
    redis.call("ACL", "SETUSER", "joe", *rights.split())
    redis.call("SET", "k", "v")
    weir = farm.weir(redis, workers=1, lanes=lanes)
    for name, words in SEQUENCES.items():
        with redis.connect() as direct, weir.connect() as conn:
            assert answers(conn, words) == answers(direct, words), name


def test_a_stranger_may_not_ask(farm):
    redis = farm.redis("--requirepass", "pw")
    weir = farm.weir(redis, workers=1)
    with weir.connect() as conn:
        assert str(conn.call("CLIENT", "GETNAME")).startswith("NOAUTH")
