"""Every command, with good and with bad arguments, gets the same bytes through weir as from Redis.

There are two equal servers: the test asks one directly, and the other stands behind weir in both
lane modes. Allowed differences are listed in corpus.MASKS. A command of the running redis-server
that the corpus lacks fails by name.
"""

import os
import re
import shlex
from contextlib import contextmanager
from functools import lru_cache

import pytest
from kit.corpus import BACKGROUND, EXCEPTIONS, FLOWS, GROUPS, masked
from kit.harness import REPO, wait_until
from kit.resp import Recorder, encode
from kit.script import _bytes, same_as_redis
from kit.server import at_least, options

LANES = ["shared", "private"]
OPTIONS = [*options((7, 0), "--enable-module-command", "yes"), "--slowlog-log-slower-than", "-1"]
SUBCOMMANDS = re.findall(r'(?m)^ROW\("(\w[^"]*\|[^"]*)"', (REPO / "src/limit/commands.def").read_text())
FRESH = [
    "CONFIG SET maxmemory 0",
    "FLUSHALL",
    "SCRIPT FLUSH",
    "FUNCTION FLUSH",
    "CONFIG RESETSTAT",
    "SLOWLOG RESET",
    "ACL LOG RESET",
    "ACL DELUSER joe",
]


# ---- the corpus: a request is (name of the command, its bytes) ----


class Names:
    """The running server's names of its commands. Before 7.0 no server lists subcommands, and they
    get weir's names.
    """

    def __init__(self, redis):
        self.all, self.arity = [], {}
        for row in redis.call("COMMAND"):
            self._add(row)
            for sub in row[9] if at_least(7, 0) else []:
                self._add(sub)
        self.subcommands = set(filter(lambda name: "|" in name, self.all)) or set(SUBCOMMANDS)

    def _add(self, row):
        name = row[0].decode()
        self.all.append(name)
        self.arity[name] = row[1]

    def of(self, words):
        first = words[0].lower()
        both = b"|".join(words[:2]).lower().decode("latin1")
        return both if both in self.subcommands and len(words) > 1 else first.decode("latin1")

    def wrong_numbers(self):
        """Returns every command with too few and with too many arguments, as far as its arity
        tells.
        """
        for name, arity in self.all_arities():
            words = [word.encode() for word in name.split("|")]
            if abs(arity) > len(words):
                yield name, encode(*words)
            if arity > 0:
                yield name, encode(*words, *[b"x"] * 9)

    def all_arities(self):
        return [(name, self.arity[name]) for name in self.all]


def split(text, names):
    for command in re.split(r" \| |\n", text.strip()):
        words = [_bytes(word) for word in shlex.split(command.strip())]
        yield names.of(words), encode(*words)


@pytest.fixture(scope="module")
def pair(shared_farm):
    """Two equal servers, and weirs in front of the second."""
    direct, behind = shared_farm.redis(*OPTIONS), shared_farm.redis(*OPTIONS)
    weirs = {lanes: shared_farm.weir(behind, workers=1, lanes=lanes) for lanes in LANES}
    return direct, behind, weirs


@pytest.fixture(scope="module")
def names(pair):
    return Names(pair[0])


@pytest.fixture(scope="module")
def groups(names):
    requests = {title: list(split(text, names)) for title, text in GROUPS.items()}
    requests["wrong numbers of arguments"] = list(names.wrong_numbers())
    return requests


# ---- how a group is sent: batches of requests, each batch in one write ----


def alone(requests):
    return [[request] for request in requests]


LEFT_OUT = ("echo", encode("ECHO", "left out"))


def pipelined(requests):
    """All in one batch, each between neighbours. SCRIPT DEBUG is apart: Redis refuses SCRIPT DEBUG
    if earlier replies are unwritten, which depends on the network and on weir's iterations.
    """
    batches = []
    for i, request in enumerate(requests):
        is_debug = request[1].split()[2:5:2] == [b"SCRIPT", b"DEBUG"]
        batches.append([LEFT_OUT if is_debug else request, ("echo", encode("ECHO", "<%d>" % i))])
    return [[item for batch in batches for item in batch]]


def queued(requests):
    """All in one batch, each in its own transaction."""
    return [[item for request in requests for item in in_multi(request)]]


def in_multi(request):
    """weir refuses logins and protocol changes in MULTI, and closes a client that logs in after
    SUBSCRIBE in MULTI.
    """
    if request[0] in ("auth", "hello", "subscribe"):
        return [LEFT_OUT]
    return ("multi", encode("MULTI")), request, (request[0], encode("EXEC"))


FORMS = {"alone": alone, "pipelined": pipelined, "queued": queued}


def logins_apart(batches):
    """Since 7.2 Redis answers no failed login behind unsent replies, so each login is sent after
    these have come.
    """
    if not at_least(7, 2):
        return batches
    apart = []
    for batch in batches:
        apart.append([])
        for request in batch:
            if request[0] in ("auth", "hello"):
                apart.append([])
            apart[-1].append(request)
    return apart


def play(address, batches, proto):
    """Returns the replies: one frame for each request."""
    frames = []
    with Recorder(address) as conn:
        if proto == 3:
            conn.call("HELLO", 3)
        for batch in batches:
            conn.send(b"".join(data for _, data in batch))
            frames += [conn.frame() for _ in batch]
        conn.send(encode("ECHO", "the end"))
        frames.append(conn.frame())
    return frames


def forget(redis):
    with redis.connect() as conn:
        conn.ask(*FRESH)


def differences(title, batches, wanted, got):
    requests = [item for batch in batches for item in batch] + [("echo", encode("ECHO", "the end"))]
    for (name, data), want, have in zip(requests, wanted, got):
        want, have = masked(name, want), masked(name, have)
        if want != have:
            at = len(os.path.commonprefix([want, have]))
            begin = max(0, at - 60)
            yield f"{title}: {data[:200]!r} byte {at}\n   redis {want[begin:][:200]!r}\n   weir  {have[begin:][:200]!r}"


# Redis is asked once for both lane modes.
@pytest.fixture(scope="module")
def from_redis(pair, groups):
    @lru_cache(None)
    def answers(title, form, proto):
        forget(pair[0])
        return play(pair[0].address, logins_apart(FORMS[form](groups[title])), proto)

    return answers


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("proto", [2, 3])
@pytest.mark.parametrize("lanes", LANES)
def test_every_command_is_answered_with_the_bytes_of_redis(lanes, proto, form, pair, groups, from_redis):
    _, behind, weirs = pair
    different = []
    for title, requests in groups.items():
        wanted = from_redis(title, form, proto)
        forget(behind)
        batches = FORMS[form](requests)
        different += differences(title, batches, wanted, play(weirs[lanes].address, batches, proto))
    assert not different, "\n".join(different)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("lanes", LANES)
def test_same_bytes_of_what_starts_a_child(lanes, form, pair, names):
    direct, behind, weirs = pair
    for request in split(BACKGROUND, names):
        batches = FORMS[form]([request])
        with one_child(direct), one_child(behind):
            wanted = play(direct.address, batches, 2)
            assert not list(differences("background", batches, wanted, play(weirs[lanes].address, batches, 2)))


@contextmanager
def one_child(redis):
    """Waits for the child process that is started inside: at once or, from a transaction, a little
    later.
    """

    def started():
        return len(re.findall(r"Background (saving|append only file rewriting) started by pid", redis.log()))

    def running():
        return redis.info("rdb_bgsave_in_progress") != "0" or redis.info("aof_rewrite_in_progress") != "0"

    before = started()
    yield
    wait_until(lambda: started() > before and not running(), "a child process has come and gone")


@pytest.mark.parametrize("proto", [2, 3])
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("flow", FLOWS)
def test_same_bytes_of_a_flow(flow, lanes, proto, pair):
    script = FLOWS[flow]
    if proto == 3:
        connections = dict.fromkeys(re.findall(r"^\s*(\w+)[:<]", script, re.M))
        script = "".join(f"{name}: HELLO 3\n" for name in connections) + script
    same_as_redis(pair[2][lanes], pair[1], script)


def test_pfselftest_is_let_through(pair):
    with pair[2]["shared"].connect() as conn:
        assert conn.ask("PFSELFTEST", "PING") == ["OK", "PONG"]


# ---- the corpus is complete ----


def test_every_command_has_good_and_bad_arguments(names, groups, from_redis):
    found = {"good": flowing(names) | {name for name, _ in split(BACKGROUND, names)}, "bad": set()}
    for title, requests in groups.items():
        for (name, _), reply in zip(requests, from_redis(title, "alone", 2)):
            found["bad" if reply.startswith(b"-") else "good"].add(name)
    for kind in found:
        missing = [name for name in names.all if name not in found[kind]]
        excuses = [pattern for pattern, without, _ in EXCEPTIONS if without == kind]
        unexcused = [name for name in missing if not any(re.fullmatch(p, name) for p in excuses)]
        assert not unexcused, f"without {kind} arguments in the corpus"
        theirs = missing if at_least(7, 0) else [*missing, *SUBCOMMANDS]
        idle = [pattern for pattern in excuses if not any(re.fullmatch(pattern, name) for name in theirs)]
        assert not idle, f"exceptions for {kind} arguments that nothing needs"


def flowing(names):
    """Returns the commands that appear in FLOWS."""
    found = set()
    for script in FLOWS.values():
        for line in filter(None, map(str.strip, script.splitlines())):
            if ":" in line.split(" ")[0]:
                found |= {name for name, _ in split(line.split(":", 1)[1], names)}
    return found
