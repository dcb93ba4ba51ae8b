"""What Redis refused without having run it is sent again: to the same server once it is a master again, in order, once."""

import contextlib
import threading
import time

import pytest
from kit.harness import MODES, free_port, wait_until
from kit.resp import Closed, Error, encode, pipeline

READONLY = Error("READONLY You can't write against a read only replica.")
SOON = "30s"  # a failover-wait that no test waits for
ENV = {"WEIR_HURRY": "4"}


def demote(redis):
    assert redis.call("REPLICAOF", "127.0.0.1", 1) == "OK"


def promote(redis):
    assert redis.call("REPLICAOF", "NO", "ONE") == "OK"


@pytest.fixture(params=[1, 2], ids=["1-worker", "2-workers"])
def workers(request):
    return request.param


def behind(farm, redis, wait=SOON, **settings):
    """weir in front of a list: this server, and an address where there is none."""
    return farm.weir(f"{redis.upstream}, 127.0.0.1:{free_port()}", failover_wait=wait, **{"workers": 1, "env": ENV, **settings})


def calls(redis, command):
    fields = dict(line.split(":", 1) for line in redis.call("INFO", "commandstats").decode().splitlines() if ":" in line)
    stats = dict(pair.split("=") for pair in fields.get(f"cmdstat_{command}", "calls=0,rejected_calls=0").split(","))
    return int(stats["calls"]), int(stats["rejected_calls"])


def test_a_refused_write_runs_on_the_master(farm, workers):
    redis = farm.redis()
    weir = behind(farm, redis, workers=workers)
    with weir.connect() as conn:
        assert conn.call("INCR", "n") == 1
        demote(redis)
        conn.send(encode("INCR", "n"))
        wait_until(lambda: calls(redis, "incr")[1] > 0, "it is refused")
        promote(redis)
        assert conn.read() == 2
        assert conn.call("INCR", "n") == 3
    assert calls(redis, "incr")[0] == 3
