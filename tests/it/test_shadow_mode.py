"""Shadow mode counts exactly what enforcement refuses, for the same traffic, and lets every command
pass.

Each case is played three times: enforced; in mode shadow; and with `over shadow` in its limits.
"""

import re

import pytest
from kit.harness import wait_until
from kit.limits import OPERATOR, TOO_MANY, operator, order, passed, plain, tallies
from kit.resp import Error, pipeline

MIX = ["SET k v", "GET k", "MGET a b c", "KEYS *", "LPUSH l v", "GET k", "PING", "EVAL return{} 0", "INCR n"] * 6

COMMAND_CASES = [
    "write = 3/d",
    "read = 2/d",
    "all = 10/d",
    "write = 3/d, 5/d",
    "read = 5/d\nwrite = 3/d\nall = 6/d",
    "cost = 20/d",
    "read = 4/d per connection\nall = 13/d per policy",
    "cmd.get = deny\nread = 5/d",
    "write = deny",
    "write = 2/d over delay 1s",
    "all = 7/d\nwrite = 2/d over delay 1s",
    "read = 3/d\n@string = 5/d\ncost = 30/d",
]
BYTE_CASES = ["bytes-in = 200/1000d", "bytes-out = 200/1000d"]
MIXED_CASES = ["write = 2/d\nbytes-in = 600/1000d", "read = 2/d\nbytes-out = 90/1000d"]


def as_map(value):
    return value if isinstance(value, dict) else dict(zip(value[::2], value[1::2]))


def in_shadow(lines):
    """Returns the same limits with `over shadow`. deny has no such form, and delay has another
    burst.
    """
    return re.sub(r"(/\d*d(?: per \w+)?)", r"\1 over shadow", lines)


def mix_for(lines):
    """Leaves out PING where bytes are limited: a command that is never refused would wait for its
    bytes until tomorrow.
    """
    return [command for command in MIX if command != "PING" or "bytes" not in lines]


def play(farm, redis, lines, **settings):
    """Returns what the limits count for the mix on two connections, one command after another; and
    the replies.
    """
    redis.forget_data()
    sections = f"[cost]\nmget = 1 per key\nkeys = 5\n[policy default]\n{lines}\n" + OPERATOR
    weir = farm.weir(redis, workers=1, sections=sections, **settings)
    with weir.connect() as a, weir.connect() as b:
        replies = [(a, b)[i % 3 == 0].call(*command.split()) for i, command in enumerate(mix_for(lines))]
    counts = tallies(weir)
    weir.stop()
    return counts, replies


def but_bytes(label, n):
    """Leaves out counts of bytes: in shadow mode more bytes pass, and all of them are counted."""
    return None if "/bytes" in label else n


def refused_of(counts):
    return [(label, but_bytes(label, admitted), delayed, refused) for label, admitted, delayed, refused, _ in counts]


def shadowed_of(counts):
    assert all(refused == 0 for _, _, _, refused, _ in counts)
    return [(label, but_bytes(label, admitted), delayed, shadowed) for label, admitted, delayed, _, shadowed in counts]


@pytest.mark.parametrize("lines", COMMAND_CASES + BYTE_CASES + MIXED_CASES)
def test_mode_shadow_counts_as_enforcement(lines, farm, redis):
    enforced, replies = play(farm, redis, lines)
    assert any(refused for *_, refused in refused_of(enforced))
    shadow, all_replies = play(farm, redis, lines, mode="shadow")
    assert passed(all_replies) == len(mix_for(lines))
    assert not [reply for reply in all_replies if isinstance(reply, Error)]
    assert shadowed_of(shadow) == refused_of(enforced)


@pytest.mark.parametrize("lines", [c for c in COMMAND_CASES if "deny" not in c and "delay" not in c] + BYTE_CASES)
def test_over_shadow_counts_as_enforcement(lines, farm, redis):
    enforced, _ = play(farm, redis, lines)
    shadow, all_replies = play(farm, redis, in_shadow(lines))
    assert passed(all_replies) == len(mix_for(lines))
    assert shadowed_of(shadow) == refused_of(enforced)


# ---- delays ----

DELAY_CASES = {
    "delay": "read = 4/s over delay 2500ms",
    "delay, a burst": "all = 4/s burst 5 over delay 25s",
    "too short a wait": "read = 4/s burst 3 over delay 10ms\nwrite = 5/d",
    "cost": "cost = 4/s over delay 5s\n@string = deny",
    "beside refuse": "read = 4/s over delay 5s\nall = 6/s burst 12",
    "beside close": "read = 4/s over delay 2500ms\ncmd.set = 5/d over close",
    "bytes": "bytes-in = 200/s burst 1 over delay 2s",
}
ARRIVALS = ["GET k"] * 8 + ["GET k", "SET k v", "MGET a b", "GET k"] * 3 + ["LPUSH l v"] * 2


def play_at_once(farm, redis, lines, mode, by):
    redis.forget_data()
    weir = farm.weir(redis, workers=1, sections=f"[policy default]\n{lines}\n" + OPERATOR, mode=mode)
    with weir.connect() as a:
        if by == "a pipeline":
            replies = a.ask(*ARRIVALS)
        else:
            replies = [a.call(*command.split()) for command in ARRIVALS]
    counts = tallies(weir)
    weir.stop()
    return counts, replies


@pytest.mark.parametrize("lines", DELAY_CASES.values(), ids=DELAY_CASES)
def test_delays_are_counted_as_enforcement(lines, farm, redis):
    """Nothing waits, so the client sends earlier than under enforcement. Each command is decided at
    the time when the delayed commands before it would have run.
    """
    enforced, _ = play_at_once(farm, redis, lines, "enforce", "a pipeline")
    assert any(delayed + refused for _, _, delayed, refused, _ in enforced)
    shadow, replies = play_at_once(farm, redis, lines, "shadow", "a pipeline")
    assert not [reply for reply in replies if isinstance(reply, Error)]
    assert shadowed_of(shadow) == refused_of(enforced)


@pytest.mark.parametrize("lines", ["read = 2/s over delay 10s", "cost = 4/s burst 2 over delay 20s"])
def test_commands_one_by_one_are_delayed_as_a_pipeline(lines, farm, redis):
    """Single commands come before the earlier ones would have run, so the counts are those of a
    pipeline.
    """
    at_once, _ = play_at_once(farm, redis, lines, "shadow", "a pipeline")
    one_by_one, _ = play_at_once(farm, redis, lines, "shadow", "one after the other")
    assert one_by_one == at_once
    assert at_once[0][2] > 10 and at_once[0][4] == 0


def test_a_slow_client_s_flood_would_be_delayed_not_refused(farm, redis):
    sections = "[policy default]\nread = 20/s over delay 1s\n" + OPERATOR
    weir = farm.weir(redis, workers=1, sections=sections, mode="shadow")
    with weir.connect() as a:
        for _ in range(200):
            assert a.call("GET", "k") is None
        assert tallies(weir) == [("default/read", 200, 199, 0, 0)]
        wait_until(lambda: "limit default/read would begin to delay: " in weir.log(), "it is told")
        explained = as_map(plain(a.call("LIMIT", "EXPLAIN", "GET", "k")))
        assert (explained["mode"], explained["limit"]) == ("shadow", "default/read")
        assert explained["verdict"] in ("delay", "refuse")
    assert "refuse" not in weir.log()
    with operator(weir) as conn:
        info = plain(conn.call("INFO", "limits"))
    assert "would delay" in info and "0 of 1 would refuse, mode = shadow" in info
    assert not re.search(r"\brefuses?\b", info.split("\n", 1)[1]), info


@pytest.mark.parametrize(
    "limit, verdict",
    [("1/h", "refuse"), ("1/h over close", "close"), ("1/m over delay 1h", "delay"), ("deny", "deny")],
)
def test_explain_tells_what_would_be(limit, verdict, farm, redis):
    verdicts = {}
    for mode in ("enforce", "shadow"):
        weir = farm.weir(redis, workers=1, sections=f"[policy default]\nread = {limit}\n" + OPERATOR, mode=mode)
        with weir.connect() as a:
            a.call("GET", "k")
            explained = as_map(plain(a.call("LIMIT", "EXPLAIN", "GET", "k")))
        verdicts[mode] = [explained[field] for field in ("verdict", "limit")]
        assert -1 <= explained["wait_ms"] <= 3_600_000
        weir.stop()
    assert verdicts == {"enforce": [verdict, "default/read"], "shadow": [verdict, "default/read"]}


def test_explain_of_one_limit_in_shadow(farm, redis):
    weir = farm.weir(redis, workers=1, sections="[policy default]\nread = 1/h over shadow\n" + OPERATOR)
    with weir.connect() as a:
        a.ask("GET k", "GET k")
        assert as_map(plain(a.call("LIMIT", "EXPLAIN", "GET", "k")))["verdict"] == "pass"


def test_one_limit_in_shadow_beside_others(farm, redis):
    """The shadow limit counts only commands that the other limits let pass."""
    counts, replies = play(farm, redis, "write = 4/d over shadow\nall = 10/d\n")
    assert passed(reply for reply, command in zip(replies, MIX) if command != "PING") == 10
    # The first ten are SET GET MGET KEYS LPUSH GET EVAL INCR SET GET.
    assert counts == [("default/write", 4, 0, 0, 0), ("default/all", 10, 0, len(MIX) - 6 - 10, 0)]
    counts, _ = play(farm, redis, "write = 2/d over shadow\nall = 10/d\n")
    assert counts[0] == ("default/write", 2, 0, 0, 2)


def connect_all(weir, users):
    """Five clients log in and stay connected. Returns how many are accepted."""
    conns, welcome = [], 0
    for user in users:
        conn = weir.connect()
        conns.append(conn)
        welcome += conn.call("AUTH", user, "pw") != TOO_MANY
    for conn in conns:
        conn.close()
    return welcome


@pytest.mark.parametrize(
    "lines", ["connections = 2", "connections = 3 per policy", "connects = 2/d", "connects = 3/d per policy"]
)
def test_connections_in_shadow_count_as_if_enforced(lines, farm, redis, users):
    logins = ["alice", "alice", "bob", "alice", "bob", "bob"]
    counts = {}
    for mode, text in (("enforce", lines), ("shadow", lines), ("enforce", lines + " over shadow")):
        sections = f"[policy users]\nmatch = user:*\n{text}\n" + OPERATOR
        weir = farm.weir(redis, workers=1, sections=sections, mode=mode)
        welcome = connect_all(weir, logins)
        counts[mode, text], = tallies(weir)
        weir.stop()
        assert welcome == len(logins) - counts[mode, text][3]
    first, *others = counts.values()
    assert first[3] > 0
    assert [(c[1], c[3], c[4]) for c in others] == [(first[1], 0, first[3])] * 2


def test_calls_in_flight(farm, redis):
    """Redis delays ten calls; three are within the limit."""
    for mode, text, wanted in (
        ("enforce", "3", (3, 7, 0)),
        ("shadow", "3", (3, 0, 7)),
        ("enforce", "3 over shadow", (3, 0, 7)),
    ):
        weir = farm.weir(redis, workers=1, mode=mode, sections=f"[policy default]\ninflight = {text}\n" + OPERATOR)
        with weir.connect() as a, redis.connect() as direct:
            for _ in range(2):  # the permits are free again
                before = tallies(weir)[0]
                direct.call("CLIENT", "PAUSE", 60_000, "WRITE")
                a.send(pipeline(*["SET k v"] * 10))
                while sum(tallies(weir)[0][1:]) < sum(before[1:]) + 10:
                    pass
                direct.call("CLIENT", "UNPAUSE")
                replies = [a.read() for _ in range(10)]
                assert passed(replies) == 10 - wanted[1]
                admitted, _, refused, shadowed = (x - y for x, y in zip(tallies(weir)[0][1:], before[1:]))
                assert (admitted, refused, shadowed) == wanted


def test_failed_logins_in_shadow_count_as_if_enforced(farm, redis, users):
    for mode, text, wanted in (
        ("enforce", "3/d", (3, 3, 0)),
        ("shadow", "3/d", (6, 0, 3)),  # these logins fail, and count
        ("enforce", "3/d over shadow", (6, 0, 3)),
    ):
        weir = farm.weir(redis, workers=1, mode=mode, sections=f"[policy default]\nauth-failures = {text}\n" + OPERATOR)
        for _ in range(6):
            with weir.connect() as a:
                a.send(pipeline("SET k v", "BLPOP none 0.01", "AUTH alice wrong"))
                assert [a.read(), a.read()] == ["OK", None]
                assert isinstance(a.read(), Error)
        _, admitted, _, refused, shadowed = tallies(weir)[0]
        assert (admitted, refused, shadowed) == wanted, (mode, text)


def test_close_in_shadow_closes_nobody(farm, redis):
    weir = farm.weir(redis, mode="shadow", sections="[policy default]\nwrite = 1/d over close\n" + OPERATOR)
    with weir.connect() as a:
        assert a.ask(*["SET k v"] * 5, "PING") == ["OK"] * 5 + ["PONG"]
    assert tallies(weir) == [("default/write", 1, 0, 0, 4)]


def test_from_shadow_to_enforcing_and_back(farm, redis):
    """Debts from shadow mode bind when enforcement begins: shadow mode counts as enforcement would.
    """
    weir = farm.weir(redis, mode="shadow", sections="[policy default]\nwrite = 3/d\n" + OPERATOR)
    with weir.connect() as a:
        assert a.ask(*["SET k v"] * 5) == ["OK"] * 5
        assert order(weir, "MODE") == b"shadow"
        assert order(weir, "MODE", "enforce") == "OK"
        assert passed(a.ask(*["SET k v"] * 2)) == 0
        assert order(weir, "MODE", "SHADOW") == "OK"
        assert passed(a.ask(*["SET k v"] * 2)) == 2
        assert order(weir, "MODE", "reality").startswith("ERR")
        assert order(weir, "MODE") == b"shadow"
    assert tallies(weir) == [("default/write", 3, 0, 2, 4)]
