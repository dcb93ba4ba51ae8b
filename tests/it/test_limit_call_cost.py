"""The cost of one LIMIT call, for the worst calls that words can make: Redis' time, memory, keys,
time to live.

Times are Redis' own (INFO commandstats), less the time that other processes took. The bounds are
many times the measured values: a busy machine does not fail the test, but a script that reads its
whole state does.
"""

import re
import time
from pathlib import Path

import pytest
from kit.decisions import decide, decision, fresh
from kit.resp import Error, encode

# a call takes 0.1 ms; one that writes or counts 10,000 units one by one takes more
MOST_US = 10_000
MOST_BYTES = 64 << 10
RATES = " ".join(f"10000/{100 + i}d" for i in range(8))
FULL = 10_000

CALLS = {
    "funnel": (f"LIMIT FUNNEL {{}} {' '.join(['9/d'] * 8)}", 9 * 86_400_000),
    "queue": ("LIMIT BUCKET {} 100/d BURST 10000 COST 10000 WAIT 0", 100 * 86_400_000),
    "throttle": ("CL.THROTTLE {} 8999 10 864 8000", 9000 * 86_400),
    "sliding": (f"LIMIT SLIDING {{}} {RATES} COST 10000", 107 * 86_400_000),
    "approx": (f"LIMIT SLIDING {{}} {' '.join(['9g/100d'] * 8)} COST 8999999999 APPROX", 200 * 86_400_000),
    "fixed": (f"LIMIT FIXED {{}} {' '.join(['9g/100d'] * 8)} COST 8999999999", 100 * 86_400_000),
    "calendar": (f"LIMIT FIXED {{}} {'9g/month 9g/week 9g/day 9/100d ' * 2} COST 9", 100 * 86_400_000),
    "warmup": ("LIMIT BUCKET {} 100/d BURST 1 COST 9000 BORROW WARMUP 1h", 91 * 86_400_000),
    "acquire": ("LIMIT ACQUIRE {} 10000 8640000000", 8_640_000_000),
}


@pytest.fixture
def conn(weir):
    with weir.connect() as conn:
        yield conn


class Meter:
    """The cost of commands on Redis' main thread from now on."""

    def __init__(self, redis):
        self.redis = redis
        redis.call("CONFIG", "RESETSTAT")
        self.begin_us = self._processor_us()

    def _processor_us(self):
        return int(Path(f"/proc/{self.redis.child.pid}/schedstat").read_text().split()[0]) / 1000

    def per_call(self, command):
        """Returns (calls, us per call). The time is by Redis' clock, but at most the processor time
        of Redis.
        """
        worked_us = self._processor_us() - self.begin_us
        text = self.redis.call("INFO", "commandstats").decode()
        found = re.search(rf"cmdstat_{command}:calls=(\d+),usec=(\d+)", text)
        return (int(found[1]), min(int(found[2]), worked_us) / int(found[1])) if found else (0, 0.0)


def fill(redis, key, spread_ms=10_000):
    """Fills the log with as many entries as possible, of one unit each."""
    now = int(time.time() * 1000)
    with redis.connect() as direct:
        for i in range(0, FULL, 1000):
            pairs = ((1000 * (now - spread_ms + spread_ms * j // FULL), "%016d+1" % (j + 1)) for j in range(i, i + 1000))
            direct.call("ZADD", key, *(part for pair in pairs for part in pair))
        direct.call("PEXPIRE", key, 100 * 86_400_000)


@pytest.mark.parametrize("name", CALLS)
def test_one_call_is_short_and_stores_little(conn, redis, name):
    """One small key, which expires with its longest window (two windows, where two are kept)."""
    command, lives_ms = CALLS[name]
    key = "k" * 1024
    conn.call("LIMIT", "RESET", key)
    conn.call(*command.format(fresh()).split())
    redis.forget_data()
    meter = Meter(redis)
    reply = conn.call(*command.format(key).split())
    assert reply[0] == 0, reply
    assert redis.call("DBSIZE") == 1
    (stored,) = redis.call("KEYS", "*")
    assert redis.call("MEMORY", "USAGE", stored, "SAMPLES", 0) < MOST_BYTES
    assert 0 < redis.call("PTTL", stored) <= lives_ms + 1
    calls, usec = meter.per_call("evalsha")
    assert calls == 1 and usec < MOST_US
    conn.call("LIMIT", "RESET", key)


@pytest.mark.parametrize("cost", [1, 37, 5000, 9999, 10_000])
def test_a_long_log(conn, redis, cost):
    """Decided by look-ups: calls that are refused, that pass, or that come when the log has
    expired.
    """
    key = fresh("long" + "x" * 200)  # denials of this key are not remembered
    fill(redis, f"limit:{key}")
    size = redis.call("MEMORY", "USAGE", f"limit:{key}", "SAMPLES", 0)
    meter = Meter(redis)
    for _ in range(20):
        found = decide(conn, f"LIMIT SLIDING {key} {RATES} COST {cost}")
        assert found[:3] == (1, 10_000, 0) and found.retry > 0
    redis.call("PEXPIRE", f"limit:{key}", 1000)  # the key forgets longer periods than the next ones
    for i in range(20):
        found = decide(conn, f"LIMIT SLIDING {key} {RATES.replace('10000/', '10000/1').replace('d', 'ms')} COST {1 + i % 2}")
        assert found.limited == 0
    calls, usec = meter.per_call("evalsha")
    assert calls == 40 and usec < MOST_US
    assert redis.call("ZCARD", f"limit:{key}") <= max(FULL + 20 - 20 * 100, 20), "a hundred at a time"
    assert redis.call("MEMORY", "USAGE", f"limit:{key}", "SAMPLES", 0) <= size + MOST_BYTES


def test_several_long_logs(conn, redis):
    """As many keys and rates as one call may have, with all logs full, or with room for one more
    call.
    """
    keys = [fresh(f"full{i}") for i in range(8)]
    for key in keys:
        fill(redis, f"limit:{key}", 86_400_000)
    call = "LIMIT ALL " + " AND ".join(f"SLIDING {key} 10000/{100 + i}d 10000/{200 + i}d COST {{}}" for i, key in enumerate(keys))
    for _ in range(20):
        meter = Meter(redis)
        assert conn.call(*call.format(*[4999] * 8).split())[0] == 1
        assert meter.per_call("evalsha")[1] < MOST_US
    meter = Meter(redis)
    assert conn.call(*call.format(*[7] * 8).split(), "FORCE")[0] == 0
    calls, usec = meter.per_call("evalsha")
    assert calls == 1 and usec < MOST_US


def test_many_holders_cost_no_more_than_few(conn, redis):
    """As many holders as possible, also after all have expired."""
    key = fresh("held")
    now = int(time.time() * 1000)
    with redis.connect() as direct:
        for over in (now + 8_640_000, now - 1000):
            direct.call("DEL", f"limit:{key}")
            for i in range(0, FULL, 1000):
                pairs = ((over, "h:%032d" % j) for j in range(i, i + 1000))
                direct.call("ZADD", f"limit:{key}", *(part for pair in pairs for part in pair))
            direct.call("PEXPIRE", f"limit:{key}", 9_000_000)
            meter = Meter(redis)
            for most in (1, 5000, 10_000):
                reply = conn.call("LIMIT", "ACQUIRE", key, most, 9000)
                assert reply[0] == (over > now), reply
            assert conn.call("LIMIT", "RELEASE", key, "%032d" % 7) == (over > now)
            calls, usec = meter.per_call("evalsha")
            assert calls == 4 and usec < MOST_US


def test_resets_are_done_behind(conn, redis):
    """UNLINK: Redis frees large values on a background thread."""
    keys = [fresh("gone") for _ in range(64)]
    for key in keys[:5]:
        fill(redis, f"limit:{key}")
    meter = Meter(redis)
    assert conn.call("LIMIT", "RESET", *keys) == 5
    assert meter.per_call("del")[0] == 0
    calls, usec = meter.per_call("unlink")
    assert calls == 1 and usec < MOST_US
    assert conn.call("LIMIT", "RESET", *keys, "one-more") == Error("ERR too many keys: at most 64")


@pytest.mark.parametrize("command", ["SLIDING {} " + RATES, "SLIDING {} 5/h", "FIXED {} " + "9/h " * 8, "SLIDING {} " + "9/h " * 8 + "APPROX",
                                     "FUNNEL {} " + "9/h " * 8, "ACQUIRE {} 5 9000"])  # fmt: skip
def test_a_batch_is_short(conn, redis, command):
    """Redis serves other clients between short batches, however many calls come at once."""
    keys = [fresh() for _ in range(400)]
    conn.ask(f"LIMIT {command.format(fresh())}")
    meter = Meter(redis)
    replies = conn.ask(*(f"LIMIT {command.format(key)}" for key in keys))
    assert all(reply[0] == 0 for reply in replies)
    calls, usec = meter.per_call("evalsha")
    assert calls >= 400 // 250 + 1 and usec < 3 * MOST_US
    assert redis.call("DBSIZE") == 401


def test_what_stalled_redis(conn, redis):
    """Too expensive calls get an error, decided from their words alone."""
    meter = Meter(redis)
    for command in ("LIMIT SLIDING x 1m/100d COST 1000000", "LIMIT SLIDING x 1/s COST 20000", "LIMIT SLIDING x 5/s 20000/d PEEK"):
        found = conn.ask(*[command] * 50)
        assert all(isinstance(reply, Error) and "APPROX" in reply for reply in found), found[0]
    assert meter.per_call("evalsha")[0] == 0
    assert decide(conn, "LIMIT SLIDING x 1m/100d COST 1000000 APPROX").limited == 0


def test_named_limits_are_bounded_too(farm, redis):
    weir = farm.weir(redis, workers=1, sections="[limit n]\nsliding = 10000/d\n")
    with weir.connect() as conn:
        assert conn.call("LIMIT", "CHECK", "n", "k", "COST", 10_001) == Error(
            "ERR COST of an exact sliding window is at most 10000: use APPROX for more"
        )
        assert decision(conn.call("LIMIT", "CHECK", "n", "k", "COST", 10_000)).limited == 0


def test_a_named_limit_that_is_too_long(farm, redis):
    """The error comes at the start, with file and line."""
    weir = farm.weir(redis, workers=1, wait=False, sections="[limit n]\nsliding = 5/s, 10001/d\n")
    assert weir.wait() == 1
    weir.wait_for_log("weir.conf:8: [limit n] sliding: an exact sliding window counts at most 10000 units")


def test_words_of_all_sizes(conn):
    """Long words cost no more than their bytes, and are never stored."""
    key = fresh()
    reply = conn.call("LIMIT", "RELEASE", key, "t" * 50_000)
    assert reply == 0
    conn.send(encode("LIMIT", "RENEW", key, "t" * 50_000, 1000))
    assert conn.read() == 0
