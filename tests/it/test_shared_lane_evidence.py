"""Every command that weir puts on a shared lane answers with exactly one frame, whatever its
arguments are.

The test asks weir for its shared commands (LIMIT EXPLAIN), and sends each to the redis-server under
test itself. Requests have line ends, escapes and whole replies in every argument and at every
option of the command's syntax, on keys of every type. An ECHO of a nonce follows each request:
exactly one frame must come between two nonces. At the end the connection must be in its first
state. REDIS_SERVER=path tries another server: docs/sharing-evidence.md.
"""

import itertools
import random
import re
import shlex

from kit import corpus
import pytest
from kit.harness import REPO
from kit.resp import Closed, Conn, encode
from kit.script import _bytes

SEED = 8
MOST = 120  # requests for each command
GROUP = 24  # requests before the keys are made again

# One reply to these may be as long as a thousand others.
LARGE = re.compile(r"command(\|.*)?|info|config\|get|slowlog\|get|(acl|latency|memory)\|.*")

LONG = b"y" * 300 + b"\r\n+OK\r\n"

# Arguments of an attacker that try to make one reply look like several.
HOSTILE = [
    b"x\r\n$8\r\nATTACKER\r\n",
    b"\r\n+OK\r\n",
    b"-ERR x\r\n-ERR y\r\n",
    b'"\\x0d\\x0a$8\\x0d\\x0aATTACKER\\x0d\\x0a"',
    b"\x00\r\n:1\r\n\x00",
    b"%s%n{}[]*?\\\r\n",
    b'#!"\\r\\n+OK\\r\\n"\n',
    b'#!lua name=x flags="\\r\\n+OK\\r\\n"\n',
    b"",
    LONG,
]
NUMBERS = [b"0", b"1", b"-1", b"2", b"9223372036854775807", b"-9223372036854775808", b"1.5", b"inf", b"nan", b"1e400"]
RANGES = [b"-", b"+", b"[a", b"(1", b"-inf", b"*", b"$", b">", b"1-1", b"0-0", b"#", b"u8"]

# Keys of every type and encoding, and an absent key. Elements and names may look like replies too.
KEYS = {
    b"string": [b"SET string v"],
    b"odd\r\n+OK\r\n": [b"SET KEY ODD"],
    b"int": [b"SET int 12345"],
    b"list": [b"RPUSH list a b 3 ODD"],
    b"set": [b"SADD set a b ODD LONG"],
    b"smallset": [b"SADD smallset a b ODD"],
    b"ints": [b"SADD ints 1 2 3"],
    b"zset": [b"ZADD zset 1 a 2 b 3 ODD"],
    b"bigzset": [b"ZADD bigzset 1 a 2 ODD 3 LONG"],
    b"hash": [b"HSET hash f v ODD ODD n 5"],
    b"bighash": [b"HSET bighash f v ODD LONG"],
    b"stream": [
        b"XADD stream 1-1 f v ODD ODD",
        b"XADD stream 1-2 f v",
        b"XGROUP CREATE stream g 0",
        b"XGROUP CREATE stream ODD 0",
        b"XREADGROUP GROUP g ODD COUNT 1 STREAMS stream >",
    ],
    b"geo": [b"GEOADD geo 13.3 38.1 p 15.0 37.5 ODD"],
    b"hll": [b"PFADD hll a b c"],
    b"none": [],
}
STAND_FOR = {b"KEY": b"odd\r\n+OK\r\n", b"ODD": HOSTILE[0], b"LONG": LONG}

# Lines that the corpus, which is of Redis 7.0, lacks, or has elsewhere.
MORE = """
    HEXPIRE hash 100 FIELDS 1 f | HPEXPIRE hash 100000 NX FIELDS 2 f none | HEXPIREAT hash 33177117420 FIELDS 1 f
    HPEXPIREAT hash 33177117420000 GT FIELDS 1 f | HEXPIRETIME hash FIELDS 1 f | HPEXPIRETIME hash FIELDS 2 f none
    HTTL hash FIELDS 1 f | HPTTL hash FIELDS 1 f | HPERSIST hash FIELDS 1 f | HSCAN hash 0 NOVALUES
    STRALGO LCS STRINGS a b | STRALGO LCS KEYS string int IDX WITHMATCHLEN | STRALGO LCS KEYS string list LEN
    SET string v IFEQ x GET | ZRANK zset a WITHSCORE | ZREVRANK zset a WITHSCORE | MEMORY USAGE string SAMPLES 1
    CLIENT SETINFO LIB-NAME x | CLIENT SETINFO LIB-VER 1.0 | CLIENT SETINFO BAD x | CLIENT PAUSE 0
    CLIENT PAUSE 0 WRITE | CLIENT SETNAME x | CLIENT GETNAME | CLIENT TRACKINGINFO | CLIENT GETREDIR | CLIENT HELP
    CLIENT | ACL WHOAMI
    PUBLISH c m | SPUBLISH c m | PUBSUB CHANNELS | PUBSUB CHANNELS x* | PUBSUB NUMSUB c d | PUBSUB NUMPAT
    PUBSUB SHARDCHANNELS | PUBSUB SHARDNUMSUB c | PUBSUB HELP | READONLY | READWRITE | ASKING | ROLE | TIME | LASTSAVE
    COMMAND | COMMAND COUNT | COMMAND INFO get | COMMAND DOCS get | COMMAND LIST FILTERBY ACLCAT string | COMMAND HELP
    CONFIG GET maxmemory | CONFIG GET * | INFO | INFO server | PING | PING x | ECHO x | SLOWLOG GET 3 | SLOWLOG LEN
    SELECT 0 | HELLO | HELLO 2 | HELLO 3 SETNAME x | HELLO 3 AUTH default x | AUTH x | AUTH default x | RESET
"""

# weir handles these itself, and tracks what they change. In the test each goes on a connection of
# its own.
KEPT = {"auth", "hello", "select", "reset", "client|setname", "client|setinfo"}
# Private commands with replies that weir trusts all the same, except those that end, stop or change
# the server.
HONEST = r'(?m)^ROW\("([^"*]+)", ONE, \w+, PRIVATE,'
NOT_ASKED = r"""(?x) readonly | client\|.* | config\|set | pfselftest | save | bg.* | failover | replicaof | slaveof
    | multi | exec | discard | u?n?watch"""
NEVER_SENT = {"client|reply", "quit"}  # answered by weir
STATE = re.compile(rb"\b(db|resp|flags|name|user|multi|sub|psub|ssub|watch|redir|lib-name)=(\S*)")


class Prober(Conn):
    """Reads frames without building values."""

    def frame(self):
        """Returns the first line of a frame, and what follows if that is the whole frame."""
        head, left = None, 1
        while left:
            line = self.line()
            kind, left = line[:1], left - 1
            if kind in (b"$", b"=", b"!"):
                if line[1:2] != b"-":
                    line += b"\r\n" + self.read_bytes(int(line[1:]) + 2)
            elif kind in (b"*", b"~", b">"):
                left += max(0, int(line[1:]))
            elif kind in (b"%", b"|"):
                left += 2 * int(line[1:]) + (kind == b"|")
            else:
                assert kind in (b"+", b"-", b":", b"_", b",", b"#", b"("), f"not RESP: {line!r}"
            head = head or line
        return head

    def state(self):
        return dict(STATE.findall(self.call("CLIENT", "INFO")))


def words(line):
    return [STAND_FOR.get(word, word) for word in map(_bytes, shlex.split(line))]


def keys_made():
    yield encode("DEL", *KEYS)
    for lines in KEYS.values():
        for line in lines:
            yield encode(*words(line.decode("latin1")))


# ---- requests ----


def lines_of(containers):
    """Returns full name -> the corpus' lines for it."""
    found = {}
    for text in [MORE, *corpus.GROUPS.values()]:
        for line in re.split(r" \| |\n", text.strip()):
            args = words(line.strip())
            name = args[0].decode("latin1").lower()
            if name in containers and len(args) > 1:
                name += "|" + args[1].decode("latin1").lower()
            found.setdefault(name, []).append(args)
    return found


def documented(conn, names):
    """Returns full name -> its arguments according to COMMAND DOCS; nothing before 7.0."""
    docs = conn.call("COMMAND", "DOCS")
    if not isinstance(docs, dict):
        return {}
    found = {}
    for name, doc in docs.items():
        found[name.decode()] = doc.get(b"arguments", [])
        for sub, more in doc.get(b"subcommands", {}).items():
            found[sub.decode()] = more.get(b"arguments", [])
    return {name: found[name] for name in names if name in found}


def value(rng, kind):
    pool = {b"key": list(KEYS), b"integer": NUMBERS[:6], b"double": NUMBERS, b"unix-time": NUMBERS[:6]}.get(kind)
    if pool is None:
        pool = [b"a", b"f", b"g", b"1", *RANGES]
    return rng.choice(pool if rng.random() < 0.6 else HOSTILE)


def form(rng, arguments):
    """Returns one way to fill in a syntax."""
    for argument in arguments:
        flags = argument.get(b"flags", [])
        if "optional" in flags and rng.random() < 0.5:
            continue
        for turn in range(rng.choice((1, 1, 2)) if "multiple" in flags else 1):
            if b"token" in argument and (turn == 0 or "multiple_token" in flags):
                yield argument[b"token"]
            kind = argument[b"type"]
            if kind == b"oneof":
                yield from form(rng, [{**rng.choice(argument[b"arguments"]), b"flags": []}])
            elif kind == b"block":
                yield from form(rng, argument[b"arguments"])
            elif kind != b"pure-token":
                yield value(rng, kind)


def replaced(args, i, values):
    return ([*args[:i], one, *args[i + 1 :]] for one in values)


def requests(rng, name, all_lines, arguments):
    """Returns the requests for a command: its lines, each argument replaced, too few and too many,
    its syntax filled in.
    """
    head, lines = [word.encode() for word in name.upper().split("|")], all_lines.get(name, [])
    tokens = sorted({word for line in lines for word in line[len(head) :] if re.fullmatch(rb"[A-Z-]{2,}", word)})
    first = [head, [*head, HOSTILE[0]], [*head, *HOSTILE], *lines]
    more = []
    for line in lines:
        for i in range(len(head), len(line)):
            more += replaced(line, i, [*HOSTILE, *KEYS])
        more += [line[:-1], [*line, rng.choice(HOSTILE)], [*line, *rng.choices(HOSTILE, k=3)]]
    for _ in range(MOST // 4):
        pool = [*KEYS, *HOSTILE, *NUMBERS, *RANGES, *tokens, *tokens]
        more.append([*head, rng.choice(list(KEYS)), *rng.choices(pool, k=rng.randrange(5))])
        if arguments:
            more.append([*head, *form(rng, arguments)])
    rng.shuffle(more)
    found = [args for args in first + more if args[: len(head)] == head or args is first[0]]
    # a container: with one word more it is another command
    if any(other.startswith(name + "|") for other in all_lines):
        found = [args for args in found if len(args) == 1 or args[1] == b""]
    if name == "client|pause":
        found = [args for args in found if not (len(args) > 2 and re.fullmatch(rb"[1-9]\d*", args[2]))]
    return found[: 30 if LARGE.fullmatch(name) else MOST]


# ---- servers ----


def known_names(server):
    """Returns the commands that the server lists, and all that weir knows."""
    names = set()
    for file in ("command/travel.def", "commands.def"):
        names |= set(re.findall(r'(?m)^\w+\("([^"*]+)"', (REPO / "src/limit" / file).read_text()))
    for row in server.call("COMMAND"):
        names.add(row[0].decode())
        names |= {sub[0].decode() for sub in (row[9] if len(row) > 9 else [])}
    return sorted(names)


def shared_names(weir, names):
    with weir.connect() as conn:
        answers = conn.ask(*(("LIMIT", "EXPLAIN", *name.split("|")) for name in names))
    lane = {name: dict(zip(said[::2], said[1::2]))[b"lane"] for name, said in zip(names, answers)}
    assert {b"shared", b"private"} <= set(lane.values())
    return [name for name in names if lane[name] == b"shared" and name not in NEVER_SENT]


class Trial:
    """Requests on one connection at a time; failures are in `faults`."""

    def __init__(self, server, protocol, rng):
        self.server, self.protocol, self.rng = server, protocol, rng
        self.faults, self.asked, self.conn = [], 0, None
        self.dial()

    def dial(self):
        if self.conn is not None:
            self.conn.close()
        self.conn = Prober(self.server.address)
        self.conn.call("HELLO", self.protocol)

    def ask(self, name, group):
        """Sends a group of requests; true if the connection is still in step."""
        nonces = [b"%032x" % self.rng.getrandbits(128) for _ in range(len(group) + 1)]
        made = list(keys_made())
        self.conn.send(b"".join([*made, encode("ECHO", nonces[-1])]))
        while nonces[-1] not in self.conn.frame():
            pass
        # Since 7.2 AUTH has no answer while replies are unwritten, so no reply may be open when
        # AUTH goes.
        self.conn.send(b"".join(encode(*args) + encode("ECHO", nonce) for args, nonce in zip(group, nonces)))
        args, got = None, b""
        try:
            for args, nonce in zip(group, nonces):
                self.asked += 1
                end = b"$32\r\n%s\r\n" % nonce
                got = self.conn.frame()
                following = self.conn.frame() if got != end and not got.startswith(b">") else None
                if following != end:
                    self.faults.append((name, args, "not one frame", got[:200], following))
                    return False
        except (AssertionError, TimeoutError, Closed, ValueError) as error:
            self.faults.append((name, args, repr(error), got[:200]))
            return False
        return True

    def play(self, name, asked):
        if name in KEPT:
            for args in asked:
                self.dial()
                self.ask(name, [args])
            self.dial()
            return
        before = self.conn.state()
        for i in range(0, len(asked), GROUP):
            if not self.ask(name, asked[i : i + GROUP]):
                self.dial()
        after = self.conn.state()
        if before != after:
            self.faults.append((name, [], "another state", (before, after)))
        self.conn.call("FLUSHALL")


# ---- values that lie ----

# crashes of the server per command; after these the command has shown that it checks the value
ENDS_ENOUGH = 2

# Commands that make a value, and commands that ask for all of it.
LIARS = {
    "hash": ("HSET k f v g w h x", """
        HGETALL k | HKEYS k | HVALS k | HSCAN k 0 | HSCAN k 0 NOVALUES | HMGET k f g | HLEN k | HRANDFIELD k 2
        HRANDFIELD k 100 WITHVALUES | HRANDFIELD k -5
    """),
    "zset": ("ZADD k 1 a 2 b 3 c", """
        ZRANGE k 0 -1 WITHSCORES | ZREVRANGE k 0 -1 | ZRANGEBYSCORE k -inf +inf | ZUNION 1 k | ZRANGEBYLEX k - +
        ZRANDMEMBER k 100 | ZRANDMEMBER k -5 WITHSCORES | ZSCAN k 0 | SORT k ALPHA | ZPOPMIN k 10 | ZDIFF 1 k
        ZINTER 1 k WITHSCORES | GEOSEARCH k FROMLONLAT 0 0 BYRADIUS 10000 km | ZMPOP 1 k MAX COUNT 9
    """),
    "set": ("SADD k a b c", """
        SMEMBERS k | SINTER k | SUNION k | SDIFF k | SRANDMEMBER k 2 | SRANDMEMBER k 100 | SSCAN k 0 | SRANDMEMBER k -5
        SORT k ALPHA | SPOP k 2 | SPOP k 100 | SMISMEMBER k a b
    """),
    "ints": ("SADD k 1 2 3", """
        SMEMBERS k | SINTER k | SUNION k | SDIFF k | SRANDMEMBER k 2 | SRANDMEMBER k 100 | SSCAN k 0 | SRANDMEMBER k -5
        SORT k | SPOP k 2 | SPOP k 100
    """),
    "list": ("RPUSH k a b c d", """
        LRANGE k 0 -1 | LRANGE k 0 100 | LRANGE k -2 -1 | LPOS k a COUNT 0 | SORT k ALPHA | LPOP k 3 | LPOP k 100
        RPOP k 100 | LMPOP 1 k LEFT COUNT 100
    """),
}


def crc64(data):
    """Returns the checksum at the end of DUMP's reply."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x95AC9329AC4BC9B5 if crc & 1 else 0)
    return crc.to_bytes(8, "little")


def lies(honest):
    """Returns DUMP replies with small numbers near the head changed, among them the count of
    elements.
    """
    body = honest[:-8]
    for i, number in itertools.product(range(3, 14), (1, 2, 5, 8, 10)):
        if i < len(body) - 2 and body[i] < 20 and body[i] != number:
            made = body[:i] + bytes([number]) + body[i + 1 :]
            yield made + crc64(made)


def believed(server, make):
    """Returns the false values that RESTORE accepts."""
    with Conn(server.address) as conn:
        conn.ask("FLUSHALL", make)
        return [lie for lie in lies(conn.call("DUMP", "k")) if conn.call("RESTORE", "other", 0, lie, "REPLACE") == "OK"]


@pytest.fixture(scope="module")
def evidence(shared_farm):
    """A server of the test's own, the commands that its weir calls shared, and further commands
    with one reply.
    """
    server = shared_farm.redis("--crash-log-enabled", "no", "--rdbcompression", "no")
    names = known_names(server)
    shared = shared_names(shared_farm.weir(server, workers=1), names)
    honest = re.findall(HONEST, (REPO / "src/limit/command/travel.def").read_text())
    return server, shared, [name for name in honest if name in names and not re.fullmatch(NOT_ASKED, name)]


def ask_all(server, names, protocol):
    """Each command must answer with one frame, must leave the connection unchanged, and must have a
    line to begin with.
    """
    rng = random.Random(SEED)
    lines = lines_of({name.split("|")[0] for name in names if "|" in name})
    with Conn(server.address) as conn:
        conn.call("HELLO", 3)
        docs = documented(conn, names)
    trial = Trial(server, protocol, rng)
    for name in names:
        trial.play(name, requests(rng, name, lines, docs.get(name)))
    print(f"{len(names)} commands, {trial.asked} requests")
    assert not trial.faults, "\n".join(map(str, trial.faults[:20]))
    missing = [name for name in names if name not in lines]
    assert not missing


def test_shared_commands_answer_once(evidence, protocol):
    server, shared, _ = evidence
    assert len(shared) > 150
    ask_all(server, shared, protocol)


def test_other_commands_that_answer_once(evidence, protocol):
    server, _, honest = evidence
    assert len(honest) > 10
    ask_all(server, honest, protocol)


def test_values_that_lie(evidence):
    """RESTORE checks little more than the ends of a value: a command that trusts a value must not
    be shared.
    """
    server, names, _ = evidence
    rng = random.Random(SEED)
    faults, ends, asked = [], 0, 0
    for make, lines in LIARS.values():
        told = believed(server, make)
        assert told
        for line in re.split(r" \| |\n", lines.strip()):
            args = words(line.strip())
            until = ends + ENDS_ENOUGH
            for lie in told if args[0].decode().lower() in names else []:
                if ends == until:
                    break
                asked += 1
                nonce = b"%032x" % rng.getrandbits(128)
                with Prober(server.address) as conn:
                    conn.send(encode("RESTORE", "k", 0, lie, "REPLACE") + encode(*args) + encode("ECHO", nonce))
                    try:
                        got = [conn.frame() for _ in range(3)]
                        if nonce not in got[2]:
                            faults.append((args, lie, got))
                    except Closed:
                        ends += 1
                        server.wait()
                        server.start()
                    except TimeoutError:
                        faults.append((args, lie, "less than one frame"))
    print(f"{asked} requests, the server ended {ends} times")
    assert not faults, "\n".join(map(str, faults[:20]))


def test_what_is_not_one_frame_is_seen(evidence):
    trial = Trial(evidence[0], 3, random.Random(SEED))
    for name, line in [("two", "SUBSCRIBE c d"), ("none", "CLIENT REPLY SKIP | PING"), ("state", "CLIENT SETNAME x")]:
        trial.play(name, [words(command) for command in line.split(" | ")])
        assert trial.faults.pop()[0] == name
        trial.dial()
    assert not trial.faults
