"""make run: weir in front of a private redis-server, which goes with it."""

import os
import signal
import subprocess
import time

import pytest
from kit.harness import REPO, WEIR, free_port, wait_until
from kit.resp import Conn, dial

SECONDS = 30


@pytest.fixture
def port():
    return free_port()


def hear_signals():
    """What is ignored when a shell starts (nohup's SIGHUP) it cannot trap."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def script(port, tmp_path):
    """What make run runs, with all that it writes in tmp_path/tmp."""
    (tmp_path / "tmp").mkdir()
    env = {**os.environ, "PORT": str(port), "ADMIN_PORT": str(free_port()), "TMPDIR": str(tmp_path / "tmp")}
    argv = ["bash", REPO / "tests/tools/run.sh"]
    with open(tmp_path / "said", "wb") as said:
        child = subprocess.Popen(
            argv,
            env={**env, "WEIR": str(WEIR)},
            stdout=said,
            stderr=said,
            start_new_session=True,
            preexec_fn=hear_signals,
        )
    wait_until(lambda: "Ctrl-C" in (tmp_path / "said").read_text() or child.poll() is not None, "it serves", SECONDS)
    assert child.poll() is None, (tmp_path / "said").read_text()
    yield child
    child.kill()
    child.wait()


def lives(pid):
    return os.path.exists(f"/proc/{pid}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_that_comes_again_and_again_leaves_nothing_behind(number, script, port, tmp_path):
    """A job that is ended has it from whoever ends the job, and from make."""
    (folder,) = (tmp_path / "tmp").iterdir()
    with Conn(("127.0.0.1", port)) as client, Conn(str(folder / "redis.sock")) as redis:
        assert client.call("SET", "k", "v") == "OK"
        assert redis.call("GET", "k") == b"v"
        said = redis.call("INFO", "server").decode()
    server = int(said.split("process_id:")[1].split()[0])
    until = time.monotonic() + SECONDS
    while script.poll() is None and time.monotonic() < until:
        os.killpg(script.pid, number)
        time.sleep(0.001)
    assert script.wait(0) == 0, "it goes on"
    assert not lives(server)
    assert not list((tmp_path / "tmp").iterdir())
    with pytest.raises(ConnectionRefusedError):
        dial(("127.0.0.1", port))
