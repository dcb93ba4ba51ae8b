"""make run: weir in front of a private redis-server, which ends with weir."""

import os
import pty
import re
import signal
import subprocess
import time

import pytest
from kit.harness import REPO, WEIR, free_port, wait_until
from kit.resp import Conn, dial

SECONDS = 30
ALL = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM]


@pytest.fixture
def port():
    return free_port()


def hear_signals():
    """A shell cannot trap a signal that is ignored at its start (nohup's SIGHUP), so all signals
    get their default.
    """
    for number in ALL:
        signal.signal(number, signal.SIG_DFL)


def ignore_int():
    """Ignores SIGINT, as a shell without job control does for background jobs."""
    hear_signals()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def environment(port, tmp_path, **more):
    (tmp_path / "tmp").mkdir()
    env = {**os.environ, "PORT": str(port), "ADMIN_PORT": str(free_port()), "TMPDIR": str(tmp_path / "tmp")}
    return {**env, "WEIR": str(WEIR), **more}


def start(argv, env, tmp_path, prepare=hear_signals):
    with open(tmp_path / "said", "wb") as said:
        return subprocess.Popen(argv, env=env, stdout=said, stderr=said, start_new_session=True, preexec_fn=prepare)


def wait_serving(child, tmp_path):
    wait_until(lambda: "Ctrl-C" in (tmp_path / "said").read_text() or child.poll() is not None, "it serves", SECONDS)
    assert child.poll() is None, (tmp_path / "said").read_text()


@pytest.fixture
def begin(port, tmp_path):
    """Returns a function that starts what make run runs, with all its files in tmp_path/tmp."""
    children = []

    def begin(prepare=hear_signals, **env):
        argv = ["bash", REPO / "tests/tools/run.sh"]
        children.append(start(argv, environment(port, tmp_path, **env), tmp_path, prepare))
        return children[-1]

    yield begin
    for child in children:
        child.kill()
        child.wait()


@pytest.fixture
def script(begin, tmp_path):
    child = begin()
    wait_serving(child, tmp_path)
    return child


@pytest.fixture
def make(port, tmp_path):
    """make, with the recipe of make run alone: the programs are built already."""
    (tmp_path / "Makefile").write_text(f"run:\n\t@{REPO}/tests/tools/run.sh\n")
    child = start(["make", "-f", tmp_path / "Makefile", "run"], environment(port, tmp_path), tmp_path)
    wait_serving(child, tmp_path)
    yield child
    child.kill()
    child.wait()


def lives(pid):
    return os.path.exists(f"/proc/{pid}")


def signal_without_pause(child, number):
    """Sends a signal to the whole group again and again: some arrive while a process is only
    starting to handle them.
    """
    for _ in range(300):
        if child.poll() is not None:
            return
        os.killpg(child.pid, number)
        time.sleep(0)  # the processes run a little between signals
    child.wait(SECONDS)


# Without SIGINT: bash itself can loop for ever when hundreds of SIGINT arrive within milliseconds.
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_that_comes_again_and_again_leaves_nothing_behind(number, script, port, tmp_path):
    """An ended job gets the signal from the sender and from make."""
    (folder,) = (tmp_path / "tmp").iterdir()
    with Conn(("127.0.0.1", port)) as client, Conn(str(folder / "redis.sock")) as redis:
        assert client.call("SET", "k", "v") == "OK"
        assert redis.call("GET", "k") == b"v"
        said = redis.call("INFO", "server").decode()
    server = int(said.split("process_id:")[1].split()[0])
    signal_without_pause(script, number)
    assert script.wait(0) == 0
    wait_until(lambda: not lives(server), "Redis has ended")
    assert not list((tmp_path / "tmp").iterdir())
    with pytest.raises(ConnectionRefusedError):
        dial(("127.0.0.1", port))


def left_behind(tmp_path):
    """Returns processes with the folder in their command line, and files."""
    found = list((tmp_path / "tmp").iterdir())
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read()
        except OSError:
            continue  # the process has ended
        if str(tmp_path / "tmp").encode() in line:
            found.append((pid, line))
    return found


@pytest.mark.parametrize("times", [1, 2])
def test_sigterm_to_make_alone(times, make, tmp_path):
    """From a supervisor, which knows no other process."""
    assert len(left_behind(tmp_path)) > 2
    for _ in range(times):
        make.send_signal(signal.SIGTERM)
    make.wait(SECONDS)
    wait_until(lambda: not left_behind(tmp_path), "nothing is left behind", SECONDS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_to_make_and_all_that_it_runs(number, make, tmp_path):
    """From a terminal: make waits for its recipe."""
    os.killpg(make.pid, number)
    make.wait(SECONDS)
    assert not left_behind(tmp_path)


@pytest.mark.parametrize("number", ALL, ids=lambda number: number.name)
def test_in_the_background_of_a_script(number, begin, tmp_path):
    child = begin(ignore_int)
    wait_serving(child, tmp_path)
    child.send_signal(number)
    assert child.wait(SECONDS) == 0
    assert not left_behind(tmp_path)


@pytest.mark.parametrize("send", [subprocess.Popen.send_signal, signal_without_pause], ids=["once", "without pause"])
@pytest.mark.parametrize("file", ["", "redis.log", "redis.sock", "weir.conf", "admin.sock"])
def test_while_it_starts(file, send, begin, tmp_path):
    """The job is ended as soon as this file exists ("": its folder)."""
    child = begin()
    wait_until(lambda: list((tmp_path / "tmp").glob(f"weir-run.*/{file}")) or child.poll() is not None, "it starts", SECONDS)
    send(child, signal.SIGTERM)
    child.wait(SECONDS)
    assert not left_behind(tmp_path)


HARD_OF_HEARING = """#!/bin/bash
told=0
trap '' INT
trap '[ $((told += 1)) -lt 3 ] || exit' TERM
touch "$2.read"
for _ in {1..3000}; do sleep 0.01; done
"""


def test_a_signal_that_is_not_heard_is_sent_again(begin, tmp_path, monkeypatch):
    """A process that has just started may lose the signal."""
    weir = tmp_path / "weir"
    weir.write_text(HARD_OF_HEARING)
    weir.chmod(0o700)
    monkeypatch.setitem(globals(), "WEIR", weir)
    child = begin()
    wait_until(lambda: list((tmp_path / "tmp").glob("*/weir.conf.read")) or child.poll() is not None, "it starts", SECONDS)
    child.send_signal(signal.SIGTERM)
    child.wait(SECONDS)
    assert not left_behind(tmp_path)


def test_its_terminal_is_closed(port, tmp_path):
    env = environment(port, tmp_path)
    pid, terminal = pty.fork()
    if pid == 0:
        hear_signals()
        os.execvpe("bash", ["bash", str(REPO / "tests/tools/run.sh")], env)
    said = b""
    while b"Ctrl-C" not in said:
        said += os.read(terminal, 65536)
    os.close(terminal)
    wait_until(lambda: os.waitpid(pid, os.WNOHANG)[0] == pid, "it ends", SECONDS)
    assert not left_behind(tmp_path)


def test_a_failover_as_it_is_printed(begin, port, tmp_path):
    """SENTINEL=1, and the lines to type: a client goes on while its master fails, and Ctrl-C ends
    all.
    """
    child = begin(SENTINEL="1")
    wait_serving(child, tmp_path)
    said = (tmp_path / "said").read_text()
    kill = re.search(r"kill -9 \$\(cat \S+\)", said)[0]
    ask = re.search(r"redis-cli .* get-master-addr-by-name mymaster", said)[0].split()
    with Conn(("127.0.0.1", port), SECONDS) as client:
        assert client.call("SET", "k", "v") == "OK"
        master = subprocess.check_output(ask)
        with Conn(("127.0.0.1", port), SECONDS) as another:
            assert another.call("WAIT", 2, 1000 * SECONDS) == 2
        subprocess.run(["bash", "-c", kill], check=True)
        wait_until(lambda: "shared connection is closed" in (tmp_path / "said").read_text(), "weir knows", SECONDS)
        assert client.call("SET", "k", "w") == "OK"
        assert client.call("GET", "k") == b"w"
    wait_until(lambda: subprocess.check_output(ask) != master, "the sentinels name another", SECONDS)
    os.killpg(child.pid, signal.SIGINT)
    assert child.wait(SECONDS) == 0
    assert not left_behind(tmp_path)


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"SENTINEL": "1", "UPSTREAM": "127.0.0.1:1"}, "SENTINEL=1 starts servers of its own"),
        ({"CLUSTER": "3", "UPSTREAM": "127.0.0.1:1"}, "CLUSTER=3 starts servers of its own"),
        ({"CLUSTER": "3", "SENTINEL": "1"}, "choose one"),
        ({"CLUSTER": "2"}, "from 3 to 100"),
        ({"CLUSTER": "yes"}, "from 3 to 100"),
    ],
)
def test_wishes_that_contradict_each_other(settings, said, begin, tmp_path):
    child = begin(**settings)
    assert child.wait(SECONDS) == 1
    assert said in (tmp_path / "said").read_text()


@pytest.mark.cluster
def test_a_cluster_as_it_is_printed(begin, port, tmp_path):
    """CLUSTER=3, and the lines to type: a client goes on while slots move, and Ctrl-C ends all."""
    child = begin(CLUSTER="3")
    wait_serving(child, tmp_path)
    said = (tmp_path / "said").read_text()
    reshard = re.search(r"redis-cli --cluster reshard .*\n.*MYID\)", said)[0]
    with Conn(("127.0.0.1", port), SECONDS) as client:
        assert client.call("MSET", "{a}", 1, "{a}1", 2) == "OK"
        assert client.call("MGET", "b", "{a}", "c", "{a}1") == [None, b"1", None, b"2"]
        with subprocess.Popen(["bash", "-c", reshard], stdout=subprocess.DEVNULL) as moving:
            n = 0
            while moving.poll() is None:
                assert client.ask(*(["INCR", f"n{i}"] for i in range(100))) == [n + 1] * 100
                n += 1
        assert moving.returncode == 0
    os.killpg(child.pid, signal.SIGINT)
    assert child.wait(SECONDS) == 0
    assert not left_behind(tmp_path)
