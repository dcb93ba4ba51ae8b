"""Random scripts: whatever state connections get into, weir and Redis answer alike."""

import random

import pytest
from kit.harness import rounds
from kit.resp import encode
from kit.script import same_as_redis

SEEDS = rounds(10)

COMMANDS = """
    GET k1|GET k2|SET k1 a|SET k2 b|INCR n|INCR k1|DEL k1 k2|LPUSH l x|LPOP l|LRANGE l 0 -1|MGET k1 k2 n
    HSET h f v|HGETALL h|MULTI|MULTI|EXEC|EXEC|DISCARD|WATCH k1|UNWATCH|WATCH k1 k2
    SELECT 0|SELECT 1|SELECT 99|SWAPDB 0 1|FLUSHDB
    HELLO 2|HELLO 3|HELLO|HELLO 9|RESET|CLIENT SETNAME me|CLIENT GETNAME
    CLIENT REPLY SKIP|CLIENT REPLY OFF|CLIENT REPLY ON|CLIENT REPLY ON
    SUBSCRIBE c1|SUBSCRIBE c1 c2|UNSUBSCRIBE|UNSUBSCRIBE c1 c3|PSUBSCRIBE c*|PUNSUBSCRIBE|PUNSUBSCRIBE c*
    SSUBSCRIBE s|SUNSUBSCRIBE|PUBLISH c1 m1|PUBLISH c2 m2|SPUBLISH s m3
    BLPOP l 0|RPUSH l y|BLMOVE l l2 LEFT RIGHT 0
    PING|PING x|ECHO x|TYPE k1|DBSIZE|EXISTS k1|OBJECT HELP|CLIENT NO-EVICT OFF|CLIENT TRACKING OFF|CLIENT TRACKING ON
    FOO|GET|SET k1|CONFIG|CONFIG BAD|SELECT x|CLIENT REPLY BAD|SUBSCRIBE|EXEC x
    AUTH x|AUTH joe bad|AUTH joe pw|HELLO 3 AUTH joe pw|HELLO 2 AUTH joe bad|ACL WHOAMI
    WAIT 0 0|SCRIPT EXISTS x|COMMAND GETKEYS SET k v|QUIT
"""
POOL = [command.strip() for command in COMMANDS.replace("\n", "|").split("|") if command.strip()]
EVALS = [("EVAL", "return redis.call('GET', 'k1')", "0"), ("EVAL", "return {1,'a',{}}", "0"), ("EVALSHA", "x", "0")]
RARE = {"QUIT": 0.1, "CLIENT REPLY OFF": 0.3, "BLPOP l 0": 0.3, "BLMOVE l l2 LEFT RIGHT 0": 0.3}


def random_steps(seed):
    """Returns (connection, bytes) of three connections; commands one by one or in pipelines,
    multibulk or inline.
    """
    rng = random.Random(seed)
    in_multi, was_mute = set(), set()
    steps = []
    for _ in range(rng.randrange(5, 25)):
        name = rng.choice("abc")
        data = b""
        for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
            if rng.random() < 0.05:
                data += encode(*rng.choice(EVALS))
                continue
            command = rng.choice(POOL)
            if rng.random() > RARE.get(command, 1) or is_different(name, command, in_multi, was_mute):
                continue
            data += command.encode() + b"\r\n" if rng.random() < 0.1 else encode(*command.split())
        if data:
            steps.append((name, data))
    return steps


def is_different(name, command, in_multi, was_mute):
    """True for deliberate differences: in MULTI (logins, protocol changes, replies to a client with
    CLIENT REPLY OFF), and at QUIT.
    """
    if command == "MULTI":
        in_multi.add(name)
    elif command in ("EXEC", "DISCARD", "RESET"):
        in_multi.discard(name)
    elif command in ("CLIENT REPLY OFF", "CLIENT REPLY SKIP"):
        was_mute.add(name)
    if command == "QUIT":
        return name in was_mute
    heard = ("SUB", "PSUB", "UNSUB", "PUNSUB", "SSUB", "SUNSUB", "MONITOR", "CLIENT REPLY")
    is_refused = command.startswith(("AUTH", "HELLO")) or (name in was_mute and command.startswith(heard))
    return name in in_multi and is_refused


@pytest.fixture
def joe(redis):
    redis.call("ACL", "SETUSER", "joe", "on", ">pw", "~*", "&*", "+@all", "-flushdb")
    yield
    redis.call("ACL", "DELUSER", "joe")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_scripts_have_the_replies_of_redis(seed, weir, redis, joe):
    same_as_redis(weir, redis, random_steps(seed))
