"""The program: its options, its configuration, its listeners, its bounds, and how it starts and
stops.
"""

import re
import signal
import socket

import pytest
from kit.harness import TOLD_AT_ONCE, run_weir, wait_until
from kit.resp import Closed, Conn, Error, encode, pipeline

TOO_MANY = b"-ERR max number of clients reached\r\n"


def write(tmp_path, text):
    path = tmp_path / "weir.conf"
    path.write_text(text)
    return path


# ---- options ----


def test_version_names_weir_and_its_libraries():
    done = run_weir("--version")
    assert done.returncode == 0
    assert re.match(r"weir \d+\.\d+\.\d+\S*", done.stdout)
    for library in ("libuv", "hiredis", "inih", "OpenSSL"):
        assert re.search(rf"{library} \S*\d", done.stdout), library


def test_help_names_every_option():
    done = run_weir("--help")
    assert done.returncode == 0
    for option in ("-c FILE", "-t", "--strict", "--explain", "--dump", "--keys", "--version", "--help"):
        assert option in done.stdout


def test_keys_prints_a_configuration_of_comments(tmp_path):
    done = run_weir("--keys")
    assert done.returncode == 0
    assert "; count from 1 to 256, or cores; needs a restart\n;workers = cores\n" in done.stdout
    # A file with all defaults written out is valid too.
    defaults = re.sub(r"^;([a-z-]+ = )", r"\1", done.stdout, flags=re.M)
    assert run_weir("-t", "-c", write(tmp_path, defaults)).returncode == 0


@pytest.mark.parametrize("argv", [["--nonsense"], ["weir.conf"], ["-c"]], ids=" ".join)
def test_a_bad_option_points_to_help(argv):
    done = run_weir(*argv)
    assert done.returncode == 1
    assert "--help" in done.stderr


def test_without_a_file_it_says_what_it_does():
    """The test occupies the default port, so weir never runs for long. weir reports what it would
    do before that.
    """
    with socket.socket() as holder:
        try:
            holder.bind(("127.0.0.1", 6380))
            holder.listen()
        except OSError:
            pass  # another process has the port, which does as well
        done = run_weir()
    assert done.returncode == 2
    for word in ("no configuration file", "127.0.0.1:6380", "127.0.0.1:6379", "no limits", "in use"):
        assert word in done.stderr, word


# ---- configuration ----

GOOD = """
[weir]
listen = 127.0.0.1:0, unix:/tmp/none.sock
upstream = 127.0.0.1:6379
workers = 2
lanes = shared
max-clients = 10k
output-limit = 64mb
log = /tmp/none.log, stderr
log-format = logfmt
log-level = warn
identity = user, name, ip/24, ip6/64
error-prefix = SLOW

[class heavy]
commands = keys, sort, @dangerous, -info

[policy free]
match = user:free-*, ip:10.1.0.0/16, name:batch
read = 1000/s burst 2000
write = 200/s burst 400, 10000/h
heavy = 5/m
cmd.publish = 50/10s
@scripting = 1/d

[policy default]
all = 20k/s
"""

BAD = {
    "an unknown key": ("[weir]\nlisten = 127.0.0.1:0\nworker = 2\n", 3, "[weir] worker: ", "workers"),
    "an unknown section": ("[wier]\nlisten = 127.0.0.1:0\n", 1, "[wier]", "weir"),
    "a bad number": ("[weir]\nworkers = many\n", 2, "[weir] workers: ", "many"),
    "a number too small": ("[weir]\nworkers = 0\n", 2, "[weir] workers: ", "1"),
    "a bad choice": ("[weir]\nlanes = common\n", 2, "[weir] lanes: ", "shared"),
    "a bad address": ("[weir]\nlisten = nowhere\n", 2, "[weir] listen: ", "nowhere"),
    "a bad port": ("[weir]\nupstream = 127.0.0.1:99999\n", 2, "[weir] upstream: ", "99999"),
    "a bad size": ("[weir]\noutput-limit = 64 pounds\n", 2, "[weir] output-limit: ", "pounds"),
    "a memory-limit too small": ("[weir]\nmemory-limit = 1kb\n", 2, "[weir] memory-limit: ", "must be from 1mb"),
    "a log without a path": ("[weir]\nlog = weir.log\n", 2, "[weir] log: ", "starts with /"),
    "two log files": ("[weir]\nlog = /tmp/a, /tmp/b\n", 2, "[weir] log: ", "one file"),
    "a bad format of the log": ("[weir]\nlog-format = xml\n", 2, "[weir] log-format: ", "xml"),
    "a bad level of the log": ("[weir]\nlog-level = loud\n", 2, "[weir] log-level: ", "loud"),
    "a bad identity": ("[weir]\nidentity = shoe-size\n", 2, "[weir] identity: ", "shoe-size"),
    "a missing file": ("[weir]\nupstream-password-file = /nowhere\n", 2, "[weir] upstream-password-file: ", "/nowhere"),
    "a key given twice": ("[weir]\nworkers = 1\n\nworkers = 2\n", 4, "[weir] workers: ", "twice"),
    "an unknown class": ("[policy default]\nreads = 1/s\n", 2, "[policy default] reads: ", "read"),
    "a rate of zero": ("[policy default]\nread = 0/s\n", 2, "[policy default] read: ", ""),
    "a rate without a time": ("[policy default]\nread = 100\n", 2, "[policy default] read: ", ""),
    "a bad unit of time": ("[policy default]\nread = 100/w\n", 2, "[policy default] read: ", "w"),
    "a burst of zero": ("[policy default]\nread = 1/s burst 0\n", 2, "[policy default] read: ", "burst"),
    "a burst of a century": ("[policy default]\nread = 1/d burst 40000\n", 2, "[policy default] read: ", "100 years"),
    "a clause twice": ("[policy default]\nread = 1/s burst 2 burst 3\n", 2, "[policy default] read: ", "burst"),
    "a bad match": ("[policy p]\nmatch = ip:10.0.0.0/40\n", 2, "[policy p] match: ", "40"),
    "an unlimited control class": ("[policy default]\ncmd.ping = 1/s\n", 2, "[policy default] cmd.ping: ", ""),
    "a delay": ("[policy default]\nread = 1/s over delay\n", 2, "[policy default] read: ", "needs the longest wait"),
    "a close": ("[policy default]\nread = 1/s over closing\n", 2, "[policy default] read: ", "unknown clause"),
    "a shadow": ("[policy default]\nread = 1/s shadow\n", 2, "[policy default] read: ", "unknown clause"),
    "deny": ("[policy default]\nread = deny, 1/s\n", 2, "[policy default] read: ", "deny refuses everything"),
    "per connection": ("[policy default]\nconnects = 1/s per connection\n", 2, "[policy default] connects: ", "cannot be counted per"),
    "cost": ("[policy default]\ncost = 1\n", 2, "[policy default] cost: ", "is not a rate"),
    "bytes": ("[policy default]\nbytes-in = 1m/s\n", 2, "[policy default] bytes-in: ", "is not a size"),
    "in flight": ("[policy default]\ninflight = 64/s\n", 2, "[policy default] inflight: ", "without a period"),
    "a line of nonsense": ("[weir]\nworkers = 1\nnonsense\n", 3, "", ""),
    "a long line": ("[weir]\nlisten = " + "x" * 3000 + "\n", 2, "", "the limit is 198"),
}


def test_a_good_configuration(tmp_path):
    done = run_weir("-t", "-c", write(tmp_path, GOOD))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("text, line, where, word", BAD.values(), ids=BAD.keys())
def test_a_bad_configuration(text, line, where, word, tmp_path):
    path = write(tmp_path, text)
    done = run_weir("-t", "-c", path)
    assert done.returncode == 1, done.stdout
    told = [error for error in done.stderr.splitlines() if error.startswith(f"{path}:{line}: {where}")]
    assert len(told) == 1 and word in told[0], done.stderr


def test_all_errors_at_once(tmp_path):
    text = "[weir]\nworkers = x\nlanez = shared\n[policy default]\nread = 0/s\nfoo = 1/s\n[nothing]\na = b\n"
    path = write(tmp_path, text)
    done = run_weir("-t", "-c", path)
    assert done.returncode == 1
    for line in (2, 3, 5, 6, 7):
        assert re.search(rf"^{re.escape(str(path))}:{line}: \[", done.stderr, re.M), done.stderr


def test_a_bad_configuration_does_not_start(tmp_path):
    done = run_weir("-c", write(tmp_path, "[weir]\nworkers = x\n"))
    assert done.returncode == 1
    assert ":2: [weir] workers: " in done.stderr and "listening" not in done.stderr


def test_a_missing_configuration(tmp_path):
    done = run_weir("-c", tmp_path / "none.conf")
    assert done.returncode == 1
    assert "none.conf" in done.stderr


@pytest.mark.parametrize(
    "text, word",
    [
        ("[class c]\ncommands = get, gett\n[policy default]\nc = 1/s\n", "gett"),
        ("[policy default]\n@lists = 1/s\n", "@list"),
    ],
    ids=["command", "category"],
)
def test_an_unknown_command_is_a_warning(text, word, tmp_path):
    """A module may add it."""
    done = run_weir("-t", "-c", write(tmp_path, text))
    assert done.returncode == 0
    assert "warning" in done.stderr and word in done.stderr


MIXED_UP = "[policy batch]\nmatch = user:batch\nread = 5/s\n; [policy ops]\nmatch = user:ops\nadmin = yes\n"


def test_what_can_hardly_be_meant_is_a_warning(tmp_path):
    path = write(tmp_path, MIXED_UP)
    done = run_weir("-t", "-c", path)
    assert done.returncode == 0 and "is valid" in done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"warning: {path}:6: [policy batch] admin: ") for line in lines)


@pytest.mark.parametrize("text", [MIXED_UP, "[policy default]\ncmd.flushal = deny\n"], ids=["meaning", "command"])
def test_with_strict_a_warning_is_an_error(text, tmp_path):
    path = write(tmp_path, text)
    done = run_weir("-t", "--strict", "-c", path)
    assert done.returncode == 1 and done.stdout == ""
    assert all(line.startswith(f"{path}:") for line in done.stderr.splitlines())
    assert run_weir("-t", "--strict", "-c", "conf/weir.conf").returncode == 0


def test_strict_is_for_checking(tmp_path):
    done = run_weir("--strict", "-c", write(tmp_path, GOOD))
    assert done.returncode == 1 and "-t" in done.stderr


# ---- listeners ----


def test_a_port_in_use(farm, redis):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        weir = farm.weir(redis, listen=f"127.0.0.1:{port}", wait=False)
        assert weir.wait() == 2
    assert f":{port}" in weir.log() and "in use" in weir.log() and "listen=" in weir.log()
    assert not weir.complaint()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_unix_socket(workers, farm, redis):
    weir = farm.weir(redis, workers=workers, listen="unix:{folder}/weir.sock")
    path = weir.address
    conns = [Conn(path) for _ in range(8)]
    for i, conn in enumerate(conns):
        assert conn.ask(f"SET k{i} {i}", f"GET k{i}") == ["OK", b"%d" % i]
    for conn in conns:
        conn.close()
    weir.stop()
    assert not weir.folder.joinpath("weir.sock").exists()


def test_a_stale_unix_socket_is_replaced(farm, redis):
    weir = farm.weir(redis, listen="unix:{folder}/weir.sock")
    weir.signal(signal.SIGKILL)
    weir.wait()
    weir.start()
    wait_until(lambda: weir.log().count(" ready\n") == 2, "weir is ready again")
    with weir.connect() as a:
        assert a.call("PING") == "PONG"


def test_each_of_several_listeners_serves(farm, redis):
    weir = farm.weir(redis, listen="127.0.0.1:0, unix:{folder}/weir.sock, 127.0.0.1:0, [::1]:0")
    assert len(weir.addresses) == 4
    for i, address in enumerate(weir.addresses):
        with Conn(address) as a:
            assert a.ask(f"SET k {i}", "GET k") == ["OK", b"%d" % i]


def test_many_connect_at_once(farm, redis):
    weir = farm.weir(redis, workers=2)
    conns = [weir.connect() for _ in range(500)]
    for i, conn in enumerate(conns):
        conn.send(encode("ECHO", i))
    for i, conn in enumerate(conns):
        assert conn.read() == b"%d" % i
        conn.close()


# ---- bounds ----


@pytest.mark.parametrize("workers", [1, 2])
def test_max_clients_turns_away_who_comes_on_top(workers, farm, redis):
    weir = farm.weir(redis, workers=workers, max_clients=8)
    conns = [weir.connect() for _ in range(8)]
    for conn in conns:
        assert conn.call("PING") == "PONG"
    for _ in range(3):
        with weir.connect() as more:
            assert more.read_to_end() == TOO_MANY
    assert all(conn.call("PING") == "PONG" for conn in conns)
    conns.pop().close()

    def is_taken():
        with weir.connect() as conn:
            try:
                return conn.call("PING") == "PONG"
            except Closed:
                return False

    wait_until(is_taken, "a place is free again")
    for conn in conns:
        conn.close()


def test_a_client_that_never_reads_is_closed_and_named(farm, redis):
    weir = farm.weir(redis, workers=1, output_limit="1mb")
    with weir.connect() as greedy, weir.connect() as other:
        other.call("SET", "k", b"x" * 100_000)
        name = greedy.name
        requests = pipeline(*["GET k"] * 500)
        greedy.send(requests)
        wait_until(lambda: name in weir.log(), "the log names it")
        assert "output-limit" in next(line for line in weir.log().splitlines() if name in line)
        received = greedy.read_to_end()
        assert len(received) < 500 * 100_000
        assert other.ask("PING", "STRLEN k") == ["PONG", 100_000]


def test_a_slow_reader_within_the_limit_gets_everything(farm, redis):
    weir = farm.weir(redis, workers=1, lanes="private")
    with weir.connect() as slow, weir.connect() as other:
        other.call("SET", "k", b"x" * 1_000_000)
        slow.send(pipeline(*["GET k"] * 20, "ECHO end"))
        for _ in range(20):
            assert other.ask("PING") == ["PONG"]
            assert slow.read() == b"x" * 1_000_000
        assert slow.read() == b"end"


def test_a_pipeline_written_before_anything_is_read(farm, redis):
    """Libraries do that; if weir stopped reading, both would deadlock."""
    weir = farm.weir(redis)
    with weir.connect() as a:
        a.send(pipeline(*[("SET", "k", b"x" * 1000), ("GET", "k")] * 5000))
        for _ in range(5000):
            assert a.read() == "OK" and a.read() == b"x" * 1000


def test_half_a_request_does_not_disturb_others(farm, redis):
    weir = farm.weir(redis, workers=1)
    with weir.connect() as half, weir.connect() as other:
        request = encode("SET", "k", b"x" * 1_000_000)
        half.send(request[:500_000])
        assert other.ask("SET j v", "GET j") == ["OK", b"v"]
        half.send(request[500_000:])
        assert half.read() == "OK"
        assert other.call("STRLEN", "k") == 1_000_000


def test_one_that_left_in_the_middle_of_a_large_request(farm, redis):
    """The half that Redis has received must not become part of another client's next request."""
    weir = farm.weir(redis, workers=1)
    with weir.connect() as other:
        for size in (1000, 100_000, 1_000_000):
            with weir.connect() as half:
                half.send(encode("SET", "k", b"x" * size)[: size // 2])
            wait_until(lambda: other.call("PING") == "PONG", "others go on")
            assert other.ask("EXISTS k", "SET j v", "GET j") == [0, "OK", b"v"]


def test_idle_connections_stay(farm, redis):
    weir = farm.weir(redis)
    with weir.connect() as idle, weir.connect() as busy:
        assert idle.call("SET", "k", "v") == "OK"
        for _ in range(200):
            busy.ask(*["INCR n"] * 50)
        assert not idle.is_closed()
        assert idle.call("GET", "k") == b"v"


def test_a_declared_length_takes_no_memory(farm, redis):
    weir = farm.weir(redis, workers=1)
    with weir.connect() as a:
        a.call("PING")
        before = resident(weir)
        conns = [weir.connect() for _ in range(200)]
        for conn in conns:
            conn.send(b"*2147483647\r\n$3\r\nDEL\r\n$536870912\r\nx")
        assert a.ask(*["PING"] * 10) == ["PONG"] * 10
        assert resident(weir) - before < 64 << 20
        for conn in conns:
            conn.close()


def resident(process):
    """Returns the resident bytes."""
    status = open(f"/proc/{process.child.pid}/status").read()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) << 10


# ---- starting and stopping ----


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_stopping_with_clients(number, farm, redis):
    weir = farm.weir(redis, workers=2)
    conns = [weir.connect() for _ in range(20)]
    for conn in conns[:5]:
        assert conn.call("PING") == "PONG"
    conns[5].send(encode("BLPOP", "none", 0))
    assert conns[6].call("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
    assert conns[7].ask("MULTI", "SET k v") == ["OK", "QUEUED"]
    conns[8].send(b"*2\r\n$3\r\nGET\r\n$1")
    wait_until(lambda: redis.waiting()[0] == 1, "one blocks")
    weir.stop(number)
    for conn in conns:
        conn.read_to_end()
        conn.close()
    weir.wait_for_log("stopping")


def test_stopping_while_redis_is_away(farm):
    redis = farm.redis()
    weir = farm.weir(redis, **TOLD_AT_ONCE)
    redis.kill()
    with weir.connect() as a:
        wait_until(lambda: a.call("PING") == Error("UPSTREAM unavailable"), "weir knows")
        weir.stop()


def test_log_lines_are_whole_and_name_no_values(farm, redis):
    weir = farm.weir(redis, sections="[policy default]\nwrite = 1/h\n")
    with weir.connect() as a:
        a.ask("SET secret-key secret-value", "SET secret-key secret-value", "FOO secret-value")
        a.call("AUTH", "secret-user", "secret-password")
    weir.stop()
    assert "secret" not in weir.log()
    for line in weir.log().splitlines():
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (debug|info |warn |error) \S", line), line
