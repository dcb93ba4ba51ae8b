"""What client libraries need of a session: handshakes, reconnecting, caching; and tools.

The ordinary work of client libraries is in test_clients.
"""

import os
import re
import shutil
import subprocess

import pytest
import redis as redis_py
from kit.harness import NODE_SOURCES, wait_until
from kit.server import REDIS_SERVER

LANES = ["shared", "private"]
SESSIONS = 40
FEW = 12  # the most connections to Redis for many equal sessions


@pytest.fixture
def servers(farm):
    """A Redis with a user, and a weir of the test's own in front of it."""
    redis = farm.redis("--repl-diskless-sync-delay", "0", "--user", "joe", "on", ">secret", "~*", "&*", "+@all")
    return redis, lambda lanes="shared": farm.weir(redis, workers=1, lanes=lanes)


class Script:
    """A script of node/ that runs beside the test and reports its progress."""

    def __init__(self, modules, name, weir, *args):
        argv = ["node", str(NODE_SOURCES / name), str(weir.address[1]), *map(str, args)]
        env = {**os.environ, "NODE_PATH": str(modules)}
        self.child = subprocess.Popen(
            argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.output = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.communicate()

    def until(self, word):
        while f"{word}\n" not in self.output:
            line = self.child.stdout.readline()
            assert line, self.output
            self.output += line

    def finish(self, text=""):
        self.output += self.child.communicate(text, timeout=60)[0]
        assert self.child.returncode == 0, self.output


@pytest.fixture
def script(node_modules):
    return lambda *args: Script(node_modules, *args)


def connections(redis):
    """Returns the connections to Redis, without the asking one."""
    return int(redis.info("connected_clients")) - 1


def opened(redis):
    """Returns the connections since the start, without those by which weir checks every second
    whether Redis accepts it.
    """
    text = redis.call("INFO", "everything").decode()
    looks = re.search(r"cmdstat_slowlog(?:\|len)?:calls=(\d+)", text)
    return int(re.search(r"total_connections_received:(\d+)", text)[1]) - int(looks[1] if looks else 0)


# ---- handshakes ----


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("library", ["ioredis", "redis"])
def test_node_sessions_cost_no_connections(library, resp, servers, script):
    redis, start = servers
    weir = start()
    before = opened(redis)
    with script("session.js", weir, resp, library) as sessions:
        sessions.until("ready")
        assert connections(redis) <= FEW
        assert opened(redis) - before <= FEW
        sessions.finish()
    assert redis.call("DBSIZE") == 0
    with redis.connect() as conn:
        assert conn.ask("SELECT 3", "DBSIZE") == ["OK", 2 * SESSIONS]


def session(weir, number, **more):
    host, port = weir.address
    who = {"username": "joe", "password": "secret", "client_name": f"n{number}"}
    return redis_py.Redis(host, port, db=3, single_connection_client=True, **who, **more)


def test_py_sessions_cost_no_connections(servers):
    redis, start = servers
    weir = start()
    before = opened(redis)
    clients = [session(weir, i) for i in range(SESSIONS)]
    for round in (1, 2):
        for i, client in enumerate(clients):
            assert client.set(f"k{i}", i) and client.get(f"k{i}") == b"%d" % i
            assert client.client_getname() == f"n{i}" and client.acl_whoami() == "joe"
            assert client.pipeline().incr(f"t{i}").get(f"t{i}").execute() == [round, b"%d" % round]
        assert connections(redis) <= FEW
        assert opened(redis) - before <= FEW
    for client in clients:
        client.close()


def test_py_pubsub_and_blocking_leave_no_connections(servers):
    redis, start = servers
    weir = start()
    clients = [session(weir, i) for i in range(SESSIONS)]
    for i, client in enumerate(clients):
        pubsub = client.pubsub(ignore_subscribe_messages=True)
        pubsub.subscribe("c")
        wait_until(lambda: client.pubsub_numsub("c")[0][1] == 1, "subscribed")
        client.publish("c", i)
        wait_until(lambda: (m := pubsub.get_message()) and m["data"] == b"%d" % i, "the message")
        pubsub.close()
        client.rpush("list", i)
        assert client.blpop("list", 5) == (b"list", b"%d" % i)
        assert client.eval("return ARGV[1]", 0, i) == b"%d" % i
    assert connections(redis) <= FEW
    for client in clients:
        client.close()


# ---- a Redis that returns ----


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("library", ["ioredis", "redis"])
def test_node_after_a_restart(library, resp, lanes, servers, script):
    redis, start = servers
    with script("restart.js", start(lanes), resp, library) as run:
        run.until("ready")
        redis.kill()
        redis.start()
        run.finish("back\n")


@pytest.mark.parametrize("lanes", LANES)
def test_py_after_a_restart(lanes, servers):
    redis, start = servers
    weir = start(lanes)
    client = session(weir, 1, socket_timeout=5)
    pubsub = session(weir, 2, socket_timeout=5).pubsub(ignore_subscribe_messages=True)
    pubsub.subscribe("c")
    assert client.set("k", "before")
    redis.kill()
    redis.start()

    def tries(work):
        try:
            return work()
        except (redis_py.ConnectionError, redis_py.ResponseError):
            return None

    wait_until(lambda: tries(lambda: client.set("k", "after")), "it works again")
    assert client.get("k") == b"after" and client.acl_whoami() == "joe"

    def message():
        tries(lambda: client.publish("c", "m"))
        return tries(pubsub.get_message)

    wait_until(message, "messages arrive again")
    assert client.pipeline().set("k", 1).get("k").execute() == [True, b"1"]
    client.close()


# ---- client-side caching ----


@pytest.mark.parametrize("lanes", LANES)
def test_node_caches_and_hears_of_changes(lanes, servers, script):
    with script("tracking.js", servers[1](lanes)) as run:
        run.finish()


@pytest.mark.parametrize("lanes", LANES)
def test_py_caches_and_hears_of_changes(lanes, servers):
    """redis-py speaks RESP2 here: invalidations come as messages on a second connection."""
    weir = servers[1](lanes)
    listener, reader, writer = (session(weir, i) for i in range(3))
    number = listener.client_id()
    pubsub = listener.pubsub(ignore_subscribe_messages=True)
    pubsub.connection = listener.connection  # the connection with the known id
    pubsub.subscribe("__redis__:invalidate")
    assert reader.execute_command("CLIENT", "TRACKING", "ON", "REDIRECT", number) == b"OK"
    for i in range(20):
        reader.get("k")
        writer.set("k", i)
        wait_until(lambda: (m := pubsub.get_message()) and m["data"] == [b"k"], "the invalidation")
    assert reader.execute_command("CLIENT", "TRACKING", "OFF") == b"OK"


# ---- clusters, tools ----


@pytest.mark.parametrize("lanes", LANES)
def test_node_cluster_clients_are_told_that_it_is_none(lanes, servers, script):
    with script("cluster.js", servers[1](lanes)) as run:
        run.finish()


@pytest.fixture(params=LANES)
def cli(request, servers):
    """Runs redis-cli through weir; returns its output."""
    weir = servers[1](request.param)

    def run(*args, text=None):
        argv = ["redis-cli", "-p", str(weir.address[1]), *map(str, args)]
        done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_cli_says_what_it_says_of_redis(cli, servers):
    assert cli("SET", "k", "v") == "OK\n" and cli("GET", "k") == "v\n"
    assert cli("-3", "HGETALL", "none") == "\n"
    assert cli("--user", "joe", "--pass", "secret", "--no-auth-warning", "-n", "3", "ACL", "WHOAMI") == "joe\n"
    assert cli("-c", "GET", "k") == "v\n"
    assert cli(text="SELECT 2\nMULTI\nSET k two\nGET k\nEXEC\nSUBSCRIBE\nGET k\n").splitlines()[-1] == "two"
    assert cli("--eval", "/dev/stdin", text="return 'from Lua'") == "from Lua\n"
    assert cli("-r", "3", "INCR", "n") == "1\n2\n3\n"


def test_cli_pipe_and_scan(cli, servers):
    assert "errors: 0, replies: 20000\n" in cli("--pipe", text="".join(f"SET key:{i} {i}\n" for i in range(20_000)))
    assert len(cli("--scan", "--pattern", "key:*").splitlines()) == 20_000
    assert re.search(r"20000 strings with", cli("--bigkeys"))
    assert "Sampled 20000 keys" in cli("--memkeys")


def test_cli_takes_a_snapshot(cli, servers, tmp_path):
    """redis-cli poses as a replica, and reads until the end of the snapshot."""
    cli("MSET", *[word for i in range(1000) for word in (f"k{i}", "v")])
    cli("--rdb", tmp_path / "dump.rdb")
    assert (tmp_path / "dump.rdb").read_bytes().startswith(b"REDIS")
    # redis-server checks a file if it is started under that name
    argv = ["redis-check-rdb", tmp_path / "dump.rdb"]
    done = subprocess.run(argv, executable=shutil.which(REDIS_SERVER), capture_output=True, text=True)
    assert done.returncode == 0 and "1000 keys read" in done.stdout
