"""Programs with public client libraries see a restart of Redis through weir as they see it
directly.

Each program (python/, node/moves/, go/, php/, ruby/) prints a line for each event that its user
would notice.
"""

import collections
import contextlib
import fcntl
import functools
import importlib.util
import os
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kit.harness import REPO, wait_until
from kit.programs import SECONDS, Program, collapsed
from kit.tls import Authority, TlsRedis, tls_settings

AWAY_SECONDS = 3
HERE = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
GO = REPO / "build" / "go"
REDIGO = "/usr/share/gocode/src/github.com/gomodule/redigo"
# Data that Redis has acknowledged survives a restart. With "everysec" Redis may answer before it
# writes.
AOF = ("--appendonly", "yes", "--appendfsync", "no")
LONGER = "20s"
SHARED = {"workers": 2, "lanes": "shared"}


# ---- installed packages ----


@functools.cache
def lacks(*argv):
    return shutil.which(argv[0]) is None or subprocess.run(argv, capture_output=True, timeout=60).returncode != 0


def need(what, is_missing):
    if is_missing:
        pytest.skip(f"{what} is not installed (tests/tools/deps.sh moves)")


def in_python(script, *behind, module="redis"):
    def command(request):
        need(module, importlib.util.find_spec(module) is None)
        return [PYTHON, HERE / "python" / script], behind

    return command


def in_node(script, *behind):
    def command(request):
        os.environ["NODE_PATH"] = str(request.getfixturevalue("moves_modules"))
        return ["node", HERE / "node/moves" / script], behind

    return command


def in_php(script, *behind):
    def command(request):
        need("php-redis", lacks("php", "-r", "exit(class_exists('Redis') ? 0 : 1);"))
        return ["php", HERE / "php" / script], behind

    return command


def in_ruby(script, *behind, gem="redis"):
    def command(request):
        need(f"ruby-{gem}", lacks("ruby", "-e", f"require '{gem}'"))
        return ["ruby", HERE / "ruby" / script], behind

    return command


def in_go(script):
    def command(request):
        need("redigo", shutil.which("go") is None or not os.path.isdir(REDIGO))
        GO.mkdir(parents=True, exist_ok=True)
        program = GO / Path(script).stem
        with open(GO / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            env = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOCACHE": str(GO / "cache"), "GOFLAGS": "-p=2"}
            argv = ["go", "build", "-o", program, HERE / "go" / script]
            subprocess.run(argv, env={**os.environ, **env}, check=True, capture_output=True, timeout=120)
        return [program], ()

    return command


# ---- the restart ----


@contextlib.contextmanager
def restart(redis, away_seconds=AWAY_SECONDS):
    """Redis is killed with replies open, and returns at the same address after `meanwhile`."""
    redis.signal(signal.SIGSTOP)
    time.sleep(0.2)  # requests now are in flight
    redis.signal(signal.SIGKILL)
    redis.wait()
    yield
    time.sleep(away_seconds)
    redis.start()
    wait_until(lambda: redis.call("PING") == "PONG", "Redis has read its file")


def both_ways(live, farm, redis, port=lambda redis: redis.port, **settings):
    """Returns what `live` yields, directly and through weir at the same time, each with a Redis of
    its own.
    """

    def direct():
        own = redis()
        return live(own, port(own))

    def proxied():
        own = redis()
        return live(own, farm.weir(own, **settings).address[1])

    with ThreadPoolExecutor(2) as pool:
        told = [pool.submit(way) for way in (direct, proxied)]
        return [story.result() for story in told]


# ---- libraries ----

LIBRARIES = {
    "redis-py": in_python("redispy.py", 20),
    "redis-py without retry": in_python("redispy.py", 0),
    "ioredis": in_node("redis.js", "ioredis"),
    "valkey-glide": in_node("redis.js", "glide"),
    "redigo": in_go("redigo.go"),
    "phpredis": in_php("phpredis.php", 10),
    "redis-rb": in_ruby("redis_rb.rb", 20),
}


def busy_and_idle(argv, behind, away_seconds=AWAY_SECONDS, **env):
    """One program works all the time, one waits in a blocking pop."""

    def live(redis, port):
        with Program([*argv, port, "busy", *behind], **env) as busy, Program([*argv, port, "idle", *behind], **env) as idle:
            return live_through(redis, busy, idle, away_seconds)

    return live


def live_through(redis, busy, idle, away_seconds):
    def works():
        seen = busy.lines.count("ok")
        busy.until(lambda: busy.lines.count("ok") > seen + 3, "it works")

    def pops(word):
        redis.call("RPUSH", "q", word)
        idle.until(lambda: f"popped {word}" in idle.lines, f"it pops {word!r}")

    def blocks():
        idle.until(lambda: redis.info("blocked_clients") == "1", "it blocks")

    works()
    blocks()
    pops("before")
    blocks()
    with restart(redis, away_seconds):
        pass
    pops("after")
    works()
    blocks()
    pops("end")
    redis.call("SET", "stop", "yes")
    codes = [busy.code(), idle.code()]
    counted = int(redis.call("GET", "n")) - busy.lines.count("ok")
    assert counted in (0, 1), "what was in flight may have been carried out, and nothing else unheard or twice"
    return codes, collapsed(busy.lines), collapsed(idle.lines)


def see_the_same(library, request, farm, password=None, **settings):
    live = busy_and_idle(*LIBRARIES[library](request), **({"PASSWORD": password} if password else {}))
    direct, proxied = both_ways(live, farm, lambda: farm.redis(*AOF, password=password), **settings)
    assert proxied == direct
    assert direct[0] == [0, 0], direct


def test_redis_py_sees_a_short_one_as_it_does_directly(request, farm):
    live = busy_and_idle(*LIBRARIES["redis-py"](request), away_seconds=0.5)
    direct, proxied = both_ways(live, farm, lambda: farm.redis(*AOF), **SHARED, failover_wait="100ms")
    assert proxied == direct == ([0, 0], ["ok"], ["popped before", "popped after", "popped end"])


@pytest.mark.moves
@pytest.mark.parametrize("library", LIBRARIES)
def test_libraries_see_a_restart_as_they_do_directly(library, request, farm):
    see_the_same(library, request, farm, **SHARED)


@pytest.mark.moves
@pytest.mark.parametrize("library", ["redis-py", "ioredis"])
def test_they_do_with_a_connection_for_each_client(library, request, farm):
    see_the_same(library, request, farm, workers=1, lanes="private")


@pytest.mark.moves
@pytest.mark.parametrize("library", ["redis-py", "ioredis", "valkey-glide"])
def test_they_do_where_they_log_in(library, request, farm):
    see_the_same(library, request, farm, **SHARED, password="secret")


@pytest.mark.moves
def test_redis_py_over_tls_sees_a_restart_as_it_does_directly(request, farm, tmp_path):
    ca = Authority(tmp_path)
    pair = ca.issue("weir")
    live = busy_and_idle(*LIBRARIES["redis-py"](request), CA=str(ca.cert))
    settings = tls_settings(pair, upstream_tls_ca_file=ca.cert)
    redis = lambda: farm._start(TlsRedis(ca, pair, *AOF))
    direct, proxied = both_ways(live, farm, redis, lambda redis: redis.tls_port, **SHARED, **settings)
    assert proxied == direct
    assert direct[0] == [0, 0], direct


@pytest.mark.moves
def test_node_redis_sees_a_restart_as_it_does_directly(request, farm):
    """A library that waits until it can connect, and gives up requests that it has sent."""
    live = busy_and_idle(*in_node("redis.js", "redis")(request))
    direct, proxied = both_ways(live, farm, lambda: farm.redis(*AOF), **SHARED)
    assert proxied == direct


# ---- job queues: a producer and a worker ----

QUEUES = {
    "celery": in_python("celery_jobs.py", module="celery"),
    "rq": in_python("rq_jobs.py", module="rq"),
    "bullmq": in_node("bullmq.js"),
    "sidekiq": in_ruby("sidekiq_jobs.rb", gem="sidekiq"),
}
BEFORE, MEANWHILE, AFTER = range(1, 11), range(12, 19), range(19, 26)
LONG = 11  # begins before Redis goes away, and ends after Redis returns
QUICK_SECONDS, LONG_SECONDS = 0.01, AWAY_SECONDS + 1.5


def worker_and_producer(argv, behind):
    def live(redis, port):
        with Program([*argv, port, "worker"], PORT=str(port)) as worker, Program([*argv, port, "producer"]) as producer:
            return carry_out(redis, worker, producer)

    return live


def carry_out(redis, worker, producer):
    def enqueue(jobs, seconds=QUICK_SECONDS):
        producer.say(*(f"{n} {seconds}" for n in jobs))

    def said(what, jobs):
        worker.until(lambda: {f"{what} {n}" for n in jobs} <= set(worker.lines), f"{what} {list(jobs)}")

    enqueue(BEFORE)
    said("done", BEFORE)
    enqueue([LONG], LONG_SECONDS)
    said("begun", [LONG])
    with restart(redis):
        enqueue(MEANWHILE)
    enqueue(AFTER)
    said("done", [*BEFORE, LONG, *MEANWHILE, *AFTER])
    done = collections.Counter(line for line in worker.lines if line.startswith("done"))
    return done, collapsed(line.partition(" ")[0] if line.startswith("enqueued") else line for line in producer.lines)


@pytest.mark.moves
@pytest.mark.parametrize("queue", QUEUES)
def test_jobs_are_done_as_they_are_directly(queue, request, farm):
    live = worker_and_producer(*QUEUES[queue](request))
    direct, proxied = both_ways(live, farm, lambda: farm.redis(*AOF), **SHARED)
    assert proxied[0] == direct[0]
    assert set(direct[0].values()) == {1}
    assert proxied[1] == direct[1] or queue == "rq", "a pipeline of redis-py that was sent is given up"


@pytest.mark.moves
def test_rq_enqueues_as_it_does_directly_where_failover_wait_is_longer(request, farm):
    live = worker_and_producer(*QUEUES["rq"](request))
    direct, proxied = both_ways(live, farm, lambda: farm.redis(*AOF), **SHARED, failover_wait=LONGER)
    assert proxied == direct
