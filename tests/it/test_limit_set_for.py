"""LIMIT SET ... FOR a subject, and for a time (EX): which subject the line binds, for how long, and
where operators see it.
"""

import re

import pytest
from kit.admin import ADMIN, get, stats
from kit.browser import page_of
from kit.decisions import speaking
from kit.harness import wait_until
from kit.limits import OPERATOR, limit_of, login, operator, order, passed, plain
from kit.resp import Error

USERS = "[policy u]\nmatch = user:*\nread = 5/d\nwrite = 3/d\n" + OPERATOR


@pytest.fixture
def weir(farm, redis, users):
    return farm.weir(redis, sections=USERS, workers=2)


def give(weir, *words):
    assert order(weir, *words) == "OK", words


def rate_of(conn, what):
    return {row["what"]: row["rate"] for row in as_map(plain(conn.call("LIMIT", "STATUS")))["limits"]}[what]


def as_map(value):
    if isinstance(value, dict):
        return value
    found = dict(zip(value[::2], value[1::2]))
    return found | {"limits": [as_map(row) for row in found["limits"]]} if "limits" in found else found


# ---- subjects ----


def test_one_subject_has_another_limit(limited, users):
    weir = limited(USERS)
    with login(weir, "alice") as a, login(weir, "alice") as b, login(weir, "bob") as bob:
        give(weir, "SET", "u", "read", "9/d", "FOR", "user:alice")
        assert passed(a.ask(*["GET k"] * 5) + b.ask(*["GET k"] * 5)) == 9
        assert passed(bob.ask(*["GET k"] * 9)) == 5
        assert limit_of(a.call("GET", "k")) == "u/read", "the limit's name stays"
        assert passed(a.ask(*["SET k v"] * 5)) == 3, "the other lines are the policy's"
        with login(weir, "alice") as c:
            assert limit_of(c.call("GET", "k")) == "u/read"


@pytest.mark.parametrize("n_workers", [1, 2])
def test_one_rate_for_all_who_share_a_subject(n_workers, farm, redis, users):
    """max-subjects is used up: a line FOR one newcomer changes no rate of other subjects."""
    weir = farm.weir(redis, sections=USERS.replace("3/d", "1000/s"), workers=n_workers, max_subjects=1)
    conns = [login(weir, user) for user in users]
    for conn in conns:
        assert conn.call("SET", "k", "v") == "OK"
    shared = conns[-1]
    give(weir, "SET", "u", "write", "3/d", "burst", "3", "FOR", f"user:{users[-1]}")
    assert passed(shared.ask(*["SET k v"] * 20)) == 20, "it has no effect on the subject that others share"
    give(weir, "UNSET", "u", "write", "FOR", f"user:{users[-1]}")
    for conn in conns:
        assert conn.call("SET", "k", "v") == "OK"
        conn.close()


@pytest.mark.parametrize("what", ["cmd.set", "cost", "bytes-in", "inflight"])
@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_line_for_one_newcomer_charges_no_other(n_workers, what, farm, redis, users):
    """max-subjects is used up: a line FOR one newcomer that the policy lacks has no effect on the
    shared subject.
    """
    weir = farm.weir(redis, sections=USERS.replace("3/d", "1000/s"), workers=n_workers, max_subjects=1)
    rate, debt = ("1", []) if what == "inflight" else ("3/h", ["burst", "3"])
    conns = [login(weir, user) for user in users]
    for conn in conns:
        assert conn.call("SET", "k", "v") == "OK"
    for i in (-1, -2):
        give(weir, "SET", "u", what, rate, *debt, "FOR", f"user:{users[i]}")
        assert passed(conns[i].ask(*["SET k v"] * 9)) == 9, "other newcomers share this subject"
    give(weir, "SET", "u", "cmd.set", "deny", "FOR", f"user:{users[-1]}")
    assert conns[-1].call("SET", "k", "v") == Error("NOPERM denied by policy u"), "deny holds at once"
    assert conns[-2].call("SET", "k", "v") == "OK"
    assert passed(conns[-1].ask(*["GET k"] * 9)) == 5, "the other lines are the policy's"
    for conn in conns[:-2]:
        conn.close()
    newcomer = conns[-2]
    wait_until(lambda: passed(newcomer.ask(*["SET k v"] * 9)) < 9, "the rate holds once the newcomer has a place")
    for conn in conns[-2:]:
        conn.close()


def test_debts_stay(weir):
    with login(weir, "alice") as a:
        assert passed(a.ask(*["GET k"] * 4)) == 4
        give(weir, "SET", "u", "read", "7/d", "FOR", "user:alice", "EX", "1h")
        assert passed(a.ask(*["GET k"] * 9)) == 3, "it owes 4 of 7"
        give(weir, "UNSET", "u", "read", "FOR", "user:alice")
        assert passed(a.ask(*["GET k"] * 3)) == 0


def test_who_has_not_come_yet_and_what_the_policy_has_not(weir):
    give(weir, "SET", "u", "cmd.ping", "1/d", "over", "close", "FOR", "user:alice")
    give(weir, "SET", "u", "@hash", "deny", "FOR", "user:alice")
    give(weir, "SET", "u", "cost", "2/d", "FOR", "user:alice")
    with login(weir, "alice") as a, login(weir, "bob") as bob:
        assert a.call("HGET", "h", "f") == Error("NOPERM denied by policy u")
        assert bob.call("HGET", "h", "f") is None
        assert [limit_of(reply) for reply in a.ask(*["GET k"] * 3)] == [None, None, "u/cost"]
        assert passed(bob.ask(*["GET k"] * 3)) == 3


def test_keys_that_name_subjects(farm, redis):
    weir = farm.weir(redis, workers=1, sections="[policy default]\nread = 2/d\n" + OPERATOR, identity="key:1, ip")
    with weir.connect() as a:
        give(weir, "SET", "default", "read", "4/d", "FOR", "key:acme")
        assert passed(a.ask(*["GET acme:1"] * 6)) == 4
        assert passed(a.ask(*["GET other:1"] * 6)) == 2


# ---- durations ----


def test_for_one_it_ends_by_itself(limited, users):
    weir = limited(USERS)
    with login(weir, "alice") as a:
        give(weir, "SET", "u", "write", "1/h", "FOR", "user:alice", "EX", "300ms")
        log = plain(order(weir, "LOG"))
        wait_until(lambda: rate_of(a, "write") == "3/d", "its time is over")
        assert log[0]["text"].startswith("[policy u] write = 1/h for user:alice, ends in 300ms (before: none), by ")
        assert plain(order(weir, "LOG"))[0]["text"] == "[policy u] write = 1/h for user:alice has ended: its time is over"
        assert order(weir, "DIFF") == []


def test_for_all_it_ends_by_itself(limited, users):
    weir = limited(USERS)
    with login(weir, "alice") as a, login(weir, "bob") as b:
        give(weir, "SET", "u", "read", "8/d", "burst", "9", "EX", "1h")
        give(weir, "SET", "u", "write", "4/d", "EX", "400ms")
        assert [rate_of(conn, "read") for conn in (a, b)] == ["8/d", "8/d"]
        wait_until(lambda: rate_of(a, "write") == "3/d", "the line of the file holds again")
        assert rate_of(b, "read") == "8/d"
        give(weir, "UNSET", "u", "read")
        assert rate_of(b, "read") == "5/d", "what was set for a time is taken back, not the line"
        give(weir, "SET", "u", "read", "8/d", "EX", "1h")
        give(weir, "SET", "u", "read", "7/d")
        assert rate_of(b, "read") == "7/d"
        assert [as_map(row)["running"] for row in plain(order(weir, "DIFF"))] == ["7/d"], "set for good"


def test_what_ends_goes_back_to_what_was_set_before(weir):
    with login(weir, "alice") as a:
        give(weir, "SET", "u", "read", "7/d")
        give(weir, "SET", "u", "read", "8/d", "EX", "300ms")
        assert [plain(row) for row in order(weir, "DIFF")][0]["file"] == "5/d"
        wait_until(lambda: rate_of(a, "read") == "7/d", "what was set without an end")


def is_told(weir, words):
    """Waits for the words in the log, which is written a moment after."""
    wait_until(lambda: words in weir.log(), words)


def test_reloads(weir):
    with login(weir, "alice") as a, login(weir, "bob") as bob:
        give(weir, "SET", "u", "read", "9/d", "FOR", "user:alice")
        give(weir, "SET", "u", "read", "8/d", "FOR", "user:bob", "EX", "1h")
        give(weir, "SET", "u", "write", "6/d", "EX", "1h")
        give(weir, "RELOAD")
        assert (rate_of(a, "read"), rate_of(bob, "read"), rate_of(a, "write")) == ("5/d", "8/d", "6/d")
        is_told(weir, "dropped at the reload, because it was only SET: [policy u] read = 9/d for user:alice")
        file = weir.config.read_text()
        weir.config.write_text(file.replace("write = 3/d\n", "") + "\n[policy z]\nmatch = user:z\n")
        give(weir, "RELOAD")
        assert (rate_of(bob, "read"), rate_of(a, "write")) == ("8/d", "6/d")
        weir.config.write_text(file.replace("[policy u]", "[policy v]"))
        give(weir, "RELOAD")
        assert (rate_of(a, "read"), rate_of(bob, "read")) == ("5/d", "5/d")
        is_told(weir, "dropped: [policy u] write = 6/d: there is no policy of that name")
        is_told(weir, "dropped: [policy u] read = 8/d for user:bob: there is no policy of that name")


# ---- replies ----


def test_status_list_and_diff(weir, protocol):
    give(weir, "SET", "u", "read", "9/d", "burst", "2", "FOR", "user:alice", "EX", "1h")
    give(weir, "SET", "u", "write", "6/d", "EX", "1h")
    give(weir, "SET", "u", "all", "5/s", "FOR", "user:alice")
    with login(weir, "alice") as a, speaking(operator(weir), protocol) as op:
        for conn, words in ((a, ["STATUS"]), (op, ["STATUS", "FOR", "user:alice"]), (a, ["EXPLAIN", "GET", "k"])):
            rows = {row["what"]: row for row in as_map(plain(conn.call("LIMIT", *words)))["limits"]}
            assert rows["read"]["for"] == "user:alice" and 3_500_000 < rows["read"]["ends_in_ms"] <= 3_600_000
            assert rows["write"]["for"] is None and 3_500_000 < rows["write"]["ends_in_ms"] <= 3_600_000
            assert (rows["all"]["for"], rows["all"]["ends_in_ms"]) == ("user:alice", -1)
        assert "for" not in as_map(as_map(plain(op.call("LIMIT", "STATUS", "FOR", "user:bob")))["limits"][0])
        rows = [as_map(row) for row in plain(op.call("LIMIT", "LIST"))]
        assert [(row["limit"], row["rate"], row.get("for", "")) for row in rows] == [
            ("u/read", "5/d", ""), ("u/write", "6/d", None), ("u/read", "9/d", "user:alice"), ("u/all", "5/s", "user:alice"),
        ]  # fmt: skip
        rows = [as_map(row) for row in plain(op.call("LIMIT", "DIFF"))]
        assert [(row["section"], row["what"], row["file"]) for row in rows] == [
            ("policy u", "read for user:alice", ""), ("policy u", "write", "3/d"), ("policy u", "all for user:alice", ""),
        ]  # fmt: skip
        assert [row["running"] for row in rows] == ["9/d burst 2 ex 3600s", "6/d ex 3600s", "5/s"]


def test_a_block_stands_above_it(weir):
    with login(weir, "alice") as a:
        give(weir, "SET", "u", "read", "9/d", "FOR", "user:alice")
        give(weir, "BLOCK", "user:alice")
        assert a.call("GET", "k") == Error("NOPERM blocked by the operator")
        give(weir, "UNBLOCK", "user:alice")
        assert rate_of(a, "read") == "9/d"


ERRORS = [
    ("SET u read 1/s FOR usr:x", "ERR no such subject: usr:x (did you mean user:x?)"),
    ("SET u raed 1/s FOR user:x", "ERR [policy u] raed: "),
    ("SET u read fast FOR user:x", "ERR [policy u] read: "),
    ("SET v read 1/s FOR user:x", "ERR no policy v"),
    ("SET u match user:y FOR user:x", "ERR match is not a limit"),
    ("SET u weight 5 FOR user:x", "ERR weight is not a limit: only limits can be SET for one subject or for a time"),
    ("SET u priority low EX 1m", "ERR priority is not a limit: only limits can be SET for one subject or for a time"),
    ("SET u read 1/s FOR user:x EX", "ERR syntax error, an argument is missing after 'EX'"),
    ("SET u read 1/s EX", "ERR syntax error, an argument is missing after 'EX'"),
    ("SET u read 1/s EX never", "ERR EX: "),
    ("SET u read 1/s FOR", "ERR syntax error, an argument is missing after 'FOR'"),
    ("SET u read 1/s EX 1h FOR", "ERR syntax error, an argument is missing after 'FOR'"),
    ("SET u read 1/s FOR user:x 1h", "ERR syntax error, unexpected '1h' (write EX 1h)"),
    ("SET u read 1/s FOR user:x FOR user:y", "ERR syntax error, unexpected 'FOR'"),
    ("SET u read 1/s FOR user:x burst 5", "ERR syntax error, unexpected 'burst'"),
    ("SET u read 1/s per policy FOR user:x", "ERR [policy u] read: all subjects share a limit `per policy`"),
    ("SET u read =", "ERR [policy u] read: "),
    ("SET u read 1/s FOR user:free-*", "ERR no such subject: user:free-*: write one subject, not a pattern"),
    ("SET u cmd.flushal deny", "ERR flushal is not a known command (did you mean flushall?)"),
    ("SET u cmd.flushal deny FOR user:x EX 1h", "ERR flushal is not a known command (did you mean flushall?)"),
    ("SET u @dangerus 1/s", "ERR @dangerus is not a known command (did you mean @dangerous?)"),
    ("SET u cmd.acme.frobnicate deny", "ERR acme.frobnicate is not a known command: for a module"),
    ("SET v read 1/s", "ERR no policy v (did you mean u?)"),
    ("UNSET nopolicy read", "ERR no policy nopolicy: there is u"),
    ("UNSET u read FOR user:x", "ERR policy u has no limit read for user:x"),
    ("UNSET u read FOR", "ERR syntax error, an argument is missing after 'FOR'"),
    ("UNSET u read OF user:x", "ERR syntax error, unexpected 'OF'"),
    ("UNSET u read FOR user:x y", "ERR syntax error, unexpected 'y'"),
]


def test_wrong_orders_are_errors(weir):
    with operator(weir) as op:
        for command, error in ERRORS:
            reply = op.call("LIMIT", *command.split())
            assert isinstance(reply, Error) and reply.startswith(error), (command, reply)
        assert op.call("LIMIT", "DIFF") == []


# ---- where operators see the line ----


def test_only_the_line_that_refuses_is_listed_as_refusing(farm, redis, users):
    weir = farm.weir(redis, sections="[policy free]\nmatch = user:*\nread = 2/d\nwrite = 90/d\n" + OPERATOR, workers=2)
    give(weir, "SET", "free", "read", "50/d", "FOR", "user:alice")
    with login(weir, "alice") as a, login(weir, "bob") as b:

        def refusing(who, conn):
            conn.ask(*["GET k"] * 30)
            rows = [plain(row) for row in order(weir, "LIST", "REFUSING")]
            return rows if [row for row in rows if row.get("for") == who] else None

        assert passed(a.ask(*["GET k"] * 5)) == 5
        assert passed(b.ask(*["GET k"] * 30)) == 2
        wait_until(lambda: order(weir, "LIST", "REFUSING"), "it is known that free/read refuses")
        assert [plain(row).get("for") for row in order(weir, "LIST", "REFUSING")] == [None], "alice is not refused"
        own = [plain(row) for row in order(weir, "LIST") if plain(row).get("for") == "user:alice"]
        assert [row["refused_per_s"] for row in own] == [0]
        rows = wait_until(lambda: refusing("user:alice", a), "it is known that hers refuses")
        assert rows[-1]["rate"] == "50/d" and rows[-1]["refused_per_s"] > 0


def test_lines_of_single_subjects_are_seen(browser, farm, redis, users):
    weir = farm.weir(redis, sections="[policy free]\nmatch = user:*\nread = 20/d\n" + OPERATOR + ADMIN.replace("[admin]\n", ""))
    give(weir, "SET", "free", "read", "5/d", "FOR", "user:alice", "EX", "1h")
    give(weir, "SET", "free", "write", "7/d", "FOR", "user:alice")
    with login(weir, "alice") as a, operator(weir) as op:
        assert passed(a.ask(*["GET k"] * 9)) == 5

        def full():
            a.ask(*["GET k"] * 20)
            found = {limit["rule"]: limit for limit in stats(weir)["limits"]}
            return found if found["free/read"]["used"] > 0.9 else None

        found = wait_until(full, "her own line is full")
        assert found["free/read"]["fullest_subject"] == "user:alice"
        assert (found["free/read"]["amount"], found["free/read"]["own"]) == ("20/d", "5/d for user:alice")
        assert (found["free/write"]["amount"], found["free/write"]["own"]) == ("", "7/d for user:alice"), "the policy has none"
        shown = page_of(browser, weir).tables["limits"]
        assert any(re.search(r"per subject, refuse; 5/d for user:alice\d", row[0]) for row in shown)
        assert 'rule="free/write"' in get(weir, "/metrics")[2]
        lines = [line.split() for line in op.call("INFO", "limits").decode().splitlines()]
        rows = [line for line in lines if "user:alice" in line]
        assert [row[:4] for row in rows] == [["free/read", "user:alice", "5/d", "refuse"], ["free/write", "user:alice", "7/d", "refuse"]]
        assert 3500 < int(rows[0][4]) <= 3600 and rows[1][4] == "-"
        give(weir, "UNSET", "free", "write", "FOR", "user:alice")
        wait_until(lambda: [limit["rule"] for limit in stats(weir)["limits"]] == ["free/read"], "it is gone")


def test_for_and_ex_in_either_order(weir):
    with login(weir, "alice") as a:
        give(weir, "SET", "u", "read", "9/d", "EX", "1h", "FOR", "user:alice")
        assert rate_of(a, "read") == "9/d"
        assert [as_map(row)["what"] for row in plain(order(weir, "DIFF"))] == ["read for user:alice"]


@pytest.mark.parametrize("words", [["=", "9/d"], ["=9/d"], ["9/d"]])
def test_with_the_sign_that_the_file_has(words, weir):
    with login(weir, "alice") as a:
        give(weir, "SET", "u", "read", *words)
        assert rate_of(a, "read") == "9/d"
        give(weir, "SET", "u", "read", *words, "burst", "2", "FOR", "user:alice")
        assert rate_of(a, "read") == "9/d"


def test_whom_another_policy_binds(farm, redis, users):
    sections = "[policy vip]\nmatch = user:vip-*\nread = 9/d\n[policy u]\nmatch = user:*\nread = 5/d\n[policy default]\nread = 1/d\n"
    weir = farm.weir(redis, sections=sections + "[policy hosts]\nmatch = ip:192.0.2.0/24, listener:unix:*\nread = 2/d\n" + OPERATOR, workers=1)
    for policy, subject, other in (
        ("u", "user:vip-1", "vip"), ("vip", "user:alice", "u"), ("default", "user:alice", "u"), ("hosts", "user:alice", "u"),
    ):  # fmt: skip
        error = f"ERR {subject} is bound by policy {other}, not by {policy}: LIMIT SET {other} ..."
        assert order(weir, "SET", policy, "read", "3/d", "FOR", subject, "EX", "1h") == Error(error)
    for policy, subject in (("vip", "user:vip-1"), ("u", "user:alice"), ("hosts", "ip:192.0.2.7"), ("u", "ip:127.0.0.1")):
        give(weir, "SET", policy, "read", "3/d", "FOR", subject)  # the last client may log in


def test_what_holds_now_is_logged(weir):
    give(weir, "SET", "u", "read", "8/d", "EX", "1h")
    give(weir, "SET", "u", "read", "9/d", "FOR", "user:alice")
    give(weir, "UNSET", "u", "read", "FOR", "user:alice")
    give(weir, "UNSET", "u", "read")
    give(weir, "UNSET", "u", "read")
    said = [event["text"].split(", by ")[0] for event in plain(order(weir, "LOG", "3"))]
    assert said == [
        "[policy u] read removed (before: 5/d; now: none)",
        "[policy u] read removed (before: 8/d; now: 5/d)",
        "[policy u] read for user:alice removed (before: 9/d; now: 8/d)",
    ]
