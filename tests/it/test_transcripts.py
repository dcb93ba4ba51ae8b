"""What the docs show as typed and answered is typed here, and answered so. Times and rates may differ."""

import os
import re
import subprocess
import threading

import pytest

from harness import REPO, wait_until
from resp import Closed, Conn, Error

COMMANDS_PAGE = "docs/limit-commands.md"
SIGNUP = "[limit signup]\nsliding = 5/60s, 100/d\n"
READ_ONLY = re.compile(r"LIMIT (TOP|LIST|EXPLAIN|LOG|DIFF|STATUS)")


def transcripts(path):
    """[(command, answer)] of each console block."""
    for block in re.findall(r"^```console\n(.*?)^```", (REPO / path).read_text(), re.M | re.S):
        steps = []
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
        yield steps


def shape(text):
    """Without its numbers; an answer's array of numbers stays an array of numbers."""
    return re.sub(r"\b\d+\b", "N", text.strip())


def shape_but_times(text):
    """Without the times that are left: by name, or the last two of a decision's five numbers."""
    text = re.sub(r"""(_ms(=|":|" => \(integer\) ))[1-9]\d*""", r"\1N", text.strip())
    return re.sub(r"^([45]\) \(integer\) )[1-9]\d*", r"\1N", text, flags=re.M)


def typed(command, weir):
    for shown, real in {"/run/weir-admin.sock": weir.folder / "admin.sock", "-p 6380": f"-p {weir.address[1]}"}.items():
        command = command.replace(shown, str(real))
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "FAKETTY": "1"},  # redis-cli writes as to a terminal
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return (done.stdout + done.stderr).rstrip("\n")


def await_answer(command, weir, wanted):
    """What is answered in the end: what only looks may be typed again until the traffic shows."""
    answers = []

    def is_there():
        answers.append(shape(typed(command, weir)))
        return answers[-1] == wanted

    try:
        wait_until(is_there, command, 10 if READ_ONLY.search(command) else 0)
    except AssertionError:
        pass
    return answers[-1]


class Tenant(threading.Thread):
    """Sends one command over and over, whatever it is answered."""

    def __init__(self, weir, user, password, words, per_s):
        super().__init__(daemon=True)
        self.conn = Conn(weir.address)
        self.conn.call("AUTH", user, password)
        self.words, self.pause, self.must_end = words, 1 / per_s, threading.Event()

    def run(self):
        while not self.must_end.wait(self.pause):
            try:
                self.conn.call(*self.words)
            except (Closed, OSError):
                return


@pytest.fixture
def tenants(farm):
    """weir with an operator's socket, and two users who send all the time."""
    redis = farm.redis()
    redis.call("ACL", "SETUSER", "scanner", "on", ">tiger", "~*", "&*", "+@all")
    redis.call("ACL", "SETUSER", "shop", "on", ">lamb", "~*", "&*", "+@all")
    weir = farm.weir(redis, sections="[admin]\nsocket = {folder}/admin.sock\n[policy default]\n")
    crowd = [Tenant(weir, "scanner", "tiger", ["KEYS", "*"], 200), Tenant(weir, "shop", "lamb", ["GET", "a"], 20)]
    for tenant in crowd:
        tenant.start()
    yield weir
    for tenant in crowd:
        tenant.must_end.set()
        tenant.join()
        tenant.conn.close()


@pytest.mark.parametrize("steps", transcripts("docs/limits.md"), ids=lambda steps: steps[0][0][:40])
def test_an_operator_finds_and_stops_an_abuser(tenants, steps):
    for command, answer in steps:
        wanted = shape("\n".join(answer))
        assert await_answer(command, tenants, wanted) == wanted, command


# ---- what applications type ----


def sample():
    """The sections of conf/weir.conf behind [weir]: with them `make run` starts."""
    return "\n" + re.search(r"^\[class.*", (REPO / "conf/weir.conf").read_text(), re.M | re.S)[0]


def blocks_of(*paths):
    return [pytest.param(steps, id=f"{path}: {steps[0][0][17:50]}") for path in paths for steps in transcripts(path)]


@pytest.mark.parametrize("steps", blocks_of("README.md", COMMANDS_PAGE))
def test_an_application_is_answered_as_printed(farm, steps):
    weir = farm.weir(farm.redis(), sections=sample() + SIGNUP)
    tokens = {}  # of places acquired: as printed, as they are
    for command, answer in steps:
        wanted = "\n".join(answer)
        for printed, real in tokens.items():
            command = command.replace(printed, real)
        found = typed(command, weir)
        both = [re.search(r"\b[0-9a-f]{32}\b", text) for text in (wanted, found)]
        if all(both):
            tokens[both[0][0]] = both[1][0]
            wanted = wanted.replace(both[0][0], both[1][0])
        assert shape_but_times(found) == shape_but_times(wanted), command


# ---- what else the page of LIMIT commands says ----


def page():
    return (REPO / COMMANDS_PAGE).read_text()


def test_every_command_is_on_the_page():
    names = re.findall(r'^OWN\("([^"]+)"', (REPO / "src/limit/own.def").read_text(), re.M)
    missing = [name for name in names if f"`{name.upper().replace('|', ' ')}" not in page()]
    assert not [name for name in missing if name != "limit"]


ERRORS = {
    "ERR wrong number of arguments for 'limit\\|funnel' command": "LIMIT FUNNEL k",
    "ERR unknown subcommand 'FUNL'. Try LIMIT HELP.": "LIMIT FUNL",
    "ERR syntax error": "LIMIT FIXED k 5/60s APPROX",
    'ERR "5" is not a rate: write COUNT/PERIOD, like 1000/s or 5/60s': "LIMIT FUNNEL k 5",
    "ERR too many rates: at most 8": "LIMIT FUNNEL k" + 9 * " 5/s",
    "ERR value is not an integer or out of range": "LIMIT FUNNEL k 5/s COST 0",
    "ERR zero rates are not supported": "CL.THROTTLE k 15 30 0",
    "ERR timeout is negative": "LIMIT FUNNEL k 5/s WAIT -1",
    "ERR timeout is not an integer or out of range": "LIMIT FUNNEL k 5/s WAIT 1.5",
    "ERR invalid expire time in 'limit\\|acquire' command": "LIMIT ACQUIRE k 1 0",
    "ERR no limit is named 'singup' (did you mean signup?)": "LIMIT CHECK singup k",
    "WRONGTYPE Operation against a key holding the wrong kind of value": "LIMIT FUNNEL other 5/s",
}


def test_errors_are_as_printed_and_write_nothing(farm):
    redis = farm.redis()
    weir = farm.weir(redis, sections=SIGNUP)
    with weir.connect() as conn:
        assert conn.call("SET", "limit:other", "text") == "OK"
        for error, command in ERRORS.items():
            assert f"`-{error}`" in page(), error
            assert conn.call(*command.split()) == Error(error.replace("\\|", "|")), command
        assert conn.ask("MULTI", "LIMIT FUNNEL k 5/s")[1] == Error("ERR LIMIT is not allowed in transactions")
        assert conn.call("EXEC").startswith("EXECABORT")
    assert redis.call("DBSIZE") == 1


def application(conn):
    """Calls of every command, in every form that asks Redis otherwise; the replies."""
    commands = ["LIMIT FUNNEL f 5/s", "LIMIT BUCKET b 5/s 100/h", "LIMIT SLIDING s 2/60s", "LIMIT SLIDING s 2/60s"]
    commands += ["LIMIT SLIDING s 2/60s", "LIMIT SLIDING a 2/60s APPROX", "LIMIT FIXED x 5/d", "LIMIT CHECK signup c"]
    commands += ["LIMIT THROTTLE t 15 30 60", "LIMIT THROTTLE t 15 30 60 -1", "CL.THROTTLE limit:cell 15 30 60"]
    replies = conn.ask(*commands, "LIMIT ACQUIRE p 1 60000", "LIMIT RENEW p x 60000", "LIMIT RELEASE p x")
    replies += conn.ask(f"LIMIT RENEW p {replies[-3][1].decode()} 200", "LIMIT ACQUIRE p 1 60000 WAIT 10000")
    replies += conn.ask(f"LIMIT RELEASE p {replies[-1][1].decode()}", "LIMIT RESET f b p none")
    wrong = conn.ask("LIMIT FUNNEL s 5/s", "LIMIT FUNNEL s 5/s PEEK")
    assert all(reply.startswith("WRONGTYPE") for reply in wrong)
    return replies


def test_the_rights_that_are_printed_are_enough(farm, tmp_path):
    redis = farm.redis()
    rule = re.search(r"^ACL SETUSER weir .*?^```", page(), re.M | re.S)[0].split()[:-1]
    assert redis.call(*rule) == "OK"
    secret = tmp_path / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    weir = farm.weir(redis, workers=1, sections=SIGNUP, upstream_user="weir", upstream_password_file=secret)
    with weir.connect() as conn:
        conn.call("SELECT", 2)
        first = application(conn)
        redis.call("FLUSHALL")
        conn.call("LIMIT", "RESET", "any")
        redis.call("SCRIPT", "FLUSH")
        again = application(conn)
    for reply in first + again:
        assert not isinstance(reply, Error), reply
    assert redis.call("ACL", "LOG") == []
    assert "NOPERM" not in weir.log()


@pytest.mark.parametrize("what", ["error", "allow", "deny"])
def test_without_redis_the_answer_is_as_printed(farm, what):
    redis = farm.redis()
    weir = farm.weir(redis, sections=SIGNUP, limit_when_down=what)
    redis.kill()
    away = Error("UPSTREAM unavailable")
    decided = {"error": away, "allow": [0, 5, 0, -1, 0], "deny": [1, 5, 0, 1000, 0]}[what]
    in_seconds = [1, 5, 0, 1, 0] if what == "deny" else decided
    assert "`remaining` 0, `retry_after_ms` -1 or, when denied, 1000, `reset_after_ms` 0" in " ".join(page().split())
    with weir.connect() as conn:
        wait_until(lambda: conn.call("LIMIT", "RESET", "k") == away, "weir has noticed")
        for command in ("FUNNEL k 5/s", "BUCKET k 5/s", "SLIDING k 5/s", "FIXED k 5/s WAIT 9000", "CHECK signup k"):
            assert conn.call("LIMIT", *command.split()) == decided, command
        assert conn.call("LIMIT", "CHECK", "signup", "k", "PEEK") == decided
        assert conn.call("LIMIT", "THROTTLE", "k", 4, 1, 1) == in_seconds
        assert conn.call("CL.THROTTLE", "k", 4, 1, 1) == in_seconds
        for command in ("ACQUIRE k 1 1000", "RENEW k x 1000", "RELEASE k x", "RESET k"):
            assert conn.call("LIMIT", *command.split()) == away, command
