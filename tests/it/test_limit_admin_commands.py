"""LIMIT STATUS, EXPLAIN and the admin commands over the wire: rights, errors, forms of replies."""

import socket

import pytest
from kit.decisions import speaking
from kit.harness import wait_until
from kit.limits import EXECABORT, OPERATOR, limit_of, login, operator, order, passed, plain
from kit.resp import Error, encode, pipeline
from kit.server import at_least

NOAUTH = Error("NOAUTH Authentication required.")
OPERATORS = ["LIST", "TOP", "LOG", "SET p read 1/s", "UNSET p read", "DIFF", "MODE", "MODE shadow", "FORGIVE x"]
OPERATORS += ["RELOAD", "BLOCK user:x", "UNBLOCK user:x", "BLOCKS", "CLIENTS", "KICK user:x", "SUGGEST"]
LIMIT_FIELDS = ["limit", "what", "rate", "burst", "per", "over", "remaining", "retry_after_ms", "reset_after_ms"]
EXPLAIN_FIELDS = "subject policy mode command classes cost redis_cost_us redis_cost_by lane verdict wait_ms limit limits share_waiting share_waits share_waited_ms turn_waiting turn_waits turn_waited_ms connect_refused_by".split()
LIST_FIELDS = LIMIT_FIELDS[:6] + ["admitted", "delayed", "refused", "shadowed", "subjects"]


def fields(value, protocol):
    """Returns the names of a map, in order, and its values."""
    assert isinstance(value, dict if protocol == 3 else list)
    names = list(value) if protocol == 3 else value[::2]
    values = list(value.values()) if protocol == 3 else value[1::2]
    return plain(names), plain(values)


# ---- rights ----


def test_limit_needs_a_login_where_redis_does(farm):
    redis = farm.redis(password="secret")
    secret = redis.folder / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    weir = farm.weir(redis, workers=1, upstream_password_file=secret, sections=OPERATOR)
    with weir.connect() as a, operator(weir) as op:
        for command in ["STATUS", "EXPLAIN GET k", "HELP", "BAD", "STATUS x", *OPERATORS]:
            assert a.call("LIMIT", *command.split()) == NOAUTH, command
        assert a.call("LIMIT") == NOAUTH
        assert a.call("AUTH", "secret") == "OK"
        assert plain(a.call("LIMIT", "STATUS"))[0] == "subject"
        assert a.call("LIMIT", "LIST").startswith("NOPERM")
        assert op.call("LIMIT", "LIST") == [] or op.call("LIMIT", "LIST") == NOAUTH


def test_who_is_no_operator_is_told_noperm(limited, users):
    weir = limited("[policy ops]\nmatch = user:alice\nadmin = yes\n[policy default]\nread = 9/d\n" + OPERATOR)
    with weir.connect() as a, login(weir, "bob") as bob, login(weir, "alice") as alice:
        for command in OPERATORS:
            for conn in (a, bob):
                assert conn.call("LIMIT", *command.split()).startswith("NOPERM this command is for operators"), command
        for command in ("STATUS FOR ip:127.0.0.1", "status for user:bob"):
            assert bob.call("LIMIT", *command.split()).startswith("NOPERM"), command
            assert isinstance(alice.call("LIMIT", *command.split()), list), command
        assert len(alice.call("LIMIT", "LIST")) == 1
        assert alice.call("LIMIT", "FORGIVE", "user:bob") == 1
        alice.call("RESET")
        assert alice.call("LIMIT", "LIST").startswith("NOPERM"), "no longer alice"
        assert order(weir, "MODE") == b"enforce"


# ---- errors ----

ERRORS = [
    ("LIMIT", "ERR wrong number of arguments for 'limit' command. Try LIMIT HELP."),
    ("LIMIT BAD", "ERR unknown subcommand 'BAD' (did you mean BAN?). Try LIMIT HELP."),
    ("limit stat", "ERR unknown subcommand 'stat' (did you mean STATUS?). Try LIMIT HELP."),
    ("LIMIT HELP x", "ERR wrong number of arguments for 'limit|help' command"),
    ("LIMIT EXPLAIN", "ERR wrong number of arguments for 'limit|explain' command"),
    ("LIMIT STATUS x", "ERR syntax error, unexpected 'x'"),
    ("LIMIT STATUS FOR", "ERR syntax error, an argument is missing after 'FOR'"),
    ("LIMIT STATUS OF x", "ERR syntax error, unexpected 'OF'"),
    ("LIMIT STATUS FOR x y", "ERR syntax error, unexpected 'y'"),
    ("LIMIT STATUS FOR nobody", "ERR no such subject"),
    ("LIMIT LIST x y", "ERR syntax error, unexpected 'y'"),
    ("LIMIT TOP x", "ERR value is not an integer or out of range"),
    ("LIMIT TOP 0", "ERR value is not an integer or out of range"),
    ("LIMIT TOP 5 BY", "ERR syntax error, an argument is missing after 'BY'"),
    ("LIMIT TOP BY nothing", "ERR syntax error, unexpected 'nothing'"),
    ("LIMIT TOP 5 OF", "ERR syntax error, unexpected 'OF'"),
    ("LIMIT TOP BY commands 5", "ERR syntax error, unexpected '5'"),
    ("LIMIT LOG -1", "ERR value is not an integer or out of range"),
    ("LIMIT LOG 1 2", "ERR syntax error, unexpected '2'"),
    ("LIMIT SET default read", "ERR wrong number of arguments for 'limit|set' command"),
    ("LIMIT SET none read 1/s", "ERR no policy none"),
    ("LIMIT SET defualt read 1/s", "ERR no policy defualt (did you mean default?)"),
    ("LIMIT SET default read fast", "ERR "),
    ("LIMIT SET default raed 1/s", "ERR "),
    ("LIMIT SET default match user:x", "ERR match is not a limit"),
    ("LIMIT UNSET default write x", "ERR syntax error, unexpected 'x'"),
    ("LIMIT UNSET LIMIT default FOR", "ERR syntax error, an argument is missing after 'FOR'"),
    ("LIMIT UNSET LIMIT default FOR a b", "ERR syntax error, unexpected 'b'"),
    ("LIMIT UNSET default write", "ERR policy default has no limit write"),
    ("LIMIT MODE off", "ERR "),
    ("LIMIT FORGIVE", "ERR wrong number of arguments for 'limit|forgive' command"),
    ("LIMIT RELOAD now", "ERR wrong number of arguments for 'limit|reload' command"),
]


@pytest.mark.parametrize("command, error", ERRORS, ids=[e[0] for e in ERRORS])
def test_wrong_limit_commands_are_errors(command, error, kept, redis):
    weir = kept(workers=1, sections="[policy default]\nread = 9/d\n" + OPERATOR)
    with operator(weir) as op:
        for _ in range(2):
            reply = op.call(*command.split())
            assert isinstance(reply, Error) and reply.startswith(error), reply
        op.send(command.encode() + b"\r\n")
        assert op.read() == reply
        assert op.call("LIMIT", "MODE") == b"enforce"
        assert order(weir, "DIFF") == []


def test_errors_carry_no_line_ends(farm, redis):
    weir = farm.weir(redis, workers=1, sections="[policy default]\nread = 9/d\n" + OPERATOR)
    with operator(weir) as op:
        for words in (["LIMIT", "a\r\n+b"], ["LIMIT", "x" * 60_000], ["LIMIT", "SET", "a\r\nb", "read", "1/s"],
                      ["LIMIT", "SET", "default", "read", "1/s\nadmin = yes"], ["LIMIT", "FORGIVE", "\r\n"],
                      ["LIMIT", "STATUS", "FOR", "x" * 100_000], ["LIMIT", *["x"] * 5000]):  # fmt: skip
            reply = op.call(*words)
            assert isinstance(reply, Error) or reply == 0, words[:3]
            assert op.call("PING") == "PONG"


# ---- order among other commands ----


def test_operators_commands_are_refused_in_multi(limited):
    weir = limited("[policy default]\nread = 900/d\n" + OPERATOR)
    with weir.connect() as a, operator(weir) as op:
        for conn in (a, op):
            for command in ("LIMIT STATUS", "LIMIT", "LIMIT BAD", "LIMIT LIST x y", "LIMIT EXPLAIN GET k"):
                replies = conn.ask("SET k 0", "MULTI", "SET k 1", command, "EXEC", "GET k", "MULTI", "GET k", "EXEC")
                assert replies[:3] == ["OK", "OK", "QUEUED"]
                assert isinstance(replies[3], Error), command
                assert replies[4:] == [EXECABORT, b"0", "OK", "QUEUED", [b"0"]], command


def test_between_other_commands(limited, redis):
    weir = limited("[policy default]\nwrite = 3/d\n")
    with weir.connect() as a:
        a.send(pipeline("SET k 1", "LIMIT STATUS", "BLPOP l 0", "LIMIT STATUS", "SET k 2", "LIMIT EXPLAIN SET k v",
                        "SET k 3", "LIMIT BAD", "SET k 4", "GET k"))  # fmt: skip
        assert a.read() == "OK"
        assert plain(a.read())[0] == "subject"
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        redis.call("RPUSH", "l", "v")
        assert a.read() == [b"l", b"v"]
        assert plain(a.read())[0] == "subject"
        assert a.read() == "OK"
        assert plain(a.read())[0] == "subject"
        replies = [a.read() for _ in range(4)]
        assert [type(reply) for reply in replies] in ([str, Error, Error, bytes], [Error, Error, Error, bytes])


def test_a_long_run_keeps_its_order(limited):
    weir = limited("[policy default]\nread = 9/d\n")
    with weir.connect() as a:
        commands = []
        for i in range(200):
            commands += [f"ECHO {i}", "LIMIT HELP"]
        replies = a.ask(*commands)
        assert replies[::2] == [b"%d" % i for i in range(200)]
        assert all(isinstance(reply, list) for reply in replies[1::2])


def test_limit_keeps_silent_when_replies_are_off(limited):
    weir = limited("[policy default]\nread = 9/d\n" + OPERATOR)
    with operator(weir) as op:
        op.send(pipeline("CLIENT REPLY OFF", "LIMIT STATUS", "LIMIT MODE shadow", "LIMIT BAD", "CLIENT REPLY ON"))
        assert op.read() == "OK"
        assert op.call("LIMIT", "MODE") == b"shadow"
        op.send(pipeline("CLIENT REPLY SKIP", "LIMIT MODE enforce", "ECHO x"))
        assert op.read() == b"x"
        op.send(pipeline("CLIENT REPLY SKIP", "LIMIT BAD", "LIMIT MODE"))
        assert op.read() == b"enforce"


def test_limit_while_subscribed_is_refused_in_resp2_only(limited, redis, protocol):
    """In RESP2 Redis lets a subscriber send only subscription commands."""
    weir = limited("[policy default]\nread = 9/d\n")
    with speaking(weir.connect(), protocol) as a:
        a.call("SUBSCRIBE", "c")
        wanted = redis_says(redis, protocol)
        reply = a.call("LIMIT", "STATUS")
        if protocol == 3:
            assert reply[b"subject"] == b"ip:127.0.0.1"
        else:
            assert reply == Error(wanted.replace("config|get" if at_least(7, 0) else "config", "limit|status"))
        redis.call("PUBLISH", "c", "x")
        assert a.read() == [b"message", b"c", b"x"]
        assert a.call("UNSUBSCRIBE", "c") == [b"unsubscribe", b"c", 0]
        assert plain(a.call("LIMIT", "STATUS"))


def redis_says(redis, protocol):
    """Returns what Redis answers to any other command of a subscriber."""
    with speaking(redis.connect(), protocol) as conn:
        conn.call("SUBSCRIBE", "c")
        return conn.call("CONFIG", "GET", "save")


def test_where_replies_cannot_be_told_apart(limited):
    """A reply of weir's cannot be placed between replies of Redis, so weir closes the client after
    Redis' earlier replies.
    """
    weir = limited("[policy default]\nwrite = 9/d\ncmd.dbsize = deny\n")
    for own in ("LIMIT STATUS", "DBSIZE", "AUTH x", "*x\r\n"):
        with weir.connect() as a:
            assert a.ask("MULTI", "SUBSCRIBE c", "EXEC")[:2] == ["OK", "QUEUED"]
            a.call("UNSUBSCRIBE", "c")
            a.send(pipeline("ECHO first", "ECHO second") + (own.encode() if "*" in own else encode(*own.split())))
            a.send(encode("ECHO", "last"))
            assert a.read_to_end() == b"$5\r\nfirst\r\n$6\r\nsecond\r\n", own


@pytest.mark.parametrize(
    "state",
    [
        ["MULTI", "SUBSCRIBE c", "EXEC", "RESET"],
        ["MULTI", "SUBSCRIBE c", "EXEC", "UNSUBSCRIBE c", "MULTI", "GET k"],
        ["MULTI", "CLIENT REPLY OFF", "EXEC", "CLIENT REPLY ON"],
        ["MULTI", "CLIENT REPLY SKIP", "NOSUCH", "EXEC"],
        ["MULTI", "SUBSCRIBE c", "EXEC"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("is_resp3", [False, True], ids=["RESP2", "RESP3"])
def test_all_that_came_before_is_answered(state, is_resp3, kept_limited, redis):
    """Byte for byte as from Redis, however many replies there are, whatever is blocked in Redis,
    and whatever CLIENT REPLY hides.
    """
    weir = kept_limited("[policy default]\ncmd.dbsize = deny\n")
    redis.call("SET", "large", b"x" * (1 << 20))
    for last in ("GET large", "BLPOP none 0.05", "CLIENT REPLY SKIP", "CLIENT REPLY OFF"):
        words = [*state, *["GET large"] * 4, last]
        with redis.connect() as direct, weir.connect() as conn:
            if is_resp3:
                direct.call("HELLO", "3"), conn.call("HELLO", "3")
            direct.send(pipeline(*words, "QUIT"))
            expected = direct.read_to_end().removesuffix(b"+OK\r\n")  # the reply to QUIT
            conn.send(pipeline(*words, "DBSIZE", "PING"))
            assert conn.read_to_end() == expected, last


def test_who_monitors_hears_nothing_of_the_end(limited):
    weir = limited("[policy default]\ncmd.dbsize = deny\n")
    with weir.connect() as other, weir.connect() as conn:
        assert other.call("MONITOR") == "OK"
        conn.send(pipeline("MONITOR", "MONITOR", "ECHO last", "DBSIZE"))
        # INFO is asked by weir itself
        heard = [line for line in conn.read_to_end().splitlines() if b'"INFO"' not in line]
        assert heard[0] == b"+OK" and heard[-1].endswith(b'"ECHO" "last"') and len(heard) == 4
        with weir.connect() as third:
            third.call("ECHO", "behind")
        while b'"ECHO" "behind"' not in (line := other.read().encode()):
            assert any(words in line for words in (b'"MONITOR"', b'"monitor"', b'"ECHO" "last"', b'"INFO"')), line


def test_who_leaves_while_the_last_answers_are_waited_for(limited, redis):
    """The half-closed client takes no element."""
    weir = limited("[policy default]\ncmd.dbsize = deny\n")
    with weir.connect() as conn:
        assert conn.ask("MULTI", "SUBSCRIBE c", "EXEC")[:2] == ["OK", "QUEUED"]
        conn.send(pipeline("RESET", "BLPOP q 0", "DBSIZE"))
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        conn.sock.shutdown(socket.SHUT_WR)
        conn.read_to_end()
    wait_until(lambda: redis.waiting() == (0, 0, 0), "Redis forgets it")


def test_what_has_come_is_not_held_back_for_what_waits(limited):
    weir = limited("[policy default]\ncmd.dbsize = deny\n")
    with weir.connect() as conn:
        assert conn.ask("MULTI", "SUBSCRIBE c", "EXEC")[:2] == ["OK", "QUEUED"]
        conn.send(pipeline("RESET", "ECHO -ERR", "ECHO +RE", "BLPOP q 0", "DBSIZE"))
        assert [conn.read() for _ in range(3)] == ["RESET", b"-ERR", b"+RE"]


@pytest.mark.parametrize("last", ["DBSIZE", "LIMIT STATUS", "AUTH x", "NOTHING *x"])
def test_who_wants_no_answers_is_closed_too(last, kept_limited, users):
    weir = kept_limited("[policy default]\ncmd.dbsize = deny\n")
    for words in (["MULTI", "CLIENT REPLY OFF", "EXEC"], ["MULTI", "SUBSCRIBE c", "EXEC", "RESET", "CLIENT REPLY OFF", "MULTI"]):
        with login(weir, "alice") as conn:
            conn.send(pipeline(*words))
            begun = [conn.read() for _ in range(words.index("EXEC"))]
            assert begun == ["OK", *["QUEUED"] * (len(begun) - 1)]
            if "RESET" in words:
                assert len(conn.read()) == 1 and conn.read() == "RESET"
            else:
                assert conn.line() == b"*1"
            conn.send(b"*x\r\n" if "*x" in last else encode(*last.split()))
            assert conn.read_to_end() == b""


def test_in_any_case_and_inline(limited):
    weir = limited("[policy default]\nread = 9/d\n")
    with weir.connect() as a:
        for data in (b"limit status\r\n", b"LiMiT sTaTuS\r\n", encode("LIMIT", "status"), b'"limit" \'status\'\r\n'):
            a.send(data)
            assert plain(a.read())[0] == "subject"
        assert a.call("limit|status").startswith("ERR unknown")


def test_operators_commands_are_limited_too(limited, users):
    """Admin commands are limited like others; STATUS, EXPLAIN and HELP are of class control."""
    weir = limited("[policy ops]\nmatch = user:alice\nadmin = yes\nall = 2/d\n")
    with login(weir, "alice") as a:
        assert passed(a.ask(*["LIMIT LIST"] * 5)) == 2
        assert limit_of(a.call("LIMIT", "SET", "ops", "all", "5/d")) == "ops/all"
        assert passed(a.ask(*["LIMIT STATUS", "LIMIT HELP", "LIMIT EXPLAIN GET k"] * 3)) == 9


# ---- forms of replies ----


def test_status_tells_how_each_limit_stands(limited, protocol):
    weir = limited(
        "[policy default]\nread = 10/d burst 20\nwrite = 5/h over delay 1s\ninflight = 3 per policy\ncmd.keys = deny\n"
        + OPERATOR
    )
    with speaking(weir.connect(), protocol) as a, speaking(operator(weir), protocol) as op:
        a.ask("GET k", "GET k")
        names, values = fields(a.call("LIMIT", "STATUS"), protocol)
        waits = ["share_waiting", "share_waits", "share_waited_ms", "turn_waiting", "turn_waits", "turn_waited_ms"]
        assert names == ["subject", "policy", "mode", "limits", *waits]
        assert values[:3] == ["ip:127.0.0.1", "default", "enforce"]
        rows = []
        for row in a.call("LIMIT", "STATUS")[b"limits" if protocol == 3 else 7]:
            names, values = fields(row, protocol)
            assert names == LIMIT_FIELDS
            rows.append(values)
        assert rows[0][:8] == ["default/read", "read", "10/d", 20, "subject", "refuse", 18, -1]
        assert 2 * 8_640_000 - 60_000 < rows[0][8] <= 2 * 8_640_000
        assert rows[1][:6] == ["default/write", "write", "5/h", 1, "subject", "delay 1s"]
        assert rows[2] == ["default/inflight", "inflight", "3", 3, "policy", "refuse", 3, -1, 0]
        assert rows[3][:3] == ["default/cmd.keys", "cmd.keys", "deny"] and rows[3][6] == 0
        others = op.call("LIMIT", "STATUS", "FOR", "ip:127.0.0.1")
        assert fields(others, protocol)[1][:3] == ["ip:127.0.0.1", "default", "enforce"]


def test_status_of_who_is_not_limited(farm, redis, protocol):
    weir = farm.weir(redis, workers=1)
    with speaking(weir.connect(), protocol) as a:
        names, values = fields(a.call("LIMIT", "STATUS"), protocol)
        assert values == ["ip:127.0.0.1", None, "enforce", [], 0, 0, 0, 0, 0, 0]


def test_explain_tells_what_would_become_of_a_command(limited, protocol):
    weir = limited(
        "[cost]\nmget = 2 per key\n[class heavy]\ncommands = keys, mget\n"
        "[policy default]\nread = 2/d\nheavy = 1/d\ncost = 100/d\nwrite = 1/d over delay 1m\n" + OPERATOR
    )
    with speaking(weir.connect(), protocol) as a, speaking(operator(weir), protocol) as op:

        def explain(*words, by=a):
            names, values = fields(by.call("LIMIT", "EXPLAIN", *words), protocol)
            assert names == EXPLAIN_FIELDS
            found = dict(zip(names, values))
            if protocol == 2:
                found["limits"] = [dict(zip(row[::2], row[1::2])) for row in found["limits"]]
            return found

        said = explain("mGet", "a", "b")
        wanted = {"command": "mget", "cost": 4, "verdict": "pass", "wait_ms": 0, "limit": None}
        assert {name: said[name] for name in wanted} == wanted
        assert {"all", "read", "heavy", "@fast", "@string"} <= set(said["classes"]) and "write" not in said["classes"]
        assert [row["binds"] for row in said["limits"]] == [1, 1, 1, 0]
        for _ in range(3):
            assert explain("MGET", "a")["verdict"] == "pass", "nothing is charged"
        assert a.call("MGET", "a") == [None]
        said = explain("MGET", "a")
        assert said["verdict"] == "refuse" and said["limit"] == "default/heavy" and said["wait_ms"] > 0
        said = explain("MGET", *"abcdefghij" * 3)
        assert said["verdict"] == "refuse"
        assert explain("PING")["verdict"] == "pass" and explain("PING")["limits"][0]["binds"] == 0
        assert explain("nonsense")["command"] == "unknown"
        assert a.call("SET", "k", "v") == "OK"
        assert explain("SET", "k", "v")["verdict"] == "refuse", "a day is longer than a minute"
        assert explain("EVAL", "return 1", "0")["lane"] == "private"
        said = explain("GET", "k", "FOR", "ip:127.0.0.1", by=op)
        assert said["subject"] == "ip:127.0.0.1" and said["verdict"] == "pass"


def test_list_tells_every_limit_and_its_counts(limited, protocol):
    weir = limited("[policy none]\nmatch = user:none\nwrite = 1/s, 10/h\n[policy default]\nread = 2/d\n" + OPERATOR)
    with weir.connect() as a, speaking(operator(weir), protocol) as op:
        a.ask(*["GET k"] * 5)
        rows = []
        for row in op.call("LIMIT", "LIST"):
            names, values = fields(row, protocol)
            assert names == LIST_FIELDS
            rows.append(values)
        assert [row[:3] for row in rows] == [
            ["none/write", "write", "1/s"], ["none/write", "write", "10/h"], ["default/read", "read", "2/d"],
        ]  # fmt: skip
        assert rows[2][6:] == [2, 0, 3, 0, 1]


def test_top_names_the_heaviest_subjects(limited, users, protocol):
    weir = limited("[policy u]\nmatch = user:*\nread = 5/d\n" + OPERATOR)
    with login(weir, "alice") as alice, login(weir, "bob") as bob, speaking(operator(weir), protocol) as op:
        alice.ask(*["GET k"] * 400)
        bob.ask(*["SET k v"] * 100)
        for by, unit, first in (
            ("commands", "commands_per_s", "user:alice"),
            ("REFUSED", "refused_per_s", "user:alice"),
            ("Bytes", "bytes_per_s", "user:bob"),  # refused requests have not passed
        ):
            rows = op.call("LIMIT", "TOP", "5", "BY", by)
            names, values = fields(rows[0], protocol)
            waited = ["share_waited_us_per_s", "turn_us_per_s"]
            assert names == ["subject", "policy", unit, "uncertainty", "over_s", "refused_by", *waited]
            assert 1 <= values[4] <= 14
            assert values[5] == ("u/read" if values[0] == "user:alice" else None)
            assert values[0] == first
        assert len(op.call("LIMIT", "TOP", "1")) == 1
        assert {fields(row, protocol)[1][0] for row in op.call("LIMIT", "TOP")} >= {"user:alice", "user:bob"}


def test_log_tells_the_last_events(limited, protocol):
    weir = limited("[policy default]\nread = 2/d\n" + OPERATOR)
    with weir.connect() as a, speaking(operator(weir), protocol) as op:
        a.ask(*["GET k"] * 5)
        wait_until(lambda: any("begins to refuse" in str(plain(e)) for e in op.call("LIMIT", "LOG")), "it is told")
        op.call("LIMIT", "SET", "default", "write", "7/d")
        names, values = fields(op.call("LIMIT", "LOG", "1")[0], protocol)
        assert names == ["id", "unix_ms", "kind", "text", "count", "first_unix_ms"]
        text = "[policy default] write = 7/d (before: none), by the operators' socket"
        assert values[2:] == ["set", text, 1, values[1]]
        assert "k" not in [word for e in op.call("LIMIT", "LOG", "50") for word in str(plain(e)).split()]


def test_diff_and_forgive(limited, protocol):
    weir = limited("[policy default]\nread = 2/d\n" + OPERATOR)
    with weir.connect() as a, speaking(operator(weir), protocol) as op:
        assert op.call("LIMIT", "DIFF") == []
        assert op.call("LIMIT", "SET", "default", "read", "3/d", "burst", "4") == "OK"
        names, values = fields(op.call("LIMIT", "DIFF")[0], protocol)
        assert names == ["section", "what", "running", "file"]
        assert values[1:] == ["read", "3/d burst 4", "2/d"]
        assert passed(a.ask(*["GET k"] * 6)) == 4
        assert op.call("LIMIT", "FORGIVE", "ip:127.0.0.1") == 1
        assert op.call("LIMIT", "FORGIVE", "ip:127.0.0.2") == 0
        assert passed(a.ask(*["GET k"] * 6)) == 4
        assert op.call("LIMIT", "RELOAD") == "OK"
        assert op.call("LIMIT", "DIFF") == []


def test_help_names_every_subcommand(limited, protocol):
    weir = limited("")
    with speaking(weir.connect(), protocol) as a:
        lines = a.call("LIMIT", "HELP")
        assert all(type(line) is str for line in lines), "simple strings, as Redis' containers answer"
        assert "STATUS [FOR subject]" in lines and "RELOAD" in lines
        assert all(line.count("[") == line.count("]") for line in lines[1:]), "whole, however long"
        assert [line for line in lines if line.startswith("ALL FUNNEL|") and line.endswith(" [PENALTY time] [AS ARRAY|MAP]")]


# ---- the operator's socket ----


def test_the_operators_socket_is_private_and_not_limited(limited):
    weir = limited("[policy default]\nall = 1/d\nconnections = 1\n" + OPERATOR)
    path = weir.folder / "operator.sock"
    assert path.stat().st_mode & 0o777 in (0o600, 0o700)
    conns = [operator(weir) for _ in range(5)]
    for conn in conns:
        assert conn.ask(*["SET k v"] * 3) == ["OK"] * 3, "no limit binds an operator"
        assert conn.call("LIMIT", "STATUS")[b"policy"] is None
        conn.close()
    weir.stop()
    assert not path.exists()
