"""Start without Redis, exit statuses, and an upgrade while Redis is away."""

import os
import re
import signal
import socket
import subprocess
import threading
import time
from configparser import RawConfigParser

import pytest
from kit.admin import ADMIN, get
from kit.harness import REPO, WEIR, Heir, Redis, free_port, wait_until
from kit.manager import Manager
from kit.moving import NAME, Names
from kit.tls import behind

HURRY = {"WEIR_HURRY": "30"}  # an upgrade gives up after a second
BOTH = pytest.mark.parametrize("lanes", ["shared", "private"])


def absent(farm, *options, **settings):
    """A Redis that has not been started."""
    redis = Redis(*options, **settings)
    redis.port = free_port()
    farm.servers.append(redis)
    return redis


def is_ready(weir):
    return get(weir, "/readyz")[::2] == (200, "ready\n")


def is_over(weir, n=1):
    return len(re.findall(r"before it served: process \d+ goes on", weir.log())) >= n


# ---- the start ----


def test_a_start_without_redis(farm):
    """weir listens, systemd gets READY=1, and /readyz tells what is missing until Redis is up."""
    redis = absent(farm)
    with Manager() as manager:
        weir = farm.weir(redis, sections=ADMIN, env=manager.env)
        assert manager.wait_for("READY=1") == ["READY=1", f"STATUS=upstream {redis.upstream} is away"]
        status, _, text = get(weir, "/readyz")
        assert status == 503 and f"upstream {redis.upstream} is away" in text
        redis.start()
        manager.wait_for(f"STATUS=forwarding to {redis.upstream}")
        wait_until(lambda: is_ready(weir), "it is ready")
        with weir.connect() as conn:
            assert conn.call("SET", "k", "v") == "OK"
        weir.stop()


@pytest.mark.moves
def test_a_redis_that_cannot_save_is_ready(farm, tmp_path):
    """Redis answers PING with -MISCONF, and serves reads."""
    folder = tmp_path / "data"
    folder.mkdir()
    redis = farm.redis("--dir", str(folder))
    assert redis.call("CONFIG", "SET", "save", "3600 1") == "OK" and redis.call("SET", "k", "v") == "OK"
    weir = farm.weir(redis, sections=ADMIN, upstream_check="50ms")
    folder.rmdir()
    redis.call("BGSAVE")
    wait_until(lambda: redis.info("rdb_last_bgsave_status") == "err", "it cannot save")
    assert str(redis.call("PING")).startswith("MISCONF")
    redis.call("CLIENT", "KILL", "TYPE", "normal")
    other = farm.weir(redis, sections=ADMIN, upstream_check="50ms")
    wait_until(lambda: is_ready(weir) and is_ready(other), "both are ready")
    with other.connect() as conn:
        assert conn.call("GET", "k") == b"v"
        assert str(conn.call("SET", "k", "w")).startswith("MISCONF")
    assert "cannot be served" not in weir.log() + other.log()


@pytest.mark.moves
@BOTH
def test_a_start_without_a_name(lanes, farm, redis, tmp_path):
    """systemd gets READY=1, and a status that tells what is missing. An upgrade succeeds even
    before the name resolves.
    """
    names = Names(tmp_path)
    with Manager() as manager:
        weir = farm.weir(
            f"{NAME}:{redis.port}", lanes=lanes, sections=ADMIN, prefix=names.prefix, env={**manager.env, **HURRY}
        )
        missing = manager.wait_for("READY=1")[1]
        assert missing.startswith(f"STATUS=upstream {NAME}:{redis.port} is away: its name cannot be resolved"), missing
        weir.upgrade()
        names.point("127.0.0.1")
        wait_until(lambda: is_ready(weir), "it is ready")
        assert weir.serves()


@pytest.mark.moves
def test_a_new_process_without_a_name_gives_up(farm, redis):
    weir = farm.weir(redis, env=HURRY)
    weir.config.write_text(re.sub("upstream = .*", "upstream = no-such-host.invalid:1", weir.config.read_text()))
    weir.signal(signal.SIGUSR2)
    wait_until(lambda: is_over(weir), "the new process has ended", 30)
    assert re.search(r"\(status 2, signal 0\).*its name cannot be resolved.*: not taking over", weir.log())
    assert weir.serves()


# ---- exit statuses ----


def exit_of(tmp_path, text, *options):
    path = tmp_path / "weir.conf"
    path.write_text(text.replace("{folder}", str(tmp_path)))
    done = subprocess.run([WEIR, "-c", path, *options], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


MISTAKES = {
    "unknown key": "[weir]\nnonsense = 1\n",
    "no password file": "[weir]\nupstream-password-file = {folder}/nothing\n",
    "no certificate": "[weir]\nlisten = tls:127.0.0.1:0\ntls-cert-file = {folder}/nothing\ntls-key-file = {folder}/nothing\n",
    "broken": "[weir\n",
}
SYSTEMS = {
    "log": "[weir]\nlisten = 127.0.0.1:0\nlog = {folder}/nowhere/weir.log\n",
    "folder": "[weir]\nlisten = unix:{folder}/nowhere/weir.sock\n",
    "no socket": "[weir]\nlisten = unix:{folder}/weir.conf\n",
    "address of another": "[weir]\nlisten = 192.0.2.1:6380\n",
    "operators' folder": "[weir]\nlisten = 127.0.0.1:0\n[admin]\nsocket = {folder}/nowhere/x\n",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_of_the_configuration_ends_with_1(name, tmp_path):
    assert exit_of(tmp_path, MISTAKES[name])[0] == 1
    assert exit_of(tmp_path, MISTAKES[name], "-t")[0] == 1


@pytest.mark.parametrize("name", SYSTEMS)
def test_all_else_ends_with_2(name, tmp_path):
    """-t opens nothing, and finds no mistake."""
    status, said = exit_of(tmp_path, SYSTEMS[name])
    assert status == 2, said
    assert exit_of(tmp_path, SYSTEMS[name], "-t")[0] == 0


@pytest.mark.parametrize("section", ["weir", "admin"])
def test_an_address_in_use_ends_with_2(section, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        lines = ["[weir]\nlisten = 127.0.0.1:0\n", "[admin]\nlisten = 127.0.0.1:0\n"]
        text = "".join(lines).replace(f"[{section}]\nlisten = 127.0.0.1:0", f"[{section}]\nlisten = 127.0.0.1:%d" % other.getsockname()[1])
        status, said = exit_of(tmp_path, text)
    assert status == 2 and "in use" in said


@pytest.mark.moves
def test_no_descriptors_end_with_2(tmp_path):
    path = tmp_path / "weir.conf"
    path.write_text("[weir]\nlisten = 127.0.0.1:0\nworkers = 2\n")
    for most in range(8, 40):  # with fewer descriptors libuv itself calls abort()
        command = f"ulimit -n {most}; exec {WEIR} -c {path}"
        # LeakSanitizer needs descriptors, too
        env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
        child = subprocess.Popen(["bash", "-c", command], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = ""
        while (line := child.stderr.readline()) and "but not ready" not in line:
            said += line
        child.terminate()
        assert child.wait(20) in (2, 0), said
        if "listening on" in said and not child.returncode:
            return
    raise AssertionError("it never started")


def test_the_service_starts_again_after_all_but_mistakes():
    """systemd restarts weir without a bound on the number of restarts: an address may be in use for
    longer than systemd's own limit.
    """
    unit = RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read(REPO / "conf/systemd/weir.service")
    service = unit["Service"]
    assert (service["Restart"], service["RestartPreventExitStatus"]) == ("always", "1")
    assert unit["Unit"]["StartLimitIntervalSec"] == "0"


# ---- an upgrade while Redis is away ----


@pytest.mark.parametrize("lanes", ["shared", pytest.param("private", marks=pytest.mark.moves)])
@pytest.mark.parametrize("kind", ["plain", pytest.param("tls", marks=pytest.mark.moves)])
def test_an_upgrade_while_redis_is_away(kind, lanes, farm, tmp_path):
    """Neither process is ready, so the new one takes over, and serves when Redis returns."""
    redis, settings = behind(kind, farm, tmp_path)
    weir = farm.weir(redis, lanes=lanes, sections=ADMIN, **settings)
    redis.kill()
    wait_until(lambda: not is_ready(weir), "it is not ready")
    weir.upgrade()
    assert re.search(r"process \d+ may take over, because process \d+ is not ready either", weir.log())
    redis.start()
    wait_until(lambda: is_ready(weir), "the new process is ready")
    with weir.connect() as conn:
        assert conn.call("SET", "k", "v") == "OK"
    weir.upgrade()
    assert weir.serves()


def test_an_upgrade_that_is_not_ready_gives_up(farm, redis):
    """The old process is ready, so it goes on. The log of the old process tells why the new process
    gave up.
    """
    weir = farm.weir(redis, env=HURRY)
    good = weir.config.read_text()
    weir.config.write_text(re.sub("upstream = .*", "upstream = 127.0.0.1:1", good))
    weir.signal(signal.SIGUSR2)
    weir.wait_for_log("upstream 127.0.0.1:1 is away for process")
    assert weir.serves()
    wait_until(lambda: is_over(weir), "the new process has ended", 30)
    assert "(status 2, signal 0)" in weir.log() and "goes on: upstream 127.0.0.1:1 is away: not taking over" in weir.log()
    assert weir.serves()
    weir.config.write_text(good)
    weir.upgrade()


@pytest.mark.moves
def test_a_new_process_takes_over_once_it_is_ready(farm, redis):
    """The Redis of the new process starts while the new process waits. The old process is ready all
    the time.
    """
    other = absent(farm)
    weir = farm.weir(redis)
    weir.config.write_text(weir.config.read_text().replace(redis.upstream, other.upstream))
    threading.Timer(1.5, other.start).start()
    began = time.monotonic()
    weir.upgrade()
    assert time.monotonic() - began < 15
    assert "may take over" not in weir.log()
    with weir.connect() as conn:
        conn.call("SET", "only-there", "x")
    assert other.call("GET", "only-there") == b"x"


@pytest.mark.moves
def test_the_old_process_loses_redis_while_the_new_one_waits(farm):
    redis = farm.redis()
    weir = farm.weir(redis, sections=ADMIN)
    weir.config.write_text(weir.config.read_text().replace(redis.upstream, "127.0.0.1:1"))
    threading.Timer(2, redis.kill).start()
    weir.upgrade()
    assert re.search(r"process \d+ may take over", weir.log())


@pytest.mark.moves
def test_the_old_process_dies_while_the_new_one_waits(farm, redis):
    """No other process is left to serve."""
    weir = farm.weir(redis, sections=ADMIN)
    other = absent(farm)
    weir.config.write_text(weir.config.read_text().replace(redis.upstream, other.upstream))
    with Heir.expected():
        weir.signal(signal.SIGUSR2)
        weir.wait_for_log("is away for process")
        pid = int(re.search(r"upgrade: process (\d+) is starting", weir.log())[1])
        weir.child.kill()
        weir.wait()
        weir.child = Heir(pid)
        other.start()
        wait_until(lambda: is_ready(weir), "the new process serves", 20)
        weir.child.send_signal(signal.SIGTERM)
        assert weir.child.wait(20) == 0


@pytest.mark.moves
def test_a_new_process_that_waits_ends_with_the_old_one(farm, redis):
    weir = farm.weir(redis)
    weir.config.write_text(weir.config.read_text().replace(redis.upstream, "127.0.0.1:1"))
    weir.signal(signal.SIGUSR2)
    weir.wait_for_log("is away for process")
    pid = re.search(r"upgrade: process (\d+) is starting", weir.log())[1]
    weir.stop()

    def has_gone():
        try:
            return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    wait_until(has_gone, "it has ended, too")
