"""The names of subjects in the log and in LIMIT LOG: subjects that limits stop, targets and senders
of admin commands, and counts.
"""

import re

import pytest
from kit.harness import wait_until
from kit.limits import OPERATOR, login, operator, order, plain
from kit.resp import Closed, Error

CAPTURED = r"limit %s %s: \d+ \w+ so far, of (.*)"


def said(weir, pattern):
    """Returns the first line of the log that matches."""
    return wait_until(lambda: re.search(pattern + "$", weir.log(), re.M), pattern)[1]


def events(weir, kind):
    return [plain(event) for event in order(weir, "LOG", 300) if plain(event)["kind"] == kind]


@pytest.fixture
def weir_of(farm, redis, users):
    def start(lines, **settings):
        return farm.weir(redis, sections=lines + OPERATOR, **settings)

    return start


def test_whom_a_limit_refuses(weir_of):
    weir = weir_of("[policy free]\nmatch = user:*\nread = 1/d\n")
    with login(weir, "alice") as alice, login(weir, "bob") as bob:
        for conn in (alice, bob):
            conn.ask("GET k", "GET k", "GET k")
    whom = said(weir, CAPTURED % ("free/read", "begins to refuse"))
    if "subjects" not in whom:  # one of the subjects came just after the line
        assert whom in ("user:alice", "user:bob")
    else:
        assert set(re.fullmatch("2 subjects: (.*), (.*)", whom).groups()) == {"user:alice", "user:bob"}
    assert "alice" in str(events(weir, "refused")) or "bob" in str(events(weir, "refused"))


def test_whom_it_delays(weir_of):
    weir = weir_of("[policy free]\nmatch = user:*\nread = 10/s over delay 10s\n")
    with login(weir, "alice") as conn:
        conn.ask("GET k", "GET k", "GET k")
    assert said(weir, CAPTURED % ("free/read", "begins to delay")) == "user:alice"


@pytest.mark.parametrize("line, mode", [("read = 1/d over shadow", "enforce"), ("read = 1/d", "shadow")])
def test_whom_it_would_refuse(line, mode, weir_of):
    weir = weir_of(f"[policy free]\nmatch = user:*\n{line}\n", mode=mode)
    with login(weir, "alice") as conn:
        conn.ask("GET k", "GET k", "GET k")
    assert said(weir, CAPTURED % ("free/read", "would begin to refuse")) == "user:alice"


def test_whom_keys_name(weir_of):
    weir = weir_of("[policy default]\nread = 1/d\n", identity="key:1, ip")
    with weir.connect() as conn:
        for tenant in ("acme", "b%c\x1b[2J", "long" * 30):
            conn.ask(*[["GET", tenant + ":1"]] * 2)
    whom = said(weir, CAPTURED % ("default/read", "begins to refuse"))
    names = re.fullmatch("3 subjects: (.*)", whom)[1].split(", ")
    assert names[:2] == ["key:acme", "key:b%25c%1B[2J"]
    assert names[2].endswith("...") and len(names[2]) == 48 and names[2].startswith("key:longlong")


def test_who_may_not_connect(weir_of):
    weir = weir_of("[policy default]\nconnects = 1/d\n", workers=1)
    with weir.connect() as first:
        assert first.call("PING") == "PONG"
        with weir.connect() as conn:
            with pytest.raises((Closed, AssertionError)):
                assert conn.call("PING") == "PONG"
    assert said(weir, CAPTURED % ("default/connects", "begins to refuse")) == "ip:127.0.0.1 (clients get: max number of clients reached)"
    assert plain(order(weir, "EXPLAIN", "GET", "k", "FOR", "ip:127.0.0.1"))["connect_refused_by"] == "default/connects"
    assert "default/connects" in events(weir, "refused")[0]["text"]


# ---- admin commands ----


def test_orders_say_by_whom(weir_of):
    weir = weir_of("[policy ops]\nmatch = user:alice\nadmin = yes\n[policy free]\nmatch = user:bob\nread = 1/d\n")
    with login(weir, "bob") as bob:
        bob.ask("GET k", "GET k")
        with login(weir, "alice") as alice:
            assert alice.call("LIMIT", "FORGIVE", "user:bob") == 1
            assert alice.call("LIMIT", "SET", "free", "read", "2/d") == "OK"
            assert alice.call("LIMIT", "UNSET", "free", "read") == "OK"
            by = f"by {alice.name} user:alice"
    assert order(weir, "MODE", "shadow") == "OK"
    assert order(weir, "FORGIVE", "user:nobody") == 0
    assert order(weir, "RELOAD") == "OK"
    socket = "by the operators' socket"
    for kind, text in [
        ("set", f"[policy free] read = 2/d (before: 1/d), {by}"),
        ("unset", f"[policy free] read removed (before: 2/d; now: none), {by}"),
        ("mode", f"mode = shadow, {socket}"),
        ("reload", f"configuration reloaded from {weir.config}, {socket}"),
    ]:
        assert text in [event["text"] for event in events(weir, kind)]
        weir.wait_for_log(text)
    forgiven = [f"forgiven: user:bob (1 subject), {by}", f"forgiven: user:nobody (0 subjects), {socket}"]
    assert [event["text"] for event in events(weir, "forgive")] == forgiven[::-1]
    for text in forgiven:
        weir.wait_for_log(text)


def test_what_an_operator_types_forges_no_line(weir_of):
    weir = weir_of("")
    said = order(weir, "FORGIVE", "x\nforged line \x1b[2J" + "y" * 1000)
    assert isinstance(said, Error) and "\n" not in said and len(said) < 300
    assert "forged" not in weir.log()
    assert order(weir, "FORGIVE", "user:" + "y" * 200) == 0
    assert len(events(weir, "forgive")[0]["text"]) < 200


def test_a_name_that_nobody_has(weir_of):
    weir = weir_of("", identity="user, ip")
    assert "did you mean user:ann" in order(weir, "FORGIVE", "usr:ann")
    assert isinstance(order(weir, "FORGIVE", "ann"), Error)
    assert not events(weir, "forgive")
    assert order(weir, "FORGIVE", "user:ann") == 0


# ---- the journal ----


def test_repeats_are_one_entry_and_push_nothing_out(weir_of):
    weir = weir_of("[policy free]\nmatch = user:*\nread = 1/d\n")
    assert order(weir, "SET", "free", "write", "5/d") == "OK"
    with operator(weir) as conn:
        for _ in range(3):
            assert conn.call("LIMIT", "FORGIVE", "user:x") == 0
        for i in range(200):
            assert conn.call("LIMIT", "MODE", ("shadow", "enforce")[i % 2]) == "OK"
    (forgiven,) = events(weir, "forgive")
    assert forgiven["count"] == 3
    assert forgiven["first_unix_ms"] <= forgiven["unix_ms"]
    assert [event["count"] for event in events(weir, "mode")] == [100, 100]
    assert [event["text"] for event in events(weir, "set")], "it is still there"
