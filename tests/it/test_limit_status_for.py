"""LIMIT STATUS and EXPLAIN ... FOR subjects that have never connected: which policy would bind
them.
"""

import pytest
from kit.limits import OPERATOR, login, operator, plain
from kit.resp import Error

POLICIES = """
[policy gold]
match = user:gold-*, ip:10.1.0.0/16
read = 9/d
inflight = 4
connections = 2 over close
all = 5/s per connection
write = 3/s per policy
[policy default]
read = 3/d
"""


def about(op, *words):
    return plain(op.call("LIMIT", *words))


@pytest.fixture
def op(farm, redis):
    with operator(farm.weir(redis, workers=1, sections=POLICIES + OPERATOR)) as conn:
        yield conn


@pytest.mark.parametrize("subject, policy", [("user:gold-1", "gold"), ("user:ann", "default"), ("ip:10.1.2.3", "gold"), ("ip:10.2.0.1", "default")])
def test_what_would_bind_them(op, subject, policy):
    said = about(op, "STATUS", "FOR", subject)
    assert (said["subject"], said["policy"]) == (subject, policy)
    rest = {row["limit"]: row["remaining"] for row in said["limits"]}
    assert rest == ({"gold/read": 9, "gold/inflight": 4, "gold/connections": 2, "gold/all": 5, "gold/write": 3} if policy == "gold" else {"default/read": 3})
    said = about(op, "EXPLAIN", "GET", "k", "FOR", subject)
    assert (said["subject"], said["policy"], said["verdict"]) == (subject, policy, "pass")
    assert about(op, "TOP") == [], "nobody has been made by asking"


def test_whom_nothing_would_bind(farm, redis):
    with operator(farm.weir(redis, workers=1, sections="[policy u]\nmatch = user:ann\nread = 1/d\n" + OPERATOR)) as op:
        wanted = {"subject": "user:bob", "policy": None, "mode": "enforce", "limits": [], "share_waits": 0}
        assert about(op, "STATUS", "FOR", "user:bob").items() >= wanted.items()
        assert about(op, "EXPLAIN", "GET", "k", "FOR", "user:bob")["verdict"] == "pass"


def test_who_has_come_is_told_as_it_stands(farm, redis, users):
    weir = farm.weir(redis, workers=1, sections="[policy u]\nmatch = user:*\nread = 5/d\n" + OPERATOR)
    with operator(weir) as op:
        assert about(op, "STATUS", "FOR", "user:alice")["limits"][0]["remaining"] == 5
        with login(weir, "alice") as alice:
            alice.ask("GET k", "GET k")
            assert about(op, "STATUS", "FOR", "user:alice")["limits"][0]["remaining"] == 3
        assert about(op, "STATUS", "FOR", "user:alice")["limits"][0]["remaining"] == 3


def test_keys(farm, redis):
    sections = "[policy acme]\nmatch = key:acme*\nread = 9/d\n[policy default]\nread = 3/d\n" + OPERATOR
    with operator(farm.weir(redis, workers=1, sections=sections, identity="key:1, ip")) as op:
        assert about(op, "STATUS", "FOR", "key:acme")["policy"] == "acme"
        assert about(op, "STATUS", "FOR", "key:other")["policy"] == "default"


@pytest.mark.parametrize("words", [["STATUS"], ["EXPLAIN", "GET", "k"]], ids=["status", "explain"])
def test_what_is_misspelt_is_told(op, words):
    for subject, error in (
        ("usr:gold-1", "ERR no such subject: usr:gold-1 (did you mean user:gold-1?)"),
        ("user", "ERR no such subject: user is not a valid name (did you mean user:...?)"),
        ("tenant:x", "ERR no such subject: tenant:x: write user:NAME, "),
        ("name:x", "ERR no such subject: name:x: identity in [weir] names no subject by name"),
    ):
        reply = op.call("LIMIT", *words, "FOR", subject)
        assert isinstance(reply, Error) and reply.startswith(error), reply
