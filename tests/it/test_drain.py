"""SIGTERM: weir closes clients between two commands, and no reply is lost."""

import re
import signal
import threading
import time
import urllib.error
import urllib.request

import pytest
from kit.harness import MODE_IDS, MODES, rounds, wait_until
from kit.resp import Closed, Conn, encode, pipeline

PATIENCE = "15s"  # drain-timeout: longer than these tests need
# seconds; weir closes clients that are silent for twice as long, as any client may be on a busy
# machine
SILENCE = 0.5


@pytest.fixture(params=MODES, ids=MODE_IDS)
def patient(request, farm, redis):
    """A weir with a long drain-timeout."""
    workers, lanes = request.param
    return farm.weir(redis, workers=workers, lanes=lanes, drain_timeout=PATIENCE)


def told_to_stop(weir):
    """SIGTERM has been sent, and weir accepts no more clients."""
    weir.signal(signal.SIGTERM)
    wait_until(lambda: "weir no longer accepts connections" in weir.log(), "nobody is accepted")


def rest(conn):
    """Returns what comes until the end; a reset fails."""
    found = bytes(conn.buffer)
    while data := conn.sock.recv(1 << 18):
        found += data
    return found


def ended_well(weir):
    assert weir.wait() == 0, weir.log()
    assert not weir.complaint(), weir.log()


def test_without_clients_it_ends_at_once(patient):
    patient.signal(signal.SIGTERM)
    ended_well(patient)
    patient.wait_for_log("all clients are gone")


def test_idle_clients_are_let_go(patient):
    conns = [patient.connect() for _ in range(10)]
    for conn in conns[:5]:
        assert conn.ask("PING", "SELECT 3", "SET k v") == ["PONG", "OK", "OK"]
    patient.signal(signal.SIGTERM)
    for conn in conns:
        assert rest(conn) == b""
        conn.close()
    ended_well(patient)


def test_idle_clients_that_do_not_notice_are_closed(farm, redis):
    weir = farm.weir(redis, drain_timeout="2s")
    conns = [weir.connect() for _ in range(3)]
    assert [conn.call("PING") for conn in conns] == ["PONG"] * 3
    weir.signal(signal.SIGTERM)
    ended_well(weir)
    assert "drain-timeout" not in weir.log()
    for conn in conns:
        assert rest(conn) == b""
        conn.close()


def test_a_blocked_client_gets_its_reply(patient, redis):
    with patient.connect() as a:
        a.send(pipeline("BLPOP list 0", "ECHO after"))
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        told_to_stop(patient)
        with pytest.raises(ConnectionRefusedError):
            patient.connect()
        redis.call("RPUSH", "list", "x")
        assert a.read() == [b"list", b"x"] and a.read() == b"after"
        assert rest(a) == b""
    ended_well(patient)


def test_a_transaction_is_finished(patient):
    with patient.connect() as a, patient.connect() as b:
        assert a.ask("MULTI", "SET k 1") == ["OK", "QUEUED"]
        assert b.ask("WATCH k", "GET k") == ["OK", None]
        told_to_stop(patient)
        assert a.call("INCR", "k") == "QUEUED"
        assert a.call("EXEC") == ["OK", 2]
        assert rest(a) == b""
        assert b.ask("MULTI", "SET k 3", "EXEC") == ["OK", "QUEUED", None]
        assert rest(b) == b""
    ended_well(patient)


def test_a_subscriber_stays_until_it_unsubscribes(patient, redis):
    with patient.connect() as a:
        assert a.call("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
        told_to_stop(patient)
        redis.call("PUBLISH", "c", "hello")
        assert a.read() == [b"message", b"c", b"hello"]
        assert a.call("UNSUBSCRIBE", "c") == [b"unsubscribe", b"c", 0]
        assert rest(a) == b""
    ended_well(patient)


@pytest.mark.parametrize("size", [100, 300_000])
def test_half_a_request_is_waited_for(size, patient):
    request = encode("SET", "k", b"x" * size)
    with patient.connect() as a, patient.connect() as b:
        assert a.call("PING") == "PONG"
        a.send(request[: len(request) // 2])
        b.send(encode("ECHO", "b")[:-3])
        told_to_stop(patient)
        a.send(request[len(request) // 2 :])
        b.send(encode("ECHO", "b")[-3:])
        assert a.read() == "OK" and b.read() == b"b"
        assert rest(a) == rest(b) == b""
    ended_well(patient)


def test_a_reply_that_is_half_sent_goes_out_whole(patient):
    value = b"x" * 20_000_000
    with patient.connect() as a:
        assert a.call("SET", "k", value) == "OK"
        a.send(encode("GET", "k"))
        a.more()
        told_to_stop(patient)
        assert a.read() == value
        assert rest(a) == b""
    ended_well(patient)


def test_who_waits_for_a_turn_gets_it(farm, redis):
    weir = farm.weir(redis, drain_timeout=PATIENCE, sections="[policy default]\ncmd.set = 1/s over delay 10s\n")
    with weir.connect() as a, weir.connect() as b:
        assert a.call("SET", "k", 1) == "OK"
        a.send(encode("SET", "k", 2))
        assert b.call("LIMIT", "FUNNEL", "f", "1/s")[0] == 0
        b.send(encode("LIMIT", "FUNNEL", "f", "1/s", "WAIT", 10000))
        told_to_stop(weir)
        assert a.read() == "OK"
        assert b.read()[0] == 0
        assert rest(a) == rest(b) == b""
    ended_well(weir)


@pytest.mark.parametrize("is_unix", [False, True], ids=["TCP", "unix"])
def test_who_comes_in_the_moment_of_the_stop_is_served_or_refused(is_unix, farm, redis):
    """A client that gets a connection reads the reply or the end, and no reset."""
    outcomes, refused = [], (ConnectionRefusedError, FileNotFoundError)

    def come(address, started):
        started.set()
        while True:
            try:
                with Conn(address) as conn:
                    conn.send(encode("PING"))
                    outcomes.append(conn.sock.recv(100))
            except refused:
                return outcomes.append("refused")
            except OSError as error:
                outcomes.append(error)

    for _ in range(2):
        weir = farm.weir(redis, workers=2, drain_timeout=PATIENCE, **({"listen": "unix:{folder}/s"} if is_unix else {}))
        address, signals = weir.address, [threading.Event() for _ in range(8)]
        crowd = [threading.Thread(target=come, args=(address, started), daemon=True) for started in signals]
        for one, started in zip(crowd, signals):
            one.start()
            started.wait()
        weir.signal(signal.SIGTERM)
        for one in crowd:
            one.join(30)
        ended_well(weir)
    assert outcomes.count("refused") == 2 * 8
    assert set(outcomes) <= {b"", b"+PONG\r\n", "refused"}, [o for o in outcomes if isinstance(o, OSError)]


def test_the_reply_and_the_end_come_together(patient):
    """A client that checks its connection before it sends never sends in vain."""
    clients = 8
    served = threading.Semaphore(0)
    going = threading.Barrier(clients + 1, timeout=30)
    wrong = []

    def ask_until_closed(number):
        with patient.connect() as conn:
            going.wait()
            n = 0
            answered = time.monotonic()
            while not conn.is_closed():
                words = [f"{number}.{n}.{i}" for i in range(5)]
                conn.sock.sendall(pipeline(*[("ECHO", word) for word in words]))
                was_silent = time.monotonic() - answered > SILENCE
                try:
                    if [conn.read() for _ in words] != [word.encode() for word in words]:
                        wrong.append(f"{number}: another's reply")
                except Closed:
                    if not was_silent or conn.buffer:
                        wrong.append(f"{number}: closed after {n} pipelines")
                    return
                answered = time.monotonic()
                n += 1
                served.release()

    threads = [threading.Thread(target=ask_until_closed, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    going.wait()
    for _ in range(20 * clients):
        assert served.acquire(timeout=30)
    patient.signal(signal.SIGTERM)
    for thread in threads:
        thread.join(60)
    assert not wrong
    ended_well(patient)

@pytest.mark.parametrize("is_unix", [False, True], ids=["TCP", "unix"])
def test_no_request_is_lost_in_the_moment_of_the_end(is_unix, farm, redis):
    """A client that checks before it sends gets a reply. On a unix socket send() may also report
    that nothing was sent.
    """
    clients, outcomes = 16, []

    def ask_until_closed(address, going):
        with Conn(address) as conn:
            answered = time.monotonic()
            going.wait()
            while not conn.is_closed():
                was_silent = time.monotonic() - answered > SILENCE
                try:
                    conn.sock.sendall(encode("INCR", "n"))
                except BrokenPipeError:
                    return outcomes.append("not sent")
                if not conn.sock.recv(100):
                    return outcomes.append("silent" if was_silent and not is_unix else "lost")
                outcomes.append("answered")
                answered = time.monotonic()
            return outcomes.append("told")

    for _ in range(rounds(5)):
        weir = farm.weir(redis, workers=1, drain_timeout=PATIENCE, **({"listen": "unix:{folder}/s"} if is_unix else {}))
        going = threading.Barrier(clients + 1, timeout=30)
        crowd = [threading.Thread(target=ask_until_closed, args=(weir.address, going)) for _ in range(clients)]
        for one in crowd:
            one.start()
        going.wait()
        begun = len(outcomes)
        wait_until(lambda begun=begun: len(outcomes) > begun + 20 * clients, "all send")
        weir.signal(signal.SIGTERM)
        for one in crowd:
            one.join(30)
        ended_well(weir)
    assert set(outcomes) <= {"answered", "told", "silent", *(["not sent"] if is_unix else [])}
    assert int(redis.call("GET", "n")) == outcomes.count("answered")


def test_drain_timeout_closes_the_rest(farm, redis):
    weir = farm.weir(redis, drain_timeout="200ms")
    conns = [weir.connect() for _ in range(3)]
    conns[0].send(encode("BLPOP", "none", 0))
    assert conns[1].call("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
    assert conns[2].call("MULTI") == "OK"
    wait_until(lambda: redis.waiting()[0] == 1, "one blocks")
    weir.signal(signal.SIGTERM)
    ended_well(weir)
    weir.wait_for_log("3 clients")
    for conn in conns:
        assert conn.read_to_end() == b""
        conn.close()


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_second_signal_ends_it_at_once(second, farm, redis):
    weir = farm.weir(redis, drain_timeout="1h")
    with weir.connect() as a:
        a.send(encode("BLPOP", "none", 0))
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        told_to_stop(weir)
        weir.signal(second)
        ended_well(weir)
    weir.wait_for_log("at once")


def test_sigint_ends_it_at_once(farm, redis):
    weir = farm.weir(redis, drain_timeout="1h")
    with weir.connect() as a:
        a.send(encode("BLPOP", "none", 0))
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        weir.stop(signal.SIGINT)


def test_drain_timeout_0_ends_it_at_once(farm, redis):
    weir = farm.weir(redis, drain_timeout="0")
    with weir.connect() as a:
        assert a.call("MULTI") == "OK"
        weir.stop()


def test_readiness_fails_while_it_drains(farm, redis):
    weir = farm.weir(redis, drain_timeout=PATIENCE, sections="[admin]\nlisten = 127.0.0.1:0\n")
    base = re.search(r"(http://\S+)/metrics", weir.log())[1]
    with weir.connect() as a:
        a.send(encode("BLPOP", "list", 0))
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        told_to_stop(weir)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(base + "/readyz", timeout=10)
        assert refused.value.code == 503 and refused.value.read() == b"stopping\n"
        metrics = urllib.request.urlopen(base + "/metrics", timeout=10).read().decode()
        assert re.search(r"^weir_draining 1$", metrics, re.M)
        redis.call("RPUSH", "list", "x")
        assert a.read() == [b"list", b"x"]
    ended_well(weir)


# ---- clients that delay the stop, and operators that watch ----


OPERATORS = "[admin]\nsocket = {folder}/operator.sock\n"


def operator(weir):
    return Conn(str(weir.folder / "operator.sock"), timeout=10)


def test_the_log_says_who_is_waited_for(farm, redis):
    weir = farm.weir(redis, workers=2, drain_timeout="3s")
    conns = [weir.connect() for _ in range(5)]
    conns[0].send(encode("BLPOP", "none", 0))
    assert conns[1].call("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
    assert conns[2].ask("CLIENT SETNAME billing", "MULTI") == ["OK", "OK"]
    assert conns[3].call("WATCH", "k") == "OK"
    conns[4].send(b"*2\r\n$3\r\nGET\r\n$1\r\n")
    wait_until(lambda: redis.waiting()[0] == 1, "one blocks")
    weir.signal(signal.SIGTERM)
    said = wait_until(lambda: re.search(r"draining: (\d) clients are left, closed in [0-2]\.\d s: (.*)", weir.log()), "who")
    assert said[1] == "5" and said[2].endswith(", and 2 more")
    reasons = {"blocks in Redis", "subscribed", "in MULTI", "watches keys", "has sent part of a request"}
    named = re.findall(r"(127\.0\.0\.1:\d+)( name:billing)? \(([^)]*)\)", said[2])
    assert len(named) == 3 and {reason for _, _, reason in named} <= reasons
    ours = {"%s:%d" % conn.sock.getsockname() for conn in conns}
    assert {address for address, _, _ in named} <= ours
    assert all((name != "") == (reason == "in MULTI") for _, name, reason in named)
    for conn in conns[2:]:
        conn.close()
    said = wait_until(lambda: re.search(r"draining: 2 clients are left, .*: (.*)", weir.log()), "fewer")
    assert "(blocks in Redis)" in said[1] and "(subscribed)" in said[1] and "more" not in said[1]
    conns[0].close()
    said = wait_until(lambda: re.search(r"draining: 1 client is left, .* \(subscribed\)$", weir.log(), re.M), "one")
    conns[1].close()
    ended_well(weir)


def test_the_last_are_named_when_time_is_over(farm, redis):
    weir = farm.weir(redis, drain_timeout="600ms")
    with weir.connect() as a:
        assert a.call("MULTI") == "OK"
        weir.signal(signal.SIGTERM)
        ended_well(weir)
    assert re.search(r"drain-timeout is over: weir closes 1 clients with unfinished work: 127\.0\.0\.1:\d+ \(in MULTI\)", weir.log())


@pytest.mark.parametrize("workers", [1, 3])
def test_operators_come_and_ask_to_the_end(workers, farm, redis):
    weir = farm.weir(redis, workers=workers, drain_timeout=PATIENCE, sections=OPERATORS)
    with weir.connect() as held, operator(weir) as early:
        held.send(encode("BLPOP", "list", 0))
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        assert early.call("LIMIT", "MODE") == b"enforce"
        told_to_stop(weir)
        assert early.ask("LIMIT MODE", "SUBSCRIBE c")[0] == b"enforce"
        for _ in range(3 * workers):
            with operator(weir) as late:
                assert late.ask("LIMIT MODE shadow", "LIMIT MODE", "GET k")[1:] == [b"shadow", None]
        idle = operator(weir)
        redis.call("RPUSH", "list", "x")
        assert held.read() == [b"list", b"x"]
        ended_well(weir)
        assert rest(idle) == b""
        idle.close()
    assert "drain-timeout is over" not in weir.log(), "nobody waits for operators"
    assert not (weir.folder / "operator.sock").exists()


def test_nobody_waits_for_operators(farm, redis):
    weir = farm.weir(redis, drain_timeout="1h", sections=OPERATORS)
    with operator(weir) as a, operator(weir) as b:
        assert a.call("MULTI") == "OK"
        b.send(encode("BLPOP", "list", 0))
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        weir.signal(signal.SIGTERM)
        ended_well(weir)
