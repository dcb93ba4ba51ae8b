"""Shared parts of tests of LIMIT commands that Redis decides: replies in either protocol, fresh
keys, Redis' counts.
"""

import itertools
import os
import re
from collections import namedtuple

from kit.limits import plain
from kit.resp import Error

FIELDS = ["limited", "limit", "remaining", "retry_after_ms", "reset_after_ms"]
PLACE_FIELDS = ["limited", "token", "held", "max", "retry_after_ms"]
WRONGTYPE = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
UNAVAILABLE = Error("UPSTREAM unavailable")
NOAUTH = Error("NOAUTH Authentication required.")
SLACK_MS = 5000  # how long a call may take on a busy machine

Decision = namedtuple("Decision", "limited limit remaining retry reset")
Place = namedtuple("Place", "limited token held max retry")

numbers = itertools.count()


def fresh(name="key"):
    """Returns an unused key: workers remember denials for up to a second, also between tests."""
    return f"{name}-{os.getpid()}-{next(numbers)}"


def speaking(conn, protocol):
    conn.call("HELLO", protocol)
    return conn


def read_fields(reply, names, kind):
    if isinstance(reply, Error):
        return reply
    if isinstance(reply, dict):
        assert plain(list(reply)) == names
        reply = list(reply.values())
    return kind(*reply)


def decision(reply):
    """Returns an array or a map as a Decision; an error stays an error."""
    return read_fields(reply, FIELDS, Decision)


def place(reply):
    return read_fields(reply, PLACE_FIELDS, Place)


def decide(conn, command, *more):
    """Sends a decision command. `command` is a string of words; `more` are further arguments, sent
    unchanged.
    """
    return decision(conn.call(*command.split(), *more))


def decisions(conn, *commands):
    return [decision(reply) for reply in conn.ask(*commands)]


def admitted(found):
    """Returns how many calls were admitted; the rest must be denials, not errors."""
    assert all(type(one) is Decision for one in found), found
    return sum(one.limited == 0 for one in found)


def near(ms, wanted):
    """True if `ms` is a countdown that began at `wanted` a moment ago."""
    return wanted - SLACK_MS < ms <= wanted


def is_like(found, limited, limit, remaining, retry, reset):
    """Compares a decision. `retry` and `reset` are the values at the beginning of the call; -1 and
    0 are exact.
    """
    times = ((found.retry, retry), (found.reset, reset))
    exact = all(ms == wanted if wanted <= 0 else near(ms, wanted) and ms > 0 for ms, wanted in times)
    return found[:3] == (limited, limit, remaining) and exact


def script_calls(redis):
    """Returns the number of EVALSHA and EVAL calls up to now."""
    text = redis.call("INFO", "commandstats").decode()
    return sum(int(n) for n in re.findall(r"^cmdstat_(?:evalsha|eval):calls=(\d+)", text, re.M))


def clock_us(redis):
    seconds, us = redis.call("TIME")
    return int(seconds) * 1_000_000 + int(us)


def written(redis):
    """Returns the number of changes by commands, and the number of keys."""
    return int(redis.info("rdb_changes_since_last_save")), redis.call("DBSIZE")


def connections(redis):
    return len(redis.call("CLIENT", "LIST").splitlines())
