"""Fixed windows of the calendar: the script under a clock that the test sets, against a model; and
through weir.
"""

import datetime
import os
import random
import shutil
import zoneinfo

import pytest
from kit.decisions import decide, decisions, fresh
from kit.harness import rounds, run_weir, wait_until
from kit.limits import order, plain
from kit.reloading import signal_reload
from kit.resp import Error
from test_time_zones import BOUNDS, KINDS, bounds, first_at, midnight_of, moved, year
from test_limit_scripts import MANY, Scripts

S = 10**6  # us
DAY = 86_400
HOUR = 3600 * S
FAR = Error("ERR the clocks of weir and Redis are too far apart for the calendar")
MOST = 8


@pytest.fixture
def scripts(redis):
    return Scripts(redis)


def period_word(name, kind, unix_s):
    """Returns the word that weir sends if its clock shows this time."""
    return kind[0] + ",".join(map(str, bounds(name, kind, unix_s)))


def decided(scripts, key, rates, now, cost=1, n=1, peek=False, how=None):
    """Returns the reply, the value, and its time to live. The call is in a transaction, where no
    key expires by Redis' own clock.
    """
    words = [cost, len(rates), *(word for rate in rates for word in rate)]
    call = list(scripts.command("fixed", [key], words, [n], now, peek=peek))
    call[6] = how or call[6]
    reply, left, value, _ = scripts.conn.ask(
        ("MULTI",), tuple(call), ("PTTL", key), ("GET", key), ("PERSIST", key), ("EXEC",)
    )[-1]
    return reply, left, value


def is_about(left, ms):
    """True if `left` is a time to live of `ms`, less the time that has passed on Redis' clock."""
    return ms - 1000 <= left <= ms


def test_a_calendar_window_is_stored_by_its_name_and_lives_as_long(scripts):
    """The window's name in Redis, and its time to live; other rates on the key are stored as
    before.
    """
    now = 1_795_351_530 * S  # 2026-11-22 12:45:30 UTC
    # the midnight of that day and of the first of the month, in UTC
    day, month = 1_795_305_600, 1_793_491_200
    rate = [3, period_word("UTC", "day", now // S)]
    assert rate[1] == "d" + ",".join(str(day + i * DAY) for i in range(-1, BOUNDS - 1))
    reply, left, value = decided(scripts, "k", [rate], now)
    assert (reply, value) == ([1, 0, 0, (day + DAY) * S - now], f"wd{day}-{DAY}:1".encode())
    assert is_about(left, (day + DAY) * 1000 - now // 1000)
    rates = [[5, HOUR], [9, period_word("UTC", "month", now // S)], rate]
    reply, left, value = decided(scripts, "k", rates, now, cost=2)
    hour = 1_795_348_800
    ends = [(hour + 3600) * S - now, (month + 30 * DAY) * S - now, (day + DAY) * S - now]
    assert reply[0] == 1 and reply[1::3] == [0, 0, 1] and reply[3::3] == ends
    assert value == f"w1795349360000007:2 m{month}-{30 * DAY}:2 d{day}-{DAY}:3".encode()
    assert is_about(left, (month + 30 * DAY) * 1000 - now // 1000)
    reply, _, after = decided(scripts, "k", [rate], now)
    assert reply == [0, 3, ends[2], ends[2]] and after == value, "what is refused writes nothing"


def test_redis_clock_picks(scripts):
    """weir's clock may be wrong by a whole window: the script counts in the window of Redis' clock.
    """
    for name, kind in (("Europe/Berlin", "day"), ("Pacific/Apia", "week"), ("UTC", "month")):
        start, over = bounds(name, kind, 1_790_000_000)[1:3]
        for now in (start * S, start * S + 1, over * S - 1):
            for off in (-(over - start), -3600, -1, 0, 1, 3600, over - start):
                key = f"{name} {kind} {now} {off}"
                theirs = [2, period_word(name, kind, now // S + off)]
                assert decided(scripts, key, [theirs], now)[0] == [1, 0, 0, over * S - now]
                exact = [2, period_word(name, kind, now // S)]
                assert decided(scripts, key, [exact], now)[0] == [1, 1, over * S - now, over * S - now]
                assert decided(scripts, key, [theirs], now)[0] == [0, 2, over * S - now, over * S - now]


def test_clocks_far_apart(scripts):
    now = 1_790_000_000
    for off in (-3 * DAY, 3 * DAY):
        for peek in (False, True):
            reply, _, value = decided(scripts, "k", [[2, period_word("UTC", "day", now + off)]], now * S, peek=peek)
            assert (reply, value) == (FAR, None)


def test_a_day_of_23_hours_and_one_of_25(scripts):
    for date, hours in ((datetime.date(2026, 3, 29), 23), (datetime.date(2026, 10, 25), 25)):
        start = first_at("Europe/Berlin", midnight_of(date))
        ask = lambda t: decided(scripts, str(date), [[1, period_word("Europe/Berlin", "day", t)]], t * S)
        assert ask(start)[0] == [1, 0, hours * HOUR, hours * HOUR]
        assert ask(start + hours * 3600 - 1)[0] == [0, 1, S, S]
        assert ask(start + hours * 3600)[0][:2] == [1, 0]
        assert ask(start + hours * 3600 + DAY - 1)[0][0] == 0, "the next one has 24"


def test_a_clock_that_goes_back(scripts):
    """A clock goes back. By a moment: the next window stays, and counts. By more: the call counts
    in the present window, or the key would stay locked.
    """
    start = 1_790_035_200  # a midnight
    ask = lambda t, **more: decided(scripts, "k", [[2, period_word("UTC", "day", t)]], t * S, **more)
    assert [ask(start)[0][0] for _ in range(3)] == [1, 1, 0]
    reply, left, value = ask(start - 1)
    assert (reply, value) == ([0, 2, (DAY + 1) * S, (DAY + 1) * S], f"wd{start}-{DAY}:2".encode())
    back = start - DAY - 1
    assert ask(back, peek=True)[0][:2] == [0, 2]
    reply, left, value = ask(back)
    assert (reply, value) == ([0, 2, S, S], f"wd{start - 2 * DAY}-{DAY}:2".encode()) and is_about(left, 1000)
    assert ask(back + 1)[0][:2] == [1, 0]


def test_zones_beside_each_other(scripts):
    """Each zone has windows of its own on one key, and other rates have theirs."""
    now = 1_790_000_000
    rates = [[1, period_word(name, "day", now)] for name in ("UTC", "Europe/Berlin", "Asia/Tokyo")]
    rates.append([1, DAY * S])
    for rate in rates:
        assert decided(scripts, "k", [rate], now * S)[0][:2] == [1, 0]
        assert decided(scripts, "k", [rate], now * S)[0][:2] == [0, 1]
    for rate in rates:
        assert decided(scripts, "k", [rate], now * S)[0][:2] == [0, 1]


def windows_of(value):
    """Returns what is stored: (what, start, end) in s, and the count."""
    found = {}
    for word in (value or b"w").decode()[1:].split():
        start, count = word.split(":")
        what, length = int(start[-2 - int(start[-2:]) : -2] if start[0].isdigit() else 0) // 1000, 0
        if start[0].isalpha():
            what, start, length = start[0], *map(int, start[1:].split("-"))
        else:
            start, length = int(start) // S // what * what, what
        found[what, start, start + length] = int(count)
    return found


class Model:
    """A model: windows as a dictionary, and the effect of each call."""

    def __init__(self):
        self.counts = {}  # (what, start, end) in s: count; `what` is a letter, or a period

    def see(self, now, calendars):
        """Returns the windows as of `now`, the window of each requested kind, and whether any
        window was moved back.
        """
        kept, named, brought = {}, {}, False
        for (what, start, over), count in self.counts.items():
            # the beginnings of the present and the next window, and the end of the next
            begins = calendars.get(what)
            if begins and start >= begins[2]:
                start, over, brought = begins[0], begins[1], True
            if over <= now:
                continue
            window = (what, start, over)
            if begins and (start, over) in zip(begins, begins[1:]):
                window = named.setdefault(what, window)
            kept[window] = max(kept.get(window, 0), count)
        return kept, named, brought

    def call(self, now, rates, cost, n, how):
        """Returns how many of n calls passed (None: too many windows), the usage of each rate
        before and after, and the end of its window.
        """
        periods = {what for what, _, _ in self.counts if isinstance(what, int)}
        calendars = {p: [now - now % p + i * p for i in range(3)] for p in periods}
        calendars |= {what: begins for _, what, begins in rates}
        kept, named, brought = self.see(now, calendars)
        names = [named.get(what, (what, *begins[:2])) for _, what, begins in rates]
        used = [kept.get(name, 0) for name in names]
        granted = n
        if "f" not in how:
            for (count, _, _), u in zip(rates, used):
                granted = max(0, min(granted, (count - u) // cost))
        after = dict(kept)
        for name in set(names):
            after[name] = max(0, after.get(name, 0) + granted * cost)
        if "a" in how:
            for (count, _, _), name, u in zip(rates, names, used):
                after[name] = max(after[name], min(u + n * cost, count))
        changes = brought or any(after[name] != u for name, u in zip(names, used))
        after = {name: count for name, count in after.items() if count}
        if how[0] == "1" or not changes:
            return granted, used, used, [name[2] for name in names]
        if len(after) > MOST:
            return None, used, used, []
        self.counts = after
        return granted, used, [after.get(name, 0) for name in names], [name[2] for name in names]


@pytest.mark.parametrize("seed", range(rounds(10)))
def test_scripts_do_what_the_model_does(scripts, seed):
    """Calendars of several zones and plain periods on one key, with any options. weir's clock is
    wrong, and Redis' clock steps back and forth.
    """
    rng = random.Random(f"calendar {seed}")
    model, now = Model(), rng.randrange(year(1990), year(2060))
    zones = rng.sample(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Pacific/Apia"], 2)
    for _ in range(120):
        name = rng.choice(zones)
        rates, sent = [], []
        for _ in range(rng.choice([1, 1, 2, 3])):
            count = rng.randint(1, 12)
            if rng.random() < 0.3:
                period = rng.choice([60, 3600, DAY])
                rates.append((count, period, [now - now % period + i * period for i in range(3)]))
                sent.append([count, period * S])
            else:
                kind = rng.choice(list(KINDS))
                rates.append((count, kind[0], bounds(name, kind, now)[1:4]))
                sent.append([count, period_word(name, kind, now + rng.choice([0, 0, 0, -DAY // 2, DAY // 2]))])
        how = rng.choice(["0", "0", "0", "0", "1", "0f", "0a"])
        cost, n = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2])
        if how == "0f" and rng.random() < 0.5:
            cost = -cost
        reply, left, value = decided(scripts, "k", sent, now * S, cost, n, how=how)
        granted, used, totals, overs = model.call(now, rates, cost, n, how)
        story = (seed, now, how, cost, n, sent, reply, value, model.counts)
        if granted is None:
            assert reply[0] == MANY, story
        else:
            assert reply[0] == granted and reply[1::3] == used, story
            for (count, _, _), total, over, retry, reset in zip(rates, totals, overs, reply[2::3], reply[3::3]):
                rest = over - now
                assert reset == (rest * S if total else 0), story
                assert retry == (-1 if cost > count else rest * S if total + cost > count else 0), story
        assert windows_of(value) == model.counts, story
        if left > 0 and model.counts:
            assert is_about(left, max(over for _, _, over in model.counts) * 1000 - now * 1000), story
        now += rng.choice([0, 0, 0, 1, 1800, 3600, DAY // 2, DAY, -1, -3600, -DAY, -3 * DAY, 9 * DAY, 40 * DAY])


# ---- through weir ----

LIMITS = """
[limit plan]
fixed = 3/month, 2/day
tz = Europe/Berlin
[limit plain]
fixed = 2/Week
[policy operators]
match = name:operator
admin = yes
[admin]
socket = {folder}/operator.sock
"""


@pytest.fixture
def weir(farm, redis):
    return farm.weir(redis, workers=2, sections=LIMITS, identity="name, ip")


def stored(redis, key):
    """Returns the calendar windows of a key."""
    return redis.call("GET", key).decode()[1:].split()


def now_at(name, kind):
    """Returns start and length of the present window, as stored, and the ms until its end."""
    t = datetime.datetime.now(datetime.timezone.utc).timestamp()
    start, over = bounds(name, kind, int(t))[1:3]
    return f"{kind[0]}{start}-{over - start}", over * 1000 - t * 1000


def test_over_the_wire(weir, redis):
    key = fresh()
    with weir.connect() as conn:
        ended = now_at("UTC", "month")
        found = decisions(conn, *[f"LIMIT FIXED {key} 2/month"] * 3)
        assert [f[:4] for f in found[:2]] == [(0, 2, 1, -1), (0, 2, 0, -1)]
        assert found[2][:3] == (1, 2, 0) and abs(found[2].retry - ended[1]) < 10_000
        assert abs(found[0].reset - ended[1]) < 10_000
        if ended[0] == now_at("UTC", "month")[0]:
            assert stored(redis, f"limit:{key}") == [f"{ended[0]}:2"]
        key = fresh()
        wanted = {now_at("Europe/Berlin", kind)[0] for kind in ("month", "day")}
        assert [f[:3] for f in decisions(conn, *[f"LIMIT CHECK plan {key}"] * 3)] == [(0, 2, 1), (0, 2, 0), (1, 2, 0)]
        if wanted == {now_at("Europe/Berlin", kind)[0] for kind in ("month", "day")}:
            assert {word.split(":")[0] for word in stored(redis, f"limit:plan:{key}")} == wanted
        assert decide(conn, f"LIMIT CHECK plain {key}")[:3] == (0, 2, 1)
        assert decide(conn, f"LIMIT CHECK plain {key} PEEK")[:3] == (0, 2, 1)
        assert decide(conn, f"LIMIT CHECK plain {key} CREDIT 1")[:3] == (0, 2, 2)
        assert decide(conn, f"LIMIT FIXED {fresh()} 1/DAY 5/1d")[:3] == (0, 1, 0)


def test_several_keys_are_all_or_nothing_each_in_its_own_calendar(weir, redis):
    """Several keys are charged all or none, each in its own calendar."""
    key = fresh()
    with weir.connect() as conn:
        command = f"LIMIT CHECK plan {key} AND plain {key} COST 2"
        replies = conn.ask(*[command] * 2, f"LIMIT ALL FIXED {key} 1/month AND FUNNEL {key}:f 9/d AND FIXED {key}:x 5/day")
        assert [reply[0] for reply in replies] == [0, 1, 0] and replies[1][-1] == b"plain"
        for limit, zone, kinds in (("plan", "Europe/Berlin", ("month", "day")), ("plain", "UTC", ("week",))):
            found = stored(redis, f"limit:{limit}:{key}")
            assert {word[0] for word in found} == {kind[0] for kind in kinds}
            assert {word.split(":")[0] for word in found} == {now_at(zone, kind)[0] for kind in kinds}
        assert decide(conn, f"LIMIT FIXED {key} 1/month").limited == 1


@pytest.mark.parametrize(
    "command, why",
    [
        ("FUNNEL k 5/month", "day, week and month are for FIXED, not funnel"),
        ("BUCKET k 5/day BURST 2", "day, week and month are for FIXED, not bucket"),
        ("SLIDING k 5/week", "day, week and month are for FIXED, not sliding"),
        ("SLIDING k 5/week APPROX", "day, week and month are for FIXED, not approx"),
        ("FIXED k 5/1month", '"5/1month": a period of the calendar has no number: write COUNT/month'),
        ("FIXED k 5/days", '"5/days": a period of the calendar has no number: write COUNT/day'),
        ("FIXED k 0/day", "a rate of 0 never lets anything pass: give at least 1"),
        ("FIXED k 0.5/day", '"0.5" is not a count: write a whole number, or one with k, m or g (10k)'),
        ("FIXED k 5/day FROM FIRST", "FROM FIRST excludes day, week and month, which have fixed starts"),
        ("FIXED k 5/year", '"year" is not a time: write ms, s, m, h or d, or a number of them (60s)'),
    ],
)
def test_what_it_does_not_take(kept, command, why):
    with kept(workers=2, sections=LIMITS, identity="name, ip").connect() as conn:
        assert conn.call("LIMIT", *command.split()) == Error(f"ERR {why}")


def test_list_and_set(weir, redis):
    def rows():
        found = plain(order(weir, "LIST"))
        found = [row if isinstance(row, dict) else dict(zip(row[::2], row[1::2])) for row in found]
        return {row["limit"]: (row["rate"], row["tz"]) for row in found if "asked" in row}

    assert rows() == {"plan": ("3/month, 2/day", "Europe/Berlin"), "plain": ("2/Week", "UTC")}
    refused = order(weir, "SET", "LIMIT", "plan", "tz", "Asia/Tokio")
    assert isinstance(refused, Error) and "did you mean Asia/Tokyo?" in str(refused)
    assert order(weir, "SET", "LIMIT", "plan", "tz", "Asia/Tokyo") == "OK"
    assert order(weir, "SET", "LIMIT", "plain", "fixed", "5/day,", "7/month") == "OK"
    assert rows() == {"plan": ("3/month, 2/day", "Asia/Tokyo"), "plain": ("5/day, 7/month", "UTC")}
    key = fresh()
    assert order(weir, *f"SET LIMIT plan fixed = 9/week FOR {key}".split()) == "OK"
    with weir.connect() as conn:
        begun = now_at("Asia/Tokyo", "week")[0]
        assert decide(conn, f"LIMIT CHECK plan {key}")[:3] == (0, 9, 8), "a key's own rates are in the limit's zone"
        assert f"{begun}:1" in stored(redis, f"limit:plan:{key}")
    told = str(plain(order(weir, "DIFF")))
    assert "tz" in told and "Asia/Tokyo" in told and "Europe/Berlin" in told and "5/day, 7/month" in told


@pytest.mark.parametrize(
    "lines, why",
    [
        ("fixed = 3/month\ntz = Europe/Berln", 'tz: unknown time zone "Europe/Berln" (did you mean Europe/Berlin?)'),
        ("fixed = 3/month\ntz = ../../etc/passwd", "tz: unknown time zone"),
        ("fixed = 3/month\ntz = UTC\ntz = UTC", "tz: given twice"),
        ("fixed = 3/30d\ntz = UTC", "tz needs a rate by the calendar"),
        ("funnel = 3/month", "day, week and month are for FIXED, not funnel"),
        ("tz = UTC", "the limit has no rate"),
    ],
)
def test_mistakes_of_the_file(tmp_path, lines, why):
    (tmp_path / "weir.conf").write_text(f"[weir]\nlisten = 127.0.0.1:0\n[limit x]\n{lines}\n")
    done = run_weir("-t", "-c", tmp_path / "weir.conf")
    assert done.returncode == 1 and why in done.stdout + done.stderr, (done.stdout, done.stderr)
    assert "weir.conf:" in done.stdout + done.stderr


def test_a_reload_reads_zones_anew(farm, redis, tmp_path):
    """The database has changed under the same name. Counts in other windows stay in those windows.
    """
    theirs = next(folder for folder in zoneinfo.TZPATH if os.path.exists(f"{folder}/Etc/UTC"))
    shutil.copy(f"{theirs}/Pacific/Kiritimati", tmp_path / "Home")
    limits = "[limit plan]\nfixed = 1/day\ntz = Home\n"
    weir = farm.weir(redis, sections=limits, env={"TZDIR": str(tmp_path)})
    key = fresh()
    with weir.connect() as conn:
        assert [f.limited for f in decisions(conn, *[f"LIMIT CHECK plan {key}"] * 2)] == [0, 1]
        shutil.copy(f"{theirs}/Etc/GMT+11", tmp_path / "Home")
        assert signal_reload(weir)
        assert decide(conn, f"LIMIT CHECK plan {key}").limited == 0
        assert {word.split(":")[0] for word in stored(redis, f"limit:plan:{key}")} >= {now_at("Etc/GMT+11", "day")[0]}
        (tmp_path / "Home").unlink()
        assert not signal_reload(weir), "the one that runs stays"
        assert decide(conn, f"LIMIT CHECK plan {key}").limited == 1
        shutil.copy(f"{theirs}/Pacific/Kiritimati", tmp_path / "Home")
        assert signal_reload(weir)
        assert decide(conn, f"LIMIT CHECK plan {key}").limited == 1, "to and fro forgets nothing"


def test_while_redis_is_away(farm):
    redis = farm.redis()
    sections = "[limit own]\nfixed = 2/month, 9/day\ntz = Asia/Kathmandu\nwhen-down = local\n"
    weir = farm.weir(redis, workers=2, sections=sections, when_upstream_down="error")
    with weir.connect() as conn:
        redis.kill()
        wait_until(lambda: conn.call("PING") != b"PONG", "weir sees it")
        _, left = now_at("Asia/Kathmandu", "month")
        found = [decide(conn, "LIMIT CHECK own k") for _ in range(3)]
        assert [f[:3] for f in found] == [(0, 2, 1), (0, 2, 0), (1, 2, 0)]
        assert abs(found[2].retry - left) < 10_000
