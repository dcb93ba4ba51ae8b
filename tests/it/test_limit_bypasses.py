"""Ways in which a client may try to get more than its limit. None of them changes the count."""

import os
import subprocess
import time

import pytest
from kit.harness import wait_until
from kit.limits import EXECABORT, OPERATOR, limit_of, order, passed, plain, tallies
from kit.resp import Error, encode, pipeline
from kit.server import at_least


WRITES = "[policy default]\nwrite = 5/d\n" + OPERATOR


def written(redis, key="n"):
    return int(redis.call("GET", key) or 0)


# ---- reconnecting often ----


def test_reconnecting_refills_nothing(limited, redis):
    weir = limited(WRITES)
    for _ in range(15):
        with weir.connect() as a:
            a.call("INCR", "n")
    assert written(redis) == 5
    assert tallies(weir) == [("default/write", 5, 0, 10, 0)]


def test_many_connections_share_one_limit(limited, redis):
    weir = limited(WRITES)
    conns = [weir.connect() for _ in range(40)]
    for conn in conns:
        conn.send(encode("INCR", "n"))
    assert passed(conn.read() for conn in conns) == 5
    assert written(redis) == 5
    for conn in conns:
        conn.close()


def test_leaving_before_the_reply(limited, redis):
    weir = limited(WRITES)
    for _ in range(15):
        with weir.connect() as a:
            a.send(pipeline("INCR n"))
    wait_until(lambda: sum(tallies(weir)[0][1:]) == 15, "all were asked")
    assert tallies(weir)[0][1] == 5
    wait_until(lambda: written(redis) == 5, "those that passed are carried out")


# ---- spelling ----

SPELLINGS = [
    encode("incr", "n"),
    encode("INCR", "n"),
    encode("iNcR", "n"),
    b"incr n\r\n",
    b"INCR n\n",
    b'"incr" n\r\n',
    b"  'InCr'   n  \r\n",
    b'"\\x69ncr" n\r\n',
    encode("INCRBY", "n", 1),
]


def test_case_and_spelling(limited, redis):
    weir = limited("[policy default]\ncmd.incr = 1/d\ncmd.incrby = 1/d\nwrite = 2/d\n")
    with weir.connect() as a:
        replies = []
        for spelling in SPELLINGS * 2:
            a.send(spelling)
            replies.append(a.read())
        assert [reply for reply in replies if isinstance(reply, int)] == [1, 2]
    assert written(redis) == 2


@pytest.mark.parametrize("name", [b"INCR\0", b"INCR\0x", b" INCR", b"INCR ", b"\xffINCR", b"INCR|n", b"incr\r\n"])
def test_spellings_that_are_no_command(name, kept_limited, redis):
    weir = kept_limited("[policy default]\ncmd.incr = deny\n")
    with weir.connect() as a:
        for _ in range(3):
            assert a.call(name, "n").startswith("ERR unknown command")
    assert written(redis) == 0


@pytest.mark.parametrize("line", ["CONFIG GET save", "config get save", "CoNfIg  GeT save"])
def test_spellings_of_subcommands(line, kept_limited):
    weir = kept_limited("[policy default]\ncmd.config|get = deny\n")
    with weir.connect() as a:
        assert a.call(*line.split()) == Error("NOPERM denied by policy default")
        a.send(line.encode() + b"\r\n")
        assert a.read() == Error("NOPERM denied by policy default")
        for words in (["config|get", "save"], ["CONFIG|GET", "save"], ["config", "get\0", "save"], ["config", "get|x"]):
            kinds = ("ERR unknown",) if at_least(7, 0) else ("ERR unknown", "ERR Unknown subcommand")
            assert a.call(*words).startswith(kinds), words
        assert a.call("CONFIG", "RESETSTAT") == "OK"


def test_inline_and_multibulk_share(limited, redis):
    weir = limited(WRITES)
    with weir.connect() as a:
        a.send((b"INCR n\r\n" + encode("INCR", "n")) * 10)
        assert passed(a.read() for _ in range(20)) == 5
    assert written(redis) == 5


# ---- many at once ----


def test_a_pipeline_is_limited_command_by_command(limited, redis):
    weir = limited(WRITES)
    with weir.connect() as a:
        assert passed(a.ask(*["INCR n"] * 2000)) == 5
    assert written(redis) == 5


def test_a_refused_command_in_multi_voids_it_and_what_was_queued_is_charged(limited, redis):
    weir = limited(WRITES)
    with weir.connect() as a:
        assert a.ask("MULTI", *["INCR n"] * 4, "EXEC")[-1] == [1, 2, 3, 4]
        for _ in range(5):
            assert a.ask("MULTI", *["INCR n"] * 2, "EXEC")[-1] == EXECABORT
    assert written(redis) == 4
    assert tallies(weir)[0][1] == 5, "what was queued is charged"


def test_discarding_gives_nothing_back(limited, redis):
    weir = limited(WRITES)
    with weir.connect() as a:
        a.ask("MULTI", *["INCR n"] * 3, "DISCARD")
        a.ask("MULTI", *["INCR n"] * 2, "RESET")
        assert limit_of(a.call("INCR", "n")) == "default/write"
        a.ask("WATCH w")
        assert limit_of(a.call("INCR", "n")) == "default/write"


def test_refused_by_redis_is_charged(limited, redis):
    """Otherwise errors would give information without charge."""
    redis.call("SET", "text", "x")
    weir = limited(WRITES)
    with weir.connect() as a:
        replies = a.ask("INCR text", "INCR", "SET k", "LPUSH text x", "INCR text", "INCR text")
        assert passed(replies) == 5 and limit_of(replies[5])


def test_scripts_are_charged_their_cost(limited, redis):
    library = "#!lua name=lib\nredis.register_function('f', function(k) return redis.call('INCR', k[1]) end)"
    redis.call("FUNCTION", "LOAD", "REPLACE", library)
    sha = redis.call("SCRIPT", "LOAD", "return redis.call('INCR', KEYS[1])").decode()
    costs = "[cost]\n@scripting = 10\n[policy default]\ncost = 40/d\n"
    weir = limited(costs)
    calls = [["EVAL", "return redis.call('INCR', KEYS[1])", 1, "n"], ["EVALSHA", sha, 1, "n"], ["fcall", "f", 1, "n"]]
    if not at_least(7, 0):
        calls[2] = ["evalsha", sha, 1, "n"]
    with weir.connect() as a:
        replies = [a.call(*calls[i % 3]) for i in range(9)]
        assert replies[:4] == [1, 2, 3, 4]
        assert [limit_of(reply) for reply in replies[4:]] == ["default/cost"] * 5
        replies = a.ask("MULTI", "EVALSHA x 0", "EXEC")
        assert limit_of(replies[1]) == "default/cost" and replies[2] == EXECABORT
    assert written(redis) == 4


def test_scripts_that_are_denied_write_nothing(limited, redis):
    weir = limited("[policy default]\nwrite = 1/d\n@scripting = deny\n")
    with weir.connect() as a:
        scripts = [["EVAL", "return redis.call('INCR','n')", 0], ["evalsha", "x", 0]]
        if at_least(7, 0):
            scripts += [["eval_ro", "return 1", 0], ["FCALL", "f", 0]]
        for words in scripts:
            assert a.call(*words) == Error("NOPERM denied by policy default")
    assert written(redis) == 0


def test_blocking_commands_in_a_loop(limited, redis):
    redis.call("RPUSH", "l", *range(20))
    weir = limited("[policy default]\n@blocking = 5/d\ninflight = 1\n")
    with weir.connect() as a:
        one = "BLMPOP 0 1 l LEFT" if at_least(7, 0) else "BRPOPLPUSH l m 0"
        replies = a.ask(*["BLPOP l 0", one, "BLMOVE l m LEFT LEFT 0", "BRPOP l 1"] * 4)
        assert passed(replies) == 5
    assert redis.call("LLEN", "l") == 15


def test_blocking_and_leaving(limited, redis):
    weir = limited("[policy default]\n@blocking = 5/d\n" + OPERATOR)
    for _ in range(12):
        with weir.connect() as a:
            a.send(pipeline("BLPOP none 0"))
    wait_until(lambda: sum(tallies(weir)[0][1:]) == 12, "all were asked")
    assert tallies(weir)[0][1] == 5
    wait_until(lambda: not any(redis.waiting()), "nobody waits")


# ---- identity ----

POLICIES = "[policy users]\nmatch = user:*\nwrite = 5/d\n[policy default]\nwrite = 2/d\n" + OPERATOR


@pytest.mark.parametrize("auth", ["AUTH {0} pw", "HELLO 3 AUTH {0} pw", "HELLO 2 AUTH {0} pw SETNAME x"])
def test_switching_users_finds_each_limit_as_it_was_left(auth, limited, redis, users):
    """Each user has its own limit, which stays as the user left it."""
    weir = limited(POLICIES)
    with weir.connect() as a:
        count = passed(a.ask(*["INCR n"] * 3))
        for user in ("alice", "bob") * 5:
            a.call(*auth.format(user).split())
            count += passed(a.ask("INCR n", "INCR n"))
            a.call("RESET")
            count += passed(a.ask("INCR n"))
    assert count == written(redis) == 2 + 2 * 5


def test_switching_users_inside_multi(limited, redis, users):
    weir = limited(POLICIES)
    with weir.connect() as a:
        replies = a.ask("MULTI", "AUTH alice pw", "INCR n", "INCR n", "INCR n", "EXEC")
        assert limit_of(replies[4]) == "default/write" and replies[5] == EXECABORT
        assert a.ask("MULTI", "AUTH alice pw", "EXEC")[-1] == EXECABORT
        assert a.ask("MULTI", "CLIENT SETNAME me", "EXEC", "AUTH alice pw")[-1] == "OK"
        assert passed(a.ask(*["INCR n"] * 8)) == 5
    assert written(redis) == 5


def test_a_login_among_large_requests(limited, redis, users):
    """A login too long to be buffered must not go unseen."""
    weir = limited(POLICIES)
    with weir.connect() as a, weir.connect() as b:
        a.send(encode("HELLO", 3, "AUTH", "alice", "pw", "SETNAME", "x" * 200_000))
        a.send(encode("ACL", "WHOAMI"))
        first, who = a.read(), a.read()
        status = plain(a.call("LIMIT", "STATUS"))
        subject = status["subject"] if isinstance(status, dict) else status[1]
        assert (who == b"alice") == (subject == "user:alice"), first
        a.close()
        assert b.ask("MULTI", "ACL WHOAMI", "EXEC")[-1] == [b"default"]


def test_names_and_ids(limited, redis):
    weir = limited(WRITES)
    count = 0
    for i in range(10):
        with weir.connect() as a:
            a.ask(f"CLIENT SETNAME n{i}", "CLIENT ID", "CLIENT NO-EVICT ON", "SELECT 3", "SELECT 0", "CLIENT TRACKING ON")
            count += passed(a.ask("INCR n"))
    assert count == written(redis) == 5


def test_other_databases_and_protocols(limited, redis):
    weir = limited(WRITES)
    with weir.connect() as a:
        changes = ["SELECT 5", "HELLO 3", "SELECT 0", "RESET"]
        replies = a.ask("INCR n", *[word for change in changes for word in (change, "INCR n")], "INCR n")
        assert [limit_of(reply) for reply in replies] == [None] * 9 + ["default/write"]


def test_keys_of_another_tenant(limited, redis):
    """A client that is limited by keys gains nothing from another tenant's keys: it uses up the
    other tenant's limit. Keys do not prove an identity.
    """
    weir = limited("[policy default]\nwrite = 3/d\n", identity="key:1, ip")
    with weir.connect() as mine, weir.connect() as theirs:
        assert passed(mine.ask(*[f"INCR mine:{i}" for i in range(6)])) == 3
        assert passed(mine.ask(*["MSET mine:a 1 theirs:a 1"] * 3)) == 0, "the first key names the subject"
        assert passed(mine.ask("MSET theirs:a 1 mine:a 1", "INCR theirs:n")) == 2
        assert passed(theirs.ask("INCR theirs:n", "INCR theirs:n")) == 1
        for spelling in ("mine:", "mine", "mine::x", "mine:\0"):
            assert limit_of(mine.call("INCR", spelling)), spelling
        assert mine.call("INCR", ":mine") == 1, "the segment before the first colon is empty: another name"


# ---- unread replies ----


@pytest.mark.parametrize("before, after", [("CLIENT REPLY OFF", "CLIENT REPLY ON"), ("CLIENT REPLY SKIP", "PING")])
def test_commands_without_replies_are_limited_too(before, after, limited, redis):
    weir = limited(WRITES)
    with weir.connect() as a:
        commands = [before, *["INCR n"] * 10, after] if "OFF" in before else [before, "INCR n"] * 10 + [after]
        a.send(pipeline(*commands))
        assert a.read() == ("OK" if "OFF" in before else "PONG")
    assert written(redis) == 5
    assert tallies(weir) == [("default/write", 5, 0, 5, 0)]


def test_silent_logins_are_counted(limited, redis, users):
    weir = limited("[policy default]\nauth-failures = 3/d\n" + OPERATOR)
    with weir.connect() as a:
        a.send(pipeline("CLIENT REPLY OFF", *[f"AUTH alice x{i}" for i in range(10)]))
        assert a.read_to_end() == b""
    assert tallies(weir) == [("default/auth-failures", 3, 0, 1, 0)]


def test_reset_refills_nothing(limited, redis):
    weir = limited(WRITES)
    with weir.connect() as a:
        count = 0
        for _ in range(10):
            count += passed(a.ask("RESET", "INCR n", "SUBSCRIBE c", "RESET")[:2]) - 1
    assert count == written(redis) == 5


# ---- rates that change ----


def test_a_rate_changed_downwards_while_in_debt(limited, redis):
    """A debt is a number of units. A new rate lets nothing pass twice, except the units by which a
    larger burst exceeds a smaller one.
    """
    weir = limited("[policy default]\nwrite = 10/d\n" + OPERATOR)
    with weir.connect() as a:
        assert passed(a.ask(*["INCR n"] * 8)) == 8
        assert order(weir, "SET", "default", "write", "5/d") == "OK"
        assert passed(a.ask(*["INCR n"] * 5)) == 0, "it owes all five"
        assert order(weir, "SET", "default", "write", "2/d") == "OK"
        assert passed(a.ask(*["INCR n"] * 5)) == 0
        for rate in ("3/d burst 2", "1/d burst 2", "2/d"):
            assert order(weir, "SET", "default", "write", *rate.split()) == "OK"
        assert passed(a.ask(*["INCR n"] * 5)) == 0, "to and fro refills nothing"
        assert order(weir, "RELOAD") == "OK"
        assert passed(a.ask(*["INCR n"] * 10)) == 8, "two are owed of a burst of ten"
    assert written(redis) == 16


# ---- the clock ----

CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

/* The wall clock, and it alone, by as many seconds as the file says that $CLOCK_FILE names. */
static volatile long *offset(void)
{
    static volatile long *at;
    if (!at)
        at = mmap(NULL, sizeof *at, PROT_READ, MAP_SHARED, open(getenv("CLOCK_FILE"), O_RDONLY), 0);
    return at;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, t);
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
        t->tv_sec += *offset();
    return result;
}

time_t time(time_t *t)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t)
        *t = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


@pytest.fixture
def wall_clock(tmp_path, monkeypatch):
    """Sets the wall clock of processes that start from now on, in seconds from the real time."""
    (tmp_path / "clock.c").write_text(CLOCK)
    library, file = tmp_path / "clock.so", tmp_path / "offset"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, tmp_path / "clock.c", "-ldl"], check=True)

    def set_to(seconds):
        with open(file, "r+b" if file.exists() else "wb") as f:
            f.write(int(seconds).to_bytes(8, "little", signed=True))

    set_to(0)
    monkeypatch.setenv("CLOCK_FILE", str(file))
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("ASAN_OPTIONS", os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0")
    return set_to


@pytest.mark.parametrize("hours", [1, -1])
def test_the_wall_clock_is_set(hours, farm, redis, wall_clock):
    """Neither refused nor waiting commands are affected; only the times in the log are."""
    sections = "[policy default]\nread = 5/h\nwrite = 4/s over delay 5s\n" + OPERATOR
    weir = farm.weir(redis, workers=2, sections=sections)
    with weir.connect() as a, weir.connect() as b:
        assert passed(a.ask(*["GET k"] * 8)) == 5
        before = plain(order(weir, "STATUS", "FOR", "ip:127.0.0.1"))["limits"][0]["reset_after_ms"]
        start = time.monotonic()
        a.send(pipeline(*["INCR n"] * 4))
        assert a.read() == 1
        wall_clock(hours * 3600)
        assert passed(b.ask(*["GET k"] * 8)) == 0
        for i in range(3):
            assert a.read() == i + 2
            assert time.monotonic() >= start + (i + 1) * 0.25, "early"
        assert time.monotonic() - start < 0.75 + 3
        after = plain(order(weir, "STATUS", "FOR", "ip:127.0.0.1"))["limits"][0]["reset_after_ms"]
        assert before - 60_000 < after <= before
        order(weir, "SET", "default", "read", "5/h")
        event = plain(order(weir, "LOG", 1))[0]
        assert abs(event["unix_ms"] / 1000 - time.time() - hours * 3600) < 60, "the clock was set"
