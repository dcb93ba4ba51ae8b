"""Commands of one client for one key run in order, whatever nodes of a cluster refuse in between.
"""

import contextlib
import threading

import pytest
from kit.cluster import Cluster, keys_in, slot_of, weir_before
from kit.fake_node import FakeNode, moved, nodes_reply, row
from kit.harness import wait_until
from kit.resp import Error

DOWN = b"-CLUSTERDOWN The cluster is down\r\n"
LOADING = b"-LOADING Redis is loading the dataset in memory\r\n"


def some(slot, n):
    return [key for key, _ in zip(keys_in(slot), range(n))]


def tries(node):
    """Returns how often the node has answered TRYAGAIN."""
    line = node.call("INFO", "errorstats").decode()
    return int(line.partition("errorstat_TRYAGAIN:count=")[2].partition("\r")[0] or 0)


@pytest.fixture
def moving(farm):
    """A slot that has begun to move without weir's knowledge; the first of its keys has moved."""
    made = Cluster(farm, masters=3)
    weir = weir_before(made, workers=1, redirect_timeout="20s")
    first, second = made.masters[:2]
    slot = slot_of(made.key_at(first))
    keys = some(slot, 3)

    def begin(conn, *calls):
        conn.ask(*calls)
        made.begin_move(slot, second)
        made.move_keys(slot, keys=keys[:1])

    def end_behind(node, n):
        """A thread: the move of the slot ends once this node has answered TRYAGAIN n times."""

        def run():
            wait_until(lambda: tries(node) >= n, "TRYAGAIN", 20)
            made.end_move(slot)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    yield made, weir, keys, begin, end_behind
    weir.stop()


def test_no_later_command_overtakes_one_with_several_keys(moving):
    """Redis refuses the first command (TRYAGAIN), and would run the second."""
    made, weir, keys, begin, end_behind = moving
    gone, here, target = keys
    with weir.connect() as conn:
        begin(conn, ["SADD", gone, "x"], ["SADD", here, "y"])
        thread = end_behind(made.masters[0], 3)
        assert conn.ask(["SUNIONSTORE", target, gone, here], ["SADD", here, "z"], ["SCARD", target]) == [2, 1, 2]
        thread.join()


def test_a_command_over_several_slots_is_not_overtaken(moving):
    made, weir, keys, begin, _ = moving
    other = made.key_at(made.masters[2])
    with weir.connect() as conn:
        begin(conn, *(["SET", key, "1"] for key in [*keys, other]))
        got = conn.ask(["DEL", *keys, other], ["SET", keys[1], "2"], ["MGET", *keys, other], ["SET", keys[2], "3"], ["GET", keys[1]])
        assert got == [4, "OK", [None, b"2", None, None], "OK", b"2"]
        made.end_move(slot_of(keys[0]))


def test_keys_that_are_at_neither_node_are_asked_for_until_the_move_is_over(moving):
    """The old node answers ASK and the new node TRYAGAIN: that is not a redirect loop."""
    made, weir, keys, begin, end_behind = moving
    gone, _, missing = keys
    with weir.connect() as conn:
        begin(conn, ["SET", gone, "1"])
        thread = end_behind(made.masters[1], 8)
        assert conn.ask(["COPY", gone, missing], ["GET", missing]) == [1, b"1"]
        thread.join()


class Refusing:
    """Gives this answer to the first `n` requests of a command, then answers as the node does."""

    def __init__(self, reply, n=1):
        self.reply, self.n = reply, n

    def __call__(self, args):
        self.n -= 1
        return self.reply if self.n >= 0 else None


@pytest.fixture
def fake(farm):
    made = Cluster(farm, masters=3, is_relayed=True)
    with FakeNode(made.nodes[0]) as fake:
        weir = weir_before(made, workers=1)
        with weir.connect() as conn:
            yield fake, conn, some(slot_of(made.key_at(made.nodes[0])), 2), made.key_at(made.nodes[1])
        weir.stop()


@pytest.mark.parametrize("reply", [DOWN, LOADING])
def test_a_write_behind_which_another_has_run_is_not_run_later(fake, reply):
    fake, conn, (key, other), elsewhere = fake
    fake.answers["SET"] = Refusing(reply)
    first, *rest = conn.ask(["SET", key, "1"], ["SET", other, "2"], ["SET", key, "3"], ["SET", elsewhere, "4"])
    assert (first, rest) == (Error(reply[1:-2].decode()), ["OK"] * 3)
    assert conn.ask(["GET", key], ["GET", other]) == [b"3", b"2"]
    assert fake.n_asked("SET") == 3


def test_a_read_behind_which_a_write_has_run_is_not_run_later(fake):
    fake, conn, (key, other), _ = fake
    # a client's first read is answered before weir sends the second read
    conn.ask(["SET", key, "0"], ["SET", other, "0"], ["GET", key])
    fake.answers["GET"] = Refusing(DOWN, 2)
    assert conn.ask(["GET", key], ["GET", other], ["SET", key, "1"]) == [Error(DOWN[1:-2].decode()), b"0", "OK"]


def test_a_part_behind_which_a_write_has_run_is_not_run_later(fake):
    fake, conn, (key, _), elsewhere = fake
    conn.ask(["SET", key, "0"], ["SET", elsewhere, "0"])
    fake.answers["MGET"] = Refusing(DOWN)
    assert conn.ask(["MGET", elsewhere, key], ["SET", key, "1"]) == [Error(DOWN[1:-2].decode()), "OK"]


def test_what_nothing_has_overtaken_is_run_again_in_its_order(fake):
    fake, conn, (key, other), elsewhere = fake
    fake.answers["INCR"] = Refusing(DOWN, 3)
    fake.answers["GET"] = Refusing(DOWN, 2)
    calls = [["INCR", key], ["INCR", other], ["INCR", key], ["INCR", elsewhere], ["GET", key], ["GET", elsewhere], ["GET", other], ["GET", key]]
    assert conn.ask(*calls) == [1, 1, 2, 1, b"2", b"1", b"1", b"2"]


@contextlib.contextmanager
def two_nodes(farm, **config):
    """A weir in front of two fake nodes; the first serves nearly all slots."""
    with FakeNode() as old, FakeNode() as new:
        for node in (old, new):
            rows = [row(old.id, old.upstream, slots="0-16000"), row(new.id, new.upstream, slots="16001-16383")]
            me = [line.replace(" master ", " myself,master ") if node.id in line else line for line in rows]
            node.answers["CLUSTER NODES"] = nodes_reply(*me)
        weir = farm.weir(f"cluster:{old.upstream}, {new.upstream}", workers=1, failover_wait="20s", **config)
        yield weir, old, new
        weir.stop()


def test_a_redirect_behind_a_node_that_was_away_has_its_own_time(farm):
    """redirect-timeout counts redirects alone: a command that waited longer for a node is still
    redirected.
    """
    with two_nodes(farm, redirect_timeout="1ms") as (weir, old, new), weir.connect() as conn:
        answers = iter([DOWN, moved(slot_of("k"), new.upstream)] * 8)
        old.answers["GET"] = lambda args: next(answers)
        again = iter([DOWN, moved(slot_of("k"), old.upstream)])
        new.answers["GET"] = lambda args: next(again, b"$1\r\n1\r\n")
        assert conn.call("GET", "k") == b"1"


def test_so_has_one_of_a_command_on_a_connection_of_its_own(farm):
    with two_nodes(farm, redirect_timeout="200ms") as (weir, old, new), weir.connect() as conn:
        # the waits: 10, 20, 40, 80, 100, 100 ms
        answers = iter([DOWN] * 6 + [moved(slot_of("k"), new.upstream)] * 2)
        old.answers["BLPOP"] = lambda args: next(answers)
        new.answers["BLPOP"] = b"*2\r\n$1\r\nk\r\n$1\r\n1\r\n"
        assert conn.call("BLPOP", "k", 0) == [b"k", b"1"]
