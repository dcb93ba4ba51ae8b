"""LIMIT BLOCK refuses every command of a subject, at once and on every worker, until the block is
removed or expires.
"""

import pytest
from kit.admin import ADMIN, get, stats
from kit.browser import page_of
from kit.decisions import speaking
from kit.harness import wait_until
from kit.limits import EXECABORT, OPERATOR, limit_of, login, operator, order, passed, plain
from kit.resp import Error

BLOCKED = Error("NOPERM blocked by the operator")
EXPIRES = "[policy default]\nread = 900/d\n" + OPERATOR


@pytest.fixture
def one(farm, redis):
    return lambda sections, **settings: farm.weir(redis, sections=sections, workers=2, **settings)


def block(weir, *words):
    assert order(weir, "BLOCK", *words).split(",")[0] == "OK"


# ---- which commands and subjects are refused ----


def test_everything_of_a_blocked_subject_is_refused(limited, users):
    weir = limited("[policy u]\nmatch = user:*\nread = 900/d\n" + OPERATOR)
    with login(weir, "alice") as a, login(weir, "alice") as b, login(weir, "bob") as bob:
        assert a.call("SET", "k", "v") == "OK"
        block(weir, "user:alice", "REASON", "scans", "at", "night")
        told = Error("NOPERM blocked by the operator: scans at night")
        for conn in (a, b):
            assert conn.ask("GET k", "SET k x", "KEYS *", "LIMIT FUNNEL x 1/s", "EVAL 'return 1' 0") == [told] * 5
            assert conn.ask(*["GET k"] * 300) == [told] * 300
            assert conn.ask("PING", "ECHO x", "SELECT 0", "TIME")[:2] == ["PONG", b"x"], "class control"
        with login(weir, "alice") as new:
            assert new.ask("GET k", "PING", "GET k") == [told, "PONG", told]
        assert bob.ask("GET k", "SET k w") == [b"v", "OK"]
        assert a.call("AUTH", "bob", "pw") == "OK"
        assert a.call("GET", "k") == b"w", "who it is now is not blocked"
        assert bob.call("AUTH", "alice", "pw") == "OK"
        assert bob.call("GET", "k") == told
        assert order(weir, "UNBLOCK", "user:alice") == "OK"
        for conn in (a, b, bob):
            assert conn.call("GET", "k") == b"w"


def test_who_has_never_come_is_blocked_when_it_comes(limited, users):
    weir = limited(OPERATOR)
    unseen = "OK, but weir has not seen user:alice yet: the block applies when it appears"
    assert order(weir, "BLOCK", "user:alice", "EX", "1h") == unseen
    with login(weir, "alice") as a, weir.connect() as b:
        assert a.call("GET", "k") == BLOCKED, "whom no policy binds"
        assert b.call("GET", "k") is None
        assert order(weir, "BLOCK", "user:alice") == "OK", "it has come by now"
        assert order(weir, "UNBLOCK", "user:alice") == "OK"
        assert a.call("GET", "k") is None


def test_a_transaction_is_voided(limited):
    weir = limited(EXPIRES)
    with weir.connect() as a:
        assert a.ask("MULTI", "SET k 1") == ["OK", "QUEUED"]
        block(weir, "ip:127.0.0.1")
        assert a.ask("SET k 2", "EXEC", "GET k") == [BLOCKED, EXECABORT, BLOCKED]
        assert order(weir, "UNBLOCK", "ip:127.0.0.1") == "OK"
        assert a.call("GET", "k") is None


@pytest.mark.parametrize("identity, subject", [("name, ip", "name:etl"), ("ip/24, ip6/64", "ip:127.0.0.0/24")])
def test_by_whatever_names_a_subject(one, identity, subject):
    weir = one(EXPIRES, identity=identity)
    with weir.connect() as a:
        a.call("CLIENT", "SETNAME", "etl")
        block(weir, subject)
        assert a.call("GET", "k") == BLOCKED


def test_keys_that_name_subjects(limited):
    weir = limited("[policy default]\nall = 900/d\n" + OPERATOR, identity="key:1, ip")
    with weir.connect() as a:
        assert a.ask("SET acme:1 x", "SET other:1 x") == ["OK", "OK"]
        block(weir, "key:acme", "REASON", "acme")
        assert a.ask("GET acme:1", "GET other:1", "DEL acme:2", "DBSIZE")[:3] == [Error(f"{BLOCKED}: acme"), b"x", Error(f"{BLOCKED}: acme")]
        assert order(weir, "UNBLOCK", "key:acme") == "OK"
        assert a.call("GET", "acme:1") == b"x"
        block(weir, "ip:127.0.0.1", "REASON", "who it is")
        assert a.ask("GET acme:1", "DBSIZE", "PING") == [Error(f"{BLOCKED}: who it is")] * 2 + ["PONG"], "the connection's own"


def test_a_policy_that_looks_at_keys(one):
    weir = one("[policy acme]\nmatch = key:acme:*\nread = 900/d\n" + OPERATOR)
    with weir.connect() as a:
        block(weir, "ip:127.0.0.1")
        assert a.ask("GET acme:1", "GET other", "DBSIZE") == [BLOCKED] * 3


def test_a_block_is_an_order_in_shadow_mode_too(one):
    weir = one("[policy default]\nread = 1/d\n" + OPERATOR, mode="shadow")
    with weir.connect() as a:
        assert passed(a.ask(*["GET k"] * 3)) == 3
        block(weir, "ip:127.0.0.1")
        assert a.ask("GET k", "SET k v", "PING") == [BLOCKED, BLOCKED, "PONG"]
        assert order(weir, "UNBLOCK", "ip:127.0.0.1") == "OK"
        assert a.call("SET", "k", "v") == "OK"


def test_what_is_refused_is_charged_to_nobody(one):
    weir = one("[policy default]\nread = 3/d\n" + OPERATOR)
    with weir.connect() as a:
        block(weir, "ip:127.0.0.1")
        assert a.ask(*["GET k"] * 9) == [BLOCKED] * 9
        order(weir, "UNBLOCK", "ip:127.0.0.1")
        assert [limit_of(reply) for reply in a.ask(*["GET k"] * 4)] == [None] * 3 + ["default/read"]


# ---- how long ----


def test_it_ends_by_itself(limited):
    weir = limited(EXPIRES)
    with weir.connect() as a:
        block(weir, "ip:127.0.0.1", "EX", "300ms", "REASON", "for a moment")
        block(weir, "user:bob", "REASON", "for", "an", "hour", "EX", "1h")
        said = [plain(row) for row in order(weir, "BLOCKS")]
        wait_until(lambda: a.call("GET", "k") is None, "the time is over")
        rows = {row["subject"]: row for row in said}
        assert rows["user:bob"]["reason"] == "for an hour" and 3_500_000 < rows["user:bob"]["ends_in_ms"] <= 3_600_000
        assert [row["subject"] for row in plain(order(weir, "BLOCKS"))] == ["user:bob"]
        log = [event["text"] for event in plain(order(weir, "LOG"))]
        assert any(text.startswith("ip:127.0.0.1 is blocked for 300ms (for a moment), by ") for text in log)
        assert "ip:127.0.0.1 is no longer blocked: its time is over" in log
        weir.wait_for_log("user:bob is blocked for 1h (for an hour), by ")


def test_it_outlives_reloads_and_changes_of_limits(one):
    weir = one(EXPIRES)
    with weir.connect() as a:
        block(weir, "ip:127.0.0.1", "REASON", "scans")
        block(weir, "user:bob", "EX", "1h")
        for change in (["RELOAD"], ["SET", "default", "read", "5/s"], ["MODE", "shadow"], ["MODE", "enforce"]):
            assert order(weir, *change) == "OK"
            assert a.call("GET", "k") == Error(f"{BLOCKED}: scans"), change
        assert len(order(weir, "BLOCKS")) == 2
        block(weir, "ip:127.0.0.1")
        assert a.call("GET", "k") == BLOCKED, "another reason: none"


# ---- replies ----


def test_status_explain_blocks_and_diff(one, protocol):
    weir = one(EXPIRES)
    with weir.connect() as a, speaking(operator(weir), protocol) as op:
        assert a.call("GET", "k") is None
        assert op.call("LIMIT", "BLOCKS") == []
        assert op.call("LIMIT", "BLOCK", "ip:127.0.0.1", "EX", "1h", "REASON", "scans") == "OK"

        def as_map(value):
            return value if isinstance(value, dict) else dict(zip(value[::2], value[1::2]))

        for conn, words in ((op, ["STATUS", "FOR", "ip:127.0.0.1"]), (a, ["STATUS"]), (a, ["EXPLAIN", "GET", "k"])):
            said = as_map(plain(conn.call("LIMIT", *words)))
            found = as_map(said["blocked"])
            assert found["reason"] == "scans" and 3_500_000 < found["ends_in_ms"] <= 3_600_000
            assert as_map(said["limits"][-1])["limit"] == "block"
        assert said["verdict"] == "deny" and said["limit"] == "block"
        assert as_map(plain(a.call("LIMIT", "EXPLAIN", "PING")))["verdict"] == "pass"
        rows = [as_map(row) for row in plain(op.call("LIMIT", "DIFF"))]
        assert [(row["section"], row["what"], row["file"]) for row in rows] == [("block", "ip:127.0.0.1", "")]
        assert rows[0]["running"].startswith("blocked ex ") and rows[0]["running"].endswith("s reason scans")
        assert op.call("LIMIT", "BLOCK", "user:bob").startswith("OK, but weir has not seen user:bob")
        assert [as_map(row) for row in plain(op.call("LIMIT", "BLOCKS"))][0] == {"subject": "user:bob", "reason": "", "ends_in_ms": -1}
        assert len(op.call("LIMIT", "BLOCKS", "1")) == 1
        assert "blocked" not in as_map(plain(op.call("LIMIT", "STATUS", "FOR", "user:carl")))


def test_it_is_counted(farm, redis):
    weir = farm.weir(redis, workers=2, sections=EXPIRES + ADMIN.replace("[admin]\n", ""))
    with weir.connect() as a:
        a.call("GET", "k")
        block(weir, "ip:127.0.0.1")
        a.ask(*["GET k"] * 7)

        def counted():
            page = get(weir, "/metrics")[2]
            return "weir_subjects_blocked 1\n" in page and "weir_blocked_commands_total 7\n" in page

        wait_until(counted, "both numbers are shown")


ERRORS = [
    ("BLOCK", "ERR wrong number of arguments for 'limit|block' command"),
    ("BLOCK usr:x", "ERR no such subject: usr:x (did you mean user:x?)"),
    ("BLOCK user", "ERR no such subject: user is not a valid name (did you mean user:...?)"),
    ("BLOCK ann", "ERR no such subject: ann is not a valid name: write user:NAME, "),
    ("BLOCK user:", "ERR no such subject: user: is not a name"),
    ("BLOCK ip:1.2.3", "ERR no such subject: ip:1.2.3 is not an address"),
    (
        "BLOCK ip:10.1.2.0/24",
        "ERR no such subject: ip:10.1.2.0/24: identity in [weir] uses whole addresses (did you mean ip:10.1.2.0?)",
    ),
    ("BLOCK user:free-*", "ERR no such subject: user:free-*: write one subject, not a pattern"),
    ("BLOCK user:free-? EX 1h", "ERR no such subject: user:free-?: write one subject"),
    ("BLOCK user:50%", "ERR no such subject: user:50% (did you mean user:50%25?)"),
    ("BLOCK name:x", "ERR no such subject: name:x: identity in [weir] names no subject by name"),
    ("BLOCK key:x", "ERR no such subject: key:x: identity in [weir] names no subject by key"),
    ("BLOCK user:x EX", "ERR syntax error, an argument is missing after 'EX'"),
    ("BLOCK user:x EX soon", "ERR EX: "),
    ("BLOCK user:x EX 0", "ERR EX: the time must be longer than 0"),
    ("BLOCK user:x EX 1h because", "ERR syntax error, unexpected 'because' (write REASON because)"),
    ("BLOCK user:x 10m", "ERR syntax error, unexpected '10m' (write EX 10m)"),
    ("BLOCK user:x REASON a EX 10m b", "ERR syntax error, unexpected 'EX' in the reason (write EX 10m once, before REASON)"),
    ("BLOCK user:x EX 1h REASON a EX 10m", "ERR syntax error, unexpected 'EX' in the reason (write EX 10m once, before REASON)"),
    ("BLOK user:x", "ERR unknown subcommand 'BLOK' (did you mean BLOCK?). Try LIMIT HELP."),
    ("BLOCK user:x REASON", "ERR syntax error, an argument is missing after 'REASON'"),
    ("BLOCK user:x REASON " + "x" * 201, "ERR the reason is too long: at most 200 bytes"),
    ("UNBLOCK user:x", "ERR user:x is not blocked"),
    ("UNBLOCK user:x y", "ERR wrong number of arguments for 'limit|unblock' command"),
    ("BLOCKS x", "ERR value is not an integer or out of range: 'x' must be 1 or more"),
    ("BLOCKS 0", "ERR value is not an integer or out of range: '0' must be 1 or more"),
    ("LOG x", "ERR value is not an integer or out of range: 'x' must be 1 or more"),
    ("TOP 0", "ERR value is not an integer or out of range: '0' must be 1 or more"),
    ("TOP 3 BY REFUSD", "ERR syntax error, unexpected 'REFUSD' (did you mean REFUSED?)"),
    ("TOP 3 BY LIMITD", "ERR syntax error, unexpected 'LIMITD' (did you mean LIMITED?)"),
    ("TOP 3 BY weight", "ERR syntax error, unexpected 'weight'"),
    ("TOP BY", "ERR syntax error, an argument is missing after 'BY'"),
    ("BLOCKS 1 2", "ERR syntax error, unexpected '2'"),
]


def test_wrong_orders_are_errors(farm, redis):
    weir = farm.weir(redis, workers=1, sections=EXPIRES)
    with operator(weir) as op:
        for command, error in ERRORS:
            reply = op.call("LIMIT", *command.split())
            assert isinstance(reply, Error) and reply.startswith(error), (command, reply)
        assert op.call("LIMIT", "BLOCK", "user:x", "REASON", "a\r\n+b").startswith("ERR a reason cannot contain control characters")
        assert op.call("LIMIT", "BLOCKS") == []


# ---- where operators see the block ----


def test_a_block_is_told_as_such_and_not_as_a_limit(browser, farm, redis, users):
    weir = farm.weir(redis, sections="[policy free]\nmatch = user:*\nread = 900/d\nall = 9000/d\n" + OPERATOR + ADMIN.replace("[admin]\n", ""))
    with login(weir, "alice") as a, operator(weir) as op:
        block(weir, "user:alice")

        def told():
            assert a.ask(*["GET k"] * 50) == [BLOCKED] * 50
            found = stats(weir)
            rows = [row for row in found["top"]["refused"] if row["subject"] == "user:alice"]
            return rows and rows[0].get("refused_by") and found["now"]["blocked_per_second"] > 0 and found

        found = wait_until(told, "it is known who refuses")
        assert [row["refused_by"] for row in found["top"]["refused"]] == ["block"]
        wanted = {"level": "warn", "title": "1 subject blocked"}
        assert [finding for finding in found["findings"] if finding.items() >= wanted.items()], found["findings"]
        assert not [finding for finding in found["findings"] if "refusing" in finding["title"]], "no limit does"
        assert all(limit["state"] == "ok" and limit["used"] == 0 for limit in found["limits"])
        assert not [who for limit in found["limits"] for who in limit["holders"] if who["refused_per_second"]]
        assert "1 subject blocked" in page_of(browser, weir).findings
        assert plain(op.call("LIMIT", "TOP", "1", "BY", "REFUSED"))[0]["refused_by"] == "block"
        text = op.call("INFO", "limits").decode()
        assert "# Blocked: 1 subject (LIMIT BLOCKS), " in text and "# Limits: 0 of 2 refuse" in text
        assert [line.split()[-1] for line in op.call("INFO", "clients").decode().splitlines() if line.startswith("user:alice ")][-1] == "block"
        order(weir, "UNBLOCK", "user:alice")
        wait_until(lambda: "# Blocked" not in op.call("INFO", "limits").decode(), "nobody is blocked any more")


def test_a_name_like_a_pattern_can_be_blocked_while_it_is_there(one):
    weir = one(EXPIRES, identity="name, ip")
    with weir.connect() as a:
        a.call("CLIENT", "SETNAME", "etl-*")
        assert a.call("GET", "k") is None
        block(weir, "name:etl-*")
        assert a.call("GET", "k") == BLOCKED
        assert order(weir, "UNBLOCK", "name:etl-*") == "OK"
        assert a.call("GET", "k") is None
