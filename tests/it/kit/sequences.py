"""Random sequences of steps for a Redis server: several connections, mostly with well-formed
requests.
"""

import random

from kit.resp import encode
from kit.server import at_least
from kit.twins import id_of

CONNS = 6  # connections at once
STEPS = (4, 40)

KEYS = ["s1", "s2", "l1", "l2", "z1", "n1", "{a}b", ""]
VALUES = ["", "1", "-7", "10", "abc", "3.5", "a b", "x" * 100, "9223372036854775807", "\r\n", "nan"]
CHANNELS = ["c1", "c2", "news", ""]
PATTERNS = ["c*", "n?ws", "*", "[a-c]1"]
NUMBERS = ["0", "1", "2", "3", "-1", "-2", "5", "100", "x", "1.5", "9223372036854775808", ""]
SCORES = ["1", "2", "2.5", "-inf", "+inf", "(1", "(3", "0.1", "1e20", "x", "-0", "3"]
MEMBERS = ["a", "b", "c", "dd", ""]
PASSWORDS = ["p1", "p2", ""]
USERS = ["ann", "bob", "default", "nobody"]
SCRIPTS = [
    "return 1",
    "return redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], ARGV[1])",
    "return {1, 'a', false, true, 3.7, {'b', {}}}",
    "return {1, nil, 3}",
    "return redis.pcall('INCR', KEYS[1])",
    "return redis.call('INCR', KEYS[1])",
    "return redis.error_reply('MINE it is')",
    "return redis.error_reply('mine')",
    "return redis.status_reply('FINE')",
    "return {err='-X y'}",
    "return redis.call('NOSUCH', 1)",
    "return redis.pcall('NOSUCH', 1)",
    "return redis.call('GET')",
    "return redis.call('BLPOP', KEYS[1], 0)",
    "return redis.call('SUBSCRIBE', 'x')",
    "return redis.call('RPUSH', KEYS[1], 'v', 'w')",
    "redis.call('SET', KEYS[1], 'v'); redis.call('PUBLISH', 'c1', ARGV[1]); return redis.call('DEL', KEYS[1])",
    "return undefined_global",
    "undefined_global = 1",
    "error('on purpose')",
    *(["error({err='MY table'})"] if at_least(7, 0) else []),
    "return tostring(pcall(redis.call, 'INCR', KEYS[1]))",
    "local ok, err = pcall(error, 'x'); return {ok, err}",
    "return #KEYS * 100 + #ARGV",
    "this is no Lua",
    "redis.call('SELECT', 3); return redis.call('SET', 's1', 'three')",
    "redis.setresp(3); return {redis.call('GET', 'none'), true, false}",
    "return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')",
    "return redis.call('ECHO', 0.1)",
    "return redis.sha1hex('abc')",
    "return struct.pack('>I7I4', 5, 77)",
    "return {struct.unpack('>I2b', 'abc')}",
    "return redis.call('MGET', 's1', 's2')",
    "",
]


class Sequence:
    """The steps of several connections, in one order."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.steps = []
        self.open = []
        self.n_opened = 0
        theme = self.random.choice([*THEMES.values(), set()])
        self.makers, weights = zip(*COMMANDS)
        self.weights = [weight * (6 if names & theme else 1) for weight, names in zip(weights, NAMES)]

    def pick(self, words):
        return self.random.choice(words)

    def some(self, words, least=1, most=3):
        return [self.pick(words) for _ in range(self.random.randint(least, most))]

    def key(self, kind=None):
        """Returns a key, mostly of the given type."""
        if kind and self.random.random() < 0.8:
            return self.pick([k for k in KEYS if k.startswith(kind)])
        return self.pick(KEYS)

    def id(self):
        """Returns the id of a present, past or future connection."""
        return id_of(self.random.randint(0, self.n_opened))

    def command(self):
        """Returns the words of one command."""
        words = self.random.choices(self.makers, self.weights)[0](self)
        # FLUSHALL, PAUSE or KILL with fewer words concerns every client. COMMAND with fewer words
        # lists what the model lacks.
        is_harmless = words[0] not in ("FLUSHALL", "COMMAND") and words[1:2] not in (["PAUSE"], ["KILL"])
        if self.random.random() < 0.03 and is_harmless:
            words = words[: self.random.randint(1, len(words))]
        if self.random.random() < 0.02:
            words = [*words, *self.some(VALUES)]
        if self.random.random() < 0.1:
            words = [self.pick([str.lower, str.upper, str.title])(words[0]), *words[1:]]
        return words

    def bytes(self):
        if self.random.random() < 0.02:
            return self.pick(HOSTILE)
        if self.random.random() < 0.05:
            return " ".join(self.command()).encode() + self.pick([b"\r\n", b"\n"])
        return encode(*self.command())

    def say(self):
        n = self.pick(self.open)
        data = b""
        for _ in range(self.random.choices([1, 2, 4], [8, 2, 1])[0]):
            data += self.bytes()
            if len(data) > 65536:
                break  # how much of the next bytes is read along depends on the server's buffers
        if self.random.random() < 0.05:
            cut = self.random.randint(0, len(data))
            self.steps.append(("send", n, data[:cut]))
            data = data[cut:]
        if data:
            self.steps.append(("send", n, data))

    def come(self):
        self.steps.append(("open", self.n_opened))
        self.open.append(self.n_opened)
        self.n_opened += 1

    def go(self):
        n = self.pick(self.open)
        self.open.remove(n)
        self.steps.append(("close", n))

    def make(self):
        for _ in range(3):
            self.come()
        for words in self.pick(BEGINNINGS):
            n = self.pick(self.open)
            self.steps.append(("send", n, encode(*words.split())))
        for _ in range(self.random.randint(*STEPS)):
            chance = self.random.random()
            if chance < 0.03 and len(self.open) < CONNS:
                self.come()
            elif chance < 0.05 and len(self.open) > 1:
                self.go()
            else:
                self.say()
        return self.steps


HOSTILE = [
    b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n",  # the third word is missing
    b"*x\r\n",
    b"*-1\r\n",
    b"*0\r\n",
    b"\r\n",
    b"*1\r\n+PING\r\n",
    b"*1\r\n$-1\r\n",
    b"*1\r\n$x\r\n",
    b"*1\r\n$00004\r\nPING\r\n",
    b"*2147483648\r\n",
    b"*1048577\r\n",
    b"*1\r\n$536870913\r\n",
    b"*+1\r\n",
    b"* 1\r\n",
    b"SET s1 'a b'\r\n",
    b'SET s1 "\\x41\\n"\r\n',
    b"SET s1 'a\r\n",
    b'GET "s1"x\r\n',
    b"PING\0\r\n",
    *([b"POST / HTTP/1.1\r\n", b"Host: here\r\n"] if at_least(7, 0) else []),
    b"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n",
    b"*1\rx$4\r\nPING\r\n",
    b"$4\r\nPING\r\n",
    b"*" + b"1" * 150000,
    b"x" * 150000,
    b"*1\r\n$" + b"1" * 150000,
    b"*2\r\n$4\r\nECHO\r\n$5\r\na\0b\rc\r\n",
    b"*2\r\n$6\r\nNO\0SUC\r\n$3\r\na\nb\r\n",
    b"*2\r\n$4\r\nECHO\r\n$3\r\nab",
]


def fixed(*words):
    return lambda s: list(words)


def _set(s):
    options = s.some(["NX", "XX", "GET", "KEEPTTL", "EX", "PX", "100000", "200000", "EXAT", "x"], 0, 3)
    return ["SET", s.key("s"), s.pick(VALUES), *(options if s.random.random() < 0.4 else [])]


def _eval(s):
    keys = s.some(KEYS, 0, 2)
    count = str(len(keys)) if s.random.random() < 0.95 else s.pick(NUMBERS)
    name = s.pick(["EVAL"] * 4 + ["EVAL_RO"]) if at_least(7, 0) else "EVAL"
    return [name, s.pick(SCRIPTS), count, *keys, *s.some(VALUES, 0, 2)]


def _evalsha(s):
    sha = s.pick(["e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "x" * 40, "x"])
    return ["EVALSHA", sha, s.pick(["0", "1", "x", "-1"]), *s.some(VALUES, 0, 2)]


def _tracking(s):
    options = s.some(["OPTIN", "OPTOUT", "NOLOOP", "REDIRECT", s.id(), "x"], 0, 3)
    if s.random.random() < 0.2:
        options = ["REDIRECT", s.id(), *options]
    return ["CLIENT", "TRACKING", s.pick(["ON", "ON", "ON", "OFF", "x"]), *(options if s.random.random() < 0.6 else [])]


def _setuser(s):
    """Each user may run every command: the model knows no permissions."""
    rules = s.some(["on", "off", ">p1", "<p1", ">p2", "nopass", "resetpass", "x"], 0, 6)
    return ["ACL", "SETUSER", s.pick(["ann", "ann", "bob"]), "~*", "&*", "+@all", *rules]


def _hello(s):
    options = s.some([["AUTH", "ann", "p1"], ["AUTH", "default", "p1"], ["SETNAME", "me"], ["SETNAME", "a b"], ["AUTH", "x"],
                      ["x"]], 0, 2)  # fmt: skip
    return ["HELLO", *([s.pick(["2", "3", "3", "3", "4", "x"])] if s.random.random() < 0.9 else []),
            *(word for option in options for word in option if s.random.random() < 0.9)]  # fmt: skip


def _flush(s):
    """In 7.4 a FLUSHALL without SYNC is answered later."""
    ends = ["ASYNC", "ASYNC", "x"] if at_least(7, 4) else ["ASYNC", "SYNC", "x"]
    return ["FLUSHALL", *s.some(ends, 1 if at_least(7, 4) else 0, 1)]


def _kill(s):
    filters = s.some([["TYPE", "pubsub"], ["TYPE", "x"], ["USER", "ann"], ["USER", "nobody"], ["ID", "0" if at_least(7, 0) else "x"], ["ID", "999999"],
                      ["SKIPME", "no"], ["SKIPME", "yes"], ["ADDR", "1.2.3.4:5"], ["x"]], 1, 2)  # fmt: skip
    words = [word for option in filters for word in option]
    if s.random.random() < 0.5:
        words = ["ID", s.id()]
    if not any(w in words for w in ("TYPE", "USER", "ID", "ADDR")):
        words += ["USER", "ann"]  # not every client
    return ["CLIENT", "KILL", *words]


ABOUT = [
    ["GETKEYS", "MSET", "a", "b", "c", "d"], ["GETKEYS", "MSET", "a", "b", "c"], ["GETKEYS", "blmove", "a", "b"],
    ["GETKEYS", "EVAL", "x", "2", "a", "b"], ["GETKEYS", "EVAL", "x", "3", "a"], ["GETKEYS", "EVAL", "x", "0"],
    ["GETKEYS", "PING"], ["GETKEYS", "CLIENT", "ID"], ["GETKEYS", "GET"], ["GETKEYS", "nosuch", "a"], ["GETKEYS"],
    ["GETKEYSANDFLAGS", "nosuch", "a"], ["GETKEYSANDFLAGS", "PING", "a"], ["GETKEYSANDFLAGS", "GET", "a", "b"],
    ["LIST", "x"], ["LIST", "FILTERBY"], ["LIST", "FILTERBY", "MODULE", "x"], ["LIST", "FILTERBY", "x", "x"],
    ["LIST", "FILTERBY", "ACLCAT", "limit"], ["LIST", "FILTERBY", "PATTERN", "LMOV?"], ["INFO", "nosuch"],
    ["LIST", "FILTERBY", "PATTERN", "CLIENT|ID"], ["DOCS", "nosuch"], ["COUNT", "x"], ["nosuch"],
]  # fmt: skip

COMMANDS = [
    (lambda s: ["GET", s.key("s")], 20),
    (_set, 20),
    (lambda s: ["INCR", s.key("n")], 5),
    (lambda s: ["INCRBY", s.key("n"), s.pick(NUMBERS)], 3),
    (lambda s: ["SETRANGE", s.key("s"), s.pick([*NUMBERS, "536870912"][:10]), s.pick(VALUES)], 1),
    (lambda s: ["MGET", *s.some(KEYS)], 3),
    (lambda s: ["MSET", *s.some(KEYS, 2, 4)], 2),
    (lambda s: [s.pick(["DEL", "UNLINK", "EXISTS"]), *s.some(KEYS)], 6),
    (lambda s: ["PEXPIRE", s.key(), s.pick(["100000", "-1", "x"])], 2),
    (lambda s: ["PTTL", s.key()], 4),
    (_flush, 1),
    (lambda s: ["RPUSH", s.key("l"), *s.some(VALUES)], 14),
    (lambda s: ["LPOP", s.key("l"), *s.some(NUMBERS, 0, 1)], 5),
    (lambda s: ["LMOVE", s.key("l"), s.key("l"), *s.some(["LEFT", "RIGHT"], 2, 2)], 2),
    (lambda s: [s.pick(["BLPOP", "BRPOP"]), *s.some(["l1", "l2", "l1", "s1"]), s.pick(["0", "100", "1000.5", "x", "-1"])], 8),
    (lambda s: ["BLMOVE", s.key("l"), s.key("l"), *s.some(["LEFT", "RIGHT"], 2, 2), s.pick(["0", "100", "inf"])], 3),
    (lambda s: ["WAIT", s.pick(["0", "1", "x"]), s.pick(["0", "100000", "-1"])], 1),
    (lambda s: ["ZADD", s.key("z"), *s.some(["NX", "XX", "CH", "INCR", "GT", "LT"], 0, 1),
                *(w for _ in range(s.random.randint(1, 3)) for w in (s.pick(SCORES), s.pick(MEMBERS)))], 6),  # fmt: skip
    (lambda s: ["ZREM", s.key("z"), *s.some(MEMBERS)], 2),
    (lambda s: ["ZSCORE", s.key("z"), s.pick(MEMBERS)], 1),
    (lambda s: ["ZCARD", s.key("z")], 1),
    (lambda s: [s.pick(["ZRANGE", "ZREVRANGE"]), s.key("z"), s.pick(NUMBERS), s.pick(NUMBERS),
                *s.some(["WITHSCORES", "REV", "BYSCORE"], 0, 1)], 4),  # fmt: skip
    (lambda s: ["ZREVRANGEBYSCORE", s.key("z"), s.pick(SCORES), s.pick(SCORES),
                *s.pick([[], ["WITHSCORES"], ["LIMIT", "0", "1"], ["LIMIT", "-1", "2"], ["LIMIT", "1", "-1"]])], 4),  # fmt: skip
    (lambda s: ["ZCOUNT", s.key("z"), s.pick(SCORES), s.pick(SCORES)], 2),
    (lambda s: ["ZREMRANGEBYRANK", s.key("z"), s.pick(NUMBERS), s.pick(NUMBERS)], 1),
    (lambda s: ["ZREMRANGEBYSCORE", s.key("z"), s.pick(SCORES), s.pick(SCORES)], 1),
    (fixed("MULTI"), 12),
    (fixed("EXEC"), 14),
    (fixed("DISCARD"), 2),
    (lambda s: ["WATCH", *s.some(KEYS)], 5),
    (fixed("UNWATCH"), 1),
    (lambda s: ["SUBSCRIBE", *s.some(CHANNELS)], 4),
    (lambda s: ["PSUBSCRIBE", *s.some(PATTERNS)], 3),
    (lambda s: [s.pick(["UNSUBSCRIBE", "PUNSUBSCRIBE"]), *s.some([*CHANNELS, *PATTERNS], 0, 2)], 4),
    (lambda s: ["PUBLISH", s.pick(CHANNELS), s.pick(VALUES)], 8),
    (lambda s: [s.pick(["SSUBSCRIBE", "SUNSUBSCRIBE"]), *s.some(CHANNELS)] if at_least(7, 0) else ["PING"], 2),
    (lambda s: ["SPUBLISH", s.pick(CHANNELS), s.pick(VALUES)] if at_least(7, 0) else ["PING"], 2),
    (_hello, 10),
    (lambda s: ["AUTH", *s.some([*PASSWORDS, *USERS[:2]], 1, 2)], 4),
    (lambda s: ["SELECT", s.pick(["0", "1", "1", "15", "16", "-1", "x"])], 4),
    (fixed("RESET"), 3),
    (lambda s: ["PING", *s.some(VALUES, 0, 1)], 4),
    (lambda s: ["ECHO", s.pick(VALUES)], 3),
    (lambda s: ["CLIENT", *s.pick([["ID"], ["GETNAME"], ["INFO"], ["LIST"], ["LIST", "TYPE", "pubsub"], ["x"], []])], 5),
    (lambda s: ["CLIENT", "SETNAME", s.pick(["me", "you", "a b", ""])], 3),
    (lambda s: ["CLIENT", "SETINFO", s.pick(["lib-name", "LIB-VER", "x"]), s.pick(["a", "a b", ""])], 2),
    (lambda s: ["CLIENT", "REPLY", s.pick(["ON", "OFF", "SKIP", "SKIP", "x"])], 4),
    (lambda s: ["CLIENT", "NO-EVICT", s.pick(["on", "off", "x"])] if at_least(7, 0) else ["PING"], 1),
    (lambda s: ["CLIENT", "LIST", "ID", s.id(), s.id()], 1),
    (lambda s: ["CLIENT", "UNBLOCK", s.pick(["0", "x", "999999", s.id(), s.id(), s.id()]), *s.some(["ERROR", "TIMEOUT", "x"], 0, 1)], 3),
    (lambda s: ["CLIENT", "PAUSE", s.pick(["100000", "x", "-1"]), "WRITE"], 1),
    (fixed("CLIENT", "UNPAUSE"), 2),
    (_tracking, 6),
    (lambda s: ["CLIENT", "CACHING", s.pick(["YES", "NO", "x"])], 2),
    (lambda s: ["CLIENT", "TRACKINGINFO"], 2),
    (_kill, 2),
    (_setuser, 6),
    (lambda s: ["ACL", "DELUSER", *s.some(["ann", "bob", "nobody"])], 1),
    (lambda s: ["ACL", *s.pick([["WHOAMI"], ["x"]])], 3),
    (lambda s: ["CONFIG", "SET", "requirepass", s.pick(["p1", "", ""])], 1),
    (lambda s: ["CONFIG", *s.pick([["SET", "nosuch", "1"], ["x"]])], 1),
    (fixed("MONITOR"), 1),
    (fixed("TIME"), 1),
    (_eval, 12),
    (_evalsha, 4),
    (lambda s: ["SCRIPT", *s.pick([["LOAD", "return 1"], ["FLUSH"], ["KILL"], ["LOAD", "x y"]])], 3),
    (lambda s: ["COMMAND", *s.pick(ABOUT)], 2),
    (lambda s: [s.pick(["NOSUCH", "no such", "x" * 200, ""]), *s.some(VALUES, 0, 3)], 4),
]  # fmt: skip

# The main commands of each kind of sequence.
THEMES = {
    "users": {"ACL", "AUTH", "HELLO", "GET", "SET", "RESET", "MULTI", "EXEC", "PUBLISH"},
    "tracking": {"CLIENT", "GET", "SET", "DEL", "FLUSHALL", "HELLO", "MGET", "INCR", "EVAL", "RPUSH", "BLPOP"},
    "transactions": {"MULTI", "EXEC", "WATCH", "DISCARD", "SET", "INCR", "DEL"},
    "listening": {"SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE", "SSUBSCRIBE", "PUBLISH", "SPUBLISH", "HELLO", "PING", "MULTI", "EXEC"},
    "waiting": {"BLPOP", "BLMOVE", "RPUSH", "LPOP", "EVAL", "CLIENT", "MULTI", "EXEC", "DEL", "WAIT"},
    "scripts": {"EVAL", "EVALSHA", "SCRIPT", "MULTI", "EXEC", "HELLO"},
}

BEGINNINGS = [
    [],
    [],
    ["ACL SETUSER ann on >p1 ~* &* +@all", "AUTH ann p1", "AUTH ann p1"],
    ["ACL SETUSER ann on nopass ~* &* +@all", "AUTH ann x", "HELLO 3 AUTH ann x"],
    ["CONFIG SET requirepass p1", "AUTH p1"],
    ["HELLO 3", "HELLO 3", "CLIENT TRACKING ON"],
    ["HELLO 3", "CLIENT TRACKING ON NOLOOP", "CLIENT TRACKING ON"],
    ["HELLO 3", "CLIENT TRACKING ON OPTIN", "CLIENT CACHING YES"],
    ["HELLO 3", "HELLO 3", "SUBSCRIBE c1 __redis__:invalidate", "PSUBSCRIBE c*"],
    ["RPUSH l1 a b c", "RPUSH l2 d", "ZADD z1 1 a 2 b 3 c", "SET s1 abc", "SET n1 7"],
    ["BLPOP l1 0", "BRPOP l1 l2 0", "BLMOVE l1 l2 LEFT RIGHT 0"],
]


def _names():
    """Returns the first words that each maker produces."""
    maker = Sequence.__new__(Sequence)
    maker.random, maker.n_opened = random.Random(0), 0
    return [{make(maker)[0] for _ in range(10)} for make, _ in COMMANDS]


NAMES = _names()

UNORDERED = [b"UNSUBSCRIBE"]


def is_ordered(steps, i, n):
    """False if Redis sends messages to connection n in no fixed order: of channels, or of several
    patterns of the connection that match.
    """
    own = [s[2].upper() for s in steps[: i + 1] if s[0] == "send" and s[1] == n]
    said = b"".join(own if own and b"EXEC" in own[-1] else own[-8:])
    patterns = sum(data.count(b"PSUBSCRIBE") for data in own)
    return patterns == 0 and not any(word in said for word in UNORDERED)
