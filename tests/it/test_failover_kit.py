"""Tests the failover kit itself, without weir."""

import signal
import time

import pytest
from kit.fake_sentinel import HANG, FakeSentinel
from kit.harness import stopped, wait_until
from kit.relay import Relay
from kit.resp import Closed, Conn
from kit.sentinel import NAME, Deployment, fields, takes_writes

pytestmark = pytest.mark.failover


def test_a_master_that_is_killed(farm):
    made = Deployment(farm)
    old = made.master
    with made.switches() as switches:
        old.signal(signal.SIGKILL)
        old.wait()
        new = made.wait_switched(old)
        wait_until(lambda: switches.moments, "+switch-master is published")
        assert switches.first(new) <= time.monotonic()
    assert takes_writes(new.address)
    old.start()
    made.wait_settled()
    assert made.master is new and old.role() == "slave"


def test_a_failover_by_hand(farm):
    made = Deployment(farm)
    epochs = [sentinel.epoch() for sentinel in made.sentinels]
    old = made.master
    new = made.failover()
    assert new is not old and takes_writes(new.address)
    made.wait_settled()
    assert old.role() == "slave"
    assert all(sentinel.epoch() > epoch for sentinel, epoch in zip(made.sentinels, epochs))


def test_a_master_that_is_cut_off(farm):
    made = Deployment(farm, is_relayed=True)
    old = made.master
    with old.relay.parted():
        new = made.wait_switched(old)
        assert old.role() == "master", "it does not know"
    made.wait_settled()
    assert made.master is new and old.role() == "slave"


def test_behind_passwords(farm):
    made = Deployment(farm, password="secret", sentinel_password="word")
    with made.switches(), stopped(made.nodes[0]):
        made.wait_switched(made.nodes[0])


def test_a_relay(farm):
    first, second = farm.redis(), farm.redis()
    relay = farm._start(Relay(first.address))
    with Conn(relay.address) as conn:
        assert conn.call("SET", "server", "first") == "OK"
        relay.cut()
        conn.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            conn.call("GET", "server")
        conn.sock.settimeout(10)
        relay.heal()
        assert conn.read() == b"first"
        second.call("SET", "server", "second")
        relay.retarget(second.address)
        with pytest.raises((Closed, OSError)):
            conn.call("GET", "server")
    with Conn(relay.address) as conn:
        assert conn.call("GET", "server") == b"second"


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_fake_answers_as_a_sentinel_does(farm, protocol):
    """The same kinds of replies, with all that weir may read."""
    made = Deployment(farm, n_replicas=1, n_sentinels=2)
    real = made.sentinels[0]
    with FakeSentinel(master=made.master.announced, epoch=0) as fake:
        fake.replicas = [made.nodes[1].announced]
        fake.peers = [made.sentinels[1].address]
        with Conn(fake.address) as said, real.connect() as asked:
            for conn in (said, asked):
                hello = conn.call("HELLO", protocol)
                assert (hello if protocol == 3 else dict(zip(hello[::2], hello[1::2])))[b"mode"] == b"sentinel"
            words = ("SENTINEL", "get-master-addr-by-name")
            assert said.call(*words, NAME) == asked.call(*words, NAME)
            assert said.call(*words, "none") == asked.call(*words, "none")
            assert said.call("SENTINEL", "master", "none") == asked.call("SENTINEL", "master", "none")
            for question in ("master", "replicas", "sentinels"):
                mine, theirs = (conn.call("SENTINEL", question, NAME) for conn in (said, asked))
                for one, other in zip([mine], [theirs]) if question == "master" else zip(mine, theirs):
                    assert type(one) is type(other)
                    one, other = (reply if protocol == 3 else dict(zip(reply[::2], reply[1::2])) for reply in (one, other))
                    for key in (b"ip", b"port", b"flags"):
                        assert one[key] == other[key]
            assert said.call("ROLE") == asked.call("ROLE")
            assert said.call("SUBSCRIBE", "+switch-master") == asked.call("SUBSCRIBE", "+switch-master")
        fake.answers["SENTINEL MASTER"] = HANG
        with Conn(fake.address, 0.2) as conn, pytest.raises(TimeoutError):
            conn.call("SENTINEL", "master", NAME)
        assert fake.most_in(60) == fake.n_asked("SENTINEL") > 4


def test_fields_of_a_real_one(farm):
    made = Deployment(farm, n_replicas=0, n_sentinels=1, quorum=1)
    assert fields(made.sentinels[0].call("SENTINEL", "master", NAME))["port"] == str(made.nodes[0].port)
