"""The configuration changes while weir runs: by SIGHUP, and line by line from the operators'
socket.

Where the count of commands matters rates are per hour, so what passes is the burst, however slow
the test is.
"""

import os
import random
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from kit.harness import wait_until
from kit.limits import OPERATOR, order
from kit.reloading import NOT_RELOADED, own_settings, reload, signal_reload
from kit.resp import Conn, Error, encode, pipeline

REFUSED = re.compile(r"THROTTLED retry_in_ms=(-?\d+) limit=(\S+)")


def limit_of(reply):
    """Returns the limit that refused, or None for any other reply."""
    match = isinstance(reply, Error) and REFUSED.fullmatch(reply)
    return match[2] if match else None


def everywhere(weir, *command):
    """Returns the replies to a command of several clients, at every worker."""
    conns = [weir.connect() for _ in range(8)]
    try:
        return [conn.call(*command) for conn in conns]
    finally:
        for conn in conns:
            conn.close()


workers = pytest.mark.parametrize("n_workers", [1, 2])


# ---- SIGHUP ----


@workers
def test_new_limits_bind_who_is_there(n_workers, farm, redis):
    weir = farm.weir(redis, workers=n_workers)
    conns = [weir.connect() for _ in range(8)]
    assert [conn.call("SET", "k", "v") for conn in conns] == ["OK"] * 8
    assert reload(weir, "[policy default]\nwrite = deny\n")
    wait_until(
        lambda: all(conn.call("SET", "k", "v") == Error("NOPERM denied by policy default") for conn in conns),
        "every worker has the new rules",
    )
    assert all(conn.call("GET", "k") == b"v" for conn in conns)
    assert reload(weir, "")
    wait_until(lambda: all(conn.call("SET", "k", "v") == "OK" for conn in conns), "they are gone again")
    for conn in conns:
        conn.close()


def test_new_limits_bind_in_the_middle_of_a_pipeline(farm, redis):
    weir = farm.weir(redis, workers=1)
    with weir.connect() as a:
        stop = threading.Event()
        sent = [0]

        def send():
            while not stop.is_set() and sent[0] < 2000:
                a.send(pipeline(*["SET k v"] * 100))
                sent[0] += 1

        thread = threading.Thread(target=send)
        thread.start()
        for _ in range(1000):
            assert a.read() == "OK"
        assert reload(weir, "[policy default]\nwrite = 1/h\n")
        replies = ["OK"]
        while limit_of(replies[-1]) is None:
            replies.append(a.read())
        stop.set()
        thread.join()
        rest = [a.read() for _ in range(100 * sent[0] - 1000 - len(replies) + 1)]
        assert all(limit_of(reply) == "default/write" for reply in rest)
        assert a.call("GET", "k") == b"v"


@workers
def test_who_waits_is_asked_anew(n_workers, farm, redis):
    """The limit that delayed the client for an hour is gone, or has become faster: the command runs
    at once.
    """
    weir = farm.weir(redis, workers=n_workers, sections="[policy default]\nwrite = 1/h over delay 2h\n")
    with weir.connect() as a, weir.connect() as other:
        assert a.call("SET", "k", "1") == "OK"
        a.send(pipeline("SET k 2", "GET k"))
        assert other.call("GET", "k") == b"1"
        assert reload(weir, "[policy default]\nread = 1000/s\n")
        assert [a.read(), a.read()] == ["OK", b"2"]


def test_a_bad_file_changes_nothing(farm, redis):
    weir = farm.weir(redis, sections="[policy default]\nwrite = 2/h\n")
    with weir.connect() as a:
        assert a.call("SET", "k", "v") == "OK"
        assert not reload(weir, "[policy default]\nwrite = 0/h\nraed = 1/s\n")
        log = weir.log()
        assert re.search(r"weir\.conf:\d+: \[policy default\] write: a rate of 0", log)
        assert re.search(r"weir\.conf:\d+: \[policy default\] raed: .*did you mean read", log)
        assert a.call("SET", "k", "v") == "OK"
        assert limit_of(a.call("SET", "k", "v")) == "default/write"
        weir.config.unlink()
        assert not signal_reload(weir)
        assert limit_of(a.call("SET", "k", "v")) == "default/write"


def test_settings_that_need_a_restart_are_named(farm, redis):
    weir = farm.weir(redis, workers=1)
    weir.own_settings = weir.config.read_text().replace("workers = 1", "workers = 2").replace("shared", "private")
    for _ in range(2):
        assert reload(weir, "[policy default]\nwrite = deny\n", max_subjects=5, connect_timeout="2s")
        line = re.findall(r"needs a restart: (.*)", weir.log())[-1]
        assert line.split(", ") == ["workers", "lanes", "max-subjects", "connect-timeout"]
    assert set(everywhere(weir, "SET", "k", "v")) == {Error("NOPERM denied by policy default")}
    assert weir.serves()


def test_a_reload_answers_what_needs_a_restart(farm, redis):
    weir = farm.weir(redis, workers=1, sections=OPERATOR)
    assert order(weir, "RELOAD") == "OK"
    weir.config.write_text(weir.config.read_text().replace("workers = 1", "workers = 2"))
    assert order(weir, "RELOAD") == "OK, but needs a restart: workers"


def test_settings_that_a_reload_changes(farm, redis):
    weir = farm.weir(redis, workers=1, sections="[policy default]\nwrite = 1/h\n")
    with weir.connect() as a, weir.connect() as b:
        assert a.call("SET", "k", "v") == "OK"
        assert reload(weir, "[policy default]\nwrite = 1/h\n", error_prefix="SLOWDOWN", max_clients=2)
        wait_until(lambda: a.call("SET", "k", "v").startswith("SLOWDOWN "), "the prefix has changed")
        with weir.connect() as c:
            assert c.read_to_end() == b"-ERR max number of clients reached\r\n"
        assert b.call("PING") == "PONG"
        assert reload(weir, "[policy default]\nwrite = 1/h\n", mode="shadow")
        wait_until(lambda: a.call("SET", "k", "v") == "OK", "the mode has changed")
        with weir.connect() as c:
            assert c.call("PING") == "PONG"


def test_identity_changes_for_who_is_there(farm, redis):
    weir = farm.weir(redis, workers=1, identity="ip", sections="[policy default]\nwrite = 1/h\n")
    with weir.connect() as a, weir.connect() as b:
        a.call("CLIENT", "SETNAME", "a")
        b.call("CLIENT", "SETNAME", "b")
        assert a.call("SET", "k", "v") == "OK"
        assert limit_of(b.call("SET", "k", "v"))
        weir.own_settings = weir.config.read_text().split("\n[")[0].replace("= ip", "= name, ip") + "\n"
        assert reload(weir, "[policy default]\nwrite = 1/h\n")
        wait_until(lambda: b.call("SET", "k", "v") == "OK", "b is by itself")
        assert a.call("SET", "k", "v") == "OK"
        assert limit_of(a.call("SET", "k", "v")) and limit_of(b.call("SET", "k", "v"))


# ---- debts ----


@workers
@pytest.mark.parametrize(
    "after",
    [
        "write = 3/h\n",
        "write = 300/h burst 3\n",
        "all = 1k/s\nread = 5/s, 7/s\ncost = 9k/s per policy\nwrite = 6/h burst 3\n",
        "write = 3/h over shadow\nwrite = 1/h\nall = 3/s\n",
    ],
    ids=["same", "faster", "more lines", "another action"],
)
def test_a_debt_is_kept(after, n_workers, farm, redis):
    weir = farm.weir(redis, workers=n_workers, sections="[policy default]\nwrite = 3/h, 3/h\n")
    conns = [weir.connect() for _ in range(4)]
    assert [conn.call("SET", "k", "v") for conn in conns[:3]] == ["OK"] * 3
    assert limit_of(conns[0].call("SET", "k", "v")) == "default/write"
    if "shadow" in after:
        after = after.replace("write = 1/h", "write = 3/h")
    assert reload(weir, "[policy default]\n" + after)
    for conn in conns:
        assert limit_of(conn.call("SET", "k", "v")) == "default/write"
        conn.close()
    assert {limit_of(reply) for reply in everywhere(weir, "SET", "k", "v")} == {"default/write"}


def test_a_debt_is_units(farm, redis):
    """Three writes of a burst of three are three of a burst of twelve."""
    weir = farm.weir(redis, workers=1, sections="[policy default]\nwrite = 3/h\n")
    with weir.connect() as a:
        assert a.ask(*["SET k v"] * 3) == ["OK"] * 3
        assert reload(weir, "[policy default]\nwrite = 6/h burst 12\n")
        wait_until(lambda: a.call("SET", "k", "v") == "OK", "the new limit holds")
        replies = a.ask(*["SET k v"] * 12)
        assert 1 + sum(reply == "OK" for reply in replies) == 9, replies


def test_a_limit_that_comes_back_has_its_debt(farm, redis):
    weir = farm.weir(redis, workers=1, sections="[policy default]\nwrite = 1/h\n")
    with weir.connect() as a:
        assert a.call("SET", "k", "v") == "OK"
        assert reload(weir, "")
        wait_until(lambda: a.call("SET", "k", "v") == "OK", "it is gone")
        assert reload(weir, "[policy default]\nwrite = 1/h\n")
        wait_until(lambda: limit_of(a.call("SET", "k", "v")) == "default/write", "it is back")


# ---- a hundred reloads ----

CLASSES = ["all", "read", "@fast", "cmd.get", "heavy", "cost", "bytes-in", "bytes-out", "inflight", "connections"]
UNITS = {"bytes-in": "gb/s", "bytes-out": "gb/s", "inflight": "", "connections": ""}


def some_line(dice, what):
    line = f"{what} = {dice.randrange(500_000, 1_000_000)}{UNITS.get(what, '/s')}"
    if what not in UNITS:
        line += dice.choice(["", " burst 900k", " per policy", " per connection", " over delay 1s", " over shadow"])
    return line


def some_file(dice):
    """Returns limits that no client reaches, and one on INCR that is always reached; sometimes with
    a mistake.
    """
    lines = ["[class heavy]", f"commands = {dice.choice(['keys, sort', 'smembers', 'get, -set, @slow'])}", "[cost]"]
    lines += [f"get = {dice.randrange(1, 3)}", "[policy other]", "match = name:nobody-*, ip:192.0.2.0/24"]
    lines += [some_line(dice, what) for what in dice.sample(CLASSES, 3)]
    lines += ["[policy default]"]
    chosen = [some_line(dice, what) for what in dice.sample(CLASSES, dice.randrange(6))]
    chosen.insert(dice.randrange(len(chosen) + 1), f"cmd.incr = {dice.randrange(1, 60)}/h burst 1")
    lines += chosen
    is_good = dice.random() < 0.7
    if not is_good:
        mistake = dice.choice(["nonsense", "raed = 1/s", "write = 0/s", "[policy nobody]", "\x01", "read = 1/s over it"])
        lines.insert(dice.randrange(len(lines) + 1), mistake)
    return is_good, "\n".join(lines) + "\n"


class Load(threading.Thread):
    """A client that sends pipelines, and checks each reply."""

    def __init__(self, weir, number):
        super().__init__()
        self.conn = weir.connect()
        self.number = number
        self.over = threading.Event()
        self.rounds = 0
        self.error = None

    def run(self):
        try:
            while not self.over.is_set():
                self.round()
        except Exception as error:  # reported by the test
            self.error = error

    def round(self):
        self.rounds += 1
        tokens = [f"{self.number}-{self.rounds}-{i}" for i in range(20)]
        commands = []
        for token in tokens:
            commands += [f"ECHO {token}", f"SET k{self.number} {token}", "INCR n", f"GET k{self.number}"]
        replies = self.conn.ask(*commands)
        for i, token in enumerate(tokens):
            echo, stored, refused, got = replies[4 * i : 4 * i + 4]
            assert (echo, stored, got) == (token.encode(), "OK", token.encode())
            assert limit_of(refused) == "default/cmd.incr", refused


def resident(process):
    """Returns the resident bytes."""
    status = open(f"/proc/{process.child.pid}/status").read()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) << 10


@workers
def test_a_hundred_reloads_under_load(n_workers, farm, redis, monkeypatch):
    # A sanitizer keeps freed memory for a while, which must not look like growth.
    options = os.environ.get("ASAN_OPTIONS", "")
    monkeypatch.setenv("ASAN_OPTIONS", options + (":" if options else "") + "quarantine_size_mb=2")
    weir = farm.weir(redis, workers=n_workers, sections="[policy default]\ncmd.incr = 1/h\n")
    dice = random.Random(20 + n_workers)
    with weir.connect() as a:
        assert a.call("INCR", "n") == 1
    loads = [Load(weir, number) for number in range(6)]
    for load in loads:
        load.start()
    after_30 = 0
    for i in range(100):
        is_good, text = some_file(dice)
        assert reload(weir, text) == is_good, text
        if i == 30:
            after_30 = resident(weir)
    grown = resident(weir) - after_30
    for load in loads:
        load.over.set()
    for load in loads:
        load.join()
        assert load.error is None, load.error
        assert load.rounds > 10
        load.conn.close()
    assert redis.call("GET", "n") == b"1"
    assert grown < 6 << 20  # half of it is the sanitizer's; a plain build does not grow


# ---- the operators' socket ----


@pytest.fixture
def operated(farm, redis):
    """A weir with an operators' socket, at weir.admin."""
    folder = tempfile.mkdtemp(prefix="weir-it-admin-")

    def start(sections="", **settings):
        path = f"{folder}/admin.sock"
        text = f"[admin]\nsocket = {path}\n" + sections
        weir = farm.weir(redis, sections=text, **settings)
        weir.own_settings = weir.config.read_text().split("\n[")[0] + f"\n[admin]\nsocket = {path}\n"
        weir.admin = path
        return weir

    yield start
    shutil.rmtree(folder, ignore_errors=True)


def test_the_socket_is_its_owners(operated):
    weir = operated()
    mode = os.stat(weir.admin).st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600
    with Conn(weir.admin) as admin:
        assert admin.call("PING") == "PONG"
    weir.stop()
    assert not Path(weir.admin).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_the_socket_is_for_nobody_else(operated):
    """weir refuses other users even if the socket's mode lets them in, by the user that the kernel
    tells.
    """
    weir = operated()
    os.chmod(Path(weir.admin).parent, 0o755)
    os.chmod(weir.admin, 0o666)
    code = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(10); print(s.recv(9))"
    argv = ["/usr/bin/python3", "-c", code, weir.admin]
    done = subprocess.run(argv, user=65534, capture_output=True, text=True, timeout=30)
    assert done.stdout == "b''\n", done.stderr
    wait_until(lambda: "operators' socket is closed to user 65534" in weir.log(), "the log says so")


@workers
def test_a_line_holds_everywhere_once_it_is_answered(n_workers, operated):
    weir = operated("[policy default]\nall = 1m/s\n", workers=n_workers)
    conns = [weir.connect() for _ in range(8)]
    with Conn(weir.admin) as admin:
        for _ in range(20):
            assert admin.call("LIMIT", "SET", "default", "write", "deny") == "OK"
            assert {conn.call("SET", "k", "v") for conn in conns} == {Error("NOPERM denied by policy default")}
            assert admin.call("LIMIT", "UNSET", "default", "write") == "OK"
            assert {conn.call("SET", "k", "v") for conn in conns} == {"OK"}
    for conn in conns:
        conn.close()


def test_orders_of_many_at_once(operated):
    weir = operated("[policy default]\nall = 1m/s\n", workers=2)
    admins = [Conn(weir.admin) for _ in range(8)]
    for i, admin in enumerate(admins):
        admin.send(b"".join(encode("LIMIT", "SET", "default", "read", f"{100 + i}k/s") for _ in range(20)))
    for admin in admins:
        assert [admin.read() for _ in range(20)] == ["OK"] * 20
        assert admin.call("PING") == "PONG"
        admin.close()
    wait_until(lambda: weir.log().count("[policy default] read = ") == 160, "every order is told of")


def test_who_leaves_before_the_answer(operated):
    weir = operated("[policy default]\nall = 1m/s\n", workers=2)
    for i in range(50):
        with Conn(weir.admin) as admin:
            admin.send(encode("LIMIT", "SET", "default", "read", f"{i + 1}k/s") * 3)
    assert weir.serves()
    for _ in range(10):
        admin = Conn(weir.admin)
        admin.send(encode("LIMIT", "RELOAD") * 50)
    weir.stop()
    admin.close()


def test_a_reload_drops_what_was_only_set(operated):
    weir = operated("[policy default]\nread = 10k/s\n")
    with Conn(weir.admin) as admin:
        assert admin.call("LIMIT", "SET", "default", "read", "20k/s", "burst", "30k") == "OK"
        assert admin.call("LIMIT", "MODE", "shadow") == "OK"
        named = {(row[3], row[5], row[7]) for row in admin.call("LIMIT", "DIFF")}
        assert named == {(b"read", b"20k/s burst 30k", b"10k/s"), (b"mode", b"shadow", b"enforce")}
        assert reload(weir, "[policy default]\nread = 10k/s\n")
        weir.wait_for_log("only SET: [policy default] read = 20k/s burst 30k")
        weir.wait_for_log("only SET: [weir] mode = shadow")
        assert admin.call("LIMIT", "DIFF") == []
        assert admin.call("LIMIT", "MODE") == b"enforce"


def test_orders_that_are_wrong(operated):
    weir = operated("[policy default]\nread = 10k/s\n")
    with Conn(weir.admin) as admin:
        for words, error in {
            "SET defualt read 1/s": "ERR no policy defualt (did you mean default?)",
            "SET default raed 1/s": "ERR [policy default] raed: unknown class raed (did you mean read?)",
            "SET default match ip:10.0.0.1": "ERR match is not a limit: change it in the file, then LIMIT RELOAD",
            "UNSET default write": "ERR policy default has no limit write",
            "MODE on": 'ERR [weir] mode: "on" is neither enforce nor shadow',
        }.items():
            assert admin.call("LIMIT", *words.split()) == Error(error)
        weir.config.write_text(weir.config.read_text() + "nonsense\n")
        for word, begins in {"RELOAD": "ERR configuration not reloaded: ", "DIFF": "ERR the file cannot be compared: "}.items():
            reply = admin.call("LIMIT", word)
            assert isinstance(reply, Error) and reply.startswith(begins) and reply.endswith("expected: key = value")


def test_others_give_no_orders(operated):
    weir = operated("[policy default]\nread = 10k/s\n")
    with weir.connect() as a:
        for words in ("SET default read 1/s", "UNSET default read", "MODE shadow", "RELOAD", "DIFF"):
            reply = a.call("LIMIT", *words.split())
            assert isinstance(reply, Error) and reply.startswith("NOPERM "), reply


# ---- limits in the log ----


def test_the_log_tells_of_refusals(farm, redis):
    weir = farm.weir(redis, workers=2, sections="[policy default]\nwrite = 1/h\nread = 1/h over shadow\n")
    with weir.connect() as a:
        a.ask(*["SET secret secret"] * 11, *["GET secret"] * 6)
    wait_until(lambda: "limit default/write begins to refuse: 10 commands so far" in weir.log(), "it is told")
    wait_until(lambda: "limit default/read would begin to refuse: 5 commands so far" in weir.log(), "it is told")
    assert "secret" not in weir.log()
