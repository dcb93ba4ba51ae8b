"""When a limit's rate changes, the debt of a subject stays the same number of units, at most the
new burst.
"""

import time

import pytest
from kit.harness import wait_until
from kit.limits import OPERATOR, limit_of, login, order, passed, plain, refusal, status
from kit.reloading import reload
from kit.resp import encode

FREE = "[policy free]\nmatch = user:*\nwrite = 1000/s\n" + OPERATOR
workers = pytest.mark.parametrize("n_workers", [1, 2])


def writes(conn, n):
    return passed(conn.ask(*["SET k v"] * n))


def give(weir, *words):
    assert order(weir, *words) == "OK", words


def rate(conn):
    return plain(status(conn))["rate"]


@workers
def test_a_short_override_locks_nobody_out(n_workers, farm, redis, users):
    """Three writes at 3/h for a moment, and then 1000/s again: the subject owes three of a
    thousand.
    """
    weir = farm.weir(redis, workers=n_workers, sections=FREE)
    with login(weir, "alice") as a, login(weir, "alice") as b, login(weir, "bob") as bob:
        give(weir, "SET", "free", "write", "3/h", "burst", "3", "FOR", "user:alice", "EX", "700ms")
        assert writes(a, 2) + writes(b, 2) == 3
        assert refusal(a.call("SET", "k", "v"))[1] > 1_000_000
        assert writes(bob, 100) == 100
        wait_until(lambda: rate(a) == "1000/s", "the override is over")
        assert writes(a, 400) == 400
        assert writes(b, 400) == 400


@workers
def test_a_subject_without_clients_is_not_locked_out(n_workers, farm, redis, users):
    """The subject's last client closed while the override was active. The debt drains at the
    present rate.
    """
    weir = farm.weir(redis, workers=n_workers, sections=FREE)
    give(weir, "SET", "free", "write", "3/h", "burst", "3", "FOR", "user:alice")
    with login(weir, "alice") as a:
        assert writes(a, 4) == 3
    give(weir, "SET", "free", "write", "2/d", "burst", "3", "FOR", "user:alice")
    give(weir, "UNSET", "free", "write", "FOR", "user:alice")
    with login(weir, "alice") as a:
        assert writes(a, 900) == 900


@workers
def test_a_lower_rate_holds_the_subject_back_for_its_burst(n_workers, farm, redis, users):
    """A thousand writes are owed; at 3/h that would take a fortnight."""
    weir = farm.weir(redis, workers=n_workers, sections=FREE.replace("1000/s", "1000/h"))
    with login(weir, "alice") as a:
        assert writes(a, 1100) == 1000
        give(weir, "SET", "free", "write", "3/h")
        assert 1_190_000 < refusal(a.call("SET", "k", "v"))[1] <= 1_200_000
        give(weir, "SET", "free", "write", "1000/h")
        assert writes(a, 1100) == 997, "to and fro: the burst grew by as many"


def test_a_debt_on_a_line_that_was_gone(farm, redis):
    weir = farm.weir(redis, workers=1, sections="[policy default]\nwrite = 10/h\n" + OPERATOR)
    with weir.connect() as a:
        assert writes(a, 8) == 8
        give(weir, "UNSET", "default", "write")
        assert writes(a, 20) == 20, "nothing binds it, and nothing is owed for it"
        give(weir, "SET", "default", "write", "100/d")
        assert writes(a, 200) == 92


@pytest.mark.parametrize("mode", ["enforce", "shadow"])
def test_a_debt_across_modes(mode, farm, redis):
    """Enforced or counted: the debt is the same, and a change of the mode alone does not change it.
    """
    weir = farm.weir(redis, workers=1, sections="[policy default]\nwrite = 10/h\n" + OPERATOR, mode=mode)
    with weir.connect() as a:
        assert writes(a, 4) == 4
        give(weir, "MODE", "shadow" if mode == "enforce" else "enforce")
        give(weir, "SET", "default", "write", "20/h")
        give(weir, "MODE", "enforce")
        assert writes(a, 20) == 16


@pytest.mark.parametrize("scope", ["subject", "connection", "policy"])
def test_every_scope(scope, farm, redis):
    line = "write = {}/h per " + scope
    weir = farm.weir(redis, workers=1, sections="[policy default]\n" + line.format(10))
    with weir.connect() as a:
        assert writes(a, 20) == 10
        assert reload(weir, "[policy default]\n" + line.format(100))
        wait_until(lambda: rate(a) == "100/h", "the new limit holds")
        assert writes(a, 200) == 90


def test_subjects_by_key(farm, redis):
    weir = farm.weir(redis, workers=1, sections="[policy default]\nwrite = 10/h\n" + OPERATOR, identity="key:1, ip")
    with weir.connect() as a:
        assert passed(a.ask(*["SET acme:1 v"] * 20)) == 10
        give(weir, "SET", "default", "write", "100/h", "FOR", "key:acme")
        assert passed(a.ask(*["SET acme:1 v"] * 200)) == 90
        assert passed(a.ask(*["SET other:1 v"] * 20)) == 10


def test_cost_and_several_limits(farm, redis):
    sections = "[cost]\nget = 3\n[policy default]\ncost = 30/h\nread = 100/h, 1000/d\n" + OPERATOR
    weir = farm.weir(redis, workers=2, sections=sections)
    with weir.connect() as a:
        assert passed(a.ask(*["GET k"] * 20)) == 10
        give(weir, "SET", "default", "cost", "60/h")
        give(weir, "SET", "default", "read", "14/h,", "1000/d")
        replies = a.ask(*["GET k"] * 20)
        assert passed(replies) == 4
        assert limit_of(replies[-1]) == "default/read"


def test_bytes_in_flight_stay_owed(farm, redis):
    weir = farm.weir(redis, workers=1, sections="[policy default]\nbytes-in = 10kb/h burst 1kb\n" + OPERATOR)
    with weir.connect() as a:
        assert a.call("SET", "k", "v" * 10_000) == "OK"
        give(weir, "SET", "default", "bytes-in", "1kb/h", "burst", "512")
        owed_ms = refusal(a.call("GET", "k"))[1]
        assert 30_000_000 < owed_ms < 36_000_000, "ten hours: 9 KB were in flight, and the burst"


@workers
def test_the_law_over_many_changes(n_workers, farm, redis):
    """Clients on all workers write while the rate goes up and down. The admitted total is bounded.
    """
    weir = farm.weir(redis, workers=n_workers, sections="[policy default]\nwrite = 100/s burst 20\n" + OPERATOR)
    conns = [weir.connect() for _ in range(4)]
    start = time.monotonic()
    n_passed, fast_s, since, fastest = 0, 0.0, start, True
    for i in range(12):
        n_passed += sum(writes(conn, 25) for conn in conns)
        before = time.monotonic()
        give(weir, "SET", "default", "write", *("1/h burst 20" if fastest else "100/s burst 20").split())
        now = time.monotonic()
        fast_s += (now if fastest else 0) - (since if fastest else 0)
        since, fastest = before, not fastest
    n_passed += sum(writes(conn, 25) for conn in conns)
    fast_s += time.monotonic() - since if fastest else 0
    assert n_passed <= 20 + 100 * fast_s + 12 + 1
    for conn in conns:
        conn.close()


# an admin command that ends the queue, its reverse, and how many writes have passed at the end
ENDS = {
    "refuse": ("SET free write 3/h burst 1", "", 3),
    "close": ("SET free write 3/h burst 1 over close", "", 3),
    "deny": ("SET free write deny", "", 3),
    "for": ("SET free write 3/h burst 1 FOR user:alice", "UNSET free write FOR user:alice", 3),
    "shadow": ("SET free write 3/h over shadow", "", 40),
    "mode": ("MODE shadow", "MODE enforce", 40),
    "unset": ("UNSET free write", "", 42),
}


@pytest.mark.parametrize("how", ENDS)
@workers
def test_a_queue_that_ends_leaves_what_has_left(n_workers, how, farm, redis, users):
    """Forty writes come and one runs. When the limit no longer delays, the subject owes that one,
    not forty.
    """
    weir = farm.weir(redis, workers=n_workers, sections=FREE.replace("1000/s", "3/h burst 1 over delay 20h"))
    conns = [login(weir, "alice") for _ in range(40)]
    first, then, n_in_all = ENDS[how]
    for conn in conns:
        conn.send(encode("RPUSH", "q", "1"))
    with login(weir, "alice") as a:
        wait_until(lambda: plain(status(a))["reset_after_ms"] > 38 * 1_200_000, "they wait")
    order(weir, *first.split())
    for conn in conns:
        conn.read()
        conn.close()
    if then:
        order(weir, *then.split())
    give(weir, "SET", "free", "write", "3/h", "burst", "3")
    with login(weir, "alice") as a, redis.connect() as direct:
        a.ask(*["RPUSH q 1"] * 5)
        assert 0 < refusal(a.call("RPUSH", "q", "1"))[1] <= 1_200_000
        assert direct.call("LLEN", "q") == n_in_all


@workers
def test_a_queue_whose_clients_have_gone_is_not_owed(n_workers, farm, redis, users):
    weir = farm.weir(redis, workers=n_workers, sections=FREE.replace("1000/s", "3/h burst 2 over delay 20h"))
    conns = [login(weir, "alice") for _ in range(20)]
    with login(weir, "alice") as a:
        for conn in conns:
            conn.send(encode("RPUSH", "q", "1"))
        wait_until(lambda: plain(status(a))["reset_after_ms"] > 18 * 1_200_000, "they wait")
        for conn in conns:
            conn.close()
        wait_until(lambda: plain(status(a))["reset_after_ms"] <= 2 * 1_200_000, "what has left is owed")
        assert plain(status(a))["reset_after_ms"] > 1_200_000
