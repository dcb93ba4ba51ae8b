"""A partition of the cluster's bus; weir reaches both sides. The minority's table is old, and weir
does not use it.

The two sides are network namespaces: a pair of interfaces connects each to this machine, and
another pair connects the two. The test cuts the latter.
"""

import contextlib
import itertools
import random
import subprocess

import pytest
from kit.admin import ADMIN
from kit.cluster import Cluster, ClusterNode
from kit.far_host import is_possible
from kit.harness import stopped, wait_until
from kit.resp import encode
from test_cluster_rebuilt import questions
from test_cluster_topology import served

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not is_possible(), reason="only root makes network namespaces"),
]

SECONDS = 30
MINOR = 2  # index of the node, a master, that is alone on its side


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True)


class Sides:
    """Two namespaces, `major` and `minor`; `hosts` are their addresses, for this machine and for
    each other.
    """

    def __init__(self):
        self.id = f"{random.randrange(1 << 32):08x}"
        self.major, self.minor = names = [f"weir{self.id}{side}" for side in "ab"]
        subnet = f"10.{random.randrange(100, 190)}.{random.randrange(256)}"
        self.hosts = {names[0]: f"{subnet}.2", names[1]: f"{subnet}.6"}
        self.between = {names[0]: f"{subnet}.9", names[1]: f"{subnet}.10"}
        for n, name in enumerate(names):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            near = f"w{self.id}{n}"
            ip("link", "add", near, "type", "veth", "peer", "name", "near", "netns", name)
            ip("address", "add", f"{subnet}.{1 + 4 * n}/30", "dev", near)
            ip("link", "set", near, "up")
            ip("-n", name, "address", "add", self.hosts[name] + "/30", "dev", "near")
            ip("-n", name, "link", "set", "near", "up")
        ip("-n", names[0], "link", "add", "across", "type", "veth", "peer", "name", "across", "netns", names[1])
        for name in names:
            ip("-n", name, "address", "add", self.between[name] + "/30", "dev", "across")
        self.join()

    def join(self):
        for name in self.hosts:
            ip("-n", name, "link", "set", "across", "up")
        for name, other in (self.major, self.minor), (self.minor, self.major):
            ip("-n", name, "route", "add", self.hosts[other], "via", self.between[other])

    def cut(self):
        for name in self.hosts:
            ip("-n", name, "link", "set", "across", "down")

    def close(self):
        for name in self.hosts:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


class SideNode(ClusterNode):
    """A server on one side."""

    def __init__(self, *more, side, host, **kwargs):
        self.side, self.host = side, host
        super().__init__("--bind", "0.0.0.0", "--protected-mode", "no", "--cluster-announce-ip", host, *more, **kwargs)

    @property
    def address(self):
        return (self.host, self.port)

    @property
    def upstream(self):
        return f"{self.host}:{self.port}"

    def launch(self, argv, **kwargs):
        super().launch(["ip", "netns", "exec", self.side, *argv], **kwargs)


class SidesCluster(Cluster):
    def __init__(self, farm, sides):
        count = itertools.count()

        def make(*more, **kwargs):
            side = sides.minor if next(count) == MINOR else sides.major
            return SideNode(*more, side=side, host=sides.hosts[side], **kwargs)

        super().__init__(farm, masters=3, replicas=1, make=make)

    def _meet(self, node, other):
        assert node.call("CLUSTER", "MEET", *other.address) == "OK"


@pytest.fixture
def sides():
    sides = Sides()
    yield sides
    sides.close()


def test_the_minority_is_asked_and_not_believed(sides, farm):
    made = SidesCluster(farm, sides)
    minor = made.nodes[MINOR]
    (heir,) = made.replicas_of(minor)
    weir = farm.weir(made.entries(minor, made.nodes[0]), workers=2, failover_wait="20s", sections=ADMIN, env={"WEIR_HURRY": "10"})
    key = made.key_at(minor)
    with weir.connect(timeout=60) as conn:
        assert conn.ask(["INCR", key], ["WAIT", 1, 5000]) == [1, 1]
        sides.cut()
        wait_until(lambda: heir.upstream in served(weir), "the majority's new master is seen", SECONDS)
        assert minor.upstream not in served(weir)
        assert conn.call("INCR", key) == 2
        with contextlib.ExitStack() as stack:
            for node in made.nodes:
                if node is not minor:
                    stack.enter_context(stopped(node))
            asked = questions(minor)
            conn.send(encode("INCR", key))

            def still():
                assert minor.upstream not in served(weir)
                return questions(minor) > asked + 3

            wait_until(still, "the minority is asked, as nobody else answers", SECONDS)
            row = minor.rows()[minor.id]
            assert row["slots"] and "master" in row["flags"], "it knows of nothing"
        assert conn.read() == 3 and heir.call("GET", key) == b"3"
        sides.join()
        made.wait_ok()
        assert minor.role() == "slave" and minor.upstream not in served(weir)
        assert conn.call("INCR", key) == 4
    weir.stop()
