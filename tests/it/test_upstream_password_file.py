"""upstream-password-file changes while weir runs, without a signal."""

import os
import time

import pytest
from kit.decisions import Decision, decision, fresh
from kit.harness import run_weir, wait_until
from kit.reloading import signal_reload
from kit.resp import Closed, Conn
from kit.tls import behind
from kit.tokens import Tokens

HURRY = {"WEIR_HURRY": "30"}  # a check every 10 s becomes three checks a second
RIGHTS = ("~*", "&*", "+@all")
BOTH = pytest.mark.parametrize("lanes", ["shared", "private"])
KINDS = pytest.mark.parametrize("kind", ["plain", pytest.param("tls", marks=pytest.mark.moves)])
USED = "upstream-password-file has a new password: weir uses it from now on"
WITHIN = 2.0  # seconds after a login is refused


def rename_over(path, text):
    new = path.with_suffix(".new")
    new.write_text(text)
    new.chmod(0o600)
    new.rename(path)


def in_place(path, text):
    path.write_text(text)


WAYS = pytest.mark.parametrize("write", [rename_over, pytest.param(in_place, marks=pytest.mark.moves)])


class Rotation:
    """A Redis with the user w, and a weir that logs in as w."""

    def __init__(self, farm, tmp_path, kind="plain", text="P1\n", path=None, **settings):
        self.path = path or tmp_path / "password"
        if path is None:
            self.path.write_text(text)
            self.path.chmod(0o600)
        self.redis, tls = behind(kind, farm, tmp_path)
        self.redis.call("ACL", "SETUSER", "w", "reset", "on", ">P1", *RIGHTS)
        settings = {"upstream_user": "w", "upstream_password_file": self.path, "workers": 2, **tls, **settings}
        self.weir = farm.weir(self.redis, **settings)

    def acl(self, *rules):
        assert self.redis.call("ACL", "SETUSER", "w", *rules) == "OK"

    def kill(self):
        self.redis.call("CLIENT", "KILL", "USER", "w")

    def decides(self):
        with self.weir.connect() as conn:
            return type(decision(conn.call("LIMIT", "FUNNEL", fresh(), "9/h"))) is Decision

    def serves_as_w(self):
        with self.weir.connect() as conn:
            try:
                return conn.call("ACL", "WHOAMI") == b"w"
            except Closed:
                return False

    def wait(self, condition, seconds=WITHIN):
        """Waits for the condition, for at most this long since the first refused login."""
        began = time.monotonic()
        wait_until(condition, "weir is let in", 20)
        assert time.monotonic() - began < seconds * 2, "a busy machine may take twice as long"


@KINDS
@BOTH
@WAYS
def test_a_password_that_is_replaced(write, lanes, kind, farm, tmp_path):
    """A secret that changes every hour: the file has the new password, Redis takes it, and drops
    the old one.
    """
    r = Rotation(farm, tmp_path, kind, lanes=lanes, clients_as="upstream")
    assert r.decides() and r.serves_as_w()
    r.acl(">P2")
    write(r.path, "P2\n")
    r.acl("<P1")
    r.kill()
    r.wait(r.serves_as_w)
    r.wait(r.decides)
    assert r.weir.log().count(USED) == 1 and "reloaded" not in r.weir.log()
    assert "P2" not in r.weir.log()


@pytest.mark.moves
@KINDS
@BOTH
@WAYS
def test_without_clients_as_limits_are_decided_again(write, lanes, kind, farm, tmp_path):
    r = Rotation(farm, tmp_path, kind, lanes=lanes)
    assert r.decides()
    for n in range(2, 5):
        r.acl(f">P{n}")
        write(r.path, f"P{n}\n")
        r.acl(f"<P{n - 1}")
        r.kill()
        r.wait(r.decides)
    wait_until(lambda: r.weir.log().count(USED) == 3, "each is used")


@pytest.mark.moves
@BOTH
def test_the_file_is_written_after_redis_has_forgotten(lanes, farm, tmp_path):
    """Logins are refused for a while, and then soon accepted."""
    r = Rotation(farm, tmp_path, lanes=lanes, clients_as="upstream", env=HURRY)
    r.acl(">P2", "<P1")
    r.kill()
    wait_until(lambda: "does not accept" in r.weir.log(), "the login is refused")
    rename_over(r.path, "P2")
    r.wait(lambda: r.serves_as_w() and r.decides())


def test_the_file_is_written_before_redis_knows(farm, tmp_path):
    """weir tries the new password first and then the old one. Once Redis has dropped the old one,
    weir tries the new one again.
    """
    r = Rotation(farm, tmp_path, clients_as="upstream", env=HURRY)
    rename_over(r.path, "P2\n")
    r.weir.wait_for_log(USED)
    r.kill()
    r.wait(lambda: r.serves_as_w() and r.decides())
    r.weir.wait_for_log("rejects one of the last two passwords")
    assert "weir opens no more connections with this login" not in r.weir.log()
    r.acl(">P2", "<P1")
    r.kill()
    r.wait(lambda: r.serves_as_w() and r.decides())


@pytest.mark.moves
def test_both_passwords_are_refused_for_a_while(farm, tmp_path):
    """First a third password that the file never had, then one of the two again. weir does not ask
    too often.
    """
    r = Rotation(farm, tmp_path, workers=1, env=HURRY)
    rename_over(r.path, "P2\n")
    r.weir.wait_for_log(USED)
    r.acl(">P3", "<P1")
    r.kill()
    wait_until(lambda: not r.decides() and "weir opens no more connections with this login" in r.weir.log(), "both are refused")
    before = int(r.redis.info("total_connections_received"))
    for _ in range(200):
        r.decides()
    assert int(r.redis.info("total_connections_received")) - before < 100
    r.acl(">P1")
    r.wait(r.decides)


def test_a_link_that_is_swapped(farm, tmp_path):
    """As Kubernetes does: password -> ..data/password, and ..data -> a folder that is replaced as a
    whole.
    """

    def put(text, name):
        (tmp_path / name).mkdir()
        (tmp_path / name / "password").write_text(text)
        (tmp_path / name / "password").chmod(0o600)
        os.utime(tmp_path / name / "password", (1_000_000_000, 1_000_000_000))
        (tmp_path / "..tmp").symlink_to(name)
        (tmp_path / "..tmp").rename(tmp_path / "..data")

    put("P1", "..1")
    (tmp_path / "link").symlink_to("..data/password")
    r = Rotation(farm, tmp_path, path=tmp_path / "link", env=HURRY)
    put("P2", "..2")
    r.weir.wait_for_log(USED)
    r.acl(">P2", "<P1")
    r.kill()
    r.wait(r.decides)


def fifo(path):
    path.unlink()
    os.mkfifo(path)


def device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def folder(path):
    path.unlink()
    path.mkdir()


BAD = {
    "empty": (lambda path: in_place(path, ""), "the file is empty"),
    "only an end of line": (lambda path: in_place(path, "\n"), "the file is empty"),
    "two lines": (lambda path: in_place(path, "P2\nP3\n"), "more than one line"),
    "an empty line behind": (lambda path: in_place(path, "P2\n\n"), "more than one line"),
    "long": (lambda path: in_place(path, "x" * 4097), "longer than 4096 bytes"),
    "fifo": (fifo, "is not a regular file"),
    "device": (device, "is not a regular file"),
    "folder": (folder, "is not a regular file"),
    "gone": (lambda path: path.unlink(), "No such file"),
}


@pytest.mark.parametrize("name", [name if name == "fifo" else pytest.param(name, marks=pytest.mark.moves) for name in BAD])
def test_a_file_that_has_no_password(name, farm, tmp_path):
    """The old password stays, and one warning tells why."""
    make, why = BAD[name]
    r = Rotation(farm, tmp_path, env=HURRY)
    make(r.path)
    warned = "weir keeps using the previous password"
    r.weir.wait_for_log(warned)
    for _ in range(3):
        r.kill()
        r.wait(r.decides)
        time.sleep(0.4)  # weir checks the file in that time
    [line] = [line for line in r.weir.log().splitlines() if warned in line]
    assert " warn " in line and why in line, line
    if r.path.is_dir():
        r.path.rmdir()
    rename_over(r.path, "P2\r\n")
    r.weir.wait_for_log(USED)
    r.acl(">P2", "<P1")
    r.kill()
    r.wait(r.decides)
    in_place(r.path, "")
    r.weir.wait_for_log(warned, 2)


@pytest.mark.moves
@pytest.mark.parametrize("name", ["empty", "two lines", "long", "fifo", "device", "folder", "gone"])
def test_such_a_file_at_the_start_is_a_mistake(name, tmp_path):
    make, why = BAD[name]
    path = tmp_path / "password"
    path.write_text("P1")
    make(path)
    config = tmp_path / "weir.conf"
    config.write_text(f"[weir]\nlisten = 127.0.0.1:0\nupstream-password-file = {path}\n")
    for options in ([], ["-t"]):
        done = run_weir("-c", config, *options)
        assert done.returncode == 1 and why in done.stderr, done


@pytest.mark.moves
def test_the_longest_password(farm, tmp_path):
    r = Rotation(farm, tmp_path, env=HURRY)
    longest = "y" * 4096
    in_place(r.path, longest)
    r.weir.wait_for_log(USED)
    r.acl(">" + longest, "<P1")
    r.kill()
    r.wait(r.decides)


@pytest.mark.moves
def test_a_file_that_is_being_written(farm, tmp_path):
    """Half a password is not used."""
    r = Rotation(farm, tmp_path, env=HURRY)
    r.acl(">P2P2")
    for _ in range(20):
        with open(r.path, "w") as file:
            for part in ("P2", "P2"):
                file.write(part)
                file.flush()
                time.sleep(0.03)
    r.weir.wait_for_log(USED)
    r.acl("<P1")
    r.kill()
    r.wait(r.decides)
    assert r.weir.log().count(USED) == 1 and "keeps using the previous" not in r.weir.log()


@pytest.mark.moves
def test_a_reload_takes_another_file(farm, tmp_path):
    """From then on weir checks the new file. The password of the old file is tried where the new
    one is refused.
    """
    r = Rotation(farm, tmp_path, env=HURRY)
    other = tmp_path / "other"
    rename_over(other, "P2\n")
    r.weir.config.write_text(r.weir.config.read_text().replace(str(r.path), str(other)))
    assert signal_reload(r.weir)
    r.kill()
    r.wait(r.decides)
    rename_over(r.path, "P9\n")
    rename_over(other, "P3\n")
    r.weir.wait_for_log(USED)
    r.acl(">P3", "<P1")
    r.kill()
    r.wait(r.decides)
    assert r.weir.log().count(USED) == 1


@pytest.mark.moves
def test_a_password_of_the_default_user(farm, tmp_path):
    path = tmp_path / "password"
    path.write_text("P1")
    path.chmod(0o600)
    redis = farm.redis(password="P1")
    weir = farm.weir(redis, upstream_password_file=path, clients_as="upstream")
    redis.call("CONFIG", "SET", "requirepass", "P2")
    rename_over(path, "P2\n")
    redis.call("CLIENT", "KILL", "TYPE", "normal")

    def serves():
        with weir.connect() as conn:
            try:
                return conn.call("SET", "k", "v") == "OK"
            except Closed:
                return False

    wait_until(serves, "it is let in", 2 * WITHIN)


@pytest.mark.moves
def test_an_order_of_an_operator_keeps_the_password(farm, tmp_path):
    """LIMIT SET makes new rules from the file as it was read."""
    r = Rotation(farm, tmp_path, env=HURRY, sections="[admin]\nsocket = {folder}/admin.sock\n[policy default]\nread = 9/s\n")
    r.acl(">P2", "<P1")
    rename_over(r.path, "P2\n")
    r.weir.wait_for_log(USED)
    with Conn(str(r.weir.folder / "admin.sock")) as conn:
        assert conn.call("LIMIT", "SET", "default", "read", "8/s") == "OK"
    r.kill()
    r.wait(r.decides)


@pytest.mark.moves
@BOTH
def test_tokens_that_lapse(lanes, farm, tmp_path):
    """A token service closes connections with an expired token. weir sends the newest token on each
    of its own connections.
    """
    path = tmp_path / "password"
    redis = farm.redis()
    redis.call("ACL", "SETUSER", "app", "resetpass", "on", *RIGHTS)
    with Tokens(redis, "app", 4) as tokens:
        rename_over(path, tokens.issue())
        weir = farm.weir(
            tokens.upstream, workers=1, lanes=lanes, env={"WEIR_HURRY": "60"}, clients_as="upstream", upstream_user="app",
            upstream_password_file=path,
        )  # fmt: skip
        with weir.connect() as conn, weir.connect() as other:
            assert conn.ask("SET k v", "WATCH k") == ["OK", "OK"] and other.call("GET", "k") == b"v"
            end = time.monotonic() + 9
            while time.monotonic() < end:
                rename_over(path, tokens.issue())
                time.sleep(1)
                assert other.call("GET", "k") == b"v"
                assert type(decision(other.call("LIMIT", "FUNNEL", fresh(), "9/h"))) is Decision
            assert conn.ask("MULTI", "GET k", "EXEC") == ["OK", "QUEUED", [b"v"]]
        assert weir.log().count("a shared connection is closed") == 0
        assert weir.log().count("a private connection is closed") == 0
        assert "the control connection failed" not in weir.log()
