"""`upstream = sentinel:NAME@a, b, c`: weir serves the server that the sentinels name, once the
server reports itself as master.
"""

import re
import signal

from kit.fake_sentinel import FakeSentinel
from kit.harness import wait_until
from kit.sentinel import NAME, SECONDS, Deployment, Node, calls, follows


def fakes(farm, master, n=3):
    return [farm._start(FakeSentinel(master=master.address)) for _ in range(n)]


def named_by(sentinels):
    return f"sentinel:{NAME}@" + ", ".join("%s:%d" % sentinel.address for sentinel in sentinels)


def test_a_failover(farm):
    """The master is killed. Later commands wait for the next master. The old master returns, and
    gets no writes.
    """
    made = Deployment(farm)
    weir = farm.weir(made.upstream, failover_wait="90s")
    old = made.master
    assert follows(weir, old)
    with weir.connect() as conn:
        old.signal(signal.SIGKILL)
        old.wait()
    with weir.connect() as conn:
        conn.sock.settimeout(SECONDS)
        assert conn.call("SET", "key", "1") == "OK"
        new = made.master
        assert new is not old and new.call("GET", "key") == b"1"
        old.start()
        for i in range(100):
            assert conn.call("SET", "key", i) == "OK"
        assert calls(old, "set") == 0 or old.role() == "slave"
    assert follows(weir, new)
    assert f"upstream {new.upstream} is the master" in weir.log()
    told = rf"failover: upstream {new.upstream} is the master in place of {old.upstream}, after (\S+) s without a master; commands that waited: (\d+),"
    seconds, waited = wait_until(lambda: re.search(told, weir.log()), "the failover is told").groups()
    assert 0.5 < float(seconds) < SECONDS and int(waited) >= 1


def test_the_word_of_sentinels_goes_before_a_role(farm):
    """Both servers report themselves as masters. weir serves the one that the sentinels name, and
    the other gets nothing more.
    """
    first, second = farm._start(Node()), farm._start(Node())
    sentinels = fakes(farm, first)
    weir = farm.weir(named_by(sentinels))
    assert follows(weir, first)
    with weir.connect() as conn:
        for sentinel in sentinels:
            sentinel.says(second.address, epoch=2)
        wait_until(lambda: follows(weir, second), "the other is served", SECONDS)
        written = calls(first, "set")
        for i in range(100):
            assert conn.call("SET", "key", i) == "OK"
        assert calls(first, "set") == written
        assert second.call("GET", "key") == b"99"


def test_no_sentinel_at_the_start(farm):
    """weir starts, logs what is missing, and serves once a sentinel names a master."""
    first = farm._start(Node())
    sentinel = FakeSentinel(master=first.address)
    weir = farm.weir(named_by([sentinel]), failover_wait="90s")
    assert "not ready" in weir.log() and "sentinel 127.0.0.1:%d: " % sentinel.port in weir.log()
    with weir.connect() as conn:
        conn.sock.settimeout(SECONDS)
        conn.send(b"SET key 1\r\n")
        farm._start(sentinel)
        assert conn.read() == "OK"
    assert follows(weir, first)
