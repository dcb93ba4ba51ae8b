"""weir as a service: what it reports to systemd, and the watchdog."""

import ctypes
import os
import signal
import time
from pathlib import Path

import pytest
from kit.harness import Redis, free_port, wait_until
from kit.manager import Manager
from kit.resp import encode

WATCHDOG_US = 800_000  # weir beats four times in this


@pytest.fixture(params=[False, True], ids=["path", "abstract"])
def manager(request):
    with Manager(abstract=request.param) as manager:
        yield manager


def test_ready_reload_stop(manager, farm, redis):
    weir = farm.weir(redis, env=manager.env, drain_timeout="1h")
    assert manager.hear() == ["STATUS=starting"]
    assert manager.hear() == ["READY=1", f"STATUS=forwarding to {redis.upstream}"]
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    weir.signal(signal.SIGHUP)
    name, usec = manager.wait_for("RELOADING=1")[1].split("=")
    assert name == "MONOTONIC_USEC"
    assert before <= int(usec) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    assert manager.hear() == ["READY=1"]
    with weir.connect() as a:
        a.send(encode("BLPOP", "list", 0))
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        weir.signal(signal.SIGTERM)
        assert manager.hear() == ["STOPPING=1", "STATUS=stopping"]
        assert weir.is_running()
        redis.call("RPUSH", "list", "x")
        assert a.read() == [b"list", b"x"]
    assert weir.wait() == 0


def test_its_status_says_what_is_missing(manager, farm):
    """READY=1 comes once, when weir listens, whether the upstream answers or not."""
    redis = Redis()
    redis.port = free_port()
    weir = farm.weir(redis, env=manager.env)
    assert manager.wait_for("READY=1") == ["READY=1", f"STATUS=upstream {redis.upstream} is away"]
    farm.servers.append(redis)
    redis.start()
    assert manager.wait_for(f"STATUS=forwarding to {redis.upstream}") == [f"STATUS=forwarding to {redis.upstream}"]
    redis.kill()
    assert manager.wait_for(f"STATUS=upstream {redis.upstream} is away") == [f"STATUS=upstream {redis.upstream} is away"]
    redis.start()
    assert manager.wait_for(f"STATUS=forwarding to {redis.upstream}") == [f"STATUS=forwarding to {redis.upstream}"]
    weir.stop()


def test_a_manager_that_is_gone_does_no_harm(manager, farm, redis):
    weir = farm.weir(redis, env={**manager.env, "WATCHDOG_USEC": "4000"})
    manager.sock.close()
    weir.signal(signal.SIGHUP)
    with weir.connect() as a:
        assert a.call("PING") == "PONG"
    weir.stop()


@pytest.mark.parametrize("socket", ["", "@", "relative", "/" + "x" * 200], ids=["empty", "at", "relative", "long"])
def test_a_socket_that_is_none(socket, farm, redis):
    farm.weir(redis, env={"NOTIFY_SOCKET": socket, "WATCHDOG_USEC": "nonsense"}).stop()


# ---- the watchdog ----


def test_the_watchdog_hears_beats(farm, redis):
    with Manager(watchdog_us=40_000) as manager:
        weir = farm.weir(redis, env=manager.env)
        for _ in range(20):
            manager.wait_for("WATCHDOG=1")
        weir.stop()


def test_a_watchdog_of_another_process(farm, redis):
    with Manager(watchdog_us=4000) as manager:
        weir = farm.weir(redis, env={**manager.env, "WATCHDOG_PID": "1"})
        assert weir.serves()
        weir.stop()
        heard = []
        while message := manager.hear(0.01):
            heard += message
        assert "STOPPING=1" in heard and "WATCHDOG=1" not in heard


PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17


def ptrace(request, tid):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(request, tid, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


class Stuck:
    """One thread of a process stops for a while; the others go on."""

    def __init__(self, tid):
        self.tid = tid

    def __enter__(self):
        try:
            ptrace(PTRACE_SEIZE, self.tid)
        except PermissionError:
            pytest.skip("this system does not let processes trace their children (ptrace)")
        ptrace(PTRACE_INTERRUPT, self.tid)
        os.waitpid(self.tid, 0x40000000)  # __WALL: threads too

    def __exit__(self, *_):
        ptrace(PTRACE_DETACH, self.tid)


def worker_threads(weir):
    folder = Path(f"/proc/{weir.child.pid}/task")
    return [int(task.name) for task in folder.iterdir() if (task / "comm").read_text() == "worker\n"]


def test_a_stuck_worker_stops_the_beats(farm, redis):
    with Manager(watchdog_us=WATCHDOG_US) as manager:
        weir = farm.weir(redis, workers=2, env=manager.env)
        workers = wait_until(lambda: len(found := worker_threads(weir)) == 2 and found, "both workers are named")
        for tid in workers:
            manager.wait_for("WATCHDOG=1")
            with Stuck(tid):
                manager.forget()
                until = time.monotonic() + 1.2 * WATCHDOG_US / 1e6
                beats = 0
                while (left := until - time.monotonic()) > 0:
                    beats += manager.hear(left) is not None
                assert beats <= 1  # weir may have answered just before it was stopped
            manager.wait_for("WATCHDOG=1")
        weir.stop()
