"""Commands to all masters, or to all nodes, of a cluster: weir merges their replies into one."""

import pytest
from kit.cluster import Cluster, weir_before
from kit.harness import wait_until
from kit.resp import Closed, Error, pipeline
from kit.server import at_least

SCRIPT = "return redis.call('GET', KEYS[1])"
LIBRARY = "#!lua name=mylib\nredis.register_function('f', function(keys) return 'hello' end)"


@pytest.fixture
def made(farm):
    return Cluster(farm, masters=3)


@pytest.fixture
def conn(made):
    with weir_before(made, workers=1).connect() as conn:
        yield conn


def at_all(made, *words):
    return [node.call(*words) for node in made.nodes]


@pytest.mark.cluster
def test_flushes(made, conn):
    keys = made.keys_everywhere(6)
    for words in (["FLUSHALL"], ["FLUSHALL", "ASYNC"], ["FLUSHDB"], ["FLUSHDB", "SYNC"]):
        assert conn.ask(*(["SET", key, "v"] for key in keys)) == ["OK"] * 6
        assert conn.ask(["GET", keys[0]], words, ["GET", keys[0]], ["EXISTS", *keys]) == [b"v", "OK", None, 0]
        assert at_all(made, "DBSIZE") == [0] * 3
    assert conn.call("FLUSHALL", "NONSENSE").startswith("ERR")


@pytest.mark.cluster
def test_names_stay_off_shared_connections(made, conn):
    """Since 7.2 command tips send CLIENT SETNAME and SETINFO to all nodes. The tips are meant for
    cluster clients, not for weir.
    """
    keys = made.keys_everywhere(3)
    assert conn.ask(*(["SET", key, "v"] for key in keys), "CLIENT SETNAME me") == ["OK"] * 4
    if at_least(7, 2):
        assert conn.call("CLIENT", "SETINFO", "LIB-NAME", "mine") == "OK"
    told = [node.call("CLIENT", "LIST") for node in made.nodes]
    assert not any(b"name=me" in text or b"lib-name=mine" in text for text in told), told
    assert conn.ask("CLIENT GETNAME", "RESET", "CLIENT GETNAME", "CLIENT SETNAME you", "CLIENT GETNAME") == [
        b"me", "RESET", None, "OK", b"you"
    ]  # fmt: skip


def test_scripts(made, conn):
    sha = conn.call("SCRIPT", "LOAD", SCRIPT)
    assert len(sha) == 40
    assert at_all(made, "SCRIPT", "EXISTS", sha) == [[1]] * 3
    assert conn.call("SCRIPT", "EXISTS", sha, "0" * 40) == [1, 0]
    made.nodes[1].call("SCRIPT", "FLUSH")
    assert conn.call("SCRIPT", "EXISTS", sha, "0" * 40) == [0, 0]
    assert conn.call("SCRIPT", "LOAD", SCRIPT) == sha
    assert conn.call("SCRIPT", "FLUSH") == "OK"
    assert at_all(made, "SCRIPT", "EXISTS", sha) == [[0]] * 3
    assert conn.call("SCRIPT", "LOAD", "this is\nno Lua").startswith("ERR Error compiling script")
    assert conn.call("SCRIPT", "KILL").startswith("NOTBUSY")
    assert conn.call("PING") == "PONG"


@pytest.mark.cluster
@pytest.mark.skipif(not at_least(7, 0), reason="this redis-server has no functions")
def test_functions(made, conn):
    assert conn.call("FUNCTION", "LOAD", LIBRARY) == b"mylib"
    assert [len(found) for found in at_all(made, "FUNCTION", "LIST")] == [1] * 3
    assert conn.call("FUNCTION", "LOAD", LIBRARY).startswith("ERR Library 'mylib' already exists")
    dump = conn.call("FUNCTION", "DUMP")
    assert conn.call("FUNCTION", "DELETE", "mylib") == "OK"
    assert at_all(made, "FUNCTION", "LIST") == [[]] * 3
    assert conn.call("FUNCTION", "RESTORE", dump) == "OK"
    assert [len(found) for found in at_all(made, "FUNCTION", "LIST")] == [1] * 3
    assert conn.call("FUNCTION", "FLUSH") == "OK"
    assert at_all(made, "FUNCTION", "LIST") == [[]] * 3
    assert conn.call("FUNCTION", "KILL").startswith("NOTBUSY")


@pytest.mark.cluster
def test_settings_and_users(made, conn):
    assert conn.call("CONFIG", "SET", "slowlog-max-len", "77") == "OK"
    assert at_all(made, "CONFIG", "GET", "slowlog-max-len") == [[b"slowlog-max-len", b"77"]] * 3
    assert conn.call("CONFIG", "SET", "nonsense", "1").startswith("ERR")
    assert conn.call("CONFIG", "RESETSTAT") == "OK"
    assert conn.call("ACL", "SETUSER", "joe", "on", ">pw", "~*", "+@all") == "OK"
    assert all(b"joe" in users for users in at_all(made, "ACL", "USERS"))
    assert conn.call("ACL", "DELUSER", "joe") == 1
    assert not any(b"joe" in users for users in at_all(made, "ACL", "USERS"))
    assert conn.call("MEMORY", "PURGE") == "OK"


@pytest.mark.cluster
def test_logs(made, conn):
    assert conn.call("CONFIG", "SET", "slowlog-log-slower-than", "0") == "OK"
    assert conn.call("SLOWLOG", "RESET") == "OK"
    for key in made.keys_everywhere(3):
        conn.call("SET", key, "v")
    assert conn.call("SLOWLOG", "LEN") >= 6
    entries = conn.call("SLOWLOG", "GET", "-1")
    assert {entry[3][1].decode() for entry in entries if entry[3][0] == b"SET"} == set(made.keys_everywhere(3))
    assert conn.call("LATENCY", "RESET") == 0
    assert conn.call("LATENCY", "LATEST") == []
    assert conn.call("LATENCY", "HISTORY", "command") == []
    assert isinstance(conn.call("LATENCY", "DOCTOR"), bytes)


@pytest.mark.cluster
def test_clients(made, conn):
    for protocol in ("2", "3"):
        conn.call("HELLO", protocol)
        lines = conn.call("CLIENT", "LIST").decode().splitlines()
        ports = {line.split("laddr=")[1].split(" ")[0].rpartition(":")[2] for line in lines}
        assert ports == {str(node.port) for node in made.nodes}
    direct = made.nodes[1].connect()
    assert conn.call("CLIENT", "KILL", direct.name) == "OK"
    with pytest.raises(Closed):
        direct.call("PING")
    assert conn.call("CLIENT", "KILL", "127.0.0.1:1") == Error("ERR No such client")
    assert conn.call("CLIENT", "KILL", "ADDR", "127.0.0.1:1") == 0
    conns = [node.connect() for node in made.nodes]
    for one in conns:
        one.call("AUTH", "default", "any")
    assert conn.call("CLIENT", "KILL", "USER", "nobody").startswith("ERR No such user")
    assert all(one.call("PING") == "PONG" for one in conns)


@pytest.mark.cluster
def test_the_home_node_answers_alone(made, conn):
    assert conn.call("CONFIG", "GET", "port")[1] in {str(node.port).encode() for node in made.nodes}
    assert len(conn.call("TIME")) == 2
    assert conn.call("PING") == "PONG"
    assert conn.call("LASTSAVE") > 0


@pytest.mark.cluster
def test_in_order_in_a_pipeline(made, conn):
    keys = made.keys_everywhere(3)
    got = conn.ask(
        *(["SET", key, "v"] for key in keys), "DBSIZE", ["SCRIPT", "LOAD", SCRIPT], ["MGET", *keys], "FLUSHALL", "DBSIZE", ["MGET", *keys],
        ["SET", keys[0], "w"], ["KEYS", "*"], ["CLIENT", "LIST"], ["GET", keys[0]],
    )  # fmt: skip
    assert got[3] == 3 and got[5:9] == [[b"v"] * 3, "OK", 0, [None] * 3] and got[10] == [keys[0].encode()] and got[12] == b"w"


@pytest.mark.cluster
def test_a_node_that_is_down_is_an_error(farm):
    made = Cluster(farm, masters=3)
    weir = weir_before(made, workers=1, failover_wait="200ms", when_upstream_down="error")
    with weir.connect() as conn:
        assert conn.call("DBSIZE") == 0
    made.kill(made.nodes[2])

    def refused():
        with weir.connect() as conn:
            try:
                got = [conn.call("DBSIZE"), conn.call("SCRIPT", "LOAD", SCRIPT), conn.call("KEYS", "*")]
            except Closed:
                return False
            return all(isinstance(one, Error) for one in got)

    wait_until(refused, "errors for the dead node", 20)


@pytest.mark.cluster
def test_a_client_that_goes_in_the_middle(made, farm):
    weir = weir_before(made, workers=1)
    for _ in range(10):
        for words in (b"FLUSHALL\r\n", b"SCRIPT FLUSH\r\n", b"KEYS *\r\n", b"CLIENT LIST\r\n"):
            with weir.connect() as conn:
                conn.send(words)
    with weir.connect() as conn:
        assert conn.ask("FLUSHALL", "DBSIZE") == ["OK", 0]


@pytest.mark.cluster
def test_a_client_that_ends_its_side_gets_its_replies(made, farm):
    weir = weir_before(made, workers=1)
    keys = made.keys_everywhere(4)
    for _ in range(5):
        with weir.connect() as conn:
            words = [["SET", keys[0], "v"], ["MGET", *keys], ["SCRIPT", "FLUSH"], ["DBSIZE"], ["FLUSHALL"], ["EXISTS", *keys], ["KEYS", "*"]]
            conn.send(pipeline(*words))
            conn.sock.shutdown(1)
            assert [conn.read() for _ in words] == ["OK", [b"v", None, None, None], "OK", 1, "OK", 0, []]
            assert conn.read_to_end() == b""


@pytest.mark.cluster
def test_a_drain_waits_for_replies(made, farm):
    weir = weir_before(made, workers=1, drain_timeout="10s")
    keys = made.keys_everywhere(4)
    with weir.connect() as conn:
        assert conn.call("PING") == "PONG"
        made.nodes[1].signal(19)
        conn.send(pipeline(["MGET", *keys], ["FLUSHALL"], ["EXISTS", *keys]))
        wait_until(lambda: made.nodes[0].info("total_commands_processed") is not None, "it is on its way")
        weir.signal(15)
        made.nodes[1].signal(18)
        assert conn.read() == [None] * 4
