"""What operators see of the servers of the upstream: LIMIT UPSTREAM, the statistics, the page and
the metrics.
"""

import re

import pytest
from kit.admin import ADMIN, get, stats
from kit.browser import page_of
from kit.harness import stopped, wait_until
from kit.limits import plain
from kit.resp import Conn, Error
from kit.sentinel import Deployment, Node, follows
from test_failover_by_server_list import HURRY, SECONDS, listed, pair, swap

FIELDS = [
    "address", "in_use", "role", "state", "used_for", "epoch", "lag_ms", "behind_bytes", "lanes", "in_flight", "requests", "errors", "lost",
    "changed_ms_ago", "why", "slots", "slots_moving",
]  # fmt: skip
SECTIONS = ADMIN + "socket = {folder}/console\n"


def start(farm, upstream, **settings):
    return farm.weir(upstream, sections=SECTIONS, **{"workers": 2, "env": HURRY, "failover_wait": "30s", **settings})


def upstream(weir):
    """Returns the rows of LIMIT UPSTREAM, by address."""
    with Conn(str(weir.folder / "console")) as console:
        console.call("HELLO", 3)
        rows = [{k: plain(v) for k, v in plain(row).items()} for row in console.call("LIMIT", "UPSTREAM")]
    assert all(list(row) == FIELDS for row in rows)
    return {row["address"]: row for row in rows}


def metric(weir, name):
    """Returns the values by the label upstream."""
    return {labels: float(value) for labels, value in re.findall(rf'^{name}{{upstream="([^"]*)"}} (\S+)$', get(weir, "/metrics")[2], re.M)}


def test_one_server(browser, farm):
    redis = farm.redis()
    weir = start(farm, redis)
    assert weir.serves()
    address = "%s:%d" % redis.address
    row = upstream(weir)[address]
    assert (row["role"], row["state"], row["used_for"], row["in_use"], row["why"]) == ("master", "up", "all", address, "")
    assert row["epoch"] == 0 and row["lag_ms"] == -1 and row["lanes"] > 0 and row["requests"] > 0
    wait_until(lambda: stats(weir)["upstream"]["nodes"][0]["requests"] > 0, "the statistics have it")
    told = stats(weir)["upstream"]
    assert told["replicated"] is False and told["nodes"][0]["use"] == "all" and "lag_seconds" not in told["nodes"][0]
    assert metric(weir, "weir_upstream_master") == {address: 1.0}
    assert "weir_upstream_has_master 1\n" in get(weir, "/metrics")[2]
    assert "nodes-card" in page_of(browser, weir).hidden


def test_a_master_and_its_replica(browser, farm):
    first, second = pair(farm)
    weir = start(farm, listed(first, second))
    assert follows(weir, first)
    rows = upstream(weir)
    assert list(rows) == [first.upstream, second.upstream]
    assert [(row["role"], row["used_for"]) for row in rows.values()] == [("master", "all"), ("replica", "nothing")]
    assert [row["state"] for row in rows.values()] == ["up", "up"]
    assert metric(weir, "weir_upstream_master") == {first.upstream: 1.0, second.upstream: 0.0}
    page = page_of(browser, weir)
    assert "nodes-card" not in page.hidden and second.upstream in [row[0] for row in page.tables["nodes"]]
    sent = rows[first.upstream]["requests"]
    swap(first, second)
    wait_until(lambda: follows(weir, second), "weir follows", SECONDS)

    def is_told():
        now = upstream(weir)
        return [(now[node.upstream]["role"], now[node.upstream]["used_for"]) for node in (first, second)] == [
            ("replica", "nothing"),
            ("master", "all"),
        ]

    wait_until(is_told, "LIMIT UPSTREAM tells it", SECONDS)
    now = upstream(weir)
    assert now[second.upstream]["requests"] < sent + 1000, "what the old master was sent is not the new one's"
    assert 0 <= now[second.upstream]["changed_ms_ago"] < SECONDS * 1000
    assert now[first.upstream]["lanes"] == 0
    wait_until(lambda: metric(weir, "weir_upstream_master") == {first.upstream: 0.0, second.upstream: 1.0}, "the metrics tell it", SECONDS)
    wait_until(lambda: [node["use"] for node in stats(weir)["upstream"]["nodes"]] == ["nothing", "all"], "the statistics", SECONDS)
    assert stats(weir)["upstream"]["address"] == second.upstream


def test_a_replica_that_is_away(farm):
    first, second = pair(farm)
    weir = start(farm, listed(first, second))
    assert follows(weir, first)
    second.kill()
    wait_until(lambda: upstream(weir)[second.upstream]["state"] == "away", "it is away", SECONDS)
    row = upstream(weir)[second.upstream]
    assert row["role"] == "replica" and row["changed_ms_ago"] >= 0
    wait_until(lambda: metric(weir, "weir_upstream_up") == {first.upstream: 1.0, second.upstream: 0.0}, "the metrics tell it", SECONDS)
    wait_until(lambda: any(one["title"] == "Servers are away" for one in stats(weir)["findings"]), "and the page")
    assert get(weir, "/readyz")[0] == 200, "the master is there"


def test_no_master(browser, farm):
    first, second = pair(farm)
    weir = start(farm, listed(first, second))
    assert follows(weir, first)
    first.become_replica_of(second)
    wait_until(lambda: all(row["used_for"] == "nothing" for row in upstream(weir).values()), "none is the master", SECONDS)
    wait_until(lambda: "weir_upstream_has_master 0\n" in get(weir, "/metrics")[2], "the metrics tell it", SECONDS)
    wait_until(lambda: stats(weir)["findings"][0]["title"] == "Redis has no master", "and the page", SECONDS)
    assert stats(weir)["upstream"]["up"] is False and stats(weir)["upstream"]["state"] == "away"
    assert page_of(browser, weir).findings.startswith("Redis has no master")


def test_two_masters_at_the_start(farm):
    first, second = farm._start(Node()), farm._start(Node())
    weir = start(farm, listed(first, second))
    wait_until(lambda: len(upstream(weir)) == 2 and all(row["role"] == "master" for row in upstream(weir).values()), "both say so", SECONDS)
    assert {row["used_for"] for row in upstream(weir).values()} == {"nothing"}


def test_a_replica_that_hangs(farm):
    first, second = pair(farm)
    weir = start(farm, listed(first, second))
    assert follows(weir, first)
    with stopped(second):
        wait_until(lambda: upstream(weir)[second.upstream]["state"] == "silent", "it is silent", SECONDS)


def test_only_operators_may_ask(farm):
    weir = start(farm, farm.redis())
    with weir.connect() as conn:
        assert conn.call("LIMIT", "UPSTREAM").startswith("NOPERM")
    with Conn(str(weir.folder / "console")) as console:
        assert isinstance(console.call("LIMIT", "UPSTREAM")[0], list)
        assert console.call("LIMIT", "UPSTREAM", "x") == Error("ERR wrong number of arguments for 'limit|upstream' command")
        assert any("UPSTREAM" in plain(line) for line in console.call("LIMIT", "HELP"))


@pytest.mark.parametrize("protocol", [2, 3])
def test_it_answers_while_redis_is_away(protocol, farm):
    redis = farm.redis()
    weir = start(farm, redis)
    assert weir.serves()
    redis.kill()
    with Conn(str(weir.folder / "console")) as console:
        if protocol == 3:
            console.call("HELLO", 3)
        wait_until(lambda: b"away" in str(console.call("LIMIT", "UPSTREAM")).encode(), "it is away")


def test_a_replica_that_is_read_from(farm):
    """The replica's lag is shown. A hanging replica is shown as unused."""
    first, second = pair(farm)
    weir = start(farm, listed(first, second), reads="replicas")
    assert follows(weir, first)
    wait_until(lambda: upstream(weir)[second.upstream]["used_for"] == "reads", "it is in sync", SECONDS)
    row = upstream(weir)[second.upstream]
    assert 0 <= row["lag_ms"] < 5000 and row["behind_bytes"] >= 0
    assert upstream(weir)[first.upstream]["lag_ms"] == -1
    wait_until(lambda: metric(weir, "weir_upstream_lag_seconds").keys() == {second.upstream}, "the metrics tell it", SECONDS)
    assert "lag_seconds" in stats(weir)["upstream"]["nodes"][1]
    with stopped(second):
        wait_until(lambda: upstream(weir)[second.upstream]["used_for"] == "nothing", "it is not", SECONDS)


def test_what_sentinels_name(farm):
    """The epoch of the master; and the servers that sentinels report, though none was configured.
    """
    made = Deployment(farm, n_replicas=1)
    weir = start(farm, made.upstream)
    first, second = made.nodes
    assert follows(weir, first)
    row = upstream(weir)[first.upstream]
    assert row["used_for"] == "all"
    made.failover()
    wait_until(lambda: upstream(weir).get(second.upstream, {}).get("used_for") == "all", "the new one is served", 90)
    assert upstream(weir)[second.upstream]["epoch"] > row["epoch"]
    wait_until(lambda: metric(weir, "weir_upstream_epoch").keys() == {second.upstream}, "the metrics tell it", SECONDS)
