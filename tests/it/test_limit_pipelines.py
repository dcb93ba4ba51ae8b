"""Commands in one write are decided together: each has the result that it would have alone.

Where counts matter rates are per day, so what passes is the burst, however slow the test is.
"""

import random

import pytest
from kit.harness import MODE_IDS, MODES
from kit.limits import OPERATOR, limit_of, login, operator, order, tallies
from kit.resp import pipeline

POLICIES = {
    "one limit": "all = 1/d burst 40",
    "several, of which each is the tightest for some": "all = 1/d burst 90\nwrite = 1/d burst 30\nread = 1/d burst 35",
    "a line with two": "write = 1/d burst 50, 2/d burst 20\ncmd.mget = 1/d burst 1",
    "cost": "cost = 1/d burst 60\nread = 1/d burst 30",
    "of each connection": "all = 1/d burst 40 per connection\nwrite = 1/d burst 20",
    "in shadow": "write = 1/d burst 10 over shadow\nread = 1/d burst 20",
    "denied": "cmd.incr = deny\nall = 1/d burst 60",
    "delayed": "write = 500/s burst 10 over delay 10s\nread = 1/d burst 20",
}
COMMANDS = ["SET {} 1", "GET {}", "INCR {}", "ECHO x", "get {}", "MGET {} {}", "LPUSH {}l v", "PING", "NOSUCH x"]


def stretches(dice, n):
    """Returns commands with repetitions in a row; "{}" stands for the client's own key."""
    commands = []
    while len(commands) < n:
        commands += [dice.choice(COMMANDS)] * dice.choice([1, 1, 2, 5, 17, 40])
    return commands[:n]


def counts(weir):
    return {label: numbers for label, *numbers in tallies(weir)}


def less(after, before):
    return {label: [a - b for a, b in zip(after[label], before[label])] for label in after}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mode", MODES, ids=MODE_IDS)
def test_at_once_is_one_by_one(farm, redis, users, mode, policy):
    workers, lanes = mode
    sections = f"[policy default]\n{POLICIES[policy]}\n{OPERATOR}"
    weir = farm.weir(redis, sections=sections, workers=workers, lanes=lanes)
    commands = stretches(random.Random(policy), 150)
    with login(weir, "alice") as alice, login(weir, "bob") as bob:
        nothing = counts(weir)
        one_by_one = [alice.call(*command.format("a", "a").split()) for command in commands]
        of_alice = less(counts(weir), nothing)
        at_once = bob.ask(*(command.format("b", "b") for command in commands))
        assert [limit_of(reply) or reply for reply in at_once] == [limit_of(reply) or reply for reply in one_by_one]
        of_bob = less(less(counts(weir), nothing), of_alice)
        for numbers in (*of_alice.values(), *of_bob.values()):
            del numbers[1]  # a client that sends one by one may never be delayed
        assert of_bob == of_alice


def test_what_is_forgiven_between_two_writes_passes_again(farm, redis, users):
    weir = farm.weir(redis, sections=f"[policy default]\nwrite = 1/d burst 3\n{OPERATOR}", workers=1)
    with login(weir, "alice") as alice:
        for _ in range(3):
            replies = alice.ask(*["INCR n"] * 8)
            assert [limit_of(reply) for reply in replies] == [None] * 3 + ["default/write"] * 5
            assert order(weir, "FORGIVE", "user:alice") == 1
        assert alice.call("GET", "n") == b"9"


def test_a_pipeline_that_is_all_refused_is_counted_and_answered_whole(farm, redis, users):
    """Also before the client has a lane, in pieces that end within a request."""
    weir = farm.weir(redis, sections=f"[policy default]\nall = 1/d burst 1\n{OPERATOR}", workers=1)
    with login(weir, "alice") as spent, login(weir, "alice") as alice:
        assert spent.call("SET", "k", "1") == "OK"
        requests = pipeline(*["GET k"] * 500, "PING", *["SET k 2"] * 100)
        for at in range(0, len(requests), 1000):
            alice.sock.sendall(requests[at : at + 1000])
        replies = [alice.read() for _ in range(601)]
        assert replies[500] == "PONG"
        del replies[500]
        assert [limit_of(reply) for reply in replies] == ["default/all"] * 600
        assert counts(weir)["default/all"][2] == 600
        with operator(weir) as op:
            top = op.call("LIMIT", "TOP")
        assert top


@pytest.mark.parametrize("pieces", [1, 7, 100])
def test_a_run_may_be_cut_anywhere(farm, redis, users, pieces):
    weir = farm.weir(redis, sections="[policy default]\nwrite = 1/d burst 60\n", workers=1)
    with login(weir, "alice") as alice:
        requests = pipeline(*["INCR n"] * 100)
        size = len(requests) // pieces + 1
        for at in range(0, len(requests), size):
            alice.sock.sendall(requests[at : at + size])
        replies = [alice.read() for _ in range(100)]
        assert replies[:60] == list(range(1, 61))
        assert [limit_of(reply) for reply in replies[60:]] == ["default/write"] * 40
