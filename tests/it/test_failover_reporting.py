"""What operators see when a master fails under sentinels: readiness, the log, LIMIT LOG, LIMIT
UPSTREAM, the metrics.
"""

import re
import signal
import threading

import pytest
from kit.admin import ADMIN, get
from kit.harness import wait_until
from kit.resp import Closed, Conn
from kit.sentinel import SECONDS, Deployment, follows
from test_upstream_statistics import metric, upstream

pytestmark = pytest.mark.failover

SECTIONS = ADMIN + "socket = {folder}/console\n"
STORY = re.compile(
    r"failover: upstream (\S+) is the master in place of (\S+), after (\S+) s without a master; commands that waited: "
    r"(\d+), refused: (\d+), retried: (\d+); connections lost with commands in flight: (\d+)"
)


def is_ready(weir):
    return get(weir, "/readyz")[0] == 200


def limit_log(weir):
    with Conn(str(weir.folder / "console")) as console:
        return [event[index + 1].decode() for event in console.call("LIMIT", "LOG", 50) for index in range(len(event)) if event[index] == b"text"]


def test_a_master_that_dies(farm):
    """weir is not ready without a master. Then the log and LIMIT LOG tell what happened, what
    waited and what was lost.
    """
    made = Deployment(farm)
    weir = farm.weir(made.upstream, sections=SECTIONS, failover_wait="30s")
    old = made.master
    with weir.connect(timeout=60) as waiting, weir.connect(timeout=60) as blocked:
        assert waiting.call("SET", "k", "v") == "OK"
        blocked.send(b"BLPOP nothing 0\r\n")
        wait_until(lambda: old.waiting()[0] == 1, "it blocks")
        wait_until(lambda: is_ready(weir), "it is ready")
        epoch = upstream(weir)[old.upstream]["epoch"]
        old.signal(signal.SIGKILL)
        old.wait()
        wait_until(lambda: not is_ready(weir), "it is not ready")
        assert old.upstream in get(weir, "/readyz")[2]
        answered = threading.Thread(target=lambda: waiting.call("SET", "k", "w"))
        answered.start()
        with pytest.raises(Closed):
            blocked.read()
        new = made.wait_switched(old)
        answered.join()
    wait_until(lambda: is_ready(weir), "it is ready")
    wait_until(lambda: follows(weir, new), "weir follows")
    told = wait_until(lambda: STORY.search(weir.log()), "the story is told", SECONDS)
    assert told.groups()[:2] == (new.upstream, old.upstream)
    missed, waited, refused, _, lost = (float(number) for number in told.groups()[2:])
    assert 0.5 <= missed < SECONDS and waited >= 1 and refused == 0 and lost >= 1
    assert any(STORY.search(text) for text in limit_log(weir)), limit_log(weir)
    rows = upstream(weir)
    assert rows[new.upstream]["role"] == "master" and rows[new.upstream]["epoch"] > epoch
    wait_until(lambda: metric(weir, "weir_upstream_master").get(new.upstream) == 1.0, "the metrics tell it")
    assert "weir_upstream_has_master 1\n" in get(weir, "/metrics")[2]


def test_sentinels_that_go(farm):
    """weir logs the missing sentinels; a working master stays in use."""
    made = Deployment(farm)
    weir = farm.weir(made.upstream, sections=SECTIONS, failover_wait="30s")
    wait_until(lambda: is_ready(weir), "it is ready")
    for sentinel in made.sentinels:
        sentinel.kill()
    for sentinel in made.sentinels:
        weir.wait_for_log("sentinel %s:%d cannot be reached" % sentinel.address)
    assert follows(weir, made.nodes[0]) and is_ready(weir)
