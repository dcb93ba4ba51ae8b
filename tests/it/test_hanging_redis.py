"""Redis is up and does not answer: stopped, busy, paused, or silent from the start."""

import signal
import socket
import threading

import pytest
from kit.admin import ADMIN, get, stats
from kit.harness import stopped, wait_until
from kit.manager import Manager
from kit.resp import encode, pipeline

CHECK = "50ms"  # three misses are shorter than any of these states
LANES = ["shared", "private"]


def state_of(weir):
    return stats(weir)["upstream"]["state"]


def wait_state(weir, state):
    wait_until(lambda: state_of(weir) == state, f"the upstream is {state}", 20)


def wait_log(weir, text):
    wait_until(lambda: text in weir.log(), f"the log says: {text}", 20)


def metric(weir, name, *labels):
    """Returns the value of the one line with these labels."""
    lines = get(weir, f"/metrics?name={name}")[2].splitlines()
    found = [line for line in lines if not line.startswith("#") and all(label in line for label in labels)]
    assert len(found) == 1, lines
    return float(found[0].split()[-1])


@pytest.mark.parametrize("lanes", LANES)
def test_hung_and_back(lanes, farm):
    redis = farm.redis()
    weir = farm.weir(redis, lanes=lanes, sections=ADMIN, upstream_check=CHECK)
    wait_until(lambda: get(weir, "/readyz")[::2] == (200, "ready\n"), "ready")
    assert metric(weir, "weir_upstream_state", 'state="up"') == 1
    with weir.connect() as conn:
        assert conn.call("SET", "k", "v") == "OK"
        with stopped(redis):
            conn.send(encode("GET", "k"))
            wait_log(weir, f"upstream {redis.upstream} does not answer (for 0.")
            wait_until(lambda: get(weir, "/readyz")[0] == 503, "not ready")
            assert get(weir, "/readyz")[2].startswith(f"upstream {redis.upstream} does not answer (for ")
            assert metric(weir, "weir_upstream_up") == 0
            assert metric(weir, "weir_upstream_state", 'state="silent"') == 1
            assert metric(weir, "weir_upstream_state", 'state="up"') == 0
            wait_until(lambda: metric(weir, "weir_upstream_oldest_seconds") > 1, "how long the oldest has waited")
            found = stats(weir)["upstream"]
            assert found["state"] == "silent" and not found["up"] and found["oldest_seconds"] > 1
            assert found["nodes"][0]["silent_seconds"] > 1
            assert get(weir, "/healthz")[0] == 200
        assert conn.read() == b"v", "who has waited gets its answer"
        wait_log(weir, f"upstream {redis.upstream} answers again (after ")
        wait_until(lambda: get(weir, "/readyz")[0] == 200, "ready")
        assert metric(weir, "weir_upstream_up") == 1
        wait_until(lambda: metric(weir, "weir_upstream_oldest_seconds") == 0, "nothing waits any more")


def test_it_is_an_event(farm):
    redis = farm.redis()
    weir = farm.weir(redis, sections=ADMIN, upstream_check=CHECK)
    with stopped(redis):
        wait_state(weir, "silent")
    wait_state(weir, "up")
    texts = [event["text"] for event in stats(weir)["events"] if event["kind"] == "upstream"]
    assert "answers again" in texts[0] and "does not answer" in texts[1]


@pytest.mark.parametrize("lanes", LANES)
def test_blocking_commands_are_not_waited_for(lanes, farm):
    redis = farm.redis()
    weir = farm.weir(redis, lanes=lanes, sections=ADMIN, upstream_check=CHECK)
    with weir.connect() as blocked, weir.connect() as conn:
        blocked.send(encode("BLPOP", "list", 0))
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        assert conn.call("PING") == "PONG"
        with stopped(redis):
            conn.send(encode("GET", "k"))
            wait_until(lambda: metric(weir, "weir_upstream_oldest_seconds") > 0, "it waits")
        assert conn.read() is None
        wait_until(lambda: metric(weir, "weir_upstream_oldest_seconds") == 0, "only the blocked one is left")
        assert metric(weir, "weir_upstream_blocking_requests") == 1
        redis.call("RPUSH", "list", "x")
        assert blocked.read() == [b"list", b"x"]


def test_a_long_script_is_named(farm):
    redis = farm.redis("--busy-reply-threshold", "60")
    weir = farm.weir(redis, sections=ADMIN, upstream_check=CHECK)
    with weir.connect() as conn:
        conn.send(encode("EVAL", "while true do end", 0))
        wait_log(weir, f"upstream {redis.upstream} is busy: a script runs")
        wait_state(weir, "busy")
        assert get(weir, "/readyz")[0] == 200 and metric(weir, "weir_upstream_up") == 1
        assert metric(weir, "weir_upstream_state", 'state="busy"') == 1
        redis.call("SCRIPT", "KILL")
        wait_state(weir, "up")
        wait_log(weir, f"upstream {redis.upstream} is no longer busy")
        assert "SCRIPT KILL" in conn.read()


@pytest.mark.parametrize("secret", [None, "geheim"], ids=["open", "password"])
def test_a_pause_is_told_apart(secret, farm, tmp_path):
    redis = farm.redis(password=secret)
    more = {}
    if secret:
        password = tmp_path / "password"
        password.write_text(secret + "\n")
        password.chmod(0o600)
        more["upstream_password_file"] = password
    weir = farm.weir(redis, sections=ADMIN, upstream_check=CHECK, **more)
    with redis.connect() as other, weir.connect() as conn:
        if secret:
            conn.call("AUTH", secret)
        assert conn.call("PING") == "PONG"
        assert other.call("CLIENT", "PAUSE", 4000, "ALL") == "OK"  # Redis delays UNPAUSE, too
        conn.send(encode("PING"))
        wait_log(weir, f"upstream {redis.upstream} is paused: CLIENT PAUSE suspends commands")
        wait_state(weir, "paused")
        assert get(weir, "/readyz")[0] == 200 and metric(weir, "weir_upstream_up") == 1
        assert conn.read() == "PONG"
        wait_state(weir, "up")
        wait_log(weir, f"upstream {redis.upstream} is no longer paused")
        assert other.call("CLIENT", "PAUSE", 500, "WRITE") == "OK"
        with weir.connect() as third:
            if secret:
                third.call("AUTH", secret)
            assert third.call("SET", "k", "v") == "OK", "it has waited for the end of the pause"
    assert "the control connection" not in weir.log()


class Relay:
    """Passes connections on to Redis, until one of them is cut off: neither side is told."""

    def __init__(self, to):
        self.to = to
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.pairs = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def upstream(self):
        return "127.0.0.1:%d" % self.listener.getsockname()[1]

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            pair = {"said": b"", "is_cut": False, "socks": (sock, socket.create_connection(self.to))}
            self.pairs.append(pair)
            for i in (0, 1):
                threading.Thread(target=self._pass, args=(pair, i), daemon=True).start()

    def _pass(self, pair, i):
        try:
            while piece := pair["socks"][i].recv(65536):
                if i == 0:
                    pair["said"] += piece
                if not pair["is_cut"]:
                    pair["socks"][1 - i].sendall(piece)
            pair["socks"][1 - i].shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def control(self):
        """weir's control connection, which has asked for COMMAND."""
        return next(pair for pair in self.pairs if b"COMMAND" in pair["said"] and not pair["is_cut"])

    def close(self):
        self.listener.close()
        for pair in self.pairs:
            for sock in pair["socks"]:
                sock.close()


def test_a_connection_that_is_dead_is_not_taken_for_a_redis_that_is(farm):
    redis = farm.redis()
    relay = Relay(redis.address)
    try:
        weir = farm.weir(relay.upstream, sections=ADMIN, upstream_check=CHECK)
        assert get(weir, "/readyz")[0] == 200
        relay.control()["is_cut"] = True
        wait_log(weir, "the control connection failed: it gets no replies, while other connections do")
        wait_log(weir, "the control connection is back")
        wait_until(lambda: get(weir, "/readyz")[0] == 200, "ready")
        weir.stop()
    finally:
        relay.close()


def test_who_may_not_ping_is_asked_otherwise(farm, tmp_path):
    redis = farm.redis()
    redis.call("ACL", "SETUSER", "weir", "on", ">pw", "-@all", "+info", "+command", "+select")
    password = tmp_path / "password"
    password.write_text("pw\n")
    password.chmod(0o600)
    weir = farm.weir(
        redis, workers=1, sections=ADMIN, upstream_user="weir", upstream_password_file=password, upstream_check=CHECK
    )
    said = lambda: int(redis.info("cmdstat_hello").split(",")[0].removeprefix("calls="))
    before = said()
    wait_until(lambda: said() > before + 10, "it asks by HELLO")
    refused = [entry for entry in redis.call("ACL", "LOG") if b"ping" in entry]
    # a slow machine may need another connection
    connections = 1 + weir.log().count("the control connection failed")
    assert len(refused) == 1 and refused[0][1] <= connections, "once for each"
    with stopped(redis):
        wait_state(weir, "silent")
    wait_state(weir, "up")


def test_nothing_is_asked_when_it_is_off(farm):
    redis = farm.redis()
    weir = farm.weir(redis, sections=ADMIN, upstream_check="0")
    with redis.connect() as monitor:
        assert monitor.call("MONITOR") == "OK"
        with weir.connect() as conn:
            for i in range(50):
                conn.call("ECHO", i)
        redis.call("ECHO", "end")
        seen = ""
        while "end" not in seen:
            line = monitor.read()
            assert '"pING"' not in line
            seen = line
    weir.stop()


def test_its_questions_are_not_shown_to_clients(farm):
    redis = farm.redis()
    weir = farm.weir(redis, sections=ADMIN, upstream_check=CHECK)
    with redis.connect() as direct, weir.connect() as monitor:
        assert direct.call("MONITOR") == monitor.call("MONITOR") == "OK"
        wait_until(lambda: '"pING"' in direct.read(), "Redis shows it")
        redis.call("ECHO", "end")
        line = ""
        while "end" not in line:
            line = monitor.read()
            assert '"pING"' not in line


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_its_questions_are_not_shown_to_a_client_that_monitors_and_sends(lanes, farm):
    """A line that comes while the client's own command is in flight is not a reply to that command.
    """
    redis = farm.redis()
    weir = farm.weir(redis, sections=ADMIN, upstream_check=CHECK, lanes=lanes)
    with redis.connect() as direct, weir.connect() as monitor:
        assert direct.call("MONITOR") == monitor.call("MONITOR") == "OK"
        asked = 0
        while asked < 20:
            monitor.send(encode("ECHO", "mine"))
            while monitor.read() != b"mine":
                assert b'"pING"' not in monitor.buffer
            direct.send(encode("ECHO", "direct"))
            while (line := direct.read()) != b"direct":
                asked += '"pING"' in line


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_a_monitor_misses_no_line_of_its_own_commands(lanes, farm):
    """Also where weir asks Redis on that lane whether its answers can be believed."""
    redis = farm.redis()
    weir = farm.weir(redis, sections=ADMIN, lanes=lanes)
    for _ in range(5):
        with weir.connect() as monitor:
            monitor.send(pipeline("MONITOR", "NOSUCH a", "PING", "HELLO 3", "ECHO last"))
            seen = b""
            while b"$4\r\nlast\r\n" not in seen:
                seen += monitor.sock.recv(65536)
            assert b'] "PING"' in seen


def test_silent_from_the_start(farm):
    """The server accepts, and sends nothing. weir serves, and does not report ready."""
    with socket.create_server(("127.0.0.1", 0)) as mute, Manager() as manager:
        upstream = "127.0.0.1:%d" % mute.getsockname()[1]
        weir = farm.weir(upstream, sections=ADMIN, connect_timeout="100ms", upstream_check=CHECK, env=manager.env)
        wait_log(weir, f"listening, but not ready: upstream {upstream} does not answer; clients wait")
        assert get(weir, "/readyz")[::2] == (503, f"upstream {upstream} does not answer\n")
        weir.stop()
        assert " ready" not in weir.log().replace("not ready", "")
        heard = []
        while message := manager.hear(0):
            heard += message
        missing = f"STATUS=upstream {upstream} does not answer"
        assert heard[:3] == ["STATUS=starting", "READY=1", missing], "it listens, and says what is missing"


def test_the_log_says_ready_when_it_is(farm):
    redis = farm.redis()
    redis.signal(signal.SIGSTOP)
    weir = farm.weir(redis, sections=ADMIN, connect_timeout="100ms", upstream_check=CHECK)
    wait_log(weir, "listening, but not ready")
    redis.signal(signal.SIGCONT)
    wait_until(lambda: weir.log().rstrip().endswith(" ready") or "] ready" in weir.log(), "ready", 20)
    assert get(weir, "/readyz")[0] == 200


def test_a_login_that_is_not_answered_is_named(farm):
    redis = farm.redis()
    redis.call("ACL", "SETUSER", "ann", "on", ">pw", "+@all", "~*")
    weir = farm.weir(redis, upstream_check=CHECK, upstream_timeout="1s", workers=1)
    with weir.connect() as warm, weir.connect() as conn:
        assert warm.ask("AUTH ann pw", "PING") == ["OK", "PONG"]
        assert conn.call("PING") == "PONG"
        with stopped(redis):
            conn.send(encode("AUTH", "ann", "pw"))
            wait_log(weir, "a login connection is closed: Redis did not answer a login in time")
        assert "has no end" not in weir.log()
