"""With fair shares on, weir asks Redis what commands cost. LIMIT EXPLAIN shows the cost."""

import re

import pytest
from kit.cluster import Cluster, weir_before
from kit.harness import wait_until

QUICK = {"WEIR_HURRY": "10"}  # a poll takes 100 ms
LOOP = "local x = 0 for i = 1, tonumber(ARGV[1]) do x = x + i end return 1"


def cost(conn, *command):
    """Returns (us, source) of a cost as weir knows it."""
    flat = conn.call("LIMIT", "EXPLAIN", *command)
    said = dict(zip(flat[::2], flat[1::2]))
    return float(said[b"redis_cost_us"]), said[b"redis_cost_by"].decode()


def usec(redis, name):
    """Returns us per call, as Redis reports."""
    told = redis.call("INFO", "commandstats").decode()
    return float(re.search(rf"cmdstat_{name}:.*usec_per_call=([\d.]+)", told)[1])


def calls(redis, name):
    found = re.search(rf"cmdstat_{name}:calls=(\d+)", redis.call("INFO", "commandstats").decode())
    return int(found[1]) if found else 0


def loops_of_a_millisecond(redis):
    redis.call("CONFIG", "RESETSTAT")
    for _ in range(20):
        redis.call("EVAL", LOOP, "0", "100000")
    return str(int(100_000 * 1000 / usec(redis, "eval")))


def test_dear_commands_cost_what_redis_tells(farm):
    redis = farm.redis()
    redis.call("EVAL", "for i = 1, 50000 do redis.call('SET', 'key:' .. i, 'v') end", "0")
    loops = loops_of_a_millisecond(redis)
    weir = farm.weir(redis, workers=1, fair_share="on", env=QUICK)
    with weir.connect() as conn:
        assert cost(conn, "KEYS", "*") == (200, "flags")
        assert cost(conn, "EVAL", LOOP, "0", "1")[1] == "flags"
        redis.call("CONFIG", "RESETSTAT")
        for command in (["KEYS", "no:*"], ["EVAL", LOOP, "0", loops]):

            def is_right():
                for _ in range(20):
                    conn.call(*command)
                us, by = cost(conn, *command)
                told = usec(redis, command[0].lower())
                return by == "measured" and told / 2 <= us <= told * 2 + 20

            wait_until(is_right, f"the cost of {command[0]}")
        assert cost(conn, "EVAL", LOOP, "0", "1")[0] > 20, "dearer than what flags say of it"
        assert cost(conn, "BITCOUNT", "key:1") == (20, "flags"), "nobody has sent it"


def test_what_is_known_stays_when_the_connection_is_lost(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, fair_share="on", env=QUICK)
    with weir.connect() as conn:

        def is_measured():
            for _ in range(20):
                conn.call("STRLEN", "key")
            return cost(conn, "STRLEN", "key")[1] == "measured"

        wait_until(is_measured, "its cost is known")
        known = cost(conn, "STRLEN", "key")
        redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    wait_until(lambda: "the control connection is back" in weir.log(), "it connects again")
    with weir.connect() as conn:
        assert cost(conn, "STRLEN", "key") == known


def test_nothing_is_asked_without_fair_share(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, fair_share="off", upstream_check="20ms", env=QUICK)
    before = calls(redis, "info"), calls(redis, "ping")
    wait_until(lambda: calls(redis, "ping") > before[1] + 30, "beats")
    own = calls(redis, "info") - before[0]
    beats = calls(redis, "ping") - before[1]
    assert own < 2 * beats, "each look at the beats is one"
    with weir.connect() as conn:
        for _ in range(20):
            conn.call("GET", "key")
        assert cost(conn, "GET", "key")[1] == "flags"


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "password"
    path.write_text("s3cret")
    path.chmod(0o600)
    return path


def test_a_user_without_info(farm, secret):
    """The defaults stay, and weir does not repeat a question that Redis refuses."""
    redis = farm.redis("--user", "weir", "on", ">s3cret", "-@all", "+command", "+ping", "+hello")
    login = {"upstream_user": "weir", "upstream_password_file": secret}
    weir = farm.weir(redis, workers=1, fair_share="on", upstream_check=0, env=QUICK, **login)
    with weir.connect() as conn:
        for _ in range(20):
            conn.call("GET", "key")
        before = calls(redis, "ping")
        wait_until(lambda: calls(redis, "ping") > before + 30, "thirty polls")
        assert cost(conn, "GET", "key") == (2, "flags")
        refused = redis.call("INFO", "commandstats").decode()
        assert int(re.search(r"cmdstat_info:.*rejected_calls=(\d+)", refused)[1]) < 30
        assert weir.log().count("denies INFO") == 1
        redis.call("ACL", "SETUSER", "weir", "+info")

        def is_measured():
            for _ in range(20):
                conn.call("GET", "key")
            return cost(conn, "GET", "key")[1] == "measured"

        wait_until(is_measured, "the right is found")


@pytest.mark.cluster
def test_nodes_of_a_cluster_tell_together(farm):
    """A command that only one node runs has a cost, whichever node that is."""
    cluster = Cluster(farm)
    weir = weir_before(cluster, workers=1, fair_share="on", env=QUICK)
    with weir.connect() as conn:
        for node, command in zip(cluster.masters, ("STRLEN", "TTL", "EXISTS")):
            key = cluster.key_at(node)

            def is_measured():
                for _ in range(20):
                    conn.call(command, key)
                return cost(conn, command, key)[1] == "measured"

            wait_until(is_measured, f"the cost of {command}")


def test_resetstat_changes_nothing(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, fair_share="on", env=QUICK)
    with weir.connect() as conn:

        def cost_of_some():
            for _ in range(100):
                conn.call("STRLEN", "key")
            return cost(conn, "STRLEN", "key")

        wait_until(lambda: cost_of_some()[1] == "measured", "its cost is known")
        for _ in range(20):
            redis.call("CONFIG", "RESETSTAT")
            us, by = cost_of_some()
            assert by == "measured" and 0.5 <= us < 100
