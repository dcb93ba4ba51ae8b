"""The operators' socket in every state of Redis: up, down, hanging, silent from the start."""

import fcntl
import json
import os
import pty
import select
import shutil
import signal
import socket
import struct
import subprocess
import termios
import time
from contextlib import contextmanager

import pytest
import redis as client_library
from kit.admin import stats
from kit.harness import free_port, wait_until
from kit.resp import Conn, Error, encode

SECTIONS = """
[policy default]
read = 5/s
[admin]
listen = 127.0.0.1:0
socket = {folder}/operator.sock
"""
STATES = ["up", "dead", "hung", "mute"]


def path_of(weir):
    return str(weir.folder / "operator.sock")


@contextmanager
def in_state(farm, state, **more):
    """Starts a weir with a Redis in this state. Returns the weir and the expected replies."""
    more = {"sections": SECTIONS, "upstream_check": "50ms", "connect_timeout": "200ms", **more}
    if state == "mute":
        with socket.create_server(("127.0.0.1", 0)) as mute:
            weir = farm.weir("127.0.0.1:%d" % mute.getsockname()[1], **more)
            yield weir
            weir.stop()
        return
    redis = farm.redis()
    weir = farm.weir(redis, **more)
    if state == "dead":
        redis.kill()
        wait_until(lambda: stats(weir)["upstream"]["state"] == "away", "Redis is away", 20)
    if state == "hung":
        redis.signal(signal.SIGSTOP)
        wait_until(lambda: stats(weir)["upstream"]["state"] == "silent", "Redis is silent", 20)
    try:
        yield weir
    finally:
        if state == "hung":
            redis.signal(signal.SIGCONT)


@pytest.fixture(params=STATES)
def console(request, farm):
    with in_state(farm, request.param) as weir:
        yield weir


def cli(weir, *words):
    argv = ["redis-cli", "-s", path_of(weir), *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


def test_redis_cli_asks_and_is_answered(console):
    assert "default/read" in cli(console, "LIMIT", "LIST")
    assert cli(console, "LIMIT", "MODE") == "enforce\n"
    assert cli(console, "-3", "LIMIT", "MODE") == '"enforce"\n' or cli(console, "-3", "LIMIT", "MODE") == "enforce\n"
    assert isinstance(json.loads(cli(console, "--json", "LIMIT", "TOP")), list)
    rows = json.loads(cli(console, "--json", "LIMIT", "LIST"))
    assert rows[0]["limit"] == "default/read"
    assert cli(console, "PING") == "PONG\n"
    assert cli(console, "-n", "0", "PING") == "PONG\n"


def read_until(fd, seen, text):
    deadline = time.monotonic() + 20
    while text not in seen:
        assert time.monotonic() < deadline, seen
        if select.select([fd], [], [], 0.1)[0]:
            seen += os.read(fd, 65536)
    return seen


def type_in(weir, lines):
    """Returns what an interactive redis-cli shows for each line, typed at its prompt."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    env = {**os.environ, "TERM": "xterm", "HOME": str(weir.folder)}
    child = subprocess.Popen(["redis-cli", "-s", path_of(weir)], stdin=its, stdout=its, stderr=its, env=env)
    os.close(its)
    shown = []
    try:
        read_until(ours, b"", b"> ")
        for line in lines:
            os.write(ours, line.encode() + b"\r")
            answer, _, rest = read_until(ours, b"", b'"\r\n').partition(b'"\r\n')
            shown.append(answer)
            read_until(ours, rest, b"> ")
        return [text.decode() for text in shown]
    finally:
        child.kill()
        child.wait()
        os.close(ours)


@pytest.mark.skipif(not shutil.which("redis-cli"), reason="no redis-cli")
def test_redis_cli_by_hand(console):
    mode, there = type_in(console, ["LIMIT MODE", "PING there"])
    assert mode.endswith('"enforce') and there.endswith('"there')


def test_what_a_connection_begins_with(console):
    with Conn(path_of(console), timeout=10) as conn:
        assert conn.call("HELLO", 3)[b"proto"] == 3
        greeted = conn.call("HELLO", 3, "SETNAME", "night")
        assert greeted[b"server"] == b"weir" and greeted[b"role"] == b"master"
        assert conn.call("CLIENT", "GETNAME") == b"night"
        assert conn.call("CLIENT", "SETNAME", "day") == "OK"
        assert conn.call("CLIENT", "SETNAME", "two words").startswith("ERR Client names cannot")
        assert conn.call("CLIENT", "GETNAME") == b"day"
        assert conn.call("CLIENT", "SETINFO", "LIB-NAME", "x") == "OK"
        assert conn.call("CLIENT", "ID") == greeted[b"id"]
        assert conn.call("ECHO", "x") == b"x" and conn.call("PING") == "PONG" and conn.call("PING", "a") == b"a"
        assert conn.call("SELECT", 0) == "OK"
        assert conn.call("LIMIT", "LIST")[0][b"limit"] == b"default/read"
        assert conn.call("HELLO", 2)[:2] == [b"server", b"weir"]
        assert conn.call("LIMIT", "MODE") == b"enforce"
        assert conn.call("HELLO", 4).startswith("NOPROTO")
        assert conn.call("RESET") == "RESET" and conn.call("CLIENT", "GETNAME") is None
        assert conn.call("QUIT") == "OK"


@pytest.mark.parametrize("protocol", [2, 3])
def test_the_catalog_names_weirs_commands(protocol, console):
    with Conn(path_of(console), timeout=10) as conn:
        conn.call("HELLO", protocol)
        count = conn.call("COMMAND", "COUNT")
        whole = conn.call("COMMAND")
        assert len(whole) == count > 0 and b"limit" in [entry[0] for entry in whole]
        assert b"limit|top" in conn.call("COMMAND", "LIST")
        docs = conn.call("COMMAND", "DOCS")
        names = list(docs) if protocol == 3 else docs[::2]
        assert b"limit" in names and b"get" not in names
        assert len(conn.call("COMMAND", "DOCS", "limit")) == (1 if protocol == 3 else 2)
        info = conn.call("COMMAND", "INFO", "limit", "get")
        assert info[0][0] == b"limit" and info[1] is None


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_library_connects(protocol, console):
    conn = client_library.Redis(
        unix_socket_path=path_of(console), client_name="night", socket_timeout=10, protocol=protocol
    ) if "protocol" in client_library.Connection.__init__.__code__.co_varnames else client_library.Redis(
        unix_socket_path=path_of(console), client_name="night", socket_timeout=10
    )
    assert conn.ping() and conn.execute_command("LIMIT", "MODE") in (b"enforce", "enforce")
    conn.close()


@pytest.mark.parametrize("state", ["dead", "hung"])
@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_what_needs_redis_is_refused_at_once(lanes, state, farm):
    wanted = "UPSTREAM unavailable" if state == "dead" else "UPSTREAM does not answer"
    with in_state(farm, state, lanes=lanes) as weir, Conn(path_of(weir), timeout=10) as conn:
        for words in (("GET", "k"), ("SUBSCRIBE", "c"), ("SELECT", 1), ("BLPOP", "l", 0), ("CLIENT", "LIST")):
            assert conn.call(*words) == Error(wanted), words
        if state == "hung":
            assert conn.call("LIMIT", "FUNNEL", "k", "1/s") == Error(wanted)
            assert conn.call("HELLO", 3, "AUTH", "default", "x") == Error(wanted)
        assert conn.call("LIMIT", "MODE") == b"enforce"
        assert conn.ask("MULTI", "GET k")[0] == Error(wanted)
        assert conn.call("EXEC").startswith("EXECABORT"), "what follows a refused MULTI must not run by itself"
        assert conn.call("LIMIT", "MODE") == b"enforce"


def test_while_redis_is_there_its_commands_go_there(farm):
    redis = farm.redis()
    weir = farm.weir(redis, sections=SECTIONS)
    with Conn(path_of(weir)) as conn:
        assert conn.ask("SET k v", "GET k", "MULTI", "PING", "EXEC") == ["OK", b"v", "OK", "QUEUED", ["PONG"]]
        conn.call("CLIENT", "SETNAME", "night")
        conn.call("CLIENT", "SETINFO", "LIB-NAME", "mine")
        conn.call("HELLO", 3)
        assert conn.call("HGETALL", "nothing") == {}, "its lane has changed along"
        assert b" name=night " in conn.call("CLIENT", "INFO")
        assert conn.call("SUBSCRIBE", "c")
        assert conn.call("PING") == "PONG"
        assert redis.call("PUBLISH", "c", "m") == 1
        assert conn.read()[2] == b"m"
        assert conn.call("LIMIT", "MODE") == b"enforce"


def test_a_pipeline_keeps_its_order(farm):
    weir = farm.weir(farm.redis(), sections=SECTIONS)
    with Conn(path_of(weir)) as conn:
        words = ["SET a 1", "PING x", "INCR a", "ECHO y", "LIMIT MODE", "HELLO 3", "INCR a", "CLIENT GETNAME", "GET a"]
        found = conn.ask(*words)
        assert found[:5] == ["OK", b"x", 2, b"y", b"enforce"] and found[6:] == [3, None, b"3"]


def test_no_password_is_asked_of_operators(farm, tmp_path):
    redis = farm.redis(password="geheim")
    weir = farm.weir(redis, sections=SECTIONS)
    with Conn(path_of(weir)) as conn:
        assert conn.call("LIMIT", "MODE") == b"enforce" and conn.call("PING") == "PONG"
        assert conn.call("GET", "k").startswith("NOAUTH")
        order = "LIMIT SET default all 3/h burst 3 FOR user:free-1 EX 4s"
        assert conn.call(*order.split()) == "OK", "more words than Redis takes before a login"
        assert conn.call("MGET", *["k"] * 20).startswith("NOAUTH") and conn.call("SET", "k", "v" * 100_000).startswith("NOAUTH")
        assert conn.call("AUTH", "geheim") == "OK" and conn.call("GET", "k") is None
    with weir.connect() as conn:
        assert conn.call("PING").startswith("NOAUTH") and conn.call("LIMIT", "STATUS").startswith("NOAUTH")


def test_clients_see_no_difference(farm):
    redis = farm.redis()
    weir = farm.weir(redis, sections=SECTIONS)
    with weir.connect() as conn, redis.connect() as direct:
        assert conn.call("HELLO", 2)[1] == direct.call("HELLO", 2)[1] == b"redis"
        assert conn.call("COMMAND", "COUNT") > direct.call("COMMAND", "COUNT")
