"""Clients in front of a Redis Cluster see one node, which is weir. A command that cannot be served
there gets an error that names it.
"""

import os
import random
import re
import subprocess
from pathlib import Path

import pytest
import redis as redis_py
from kit.cluster import SLOTS, Cluster, slot_of, weir_before
from kit.harness import Farm, rounds
from kit.resp import Conn, Error, Recorder, encode
from kit.server import at_least, valkey_at_least

MODE = "server_mode" if valkey_at_least(8, 0) else "redis_mode"
NODE_SOURCES = Path(__file__).parent / "node"
DISABLED = Error("ERR This instance has cluster support disabled")


@pytest.fixture(scope="module")
def made():
    farm = Farm()
    yield Cluster(farm)
    farm.close()


@pytest.fixture
def weir(made):
    server = weir_before(made, workers=1)
    yield server
    server.stop()


def facts(text):
    return dict(line.split(":", 1) for line in text.decode().split("\r\n") if ":" in line)


def told_by_slots(conn):
    """Returns the node to which CLUSTER SLOTS assigns all slots."""
    [[first, last, node]] = conn.call("CLUSTER", "SLOTS")
    assert [first, last] == [0, SLOTS - 1]
    return node[0].decode(), node[1]


def test_one_node_with_all_slots(made, weir):
    host, port = weir.address
    with weir.connect() as conn:
        assert told_by_slots(conn) == (host, port)
        name = conn.call("CLUSTER", "MYID").decode()
        assert re.fullmatch("[0-9a-f]{40}", name) and conn.call("CLUSTER", "SLOTS")[0][2][2].decode() == name
        line = conn.call("CLUSTER", "NODES").decode()
        assert line.startswith(f"{name} {host}:{port}@") and line.endswith(" myself,master - 0 0 1 connected 0-16383\n")
        info = facts(conn.call("CLUSTER", "INFO"))
        assert info["cluster_state"] == "ok" and info["cluster_slots_ok"] == str(SLOTS)
        if at_least(7, 0):
            [[_, slots, _, [node]]] = conn.call("CLUSTER", "SHARDS")
            assert slots == [0, SLOTS - 1] and dict(zip(node[::2], node[1::2]))[b"port"] == port
        for node in made.masters:
            key = made.key_at(node)
            assert conn.call("SET", key, "x") == "OK"
            assert conn.call("CLUSTER", "KEYSLOT", key) == slot_of(key)
            assert conn.call("CLUSTER", "COUNTKEYSINSLOT", slot_of(key)) == 1
        assert conn.call("CLUSTER", "COUNTKEYSINSLOT", SLOTS) == Error("ERR Invalid slot")


def frame(conn, *command):
    conn.send(encode(*command))
    return conn.frame()


@pytest.mark.cluster
def test_in_resp3(weir):
    with Recorder(weir.address) as conn:
        assert b"$4\r\nmode\r\n$10\r\nstandalone\r\n" in frame(conn, "HELLO", 3)
        assert frame(conn, "CLUSTER", "INFO").startswith(b"=")
        assert frame(conn, "INFO", "server").startswith(b"=")


def test_the_server_is_in_no_cluster(made, weir):
    with weir.connect() as conn:
        hello = conn.call("HELLO")
        assert dict(zip(hello[::2], hello[1::2]))[b"mode"] == b"standalone"
        info = facts(conn.call("INFO"))
        assert info[MODE] == "standalone" and info["cluster_enabled"] == "1"
        assert info["weir_node"] in [node.upstream for node in made.masters]
        assert facts(conn.call("INFO", "keyspace")).keys() >= {"weir_node"}
        assert conn.ask("PING", "INFO server", "PING")[::2] == ["PONG", "PONG"]


@pytest.mark.cluster
def test_what_is_accepted(weir):
    with weir.connect() as conn:
        assert conn.ask("READONLY", "READWRITE", "ASKING", "SELECT 0") == ["OK"] * 4
        assert conn.call("SELECT", 1) == Error("ERR SELECT is not allowed in cluster mode")
        assert isinstance(conn.call("SELECT", "x"), Error)
        assert isinstance(conn.call("READONLY", "x"), Error)
        assert conn.ask("PING", "READONLY", "PING", "CLUSTER MYID", "PING")[::2] == ["PONG"] * 3


@pytest.mark.cluster
def test_order_in_pipelines(made, weir):
    keys = made.keys_everywhere(6)
    words = ["INFO server", "CLUSTER SLOTS", "READONLY", "SELECT 0", "HELLO 3", "HELLO 2", "CLUSTER INFO", "MONITOR", "PING"]
    dice = random.Random(1)
    with weir.connect() as conn:
        assert conn.ask(*(["SET", key, key] for key in keys)) == ["OK"] * len(keys)
        expected = {word: conn.call(*word.split()) for word in words if not word.startswith(("INFO", "HELLO"))}
        for _ in range(rounds(60)):
            chosen = [dice.choice([*keys, *keys, *words]) for _ in range(dice.randrange(1, 40))]
            replies = conn.ask(*(["GET", word] if word in keys else word for word in chosen))
            for word, reply in zip(chosen, replies):
                if word.startswith("INFO"):
                    assert f"{MODE}:standalone".encode() in reply and b"weir_node:" in reply
                elif word.startswith("HELLO"):
                    assert b"standalone" in (reply if isinstance(reply, list) else list(reply.values()))
                elif word in keys:
                    assert reply == word.encode()
                elif word != "CLUSTER INFO":
                    assert reply == expected[word]
            assert conn.call("HELLO", 2)


@pytest.mark.cluster
def test_inside_multi(weir):
    with weir.connect() as conn:
        for command in ("CLUSTER SLOTS", "CLUSTER FAILOVER", "MONITOR", "SELECT 1"):
            assert conn.call("MULTI") == "OK"
            assert isinstance(conn.call(*command.split()), Error)
            assert conn.call("EXEC").startswith("EXECABORT")
        assert conn.ask("MULTI", "READONLY", "SELECT 0", "EXEC") == ["OK", "QUEUED", "QUEUED", ["OK", "OK"]]
        assert conn.call("CLUSTER", "KEYSLOT", "a") == slot_of("a")


@pytest.mark.cluster
def test_a_unix_socket_has_no_address(made, tmp_path):
    weir = weir_before(made, workers=1, listen=f"127.0.0.1:0, unix:{tmp_path}/weir.sock")
    with Conn(f"{tmp_path}/weir.sock") as conn:
        assert "cluster-announce" in conn.call("CLUSTER", "SLOTS")
        assert conn.call("CLUSTER", "KEYSLOT", "a") == slot_of("a")
    weir.stop()


@pytest.mark.cluster
@pytest.mark.parametrize(
    "command",
    ["MONITOR", "SYNC", "PSYNC ? -1", "REPLCONF ack 1", "CLIENT TRACKING on", "DEBUG SLEEP 0", "SWAPDB 0 1", "MOVE k 1",
     "CLUSTER FAILOVER", "CLUSTER RESET", "CLUSTER MEET a 1", "CLUSTER GETKEYSINSLOT 1 1", "CLUSTER LINKS"],
)  # fmt: skip
def test_what_is_refused(weir, command):
    with weir.connect() as conn:
        said = conn.call(*command.split())
        assert isinstance(said, Error) and ("is not supported" in said or "not allowed in cluster mode" in said), said
        assert conn.call("PING") == "PONG"


@pytest.mark.cluster
def test_cluster_commands_refused(made):
    weir = weir_before(made, workers=1, cluster_commands="refuse")
    with weir.connect() as conn:
        for word in ("SLOTS", "NODES", "INFO", "MYID", "KEYSLOT x"):
            assert conn.call("CLUSTER", *word.split()) == DISABLED
        assert conn.call("READONLY") == "OK"
    weir.stop()


@pytest.mark.cluster
def test_the_address_that_is_told(made):
    weir = weir_before(made, workers=1, cluster_announce="weir.example:7")
    with weir.connect() as conn:
        assert told_by_slots(conn) == ("weir.example", 7)
    weir.stop()


@pytest.mark.cluster
def test_the_address_of_a_proxy_header(made):
    weir = weir_before(made, workers=1, listen="127.0.0.1:0 proxy", proxy_protocol_from="127.0.0.1")
    with Conn(weir.address) as conn:
        conn.send(b"PROXY TCP4 192.0.2.7 198.51.100.9 4711 6390\r\n")
        assert told_by_slots(conn) == ("198.51.100.9", 6390)
    weir.stop()


@pytest.mark.cluster
def test_a_stranger_is_told_nothing(farm, tmp_path):
    made = Cluster(farm, masters=1, password="secret")
    (tmp_path / "password").write_text("any")
    (tmp_path / "password").chmod(0o600)
    weir = weir_before(made, workers=1, upstream_user="admin", upstream_password_file=tmp_path / "password")
    with weir.connect() as conn:
        assert conn.call("CLUSTER", "SLOTS") == Error("NOAUTH Authentication required.")
        assert conn.call("READONLY") == Error("NOAUTH Authentication required.")
        assert conn.call("AUTH", "secret") == "OK"
        assert told_by_slots(conn) == weir.address
    with Recorder(weir.address) as conn:
        assert frame(conn, "HELLO", 3).startswith(b"-NOAUTH")
        assert b"standalone" in frame(conn, "HELLO", 3, "AUTH", "default", "secret")
        assert b"weir_node" in frame(conn, "INFO", "server")
        assert b"cluster" not in frame(conn, "HELLO")
    weir.stop()


# ---- clients of clusters stay behind weir ----


def test_redis_py_cluster(made, weir):
    client = redis_py.RedisCluster(host=weir.address[0], port=weir.address[1])
    assert [node.port for node in client.get_nodes()] == [weir.address[1]]
    for n, key in enumerate(made.keys_everywhere(9)):
        assert client.set(key, n) is True
        assert client.incr(key) == n + 1
    pipe = client.pipeline()
    for key in made.keys_everywhere(9):
        pipe.get(key)
    assert pipe.execute() == [b"%d" % (n + 1) for n in range(9)]
    client.close()


@pytest.mark.cluster
def test_redis_py_that_looks(made, weir):
    client = redis_py.Redis(host=weir.address[0], port=weir.address[1])
    assert client.info("server")[MODE] == "standalone"
    client.close()


@pytest.mark.cluster
def test_node_clusters(made, weir, node_modules):
    env = {**os.environ, "NODE_PATH": str(node_modules)}
    argv = ["node", str(NODE_SOURCES / "emulated.js"), str(weir.address[1])]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
