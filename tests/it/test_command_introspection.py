"""COMMAND through weir: Redis' descriptions of its commands pass byte for byte, and weir's own
commands are added.
"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios

import pytest
import redis as redis_py
from kit.fake import Fake
from kit.harness import REPO, wait_until
from kit.resp import Closed, Conn, Error, Push, encode, pipeline
from kit.server import at_least

PROTOCOLS = [2, 3]
OWN = re.findall(r'^OWN\("([^"]+)"', (REPO / "src/limit/command/own.def").read_text(), re.M)
TOP = [name for name in OWN if "|" not in name]
SUBCOMMANDS = [name.partition("|")[2] for name in OWN if "|" in name]

LISTS = ["COMMAND", "COMMAND INFO", "command docs", "COMMAND LIST"]

UNCHANGED = """
COMMAND INFO get none|COMMAND INFO none|COMMAND INFO config client|get|COMMAND DOCS get none SET|COMMAND DOCS none
COMMAND LIST FILTERBY ACLCAT read|COMMAND LIST FILTERBY ACLCAT none|COMMAND LIST FILTERBY MODULE limit
COMMAND LIST FILTERBY PATTERN l*|COMMAND LIST FILTERBY ACLCAT limit|COMMAND LIST FILTERBY BAD x|COMMAND LIST BAD|COMMAND LIST FILTERBY
COMMAND COUNT x|COMMAND GETKEYS SET k v|COMMAND GETKEYS|COMMAND GETKEYS none x
COMMAND GETKEYS PING|COMMAND GETKEYS MSET a b c d|COMMAND GETKEYSANDFLAGS SET k v|COMMAND GETKEYS limit none
COMMAND GETKEYS LIMIT FUNNEL k 1/s|COMMAND GETKEYSANDFLAGS cl.throttle k 1 2 3
COMMAND HELP|COMMAND BAD|COMMAND BAD limit
"""


def connect(server, protocol):
    conn = server.connect()
    if protocol == 3:
        conn.call("HELLO", "3")
    return conn


def raw(server, protocol, *args):
    """Returns the bytes of the reply. A marker request follows, and its reply is cut off."""
    with connect(server, protocol) as conn:
        conn.send(encode(*args) + encode("ECHO", "the end"))
        while not conn.buffer.endswith(b"$7\r\nthe end\r\n"):
            conn.more()
        return bytes(conn.buffer[: -len(b"$7\r\nthe end\r\n")])


def head_and_body(reply):
    head, _, body = reply.partition(b"\r\n")
    return head[:1], int(head[1:]), body


def parsed(data):
    """Returns all elements in these bytes, maps as dictionaries."""
    conn = Conn.__new__(Conn)
    conn.buffer = bytearray(data)
    elements = []
    while conn.buffer:
        elements.append(conn.read())
    return elements


def as_map(value):
    return value if isinstance(value, dict) else dict(zip(value[::2], value[1::2]))


# ---- all commands ----


def side_by_side(redis, weir, protocol, command):
    """Returns the replies of Redis and of weir to one question. Redis rehashes its command table
    while it is used, and until then the order changes.
    """
    words = command.split()
    while True:
        before, through, after = raw(redis, protocol, *words), raw(weir, protocol, *words), raw(redis, protocol, *words)
        if before == after:
            return before, through


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("command", LISTS)
def test_ours_follow_those_of_redis(weir, redis, protocol, command):
    direct, through = side_by_side(redis, weir, protocol, command)
    if direct[:1] == b"-":
        assert through == direct and not at_least(7, 0)  # the question does not exist
        return
    kind, count, body = head_and_body(direct)
    kind_through, count_through, body_through = head_and_body(through)
    assert kind_through == kind
    assert body_through.startswith(body)
    ours = parsed(body_through[len(body) :])
    assert len(ours) == (count_through - count) * (2 if kind == b"%" else 1)
    if "LIST" in command:
        assert [name.decode() for name in ours] == OWN
    elif kind == b"%" or "docs" in command:
        assert [name.decode() for name in ours[::2]] == TOP
    else:
        assert [entry[0].decode() for entry in ours] == TOP


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_command_count_includes_weirs_own(weir, redis, protocol):
    with connect(weir, protocol) as conn:
        count = conn.call("COMMAND", "COUNT")
        assert count == redis.call("COMMAND", "COUNT") + len(TOP)
        assert count == len(conn.call("COMMAND"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("command", [c for line in UNCHANGED.strip().splitlines() for c in re.split(r"\|(?=COMMAND)", line)])
def test_the_rest_is_as_redis_says(weir, redis, protocol, command):
    assert raw(weir, protocol, *command.split()) == raw(redis, protocol, *command.split())


# ---- by name ----


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_info_of_names(weir, redis, protocol):
    with connect(redis, protocol) as direct, connect(weir, protocol) as conn:
        get, none, config = direct.call("COMMAND", "INFO", "get", "none", "config")
        answer = conn.call("COMMAND", "INFO", "LIMIT", "get", "none", "limit|SET", "config", "limit|none", "Get")
    limit, subcommand = answer[0], answer[3]
    assert answer == [limit, get, none, subcommand, config, None, get]
    assert limit[:6] == [b"limit", -2, limit[2], 0, 0, 0] and list(limit[6]) == ["@limit"] and len(limit) == 10
    assert subcommand[:2] == [b"limit|set", -5] and len(subcommand) == 10
    assert [each[0].decode() for each in limit[9]] == [f"limit|{name}" for name in SUBCOMMANDS]
    assert subcommand in limit[9]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_docs_of_names(weir, redis, protocol):
    with connect(redis, protocol) as direct, connect(weir, protocol) as conn:
        theirs = direct.call("COMMAND", "DOCS", "get", "config")
        answer = conn.call("COMMAND", "DOCS", "get", "none", "LIMIT|top", "CONFIG", "limit")
    if not at_least(7, 0):
        assert isinstance(theirs, Error) and answer == theirs
        return
    theirs = as_map(theirs)
    docs = as_map(answer)
    assert list(docs) == [b"get", b"config", b"limit|top", b"limit"]
    assert {name: docs[name] for name in theirs} == theirs
    limit = as_map(docs[b"limit"])
    assert limit[b"group"] == b"limit" and b"arguments" not in limit
    assert as_map(limit[b"subcommands"])[b"limit|top"] == docs[b"limit|top"]
    count, by = map(as_map, as_map(docs[b"limit|top"])[b"arguments"])
    assert count[b"name"] == b"n" and count[b"type"] == b"integer" and list(count[b"flags"]) == ["optional"]
    assert by[b"token"] == b"BY" and by[b"name"] == b"COMMANDS|REFUSED|BYTES|SHARE|LIMITED" and by[b"type"] == b"string"


# ---- among other commands ----


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_replies_of_command_stay_in_order(weir, protocol):
    with connect(weir, protocol) as conn:
        asked = [c for i in range(30) for c in (f"SET k {i}", "COMMAND INFO limit", "GET k", "LIMIT NONE", "COMMAND COUNT")]
        answers = conn.ask(*asked)
        for i in range(30):
            set_, info, get, error, count = answers[5 * i : 5 * i + 5]
            assert (set_, info[0][0], get) == ("OK", b"limit", b"%d" % i)
            assert isinstance(error, Error) and count > 200
        conn.send(b"command count\r\nPING\r\n")
        assert [conn.read(), conn.read()] == [count, "PONG"]


def test_inside_multi_it_is_queued(weir, redis):
    with weir.connect() as conn:
        answers = conn.ask("MULTI", "COMMAND COUNT", "COMMAND INFO limit", "EXEC", "COMMAND INFO limit")
        assert answers[1:3] == ["QUEUED"] * 2
        # the reply to EXEC passes unchanged
        assert answers[3] == [redis.call("COMMAND", "COUNT"), [None]]
        assert answers[4][0][0] == b"limit"


def test_the_silent_hear_nothing(weir):
    with weir.connect() as conn:
        conn.send(pipeline("CLIENT REPLY SKIP", "COMMAND", "ECHO a", "CLIENT REPLY OFF", "COMMAND DOCS", "CLIENT REPLY ON"))
        conn.send(pipeline("COMMAND INFO limit"))
        assert [conn.read(), conn.read()] == [b"a", "OK"]
        assert conn.read()[0][0] == b"limit"


def test_who_may_not_use_it(farm):
    redis = farm.redis(password="secret")
    redis.call("ACL", "SETUSER", "joe", "on", "nopass", "+@all", "-command")
    weir = farm.weir(redis)
    with weir.connect() as conn:
        assert conn.call("COMMAND", "INFO", "limit") == Error("NOAUTH Authentication required.")
        conn.call("AUTH", "joe", "")
        assert conn.call("COMMAND", "DOCS", "limit").startswith("NOPERM")


def test_pushes_in_between_are_heard(weir, redis):
    """Push messages arrive in order, and never inside the reply."""
    with connect(weir, 3) as conn, redis.connect() as publisher:
        conn.call("SUBSCRIBE", "c")
        wait_until(lambda: publisher.call("PUBLISH", "c", "0") == 1, "it has subscribed")
        assert conn.read() == Push([b"message", b"c", b"0"])
        heard, answers = [], 0
        conn.send(pipeline(*["COMMAND DOCS get limit" if at_least(7, 0) else "COMMAND INFO get limit"] * 50))
        publisher.send(pipeline(*[f"PUBLISH c {i}" for i in range(1, 201)]))
        while answers < 50 or len(heard) < 200:
            reply = conn.read()
            if isinstance(reply, Push):
                heard.append(int(reply[2]))
            else:
                names = list(as_map(reply)) if at_least(7, 0) else [entry[0] for entry in reply]
                answers += names == [b"get", b"limit"]
        assert heard == list(range(1, 201))


# ---- an upstream that behaves unlike Redis ----


@pytest.fixture
def staged(farm):
    with Fake() as fake:
        weir = farm.weir(fake.upstream, workers=1)
        del fake.own[b"COMMAND"]  # weir's own question has been answered
        yield fake, weir
        weir.stop()


def test_command_is_spliced_however_the_reply_is_cut(staged):
    fake, weir = staged
    with weir.connect() as conn:
        conn.send(encode("COMMAND", "INFO", "none", "limit"))
        fake.expect(encode("COMMAND", "INFO", "none", "limit")).send_slowly(b"*2\r\n$-1\r\n$-1\r\n")
        none, limit = conn.read()
        assert none is None and limit[0] == b"limit"


@pytest.mark.parametrize("reply", [b"-ERR no\r\n", b":1\r\n", b"*1\r\n*1\r\n:1\r\n", b"$-1\r\n", b"*0\r\n"])
def test_odd_answers_pass(staged, reply):
    fake, weir = staged
    with weir.connect() as conn:
        conn.send(encode("COMMAND", "DOCS", "none"))
        fake.expect(encode("COMMAND", "DOCS", "none")).send(reply)
        while len(conn.buffer) < len(reply):
            conn.more()
        assert conn.buffer == reply


def test_redis_before_7(staged):
    fake, weir = staged
    entry = b"*7\r\n$3\r\nget\r\n:2\r\n*1\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*1\r\n+@read\r\n"
    with weir.connect() as conn:
        conn.send(encode("COMMAND", "INFO", "limit", "get"))
        fake.expect(encode("COMMAND", "INFO", "limit", "get")).send(b"*2\r\n*-1\r\n" + entry)
        limit, get = conn.read()
        assert len(get) == 7 and len(limit) == 10 and limit[0] == b"limit"


def test_a_huge_answer_passes_as_it_is(staged):
    fake, weir = staged
    huge = b"*1\r\n$9000000\r\n" + b"x" * 9_000_000 + b"\r\n"
    with weir.connect() as conn:
        conn.send(encode("COMMAND") + encode("ECHO", "after"))
        fake.expect(encode("COMMAND")).send(huge)
        expected = huge + b"$5\r\nafter\r\n"
        while len(conn.buffer) < len(expected):
            conn.more()
        assert conn.buffer == expected


@pytest.mark.parametrize("who", ["client", "upstream"])
def test_the_end_in_the_middle(staged, who):
    """Nothing is left in memory: the sanitizer checks that when weir stops."""
    fake, weir = staged
    with weir.connect() as conn:
        conn.send(encode("COMMAND", "DOCS"))
        lane = fake.expect(encode("COMMAND", "DOCS"))
        lane.send(b"*480\r\n$3\r\nget\r\n*0\r\n")
        if who == "upstream":
            lane.reset()
            with pytest.raises(Closed):
                conn.read()
    lane.send(b"$3\r\nset\r\n")


# ---- programs that ask COMMAND ----


HELP = pytest.mark.skipif(not at_least(7, 0), reason="redis-cli's help is what COMMAND DOCS says, of Redis 7.0 and later")


@pytest.mark.parametrize("protocol", PROTOCOLS)
class TestCli:
    @pytest.fixture
    def argv(self, weir, protocol):
        return ["redis-cli", f"-{protocol}", "-p", str(weir.address[1])]

    def run(self, argv, *args):
        done = subprocess.run([*argv, *args], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return re.sub(r"\x1b\[[\d;]*m", "", done.stdout)

    @HELP
    def test_help_of_a_subcommand(self, argv):
        text = self.run(argv, "help", "limit", "top")
        assert "LIMIT TOP [n] [BY COMMANDS|REFUSED|BYTES|SHARE|LIMITED]" in text and "group: limit" in text

    @HELP
    def test_help_of_the_container(self, argv):
        text = self.run(argv, "help", "limit")
        assert all(f"LIMIT {name.upper()} " in text for name in SUBCOMMANDS)
        assert "LIMIT EXPLAIN command [arg [arg ...]] [FOR subject]" in text
        assert "LIMIT SET policy what expression [expression ...]" in text
        assert self.run(argv, "help", "@limit").count("summary:") == len(OWN)

    def test_help_of_redis_own(self, argv, redis):
        direct = ["redis-cli", argv[1], "-p", str(redis.port)]
        assert self.run(argv, "help", "@string") == self.run(direct, "help", "@string")

    @HELP
    def test_hints(self, argv, tmp_path):
        """Hints as a person at a terminal sees them."""
        terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 120, 0, 0))
        environment = {**os.environ, "TERM": "xterm", "HOME": str(tmp_path)}
        child = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)
        seen = bytearray()

        def shows(text):
            def look():
                if select.select([terminal], [], [], 0)[0]:
                    seen.extend(os.read(terminal, 65536))
                return text in re.sub(rb"\x1b\[[\d;]*\w", b"", bytes(seen))

            return wait_until(look, f"redis-cli shows {text!r}")

        try:
            assert shows(b"> ")
            os.write(terminal, b"limit set ")
            assert shows(b"policy what expression [expression ...]")
            os.write(terminal, b"\x15limit \x09")  # clear the line, type a word, complete it
            assert shows(b"LIMIT ")
        finally:
            os.close(terminal)
            child.kill()
            child.wait()


def test_redis_py_reads_the_spliced_command_table(weir):
    with redis_py.Redis(port=weir.address[1]) as client:
        commands = client.command()
        assert commands["limit"]["arity"] == -2 and commands["get"]["first_key_pos"] == 1
        assert client.command_count() == len(commands)
        if at_least(7, 0):
            assert b"limit|status" in client.command_list() and client.command_list(pattern="limit|*") == []
