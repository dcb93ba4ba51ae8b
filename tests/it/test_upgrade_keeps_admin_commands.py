"""An upgrade keeps admin commands: SET, UNSET, MODE, BLOCK, for one subject and for a time; or logs
what it drops.
"""

import re

import pytest
from kit.harness import wait_until
from kit.limits import OPERATOR, login, operator, order, plain
from kit.resp import Error

SECTIONS = """
[policy u]
match = user:*
read = 5/d
write = 3/d
all = 900/s
[limit signup]
sliding = 5/60s
""" + OPERATOR


@pytest.fixture
def weir(farm, redis, users):
    return farm.weir(redis, sections=SECTIONS, workers=2, drain_timeout="15s")


def rows(weir, words, *names):
    return [tuple(row[name] for name in names) for row in plain(order(weir, *words))]


def rate_of(conn, what):
    return {row["what"]: row["rate"] for row in rows_of_status(conn)}[what]


def rows_of_status(conn):
    reply = plain(conn.call("LIMIT", "STATUS"))
    limits = dict(zip(reply[::2], reply[1::2]))["limits"]
    return [dict(zip(row[::2], row[1::2])) for row in limits]


def test_what_was_ordered_holds_in_the_new_process(weir):
    for words in (
        "SET u read 7/d burst 8", "UNSET u all", "MODE shadow", "SET u write 4/d EX 1h", "SET u write 9/d FOR user:alice EX 1h",
        "SET u cmd.ping 2/s over delay 5ms FOR user:bob", "SET LIMIT signup sliding = 6/60s", "SET LIMIT signup sliding = 50/60s FOR ann EX 1h",
        "SET LIMIT signup sliding = 51/60s FOR FOR", "BLOCK user:vip-1 EX 1h REASON scans the keys", "BLOCK user:vip-2",
    ):  # fmt: skip
        assert str(order(weir, *words.split())).split(",")[0] == "OK", words
    before = [rows(weir, ["DIFF"], "section", "what", "file"), rows(weir, ["BLOCKS"], "subject", "reason"), order(weir, "MODE")]
    left = [row["ends_in_ms"] for row in plain(order(weir, "BLOCKS"))]
    weir.upgrade()
    after = [rows(weir, ["DIFF"], "section", "what", "file"), rows(weir, ["BLOCKS"], "subject", "reason"), order(weir, "MODE")]
    assert [sorted(part) for part in after[:2]] + after[2:] == [sorted(part) for part in before[:2]] + before[2:]
    now = [row["ends_in_ms"] for row in plain(order(weir, "BLOCKS"))]
    assert -1 in now and max(left) - 60_000 < max(now) < max(left), "for the time that is left"
    with login(weir, "alice") as a, login(weir, "bob") as bob, login(weir, "vip-1") as blocked:
        assert (rate_of(a, "read"), rate_of(a, "write"), rate_of(bob, "write")) == ("7/d", "9/d", "4/d")
        assert "all" not in [row["what"] for row in rows_of_status(a)]
        assert blocked.call("GET", "k") == Error("NOPERM blocked by the operator: scans the keys")
    [signup] = [row for row in plain(order(weir, "LIST")) if row["limit"] == "signup"]
    assert signup["rate"] == "6/60s" and {row["key"]: row["rate"] for row in signup["overrides"]} == {"ann": "50/60s", "FOR": "51/60s"}
    weir.wait_for_log("upgrade: 11 operator settings taken over")
    assert any(event["text"] == "upgrade: 11 operator settings taken over" for event in plain(order(weir, "LOG", "50")))
    log = [event["text"] for event in plain(order(weir, "LOG", "50"))]
    for begin in (r"\[policy u\] write = 9/d for user:alice, ends in", r"\[limit Signup\] sliding = 50/60s for ann, ends in", "user:vip-1 is blocked for"):
        assert [text for text in log if re.match(begin + r" 3[56]\d\ds .*, by the previous process", text, re.I)], (begin, log)
    weir.upgrade()
    assert len(order(weir, "BLOCKS")) == 2, "and in the next"


def test_what_ends_meanwhile_and_afterwards(weir):
    assert order(weir, "BLOCK", "user:alice", "EX", "2s").startswith("OK")
    assert order(weir, "SET", "u", "read", "7/d", "FOR", "user:bob", "EX", "2s") == "OK"
    weir.upgrade()
    with login(weir, "alice") as a, login(weir, "bob") as bob:
        wait_until(lambda: order(weir, "BLOCKS") == [] and rate_of(bob, "read") == "5/d", "their time is over")
        assert a.call("GET", "k") is None


def test_what_the_new_file_does_not_bear_is_named(weir):
    assert order(weir, "SET", "u", "read", "7/d", "FOR", "user:alice", "EX", "1h") == "OK"
    assert order(weir, "SET", "u", "write", "4/d") == "OK"
    assert order(weir, "BLOCK", "user:bob").startswith("OK")
    weir.config.write_text(weir.config.read_text().replace("[policy u]", "[policy v]"))
    weir.upgrade()
    dropped = ["upgrade: dropped: LIMIT SET u write 4/d: no policy u", "upgrade: dropped: LIMIT SET u read 7/d FOR user:alice: no policy u"]
    texts = [event["text"] for event in plain(order(weir, "LOG", "50"))]
    for line in dropped:
        assert any(text.startswith(line) for text in texts), texts
        weir.wait_for_log(line)
    assert rows(weir, ["BLOCKS"], "subject") == [("user:bob",)]


def test_without_orders_nothing_is_said(weir):
    weir.upgrade()
    assert "orders of operators" not in weir.log() and "dropped" not in weir.log()
    assert order(weir, "DIFF") == []
