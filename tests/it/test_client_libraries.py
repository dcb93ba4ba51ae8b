"""Real client libraries doing their ordinary work through weir: redis-py, ioredis, node-redis."""

import os
import subprocess
import threading

import pytest
import redis as redis_py
from kit.harness import NODE_SOURCES, wait_until
from kit.server import valkey_at_least

# ---- redis-py ----


@pytest.fixture
def client(weir):
    host, port = weir.address
    with redis_py.Redis(host, port, socket_timeout=10, decode_responses=True) as client:
        yield client


def another(client, **changes):
    return redis_py.Redis(**{**client.connection_pool.connection_kwargs, **changes})


def test_py_strings_and_collections(client):
    assert client.set("k", "v") and client.get("k") == "v" and client.get("none") is None
    client.hset("h", mapping={"a": 1, "b": 2})
    assert client.hgetall("h") == {"a": "1", "b": "2"}
    client.rpush("l", *range(1000))
    assert client.lrange("l", 0, -1) == [str(i) for i in range(1000)]
    client.zadd("z", {"m": 1.5})
    assert client.zrange("z", 0, -1, withscores=True) == [("m", 1.5)]
    assert client.set("big", "x" * (1 << 20)) and client.get("big") == "x" * (1 << 20)
    assert client.info()["server_mode" if valkey_at_least(8, 0) else "redis_mode"] == "standalone"
    assert client.config_get("maxmemory") == {"maxmemory": "0"}
    with pytest.raises(redis_py.ResponseError, match="not an integer"):
        client.incr("k")


def test_py_pipeline_is_answered_in_order(client):
    pipe = client.pipeline(transaction=False)
    for i in range(1000):
        pipe.set(f"p:{i}", i)
    for i in range(1000):
        pipe.get(f"p:{i}")
    pipe.incr("p:0").lpush("p:0", "x").get("p:0")
    replies = pipe.execute(raise_on_error=False)
    assert replies[1000:2000] == [str(i) for i in range(1000)]
    assert replies[2000] == 1 and replies[2002] == "1"
    assert isinstance(replies[2001], redis_py.ResponseError)


def test_py_transaction_fails_when_what_it_watches_changes(client):
    assert client.pipeline().set("k", 1).incr("k").get("k").execute() == [True, 2, "2"]
    other = another(client)
    with client.pipeline() as pipe:
        pipe.watch("k")
        other.set("k", 9)
        pipe.multi()
        pipe.set("k", 1)
        with pytest.raises(redis_py.WatchError):
            pipe.execute()
    assert client.get("k") == "9"


def test_py_transactions_of_many_threads(client):
    """Optimistic locking as applications write it: no increment may be lost."""
    client.set("n", 0)

    def add(pipe):
        n = int(pipe.get("n"))
        pipe.multi()
        pipe.set("n", n + 1)

    threads = [threading.Thread(target=lambda: [client.transaction(add, "n") for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get("n") == "40"


def test_py_pubsub_hears_channels_and_patterns(client):
    pubsub = client.pubsub(ignore_subscribe_messages=True)
    pubsub.subscribe("c1", "c2")
    pubsub.psubscribe("d*")
    got = []

    def message(text):
        wait_until(lambda: (m := pubsub.get_message()) and got.append(m["data"]) or text in got, f"message {text}")

    wait_until(lambda: client.pubsub_numsub("c2")[0][1] == 1 and client.pubsub_numpat() == 1, "subscribed")
    assert client.publish("c1", "one") == 1
    message("one")
    assert client.publish("d1", "two") == 1
    message("two")
    pubsub.unsubscribe()
    pubsub.punsubscribe()
    wait_until(lambda: client.pubsub_numpat() == 0, "unsubscribed")
    assert client.publish("c1", "three") == 0
    assert got == ["one", "two"]
    pubsub.close()


def test_py_blocking_pops(client):
    other = another(client)
    got = []
    threads = [threading.Thread(target=lambda: got.append(another(client).blpop("q", 10))) for _ in range(4)]
    for thread in threads:
        thread.start()
    wait_until(lambda: other.info("clients")["blocked_clients"] == 4, "they block")
    other.rpush("q", *range(4))
    for thread in threads:
        thread.join()
    assert sorted(got) == [("q", str(i)) for i in range(4)]
    assert client.blpop("q", 0.05) is None
    other.rpush("q", "v")
    assert client.brpoplpush("q", "r") == "v"


def test_py_scripts_are_loaded_again_when_redis_forgot_them(client):
    add = client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    assert [add(["n"], [5]), add(["n"], [5])] == [5, 10]
    client.script_flush()
    assert add(["n"], [5]) == 15
    pipe = client.pipeline()
    add(["n"], [1], client=pipe)
    pipe.get("n")
    assert pipe.execute() == [16, "16"]


def test_py_scan_finds_every_key_and_member(client):
    client.mset({f"scan:{i}": i for i in range(2000)})
    assert set(client.scan_iter("scan:*", count=100)) == {f"scan:{i}" for i in range(2000)}
    client.sadd("set", *range(2000))
    assert len(set(client.sscan_iter("set"))) == 2000


def test_py_pool_of_connections(client):
    errors = []

    def work(n):
        try:
            for i in range(50):
                assert client.set(f"pool:{n}", f"{n}:{i}")
                assert client.get(f"pool:{n}") == f"{n}:{i}"
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_py_databases_names_and_health_checks(client):
    third = another(client, db=3, client_name="third", health_check_interval=1)
    third.set("k", "in 3")
    assert client.get("k") is None and third.get("k") == "in 3"
    assert third.client_getname() == "third"


def test_py_locks_and_streams(client):
    with client.lock("lock", timeout=10, blocking_timeout=5):
        assert not client.lock("lock", timeout=10).acquire(blocking=False)
    client.xadd("x", {"f": "v"}, id="1-1")
    client.xgroup_create("x", "g", id="0")
    assert client.xreadgroup("g", "me", {"x": ">"}, block=1000) == [["x", [("1-1", {"f": "v"})]]]
    assert client.xack("x", "g", "1-1") == 1


def test_py_monitor_sees_what_others_say(client):
    with client.monitor() as monitor:
        another(client).set("watched", "yes")
        while monitor.next_command()["command"] != "SET watched yes":
            pass


# ---- Node ----


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("library", ["ioredis", "redis"])
def test_node_does_what_an_application_does(library, resp, weir, node_modules):
    argv = ["node", str(NODE_SOURCES / f"{library}.js"), str(weir.address[1]), str(resp)]
    env = {**os.environ, "NODE_PATH": str(node_modules)}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok scan\n" in done.stdout
