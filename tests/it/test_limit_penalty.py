"""Penalties and bans: the scripts against an exact model under a clock that the test sets, then end
to end.
"""

import random

import pytest
from kit.decisions import UNAVAILABLE, WRONGTYPE, admitted, decide, decisions, fresh, near, script_calls, written
from kit.limits import operator, order, plain
from kit.resp import Error
from test_limit_options import Model
from test_limit_scripts import NOW, Scripts

MS, S, MINUTE, HOUR = 1000, 10**6, 60 * 10**6, 3600 * 10**6  # us
LETTERS = {"funnel": "f", "sliding": "z", "approx": "a", "fixed": "w", "first": "w"}


def script_of(name):
    return "fixed" if name == "first" else name


class Scripted(Scripts):
    """Calls scripts with any word for `how`, and keeps keys that have expired by Redis' own clock.
    """

    def __init__(self, redis):
        super().__init__(redis)
        self.shas["ban"] = self.conn.call("SCRIPT", "LOAD", source_of("ban"))

    def kept(self, name, key, params, now, how="0", each=()):
        call = list(self.command(script_of(name), [key], params, each, now))
        call[call.index(now) + 1] = how
        reply = self.conn.ask(("MULTI",), tuple(call), ("PERSIST", key), ("EXEC",))[-1][0]
        assert not isinstance(reply, Error), reply
        return reply

    def ban(self, name, key, now, ms=None):
        """ms None: UNBAN."""
        word = "unban" if ms is None else "ban"
        return self.kept("ban", key, [word, ord(LETTERS[name]), ms or 0, ""], now)[0]


def source_of(name):
    from test_limit_scripts import source

    return source(name)


@pytest.fixture
def scripts(redis):
    return Scripted(redis)


def told(first):
    """Returns the first number of a reply, the remaining us and the granted calls: None, None
    without a penalty.
    """
    return tuple(map(int, first.split())) if isinstance(first, bytes) else (first, None, None)


class Penalised:
    """A model of one key and its penalties, in us."""

    def __init__(self, model):
        self.model, self.till, self.length, self.last, self.rest = model, 0, 0, 0, 0

    def left(self, now):
        self.till = min(self.till, now + self.length)  # the clock went back
        return max(0, self.till - now)

    def call(self, how, first, longest, cost, n, now):
        """Returns (used before, granted, remaining us of a penalty)."""
        left = self.left(now)
        if left and "f" not in how:
            tries = n * int(how.partition("x")[2] or 1)
            before = self.model.used(now)
            if "a" in how and how[0] == "0":
                self.model_refuses(tries, cost, now)
            return before, 0, left
        before, granted = self.model.call(how, cost, n, now)
        times = int(how.partition("x")[2] or 1)
        if first and how[0] == "0" and not left and granted <= n * times - times:
            self.begin(first, longest, now)
        return before, granted, self.left(now)

    def model_refuses(self, tries, cost, now):
        """Refused tries count, though there may be room."""
        model, unit = self.model, self.model.interval if self.model.name == "funnel" else 1
        used, most = model.used(now), model.count * unit
        more = tries * min(cost, model.count) * unit
        after = used + more if model.name == "sliding" else max(used, min(used + tries * cost * unit, most))
        model.debt = after
        if model.name != "funnel":
            model.add(now, after - used)

    def begin(self, first, longest, now):
        known = self.last if now < self.till + self.rest else 0
        length = min(max(2 * known, first), longest)
        if longest > first:
            self.last, self.rest = length, longest
        else:
            self.last, self.rest = known, self.rest if known else 0
        self.till, self.length = now + length, length

    def ban(self, length, now):
        if now >= self.till + self.rest:
            self.last = self.rest = 0
        self.till, self.length = now + length, length

    def unban(self, now):
        was = self.left(now) > 0
        self.till = self.length = self.last = self.rest = 0
        return int(was)


@pytest.mark.parametrize("name", ["funnel", "sliding", "fixed", "first"])
def test_scripts_do_what_the_model_does(scripts, name):
    """No call passes beyond the limit, and every penalty is exact to the us, in any sequence of
    calls.
    """
    met = 0
    for seed in range(40):
        rng = random.Random(f"penalty {name} {seed}")
        scripts.conn.call("DEL", "k")
        model = Penalised(Model(name, rng.randint(1, 5), rng.choice([1000, 50_000, 60_000_000])))
        period, now = model.model.period, NOW + rng.randrange(10**9)
        ends = [0]
        for step in range(60):
            story = (seed, step, now)
            if rng.random() < 0.06:
                ms = rng.choice([1, 7, period // MS, 5 * period // MS])
                assert scripts.ban(name, "k", now, ms) == 1
                model.ban(ms * MS, now)
            elif rng.random() < 0.04:
                assert scripts.ban(name, "k", now) == model.unban(now), story
            how = rng.choice(["0", "0", "0", "1", "0f", "0f-", "0a", "1a", "0x3"])
            cost, n = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2, 5])
            first, longest = rng.choice([(0, 0), (3, 3), (3, 40), (period // MS, 7 * period // MS), (20, 20)])
            cost = 1 if how == "0x3" else -cost if how == "0f-" else cost
            how = how.rstrip("-")
            word = (how[:1] + "s" + how[1:] if name == "first" else how) + (f"p{first}:{longest}" if first and how[0] == "0" else "")
            reply = scripts.kept(name, "k", model.model.argv(cost), now, word, [n])
            used, granted, left = model.call(how, first * MS, longest * MS, cost, n, now)
            number, told_left, told_granted = told(reply[0])
            story += (word, cost, n, reply, used, granted, left)
            assert (told_left or 0) == left, story
            assert left == 0 or told_granted == granted or how[0] == "1", story
            assert (number if name == "funnel" else reply[1]) == used, story
            if name != "funnel" and how[0] == "0":
                assert number == granted, story
            met += left > 0
            ends = [model.till - now, model.till + model.rest - now, model.rest] if model.till > now else [1]
            now += max(0, rng.choice([0, 1, *ends, ends[0] - 1, ends[-1] + 1, period // 7, period, rng.randrange(2 * period)]))
    assert met > 300


FULL = {
    "funnel": ["f", 1, 10 * 10**9, 10 * 10**9, 10 * 10**9, 10 * 10**9],
    "sliding": [1, 1, 1, 10 * S],
    "approx": [1, 1, 1, 10 * S],
    "fixed": [1, 1, 1, 10 * S],
}
OTHER = {
    "funnel": ["f", 1, 10**6, 10**6, 10**9, 10**9],
    "sliding": [1, 1, 1000, S],
    "approx": [1, 1, 1000, S],
    "fixed": [1, 1, 1000, S],
}
BASE = NOW - NOW % (10 * S)
NAMES = list(FULL)


@pytest.mark.parametrize("name", NAMES)
def test_a_penalty_grows_each_time_up_to_its_longest(scripts, name):
    """1 minute, doubled each time up to 10. The penalty starts at 1 minute again after 10 minutes
    without one.
    """
    now, word = BASE, f"0p{MINUTE // MS}:{10 * MINUTE // MS}"

    def penalty(at):
        assert told(scripts.kept(name, "k", FULL[name], at, word)[0])[1] is None, "one passes"
        left = told(scripts.kept(name, "k", FULL[name], at, word)[0])[1]
        assert told(scripts.kept(name, "k", FULL[name], at + left - 1, word)[0])[1] == 1, "to the us; and it is not drawn out"
        return left

    for minutes in (1, 2, 4, 8, 10, 10):
        assert penalty(now) == minutes * MINUTE
        now += (minutes + 9) * MINUTE
    assert told(scripts.kept(name, "k", FULL[name], now, "0p5000:5000")[0])[1] is None
    assert told(scripts.kept(name, "k", FULL[name], now, "0p5000:5000")[0])[1] == 5 * S, "one that does not grow"
    now += MINUTE
    assert penalty(now) == 10 * MINUTE, "leaves the level"
    assert penalty(now + 20 * MINUTE) == MINUTE, "begins anew to the us"
    now += 21 * MINUTE
    assert scripts.ban(name, "k", now, 3000) == 1
    assert penalty(now + 10 * MINUTE) == 2 * MINUTE, "a ban leaves the level"
    assert scripts.ban(name, "k", now + 11 * MINUTE) == 1 and scripts.ban(name, "k", now + 11 * MINUTE) == 0
    assert penalty(now + 12 * MINUTE) == MINUTE, "UNBAN takes it"


@pytest.mark.parametrize("name", NAMES)
def test_it_holds_for_all(scripts, name):
    """For calls with other rates, without PENALTY, and peeks; not for charges after the fact or
    refunds.
    """
    now = BASE
    scripts.kept(name, "k", FULL[name], now, "0p60000:60000")
    scripts.kept(name, "k", FULL[name], now, "0p60000:60000")
    for how in ("0", "1", "0x3", "0a", "1a"):
        reply = scripts.kept(name, "k", OTHER[name], now + S, how, [2])
        assert told(reply[0])[1:] == (59 * S, 0), how
    assert told(scripts.kept(name, "k", OTHER[name], now + S, "0f", [2])[0])[1:] == (59 * S, 2)
    given = OTHER[name].copy()
    given[3 if name == "funnel" else 0] *= -1
    assert told(scripts.kept(name, "k", given, now + S, "0f", [1])[0])[1:] == (59 * S, 1)
    assert told(scripts.kept(name, "k", OTHER[name], now + 60 * S, "0")[0])[1] is None


@pytest.mark.parametrize("name", NAMES)
def test_counts_are_as_without(scripts, name):
    """A penalty changes no count: compared with a key without one."""
    rng = random.Random(name)
    now = BASE
    for _ in range(100):
        if rng.random() < 0.3:
            scripts.ban(name, "k", now, rng.choice([1, 1000, 10**6]))
        if rng.random() < 0.5:
            assert scripts.ban(name, "k", now) in (0, 1)
            params, n = rng.choice([FULL, OTHER])[name], rng.choice([1, 2, 500])
            assert scripts.kept(name, "k", params, now, "0", [n]) == scripts.kept(name, "twin", params, now, "0", [n])
        else:
            scripts.kept(name, "k", OTHER[name], now, "1")
        now += rng.choice([0, 1, MS, S, 10 * S])
    scripts.ban(name, "k", now)
    read = ("ZRANGE", "k", 0, -1, "WITHSCORES") if name == "sliding" else ("GET", "k")
    twin = ("ZRANGE", "twin", 0, -1, "WITHSCORES") if name == "sliding" else ("GET", "twin")
    assert scripts.conn.call(*read) == scripts.conn.call(*twin), "what is stored is what it would be"


@pytest.mark.parametrize("name", NAMES)
def test_a_clock_that_goes_back(scripts, name):
    """A penalty never gets longer than it was, and a peek changes nothing."""
    now = BASE
    scripts.ban(name, "k", now, 60_000)
    early = now - HOUR
    assert told(scripts.kept(name, "k", OTHER[name], early, "1")[0])[1] == MINUTE
    assert told(scripts.kept(name, "k", OTHER[name], early + S, "1")[0])[1] == MINUTE, "a peek has not written that"
    assert told(scripts.kept(name, "k", OTHER[name], early + S, "0")[0])[1] == MINUTE
    assert told(scripts.kept(name, "k", OTHER[name], early + 2 * S, "0")[0])[1] == 59 * S, "once refused it is written"
    assert told(scripts.kept(name, "k", OTHER[name], early + S + MINUTE, "0")[0])[1] is None


@pytest.mark.parametrize("name", ["sliding", "approx", "fixed"])
def test_who_can_wait_has_no_penalty(scripts, name):
    now = BASE
    scripts.kept(name, "k", FULL[name], now)
    retry = scripts.kept(name, "k", FULL[name], now)[2]
    assert told(scripts.kept(name, "k", FULL[name], now, f"0p60000:60000w{retry}")[0])[1] is None
    assert told(scripts.kept(name, "k", FULL[name], now, f"0p60000:60000w{retry - 1}")[0])[1] == MINUTE


@pytest.mark.parametrize("name", NAMES)
def test_time_to_live(scripts, name):
    """By Redis' own clock: the key lives as long as any of its state counts, and no longer."""
    call = lambda how: scripts.conn.call(*with_how(scripts, name, how))
    assert scripts.call("ban", ["k"], ["ban", ord(LETTERS[name]), 60_000, ""]) == [1, 0, 0]
    assert 59_000 < scripts.conn.call("PTTL", "k") <= 60_001
    assert told(call("0")[0])[1] > 59 * S
    assert scripts.call("ban", ["k"], ["unban", ord(LETTERS[name]), 0, ""]) == [1, 0, 0]
    assert scripts.conn.call("EXISTS", "k") == 0, "nothing is counted"
    call("0p60000:600000")
    alone = scripts.conn.call("PTTL", "k")
    assert 0 < alone <= 20_001
    assert told(call("0p60000:600000")[0])[1] == MINUTE
    assert 650_000 < scripts.conn.call("PTTL", "k") <= 660_001
    assert scripts.call("ban", ["k"], ["unban", ord(LETTERS[name]), 0, ""]) == [1, 0, 0]
    call("0")
    assert scripts.conn.call("EXISTS", "k") == 1
    if name == "sliding":
        assert alone - 5000 < scripts.conn.call("PTTL", "k") <= alone
    assert scripts.call("ban", ["k"], ["ban", ord(LETTERS[name]), 5, ""]) == [1, 0, 0]
    assert scripts.conn.call("PTTL", "k") > 0


def with_how(scripts, name, how):
    call = list(scripts.command(name, ["k"], FULL[name]))
    call[6] = how
    assert call[5] == ""
    return call


def test_a_log_under_a_penalty_stays_short(scripts):
    """Entries of the log expire as usual, though the key lives longer."""
    now, params = BASE, [1, 1, 3, S]
    scripts.kept("sliding", "k", params, now, "0p10:86400000", [5])
    for _ in range(300):
        now += S
        call = list(scripts.command("sliding", ["k"], params, [2], now))
        scripts.conn.call(*call)
    assert scripts.conn.call("ZCARD", "k") < 10
    assert scripts.conn.call("PTTL", "k") > HOUR // MS


def test_logs_without_totals(scripts):
    """Logs of versions without totals: each unit an entry."""
    for i in range(4):
        scripts.conn.call("ZADD", "k", BASE + i, f"{BASE + i}:{i}")
    scripts.conn.call("EXPIRE", "k", 100)
    params = [1, 1, 5, 10 * S]
    assert scripts.ban("sliding", "k", BASE + S, 1000) == 1
    assert told(scripts.kept("sliding", "k", params, BASE + S, "0")[0])[1:] == (S, 0)
    assert scripts.kept("sliding", "k", params, BASE + 2 * S, "1")[:2] == [1, 4]
    assert scripts.ban("sliding", "k", BASE + 2 * S, 1000) == 1
    assert told(scripts.kept("sliding", "k", params, BASE + 2 * S, "0f", [3])[0])[1:] == (S, 3)
    assert told(scripts.kept("sliding", "k", params, BASE + 2 * S, "1")[0])[1] == S, "it stays when the log is written anew"
    assert scripts.kept("sliding", "k", params, BASE + 3 * S, "1")[:2] == [0, 7]
    assert scripts.kept("sliding", "k", params, BASE + 10 * S + 3, "1")[:2] == [1, 3]


def test_text_of_before(scripts):
    """A funnel stored as text, under a ban."""
    scripts.conn.call("SET", "k", f"f{BASE // S + 5}000000000", "EX", 100)
    assert scripts.ban("funnel", "k", BASE, 1000) == 1
    assert told(scripts.kept("funnel", "k", FULL["funnel"], BASE, "0")[0]) == (5 * 10**9, S, 0)
    assert scripts.kept("funnel", "k", FULL["funnel"], BASE + S, "0") == [4 * 10**9]


@pytest.mark.parametrize("name", NAMES)
def test_keys_of_others(redis, scripts, name):
    """One key, one algorithm, also where nothing is counted. Keys that are not weir's stay
    unchanged.
    """
    letter = LETTERS[name]
    assert scripts.ban(name, "k", NOW, 60_000) == 1
    for other in NAMES:
        if other != name:
            reply = scripts.call(other, ["k"], OTHER[other], now=NOW)
            assert reply[0].startswith(b"WRONGTYPE"), (other, reply)
            assert scripts.call("ban", ["k"], ["ban", ord(LETTERS[other]), 5, ""], now=NOW)[0].startswith(b"WRONGTYPE")
    assert scripts.call("cell", ["k"], ["", 1, 1, 1, 1, 1], now=NOW)[0].startswith(b"WRONGTYPE")
    assert scripts.call("holders", ["k"], ["acquire", 2, 1000, ""], ["t"], now=NOW)[0].startswith(b"WRONGTYPE")
    for i, seed in enumerate([("SET", "x"), ("SET", "p1:2:3:4"), ("SET", "p"), ("SET", ""), ("LPUSH", "x"), ("HSET", "x", "y"), ("ZADD", 1, "p"), ("ZADD", 1, "h:t")]):
        key = f"other{i}"
        redis.call(seed[0], key, *seed[1:])
        was = redis.call("DUMP", key)
        assert scripts.call("ban", [key], ["ban", ord(letter), 5, ""], now=NOW)[0].startswith(b"WRONGTYPE"), seed
        assert scripts.call("ban", [key], ["unban", ord(letter), 5, ""], now=NOW)[0].startswith(b"WRONGTYPE"), seed
        found = scripts.call(name, [key], OTHER[name], now=NOW)[0]
        assert isinstance(found, bytes) and found.startswith(b"WRONGTYPE"), seed
        assert redis.call("DUMP", key) == was


@pytest.mark.parametrize("name", NAMES)
def test_a_ban_goes_with_another_algorithm(redis, scripts, name):
    """State of a named limit's former algorithm is reset, with its penalties."""
    source = Scripts(redis)
    sha = source.conn.call("SCRIPT", "LOAD", source_of("renew"))
    renew = lambda letter: scripts.conn.call("EVALSHA", sha, 1, "k", 0, "", "0", "anew", ord(letter), 0, "")[0]
    for counted in (False, True):
        if counted:
            scripts.call(name, ["k"], OTHER[name])
        scripts.call("ban", ["k"], ["ban", ord(LETTERS[name]), 60_000, ""])
        assert renew(LETTERS[name]) == 0 and redis.call("EXISTS", "k") == 1
        assert renew("z" if name != "sliding" else "f") == 1 and redis.call("EXISTS", "k") == 0


def test_several_keys_at_once(scripts):
    """A part with a penalty refuses the whole call. A part's own penalty begins where the part
    refuses.
    """
    scripts.shas["all"] = scripts.conn.call("SCRIPT", "LOAD", source_of("all"))

    def ask(now, first="-", second="-", how="0"):
        params = [2, "fixed", first, 1, 1, 3, 10 * S, "sliding", second, 1, 1, 2, 10 * S]
        call = list(scripts.command("all", ["a", "b"], params, now=now))
        call[call.index(now) + 1] = how
        reply = scripts.conn.ask(("MULTI",), tuple(call), ("PERSIST", "a"), ("PERSIST", "b"), ("EXEC",))[-1][0]
        return [told(reply[0]), reply[1], told(reply[4]), reply[5]]

    for i in range(2):
        assert ask(BASE, "-p5000:5000", "-p7000:7000")[1::2] == [i, i]
    found = ask(BASE, "-p5000:5000", "-p7000:7000")
    assert [found[0][1], found[2][1]] == [None, 7 * S] and found[1::2] == [2, 2]
    assert ask(BASE + 6 * S)[2][1] == S
    assert scripts.ban("fixed", "a", BASE + 20 * S, 5000) == 1
    found = ask(BASE + 21 * S)
    assert [found[0][1], found[2][1]] == [4 * S, None]
    assert scripts.kept("sliding", "b", [1, 1, 2, 10 * S], BASE + 21 * S, "1")[1] == 0, "nothing was charged"
    found = ask(BASE + 21 * S, "s", "-")
    assert [found[0][1], found[2][1]] == [4 * S, None]
    assert scripts.kept("sliding", "b", [1, 1, 2, 10 * S], BASE + 21 * S, "1")[1] == 1, "a shadow refuses nothing"


# ---- end to end ----

ALGORITHMS = ["FUNNEL {} 3/d", "BUCKET {} 3/d 5/d", "SLIDING {} 3/d", "SLIDING {} 3/d APPROX", "FIXED {} 3/d"]
WORDS = ["FUNNEL", "BUCKET", "SLIDING", "APPROX", "FIXED"]
DAY_MS = 86_400_000


def longest_retry(algorithm):
    """Of three a day, all used: APPROX counts a day that has just begun until a third of the next
    day is over.
    """
    return 2 * DAY_MS if "APPROX" in algorithm else DAY_MS


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_once_limited_a_key_stays_limited_for_the_penalty(conn, redis, algorithm):
    key = fresh()
    command = f"LIMIT {algorithm.format(key)}"
    assert [one.limited for one in decisions(conn, *[f"{command} PENALTY 1000d"] * 3)] == [0, 0, 0]
    before = decide(conn, command)
    assert before.limited == 1 and before.retry <= longest_retry(algorithm), "refused without PENALTY, and remembered"
    assert decide(conn, f"{command} PENALTY 1000d PEEK").retry <= before.retry
    found = decide(conn, f"{command} PENALTY 1000d")
    assert found[:3] == (1, 3, 0) and near(found.retry, 86_400_000_000) and found.reset >= found.retry
    stored = written(redis)
    for option in ("", " PEEK", " PENALTY 5d", " COST 2 PARTIAL AS ARRAY", " WAIT 100"):
        reply = conn.call(*(command + option).split())
        flat = list(reply.values()) if isinstance(reply, dict) else reply
        assert flat[:3] == [1, 3, 0] and near(flat[3], 86_400_000_000) and flat[4] >= flat[3], option
        assert flat[5:] == ([0] if "PARTIAL" in option else [])
    assert decide(conn, command + " COST 0")[:4] == (0, 3, 0, -1) and decide(conn, command + " COST 0").reset > 86_000_000_000
    assert decide(conn, command + " COST 4").retry == -1, "never, whatever the penalty"
    assert written(redis) == stored
    assert decide(conn, command + " FORCE")[:4] == (0, 3, 0, -1)
    assert decide(conn, command + " CREDIT 3")[:4] == (0, 3, 0, -1)
    assert decide(conn, command).limited == 1
    assert conn.call("LIMIT", "RESET", key) == 1
    assert decide(conn, command)[:3] == (0, 3, 2)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_penalty_ends(conn, redis, algorithm):
    key = fresh()
    command = f"LIMIT {algorithm.format(key).replace('3/d', '3/ms').replace('5/d', '5/ms')} COST 4 PENALTY 200ms..400ms"
    assert decide(conn, command).retry == -1 and 0 < decide(conn, command.replace("COST 4 ", "")).retry <= 200
    waited = decide(conn, command.replace("COST 4 PENALTY 200ms..400ms", "WAIT 5000"))
    assert waited.limited == 0, "who waits is let in when it is over"
    assert decide(conn, command).retry == -1 and 200 < decide(conn, command.replace("COST 4 ", "PEEK ")).retry <= 400


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_of_equal_calls_those_behind_are_told_the_penalty(conn, algorithm):
    """Of calls that travel as one the first pass, and all others report the penalty."""
    key = fresh()
    found = decisions(conn, *[f"LIMIT {algorithm.format(key)} PENALTY 40d"] * 6)
    assert [one.limited for one in found] == [0, 0, 0, 1, 1, 1]
    assert all(near(one.retry, 40 * 86_400_000) for one in found[3:]) and all(one.reset <= 2 * 86_400_000 for one in found[:3])


@pytest.mark.parametrize("algorithm, word", zip(ALGORITHMS, WORDS), ids=WORDS)
def test_ban_limits_a_key_at_once(conn, redis, algorithm, word):
    key = fresh()
    command = f"LIMIT {algorithm.format(key)}"
    assert decide(conn, command)[:3] == (0, 3, 2)
    assert plain(conn.call("LIMIT", "BAN", word, key, "2d")) == "OK"
    found = decide(conn, command)
    assert found[:3] == (1, 3, 0) and near(found.retry, 2 * 86_400_000)
    asked = script_calls(redis)
    assert all(one.limited for one in decisions(conn, *[command] * 3)) and decide(conn, command).limited
    assert script_calls(redis) > asked, "never from memory"
    assert plain(conn.call("LIMIT", "BAN", word, key, "1h")) == "OK"
    assert near(decide(conn, command).retry, 3_600_000), "exactly as long as it says"
    assert conn.call("LIMIT", "UNBAN", word, key) == 1
    assert decide(conn, command)[:3] == (0, 3, 1), "what was counted stays"
    assert conn.call("LIMIT", "UNBAN", word, key) == 0
    assert decide(conn, command).limited == 0 and decide(conn, command).limited == 1 and decide(conn, command).limited == 1
    assert plain(conn.call("LIMIT", "BAN", word, key, "9d")) == "OK"
    assert near(decide(conn, command).retry, 9 * 86_400_000), "what was remembered is forgotten"
    assert conn.call("LIMIT", "UNBAN", word, key) == 1
    assert decide(conn, command).retry <= longest_retry(algorithm)
    other = "FIXED" if word != "FIXED" else "SLIDING"
    assert conn.call("LIMIT", "BAN", other, key, "1h") == WRONGTYPE
    assert conn.call("LIMIT", "UNBAN", other, key) == WRONGTYPE
    new = fresh()
    assert conn.ask(f"LIMIT UNBAN {word} {new}", f"LIMIT BAN {word} {new} 1h", f"LIMIT UNBAN {word} {new}", f"LIMIT UNBAN {word} {new}")[::2] == [0, 1]
    assert redis.call("EXISTS", f"limit:{new}") == 0


def test_a_ban_reaches_all_workers(weir):
    conns = [weir.connect() for _ in range(6)]
    key = fresh()
    assert sum(not decide(conn, f"LIMIT SLIDING {key} 1/h").limited for conn in conns) == 1
    assert all(decide(conn, f"LIMIT SLIDING {key} 1/h").retry <= 3_600_000 for conn in conns), "remembered"
    assert plain(conns[0].call("LIMIT", "BAN", "SLIDING", key, "2d")) == "OK"
    assert all(near(decide(conn, f"LIMIT SLIDING {key} 1/h").retry, 2 * 86_400_000) for conn in conns)
    assert conns[1].call("LIMIT", "UNBAN", "SLIDING", key) == 1
    assert all(decide(conn, f"LIMIT SLIDING {key} 1/h").retry <= 3_600_000 for conn in conns)
    for conn in conns:
        conn.close()


def test_a_wait_is_as_long_as_it_says(conn, redis):
    """A funnel reserves a scheduled time only after the penalty, within the remaining wait."""
    key = fresh()
    assert decide(conn, f"LIMIT FUNNEL {key} 1/300ms").limited == 0
    assert decide(conn, f"LIMIT FUNNEL {key} 1/300ms PENALTY 100ms").limited == 1
    assert decide(conn, f"LIMIT FUNNEL {key} 1/300ms WAIT 50")[0] == 1
    assert decide(conn, f"LIMIT FUNNEL {key} 1/300ms WAIT 20000").limited == 0
    for name in ("FUNNEL", "SLIDING", "FIXED"):
        key = fresh()
        assert plain(conn.call("LIMIT", "BAN", name, key, "150ms")) == "OK"
        assert decide(conn, f"LIMIT {name} {key} 1/d WAIT 20000").limited == 0
        found = decide(conn, f"LIMIT {name} {key} 1/d WAIT 10 PENALTY 30d")
        assert found.limited == 1 and near(found.retry, 30 * 86_400_000), "in vain: limited"


NAMED = """
[limit login]
sliding = 2/1d
penalty = 1h..4d

[limit mail]
funnel = 1/1d
penalty = 2d
over = shadow

[limit plain]
fixed = 1/1d

[policy operators]
match = name:operator
admin = yes

[admin]
socket = {folder}/operator.sock
"""


@pytest.fixture(params=[(1, "shared"), (2, "private")], ids=["1-shared", "2-private"])
def named(request, farm, redis):
    workers, lanes = request.param
    return farm.weir(redis, workers=workers, lanes=lanes, sections=NAMED, identity="name, ip")


def test_a_named_limit_has_its_penalty(named, redis):
    key = fresh()
    with named.connect() as conn:
        found = decisions(conn, *[f"LIMIT CHECK login {key}"] * 4)
        assert [one.limited for one in found] == [0, 0, 1, 1] and near(found[2].retry, 3_600_000) is False
        assert found[2].retry > 3_600_000, "the rate itself is longer"
        assert conn.call("LIMIT", "UNBAN", "CHECK", "LOGIN", key) == 1
        assert conn.call("LIMIT", "UNBAN", "SLIDING", f"login:{key}") == 0
        assert plain(conn.call("LIMIT", "BAN", "CHECK", "Login", key, "30d")) == "OK"
        assert near(decide(conn, f"LIMIT CHECK login {key} PENALTY 5s").retry, 30 * 86_400_000)
        assert conn.call("LIMIT", "UNBAN", "CHECK", "login", key) == 1
        found = decide(conn, f"LIMIT CHECK login {key} PENALTY 900d")
        assert found.limited and found.retry <= 86_400_000, "the operator's, whatever the call says"
        assert [one.limited for one in decisions(conn, *[f"LIMIT CHECK mail {key}"] * 3)] == [0, 0, 0], "a shadow"
        assert near(decide(conn, f"LIMIT FUNNEL mail:{key} 1/1d").retry, 2 * 86_400_000)
        found = decisions(conn, *[f"LIMIT CHECK plain {key} PENALTY 3d"] * 2)
        assert found[0].limited == 0 and near(found[1].retry, 3 * 86_400_000)
        assert conn.call(*"LIMIT BAN CHECK logon k 1h".split()) == Error("ERR no limit is named 'logon' (did you mean login?)")
        assert conn.call("LIMIT", "BAN", "CHECK", "", "k", "1h") == Error("ERR no limit is named ''")
        rows = plain(order(named, "LIST"))
        rows = [row if isinstance(row, dict) else dict(zip(row[::2], row[1::2])) for row in rows]
        rows = {row["limit"]: row for row in rows if "asked" in row}
        assert [rows[name]["penalty"] for name in ("login", "mail", "plain")] == ["1h..4d", "2d", ""]
        assert rows["login"]["asked"] == 6, "a ban is no question"
    with operator(named) as conn:
        assert plain(conn.call(*"LIMIT SET LIMIT plain penalty = 7d".split())) == "OK"
    with named.connect() as conn:
        found = decisions(conn, *[f"LIMIT CHECK plain {fresh()}x"] * 2)
        key = fresh()
        found = decisions(conn, *[f"LIMIT CHECK plain {key}"] * 2)
        assert near(found[1].retry, 7 * 86_400_000)


def test_a_key_with_rates_of_its_own(named, redis):
    """The key has its limit's penalty. An admin command for one key does not change the penalties
    of other keys.
    """
    key, other = fresh(), fresh()
    with operator(named) as ops, named.connect() as conn:
        for words in (f"SET LIMIT login sliding = 1/1d FOR {key}", f"SET LIMIT login sliding = 3/1d FOR {key} EX 1h",
                      f"UNSET LIMIT login FOR {key}", f"SET LIMIT login sliding = 1/1d FOR {key}"):
            assert ops.call("LIMIT", *words.split()) == "OK", words
        rows = [row if isinstance(row, dict) else dict(zip(row[::2], row[1::2])) for row in plain(ops.call("LIMIT", "LIST"))]
        assert {row["limit"]: row.get("penalty") for row in rows}["login"] == "1h..4d"
        for name, passes in ((key, 1), (other, 2)):
            found = decisions(conn, *[f"LIMIT CHECK login {name}"] * (passes + 1))
            assert [one.limited for one in found] == [0] * passes + [1], name
            assert conn.call("LIMIT", "UNBAN", "CHECK", "login", name) == 1, name


def test_while_redis_is_away(farm):
    redis = farm.redis()
    sections = "[limit login]\nsliding = 2/1d\npenalty = 30d\nwhen-down = local\n"
    with farm.weir(redis, sections=sections).connect() as conn:
        assert plain(conn.call(*"LIMIT BAN CHECK login ann 1h".split())) == "OK"
        redis.kill()
        found = decisions(conn, *["LIMIT CHECK login ann"] * 4)
        assert [one.limited for one in found] == [0, 0, 1, 1] and all(near(one.retry, 30 * 86_400_000) for one in found[2:])
        assert conn.call(*"LIMIT UNBAN CHECK login ann".split()) == UNAVAILABLE


def parts(conn, line):
    """Of several keys: returns the decision, and the part that refused."""
    reply = conn.call(*f"{line} AS ARRAY".split())
    assert not isinstance(reply, Error), reply
    return reply[0], reply[2], reply[3], plain(reply[5])


def test_of_several_keys_the_part_that_refuses_has_the_penalty(conn, redis):
    """The part that refuses gets the penalty. While the penalty lasts the whole call is refused,
    and no part is charged.
    """
    a, b = fresh(), fresh()
    line = f"LIMIT ALL FIXED {a} 9/d AND SLIDING {b} 2/d"
    assert [parts(conn, f"{line} PENALTY 40d")[0] for _ in range(2)] == [0, 0]
    limited, remaining, retry, by = parts(conn, f"{line} PENALTY 40d")
    assert (limited, remaining, by) == (1, 0, b) and near(retry, 40 * 86_400_000)
    assert parts(conn, f"{line} PEEK")[3] == b
    assert decide(conn, f"LIMIT FIXED {a} 9/d PEEK")[:4] == (0, 9, 7, -1), "neither counted nor punished"
    assert near(decide(conn, f"LIMIT SLIDING {b} 50/d").retry, 40 * 86_400_000)
    assert conn.call("LIMIT", "RESET", b) == 1 and parts(conn, line)[0] == 0
    assert plain(conn.call("LIMIT", "BAN", "FIXED", a, "3d")) == "OK"
    before = written(redis)
    found = parts(conn, line)
    assert (found[0], found[1], found[3]) == (1, 0, a) and near(found[2], 3 * 86_400_000)
    assert written(redis) == before and decide(conn, f"LIMIT SLIDING {b} 2/d PEEK").remaining == 1
    assert parts(conn, f"{line} FORCE")[0] == 0 and parts(conn, f"{line} CREDIT 1")[0] == 0
    assert parts(conn, f"LIMIT ALL FIXED {a} 9/d COST 0 AND SLIDING {b} 2/d")[0] == 0, "what costs nothing there asks nobody"
    replies = conn.ask(*[f"LIMIT ALL FIXED {fresh('c')} 9/d AND FUNNEL {b}f 2/d PENALTY 9d AS ARRAY"] * 1, *[f"LIMIT ALL FUNNEL {a}g 2/d AND FUNNEL {b}g 9/d PENALTY 9d AS ARRAY"] * 4)
    assert [reply[0] for reply in replies] == [0, 0, 0, 1, 1] and all(near(reply[3], 9 * 86_400_000) for reply in replies[3:])


def test_several_keys_for_sure(conn):
    """Forced charges and refunds get the reply of a single key: nothing more passes until the
    penalty ends.
    """
    a, b = fresh("a"), fresh("b")
    line = f"LIMIT ALL FIXED {a} 9/d AND FUNNEL {b} 5/d"
    assert plain(conn.call("LIMIT", "BAN", "FUNNEL", b, "2d")) == "OK"
    for option in ("FORCE", "CREDIT 1", "COST 0"):
        alone = decide(conn, f"LIMIT FUNNEL {b} 5/d {option}")
        *found, reset, refused_by = conn.call(*f"{line} {option} AS ARRAY".split())
        assert [*alone[:4]] == found == [0, 5, 0, -1] and refused_by is None, option
        assert near(alone.reset, 2 * 86_400_000) and near(reset, 2 * 86_400_000), option
    assert conn.call("LIMIT", "UNBAN", "FUNNEL", b) == 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_who_has_room_has_no_penalty(conn, algorithm):
    """Calls that another key refuses take none of this key's room, however many they are."""
    a, b = fresh("a"), fresh("b")
    line = f"LIMIT ALL FIXED {a} 1/d COST 2 AND {algorithm.format(b)} PENALTY 40d"
    replies = conn.ask(*[f"{line} AS ARRAY"] * 9)
    assert all(reply[0] == 1 and plain(reply[5]) == a for reply in replies)
    assert decide(conn, f"LIMIT {algorithm.format(b)} PEEK")[:4] == (0, 3, 3, -1)
    replies = conn.ask(*[f"LIMIT ALL FIXED {fresh('a')} 2/d AND {algorithm.format(b)} PENALTY 40d AS ARRAY"] * 5)
    assert [reply[0] for reply in replies] == [0, 0, 1, 1, 1]
    assert decide(conn, f"LIMIT {algorithm.format(b)} PEEK")[:4] == (0, 3, 1, -1)


def test_what_costs_nothing_beside_what_is_forced(conn):
    """Several equal calls, where the free part has a penalty."""
    a, b = fresh("a"), fresh("b")
    assert plain(conn.call("LIMIT", "BAN", "FUNNEL", a, "2d")) == "OK"
    found = [reply[:4] for reply in conn.ask(*[f"LIMIT ALL FUNNEL {a} 5/d COST 0 AND FIXED {b} 9/d FORCE AS ARRAY"] * 4)]
    assert found == [[0, 5, 0, -1]] * 4
    assert decide(conn, f"LIMIT FIXED {b} 9/d PEEK").remaining == 5


def test_several_keys_wait(conn):
    a, b = fresh(), fresh()
    line = f"LIMIT ALL FUNNEL {a} 1/200ms AND FIXED {b} 9/d"
    assert parts(conn, line)[0] == 0
    assert parts(conn, f"{line} WAIT 20000 PENALTY 1d")[0] == 0, "who waits and passes has no penalty"
    assert parts(conn, f"{line} WAIT 1 PENALTY 100ms")[0] == 1
    assert parts(conn, f"{line} WAIT 20000")[0] == 0, "waits for the end of one"


def test_several_named_limits(named, redis):
    key = fresh()
    with named.connect() as conn:
        line = f"LIMIT CHECK login {key} AND plain {key} AND mail {key}"
        assert parts(conn, line)[0] == 0
        found = parts(conn, line)
        assert (found[0], found[3]) == (1, "plain")
        assert near(decide(conn, f"LIMIT FUNNEL mail:{key} 1/1d").retry, 2 * 86_400_000), "a shadow keeps its penalty for itself"
        assert decide(conn, f"LIMIT CHECK login {key} PEEK").limited == 0 and decide(conn, f"LIMIT CHECK login {key}").limited == 0
        found = parts(conn, f"{line} PENALTY 9d")
        assert found[0] == 1 and near(decide(conn, f"LIMIT CHECK plain {key}").retry, 9 * 86_400_000)
        assert decide(conn, f"LIMIT CHECK login {key}").retry <= 86_400_000, "the operator's own"
        assert conn.call("LIMIT", "UNBAN", "CHECK", "login", key) == 1


def test_several_while_redis_is_away(farm):
    redis = farm.redis()
    sections = "[limit a]\nfunnel = 2/1d\npenalty = 30d\nwhen-down = local\n[limit b]\nfixed = 9/1d\nwhen-down = local\n"
    with farm.weir(redis, sections=sections).connect() as conn:
        decide(conn, "LIMIT CHECK a k")
        redis.kill()
        found = [parts(conn, "LIMIT CHECK b k AND a k") for _ in range(4)]
        assert [one[0] for one in found] == [0, 0, 1, 1] and all(near(one[2], 30 * 86_400_000) and one[3] == "a" for one in found[2:])
        assert near(decide(conn, "LIMIT CHECK a k").retry, 30 * 86_400_000) and decide(conn, "LIMIT CHECK b k").remaining == 6


ERRORS = {
    "LIMIT BAN THROTTLE k 1h": "ERR THROTTLE has no penalties: use another algorithm",
    "LIMIT BAN FUNL k 1h": "ERR unknown algorithm 'FUNL': write FUNNEL, BUCKET, SLIDING, APPROX, FIXED, or CHECK and a name",
    "LIMIT BAN FIXED k": "ERR wrong number of arguments for 'limit|ban' command",
    "LIMIT BAN FIXED k 0": "ERR a penalty of 0 has no effect: give at least 1ms",
    "LIMIT FIXED k 1/s PENALTY 1h FORCE": "ERR PENALTY goes with neither FORCE nor CREDIT, which are never limited",
    "LIMIT FIXED k 1/s PENALTY 1h..1m": "ERR the longest penalty is shorter than the first: write 1m..1h",
    "LIMIT THROTTLE k 1 1 1 1 PENALTY 1h": "ERR wrong number of arguments for 'limit|throttle' command",
}


def test_a_wrong_penalty_or_ban_writes_nothing(conn, redis):
    before = written(redis)
    for line, error in ERRORS.items():
        assert conn.call(*line.split()) == Error(error), line
    assert written(redis) == before


def test_ban_and_unban_are_of_the_class_limit_write(farm, redis):
    sections = "[class steering]\ncommands = @limit-write, -limit|check\n[policy default]\nsteering = deny\n[limit plain]\nfixed = 1/1d\n"
    with farm.weir(redis, sections=sections).connect() as conn:
        denied = Error("NOPERM denied by policy default")
        assert conn.call(*"LIMIT BAN CHECK plain k 1h".split()) == denied and conn.call(*"LIMIT UNBAN FIXED k".split()) == denied
        assert decide(conn, "LIMIT CHECK plain k").limited == 0


def test_redis_clock_is_the_clock(conn, redis):
    key = fresh()
    before = redis.call("TIME")
    assert plain(conn.call("LIMIT", "BAN", "FIXED", key, "1h")) == "OK"
    till = int(redis.call("GET", f"limit:{key}").split(b":")[0][1:])
    after = redis.call("TIME")
    us = lambda time: int(time[0]) * S + int(time[1])
    assert us(before) + HOUR <= till <= us(after) + HOUR
    assert admitted(decisions(conn, f"LIMIT FIXED {key} 1/d")) == 0
