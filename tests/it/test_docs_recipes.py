"""Runs docs/recipes.md as printed: each old way with its flaw, and the LIMIT call that replaces it
without the flaw.

The code is taken from the page. The first block of a recipe is the old way, the second block the
new one.
"""

import datetime
import inspect
import json
import os
import re
import subprocess
import threading
import time
import zoneinfo

import pytest
import redis as redis_py
from kit.harness import NODE_SOURCES, REPO, wait_until
from kit.transcript import File, story

PAGE = "docs/recipes.md"
INTRODUCTION, LIBRARIES = "Recipes", "From your library"


def blocks():
    """Returns {heading: its blocks of Python}."""
    text = (REPO / PAGE).read_text()
    parts = re.split(r"^##? (.+)$", text, flags=re.M)[1:]
    return {name: re.findall(r"^```python\n(.*?)^```", body, re.M | re.S) for name, body in zip(parts[::2], parts[1::2])}


BLOCKS = blocks()
WINDOW_5 = "At most 5 replies in 60 s: a sorted set in "
IN_PIPELINE, IN_MULTI, IN_LUA = WINDOW_5 + "a pipeline", WINDOW_5 + "MULTI", WINDOW_5 + "Lua"
TWO_KEYS = "A counter with DECR, and a second key for its time"
EACH_MINUTE = "A counter for each minute"
HASH = "A token bucket in a hash"
MEMORY = "A funnel in the memory of one process"
QUEUE = "A leaky bucket that queues"
GUAVA = "Guava's acquire with a timeout"
POLLING = "Polling every 100 ms until allowed"
CELL = "redis-cell"
RUNNING = "A counter of what is running"
LOGINS = "Logins, by user and by address"
PLAN = "A plan with so many calls a month"


class Clock:
    """Replaces the module time: stands still except for sleep() and for steps of a test."""

    def __init__(self, now=1_800_000_000.0):
        self.now = now
        self.slept = []

    def time(self):
        return self.now

    monotonic = time

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


class Names:
    """The names that a block defines: one process that has just started."""

    def __init__(self, code, clock=None):
        vars(self)["all"] = {}
        exec(code, self.all)
        if clock:
            self.all["time"] = clock

    def __getattr__(self, name):
        return self.all[name]


def old(name, clock=None):
    return Names(BLOCKS[name][0], clock)


def new(name):
    return Names(BLOCKS[INTRODUCTION][0] + BLOCKS[name][-1])


class Killed(Exception):
    """The process has ended here."""


def die():
    raise Killed


class Interrupted(redis_py.Redis):
    """A client with an interruption just before its nth request to Redis."""

    def set_up(self, n, happen):
        self.left, self.happen = n, happen
        return self

    def asks(self):
        self.left -= 1
        if self.left == 0:
            self.happen()

    def execute_command(self, *args, **options):
        self.asks()
        return super().execute_command(*args, **options)

    def pipeline(self, transaction=True, shard_hint=None):
        pipe = super().pipeline(transaction, shard_hint)
        execute = pipe.execute

        def asks_and_executes(*args, **kwargs):
            self.asks()
            return execute(*args, **kwargs)

        pipe.execute = asks_and_executes
        return pipe


@pytest.fixture
def direct(redis):
    """A client of Redis itself."""
    with redis_py.Redis(*redis.address) as client:
        yield client


@pytest.fixture
def interrupted(redis):
    """interrupted(n, happen): a client of Redis itself, see Interrupted."""
    clients = []

    def make(n, happen):
        clients.append(Interrupted(*redis.address).set_up(n, happen))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def weir(redis, shared_weirs):
    weir = shared_weirs((2, "shared"))
    with weir.connect() as conn:
        # refusals of the test before are remembered for a second
        conn.call("LIMIT", "RESET", "any")
    return weir


@pytest.fixture
def r(weir):
    """A client of weir."""
    with redis_py.Redis(*weir.address) as client:
        yield client


def admitted(n, allowed, *args):
    """Returns how many of n calls are allowed."""
    return sum(allowed(*args) for _ in range(n))


def at_once(n, call):
    """Returns the results of n calls from n threads."""
    results = []
    threads = [threading.Thread(target=lambda: results.append(call())) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == n
    return results


def seconds_in_redis(client):
    s, us = client.time()
    return s + us / 1e6


def admissions(client, n, allowed):
    """Asks until n calls are allowed. Returns when each of these was asked and answered, on Redis'
    clock.
    """
    found = []
    while len(found) < n:
        asked = seconds_in_redis(client)
        if allowed():
            found.append((asked, seconds_in_redis(client)))
    return found


def assert_bounded(found, count, period):
    for first, last in zip(found, found[count:]):
        assert last[1] - first[0] >= period, f"{count + 1} within {last[1] - first[0]} s"


def scripts_called(redis):
    return int(re.search(rb"cmdstat_evalsha:calls=(\d+)", redis.call("INFO", "commandstats"))[1])


# ---- the page ----


def test_every_recipe_is_run():
    source = open(__file__, encoding="utf-8").read()
    for name, code in BLOCKS.items():
        assert len(code) == (1 if name in (INTRODUCTION, LIBRARIES) else 2), name
        constants = [word for word, value in globals().items() if value == name and word.isupper()]
        assert any(re.search(rf"\b(old|new)\({word}\b", source) for word in constants) or name == INTRODUCTION, name


def test_a_decision_is_five_integers(r):
    ask = Names(BLOCKS[INTRODUCTION][0]).ask
    assert ask(r, "SLIDING", "k", "1/60s") == [0, 1, 0, -1, 60_000]
    limited, limit, remaining, retry_after_ms, reset_after_ms = ask(r, "SLIDING", "k", "1/60s")
    assert (limited, limit, remaining) == (1, 1, 0) and 0 < retry_after_ms <= reset_after_ms <= 60_000


def test_the_calls_of_the_table_are_right(r):
    table = re.findall(r"^\| [^|]+ \| `((?:LIMIT|CL)[^`]+)`", (REPO / PAGE).read_text(), re.M)
    assert len(table) == len(BLOCKS) - 4  # one call replaces the sorted set in all its forms
    for i, call in enumerate(table):
        assert r.execute_command(*call.replace(" key ", f" key:{i} ").split())[0] == 0, call


# ---- a sorted set ----


def test_two_pipelines_both_see_four(direct, interrupted, r):
    allowed = old(IN_PIPELINE, clock := Clock()).allowed
    for _ in range(4):
        assert allowed(direct, "ann")
        clock.now += 1
    answers = []

    def another_process():
        clock.now += 0.01
        answers.append(allowed(direct, "ann"))

    assert allowed(interrupted(2, another_process), "ann") and answers == [True]  # the sixth
    assert direct.zcard("replies:ann") == 6

    allowed = new(IN_PIPELINE).allowed
    assert admitted(4, allowed, r, "ann") == 4
    assert sum(at_once(20, lambda: allowed(r, "ann"))) == 1


def test_two_in_one_millisecond_are_one_member(direct, r):
    allowed = old(IN_PIPELINE, Clock()).allowed
    assert admitted(100, allowed, direct, "ann") == 100
    assert direct.zcard("replies:ann") == 1

    allowed = new(IN_PIPELINE).allowed
    assert admitted(100, allowed, r, "ann") == 5
    assert r.zcard("limit:replies:ann") == 5


def test_in_multi_refused_calls_are_counted(direct, r):
    allowed = old(IN_MULTI, clock := Clock()).allowed
    assert admitted(5, allowed, direct, "ann") == 5
    for _ in range(60):  # every ten seconds, for ten minutes
        clock.now += 10
        assert not allowed(direct, "ann")
    for _ in range(100):
        assert not allowed(direct, "ann")
    assert direct.zcard("replies:ann") > 100

    allowed = new(IN_MULTI).allowed
    found = admissions(r, 12, lambda: allowed(r, "ann", "5/300ms"))  # the client tries all the time
    assert_bounded(found, 5, 0.3)
    assert r.zcard("limit:replies:ann") <= 5


def test_in_lua_a_fast_clock_forgets_what_others_count(direct, r):
    here, there = old(IN_LUA, clock := Clock()), old(IN_LUA, fast := Clock())
    fast.now += 61
    sha = here.load(direct)
    for _ in range(5):
        clock.now += 0.01
        assert here.allowed(direct, sha, "ann")
    clock.now += 0.01
    assert not here.allowed(direct, sha, "ann")
    assert there.allowed(direct, sha, "ann")
    assert direct.zcard("replies:ann") == 1
    assert admitted(9, there.allowed, direct, sha, "ann") == 9  # in one millisecond

    allowed = new(IN_LUA).allowed
    assert admitted(10, allowed, r, "ann") == 5


def test_in_lua_a_flush_of_scripts_fails_every_call(direct, r):
    names = old(IN_LUA, Clock())
    sha = names.load(direct)
    assert names.allowed(direct, sha, "ann")
    direct.script_flush()
    with pytest.raises(redis_py.exceptions.NoScriptError):
        names.allowed(direct, sha, "ann")

    allowed = new(IN_LUA).allowed
    answers = []
    for _ in range(8):
        answers.append(allowed(r, "ann"))
        direct.script_flush()
    assert answers == [True] * 5 + [False] * 3


# ---- counters ----


def test_two_keys_get_stuck_without_expiry(direct, interrupted, r):
    allowed = old(TWO_KEYS).allowed
    with pytest.raises(Killed):
        allowed(interrupted(3, die), "ann")  # before its EXPIRE
    assert direct.ttl("started:ann") == -1
    # The first permit comes at once, and the next one pays for it. From cold, the first ten of
    # fifty a second cost 0.52 s instead of 0.2.
    assert admitted(10, allowed, direct, "ann") == 5
    assert direct.ttl("left:ann") == -1

    allowed = new(TWO_KEYS).allowed
    assert 1 <= admitted(20, allowed, r, "ann") <= 10  # a minute may end meanwhile
    (key,) = r.keys("*replies:ann")
    assert 0 < r.pttl(key) <= 60_000
    assert allowed(r, "bob", "5/50ms")
    wait_until(lambda: not r.exists("limit:replies:bob"), "the counter has expired")


def test_a_counter_for_each_minute_passes_twice_as_many_at_the_boundary(direct, r):
    allowed = old(EACH_MINUTE, clock := Clock(60 * 30_000_000 - 0.1)).allowed
    assert admitted(6, allowed, direct, "ann") == 5
    clock.now += 0.1
    assert admitted(6, allowed, direct, "ann") == 5

    allowed = new(EACH_MINUTE).allowed
    wait_until(lambda: seconds_in_redis(r) % 0.5 > 0.4, "the end of a window")
    assert_bounded(admissions(r, 11, lambda: allowed(r, "ann", "5/500ms")), 5, 0.5)


# ---- buckets and funnels ----


def test_two_processes_take_the_same_token_from_a_hash(direct, interrupted, r):
    allowed = old(HASH, Clock()).allowed
    assert admitted(19, allowed, direct, "ann") == 19
    answers = []
    assert allowed(interrupted(2, lambda: answers.append(allowed(direct, "ann"))), "ann")
    assert answers == [True]  # and that was also the twentieth
    assert direct.ttl("bucket:ann") == -1

    allowed = new(HASH).allowed
    assert admitted(19, allowed, r, "ann", "1/h") == 19
    assert sum(at_once(20, lambda: allowed(r, "ann", "1/h"))) == 1
    assert allowed(r, "bob")
    wait_until(lambda: not r.exists("limit:bucket:bob"), "the bucket is full again")


def test_a_funnel_in_memory_is_lost_with_its_process(redis, farm):
    one, two = old(MEMORY, Clock()), old(MEMORY, Clock())
    assert admitted(20, one.allowed, "ann") == 15
    assert admitted(20, two.allowed, "ann") == 15  # another process
    assert admitted(20, old(MEMORY, Clock()).allowed, "ann") == 15  # the first process, restarted

    allowed = new(MEMORY).allowed

    def through_a_new_weir(n):
        weir = farm.weir(redis, workers=1)
        with redis_py.Redis(*weir.address) as client:
            count = admitted(n, allowed, client, "ann", "1/h")
        weir.stop()
        return count

    assert through_a_new_weir(10) == 10
    assert through_a_new_weir(20) == 5


def test_two_callers_get_the_same_turn(direct, interrupted, weir):
    names = old(QUEUE, clock := Clock())
    names.wait_for_turn(direct, "mail")

    def another_process():
        before = clock.now
        names.wait_for_turn(direct, "mail")
        clock.now = before

    clock.slept.clear()
    names.wait_for_turn(interrupted(2, another_process), "mail")
    assert clock.slept[0] == clock.slept[1] == pytest.approx(0.1)

    turns = []  # scheduled times of callers that come at once
    for _ in range(1000):
        before = clock.now
        names.wait_for_turn(direct, "mail")
        clock.now = before
        turns.append(clock.slept[-1])
    assert turns[-1] > 99

    wait_for_turn = new(QUEUE).wait_for_turn
    done = []

    def turn():
        with redis_py.Redis(*weir.address) as client:
            goes = wait_for_turn(client, "mail", "20/s", 200)
            done.append(time.monotonic())
            return goes

    start = time.monotonic()
    answers = at_once(20, turn)
    spent = max(done) - start
    # At most one each 50 ms. A caller that would have waited more than 200 ms got a refusal.
    assert 5 <= sum(answers) <= 1 + (spent + 0.2) * 20
    assert not all(answers)


def test_guavas_limiter_knows_its_own_machine_only(weir):
    machines = [old(GUAVA, Clock()) for _ in range(8)]
    # at 10/s, at the same moment
    assert sum(machine.limiter.try_acquire(0) for machine in machines) == 8
    assert not any(machine.limiter.try_acquire(0) for machine in machines)
    assert machines[0].limiter.try_acquire(0.5)

    try_acquire = new(GUAVA).try_acquire

    def machine(timeout_ms):
        with redis_py.Redis(*weir.address) as client:
            return try_acquire(client, "orders", "1/h", timeout_ms)

    assert sum(at_once(8, lambda: machine(0))) == 1
    assert sum(at_once(8, lambda: machine(500))) == 0

    with redis_py.Redis(*weir.address) as client:
        start = time.monotonic()
        for _ in range(4):
            assert try_acquire(client, "mails", "10/s", 500)
        assert time.monotonic() - start >= 0.299  # three calls waited


def test_guavas_acquire_borrows_and_warms_up(r):
    """At once what the next one pays for; cold, the first ten of fifty a second cost 0.52 s instead
    of 0.2.
    """
    acquire = new(GUAVA).acquire
    for name, more, least in (("stable", (), 0.2), ("cold", ("WARMUP", "1s"), 0.52)):
        start = time.monotonic()
        acquire(r, name, 10, "50/s", *more)
        acquire(r, name, 1, "50/s", *more)
        assert time.monotonic() - start >= least - 0.002


def test_polling_asks_all_the_time_and_has_no_order(redis, direct, r, weir):
    clock = Clock()
    bucket, polling = old(HASH, clock), old(POLLING, clock)
    asked, newcomers = [], []
    clock.now += 0.06
    assert bucket.allowed(direct, "ann", 0.51, 1)  # one in almost two seconds
    clock.now -= 0.06

    def newcomer_comes_meanwhile(seconds):
        clock.now += seconds / 2
        newcomers.append(bucket.allowed(direct, "ann", 0.51, 1))
        clock.now += seconds / 2

    def ask():
        asked.append(bucket.allowed(direct, "ann", 0.51, 1))
        return asked[-1]

    clock.sleep = newcomer_comes_meanwhile
    assert not polling.wait_until_allowed(ask, 5)
    assert len(asked) >= 49 and sum(newcomers) == 2

    wait_until_allowed = new(POLLING).wait_until_allowed
    assert wait_until_allowed(r, "api")
    before = scripts_called(redis)
    first = direct.get("limit:calls:api")
    waiter = threading.Thread(target=lambda: asked.append(wait_until_allowed(r, "api")))
    waiter.start()
    wait_until(lambda: direct.get("limit:calls:api") not in (None, first), "the waiter's turn is reserved")
    assert not wait_until_allowed(r, "api", timeout_ms=0)
    waiter.join()
    assert asked[-1]
    assert scripts_called(redis) - before == 2  # the waiter's and the newcomer's


# ---- a module, and permits ----


def test_cell_needs_no_module(direct, r):
    with pytest.raises(redis_py.ResponseError, match="unknown command"):
        old(CELL).allowed(direct, "ann")

    assert BLOCKS[CELL][0] == BLOCKS[CELL][1]  # the same line
    assert admitted(20, new(CELL).allowed, r, "ann") == 16
    assert r.execute_command("CL.THROTTLE", "replies:ann", 15, 30, 60)[:2] == [1, 16]
    assert direct.get("limit:replies:ann").isdigit() and not direct.exists("replies:ann")


def test_a_counter_of_what_is_running_never_forgets_the_dead(direct, r):
    run = old(RUNNING).run
    for _ in range(3):
        with pytest.raises(Killed):
            run(direct, "import", die)
    assert not run(direct, "import", int)
    assert direct.ttl("running:import") == -1

    run = new(RUNNING).run
    for _ in range(3):
        with pytest.raises(Killed):
            run(r, "import", die, 300)
    wait_until(lambda: run(r, "import", int, 300), "the places of the dead are free")
    wait_until(lambda: not r.exists("limit:running:import"), "nothing is left")


def test_logins_are_counted_though_refused_by_the_address(direct, r):
    may_log_in = old(LOGINS).may_log_in
    assert admitted(60, lambda: may_log_in(direct, f"user{os.urandom(4).hex()}", "10.1.2.3")) == 50
    assert admitted(5, may_log_in, direct, "ann", "10.1.2.3") == 0
    assert not may_log_in(direct, "ann", "10.9.9.9")

    names = new(LOGINS)
    assert admitted(60, lambda: names.may_log_in(r, f"user{os.urandom(4).hex()}", "10.1.2.3")) == 50
    assert admitted(5, names.may_log_in, r, "ann", "10.1.2.3") == 0
    assert admitted(6, names.may_log_in, r, "ann", "10.9.9.9") == 5
    refused = names.ask(r, "ALL", "SLIDING", "logins:user:ann", "5/10m", "AND", "SLIDING", "logins:ip:10.9.9.9", "50/10m", "PEEK")
    assert refused[5] == b"logins:user:ann" and 540_000 < refused[3] <= 600_000
    held = [names.ask(r, "SLIDING", f"logins:{who}", "1000/m", "PEEK")[3] for who in ("user:ann", "ip:10.1.2.3")]
    assert all(59_000 < ms <= 60_000 for ms in held), "each has its penalty"
    names.logged_in(r, "ann")
    assert names.may_log_in(r, "ann", "10.9.9.9")


def test_a_month_is_redis_and_the_zones(redis, farm, direct):
    (plan,) = re.findall(r"^```ini\n(\[limit plan\]\n.*?)^```", (REPO / PAGE).read_text(), re.M | re.S)
    with redis_py.Redis(*farm.weir(redis, sections=plan).address) as client:
        names = new(PLAN)
        assert names.left(client, "ann") == (1000, 0)
        assert admitted(1010, names.allowed, client, "ann") == 1000
        left, until_ms = names.left(client, "ann")
        (key,) = direct.keys("limit:plan:ann")
        assert left == 0 and 0 < direct.pttl(key) - until_ms + 1000 < 2000
        now_s = direct.time()[0]
        ends = datetime.datetime.fromtimestamp(now_s + until_ms / 1000 + 1, zoneinfo.ZoneInfo("Europe/Berlin"))
        assert (ends.day, ends.hour, ends.minute) == (1, 0, 0)

    class Months:
        """Two machines at the turn of a month."""

        names = ["2026-11", "2026-12"] * 5

        @property
        def datetime(self):
            return self

        now = lambda self: self
        strftime = lambda self, form: self.names.pop()

    names = old(PLAN)
    names.all["datetime"] = Months()
    assert admitted(10, names.allowed, direct, "ann", 3) == 6


# ---- libraries ----

NODE_CASES = {
    "ioredis": {"by itself": {}, "RESP2": {"protocol": 2}, "RESP3": {"protocol": 3, "replyMapping": "resp3"}},
    "redis": {"by itself": {}, "RESP2": {"RESP": 2}, "RESP3": {"RESP": 3}},
}


@pytest.mark.parametrize("library, case", [(library, case) for library in NODE_CASES for case in NODE_CASES[library]])
def test_node_recipes_do_what_the_page_says(library, case, weir, node_modules, tmp_path):
    (code,) = [step.text for step in story(PAGE) if isinstance(step, File) and step.name == f"limits-{library}.js"]
    (tmp_path / "limits.js").write_text(code)
    options = json.dumps(NODE_CASES[library][case])
    argv = ["node", NODE_SOURCES / "limits.js", str(weir.address[1]), library, tmp_path / "limits.js", options]
    env = {**os.environ, "NODE_PATH": str(node_modules)}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("ok in a transaction it is an error\n")


def py_clients(weir):
    """A client for each protocol that this redis-py speaks."""
    protocols = [{}]
    if "protocol" in inspect.signature(redis_py.Redis).parameters:
        protocols += [{"protocol": 2}, {"protocol": 3}]
    return [redis_py.Redis(*weir.address, **protocol) for protocol in protocols]


def test_py_recipes_do_what_the_page_says(weir):
    allowed_all = new(LIBRARIES).allowed_all
    for i, client in enumerate(py_clients(weir)):
        assert allowed_all(client, [f"ann{i}"] * 6 + [f"bob{i}"]) == [True] * 5 + [False, True]
        with pytest.raises(redis_py.ResponseError, match="LIMIT is not allowed in transactions"):
            client.pipeline().execute_command("LIMIT", "SLIDING", "k", "5/60s").execute()
        client.close()


def test_py_recipes_read_replies_that_are_maps():
    """How redis-py 8 returns a reply."""

    class Client:
        def execute_command(self, *words):
            return {b"limited": 1, b"limit": 5, b"remaining": 0, b"retry_after_ms": 7, b"reset_after_ms": 9}

    assert Names(BLOCKS[INTRODUCTION][0]).ask(Client(), "SLIDING", "k", "5/60s") == [1, 5, 0, 7, 9]
    assert not new(IN_LUA).allowed(Client(), "ann")


def test_what_is_not_run_says_so():
    for section in re.split(r"^##+ ", (REPO / PAGE).read_text(), flags=re.M):
        has_code = re.search(r"^```(?!python|js |ini)\w", section, re.M)
        assert bool(has_code) == ("*Not run by our tests.*" in section), section[:40]
