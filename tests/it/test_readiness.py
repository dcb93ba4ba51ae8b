"""weir is ready when the server behind it answers a command. weir names what it lacks, with the
remedy.
"""

import re
import socket
import threading

import pytest
from kit.admin import ADMIN, get, stats
from kit.decisions import UNAVAILABLE, Decision, decision, fresh
from kit.harness import REPO, Redis, free_port, wait_until
from kit.manager import Manager
from kit.reloading import signal_reload
from kit.server import REDIS_SERVER, at_least

HURRY = {"WEIR_HURRY": "30"}  # a question every 10 s becomes three questions a second
LIMITS = ["FUNNEL {} 9/h", "BUCKET {} 9/h", "SLIDING {} 9/h", "FIXED {} 9/h", "ALL FUNNEL {} 9/h AND FIXED b 9/h"]


def readyz(weir):
    return get(weir, "/readyz")[::2]


def is_ready(weir):
    return readyz(weir) == (200, "ready\n")


def lacks(weir):
    return [lack["what"] for lack in stats(weir)["upstream"]["nodes"][0]["lacks"]]


def wait_lacks(weir, *wanted):
    wait_until(lambda: sorted(lacks(weir)) == sorted(wanted), f"weir lacks {wanted}", 20)


def titles(weir):
    return [finding["title"] for finding in stats(weir)["findings"]]


def limit(conn, command="FUNNEL {} 9/h"):
    return conn.call(*("LIMIT " + command.format(fresh())).split())


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "password"
    path.write_text("pw")
    path.chmod(0o600)
    return path


# ---- missing rights and passwords ----


def test_a_password_and_no_user_of_its_own(farm):
    """Clients are served, so weir is ready. LIMIT commands, the log and the page tell what is
    missing.
    """
    with Manager() as manager:
        redis = farm.redis(password="right")
        weir = farm.weir(redis, sections=ADMIN, env={**manager.env, **HURRY}, upstream_check="50ms")
        assert is_ready(weir)
        assert manager.wait_for("READY=1") == ["READY=1", f"STATUS=forwarding to {redis.upstream}"]
        with weir.connect() as conn:
            assert conn.call("AUTH", "right") == "OK"
            assert conn.ask("SET k v", "GET k") == ["OK", b"v"]
            for command in LIMITS:
                told = str(limit(conn, command))
                assert told.startswith("NOAUTH ") and "upstream-user" in told and "ACL SETUSER weir" in told, told
        wait_lacks(weir, "user")
        assert any("no login there" in title for title in titles(weir))
        said = f"upstream {redis.upstream} requires a password, and weir has no login there"
        assert weir.log().count(said) == 1
        redis.call("CONFIG", "SET", "requirepass", "")
        wait_lacks(weir)
        assert is_ready(weir) and weir.log().count(said) == 1
        weir.stop()


def test_a_password_that_is_not_accepted(farm, secret):
    """Clients log in by themselves. Once the file has the right password, LIMIT commands are
    decided, too.
    """
    redis = farm.redis(password="right")
    weir = farm.weir(redis, sections=ADMIN, env=HURRY, upstream_password_file=secret)
    assert is_ready(weir)
    wait_lacks(weir, "login")
    said = "rejects the password in upstream-password-file: LIMIT"
    told = [line for line in weir.log().splitlines() if said in line]
    assert len(told) == 1 and "user default (requirepass)" in told[0], told
    assert "upstream-user" not in weir.log() and "ACL SETUSER" not in weir.log()
    with weir.connect() as conn:
        assert conn.call("AUTH", "right") == "OK"
        assert conn.call("SET", "k", "v") == "OK"
        answer = str(limit(conn))
        assert answer.startswith("NOAUTH Redis rejects the password in upstream-password-file"), answer
        assert "requirepass" in answer and "upstream-user" not in answer, answer
        secret.write_text("right")
        assert signal_reload(weir)
        wait_lacks(weir)
        wait_until(lambda: type(decision(limit(conn))) is Decision, "it decides")
        weir.wait_for_log("accepts the password in upstream-password-file now")


def test_a_user_of_its_own_that_is_not_accepted(farm, secret):
    redis = farm.redis("--user", "weir", "on", ">other", "~*", "&*", "+@all")
    weir = farm.weir(redis, sections=ADMIN, env=HURRY, upstream_user="weir", upstream_password_file=secret)
    wait_lacks(weir, "login")
    assert weir.log().count("rejects upstream-user and upstream-password-file: LIMIT") == 1
    redis.call("ACL", "SETUSER", "weir", ">pw")
    wait_lacks(weir)
    weir.wait_for_log("accepts upstream-user and upstream-password-file now")


RENAMED = {
    "INFO": ["info"],
    "COMMAND": ["command"],
    "HELLO": [],
    "EVALSHA": ["evalsha"],
    "SCRIPT": ["script"],
    "EVAL": [],
}


@pytest.mark.parametrize("lanes", ["shared", "private"])
@pytest.mark.parametrize("name", RENAMED)
def test_a_command_that_has_been_taken_away(farm, name, lanes):
    redis = farm.redis("--rename-command", name, "")
    weir = farm.weir(redis, workers=1, lanes=lanes, sections=ADMIN)
    assert is_ready(weir)
    with weir.connect() as conn:
        assert conn.ask("SET k v", "GET k") == ["OK", b"v"]
        for command in LIMITS:
            for _ in range(2):
                assert type(decision(limit(conn, command)[:5])) is Decision, command
        assert type(decision(conn.call("CL.THROTTLE", fresh(), 9, 9, 60))) is Decision
        assert conn.call("LIMIT", "ACQUIRE", "q", 1, 9000)[0] == 0
    wait_lacks(weir, *RENAMED[name])
    assert weir.log().count(f"upstream {redis.upstream} ") == len(RENAMED[name])


def test_calls_go_by_their_scripts_in_order(farm):
    """A crowd of calls on one key, while each call carries its script: each is counted once."""
    redis = farm.redis("--rename-command", "EVALSHA", "")
    weir = farm.weir(redis, workers=2)
    conns = [weir.connect() for _ in range(8)]
    for _ in range(10):
        for conn in conns:
            conn.send(b"LIMIT FIXED k 100/100d\r\n" * 5)
        for conn in conns:
            for _ in range(5):
                conn.read()
    assert redis.call("GET", "limit:k") is not None
    found = conns[0].call("LIMIT", "FIXED", "k", "100/100d")
    assert found[:3] == [1, 100, 0]
    for conn in conns:
        conn.close()


@pytest.mark.parametrize("name, what", [("EVAL", "EVAL"), ("TIME", "TIME")])
def test_without_what_cannot_be_replaced_the_error_names_it(farm, name, what):
    also = ["--rename-command", "EVALSHA", ""] if name == "EVAL" else []
    redis = farm.redis("--rename-command", name, "", *also)
    weir = farm.weir(redis, workers=1, sections=ADMIN, limit_when_down="allow")
    assert is_ready(weir)
    with weir.connect() as conn:
        assert conn.ask("SET k v", "GET k") == ["OK", b"v"]
        for _ in range(3):
            told = str(limit(conn))
            assert what in told and f"ACL SETUSER weir +{name.lower()}" in told, told
    wait_lacks(weir, *{"EVAL": ["eval", "evalsha"], "TIME": ["time"]}[name])
    assert weir.log().count("LIMIT commands fail") == 1


@pytest.fixture
def as_user(farm, secret):
    """A user of weir's own, and a weir that logs in as that user."""

    def start(*rights, **settings):
        redis = farm.redis()
        redis.call("ACL", "SETUSER", "weir", "on", ">pw", *rights)
        weir = farm.weir(
            redis, workers=1, sections=ADMIN, env=HURRY, upstream_user="weir", upstream_password_file=secret,
            upstream_check="50ms", **settings,
        )  # fmt: skip
        return redis, weir

    return start


@pytest.mark.parametrize("right, what", [("info", "info"), ("command", "command"), ("script", "script"), ("evalsha", "evalsha"),
                                         ("eval", ""), ("time", "time")])  # fmt: skip
def test_a_right_that_is_missing_and_then_given(as_user, right, what):
    redis, weir = as_user("+@all", "~*", "&*", f"-{right}")
    assert is_ready(weir)
    with weir.connect() as conn:
        told = limit(conn)
        assert (type(decision(told)) is Decision) == (right != "time"), told
        wait_lacks(weir, *[what] * (what != ""))
        redis.call("ACL", "SETUSER", "weir", f"+{right}")

        def is_mended():
            return type(decision(limit(conn))) is Decision and lacks(weir) == []

        wait_until(is_mended, "it has the right", 20)
    assert is_ready(weir)


BESIDES = {
    "keys": (("+@all", "&*"), "~limit:*", "FUNNEL {} 9/h"),
    "unlink": (("+@all", "~*", "&*", "-unlink"), "+unlink", "RESET {}"),
    "right": (("+@all", "~*", "&*", "-set", "-zadd"), "+zadd", "SLIDING {} 9/h"),
}


@pytest.mark.parametrize("what", BESIDES)
def test_a_right_besides_those_of_scripts_is_named(as_user, what):
    rights, remedy, command = BESIDES[what]
    _, weir = as_user(*rights)
    with weir.connect() as conn:
        for _ in range(3):
            told = str(limit(conn, command))
            assert told.startswith("NOPERM Redis denies ") and remedy in told, told
    wait_lacks(weir, what)
    assert weir.log().count(" denies ") == 1


CHANNEL = {
    "channel": (("+@all", "~*", "resetchannels"), "channel"),
    "SUBSCRIBE": (("+@all", "~*", "&*", "-subscribe"), "subscribe"),
}


@pytest.mark.parametrize("name", CHANNEL)
def test_a_channel_that_weir_may_not_use_is_named(as_user, name):
    rights, what = CHANNEL[name]
    redis, weir = as_user(*rights)
    with weir.connect() as conn, weir.connect() as waiter:
        token = conn.call("LIMIT", "ACQUIRE", "q", 1, 100_000)[1]
        waiter.send(b"LIMIT ACQUIRE q 1 1000 WAIT 20000\r\n")
        wait_lacks(weir, what)
        assert weir.log().count(" denies ") == 1
        redis.call("ACL", "SETUSER", "weir", "&*", "+subscribe")
        wait_lacks(weir)
        assert conn.call("LIMIT", "RELEASE", "q", token) == 1
        assert waiter.read()[0] == 0


@pytest.mark.parametrize("name", ["PUBLISH", "SUBSCRIBE"])
def test_a_word_of_channels_that_has_been_taken_away_is_named(farm, name):
    redis = farm.redis("--rename-command", name, "")
    weir = farm.weir(redis, workers=1, sections=ADMIN)
    with weir.connect() as conn, weir.connect() as waiter:
        token = conn.call("LIMIT", "ACQUIRE", "q", 1, 100_000)[1]
        waiter.send(b"LIMIT ACQUIRE q 1 1000 WAIT 20000\r\n")
        if name == "SUBSCRIBE":
            wait_lacks(weir, "subscribe")
        else:
            wait_until(lambda: redis.waiting()[1] > 0, "it listens")
        told = conn.call("LIMIT", "RELEASE", "q", token)
        assert (name == "PUBLISH") == ("denies" in str(told)), told
        wait_lacks(weir, "subscribe" if name == "SUBSCRIBE" else "right")


def test_the_line_of_the_log_is_enough(farm, secret):
    """Copied from the log into Redis, the line gives weir all rights that it needs."""
    redis = farm.redis(password="right")
    weir = farm.weir(redis, sections=ADMIN)
    weir.wait_for_log("ACL SETUSER weir")
    line = re.search(r"ACL SETUSER weir on >PASSWORD .*", weir.log())[0]
    assert redis.call(*line.replace("PASSWORD", "pw").split()) == "OK"
    other = farm.weir(redis, sections=ADMIN, upstream_user="weir", upstream_password_file=secret)
    assert is_ready(other)
    with other.connect() as conn, other.connect() as waiter:
        for one in (conn, waiter):
            assert one.call("AUTH", "right") == "OK"
        for command in LIMITS:
            assert type(decision(limit(conn, command)[:5])) is Decision, command
        token = conn.call("LIMIT", "ACQUIRE", "q", 1, 100_000)[1]
        waiter.send(b"LIMIT ACQUIRE q 1 1000 WAIT 20000\r\n")
        wait_until(lambda: redis.waiting()[1] > 0, "it listens")
        assert conn.call("LIMIT", "RELEASE", "q", token) == 1
        assert waiter.read()[0] == 0
        assert conn.call("LIMIT", "RESET", "q") == 1
    wait_lacks(other)
    assert "does not" not in other.log()
    if at_least(7):
        assert not [entry for entry in redis.call("ACL", "LOG") if b"weir" in entry]


def test_the_pages_have_the_line_of_the_log():
    """README, tutorial and the page of LIMIT commands give weir's user the same rights."""

    def rights(text):
        words = re.sub(r"[\\'>]", " ", text).split()
        return [word for word in words if word[0] in "+~&" or word in ("-@all", "resetchannels")]

    source = (REPO / "src/upstream/lane/lack.h").read_text()
    source = source[source.index("#define LACK_ACL_LINE") : source.index("#define LACK_ACL_CLUSTER")]
    line = "".join(re.findall(r'"([^"]*)"', source))
    wanted = rights(line)
    assert len(wanted) > 30
    for path, begin, end in (
        ("README.md", "--askpass ACL SETUSER weir", "```"),
        ("docs/tutorial.md", "6379 ACL SETUSER weir", "\nOK"),
        ("docs/limit-commands.md", "\nACL SETUSER weir", "```"),
    ):
        text = (REPO / path).read_text()
        text = text[text.index(begin) :]
        assert rights(text[: text.index(end)]) == wanted, path


# ---- what is not ready ----


def bulk(text):
    return f"${len(text)}\r\n{text}\r\n"


class Stub:
    """A server that answers each command by its name, on any number of connections."""

    ANSWERS = {
        b"HELLO": b"*4\r\n+server\r\n+redis\r\n+version\r\n+7.0.15\r\n",
        b"INFO": bulk("redis_version:7.0.15\r\n").encode(),
        b"COMMAND": b"*0\r\n",
        b"PING": b"+PONG\r\n",
        b"AUTH": b"+OK\r\n",
        b"SELECT": b"+OK\r\n",
    }

    def __init__(self, **answers):
        self.answers = {**self.ANSWERS, **{name.encode(): text.encode() for name, text in answers.items()}}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.socks = []
        self.is_closing = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def upstream(self):
        return "127.0.0.1:%d" % self.listener.getsockname()[1]

    def be_well(self):
        self.answers = dict(self.ANSWERS)

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.socks.append(sock)
            if self.is_closing:
                sock.close()
                continue
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        with sock, sock.makefile("rb") as lines:
            try:
                while head := lines.readline():
                    words = []
                    for _ in range(int(head[1:])):
                        n = int(lines.readline()[1:])
                        words.append(lines.read(n + 2)[:-2])
                    sock.sendall(self.answers.get(words[0].upper(), b"+OK\r\n"))
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.listener.close()
        self.drop()

    def drop(self):
        """Closes every connection."""
        for sock in list(self.socks):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


LOADING = "-LOADING Redis is loading the dataset in memory\r\n"
UNFIT = {
    "loading": ({"PING": LOADING}, "LOADING Redis is loading"),
    "loading from the first word": ({"HELLO": LOADING, "PING": LOADING}, "LOADING Redis is loading"),
    "masterdown": ({"PING": "-MASTERDOWN Link with MASTER is down\r\n"}, "MASTERDOWN Link with MASTER"),
    "denied": ({"HELLO": "-DENIED Redis is running in protected mode\r\n"}, "DENIED Redis is running"),
    "full": ({"HELLO": "-ERR max number of clients reached\r\n"}, "max number of clients reached"),
    "sentinel": ({"INFO": bulk("redis_mode:sentinel\r\n")}, "it is a sentinel"),
    "sentinel by HELLO": ({"HELLO": "*2\r\n+mode\r\n+sentinel\r\n"}, "it is a sentinel"),
    "cluster": ({"INFO": bulk("redis_mode:cluster\r\n")}, "node of a cluster"),
    "old": ({"INFO": bulk("redis_version:6.0.9\r\n")}, "older than Redis 6.2"),
    "older": ({"HELLO": "-ERR unknown command `HELLO`\r\n", "INFO": bulk("redis_version:5.0.9\r\n")}, "older than"),
}


BY_REDIS = ("loading", "loading from the first word", "masterdown")
GET = {name: f"clients are answered {'by Redis' if name in BY_REDIS else '-UPSTREAM unavailable'}" for name in UNFIT}


@pytest.mark.parametrize("name", UNFIT)
def test_a_server_that_cannot_be_served_is_named_and_asked_again(farm, name):
    """Such a server ends neither the start nor, once it can be served, anything else."""
    answers, named = UNFIT[name]
    with Stub(**answers) as stub, Manager() as manager:
        weir = farm.weir(stub.upstream, sections=ADMIN, env={**manager.env, **HURRY}, upstream_check="50ms")
        said = f"upstream {stub.upstream} cannot be served: "
        status, text = readyz(weir)
        assert status == 503 and text.startswith(said) and named in text, text
        assert manager.wait_for("READY=1")[1].startswith(f"STATUS={said}"), "weir listens"
        wait_until(lambda: named in stats(weir)["upstream"]["nodes"][0]["why"], "the page says so")
        assert titles(weir)[0] == "Redis cannot be served"
        assert re.search(f"listening, but not ready: {re.escape(said)}.*; {GET[name]}\n", weir.log()), weir.log()
        assert len(re.findall(f"^[^w]*error *{re.escape(said)}", weir.log(), re.M)) == 1, weir.log()
        stub.be_well()
        wait_until(lambda: is_ready(weir), "ready", 20)
        weir.wait_for_log(f"upstream {stub.upstream} can be served")
        assert stats(weir)["upstream"]["nodes"][0]["why"] == ""
        weir.stop()


def test_a_redis_that_is_full_is_named_although_it_closes_at_once(farm):
    """Redis' error may be lost, as weir's own bytes arrive after Redis has closed."""
    with Stub(HELLO="-ERR max number of clients reached\r\n") as stub:
        weir = farm.weir(stub.upstream, workers=1, sections=ADMIN, env=HURRY, upstream_check="50ms")
        assert "max number of clients" in readyz(weir)[1]
        stub.is_closing = True
        n = len(stub.socks)
        wait_until(lambda: len(stub.socks) > n + 3, "it is asked again", 20)
        assert "max number of clients" in readyz(weir)[1]
        stub.is_closing = False
        stub.be_well()
        wait_until(lambda: is_ready(weir), "ready", 20)
        weir.stop()


def test_a_cluster_in_the_place_of_a_server_with_a_password(farm):
    """What weir knew of the password is forgotten with the earlier server."""
    with Stub(**dict.fromkeys(("HELLO", "INFO", "COMMAND", "PING", "SLOWLOG"), "-NOAUTH no\r\n")) as stub:
        weir = farm.weir(stub.upstream, workers=1, sections=ADMIN, env=HURRY, upstream_check="50ms")
        with weir.connect() as conn:
            assert str(limit(conn)).startswith("NOAUTH")
            stub.be_well()
            stub.answers[b"HELLO"] = b"*2\r\n+mode\r\n+cluster\r\n"
            stub.drop()
            wait_until(lambda: "node of a cluster" in readyz(weir)[1], "named", 20)
        with weir.connect() as conn:
            wait_until(lambda: limit(conn) == UNAVAILABLE, "it is not served")
        weir.stop()


@pytest.mark.parametrize("answer", [LOADING, "-MASTERDOWN Link with MASTER is down\r\n"])
def test_a_server_that_serves_no_client_any_more_is_not_ready(farm, answer):
    with Stub() as stub:
        weir = farm.weir(stub.upstream, sections=ADMIN, upstream_check="50ms")
        assert is_ready(weir)
        stub.answers[b"PING"] = answer.encode()
        wait_until(lambda: answer[1:11] in readyz(weir)[1], "not ready, and why")
        stub.be_well()
        wait_until(lambda: is_ready(weir), "ready", 20)
        weir.stop()


@pytest.mark.parametrize("error", ["-NOAUTH Authentication required.", "-NOPERM no", "-BUSY a script", "-ERR unknown command 'X'"])
def test_an_answer_that_refuses_is_an_answer(farm, error):
    answers = dict.fromkeys(("HELLO", "INFO", "COMMAND", "PING"), error + "\r\n")
    with Stub(**answers) as stub:
        weir = farm.weir(stub.upstream, sections=ADMIN, upstream_check="50ms")
        assert is_ready(weir)
        weir.stop()


class Sentinel(Redis):
    """A redis-server in sentinel mode, which needs a file."""

    def _launch(self, where):
        conf = self.folder / "sentinel.conf"
        conf.write_text(f"port {where[1]}\nbind 127.0.0.1\ndir {self.folder}\n")
        self.launch([REDIS_SERVER, str(conf), "--sentinel"])
        wait_until(lambda: self._answers() or not self.is_running(), "the sentinel answers", 20)
        return self.is_running()


def test_a_sentinel_is_named(farm):
    sentinel = Sentinel()
    farm.servers.append(sentinel)
    sentinel.start()
    weir = farm.weir(sentinel, sections=ADMIN)
    assert "it is a sentinel" in readyz(weir)[1]
    with weir.connect() as conn:
        assert conn.call("GET", "k") == UNAVAILABLE


def test_a_replica_without_its_master_is_not_ready(farm):
    redis = farm.redis("--replicaof", "127.0.0.1", str(free_port()), "--replica-serve-stale-data", "no")
    weir = farm.weir(redis, sections=ADMIN, upstream_check="50ms")
    assert "MASTERDOWN" in readyz(weir)[1]
    redis.call("REPLICAOF", "NO", "ONE")
    wait_until(lambda: is_ready(weir), "ready", 20)
