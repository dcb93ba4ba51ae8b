"""Several keys in one call, all or none, end to end: LIMIT CHECK ... AND, LIMIT ALL."""

import random
from collections import Counter, namedtuple

import pytest
from kit.decisions import FIELDS, UNAVAILABLE, WRONGTYPE, decide, decision, decisions, fresh, read_fields, script_calls, speaking, written
from kit.harness import MODE_IDS, MODES, wait_until
from kit.limits import OPERATOR, limit_of, operator, order, plain
from kit.resp import Error, pipeline

Several = namedtuple("Several", "limited limit remaining retry reset refused_by")

LIMITS = """
[limit Login]
sliding = 2/100d
[limit ip]
funnel = 3/100d
[limit org]
fixed = 4/100d
fixed = 9/200d
[limit trial]
bucket = 1/100d
over = shadow
[policy operators]
match = name:operator
admin = yes
[admin]
socket = {folder}/operator.sock
"""


@pytest.fixture(params=MODES, ids=MODE_IDS)
def weir(request, farm, redis):
    workers, lanes = request.param
    return farm.weir(redis, workers=workers, lanes=lanes, sections=LIMITS, identity="name, ip")


def several(reply):
    return read_fields(plain(reply) if not isinstance(reply, (Error, dict)) else reply, [*FIELDS, "refused_by"], Several)


def ask(conn, command):
    """Returns the decision, with the part that refused as text."""
    reply = several(conn.call(*command.split()))
    if isinstance(reply, Error):
        return reply
    refused_by = reply.refused_by
    return reply._replace(refused_by=refused_by.decode() if isinstance(refused_by, bytes) else refused_by)


def counts(weir):
    rows = plain(order(weir, "LIST"))
    rows = [row if isinstance(row, dict) else dict(zip(row[::2], row[1::2])) for row in rows]
    return {row["limit"]: (row["asked"], row["passed"], row["limited"], row["shadowed"], row["errors"]) for row in rows if "asked" in row}


def dumps(redis):
    return {key: redis.call("DUMP", key) for key in redis.call("KEYS", "*")}


def test_who_refuses_is_named(weir, redis, protocol):
    with speaking(weir.connect(), protocol) as conn:
        ann, ip, org = fresh("ann"), fresh("ip"), fresh("org")
        call = f"LIMIT CHECK login {ann} AND ip {ip} AND org {org} COST 2"
        assert ask(conn, call)[:4] == (0, 2, 1, -1)
        found = ask(conn, call)
        assert found[:4] == (0, 2, 0, -1) and found.refused_by is None
        before, n = dumps(redis), written(redis)
        for _ in range(3):
            found = ask(conn, call)
            assert found[:3] == (1, 2, 0) and found.retry > 86400_000 and found.refused_by == "Login"
        assert (dumps(redis), written(redis)) == (before, n)
        found = ask(conn, f"LIMIT CHECK login {fresh()} AND ip {ip} AND org {org}")
        assert found[:3] == (1, 4, 0) and found.refused_by == "org"
        assert ask(conn, f"LIMIT CHECK login {fresh()} AND ip {ip} COST 2")[:3] == (1, 3, 1)
        assert ask(conn, f"LIMIT CHECK login {fresh()} AND ip {ip}")[:3] == (0, 3, 0)
        assert counts(weir)["Login"] == (8, 5, 3, 0, 0), "what had room has passed by this limit"
        assert counts(weir)["org"] == (6, 2, 4, 0, 0)


def test_several_unnamed_limits_are_charged_together_or_not_at_all(weir, protocol):
    with speaking(weir.connect(), protocol) as conn:
        a, b = fresh("a"), fresh("b")
        call = f"LIMIT ALL FIXED {a} 3/100d 9/200d AND SLIDING {b} 5/100d APPROX COST 2 AND BUCKET AND 9/h BURST 20"
        assert [ask(conn, call)[:3] for _ in range(2)] == [(0, 3, 2), (0, 3, 1)]
        found = ask(conn, call)
        assert found[:3] == (1, 5, 1) and found.refused_by == b
        assert decide(conn, f"LIMIT FIXED {a} 3/100d PEEK").remaining == 1, "it was charged with none of them"
        assert ask(conn, f"LIMIT ALL FIXED {a} 3/100d COST 5")[3] == -1
        assert ask(conn, f"LIMIT ALL FIXED {a} 3/100d")[5] is None


def test_several_keys_are_answered_in_every_form(weir, protocol):
    with speaking(weir.connect(), protocol) as conn:
        key = fresh()
        as_array, as_map = (conn.call(*f"LIMIT ALL FIXED {key} 1/100d AND FUNNEL f{key} 9/h AS {form}".split()) for form in ("ARRAY", "MAP"))
        assert as_array[:4] == [0, 1, 0, -1] and as_array[5] is None and len(as_array) == 6
        flat = as_map if protocol == 2 else [one for pair in as_map.items() for one in pair]
        assert isinstance(as_map, dict) == (protocol == 3)
        assert plain(flat[::2]) == [*FIELDS, "refused_by"] and flat[1] == 1 and flat[11] == key.encode()


def test_a_key_called_and(weir):
    with weir.connect() as conn:
        assert ask(conn, "LIMIT ALL FIXED AND 1/100d AND FIXED and 2/100d")[:3] == (0, 1, 0)
        assert ask(conn, "LIMIT ALL FIXED and 2/100d AND FIXED AND 1/100d").refused_by == "AND"


def test_each_part_has_its_own_options(weir, redis):
    with weir.connect() as conn:
        a, b = fresh("a"), fresh("b")
        rest = f"LIMIT ALL FIXED {a} 3/100d AND BUCKET {b} 2/h BURST 4"
        look = lambda: [decide(conn, f"LIMIT {call} PEEK").remaining for call in (f"FIXED {a} 3/100d", f"BUCKET {b} 2/h BURST 4")]
        before = written(redis)
        assert ask(conn, rest + " PEEK")[:3] == (0, 3, 3) and ask(conn, rest.replace(" AND ", " COST 0 AND ") + " COST 0")[0] == 0
        assert written(redis) == before
        assert ask(conn, rest + " COST 0")[0] == 0 and look() == [2, 4]
        assert [ask(conn, rest + " FORCE")[0] for _ in range(5)] == [0] * 5 and look() == [0, 0]
        assert ask(conn, rest + " CREDIT 2")[0] == 0 and look() == [0, 1]
        assert ask(conn, rest + " CREDIT 99")[:3] == (0, 3, 3) and look() == [3, 4]
        assert [ask(conn, rest + " COUNT ALL")[0] for _ in range(5)] == [0, 0, 0, 1, 1] and look() == [0, 0]
        first = f"LIMIT ALL FIXED {fresh()} 1/1h AND FUNNEL {fresh()} 9/h FROM FIRST"
        assert 3599_000 < ask(conn, first).reset <= 3600_000
        assert ask(conn, f"LIMIT ALL FUNNEL {fresh()} 2/h COST 2 AND BUCKET {fresh()} 2/h COST 9 BORROW")[0] == 0


@pytest.mark.parametrize("command, error", [
    ("LIMIT CHECK login k AND", "ERR wrong number of arguments for 'limit|check' command"),
    ("LIMIT CHECK login k AND ipp k", "ERR no limit is named 'ipp' (did you mean ip?)"),
    ("LIMIT CHECK '' k AND ip k", "ERR no limit is named ''"),
    ("LIMIT CHECK login k AND LOGIN k", "ERR a key is given twice: give all its rates at once"),
    ("LIMIT CHECK login k AND ip k COST 10001 AND org k", None),
    ("LIMIT CHECK login k COST 10001 AND ip k", "ERR COST of an exact sliding window is at most 10000: use APPROX for more"),
    ("LIMIT CHECK login k AND ip k FROM FIRST", "ERR FROM FIRST is for FIXED"),
    ("LIMIT CHECK login k AND org k PARTIAL", "ERR PARTIAL is for one key: several are all or nothing"),
    ("LIMIT CHECK login k AND ip k BORROW", "ERR BORROW is for FUNNEL and BUCKET"),
])  # fmt: skip
def test_what_is_wrong(kept_limited, command, error):
    with kept_limited(LIMITS, identity="name, ip").connect() as conn:
        reply = conn.call(*["" if word == "''" else word for word in command.split()])
        assert reply == Error(error) if error else several(reply).limited == 1


def test_several_keys_wait_for_room_in_all_and_take_nothing(weir):
    """weir retries when all keys may have room, and takes nothing meanwhile."""
    with weir.connect() as conn, weir.connect() as other:
        a, b = fresh("a"), fresh("b")
        call = f"LIMIT ALL FUNNEL {a} 1/200ms AND SLIDING {b} 1/400ms"
        assert ask(conn, call)[0] == 0
        conn.send(pipeline(call + " WAIT 20000", "PING"))
        assert decide(other, f"LIMIT SLIDING {b} 2/400ms PEEK").remaining == 1, "who waits has taken nothing"
        assert several(conn.read())[0] == 0 and conn.read() == "PONG"
        found = ask(conn, f"LIMIT ALL FUNNEL {a} 1/200ms AND FIXED {fresh()} 1/100d COST 2 WAIT 1000")
        assert found[0] == 1 and found.retry == -1


def test_calls_travel_together(weir, redis):
    """Equal and different calls, in one script for all that have gathered, in the order of the
    calls.
    """
    with weir.connect() as conn:
        ip = fresh("ip")
        before = script_calls(redis)
        replies = [several(reply) for reply in conn.ask(*[f"LIMIT CHECK login user{i % 20} AND org {ip}" for i in range(100)])]
        assert [reply.limited for reply in replies] == [0] * 4 + [1] * 96
        assert all(reply.refused_by in (b"org", "org") for reply in replies[4:])
        assert script_calls(redis) - before <= 10
        rng, model = random.Random(3), Counter()
        keys = [fresh(f"k{i}") for i in range(5)]
        commands, wanted = [], []
        for _ in range(400):
            some = rng.sample(keys, rng.choice([1, 1, 2, 3]))
            if len(some) == 1:
                commands.append(f"LIMIT FIXED {some[0]} 40/100d")
            else:
                commands.append("LIMIT ALL " + " AND ".join(f"FIXED {key} 40/100d" for key in some))
            wanted.append(int(any(model[key] == 40 for key in some)))
            if not wanted[-1]:
                model.update(some)
        assert [reply[0] for reply in conn.ask(*commands)] == wanted
        assert {key: decide(conn, f"LIMIT FIXED {key} 40/100d PEEK").remaining for key in keys} == {key: 40 - model[key] for key in keys}


def test_equal_calls_overtake_nothing(weir):
    """A call merges with an equal earlier call only if no call between them uses one of their keys.
    """
    with weir.connect() as conn:
        a, b, c = fresh("a"), fresh("b"), fresh("c")
        call = lambda *keys: "LIMIT ALL " + " AND ".join(f"SLIDING {key} 2/100d" for key in keys)
        found = conn.ask(*[call(*pair) for pair in ((a, b), (b, c), (a, b), (c, c + "x"), (b, c), (a, a + "x"), (a, b))])
        assert [several(reply).limited for reply in found] == [0, 0, 1, 0, 1, 0, 1]
        a, b = fresh("a"), fresh("b")
        found = [several(reply) for reply in conn.ask(*[call(*pair) for pair in ((a, b), (b, a), (a, b))])]
        assert [reply.limited for reply in found] == [0, 0, 1]


def test_what_is_remembered_of_one(weir):
    """A remembered refusal is right after a call on several keys, as after any other call."""
    with weir.connect() as conn, weir.connect() as other:
        a, b = fresh("a"), fresh("b")
        one = f"LIMIT FUNNEL {a} 1/h BURST 2"
        assert [decide(conn, one).limited for _ in range(4)] == [0, 0, 1, 1]
        assert ask(other, f"LIMIT ALL FUNNEL {a} 1/h BURST 5 AND FIXED {b} 9/d")[:3] == (0, 5, 2)
        wait_until(lambda: decide(conn, one).reset > 2.5 * 3600_000, "it owes three")
        assert ask(other, f"LIMIT ALL FUNNEL {a} 1/h BURST 5 AND FIXED {b} 9/d CREDIT 3")[0] == 0
        wait_until(lambda: decide(conn, one).limited == 0, "it has been given back")


def test_a_part_in_shadow_never_refuses(weir):
    """Such a part counts. If the call passes, the part is charged what it has room for."""
    with weir.connect() as conn:
        a, b = fresh("a"), fresh("b")
        call = f"LIMIT CHECK trial {a} AND login {b}"
        assert [ask(conn, call)[:3] for _ in range(3)] == [(0, 2, 1), (0, 2, 0), (1, 2, 0)]
        assert ask(conn, call).refused_by == "Login"
        assert counts(weir)["trial"] == (4, 1, 0, 3, 0) and counts(weir)["Login"] == (4, 2, 2, 0, 0)
        assert [ask(conn, f"LIMIT CHECK trial {a} AND trial {b}{i}")[0] for i in range(2)] == [0, 0]
        assert decide(conn, f"LIMIT CHECK trial {b}0 PEEK").remaining == 0, "it is charged with what it has room for"
        c = fresh("c")
        assert ask(conn, f"LIMIT CHECK trial {c} AND login {b}")[0] == 1
        assert decide(conn, f"LIMIT CHECK trial {c} PEEK").remaining == 1, "what is refused is not"


def test_the_part_without_room_is_in_top(weir):
    """The key without room is among the keys that are limited most; a key with room is not."""
    a, b = fresh("a"), fresh("b")
    with weir.connect() as conn:
        conn.ask(*[f"LIMIT CHECK login {a} AND ip {b}"] * 50)
    with operator(weir) as conn:
        rows = [plain(row)["key"] for row in conn.call("LIMIT", "TOP", 100, "BY", "limited")]
        assert f"limit:login:{a}" in rows and f"limit:ip:{b}" not in rows


def test_a_key_of_another_kind(weir, redis):
    with weir.connect() as conn:
        a, b = fresh("a"), fresh("b")
        redis.call("HSET", f"limit:{b}", "x", "y")
        before = written(redis)
        for command in (f"LIMIT ALL FIXED {a} 9/d AND SLIDING {b} 9/d", f"LIMIT ALL SLIDING {b} 9/d AND FIXED {a} 9/d"):
            assert conn.call(*command.split()) == WRONGTYPE
        assert written(redis) == before
        redis.call("HSET", f"limit:ip:{b}", "x", "y")
        assert conn.call(*f"LIMIT CHECK login {a} AND ip {b}".split()) == WRONGTYPE
        assert redis.call("TYPE", f"limit:ip:{b}") == "hash" and redis.call("EXISTS", f"limit:login:{a}") == 0


def test_only_keys_whose_limit_changed_algorithm_begin_anew(weir, redis):
    """Keys of a limit with a new algorithm are reset. Keys of other limits go on."""
    with weir.connect() as conn:
        a, b = fresh("a"), fresh("b")
        call = f"LIMIT CHECK login {a} AND ip {b} AND org {b}"
        assert [ask(conn, call)[0] for _ in range(3)] == [0, 0, 1]
        assert order(weir, "SET", "LIMIT", "login", "fixed", "=", "2/100d") == "OK"
        assert order(weir, "SET", "LIMIT", "ip", "approx", "=", "9/100d") == "OK"
        wait_until(lambda: decide(conn, f"LIMIT CHECK ip {fresh()} PEEK").limit == 9, "it has the change")
        assert conn.call(*call.split(), "PEEK") == WRONGTYPE
        found = decisions_of(conn, call, 3)
        assert [reply[:3] for reply in found] == [(0, 2, 1), (0, 2, 0), (1, 2, 0)]
        assert decide(conn, f"LIMIT CHECK org {b} PEEK").remaining == 0, "what it had counted is still there"
        for name in ("Login", "ip"):
            told = f"limit {name}: a key had the state of another algorithm and starts empty"
            wait_until(lambda told=told: told in weir.log(), "it is told")
        assert "a key of the limit org" not in weir.log()


def decisions_of(conn, call, n):
    return [several(reply) for reply in conn.ask(*[call] * n)]


def test_each_users_own_keys(farm, redis):
    weir = farm.weir(redis, workers=1, limit_prefix="mine:%u:", sections=LIMITS)
    with weir.connect() as conn:
        assert ask(conn, "LIMIT CHECK login a AND ip b")[0] == 0 and ask(conn, "LIMIT ALL FIXED a 1/d AND FIXED b 2/d")[0] == 0
    assert {b"mine:default:login:a", b"mine:default:ip:b", b"mine:default:a", b"mine:default:b"} <= set(redis.call("KEYS", "*"))


def test_cost_is_that_of_all_parts(farm, redis):
    sections = "[cost]\n@limit = 2 per cost\n[policy default]\ncost = 100/d\n[limit a]\nfixed = 50/d\n" + OPERATOR
    weir = farm.weir(redis, workers=1, sections=sections)
    with weir.connect() as conn:
        for command, cost in (
            ("CHECK a x COST 3 AND a COST COST 4 AND a AND", 16),
            ("ALL FIXED and 9/d COST 2 AND FIXED COST 9/d AND FIXED x 9/d COST 5", 16),
            ("ALL FIXED x 9/d AND FIXED y 9/d COST 9007199254740993 AND FIXED z 9/d COST 18446744073709551615", 2**64 - 1),
        ):
            explained = conn.call("LIMIT", "EXPLAIN", "LIMIT", *command.split())
            found = dict(zip(explained[::2], explained[1::2]))[b"cost"]
            assert found == cost or (cost > 2**63 and found >= 2**62), (command, found)
        assert limit_of(conn.call("LIMIT", *"CHECK a x COST 49 AND a y COST 2".split())) == "default/cost"


# ---- without Redis ----

DOWN = """
[limit error]
fixed = 2/100d
when-down = error
[limit deny]
fixed = 3/100d
when-down = deny
[limit allow]
fixed = 4/100d
when-down = allow
[limit here]
sliding = 5/100d
when-down = local
[limit too]
bucket = 3/1h
when-down = local
[limit shade]
fixed = 1/100d
when-down = deny
over = shadow
"""


def test_when_redis_is_away(farm):
    """The strictest part decides: an error, then a refusal, then a local count, then a pass."""
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, sections=DOWN + LIMITS[LIMITS.index("[policy") :], limit_when_down="allow")
    with weir.connect() as conn:
        assert ask(conn, "LIMIT CHECK here a AND too b AND deny c")[0] == 0
        redis.kill()
        wait_until(lambda: conn.call("LIMIT", "CHECK", "error", "k") == UNAVAILABLE, "it is away")
        assert ask(conn, "LIMIT CHECK allow k AND here k AND deny k AND error k") == UNAVAILABLE
        found = ask(conn, "LIMIT CHECK allow k AND here k AND deny k")
        assert found == (1, 3, 0, 1000, 0, "deny")
        assert ask(conn, "LIMIT CHECK allow k AND shade k") == (0, 4, 0, -1, 0, None)
        assert ask(conn, "LIMIT ALL FIXED a 7/d AND FIXED b 8/d") == (0, 7, 0, -1, 0, None)
        found = [ask(conn, "LIMIT CHECK allow k AND here k AND shade k AND too k") for _ in range(4)]
        assert [reply[:3] for reply in found] == [(0, 3, 2), (0, 3, 1), (0, 3, 0), (1, 3, 0)] and found[3].refused_by == "too"
        assert ask(conn, "LIMIT CHECK here k AND allow k PEEK")[:3] == (0, 5, 2), "all or nothing, here too"
        assert ask(conn, "LIMIT CHECK here k AND allow k FORCE") == UNAVAILABLE
        assert counts(weir)["too"] == (5, 4, 1, 0, 0) and counts(weir)["shade"] == (5, 0, 0, 5, 0)
        assert counts(weir)["error"][4] >= 1
