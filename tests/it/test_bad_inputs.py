"""Odd and broken requests: weir answers as Redis does, however the bytes are cut, or is stricter on
purpose.
"""

import pytest
from kit.bad_inputs import CASES
from kit.harness import wait_until
from kit.resp import encode, pipeline
from kit.script import PROBES, Player, Probes, on_redis, same_as_redis

NEVER_CUT = [case for case in CASES if case.whole]
CUT = [case for case in CASES if not case.whole]
BYTEWISE = [case for case in CUT if len(case.sent) < 300]

MODES = [(1, "shared"), (2, "private")]
PROTOCOL_ERROR = b"-ERR Protocol error: "
SECRET = "a password"


def name(case):
    return case.name


@pytest.fixture(scope="session")
def locked_redis(shared_farm):
    return shared_farm.redis(password=SECRET)


@pytest.fixture(scope="session")
def locked_weirs(shared_farm, locked_redis, tmp_path_factory):
    secret = tmp_path_factory.mktemp("secret") / "password"
    secret.write_text(SECRET + "\n")
    started = {}

    def weir(mode):
        if mode not in started:
            started[mode] = shared_farm.weir(
                locked_redis, workers=mode[0], lanes=mode[1], upstream_password_file=secret
            )
        return started[mode]

    return weir


@pytest.fixture
def redis_for(redis, locked_redis):
    return lambda case: locked_redis if case.auth else redis


@pytest.fixture(params=["redis", *MODES], ids=["redis", "weir-1-shared", "weir-2-private"])
def target(request, redis_for, shared_weirs, locked_weirs):
    """The server under test for a case. Redis is one, to prove the table."""
    if request.param == "redis":
        return redis_for
    return lambda case: (locked_weirs if case.auth else shared_weirs)(request.param)


recorded = {}


def on_live_redis(case, redis):
    """Returns (answer, closed) after the case's bytes, and after its `then`."""
    if case.name not in recorded:
        states = on_redis(redis, [("c", case.sent), ("c", case.then)])
        recorded[case.name] = [state["c"] for state, _ in states]
    return recorded[case.name]


def wanted(case, server, redis):
    if case.strict and server is not redis:
        return ((PROTOCOL_ERROR, True),) * 2
    if case.is_newer and server is not redis:
        return (case.answer, case.closed), (case.after, True)
    return on_live_redis(case, redis)


def cut_text(case, server, redis, state):
    """The text of a strict error is weir's own."""
    data, closed = state
    if case.strict and server is not redis and data.startswith(PROTOCOL_ERROR) and data.count(b"\r\n") == 1:
        data = PROTOCOL_ERROR
    return data, closed


def check(player, probes, names, server, redis):
    """Checks that every connection in `names` (connection: case) has the wanted state, before and
    after its case's `then`.
    """
    for after_then in (False, True):
        want = {n: wanted(case, server, redis)[after_then] for n, case in names.items()}

        def state():
            player.collect()
            got = player.state()
            return {n: cut_text(case, server, redis, got[n]) for n, case in names.items()}

        try:
            wait_until(lambda: state() == want, "the wanted answers", 5)
        except AssertionError:
            got = state()
            assert {n: got[n] for n in got if got[n] != want[n]} == {n: want[n] for n in got if got[n] != want[n]}
        probes.settle(player)
        assert state() == want, "more came"
        if not after_then:
            for n, case in names.items():
                if n not in player.closed:
                    player.play(n, case.then)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_redis_is_as_the_table_says(case, redis_for):
    answer, closed = on_live_redis(case, redis_for(case))[0]
    wanted_answer, wanted_closed = case.before_7 if case.is_newer else (case.answer, case.closed)
    assert answer.startswith(wanted_answer) if wanted_answer else answer == b""
    assert closed == wanted_closed
    if case.before_7 and not case.is_newer:
        assert on_live_redis(case, redis_for(case))[1] == (case.after, True)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_bad_inputs_sent_whole(case, target, redis_for):
    server, redis = target(case), redis_for(case)
    with Player(server.address, redis.address) as player, Probes(server.address, PROBES) as probes:
        player.play("whole", case.sent)
        check(player, probes, {"whole": case}, server, redis)


@pytest.mark.parametrize("case", CUT, ids=name)
def test_cut_at_every_offset(case, target, redis_for):
    server, redis = target(case), redis_for(case)
    end = len(case.sent)
    offsets = range(1, end) if end < 300 else sorted({1, 2, 16384, 65535, end - 1})
    with Player(server.address, redis.address) as player, Probes(server.address, PROBES) as probes:
        for offset in offsets:
            player.play(f"cut at {offset}", case.sent[:offset])
        probes.settle(player)
        for offset in offsets:
            player.play(f"cut at {offset}", case.sent[offset:])
        check(player, probes, {f"cut at {offset}": case for offset in offsets}, server, redis)


@pytest.mark.parametrize("auth", [False, True], ids=["open", "locked"])
def test_byte_by_byte(auth, target, redis_for):
    cases = {case.name: case for case in BYTEWISE if case.auth == auth}
    first = next(iter(cases.values()))
    server, redis = target(first), redis_for(first)
    with Player(server.address, redis.address) as player, Probes(server.address, PROBES) as probes:
        for i in range(max(len(case.sent) for case in cases.values())):
            for case in cases.values():
                if byte := case.sent[i : i + 1]:
                    player.play(case.name, byte)
            probes.round()
            player.collect()
        check(player, probes, cases, server, redis)


def test_subcommands_whose_name_has_a_nul(weir):
    """Redis takes some of these for the name before the NUL, depending on the layout of its hash
    table.
    """
    for i in range(64):
        with weir.connect() as conn:
            conn.send(encode("client", b"re\rply\0%d" % i) + encode("CLIENT", b"REPLY\0%d" % i, "SKIP") + pipeline("PING"))
            unknown = b"-ERR unknown subcommand '%s'. Try CLIENT HELP.\r\n"
            wanted = unknown % b"re ply" + unknown % b"REPLY" + b"+PONG\r\n"
            assert conn.read_bytes(len(wanted)) == wanted


def test_names_that_end_in_a_nul(weir):
    """Such a name is not the name without the NUL, also directly after a command with that name."""
    with weir.connect() as conn:
        for name in (b"GET", b"get", b"EXISTS", b"MGET"):
            for _ in range(3):
                conn.call(name, "k")
            for odd in (name + b"\0", name + b"\0\0", name[:2] + b"\0" + name[2:]):
                assert str(conn.call(odd, "k")).startswith("ERR unknown command"), odd
            conn.call(name, "k")


# ---- broken in the middle of a large request, half of which is already in Redis ----

BEGUN = b"*4\r\n$4\r\nMSET\r\n$1\r\nk\r\n$200000\r\n" + b"x" * 200_000 + b"\r\n"
BREAKS = {
    "no bulk": b"fooz\r\n",
    "CR for a dollar": b"\r\n",
    "negative length": b"$-1\r\n",
    "no length": b"$x\r\n",
    "too big a length": b"$536870913\r\n",
    "endless length": b"$" + b"1" * 65537,
}
WHOLE = encode("SET", "big", "y" * 200_000)

BEFORE = {
    "nothing": b"",
    "a pipeline": pipeline("SET n 0", *["INCR n"] * 1000, "GET n"),
    "another large one": WHOLE + pipeline("GET none", "STRLEN big"),
    "errors": pipeline("FOO", "GET", "INCR n"),
    "a huge reply": encode("SET", "big", "y" * 3_000_000) + pipeline("GET big", "GET none"),
    "what waits": WHOLE + pipeline("GET none", "BLPOP l 0", "GET none"),
    "a slow command": WHOLE + pipeline("DEBUG SLEEP 0.2", "GET none"),
    "MULTI": pipeline("MULTI", "SET k v"),
    "a transaction": pipeline("MULTI", "INCR n", "EXEC", "WATCH n"),
    "SUBSCRIBE": pipeline("SUBSCRIBE c d"),
    "REPLY SKIP, used": pipeline("GET k", "CLIENT REPLY SKIP", "GET k"),
}


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE.keys())
def test_broken_in_a_large_request(before, weir, redis):
    """As Redis does, weir answers the earlier requests first. The broken request changes nothing.
    """
    script = [("a", before + BEGUN + BREAKS["no bulk"]), ("b", pipeline("RPUSH l v", "PUBLISH c m", "EXISTS k n"))]
    same_as_redis(weir, redis, script)


@pytest.mark.parametrize("mode", ["OFF", "SKIP"])
def test_broken_in_a_large_request_and_unheard(mode, weir):
    """The error is not sent either; Redis would leave the connection open for ever."""
    with weir.connect() as conn:
        conn.send(pipeline("PING", f"CLIENT REPLY {mode}") + BEGUN + BREAKS["no bulk"])
        assert conn.read_to_end() == b"+PONG\r\n"


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS.keys())
def test_ways_to_break_a_large_request(broken, weir, redis):
    same_as_redis(weir, redis, [("a", pipeline("PING") + BEGUN), ("a", broken), ("b", pipeline("EXISTS k"))])


def test_large_and_without_its_line_end(weir, redis):
    with weir.connect() as conn:
        conn.send(pipeline("PING") + BEGUN[:-2] + b"XX")
        assert conn.read_to_end() == b"+PONG\r\n" + PROTOCOL_ERROR + b"expected CRLF\r\n"
    assert redis.call("EXISTS", "k") == 0
