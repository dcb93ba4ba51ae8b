"""The model of Redis in tests/sim answers as a real redis-server does, to the byte."""

import os
import random
import shlex
import subprocess

import pytest
from kit import twins
from kit.cluster import Cluster, keys_in, ranges, slot_of
from kit.limit_calls import LimitCalls
from kit.resp import Conn, encode, pipeline
from kit.sequences import Sequence, is_ordered
from kit.twins import id_of

SEQUENCES = int(os.environ.get("SEQUENCES", "400"))
FIRST_SEED = int(os.environ.get("SEED", "1"))
BATCH = 100
LIMIT_SEQUENCES = 20
LIMIT_CALLS = 60
LIMITS_BEGAN_US = 1_800_000_000_000_000


@pytest.fixture(scope="module")
def real():
    real = twins.Real()
    yield real
    real.close()


def compare(real, plays, order=lambda steps, i, n: True):
    """Plays each of (name, steps) on both."""
    begun = [(name, steps, *real.play(steps)) for name, steps in plays]
    shown = twins.play_model([(first_id, began_us, steps) for _, steps, first_id, began_us, _ in begun], real.peer)
    for (name, steps, _, _, got), model in zip(begun, shown):
        at = twins.first_difference(steps, got, model, order)
        if at is not None:
            fewer, found = twins.shrink(real, steps[: at + 1], order)
            pytest.fail(f"{name}:\n{twins.describe(fewer, found or (at, got[at], model[at]))}", pytrace=False)
    return [got for *_, got in begun]


@pytest.mark.parametrize("batch", range(0, SEQUENCES, BATCH))
def test_random_sequences_are_answered_as_by_redis(real, batch):
    seeds = range(FIRST_SEED + batch, FIRST_SEED + min(batch + BATCH, SEQUENCES))
    compare(real, [(f"seed {seed}", Sequence(seed).make()) for seed in seeds], is_ordered)


NEEDS = [
    ["CONFIG SET maxmemory 1"],
    ["CONFIG SET min-replicas-to-write 1"],
    ["REPLICAOF 127.0.0.1 1"],
    ["REPLICAOF 127.0.0.1 1", "CONFIG SET replica-serve-stale-data no"],
    ["CONFIG SET maxmemory 1", "REPLICAOF 127.0.0.1 1"],
    ["CONFIG SET min-replicas-to-write 1", "CONFIG SET maxmemory 1"],
]
ADMIN = 40  # a connection that no sequence has


def in_need(seed):
    """Returns a sequence in which the server runs short of something, and perhaps recovers."""
    chance = random.Random(seed)
    steps = Sequence(seed).make()
    at = chance.randrange(len(steps))
    steps[at:at] = [("open", ADMIN), commands(ADMIN, *chance.choice(NEEDS))]
    if chance.random() < 0.3:
        steps.insert(chance.randrange(at + 2, len(steps) + 1), commands(ADMIN, "REPLICAOF NO ONE", *twins.HEALTHY))
    return steps


def test_sequences_of_a_server_in_need(real):
    """Without memory, replicas, a master: OOM, NOREPLICAS, READONLY, MASTERDOWN, also in MULTI and
    in scripts.
    """
    seeds = range(FIRST_SEED, FIRST_SEED + max(SEQUENCES // 4, 1))
    compare(real, [(f"seed {seed}", in_need(seed)) for seed in seeds], is_ordered)


def test_what_a_need_refuses(real):
    said = ["SET a 1", "GET a", "PING", "MULTI", "GET a", "EXEC", "MULTI", "SET a 2", "EXEC", "DISCARD", "WAIT 0 1",
            "DEL a", "SUBSCRIBE c", "SET a 1", "PING", "UNSUBSCRIBE c",
            "HELLO 3", "SELECT 1", "RESET", "PUBLISH c x", "WATCH a", "UNWATCH"]  # fmt: skip
    scripts = ["return redis.call('SET', KEYS[1], 1)", "return redis.pcall('SET', KEYS[1], 1)", "return redis.call('GET', KEYS[1])",
               "redis.call('DEL', KEYS[1]) return redis.call('SET', KEYS[1], 1)", "return redis.call('PING')"]  # fmt: skip
    evals = b"".join(encode("EVAL", script, 1, "a") for script in scripts)
    for need in NEEDS:
        steps = [("open", 0), ("open", 1), commands(1, "MULTI", "SET a 3"), commands(0, *need), commands(0, *said), ("send", 0, evals),
                 commands(1, "EXEC", "PING"), commands(0, "CONFIG SET replica-serve-stale-data maybe")]  # fmt: skip
        compare(real, [(" ".join(need), steps)])


def test_becoming_a_replica(real):
    """Blocked clients get an error and are closed. Expired keys are gone for readers, and counted
    all the same.
    """
    compare_whole(real, [
        ("open", 0), ("open", 1), ("open", 2),
        commands(0, "SET gone 1 PX 1", "SET there 1"), commands(1, "BLPOP l 0", "PING"), commands(2, "WAIT 1 0"),
        ("later", 50_000, "round"),
        commands(0, "REPLICAOF 127.0.0.1 x", "REPLICAOF 127.0.0.1 1", "REPLICAOF 127.0.0.1 1"),
        commands(0, "GET gone", "EXISTS there", "REPLICAOF NO ONE", "SET there 2"),
    ])  # fmt: skip


def test_scripts_that_were_flushed(real):
    sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"  # of return 1
    compare_whole(real, [
        ("open", 0), ("open", 1),
        commands(0, ["SCRIPT", "LOAD", "return 1"], f"EVALSHA {sha} 0"), commands(1, "SCRIPT FLUSH", "FLUSHALL"),
        ("later", 5_000, "unblocked"),
        commands(0, f"EVALSHA {sha} 0", ["EVAL", "return 1", "0"], f"EVALSHA {sha} 0"),
    ])  # fmt: skip


def test_password_that_is_set_beside(real):
    """Connected clients stay, also without a login. New clients, and clients that send RESET, do
    not.
    """
    compare(real, [("password", [
        ("open", 0), ("open", 1), ("open", 2),
        commands(0, "CONFIG SET requirepass p1"), commands(1, "GET a", "RESET", "GET a", "AUTH p1", "GET a"),
        ("open", 3), commands(3, "GET a", "AUTH p2"), commands(3, "AUTH default p1", "GET a"),
        commands(2, "GET a", "MULTI", "GET a", "EXEC"),
        commands(0, "CONFIG SET requirepass ''"), commands(2, "AUTH p1", "AUTH default p7"),
        ("open", 4), commands(4, "GET a"), commands(3, "RESET", "GET a"),
        commands(0, "ACL SETUSER ann on >p1 ~* &* +@all"), commands(4, "AUTH ann p1", "GET a"),
        commands(0, "ACL SETUSER ann off"), commands(4, "GET a"), commands(3, "AUTH ann p1"),
        commands(0, "ACL SETUSER ann on"), commands(3, "AUTH ann p1"), commands(0, "ACL DELUSER ann"),
        commands(4, "PING"), commands(3, "PING"),
    ])])  # fmt: skip


def test_who_is_killed(real):
    """By id, user and type, from the client's own connection."""
    compare(real, [("killed", [
        *(("open", n) for n in range(6)),
        commands(0, "ACL SETUSER ann on >p1 ~* &* +@all"), commands(1, "AUTH ann p1"), commands(2, "SUBSCRIBE c1"),
        commands(3, "MULTI"), commands(4, "BLPOP l 0"),
        commands(0, "CLIENT KILL USER ann", "CLIENT KILL TYPE pubsub", f"CLIENT KILL ID {id_of(4)}"),
        commands(3, "PING"), commands(0, "CLIENT KILL USER default", "CLIENT KILL USER default SKIPME no", "PING"),
    ])])  # fmt: skip


def test_scripts_of_limits(real):
    """weir's decision scripts, with given times and clocks that step back."""
    plays = []
    for seed in range(FIRST_SEED, FIRST_SEED + LIMIT_SEQUENCES):
        plays.append((f"seed {seed}", LimitCalls(random.Random(seed), LIMITS_BEGAN_US).steps(LIMIT_CALLS)))
    answers = [step[0][0] for got in compare(real, plays) for step in got if 0 in step]
    assert not [answer for answer in answers if b"user_script" in answer]  # no call was malformed


def compare_whole(real, steps):
    """Compares only the total of each connection's bytes: their times depend on the real server's
    own clock.
    """
    first_id, began_us, got = real.play(steps)
    (shown,) = twins.play_model([(first_id, began_us, steps)], real.peer)
    heard = whole(got)
    assert whole(shown) == heard
    return heard


def whole(got):
    conns = {n for step in got for n in step}
    return {n: twins.masked(b"".join(step[n][0] for step in got if n in step)) for n in conns}


def commands(n, *words):
    return ("send", n, pipeline(*words))


def test_waiting_that_ends_by_itself(real):
    got = compare_whole(real, [
        ("open", 0), ("open", 1), ("open", 2), ("open", 3),
        commands(0, "BLPOP a b 0.03", "PING"),
        commands(1, "HELLO 3", "BLMOVE a b LEFT LEFT 0.02", "BRPOP a 0.01"),
        commands(2, "WAIT 1 40", "MULTI", "BLPOP a 0", "WAIT 1 0", "EXEC"),
        commands(3, "BLPOP c 0"),
        commands(3, "PING"),
        commands(1, "PING"),
        ("close", 3),
        ("later", 100_000, "unblocked"),
        commands(0, "RPUSH a 1 2 3"),
    ])  # fmt: skip
    assert got[0].endswith(b"+PONG\r\n:3\r\n")


def test_whose_time_is_over(real):
    compare_whole(real, [
        ("open", 0), ("open", 1),
        commands(1, "HELLO 3", "CLIENT TRACKING ON", "GET a", "WATCH a", "MULTI", "GET b"),
        commands(0, "SET a 1 PX 40", "PEXPIRE a 30", "SET b 2 PX 1"),
        commands(1, "GET a"),
        ("later", 300_000, "expired"),
        commands(1, "EXEC"),
        commands(0, "GET a", "EXISTS a b", "PTTL a"),
    ])  # fmt: skip


def test_pause_holds_back_whom_redis_holds_back(real):
    compare_whole(real, [
        ("open", 0), ("open", 1), ("open", 2),
        commands(0, "CLIENT PAUSE 60 WRITE"),
        commands(1, "GET a", "SET a 1", "GET a"),
        commands(2, "MULTI", "SET a 2", "EXEC", "PING"),
        commands(0, "GET a", "CLIENT UNBLOCK 1"),
        ("later", 200_000, "unblocked"),
        commands(0, "CLIENT PAUSE 100000 WRITE", "EVAL 'return' 0"),
        commands(1, "CLIENT UNPAUSE"),
        commands(1, "GET a"),
    ])  # fmt: skip


def test_script_that_does_not_end(real):
    """Other clients get an error, the script is killed, and its client gets its error."""
    got = compare_whole(real, [
        ("open", 0), ("open", 1), ("open", 2),
        commands(2, "CONFIG SET lua-time-limit 20", "SCRIPT KILL", "MULTI"),
        ("send", 0, encode("EVAL", "while true do end", 0) + pipeline("PING")),
        ("later", 50_000, "busy"),
        commands(1, "GET a", "PING", "MULTI", "GET a", "EXEC"),
        commands(2, "GET a", "EXEC", "AUTH x y"),
        commands(1, "SCRIPT KILL"),
        ("later", 10_000, "idle"),
        commands(1, "GET a"),
        commands(1, "CONFIG SET lua-time-limit 5000"),
    ])  # fmt: skip
    assert got[0].endswith(b"+PONG\r\n")


def test_strangers_are_let_in_as_by_redis(real):
    compare(real, [("strangers", [
        ("open", 0),
        commands(0, "ACL SETUSER ann on >p1 ~* &* +@all", "CONFIG SET requirepass p1"),
        ("open", 1),
        commands(1, "GET a", "PING", "HELLO 3", "SELECT 1", "MULTI", "NOSUCH a", "COMMAND"),
        ("open", 2), ("send", 2, b"*11\r\n"),
        ("open", 3), ("send", 3, b"*1\r\n$16385\r\n"),
        ("open", 4),
        commands(4, "AUTH x"), commands(4, "AUTH p1"), commands(4, "AUTH ann p1"),
        commands(4, "ACL WHOAMI", "GET s", "GET t", "PUBLISH c1 x", "PUBLISH d x", "SUBSCRIBE d", "PSUBSCRIBE c*",
                 "SUBSCRIBE c1", "PING", "RESET", "GET s"),
        commands(0, "RESET", "PING"),
    ])])  # fmt: skip


def play_model(*lines):
    """Returns what the model alone shows after each marked line of `lines`: the bytes of connection
    0.
    """
    began = f"new {twins.version()} 0 1 1700000000000000 1 user x"
    done = subprocess.run([twins.MODEL], input="\n".join([began, *lines, ""]), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    shown = [part.strip() for part in done.stdout.split(".\n")[:-1]]
    return [bytes.fromhex(part.split("\n")[0][2:]) if part.startswith("0 ") else part for part in shown]


def say(*words):
    return "send 0 " + pipeline(*words).hex()


def test_restart_of_the_model():
    """Connections and scripts are gone; data and the password are as given."""
    shown = play_model(
        "open 0 a", say("SET k v", "SET gone 1 PX 50", "SCRIPT LOAD 1", "CONFIG SET maxclients 7"), "show",
        "restart 1 secret", "open 0 a", say("GET k", "AUTH secret"), "show", say("GET k", "CLIENT ID"), "show",
        "clock 60000", say("GET gone"), "show", say("INFO clients"), "show",
        "restart 0", "open 0 a", say("GET k", "EXISTS k"), "show",
    )
    assert b"\r\nmaxclients:10000\r\n" in shown.pop(4)
    assert shown[1:] == [
        b"-NOAUTH Authentication required.\r\n+OK\r\n", b"$1\r\nv\r\n:1\r\n", b"$-1\r\n", b"$-1\r\n:0\r\n",
    ]  # fmt: skip


def test_slow_turns_of_the_model():
    """Nothing runs, and no written byte is seen, while the server stands still."""
    slow = "EVAL " + shlex.quote("redis.take_us(400000) return 7") + " 0"
    assert play_model(
        "open 0 a", "stall 1000", say("PING"), "show", "clock 999", "show", "clock 1", "show",
        "send 0 " + encode(*shlex.split(slow)).hex() + pipeline("PING").hex(), "clock 399999", "show", "clock 1", "show",
    ) == ["", "", b"+PONG\r\n", "", b":7\r\n+PONG\r\n"]  # fmt: skip


def reply_in(data):
    conn = Conn.__new__(Conn)
    conn.buffer = bytearray(data)
    return conn.read()


def row(info, known):
    """Returns the parts of a COMMAND element that the model knows, with the known subcommands."""
    name, arity, flags, first, last, step, categories = info[:7]
    inner = [row(sub, known) for sub in info[9] if sub[0] in known]
    return name, arity, sorted(flags), first, last, step, sorted(categories), sorted(inner)


def names_of(info):
    return [info[0], *(name for sub in info[9] for name in names_of(sub))]


@pytest.mark.skipif(twins.version() // 100 != 700, reason="the rows are those of 7.0")
def test_its_command_table_is_that_of_redis(real):
    steps = [("open", 0), commands(0, "COMMAND")]
    first_id, began_us, got = real.play(steps)
    ((_, shown),) = twins.play_model([(first_id, began_us, steps)], real.peer)
    model, redis = reply_in(shown[0][0]), reply_in(got[1][0][0])
    known = {name for info in model for name in names_of(info)}
    assert len(model) > 50
    assert sorted(row(info, known) for info in model) == sorted(row(info, known) for info in redis if info[0] in known)


def at_leaving(here, away, later, other):
    """Returns questions for the node that a slot leaves, a connection for each: `here` is present,
    `away` and `later` are absent.
    """
    return [
        [f"GET {here}", f"GET {away}", f"MGET {here} {away}", f"MGET {away} {later}", f"MGET {away} {away}"],
        [f"MGET {here} {other}", f"MSET {away} 1 {other} 1", f"GET {other}", "ASKING", f"GET {away}", "READONLY", "READWRITE"],
        ["MULTI", f"GET {away}", "EXEC"],
        ["MULTI", f"GET {here}", f"MGET {here} {away}", "EXEC"],
        ["MULTI", f"INCR {here}", f"GET {here}", "EXEC"],
        [f"EVAL 'return 1' 1 {away}", f"EVAL 'return KEYS[1]' 1 {here}", f"EXISTS {here} {away}", "SELECT 0", "PING"],
    ]


def at_arriving(here, away, later, other):
    """Returns questions for the node at which the slot arrives: no key is there yet, except for
    those of `other`'s slot.
    """
    return [
        [f"GET {away}", "ASKING", f"GET {away}", f"GET {away}"],
        ["ASKING", f"MGET {away} {later}", "ASKING", f"MGET {away} {away}", "ASKING", "PING", f"GET {away}"],
        ["ASKING", "MULTI", f"GET {away}", "EXEC", f"GET {away}"],
        ["MULTI", "ASKING", f"GET {away}", "EXEC"],
        ["ASKING", f"SET {later} 1", "ASKING", f"GET {later}", "ASKING", f"MGET {later} {away}", f"GET {other}"],
    ]


def play_node(made, which, moves, dialogues):
    """Returns the model's answers as this one of two nodes."""
    nodes = made.masters[:2]
    lines = [f"node {twins.version()} {int(twins.is_valkey())} 1 1700000000000000 1 user x"]
    lines.append(f"join {which} " + " ".join(f"{node.id} {node.port}" for node in nodes))
    for n, node in enumerate(nodes):
        lines += [f"own {first} {last} {n}" for first, last in ranges(node.rows()[node.id]["slots"])]
    for n, dialogue in enumerate([moves[0], *dialogues]):
        lines += [*(moves[1:] if n == 1 else []), f"open {n} a"]
        for words in dialogue:
            lines += [f"send {n} " + encode(*shlex.split(words)).hex(), "show"]
    done = subprocess.run([twins.MODEL], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    shown = [bytes.fromhex(part.split()[1]) for part in done.stdout.split(".\n")[:-1]]
    return [str(reply_in(data)) for data in shown[len(moves[0]) :]]


def test_nodes_between_which_a_slot_moves(farm):
    made = Cluster(farm, masters=2)
    first, second = made.masters
    slot = slot_of(made.key_at(first))
    here, away, later = (key for key, _ in zip(keys_in(slot), range(3)))
    keys = (here, away, later, made.key_at(second))
    assert first.call("SET", here, "1") == "OK"
    made.begin_move(slot, second)
    cases = [
        (first, at_leaving, [[f"SET {here} 1"], f"migrate {slot} 1"]),
        (second, at_arriving, [[], f"import {slot} 0"]),
    ]
    for which, (node, ask, moves) in enumerate(cases):
        dialogues, heard = ask(*keys), []
        for dialogue in dialogues:
            with node.connect() as conn:
                heard += [str(conn.call(*shlex.split(words))) for words in dialogue]
        said = [words for dialogue in dialogues for words in dialogue]
        assert list(zip(said, play_node(made, which, moves, dialogues))) == list(zip(said, heard))
