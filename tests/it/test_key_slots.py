"""weir assigns keys, and commands with several keys, to the same cluster slots as Redis."""

import random
import subprocess

import pytest
from kit.harness import REPO
from kit.resp import Error, encode
from kit.server import at_least

SOURCE = REPO / "tests/it/slots.c"
SEED = 15
KEYS = 2000
COMMANDS = 600


@pytest.fixture(scope="module")
def slots(tmp_path_factory):
    """Returns weir's own slot code: a function from the bytes of requests to a word for each."""
    program = tmp_path_factory.mktemp("slots") / "slots"
    sources = [path for layer in ("base", "resp", "limit") for path in sorted((REPO / "src" / layer).rglob("*.c"))]
    objects = [(REPO / "build/asan" / path.relative_to(REPO)).with_suffix(".o") for path in sources]
    subprocess.run(
        ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Werror", f"-I{REPO}/src", "-pthread"]
        + ["-fsanitize=address,undefined", "-fno-pie", "-no-pie", "-o", program, SOURCE, *objects, "-lm"],
        check=True,
    )

    def ask(requests):
        done = subprocess.run([program], input=b"".join(requests), capture_output=True, check=True, timeout=60)
        return done.stdout.decode().split()

    return ask


@pytest.fixture(scope="module")
def cluster(shared_farm):
    """The only server of its cluster; it reports slots without serving any."""
    with shared_farm.redis("--cluster-enabled", "yes").connect() as conn:
        yield conn


def some_key(dice):
    """Few different letters, so braces come in every order; sometimes any byte."""
    letters = bytes(range(256)) if dice.random() < 0.2 else b"{}{}ab"
    return bytes(dice.choices(letters, k=dice.randrange(12)))


def test_keys_have_the_slots_that_redis_gives_them(slots, cluster):
    dice = random.Random(SEED)
    keys = [some_key(dice) for _ in range(KEYS)]
    wanted = [str(cluster.call("CLUSTER", "KEYSLOT", key)) for key in keys]
    got = slots([encode("GET", key) for key in keys])
    assert [(k, g) for k, g in zip(keys, got)] == [(k, w) for k, w in zip(keys, wanted)]


def same_or_other(dice):
    """Returns keys, some of which share a slot."""
    return b"%s{%d}" % (dice.choice([b"", b"x"]), dice.randrange(3))


def some_command(dice):
    def key():
        return same_or_other(dice)

    def keys(n):
        return [key() for _ in range(n)]

    n = dice.randrange(1, 4)
    forms = [
        ["MGET", *keys(n)],
        ["DEL", *keys(n)],
        ["MSET", *[word for k in keys(n) for word in (k, "v")]],
        ["RENAME", *keys(2)],
        ["EVAL", "return 1", n, *keys(n), "argument"],
        ["ZUNIONSTORE", key(), n, *keys(n), "WEIGHTS", *[1] * n],
        ["SORT", key(), "BY", "nosort", "STORE", key()],
        ["BITOP", "OR", key(), *keys(n)],
        ["XREAD", "COUNT", 1, "STREAMS", *keys(n), *[0] * n],
        ["BLPOP", *keys(n), 1],
        ["GEORADIUS", key(), 1, 2, 3, "km", "STORE", key()],
        ["PING"],
        ["EVAL", "return 1", 0, key()],
    ]
    if at_least(7, 0):
        forms += [["SINTERCARD", n, *keys(n), "LIMIT", 1], ["LMPOP", n, *keys(n), "LEFT"]]
    return dice.choice(forms)


def told_by(cluster, command):
    """Returns the slot of the keys that the server itself finds."""
    keys = cluster.call("COMMAND", "GETKEYS", *command)
    if isinstance(keys, Error) or not keys:
        return "none"
    found = {cluster.call("CLUSTER", "KEYSLOT", key) for key in keys}
    return "crossing" if len(found) > 1 else str(*found)


def test_commands_have_the_slots_that_redis_gives_them(slots, cluster):
    dice = random.Random(SEED)
    commands = [some_command(dice) for _ in range(COMMANDS)]
    wanted = [told_by(cluster, command) for command in commands]
    got = slots([encode(*command) for command in commands])
    assert [(c, g) for c, g in zip(commands, got)] == [(c, w) for c, w in zip(commands, wanted)]
    assert {"none", "crossing"} < set(got)
