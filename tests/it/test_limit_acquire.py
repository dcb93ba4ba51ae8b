"""LIMIT ACQUIRE, RENEW, RELEASE: permits, clients that wait for permits, and holders that die or
close.
"""

import struct
import time

import pytest
from kit.decisions import connections, decide, fresh, place, script_calls
from kit.harness import MODES, wait_until
from kit.resp import Closed, encode, pipeline
from kit.server import at_least


def acquire(conn, key, most=1, ttl=100_000, wait=None):
    return place(conn.call("LIMIT", "ACQUIRE", key, most, ttl, *(["WAIT", wait] if wait is not None else [])))


def ask_and_wait(conn, redis, key, most=1, ttl=100_000, wait=100_000):
    """The client waits: weir has learnt that no permit is free, and listens for one."""
    asked = script_calls(redis)
    conn.send(pipeline(f"LIMIT ACQUIRE {key} {most} {ttl} WAIT {wait}"))
    wait_until(lambda: script_calls(redis) > asked and redis.waiting()[1] > 0, "it waits")


def release(conn, key, token):
    return conn.call("LIMIT", "RELEASE", key, token)


def test_acquire_gives_no_more_places_than_there_are(conn, protocol, redis):
    key = fresh()
    assert isinstance(conn.call("LIMIT", "ACQUIRE", fresh(), 1, 9000), dict if protocol == 3 else list)
    held = [acquire(conn, key, 3) for _ in range(3)]
    assert [(h.limited, h.held, h.max, h.retry) for h in held] == [(0, i, 3, -1) for i in (1, 2, 3)]
    assert len({h.token for h in held}) == 3 and all(len(h.token) == 32 for h in held)
    full = acquire(conn, key, 3)
    assert full[:4] == (1, None, 3, 3) and 90_000 < full.retry <= 100_001
    assert release(conn, key, held[1].token) == 1
    assert release(conn, key, held[1].token) == 0
    assert release(conn, key, "nobody") == 0
    assert acquire(conn, key, 3).held == 3
    assert acquire(conn, key, 4).held == 4, "max is each call's own"
    assert acquire(conn, key, 2)[:4] == (1, None, 4, 2)
    assert 90_000 < redis.call("PTTL", f"limit:{key}") <= 100_001
    assert conn.call("LIMIT", "RESET", key) == 1
    assert acquire(conn, key).held == 1


def test_time_of_holders(conn, redis):
    key = fresh()
    first, second = acquire(conn, key, 2, 60), acquire(conn, key, 2, 100_000)
    full = acquire(conn, key, 2)
    assert full.limited == 0 or 0 < full.retry <= 61, "rounded up"
    if full.limited:
        found = wait_until(lambda: (p := acquire(conn, key, 2)).limited == 0 and p, "its time is over")
        assert found.held == 2
    assert conn.call("LIMIT", "RENEW", key, first.token, 1000) == 0, "it holds no more"
    assert conn.call("LIMIT", "RENEW", key, second.token, 60) == 1
    wait_until(lambda: acquire(conn, key, 2).limited == 0, "the shorter time is over")
    assert conn.call("LIMIT", "RENEW", key, second.token, 1000) == 0
    assert conn.call("LIMIT", "RENEW", fresh(), "t", 1000) == 0 and conn.call("LIMIT", "RELEASE", fresh(), "t") == 0
    key = fresh()
    acquire(conn, key, 1, 20)
    wait_until(lambda: redis.call("EXISTS", f"limit:{key}") == 0, "the key ends with its last holder")


def test_members_scored_below_0_are_no_holders(conn, redis):
    """Foreign members of the key are not counted, make no client wait, and stay when holders
    expire.
    """
    key = fresh()
    first, second = acquire(conn, key, 2, 30), acquire(conn, key, 2)
    redis.call("ZADD", f"limit:{key}", -1, "other:1", -2, "other:2")
    wait_until(lambda: acquire(conn, key, 2).limited == 0, "the first one's time is over")
    full = acquire(conn, key, 2)
    assert full[:4] == (1, None, 2, 2) and 90_000 < full.retry <= 100_001
    assert release(conn, key, second.token) == 1
    members = redis.call("ZRANGE", f"limit:{key}", 0, -1)
    assert members[:2] == [b"other:2", b"other:1"] and len(members) == 3
    assert f"h:{first.token}".encode() not in members


def test_renewed_it_stays(conn):
    key = fresh()
    held = acquire(conn, key, 1, 5000)
    assert conn.call("LIMIT", "RENEW", key, held.token, 100_000) == 1
    assert acquire(conn, key).retry > 90_000


def test_wait_that_runs_out(conn):
    key = fresh()
    acquire(conn, key)
    started = time.monotonic()
    found = acquire(conn, key, wait=120)
    assert found[:4] == (1, None, 1, 1) and found.retry > 90_000
    assert 0.119 <= time.monotonic() - started < 5


def test_a_place_that_ends(conn, redis):
    """A permit of a dead holder expires: a waiting client gets the permit at once, without polling.
    """
    key, asked = fresh(), script_calls(redis)
    acquire(conn, key, 1, 150)
    started = time.monotonic()
    found = acquire(conn, key, 1, 1000, wait=10_000)
    assert (found.limited, found.held) == (0, 1) and time.monotonic() - started >= 0.1
    assert script_calls(redis) - asked <= 5


def test_a_release_wakes_who_waits(weir, conn, redis):
    key = fresh()
    held = acquire(conn, key)
    with weir.connect() as other:
        ask_and_wait(other, redis, key)
        assert not other.is_closed() and not other.buffer
        assert release(conn, key, held.token) == 1
        found = place(other.read())
        assert (found.limited, found.held, found.max, found.retry) == (0, 1, 1, -1)
        assert release(conn, key, held.token) == 0
        assert release(other, key, found.token) == 1
    assert redis.call("DBSIZE") == 0
    wait_until(lambda: redis.waiting()[1] == 0, "nobody listens any more")


def test_each_free_place_goes_to_one_waiter_on_any_weir(two_weirs, redis):
    """Each permit goes to one waiter, at whichever weir it waits. Each comes at once, though
    holders' times are long.
    """
    key = fresh()
    started = time.monotonic()
    with two_weirs[0].connect() as holder:
        held = [acquire(holder, key, 2) for _ in range(2)]
        waiting = []
        for i in range(10):
            conn = two_weirs[i % 2].connect()
            ask_and_wait(conn, redis, key, 2)
            waiting.append(conn)
        tokens = [h.token for h in held]
        seen = set(tokens)
        while waiting:
            for token in tokens:
                assert release(holder, key, token) == 1
            tokens = []
            wanted = min(2, len(waiting))
            while len(tokens) < wanted:
                conn = wait_until(lambda: next((c for c in waiting if has_more(c)), None), "one is woken")
                found = place(conn.read())
                assert found.limited == 0 and found.held <= 2 and found.token not in seen
                seen.add(found.token)
                tokens.append(found.token)
                waiting.remove(conn)
                conn.close()
            assert redis.call("ZCARD", f"limit:{key}") <= 2
    assert time.monotonic() - started < 60
    assert len(seen) == 12


def has_more(conn):
    conn.is_closed()
    return bool(conn.buffer)


def test_many_take_turns(two_weirs, redis):
    """Clients of two weirs release as soon as they acquire. No wake-up is lost, though no permit
    expires.
    """
    key, conns = fresh(), [two_weirs[i % 2].connect() for i in range(12)]
    rounds = 15
    left = {conn: rounds for conn in conns}
    for conn in conns:
        conn.send(pipeline(f"LIMIT ACQUIRE {key} 1 1000000 WAIT 1000000"))
    deadline = time.monotonic() + 30
    while any(left.values()):
        assert time.monotonic() < deadline, ("a wakeup was lost", left.values())
        for conn in [c for c in conns if left[c] and has_more(c)]:
            found = place(conn.read())
            assert (found.limited, found.held) == (0, 1)
            left[conn] -= 1
            again = [f"LIMIT ACQUIRE {key} 1 1000000 WAIT 1000000"] if left[conn] else []
            conn.send(pipeline(f"LIMIT RELEASE {key} {found.token.decode()}", *again))
            assert conn.read() == 1
    for conn in conns:
        conn.close()
    assert redis.call("EXISTS", f"limit:{key}") == 0


def test_the_subscription_is_lost(weir, conn, redis):
    """weir subscribes again: a waiting client learns of the next release."""
    key = fresh()
    held = acquire(conn, key)
    with weir.connect() as other:
        ask_and_wait(other, redis, key)
        assert redis.call("CLIENT", "KILL", "TYPE", "pubsub") >= 1
        wait_until(lambda: redis.waiting()[1] > 0, "it listens again")
        assert release(conn, key, held.token) == 1
        assert place(other.read()).limited == 0


def test_who_waits_leaves(weir, conn, redis):
    """A closed client takes no permit afterwards."""
    key = fresh()
    held = acquire(conn, key)
    before = connections(redis)
    for _ in range(3):
        other = weir.connect()
        ask_and_wait(other, redis, key)
        other.close()
        wait_until(lambda: redis.waiting()[1] == 0, "nobody listens any more")
    assert release(conn, key, held.token) == 1
    assert redis.call("EXISTS", f"limit:{key}") == 0
    assert acquire(conn, key).limited == 0
    assert connections(redis) <= before + 1


def test_it_leaves_while_it_is_asked(weir, redis):
    """The permit that Redis gives to a closed client is given back."""
    key = fresh()
    with redis.connect() as admin, weir.connect() as warm:
        decide(warm, f"LIMIT FUNNEL {fresh()} 1/ms")
        admin.call("CLIENT", "PAUSE", 20_000, "WRITE")
        try:
            conns = [weir.connect() for _ in range(5)]
            for conn in conns:
                conn.send(pipeline(f"LIMIT ACQUIRE {key} 3 1000000"))
            wait_until(lambda: redis.waiting()[0] > 0, "it is asked")
            for conn in conns:
                conn.sock.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER: a reset
                conn.close()
            wait_until(lambda: warm.call("PING") == "PONG", "weir goes on")
        finally:
            admin.call("CLIENT", "UNPAUSE")
        wait_until(lambda: redis.call("EXISTS", f"limit:{key}") == 0, "all are given back")


def test_a_place_is_given_back_though_redis_is_busy_with_a_script(farm):
    """Redis first answers -BUSY to the release."""
    redis = farm.redis("--busy-reply-threshold" if at_least(7) else "--lua-time-limit", "1")
    weir = farm.weir(redis, workers=1)
    with redis.connect() as admin, redis.connect() as busy, weir.connect() as warm, weir.connect() as conn:
        decide(warm, f"LIMIT FUNNEL {fresh()} 1/ms")
        admin.call("CLIENT", "PAUSE", 20_000, "WRITE")
        conn.send(pipeline("LIMIT ACQUIRE busy 3 1000000"))
        wait_until(lambda: redis.waiting()[0] > 0, "it is asked")
        conn.sock.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER: a reset
        conn.close()
        assert warm.call("PING") == "PONG"
        busy.send(encode("EVAL", "while true do end", 0))
        wait_until(lambda: redis.waiting()[0] > 1, "the script waits behind it")
        admin.send(encode("CLIENT", "UNPAUSE"))
        with redis.connect() as killer:
            wait_until(lambda: "BUSY" in str(killer.call("PING")), "the script runs")
            wait_until(lambda: "BUSY" in str(warm.call("LIMIT", "FUNNEL", fresh(), "1/ms")), "weir has heard so, too")
            assert killer.call("SCRIPT", "KILL") == "OK"
        wait_until(lambda: redis.call("EXISTS", "limit:busy") == 0, "it is given back")


def test_who_waits_asks_again_while_weir_may_not_subscribe(farm, redis):
    secret = redis.folder / "mute"
    secret.write_text("pw")
    secret.chmod(0o600)
    redis.call("ACL", "SETUSER", "mute", "on", ">pw", "~*", "&*", "+@all", "-subscribe")
    weir = farm.weir(redis, workers=1, upstream_user="mute", upstream_password_file=secret)
    key = fresh()
    with weir.connect() as conn, weir.connect() as other:
        token = acquire(conn, key).token
        other.send(pipeline(f"LIMIT ACQUIRE {key} 1 100000 WAIT 100000"))
        asked = script_calls(redis)
        wait_until(lambda: script_calls(redis) > asked + 1, "it asks from time to time")
        assert release(conn, key, token) == 1
        assert place(other.read()).limited == 0
        held = acquire(conn, key)
        assert held.limited == 1
        redis.call("ACL", "SETUSER", "mute", "+subscribe")
        other.send(pipeline(f"LIMIT ACQUIRE {key} 1 100000 WAIT 100000"))
        wait_until(lambda: redis.waiting()[1] > 0, "it listens once it may")
    redis.call("ACL", "DELUSER", "mute")


def test_a_client_with_places_leaves(weir, conn, redis):
    """A closed holder keeps its permit until it expires: weir cannot know what the holder still
    does.
    """
    key = fresh()
    with weir.connect() as other:
        acquire(other, key, 1, 300)
    assert acquire(conn, key).limited == 1
    assert acquire(conn, key, wait=10_000).limited == 0


def test_places_in_a_pipeline(conn):
    key = fresh()
    found = [place(reply) for reply in conn.ask(*[f"LIMIT ACQUIRE {key} 3 9000"] * 5)]
    assert [f.limited for f in found] == [0, 0, 0, 1, 1] and [f.held for f in found] == [1, 2, 3, 3, 3]
    assert conn.ask(*[("LIMIT", "RELEASE", key, f.token) for f in found[:3]]) == [1, 1, 1]


@pytest.mark.parametrize("mode", MODES[:2], ids=str)
def test_the_prefix_is_the_channels(farm, redis, mode):
    """Weirs with other prefixes do not receive each other's messages. ACQUIRE works on after a
    reload to another prefix.
    """
    weir = farm.weir(redis, workers=mode[0], lanes=mode[1], limit_prefix="a:")
    with weir.connect() as a, weir.connect() as b:
        held = acquire(a, "k")
        ask_and_wait(b, redis, "k")
        assert redis.call("PUBSUB", "CHANNELS") == [b"a:released"]
        assert release(a, "k", held.token) == 1
        assert place(b.read()).limited == 0


def test_quit_behind_an_acquire_is_answered_after_it(weir, redis):
    key = fresh()
    with weir.connect() as conn:
        conn.send(pipeline(f"LIMIT ACQUIRE {key} 1 100000", "QUIT"))
        assert place(conn.read()).limited == 0 and conn.read() == "OK"
        with pytest.raises(Closed):
            conn.read()
