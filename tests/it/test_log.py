"""The log: its formats, its file. Neither a full disk nor a reader that does not read stops any
client.
"""

import fcntl
import json
import os
import re
import signal
import time

import pytest
from kit.harness import run_weir, wait_until
from kit.resp import Closed, Conn, pipeline
from test_admin_http import ADMIN, metrics, value

TEXT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (debug|info |warn |error) (\S.*)")
LOGFMT = re.compile(
    r'ts=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=(debug|info|warn|error)(?: site=[a-z_]+)? msg=(".*?")(?: suppressed=\d+)?'
)
OPERATOR = "[admin]\nsocket = {folder}/admin.sock\n"
HOSTILE = b'u"\\\x01\x1b[2J\xff\xc3\xa9</script>'  # Redis allows no blanks
F_SETPIPE_SZ = 1031


def message_of_text(line):
    return TEXT.fullmatch(line)[2]


def message_of_logfmt(line):
    return json.loads(LOGFMT.fullmatch(line)[2])


def message_of_json(line):
    parsed = json.loads(line)
    assert {"ts", "level", "msg"} <= set(parsed) <= {"ts", "level", "msg", "site", "suppressed"}
    assert parsed["level"] in ("debug", "info", "warn", "error")
    return parsed["msg"]


FORMATS = {"text": message_of_text, "logfmt": message_of_logfmt, "json": message_of_json}


def answers(address):
    try:
        with Conn(address) as conn:
            return conn.call("PING") == "PONG"
    except (OSError, Closed):
        return False


def admin_of(weir):
    return Conn(str(weir.folder / "admin.sock"))


# ---- the form of a line ----


@pytest.mark.parametrize("form", FORMATS)
def test_every_line_can_be_read_by_a_machine(form, farm):
    redis = farm.redis()
    redis.call("ACL", "SETUSER", HOSTILE, "on", "nopass", "~*", "&*", "+@all")
    redis.call("SET", "big", b"x" * 100_000)
    weir = farm.weir(redis, workers=1, output_limit="1mb", log_format=form, sections="[policy default]\ncmd.set = 1/h\n")
    with weir.connect() as deaf, weir.connect() as conn:
        name = deaf.name
        assert deaf.call("AUTH", HOSTILE, "x") == "OK"
        deaf.send(pipeline(*["GET big"] * 500))
        wait_until(lambda: name in weir.log(), "the log names it")
        conn.ask("SET k v", "SET k v")
    wait_until(lambda: "begins to refuse" in weir.log(), "the limit is told of")
    redis.kill()
    wait_until(lambda: " is away" in weir.log(), "its end is told of")
    weir.stop()
    raw = weir.log_path.read_bytes().decode()  # fails unless the log is UTF-8
    messages = [FORMATS[form](line) for line in raw.splitlines()]
    assert any(m.startswith("stopping: SIGTERM") for m in messages)
    shown = next(m for m in messages if name in m)
    if form == "text":
        assert 'user:u"\\??[2J?é</script>' in shown
    else:
        assert 'user:u"\\\x01\x1b[2J\ufffdé</script>' in shown


def test_the_same_again_and_again_is_told_now_and_then(farm, redis):
    weir = farm.weir(redis, workers=2, sections=ADMIN)
    conns = [weir.connect() for _ in range(25)]
    for conn in conns:
        assert conn.call("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
    assert redis.call("CLIENT", "KILL", "TYPE", "pubsub") == 25
    for conn in conns:
        assert conn.read_to_end() == b""
        conn.close()

    def told():
        return weir.log().count("a private connection is closed")

    def counted():
        return value(metrics(weir), "weir_log_messages_suppressed_total", site="upstream_closed")

    wait_until(lambda: told() + counted() == 25, "each is told or counted")
    assert 10 <= told() < 25, "ten at once, then one every five seconds"
    assert value(metrics(weir), "weir_log_lines_lost_total") == 0


def test_level_and_format_change_with_a_reload(farm, redis):
    weir = farm.weir(redis, workers=1, sections=OPERATOR)
    text = weir.config.read_text()

    def reload(lines, sign):
        weir.config.write_text(text.replace("[weir]\n", "[weir]\n" + lines))
        weir.signal(signal.SIGHUP)
        wait_until(lambda: sign in weir.log(), sign)

    reload("log-format = json\n", '"msg":"configuration reloaded')
    before = weir.log().count("configuration reloaded")
    weir.config.write_text(text.replace("[weir]\n", "[weir]\nlog-level = warn\n"))
    with admin_of(weir) as admin:
        assert admin.call("LIMIT", "RELOAD") == "OK"
        assert admin.call("LIMIT", "SET", "default", "read", "nonsense") != "OK"
        events = admin.call("LIMIT", "LOG", 5)
    assert "configuration reloaded" in str(events), "it happened"
    weir.stop()
    assert weir.log().count("configuration reloaded") == before, "and is not worth a line any more"


# ---- the file ----


def test_a_file_that_cannot_be_opened(tmp_path):
    path = tmp_path / "weir.conf"
    path.write_text("[weir]\nlisten = 127.0.0.1:0\nlog = /nowhere/weir.log\n")
    done = run_weir("-c", path)
    assert done.returncode == 2
    assert "cannot open the log file /nowhere/weir.log: No such file or directory" in done.stderr


def test_a_file_alone(farm, redis):
    weir = farm.weir(redis, wait=False, log="{folder}/weir.log", listen="unix:{folder}/weir.sock")
    path = weir.folder / "weir.log"
    wait_until(lambda: path.exists() and " ready\n" in path.read_text(), "weir is ready", 20)
    with Conn(str(weir.folder / "weir.sock")) as conn:
        assert conn.call("PING") == "PONG"
    weir.stop()
    assert "stopping: SIGTERM" in path.read_text()
    assert weir.log() == ""
    assert path.stat().st_mode & 0o137 == 0, "others have no business with it"


def test_rotation_loses_nothing(farm, redis):
    weir = farm.weir(redis, log="{folder}/weir.log, stderr", sections=OPERATOR + "[policy default]\nread = 1m/s\n")
    path = weir.folder / "weir.log"
    moved = []
    n = 0
    with admin_of(weir) as admin, weir.connect() as conn:
        for turn in range(8):
            for _ in range(20):
                n += 1
                admin.send(pipeline(("LIMIT", "SET", "default", "read", f"{n}k/s")))
            moved.append(path.with_name(f"weir.log.{turn}"))
            path.rename(moved[-1])
            weir.signal(signal.SIGUSR1)
            assert conn.call("PING") == "PONG"
            assert [admin.read() for _ in range(20)] == ["OK"] * 20
            wait_until(path.exists, "it is opened again")
    weir.stop()
    text = "".join(file.read_text() for file in [*moved, path])
    assert re.findall(r"read = (\d+)k/s \(before", text) == [str(i + 1) for i in range(n)]
    assert text == weir.log(), "stderr has the same"
    assert text.count("log file reopened") == 8


def test_sigusr1_without_a_file(farm, redis):
    weir = farm.weir(redis)
    weir.signal(signal.SIGUSR1)
    assert weir.serves()


def test_a_file_that_cannot_be_opened_again(farm, redis):
    weir = farm.weir(redis, log="{folder}/logs/weir.log, stderr", wait=False)
    weir.kill()  # the log's folder did not exist
    folder = weir.folder / "logs"
    folder.mkdir()
    weir.start()
    weir.wait_ready()
    (folder / "weir.log").unlink()
    folder.rmdir()
    weir.signal(signal.SIGUSR1)
    wait_until(lambda: "cannot reopen the log file" in weir.log().split("ready")[-1], "it is told")
    assert weir.serves()


def test_a_full_disk(farm, redis):
    weir = farm.weir(redis, log="/dev/full, stderr", sections=ADMIN)
    assert weir.serves()
    wait_until(lambda: "cannot write the log to /dev/full: No space left" in weir.log(), "stderr tells")
    wait_until(lambda: value(metrics(weir), "weir_log_lines_lost_total") > 2, "they are counted")
    weir.stop()
    assert weir.log().count("cannot write the log") == 1


# ---- a reader that does not read ----

MISTAKES = 100  # in one file: as many as weir reports at once
RELOADS = 40  # of that file: more lines than the log keeps


def mistakes_told(text):
    return len(re.findall(r" error \S+weir\.conf:\d+: \[weir\] no-such-key-\d+: unknown key", text))


def test_a_pipe_that_nobody_reads(farm, redis):
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
    weir = farm.weir(redis, wait=False, stderr=writer, listen="unix:{folder}/weir.sock", sections=OPERATOR)
    os.close(writer)
    address = str(weir.folder / "weir.sock")

    wait_until(lambda: answers(address), "weir serves", 20)
    mistakes = "".join(f"no-such-key-{i} = x\n" for i in range(MISTAKES))
    weir.config.write_text(f"{weir.config.read_text()}[weir]\n{mistakes}")
    with admin_of(weir) as admin, Conn(address) as conn:
        for _ in range(RELOADS):
            assert str(admin.call("LIMIT", "RELOAD")).startswith("ERR configuration not reloaded")
        for i in range(200):
            assert conn.ask(f"SET k {i}", "GET k") == ["OK", b"%d" % i], "traffic goes on"

        os.set_blocking(reader, False)
        text = ""

        def told():
            nonlocal text
            try:
                text += os.read(reader, 65536).decode()
            except BlockingIOError:
                pass
            return re.findall(r" warn  (\d+) log lines are lost here\n", text)

        lost = int(wait_until(told, "it is told how many", 20)[0])
        n_told = mistakes_told(text) + text.count("configuration not reloaded")
        assert n_told + lost == RELOADS * (MISTAKES + 1)
        assert admin.call("LIMIT", "SET", "default", "read", "5/s") != "OK"
        assert conn.call("GET", "k") == b"199"
    os.set_blocking(reader, True)
    weir.signal(signal.SIGTERM)
    with os.fdopen(reader) as rest:
        text += rest.read()
    assert weir.wait() == 0
    assert "stopping: SIGTERM" in text and text.count("lost here") == 1


@pytest.fixture
def full_pipe():
    """A pipe that is full."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    yield writer
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("log", ["stderr", "/dev/full", "/dev/full, stderr", "{folder}/weir.log, stderr"])
def test_its_end_waits_for_no_reader(log, again, full_pipe, farm, redis):
    """Stderr is a full pipe. weir ends also if a log file cannot be written."""
    weir = farm.weir(redis, wait=False, stderr=full_pipe, listen="unix:{folder}/weir.sock", log=log)
    wait_until(lambda: answers(str(weir.folder / "weir.sock")), "weir serves", 20)
    weir.signal(signal.SIGTERM)
    if again:
        weir.signal(signal.SIGTERM)
    began = time.monotonic()
    assert weir.wait() == 0
    assert time.monotonic() - began < 5, "a second for the log, and what a sanitizer takes"


def test_a_file_that_fails_is_told_in_the_format_of_the_log(farm, redis):
    weir = farm.weir(redis, log="/dev/full, stderr", log_format="json")
    wait_until(lambda: "cannot write the log to /dev/full: No space left" in weir.log(), "stderr tells")
    weir.stop()
    assert all(message_of_json(line) for line in weir.log().splitlines())


def threads(weir):
    return len(os.listdir(f"/proc/{weir.child.pid}/task"))


@pytest.mark.parametrize("late", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2])
def test_a_signal_in_the_last_moments_changes_nothing(late, full_pipe, farm, redis):
    """The last lines cannot be written, which takes a moment: all workers have ended by then."""
    weir = farm.weir(redis, wait=False, stderr=full_pipe, listen="unix:{folder}/weir.sock", workers=3)
    wait_until(lambda: answers(str(weir.folder / "weir.sock")), "weir serves", 20)
    weir.signal(signal.SIGTERM)
    wait_until(lambda: not weir.is_running() or threads(weir) <= 2, "only the log's thread is left beside the main one")
    weir.signal(late)
    assert weir.wait() == 0
