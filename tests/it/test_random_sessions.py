"""Random walks through the states of a connection: any sequence of commands gets the same bytes as
from Redis.

A seed is a sequence, sent in one write or in pieces. A failing sequence is shortened before it is
shown.
"""

import random

import pytest
from kit.harness import rounds
from kit.resp import Closed, Conn, Recorder, encode
from kit.script import mask
from kit.server import at_least

LANES = ["shared", "private"]
SEEDS = rounds(20)
SECONDS = 5.0

PLAIN = """GET k|SET k v|INCR n|ECHO token|PING|PING x|FOO|GET|DBSIZE|HSET h f v|HGETALL h|LRANGE l 0 -1|RPUSH l a
    FLUSHALL|EVAL return{} 0|BLPOP l 0.001|XREAD STREAMS x 0|WAIT 0 0|PUBLISH c m|PUBLISH p1 m|SPUBLISH s m
    CONFIG GET maxmemory"""
TRANSACTIONS = "MULTI|MULTI|EXEC|EXEC|DISCARD|WATCH k|UNWATCH"
SESSION = "SELECT 1|SELECT 0|SELECT 99|HELLO 3|HELLO 2|HELLO|HELLO 4|HELLO 3 SETNAME a|ACL WHOAMI|RESET|READONLY"
# Not where SUBSCRIBE or CLIENT REPLY may come in a transaction: there a client that logs in is
# closed.
LOGINS = "AUTH joe secret|AUTH ann word|AUTH default x|HELLO 3 AUTH joe secret"
# Not in transactions: there a client with a failed login is closed after the reply to EXEC.
FAILURES = "AUTH joe wrong|HELLO 2 AUTH ann wrong|AUTH nobody x|HELLO 3 SETNAME b AUTH joe wrong"
CLIENT = """CLIENT SETNAME n|CLIENT SETNAME m|CLIENT GETNAME|CLIENT TRACKING ON|CLIENT TRACKING OFF|CLIENT TRACKINGINFO
    CLIENT CACHING YES|CLIENT NO-EVICT ON|CLIENT NO-EVICT OFF|CLIENT GETREDIR|CLIENT ID x|CLIENT SETINFO a b"""
SILENCE = "CLIENT REPLY OFF|CLIENT REPLY OFF|CLIENT REPLY ON|CLIENT REPLY ON|CLIENT REPLY SKIP|CLIENT REPLY BAD"
CHANNELS = """SUBSCRIBE c d|SUBSCRIBE e|SUBSCRIBE|UNSUBSCRIBE|UNSUBSCRIBE c|PSUBSCRIBE p*|PUNSUBSCRIBE|SSUBSCRIBE s
    SUNSUBSCRIBE"""

# The parts of a walk. In "RESP3" all commands are in that protocol.
WALKS = {
    "failed logins": [PLAIN, SESSION, LOGINS, FAILURES],
    "logins among channels": [PLAIN, SESSION, LOGINS, CHANNELS, SILENCE],
    "sessions": [PLAIN, TRANSACTIONS, SESSION, LOGINS, CLIENT],
    "silence": [PLAIN, TRANSACTIONS, SESSION, CLIENT, SILENCE],
    "subscriptions": [PLAIN, TRANSACTIONS, SESSION, CHANNELS],
    "subscriptions in RESP3": [PLAIN, TRANSACTIONS, CLIENT, CHANNELS],
    "everything": [PLAIN, TRANSACTIONS, SESSION, CLIENT, SILENCE, CHANNELS],
}


def words(parts):
    return [text.strip() for part in parts for line in part.splitlines() for text in line.split("|")]


def sequence(walk, seed):
    """Returns commands, and how many of them go in each write."""
    dice = random.Random(f"{walk} {seed}")
    some = dice.sample(words(WALKS[walk]), dice.randint(4, 14))
    commands = ["HELLO 3"] if "RESP3" in walk else []
    commands += [dice.choice(some) for _ in range(dice.randint(3, 25))]
    return commands, [dice.randint(1, 6) for _ in range(dice.choice((0, 0, 2, 6)))]


def without_logins_in_multi(commands):
    """weir refuses logins and protocol changes in MULTI. Returns the commands that weir passes on.
    """
    kept, is_open = [], False
    for command in commands:
        name, *arguments = command.split()
        if is_open and (name == "AUTH" or (name == "HELLO" and arguments)):
            continue
        is_open = name == "MULTI" or (is_open and name not in ("EXEC", "DISCARD", "RESET"))
        kept.append(command)
    return kept


def replies(address, redis, commands, pieces):
    redis.call("FLUSHALL")
    data = [encode(*command.split()) for command in commands] + [encode("RESET"), encode("ECHO", "end")]
    if address == redis.address and at_least(7, 2) and any(command in FAILURES.split("|") for command in commands):
        return one_by_one(address, data)
    with Conn(address, SECONDS) as conn:
        for piece in [*pieces, len(data)]:
            conn.send(b"".join(data[:piece]))
            data = data[piece:]
        try:
            while not conn.buffer.endswith(b"$3\r\nend\r\n"):
                conn.more()
        except Closed:
            conn.buffer += b"<closed>"
        except TimeoutError:
            conn.buffer += b"<nothing more>"
        return mask(bytes(conn.buffer))


def one_by_one(address, data):
    """Sends each request alone, so Redis answers failed logins: since 7.2 it does not behind unsent
    replies.
    """
    with Recorder(address, SECONDS) as conn:
        seen = b""
        for request in data:
            conn.send(request)
            seen += conn.frame()
        return mask(seen)


def shortest(commands, differ):
    """Returns as few of the commands as still differ."""
    at = 0
    while at < len(commands):
        fewer = commands[:at] + commands[at + 1 :]
        if differ(fewer):
            commands = fewer
        else:
            at += 1
    return commands


@pytest.fixture(scope="module")
def servers(shared_farm):
    redis = shared_farm.redis()
    redis.call("ACL", "SETUSER", "joe", "on", ">secret", "~*", "&*", "+@all")
    redis.call("ACL", "SETUSER", "ann", "on", ">word", "~ann:*", "&*", "+@all", "-flushall")
    return redis, {lanes: shared_farm.weir(redis, workers=1, lanes=lanes) for lanes in LANES}


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("lanes", LANES)
def test_same_as_redis(lanes, walk, servers):
    redis, weirs = servers

    def both(commands, pieces=()):
        commands = without_logins_in_multi(commands)
        return [replies(address, redis, commands, pieces) for address in (redis.address, weirs[lanes].address)]

    def differ(commands):
        want, got = both(commands)
        return want != got

    for seed in range(SEEDS):
        commands, pieces = sequence(walk, seed)
        want, got = both(commands, pieces)
        if want != got:
            short = shortest(commands, differ) if differ(commands) else commands
            want, got = both(short) if short != commands else (want, got)
            assert got == want, f"seed {seed}: {short}\n   redis {want!r}\n   weir  {got!r}"
