"""A failover by hand under load: SENTINEL FAILOVER, with all servers up."""

import os
import threading
import time

import pytest
from kit.counting import Counters
from kit.harness import wait_until
from kit.resp import Closed, Conn
from kit.sentinel import Deployment, Node, follows, takes_writes

FAILOVERS = 20 if os.environ.get("LONG") else 3
WAITS = {"failover_wait": "5s"}
ADD = "return redis.call('INCR', KEYS[1])"


class Session(threading.Thread):
    """A client that repeats one piece of work, and the results."""

    def __init__(self, address, work):
        super().__init__(daemon=True)
        self.address, self.work = address, work
        self.outcomes, self.is_over = [], False

    def run(self):
        while not self.is_over:
            try:
                with Conn(self.address, 30) as conn:
                    while not self.is_over:
                        self.outcomes.append(self.work(conn))
                        time.sleep(0.01)
            except Closed:
                self.outcomes.append("closed")
            except OSError as error:
                self.outcomes.append(repr(error))

    def __enter__(self):
        self.start()
        wait_until(lambda: self.outcomes, "it works")
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.join()


def word(reply):
    """Returns "ok", or the first word of an error."""
    return str(reply).partition(" ")[0] if type(reply).__name__ == "Error" else "ok"


def run_script(conn):
    return word(conn.call("EVAL", ADD, 1, "scripts"))


def run_transaction(conn):
    replies = conn.ask("MULTI", "INCR transactions", "EXEC")
    heard = {word(reply) for reply in replies} - {"ok"}
    return "+".join(sorted(heard)) or "ok"


@pytest.mark.failover
@pytest.mark.parametrize("workers", [1, 2])
def test_failovers_by_hand_under_load(workers, farm):
    """Commands on shared lanes notice nothing. Scripts and transactions get the errors that they
    would get directly.
    """
    made = Deployment(farm)
    weir = farm.weir(made.upstream, workers=workers, **WAITS)
    with Counters(weir.address) as counters, Session(weir.address, run_script) as scripts:
        with Session(weir.address, run_transaction) as transactions:
            for _ in range(FAILOVERS):
                new = made.failover()
                counters.wait_served(time.monotonic())
                assert follows(weir, new)
                made.wait_settled()
    counters.assert_undisturbed()
    assert set(scripts.outcomes) <= {"ok", "READONLY", "closed"}, set(scripts.outcomes)
    assert set(transactions.outcomes) <= {"ok", "READONLY", "EXECABORT", "EXECABORT+READONLY", "closed"}, set(transactions.outcomes)


@pytest.fixture
def pair(farm):
    """Two masters: the first becomes the replica of the second."""
    return farm._start(Node()), farm._start(Node())


def test_a_write_that_is_refused_goes_to_the_next_master(farm, pair):
    """A list of servers without a master for a while: a write waits; a script and a transaction get
    the refusal.
    """
    old, new = pair
    assert new.call("REPLICAOF", *old.announced) == "OK"
    weir = farm.weir(f"{old.upstream}, {new.upstream}", failover_wait="20s")
    with weir.connect() as conn, weir.connect() as script, weir.connect() as queueing:
        assert conn.call("INCR", "n") == 1
        assert script.call("EVAL", ADD, 1, "scripts") == 1
        assert queueing.ask("MULTI", "INCR transactions", "EXEC") == ["OK", "QUEUED", [1]]
        wait_until(lambda: new.follows(old) and new.call("GET", "n") == b"1", "it follows")
        assert old.call("REPLICAOF", *new.announced) == "OK"
        for n in range(5):
            conn.send(b"INCR n\r\nECHO %d\r\n" % n)
        heard = word(script.call("EVAL", ADD, 1, "scripts"))
        assert heard in ("READONLY", "ok"), heard
        assert new.call("REPLICAOF", "NO", "ONE") == "OK"
        assert [conn.read() for _ in range(10)] == [2, b"0", 3, b"1", 4, b"2", 5, b"3", 6, b"4"]
    assert new.call("GET", "n") == b"6"
    assert takes_writes(new.address)
