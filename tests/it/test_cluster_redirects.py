"""Slots move. Clients see neither MOVED nor ASK, and each of their commands runs once, in order."""

import random
import threading

import pytest

from kit.cluster import Cluster, keys_in, slot_of, weir_before
from kit.harness import Farm
from kit.resp import Error


@pytest.fixture
def made(farm):
    return Cluster(farm, masters=3)


def some(slot, n):
    return [key for key, _ in zip(keys_in(slot), range(n))]


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_slot_that_has_moved(made, protocol):
    weir = weir_before(made, workers=1)
    first, second = made.masters[:2]
    key = made.key_at(first)
    with weir.connect() as conn:
        conn.call("HELLO", protocol)
        assert conn.call("SET", key, "1") == "OK"
        made.move(slot_of(key), second)
        other = made.key_at(made.masters[2])
        assert conn.ask(["GET", key], ["SET", other, "2"], ["INCR", key], ["GET", other], "PING") == [b"1", "OK", 2, b"2", "PONG"]
        assert conn.call("GET", key) == b"2"
    weir.stop()


def test_a_slot_on_its_way(made):
    weir = weir_before(made, workers=1)
    first, second = made.masters[:2]
    slot = slot_of(made.key_at(first))
    keys = some(slot, 6)
    others = [made.key_at(node) for node in made.masters[1:]]
    with weir.connect() as conn:
        conn.ask(*[["SET", key, "0"] for key in keys[:4]])
        made.begin_move(slot, second)
        made.move_keys(slot, keys=keys[:2])
        for n in range(1, 4):
            calls = [["INCR", key] for key in keys] + [["INCR", other] for other in others]
            random.Random(n).shuffle(calls)
            got = conn.ask(*calls)
            assert got == [n] * len(calls), (calls, got)
        assert [node.call("DBSIZE") > 0 for node in (first, second)] == [True, True]
        made.end_move(slot)
        assert conn.ask(*[["GET", key] for key in keys]) == [b"3"] * 6
    weir.stop()


def test_order_on_one_key_that_is_asked_for_elsewhere(made):
    weir = weir_before(made, workers=1)
    first, second = made.masters[:2]
    slot = slot_of(made.key_at(first))
    key, *_ = some(slot, 1)
    with weir.connect() as conn:
        made.begin_move(slot, second)
        calls = []
        for n in range(50):
            calls += [["SET", key, n], ["GET", key], ["INCR", key]]
        wanted = []
        for n in range(50):
            wanted += ["OK", b"%d" % n, n + 1]
        assert conn.ask(*calls) == wanted
    weir.stop()


def test_several_keys_of_a_slot_of_which_some_have_moved(made):
    weir = weir_before(made, workers=1, redirect_timeout="300ms")
    first, second = made.masters[:2]
    slot = slot_of(made.key_at(first))
    keys = some(slot, 2)
    with weir.connect() as conn:
        conn.ask(*[["SADD", key, key] for key in keys])
        made.begin_move(slot, second)
        made.move_keys(slot, keys=keys[:1])
        got = conn.call("SUNION", *keys)
        assert isinstance(got, Error) and str(got).startswith("TRYAGAIN"), got
        mover = threading.Timer(0.1, lambda: made.move_keys(slot, keys=keys[1:]))
        mover.start()
        assert sorted(conn.call("SUNION", *keys)) == sorted(key.encode() for key in keys)
        mover.join()
        made.end_move(slot)
    weir.stop()


@pytest.mark.parametrize("workers", [1, 2])
def test_each_command_runs_once_while_slots_move_to_and_fro(made, workers):
    weir = weir_before(made, workers=workers)
    nodes = made.masters
    slots = [slot_of(made.key_at(nodes[0], n)) for n in range(4)]
    keys = [key for slot in slots for key in some(slot, 3)] + [made.key_at(node) for node in nodes[1:]]
    over, wrong = threading.Event(), []
    told = {}

    def work(number):
        chance = random.Random(number)
        mine = [f"{key}:{number}" for key in keys]
        seen = {key: 0 for key in mine}
        with weir.connect() as conn:
            while not over.is_set() and not wrong:
                calls = [chance.choice(mine) for _ in range(chance.choice([1, 5, 30]))]
                for key, value in zip(calls, conn.ask(*[["INCR", key] for key in calls])):
                    seen[key] += 1
                    if value != seen[key]:
                        wrong.append((key, value, seen[key]))
                        seen[key] = value if isinstance(value, int) else seen[key]
        told.update(seen)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    try:
        for round_ in range(6):
            for slot in slots:
                target = nodes[(round_ + 1) % 3]
                if made.owner(slot) is not target:
                    made.move(slot, target)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not wrong, wrong[:5]
    with weir.connect() as conn:
        names = list(told)
        assert conn.ask(*[["GET", name] for name in names]) == [b"%d" % told[name] if told[name] else None for name in names]
    weir.stop()


def test_a_redirect_that_a_script_forges(made):
    weir = weir_before(made, workers=1)
    with weir.connect() as conn:
        for text in "MOVED 1 127.0.0.1:1", "ASK 1 127.0.0.1:1", f"MOVED 1 {made.masters[1].upstream}":
            got = conn.call("EVAL", f"return redis.error_reply('{text}')", 0)
            assert isinstance(got, Error), got
        assert conn.call("SET", made.key_at(made.masters[1]), "1") == "OK"
        # a script without keys does not inherit the slot of an earlier transaction
        for node in made.masters:
            key = made.key_at(node)
            assert conn.ask(["MULTI"], ["SET", key, "1"], ["EXEC"]) == ["OK", "QUEUED", ["OK"]]
            for other in made.masters:
                text = f"MOVED {slot_of(key)} {other.upstream}"
                assert conn.call("EVAL", f"return redis.error_reply('{text}')", 0) == Error("UPSTREAM moved")
    weir.stop()
