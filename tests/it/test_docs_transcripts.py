"""Types the sessions in docs, and compares the output. Times and rates may differ."""

import re
import socket
import subprocess
import threading

import pytest

from kit.harness import REPO, WEIR, wait_until
from kit.resp import Closed, Conn, Error
from kit.transcript import Shell, shape_but_times, story, transcripts

COMMANDS_PAGE = "docs/limit-commands.md"
SIGNUP = "[limit signup]\nsliding = 5/60s, 100/d\n[limit uploads]\nbucket = 100/h\n"
SANITIZER = re.compile("Sanitizer|runtime error:")


def shell(weir, tmp_path):
    return Shell(tmp_path, {"/run/weir/admin.sock": weir.folder / "admin.sock", "-p 6380": f"-p {weir.address[1]}"})


class Tenant(threading.Thread):
    """Sends one command over and over, whatever the reply is."""

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
    """weir with an operator's socket, and two users that send all the time."""
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


@pytest.mark.parametrize("steps", transcripts("docs/limits.md"), ids=lambda steps: steps[0].command[:40])
def test_an_operator_finds_and_stops_an_abuser(tenants, tmp_path, steps):
    with shell(tenants, tmp_path) as typist:
        typist.tell(steps)


# ---- from nothing to a throttled tenant ----


@pytest.fixture
def port():
    """Returns a port on which only weir can listen: weir's workers share the port, and so with this
    socket.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_the_tutorial_prints_what_it_shows(farm, tmp_path, port):
    real = {"127.0.0.1:6379": farm.redis().upstream, "6380": port, "9380": 0, "/tmp/weir-tutorial": tmp_path}
    with Shell(tmp_path, real, WEIR.parent) as typist:
        typist.tell(story("docs/tutorial.md"))
    log = (tmp_path / "weir.log").read_text()
    assert not SANITIZER.search(log), log
    assert "stopping: SIGTERM" in log


def test_the_tutorial_can_be_begun_again(tmp_path):
    """The tutorial's folder still exists the second time."""
    [line] = re.findall(r"^mkdir .*", (REPO / "docs/tutorial.md").read_text(), re.M)
    command = line.replace("/tmp/weir-tutorial", str(tmp_path / "tutorial"))
    for _ in range(2):
        subprocess.run(["sh", "-ec", command], check=True)
    assert (tmp_path / "tutorial").is_dir()


# ---- sessions of applications ----


def sample():
    """Returns the sections of conf/weir.conf after [weir]: `make run` starts with them."""
    return "\n" + re.search(r"^\[class.*", (REPO / "conf/weir.conf").read_text(), re.M | re.S)[0]


def blocks_of(*paths):
    return [pytest.param(steps, id=f"{path}: {steps[0].command[17:50]}") for path in paths for steps in transcripts(path)]


@pytest.mark.parametrize("steps", blocks_of("README.md", COMMANDS_PAGE))
def test_an_application_is_answered_as_printed(farm, tmp_path, steps):
    weir = farm.weir(farm.redis(), sections=sample() + SIGNUP)
    tokens = {}  # of acquired permits: printed token, real token
    with shell(weir, tmp_path) as typist:
        for command, wanted in steps:
            for printed, real in tokens.items():
                command = command.replace(printed, real)
            found = typist.type(command)
            both = [re.search(r"\b[0-9a-f]{32}\b", text) for text in (wanted, found)]
            if all(both):
                tokens[both[0][0]] = both[1][0]
                wanted = wanted.replace(both[0][0], both[1][0])
            assert shape_but_times(found) == shape_but_times(wanted), command


# ---- other statements of the page of LIMIT commands ----


def page():
    return (REPO / COMMANDS_PAGE).read_text()


def test_every_command_is_on_the_page():
    names = re.findall(r'^OWN\("([^"]+)"', (REPO / "src/limit/command/own.def").read_text(), re.M)
    missing = [name for name in names if f"`{name.upper().replace('|', ' ')}" not in page()]
    assert not [name for name in missing if name != "limit"]


ERRORS = {
    "ERR wrong number of arguments for 'limit\\|funnel' command": "LIMIT FUNNEL k",
    "ERR unknown subcommand 'FUNL' (did you mean FUNNEL?). Try LIMIT HELP.": "LIMIT FUNL",
    "ERR syntax error, APPROX is not an option of 'limit\\|fixed'": "LIMIT FIXED k 5/60s APPROX",
    "ERR syntax error, unknown option 'PEKE' (did you mean PEEK?)": "LIMIT FIXED k 5/60s PEKE",
    "ERR syntax error, AS takes ARRAY or MAP, not 'LIST'": "LIMIT FIXED k 5/60s AS LIST",
    'ERR "5" is not a rate: write COUNT/PERIOD, like 1000/s or 5/60s': "LIMIT FUNNEL k 5",
    "ERR too many rates: at most 8": "LIMIT FUNNEL k" + 9 * " 5/s",
    "ERR too many rates: at most 16 in one call": "LIMIT ALL" + " AND".join(f" FIXED k{i} 1/s 2/m 3/h 4/d 5/2d 6/3d" for i in range(3)),
    "ERR too many keys: at most 8": "LIMIT CHECK signup 0" + "".join(f" AND signup {i}" for i in range(1, 9)),
    "ERR a key is given twice: give all its rates at once": "LIMIT CHECK signup k AND signup k",
    "ERR 'FUNL' is neither FUNNEL nor BUCKET nor SLIDING nor FIXED": "LIMIT ALL FUNL k 5/s",
    "ERR PARTIAL is for one key: several are all or nothing": "LIMIT ALL FIXED k 5/s PARTIAL",
    "ERR the call is too large: use fewer keys, rates or units": "LIMIT ALL SLIDING k 5/s AND SLIDING l 5/s CREDIT 1000",
    "ERR value is not an integer or out of range": "LIMIT FUNNEL k 5/s COST -1",
    "ERR zero rates are not supported": "CL.THROTTLE k 15 30 0",
    "ERR timeout is negative": "LIMIT FUNNEL k 5/s WAIT -1",
    "ERR timeout is not an integer or out of range": "LIMIT FUNNEL k 5/s WAIT 1.5",
    "ERR timeout is out of range: at most a day": "LIMIT FUNNEL k 5/s WAIT 86400001",
    "ERR a burst of 105 at this rate takes more than 104 days to drain: give a smaller burst": "LIMIT FUNNEL k 1/d BURST 105",
    "ERR an exact sliding window counts at most 10000 units: use APPROX for more": "LIMIT SLIDING k 2m/s",
    "ERR COST of an exact sliding window is at most 10000: use APPROX for more": "LIMIT SLIDING k 5/s COST 20000",
    "ERR at most one of WAIT, PEEK, FORCE, PARTIAL, BORROW and CREDIT": "LIMIT FUNNEL k 5/s FORCE BORROW",
    "ERR COUNT ALL goes with none of WAIT, FORCE, PARTIAL, BORROW and CREDIT": "LIMIT FUNNEL k 5/s WAIT 5 COUNT ALL",
    "ERR CREDIT has its own number: leave COST out": "LIMIT FUNNEL k 5/s COST 1 CREDIT 1",
    "ERR BORROW is for FUNNEL and BUCKET": "LIMIT CHECK signup k BORROW",
    "ERR FROM FIRST is for FIXED": "LIMIT FUNNEL k 5/s FROM FIRST",
    "ERR this COST at this rate takes more than 104 days to drain": "LIMIT FUNNEL k 1/d COST 105 FORCE",
    "ERR CREDIT of an exact sliding window is at most 1000": "LIMIT SLIDING k 5/s CREDIT 1001",
    "ERR the key is too long: at most 1024 bytes": "LIMIT FIXED " + 1025 * "k" + " 5/s",
    "ERR too many keys: at most 64": "LIMIT RESET" + 65 * " k",
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
    """Calls every command, in every form that asks Redis differently; returns the replies."""
    commands = ["LIMIT FUNNEL f 5/s", "LIMIT BUCKET b 5/s 100/h", "LIMIT SLIDING s 2/60s", "LIMIT SLIDING s 2/60s"]
    commands += ["LIMIT SLIDING s 2/60s", "LIMIT SLIDING a 2/60s APPROX", "LIMIT FIXED x 5/d", "LIMIT CHECK signup c"]
    commands += ["LIMIT CHECK signup d AND signup e", "LIMIT ALL FUNNEL f2 5/s AND SLIDING s2 2/60s AND SLIDING a2 2/60s APPROX AND FIXED x2 5/d"]
    commands += ["LIMIT THROTTLE t 15 30 60", "LIMIT THROTTLE t 15 30 60 -1", "CL.THROTTLE cell 15 30 60"]
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
    names = ("limited", "limit", "remaining", "retry_after_ms", "reset_after_ms")
    for name, *answers in zip(names, (0, "as asked", 0, -1, 0), (1, "as asked", 0, 1000, 0)):
        assert "| `{}` | {} | {} |\n".format(name, *answers) in page()
    with weir.connect() as conn:
        wait_until(lambda: conn.call("LIMIT", "RESET", "k") == away, "weir has noticed")
        for command in ("FUNNEL k 5/s", "BUCKET k 5/s", "SLIDING k 5/s", "FIXED k 5/s WAIT 9000", "CHECK signup k"):
            assert conn.call("LIMIT", *command.split()) == decided, command
        assert conn.call("LIMIT", "CHECK", "signup", "k", "PEEK") == decided
        assert conn.call("LIMIT", "THROTTLE", "k", 4, 1, 1) == in_seconds
        assert conn.call("CL.THROTTLE", "k", 4, 1, 1) == in_seconds
        for command in ("ACQUIRE k 1 1000", "RENEW k x 1000", "RELEASE k x", "RESET k"):
            assert conn.call("LIMIT", *command.split()) == away, command
