"""Attacks that once broke weir in front of a cluster."""

import re
import time

import pytest
from kit.cluster import Cluster, slot_of, weir_before
from kit.harness import stopped, wait_until
from kit.resp import Error, pipeline

pytestmark = pytest.mark.cluster


def absent_keys(made):
    """Returns three keys of one slot, the slot, and the slot's target. All other keys of the slot
    have moved. The first key is at the source, the other two are absent.
    """
    source, target = made.masters[:2]
    tag = made.tag_at(source)
    keys = [f"{name}{{{tag}}}" for name in ("there", "nowhere", "neither")]
    assert source.call("SET", keys[0], "1") == "OK"
    made.begin_move(slot_of(tag), target)
    made.move_keys(slot_of(tag))
    return keys, slot_of(tag), target


def refused(node):
    """Returns how often the node has answered TRYAGAIN."""
    return int((re.search(r"errorstat_TRYAGAIN:count=(\d+)", node.call("INFO", "errorstats").decode()) or [0, 0])[1])


def commands(there, nowhere, neither):
    """Returns commands with the replies they get once the slot has moved."""
    return [
        ([["COPY", there, nowhere]], 1),
        ([["SINTER", nowhere, neither]], []),
        ([["MSETNX", there, "2", neither, "2"]], 0),
        ([["BLPOP", nowhere, neither, "0.01"]], None),
        ([["WATCH", nowhere, neither]], "OK"),
        ([["MULTI"], ["GET", there], ["GET", neither], ["EXEC"]], [b"1", None]),
    ]


def test_several_keys_that_are_not_all_there_wait_for_the_end_of_the_move(farm):
    made = Cluster(farm)
    weir = weir_before(made, workers=1, redirect_timeout="30s")
    keys, slot, target = absent_keys(made)
    # each time the old node answers ASK, and the new node answers TRYAGAIN
    for asked, answer in commands(*keys):
        before = refused(target)
        with weir.connect() as conn:
            conn.send(pipeline(*asked))
            wait_until(lambda: refused(target) > before + 8, "asked again and again", 20)
            made.end_move(slot)
            assert [conn.read() for _ in asked][-1] == answer, asked
        target.call("DEL", keys[1])
        source, target = target, next(node for node in made.masters if node is not target)
        made.begin_move(slot, target, source)
        made.move_keys(slot)


def test_several_keys_that_are_not_all_there_hear_why_in_the_end(farm):
    made = Cluster(farm)
    weir = weir_before(made, workers=1, redirect_timeout="500ms")
    keys, _, _ = absent_keys(made)
    # after TRYAGAIN, or after ASK
    last = {Error("TRYAGAIN Multiple keys request during rehashing of slot"), Error("UPSTREAM moved")}
    for asked, _ in commands(*keys):
        with weir.connect() as conn:
            began = time.monotonic()
            answer = conn.ask(*asked)[-1]
            assert answer in last or answer.startswith("UNBLOCKED"), (asked, answer)
            assert time.monotonic() - began > 0.4, asked


def test_wait_behind_each_write_takes_the_same_connection(farm):
    made = Cluster(farm, replicas=1)
    weir = weir_before(made, workers=1)
    master = made.masters[1]
    key = made.key_at(master)
    with weir.connect() as conn:

        def write_and_wait(milliseconds):
            return conn.ask(["SET", key, "v"], ["WAIT", "1", milliseconds])[1]

        assert write_and_wait("10000") == 1
        before = int(master.info("total_connections_received"))
        assert [write_and_wait("10000") for _ in range(50)] == [1] * 50
        assert int(master.info("total_connections_received")) - before < 25
        with stopped(made.replicas_of(master)[0]):
            assert write_and_wait("50") == 0
        assert write_and_wait("10000") == 1


def test_wait_behind_a_failover_that_weir_has_not_heard_of(farm):
    made = Cluster(farm, replicas=1)
    weir = weir_before(made, workers=1)
    master = made.masters[1]
    key = made.key_at(master)
    with weir.connect() as conn:
        assert conn.call("SET", key, "v") == "OK"
        made.failover(made.replicas_of(master)[0])
        assert conn.call("WAIT", "1", "100") in (0, 1)  # not the error of the former master
        made.wait_ok()
        wait_until(lambda: conn.ask(["SET", key, "v"], ["WAIT", "1", "1000"]) == ["OK", 1], "weir has heard of it")


@pytest.mark.parametrize("asked", ["SET", "INCR", "EVAL", "MULTI", "FLUSHALL"])
def test_wait_is_not_early_behind_reads(farm, asked):
    made = Cluster(farm, masters=2, replicas=1)
    weir = weir_before(made, workers=1)
    for master in made.masters:
        key = made.key_at(master)
        with weir.connect() as conn, stopped(made.replicas_of(master)[0]):
            for _ in range(2):
                conn.ask(*(["GET", made.key_at(node)] for node in made.masters))
            conn.ask(*writes(key)[asked])
            assert conn.call("WAIT", "1", "50") == 0, key


def writes(key):
    return {
        "SET": [["SET", key, "1"]],
        "INCR": [["INCR", key]] * 10,
        "EVAL": [["EVAL", "return redis.call('INCR', KEYS[1])", "1", key]],
        "MULTI": [["MULTI"], ["INCR", key], ["EXEC"]],
        "FLUSHALL": [["FLUSHALL"]],
    }


@pytest.mark.parametrize("asked", ["SET", "EVAL", "MULTI"])
def test_wait_is_not_early_behind_a_redirect(farm, asked):
    made = Cluster(farm, masters=2, replicas=1)
    weir = weir_before(made, workers=1)
    source, target = made.masters
    key = made.key_at(source)
    with weir.connect() as conn:
        conn.ask(["GET", key], ["GET", made.key_at(target)])
        made.move(slot_of(key), target)
        with stopped(made.replicas_of(target)[0]):
            conn.ask(*writes(key)[asked])
            assert conn.call("WAIT", "1", "50") == 0


def test_wait_tells_once_of_what_may_be_lost(farm):
    made = Cluster(farm, replicas=1)
    weir = weir_before(made, workers=1)
    first, second, third = made.masters
    with weir.connect() as conn:
        assert conn.ask(["GET", made.key_at(third)], ["SET", made.key_at(first), "1"], ["WAIT", "1", "5000"])[2] == 1
        third.call("CLIENT", "KILL", "TYPE", "normal")

        def write_and_wait():
            return conn.ask(["SET", made.key_at(second), "1"], ["WAIT", "1", "5000"])[1]

        wait_until(lambda: write_and_wait() == 0, "weir knows that a connection is lost")
        assert write_and_wait() == 1
