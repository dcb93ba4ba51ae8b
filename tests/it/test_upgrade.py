"""Another process takes over (SIGUSR2), or systemd holds the sockets: no connection is refused or
reset, and no reply is lost.
"""

import contextlib
import json
import os
import re
import select
import signal
import socket
import ssl
import stat
import threading
import time
import urllib.request

import pytest
from kit.harness import WEIR, Heir, Weir, wait_until
from kit.manager import Manager
from kit.resp import Closed, Conn, encode, pipeline
from kit.tls import Authority, TlsConn, tls_settings, trusting

PATIENCE = "15s"  # drain-timeout
# seconds; weir closes clients that are silent for twice as long, as any client may be on a busy
# machine
SILENCE = 0.5


@pytest.fixture
def weir(farm, redis):
    return farm.weir(redis, drain_timeout=PATIENCE)


def has_ended(conn):
    """True if the other side has closed this connection between two commands. A reset is an error.
    """
    if isinstance(conn, TlsConn):
        return conn.has_ended()
    return bool(select.select([conn.sock], [], [], 0)[0]) and conn.sock.recv(1, socket.MSG_PEEK) == b""


class Load:
    """Clients that connect, ask and close, and clients that stay and pipeline. Each checks its
    connection before it sends, as pools do.
    """

    def __init__(self, addresses, connect=Conn, **acts):
        """`acts` tells how many clients do what."""
        self.addresses = addresses
        self.connect = connect
        self.wrong = []
        self.asked = self.connected = 0
        self.is_over = threading.Event()
        self.lock = threading.Lock()
        acts = [getattr(self, name) for name, n in acts.items() for _ in range(n)]
        self.threads = [threading.Thread(target=self.run, args=(act, i)) for i, act in enumerate(acts)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in self.threads)

    def goes_on(self, n=300):
        """Waits for n more requests."""
        before = self.asked
        wait_until(lambda: self.asked > before + n or self.wrong, "clients are served", 30)

    def run(self, act, number):
        while not self.is_over.is_set():
            since = time.monotonic()
            try:
                with self.connect(self.addresses[number % len(self.addresses)]) as conn:
                    conn.heard = since
                    with self.lock:
                        self.connected += 1
                    act(conn, f"{number}.{self.connected}")
            except Exception as error:  # any error of a client fails the test
                self.wrong.append(f"client {number}: {error!r}")
                return

    def ask(self, conn, *commands):
        """Returns the replies; None if the connection had closed before the requests were sent."""
        if has_ended(conn):
            return None
        conn.sock.sendall(pipeline(*commands))
        was_silent = time.monotonic() - conn.heard > SILENCE
        try:
            replies = [conn.read() for _ in commands]
        except (Closed, ssl.SSLError):
            if was_silent and not conn.buffer:
                return None
            raise
        conn.heard = time.monotonic()
        with self.lock:
            self.asked += 1
        return replies

    def come_and_go(self, conn, word):
        for command, reply in ((f"SET {word} x", "OK"), (f"GET {word}", b"x"), (f"DEL {word}", 1), ("PING", "PONG")):
            replies = self.ask(conn, command)
            if replies is None:
                return
            assert replies == [reply]

    def ask_once(self, conn, word):
        assert self.ask(conn, f"ECHO {word}") in ([word.encode()], None)

    def stay(self, conn, word):
        n = 0
        while not self.is_over.is_set():
            replies = self.ask(conn, *[f"INCR {word}"] * 10, f"ECHO {word}")
            if replies is None:
                return
            assert replies == [*range(n + 1, n + 11), word.encode()]
            n += 10


@pytest.mark.parametrize("before, after", [(1, 1), (2, 2), (1, 3), (3, 1)], ids=lambda n: str(n))
def test_an_upgrade_under_load_loses_nothing(before, after, farm, redis):
    weir = farm.weir(redis, workers=before, drain_timeout=PATIENCE, listen="127.0.0.1:0, [::1]:0")
    with Load(weir.addresses, come_and_go=6, stay=4) as load:
        load.goes_on()
        weir.config.write_text(weir.config.read_text().replace(f"workers = {before}", f"workers = {after}"))
        for _ in range(3):
            weir.upgrade()
            load.goes_on()
    assert not load.wrong
    weir.wait_for_log(f"with {after} worker")


def test_under_load_on_a_unix_socket(farm, redis):
    """On a unix socket the end cannot travel with the last reply. Only clients that ask once never
    see the end between commands.
    """
    weir = farm.weir(redis, drain_timeout=PATIENCE, listen="unix:{folder}/weir.sock")
    with Load(weir.addresses, ask_once=8) as load:
        load.goes_on()
        for _ in range(3):
            weir.upgrade()
            load.goes_on()
    assert not load.wrong


def test_under_load_in_tls(farm, redis, tmp_path):
    """Each connection ends with close_notify. Some handshakes are in progress when another process
    takes over.
    """
    ca = Authority(tmp_path)
    trust = trusting(ca)
    trust.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    weir = farm.weir(redis, drain_timeout=PATIENCE, **tls_settings(ca.issue("weir")))

    def connect(address):
        while True:
            since = time.monotonic()
            try:
                return TlsConn(address, trust, suppress_ragged_eofs=False)
            except (ssl.SSLError, ConnectionResetError):
                if time.monotonic() - since < SILENCE:
                    raise

    with Load(weir.addresses, connect, come_and_go=4, stay=3) as load:
        load.goes_on()
        for _ in range(3):
            weir.upgrade()
            load.goes_on()
    assert not load.wrong


# ---- sockets that are handed over ----


def test_everything_is_handed_over(farm, redis):
    sections = "[admin]\nlisten = 127.0.0.1:0\nsocket = {folder}/admin.sock\n"
    weir = farm.weir(redis, drain_timeout=PATIENCE, listen="127.0.0.1:0, unix:{folder}/weir.sock, 127.0.0.1:0", sections=sections)
    addresses = weir.addresses
    metrics = re.search(r"(http://\S+)/metrics", weir.log())[1]
    admin = str(weir.folder / "admin.sock")
    inodes = [os.stat(path).st_ino for path in (admin, addresses[1])]
    for _ in range(2):
        old = weir.child.pid
        weir.upgrade()
        assert weir.child.pid != old
        assert weir.addresses == addresses  # no other port, and nothing new
        for address in addresses:
            with Conn(address) as a:
                assert a.call("PING") == "PONG"
        with Conn(admin) as a:
            assert a.call("LIMIT", "MODE") in (b"enforce", "enforce")
        assert urllib.request.urlopen(metrics + "/readyz", timeout=10).read() == b"ready\n"
    assert inodes == [os.stat(path).st_ino for path in (admin, addresses[1])]
    assert stat.S_IMODE(os.stat(admin).st_mode) == 0o600
    weir.stop()
    assert not os.path.exists(admin) and not os.path.exists(addresses[1])


def test_nothing_else_is_handed_over(farm, redis):
    """No descriptor of a client, of a connection to Redis, or of a log."""
    weir = farm.weir(redis, drain_timeout=PATIENCE)

    def descriptors():
        folder = f"/proc/{weir.child.pid}/fd"
        return sorted(re.sub(r"[0-9:]+", "", os.readlink(f"{folder}/{fd}")) for fd in os.listdir(folder))

    before = wait_until(lambda: descriptors(), "there are some")
    with weir.connect() as a:
        assert a.call("PING") == "PONG"
        assert len(descriptors()) > len(before)
        weir.upgrade()
        assert a.is_closed()
    wait_until(lambda: len(descriptors()) <= len(before), f"{descriptors()} is not more than {before}")
    assert not [name for name in os.environ if name.startswith("WEIR_UPGRADE")]


def test_who_is_in_the_middle_of_something_stays_with_the_old_one(weir, redis):
    with weir.connect() as blocked, weir.connect() as idle:
        blocked.send(encode("BLPOP", "list", 0))
        assert idle.call("PING") == "PONG"
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        old = weir.child
        thread = threading.Thread(target=weir.upgrade)
        thread.start()
        wait_until(lambda: "has taken over" in weir.log(), "the new process takes over")
        assert idle.read_to_end() == b""
        assert weir.serves()
        assert old.poll() is None
        new = re.search(r"upgrade: process (\d+) has taken over", weir.log())[1]
        for line in (
            f"process {new} is starting, to take over from {old.pid}",
            f"process {new} serves in place of process {old.pid}",
            f"process {new} has taken over from process {old.pid}, which stops",
            f"process {old.pid}: weir no longer accepts connections",
        ):
            weir.wait_for_log(line)
        redis.call("RPUSH", "list", "x")
        assert blocked.read() == [b"list", b"x"] and blocked.read_to_end() == b""
        thread.join()
        weir.wait_for_log(f"process {old.pid}: all clients are gone")
        assert weir.serves()


# ---- failed upgrades ----


# ---- signals while weir starts: it listens, and Redis has not answered yet ----


def is_listening(weir):
    wait_until(lambda: "listening on" in weir.log(), "it listens")
    assert not weir.is_ready()


@pytest.fixture
def hung(farm):
    redis = farm.redis(password="secret")
    redis.signal(signal.SIGSTOP)
    yield redis
    redis.signal(signal.SIGCONT)


def starting(farm, hung, tmp_path, password="secret", **settings):
    """A weir that listens and waits for Redis, with its password in tmp_path/password."""
    (tmp_path / "password").write_text(password + "\n")
    (tmp_path / "password").chmod(0o600)
    weir = farm.weir(hung, wait=False, upstream_password_file=tmp_path / "password", **settings)
    is_listening(weir)
    return weir


def test_an_upgrade_waits_until_weir_serves(farm, hung, tmp_path):
    """The upgrade runs once, however often the operator requests it before weir serves."""
    weir = starting(farm, hung, tmp_path, connect_timeout="2s")
    old = weir.child.pid
    with Heir.expected():
        for n in range(3):
            weir.signal(signal.SIGUSR2)
            weir.wait_for_log("upgrade: SIGUSR2 takes effect once weir serves", n + 1)
        hung.signal(signal.SIGCONT)
        said = f"upgrade: process (\\d+) has taken over from process {old}"
        heir = Heir(int(wait_until(lambda: re.search(said, weir.log()), "another process takes over")[1]))
        assert weir.wait() == 0
        weir.child = heir
    wait_until(lambda: weir.log().count("info  ready\n") == 2, "the new process is ready")
    assert "is already under way" not in weir.log()
    heir.send_signal(signal.SIGTERM)
    assert heir.wait(20) == 0


def test_a_reload_while_weir_starts(farm, hung, tmp_path):
    weir = starting(farm, hung, tmp_path, "wrong", sections="[policy default]\nread = 1/s\n")
    (tmp_path / "password").write_text("secret\n")
    weir.config.write_text(weir.config.read_text().replace("1/s", "7/h"))
    weir.signal(signal.SIGHUP)
    weir.wait_for_log("configuration reloaded from")
    hung.signal(signal.SIGCONT)
    wait_until(lambda: "info  ready\n" in weir.log(), "weir is ready with the new password")
    with weir.connect() as a:
        assert a.call("AUTH", "secret") == "OK"
        replies = a.ask(*["GET k"] * 8)
    assert replies[:7] == [None] * 7 and "retry_in_ms=5" in str(replies[7]), replies


@pytest.mark.parametrize("times", [1, 2])
def test_stopping_while_weir_starts(times, farm, hung, tmp_path):
    weir = starting(farm, hung, tmp_path, listen="unix:{folder}/weir.sock")
    for _ in range(times):
        weir.signal(signal.SIGTERM)
    assert weir.wait() == 0
    assert "stopping: SIGTERM" in weir.log()
    assert not (weir.folder / "weir.sock").exists()


# ---- impossible upgrades ----


def test_a_mistake_in_the_configuration_changes_nothing(weir, redis):
    good = weir.config.read_text()
    weir.config.write_text(good + "nonsense = 1\n")
    with weir.connect() as a:
        weir.signal(signal.SIGUSR2)
        wait_until(lambda: "before it served: process " in weir.log(), "the new process has ended")
        assert a.call("PING") == "PONG" and weir.serves()
        weir.config.write_text(good)
        weir.upgrade()
        assert a.is_closed() and weir.serves()


# ---- why a new process does not serve, in the old process' log ----

ENDED = r"upgrade: process \d+ ended \(status [12], signal 0\) before it served: process \d+ goes on: "


def logged(weir):
    """Returns its lines of JSON; every line is valid."""
    path = weir.folder / "weir.log"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def fails(weir, change):
    """Tries an upgrade with the changed file. Returns the messages of level warn and error since
    then.
    """
    good, seen = weir.config.read_text(), len(logged(weir))
    weir.config.write_text(change(good))
    weir.signal(signal.SIGUSR2)
    wait_until(lambda: any(re.match(ENDED, line["msg"]) for line in logged(weir)[seen:]), "the new process has ended")
    weir.config.write_text(good)
    return [line["msg"] for line in logged(weir)[seen:] if line["level"] in ("warn", "error")]


@pytest.fixture
def json_weir(farm, redis):
    weir = farm.weir(
        redis, wait=False, listen="unix:{folder}/weir.sock", log="{folder}/weir.log", log_format="json",
        drain_timeout=PATIENCE, env={"WEIR_HURRY": "30"},
    )  # fmt: skip
    wait_until(lambda: any(line["msg"] == "ready" for line in logged(weir)), "it is ready")
    yield weir
    assert weir.log() == "", "nothing was written to stderr"


def test_a_mistake_is_the_reason_of_a_failed_upgrade(json_weir):
    path = json_weir.config
    n = path.read_text().count("\n")
    told = fails(json_weir, lambda text: text + "nonsense = 1\nworkers = many\n")
    mistakes = [f"{path}:{n + 1}: [weir] nonsense: unknown key", f"{path}:{n + 2}: [weir] workers: given twice"]
    assert [re.sub(r"upgrade: process \d+: ", "", line)[: len(mistake)] for line, mistake in zip(told, mistakes)] == mistakes
    assert re.fullmatch(ENDED + re.escape(mistakes[0]), told[2]), "the first of them"
    assert len(told) == 3


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda text: text.replace("/weir.log", "/missing/weir.log"), "cannot open the log file .*/missing/weir.log: No such file"),
        (lambda text: re.sub("upstream = .*", "upstream = no-such-host.invalid:1", text), "upstream no-such-host.invalid:1: its name cannot be resolved: [^:]*: not taking over"),
        (lambda text: re.sub("upstream = .*", "upstream = 127.0.0.1:1", text), "upstream 127.0.0.1:1 is away: not taking over"),
        (lambda text: text.replace("/weir.sock", "/weir.sock, unix:/nowhere/x.sock"), "cannot listen on unix:/nowhere/x.sock: "),
        (lambda text: "[weir\n", r".*weir.conf:1: the \] of the section is missing"),
    ],
    ids=["log", "name", "away", "socket", "broken"],
)
def test_the_reason_of_a_failed_upgrade(change, reason, json_weir):
    told = fails(json_weir, change)
    assert re.match(ENDED + reason, told[-1]), told
    assert sum(bool(re.search(reason, line)) for line in told) <= 2
    with Conn(str(json_weir.folder / "weir.sock")) as conn:
        assert conn.call("PING") == "PONG"


def test_a_failed_upgrade_waits_for_no_reader_of_stderr(farm, redis):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    weir = farm.weir(
        redis, wait=False, stderr=writer, listen="unix:{folder}/weir.sock", log="{folder}/weir.log", log_format="json"
    )
    wait_until(lambda: any(line["msg"] == "ready" for line in logged(weir)), "it is ready")
    assert len(fails(weir, lambda text: text + "nonsense = 1\n" * 100)) == 101
    weir.stop()
    os.close(reader)
    os.close(writer)


def test_warnings_of_the_start_are_in_the_log(farm, redis, tmp_path):
    (tmp_path / "password").write_text("secret\n")
    (tmp_path / "password").chmod(0o644)
    weir = farm.weir(
        farm.redis(password="secret"), wait=False, listen="unix:{folder}/weir.sock", log="{folder}/weir.log", log_format="json",
        upstream_password_file=tmp_path / "password",
    )
    wait_until(lambda: any(line["msg"] == "ready" for line in logged(weir)), "it is ready")
    [warning] = [line["msg"] for line in logged(weir) if line["level"] == "warn"]
    assert "[weir] upstream-password-file: other users can read" in warning
    weir.stop()
    assert weir.log() == ""


def test_an_address_that_is_no_more_wanted(farm, redis):
    weir = farm.weir(redis, listen="127.0.0.1:0, unix:{folder}/weir.sock")
    (host, port), path = weir.addresses
    text = weir.config.read_text()
    weir.config.write_text(re.sub(r"listen = .*", f"listen = {host}:{port}", text))
    weir.upgrade()
    assert weir.serves()
    with pytest.raises(ConnectionRefusedError):
        Conn(path)


def test_stopping_while_the_new_process_starts(weir):
    weir.signal(signal.SIGUSR2)
    weir.signal(signal.SIGUSR2)
    weir.stop()
    pids = re.findall(r"upgrade: process (\d+) is starting", weir.log())
    for pid in pids:
        wait_until(lambda: not os.path.exists(f"/proc/{pid}") or is_zombie(pid), "it has ended too")


def test_stopping_while_the_new_process_starts_and_somebody_stays(weir, redis):
    """The new process shares the listening sockets. The new process must not outlive the old one,
    or the sockets would stay open.
    """
    with weir.connect() as a:
        assert a.ask("MULTI", "INCR n") == ["OK", "QUEUED"]
        weir.signal(signal.SIGUSR2)
        wait_until(lambda: "is starting" in weir.log(), "a new process starts")
        weir.signal(signal.SIGTERM)
        [pid] = re.findall(r"upgrade: process (\d+) is starting", weir.log())
        wait_until(lambda: not os.path.exists(f"/proc/{pid}") or is_zombie(pid), "it has ended", 10)
        assert a.call("EXEC") == [1] and a.read_to_end() == b""
    weir.stop()


def is_zombie(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


# ---- systemd ----


def test_systemd_is_told_who_serves(farm, redis):
    with Manager(watchdog_us=1_000_000) as manager:
        weir = farm.weir(redis, drain_timeout=PATIENCE, env={**manager.env, "WATCHDOG_PID": ""})
        manager.wait_for("READY=1")
        old = weir.child.pid
        weir.upgrade()
        assert weir.child.pid != old
        assert manager.wait_for(f"MAINPID={weir.child.pid}") == [f"MAINPID={weir.child.pid}"]
        heard = [manager.wait_for("READY=1"), manager.wait_for("WATCHDOG=1")]
        assert "STOPPING=1" not in sum(heard, [])
        weir.stop()
        manager.wait_for("STOPPING=1")


class Activated(Weir):
    """weir as systemd starts it, with sockets that are already open."""

    def __init__(self, upstream, sockets, **kwargs):
        super().__init__(upstream, **kwargs)
        self.sockets = sockets

    def start(self):
        fds = [sock.fileno() for sock in self.sockets]
        # High numbers first, so no redirection overwrites what a later one reads.
        high = " ".join(f"{100 + i}<&{fd}" for i, fd in enumerate(fds))
        low = " ".join(f"{3 + i}<&{100 + i} {100 + i}<&-" for i in range(len(fds)))
        script = f'exec {high}; exec {low}; LISTEN_PID=$$ LISTEN_FDS={len(fds)} exec "$0" "$@"'
        self.launch(["bash", "-c", script, str(WEIR), "-c", str(self.config)], pass_fds=fds)


@pytest.fixture
def activated(farm, redis):
    def start(sockets, **kwargs):
        weir = Activated(redis, sockets, drain_timeout=PATIENCE, **kwargs)
        farm.servers.append(weir)
        weir.start()
        return weir

    return start


@pytest.mark.parametrize("workers", [1, 3])
def test_sockets_of_systemd(workers, activated, tmp_path):
    path = str(tmp_path / "weir.sock")
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(path)
        unix.listen()
        addresses = [tcp.getsockname(), path]
        early = [Conn(address) for address in addresses for _ in range(5)]
        for conn in early:
            conn.send(encode("ECHO", "early"))
        listen = "%s:%d, unix:%s, 127.0.0.1:0" % (*tcp.getsockname(), path)
        weir = activated([tcp, unix], workers=workers, listen=listen).wait_ready()
        for conn in early:
            assert conn.read() == b"early"
            conn.close()
        for address in [*addresses, weir.addresses[2]]:
            with Conn(address) as a:
                assert a.call("PING") == "PONG"
        weir.stop()
        late = [Conn(address) for address in addresses]  # a restart refuses no client
        for conn in late:
            conn.send(encode("ECHO", "late"))
        weir.start()
        for conn in late:
            assert conn.read() == b"late"
            conn.close()
        weir.upgrade()
        for address in addresses:
            with Conn(address) as a:
                assert a.call("PING") == "PONG"
        weir.stop()
        assert os.path.exists(path)


def test_a_socket_of_systemd_that_is_not_configured(activated):
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        weir = activated([tcp], listen="unix:{folder}/weir.sock")
        assert weir.wait() == 1
        assert "systemd listens on %s:%d" % tcp.getsockname() in weir.log()


def test_a_descriptor_that_is_no_listening_socket(activated, tmp_path):
    with open(tmp_path / "file", "w") as file:
        weir = activated([file])
        assert weir.wait() == 1
        weir.wait_for_log("descriptor 3")
