"""memory-limit: the steps that weir takes when clients make it buffer much, and that weir takes the
steps back.

weir itself counts what is measured, so sanitizers and allocators do not affect the result.
"""

import re
import signal
import threading

import pytest
from kit.harness import wait_until
from kit.resp import Conn, encode, pipeline
from test_admin_http import ADMIN, metrics, value

TOO_MANY = b"-ERR max number of clients reached\r\n"
LISTENER = {"listener": "127.0.0.1:0"}
HALVES = 40
HALF = 60_000
VALUE = b"x" * 1000
BATCH = 900  # requests: fewer than those that give a client a private lane
# bytes: weir stops at 512 KiB (docs/protocol.md); the last read and spare room of buffers are added
LITTLE = 1_000_000


def step(weir):
    return value(metrics(weir), "weir_memory_step")


def bytes_now(weir):
    return value(metrics(weir), "weir_memory_bytes")


def read_from_clients(page):
    return value(page, "weir_net_input_bytes_total", side="client")


def halves(weir):
    """Returns clients that have sent most of a request, which weir buffers."""
    conns = [weir.connect() for _ in range(HALVES)]
    assert [conn.call("PING") for conn in conns] == ["PONG"] * HALVES
    for conn in conns:
        conn.send(encode("SET", "half", "x" * HALF)[:HALF])
    return conns


def finish(conns):
    for conn in conns:
        conn.send(encode("SET", "half", "x" * HALF)[HALF:])
    assert [conn.read() for conn in conns] == ["OK"] * len(conns)


@pytest.mark.parametrize("workers", [1, 2])
def test_newcomers_are_refused_and_let_in_again(workers, farm, redis):
    weir = farm.weir(redis, workers=workers, memory_limit="2mb", sections=ADMIN + "socket = {folder}/admin.sock\n")
    with weir.connect() as other:
        assert other.call("SET", "k", "v") == "OK"
        assert step(weir) == 0 and value(metrics(weir), "weir_memory_limit_bytes") == 2 << 20
        conns = halves(weir)
        wait_until(lambda: step(weir) == 3, "it has come to the last step")
        assert bytes_now(weir) >= HALVES * HALF
        with weir.connect() as more:
            assert more.read_to_end() == TOO_MANY
        with Conn(str(weir.folder / "admin.sock")) as operator:
            assert operator.call("PING") == "PONG", "operators are let in always"
        for i in range(50):
            assert other.ask(f"SET k {i}", "GET k") == ["OK", b"%d" % i], "who is there goes on"
        assert value(metrics(weir), "weir_clients_stalled") == 0, "nobody has anything to read"
        finish(conns)
        wait_until(lambda: step(weir) == 0, "it is over")
        with weir.connect() as more:
            assert more.call("GET", "half") == b"x" * HALF
        wait_until(
            lambda: value(metrics(weir), "weir_connections_rejected_total", reason="memory", **LISTENER) == 1, "it is counted"
        )
        wait_until(lambda: "memory: step 0, enough again" in weir.log(), "its end is told")
        steps = [line.split("memory: step ")[1][0] for line in weir.log().splitlines() if "memory: step " in line]
        assert steps.count("3") == 1 and steps[-1] == "0" and len(steps) <= 6
        for conn in conns:
            conn.close()


def read_batches(conn, n_batches):
    """Reads the batches complete and in order."""
    for i in range(n_batches):
        assert [conn.read() for _ in range(BATCH)] == [VALUE] * BATCH
        assert conn.read() == b"%d" % i


def test_who_does_not_read_is_not_read_from(farm, redis):
    """Four clients ask for 15 MB each, in steps, and read nothing. weir stops reading from them
    long before it buffers all of that.
    """
    n_hogs, n_batches = 4, 15
    redis.call("SET", "k", VALUE)
    assert redis.call("GET", "k") == VALUE
    weir = farm.weir(redis, workers=1, memory_limit="8mb", sections=ADMIN)

    def answered():
        return int(re.match(r"calls=(\d+)", redis.info("cmdstat_get"))[1]) - 1

    def stalled():
        return value(metrics(weir), "weir_clients_stalled")

    def has_looked(n_writes):
        """True if weir has measured its memory after n writes of the other client, or if all
        clients are stalled, which needs no measurement.
        """
        found = metrics(weir)
        seen = value(found, "weir_commands_total", class_="write", result="forwarded")
        return seen >= n_writes or value(found, "weir_clients_stalled") == n_hogs

    with weir.connect() as other:
        hogs = [weir.connect() for _ in range(n_hogs)]
        for i in range(n_batches):
            for hog in hogs:
                hog.send(encode("GET", "k") * BATCH + encode("ECHO", i))
            wait_until(lambda: answered() >= n_hogs * BATCH * (i + 1) or stalled(), "all is answered, or stalled", 60)
            for _ in range(50):  # iterations of weir's loop in which it could read more
                assert other.call("SET", "j", i) == "OK"
            wait_until(lambda: has_looked(50 * (i + 1)), "weir has looked how much it keeps")
        wait_until(stalled, "they are stalled")
        for i in range(100):
            assert other.ask(f"SET j {i}", "ECHO x") == ["OK", b"x"], "who reads goes on"
        assert bytes_now(weir) < 20 << 20, "a third of what they have asked for"
        assert " is closed" not in weir.log()
        for hog in hogs:
            read_batches(hog, n_batches)
        wait_until(lambda: step(weir) == 0, "there is room again")
        wait_until(lambda: stalled() == 0, "and nobody stalled")
        assert [hog.call("PING") for hog in hogs] == ["PONG"] * n_hogs
        for hog in hogs:
            hog.close()


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_calls_that_are_not_answered_are_counted(lanes, farm):
    """Open calls take memory too. weir does not read from a client with many of them, and reads
    again as soon as Redis answers.
    """
    own = farm.redis()
    n_hogs, n_calls = 20, 5000
    weir = farm.weir(own, workers=1, lanes=lanes, memory_limit="2mb", sections=ADMIN)
    hogs = [weir.connect() for _ in range(n_hogs)]
    assert [hog.ask("WATCH w", "PING") for hog in hogs] == [["OK", "PONG"]] * n_hogs
    before = bytes_now(weir)
    own.signal(signal.SIGSTOP)
    threads = [threading.Thread(target=hog.send, args=((encode("PING") + encode("UNWATCH")) * n_calls,)) for hog in hogs]
    for thread in threads:
        thread.start()
    wait_until(lambda: step(weir) == 3, "it is seen")
    own.signal(signal.SIGCONT)
    for hog in hogs:
        assert [hog.read() for _ in range(2 * n_calls)] == ["PONG", "OK"] * n_calls
    for thread in threads:
        thread.join()
    wait_until(lambda: step(weir) == 0, "there is room again")
    wait_until(lambda: bytes_now(weir) < before + (1 << 20), "and it has gone back")
    with weir.connect() as more:
        assert more.call("PING") == "PONG"
    for hog in hogs:
        hog.close()


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_the_memory_of_calls_is_bounded(lanes, farm):
    """One client has at most an eighth of the free memory, doubled by the growing of a ring."""
    own = farm.redis()
    weir = farm.weir(own, workers=1, lanes=lanes, memory_limit="8mb", sections=ADMIN)
    with weir.connect() as hog:
        assert hog.ask("WATCH w", "PING") == ["OK", "PONG"]
        before = bytes_now(weir)
        own.signal(signal.SIGSTOP)
        n_calls = 600_000
        sender = threading.Thread(target=hog.send, args=(encode("PING") * n_calls,))
        sender.start()
        wait_until(lambda: bytes_now(weir) > before + (1 << 19), "it has sent much")
        for _ in range(50):
            assert bytes_now(weir) < before + (3 << 20)
        own.signal(signal.SIGCONT)
        assert hog.read_bytes(n_calls * 7) == b"+PONG\r\n" * n_calls
        sender.join()


@pytest.mark.parametrize("command", ["BLPOP l 0", "XREAD BLOCK 0 STREAMS s $", "WAIT 1 0"])
@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_little_is_read_behind_a_command_that_blocks(command, lanes, farm):
    """Neither weir nor Redis, which stores what it reads, has much of it."""
    own = farm.redis()
    weir = farm.weir(own, workers=1, lanes=lanes, sections=ADMIN)
    n_calls = 400_000
    with weir.connect() as hog, own.connect() as other:
        hog.ask("SET k v", "PING")
        before, read_before = bytes_now(weir), read_from_clients(metrics(weir))
        sender = threading.Thread(target=hog.send, args=(pipeline(command) + encode("PING") * n_calls,))
        sender.start()
        wait_until(lambda: own.waiting()[0] == 1, "it blocks")
        snapshots = {}

        def reads_no_more():
            """True if three successive snapshots agree; weir takes one a second."""
            page = metrics(weir)
            assert value(page, "weir_memory_bytes") < before + LITTLE
            sizes = re.findall(rb"qbuf=(\d+)", other.call("CLIENT", "LIST"))
            assert max(map(int, sizes)) < 2_000_000
            snapshots[value(page, "weir_snapshot_timestamp_seconds")] = read_from_clients(page)
            last = [snapshots[taken] - read_before for taken in sorted(snapshots)][-3:]
            assert last[-1] < LITTLE
            return len(last) == 3 and last[0] == last[2] > 1000

        wait_until(reads_no_more, "weir has read what it reads", 30)
        number = re.search(rb"id=(\d+) .*cmd=" + command.split()[0].lower().encode(), other.call("CLIENT", "LIST"))[1]
        assert other.call("CLIENT", "UNBLOCK", number) == 1
        hog.read()
        assert hog.read_bytes(n_calls * 7) == b"+PONG\r\n" * n_calls
        sender.join()


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_long_pipelines_that_nobody_reads_at_first(lanes, farm, redis):
    n_hogs, n_batches = 12, 20
    redis.call("SET", "k", VALUE)
    weir = farm.weir(redis, workers=2, lanes=lanes, memory_limit="2mb", sections=ADMIN)
    requests = b"".join(encode("GET", "k") * BATCH + encode("ECHO", i) for i in range(n_batches))
    hogs = [weir.connect(timeout=120) for _ in range(n_hogs)]
    assert [hog.call("PING") for hog in hogs] == ["PONG"] * n_hogs
    senders = [threading.Thread(target=hog.send, args=(requests,)) for hog in hogs]
    for sender in senders:
        sender.start()
    wait_until(lambda: value(metrics(weir), "weir_clients_stalled") > 0, "they are stalled", 60)
    for hog in hogs:
        read_batches(hog, n_batches)
        hog.close()
    for sender in senders:
        sender.join()
    wait_until(lambda: step(weir) == 0, "there is room again")


def test_who_is_stalled_may_leave(farm, redis):
    redis.call("SET", "k", b"x" * 1000)
    weir = farm.weir(redis, workers=1, memory_limit="1mb", sections=ADMIN)
    with weir.connect() as other:
        assert other.call("PING") == "PONG"
        hogs = [weir.connect() for _ in range(4)]
        requests = encode("GET", "k") * 10_000
        for hog in hogs:
            hog.sock.setblocking(False)

        def are_stalled():
            for hog in hogs:
                try:
                    hog.sock.send(requests)
                except BlockingIOError:
                    pass
            return value(metrics(weir), "weir_clients_stalled") > 0

        wait_until(are_stalled, "they are stalled", 60)
        for hog in hogs:
            hog.close()
        wait_until(lambda: step(weir) == 0, "what they had is free again")
        assert value(metrics(weir), "weir_clients_stalled") == 0
        assert other.call("PING") == "PONG"


def test_the_limit_changes_with_a_reload(farm, redis):
    weir = farm.weir(redis, workers=1, sections=ADMIN)
    text = weir.config.read_text()
    conns = halves(weir)

    def reload(lines):
        weir.config.write_text(text.replace("[weir]\n", "[weir]\n" + lines))
        before = weir.log().count("configuration reloaded")
        weir.signal(signal.SIGHUP)
        wait_until(lambda: weir.log().count("configuration reloaded") > before, "it is reloaded")

    wait_until(lambda: bytes_now(weir) >= HALVES * HALF, "it is counted without a limit too")
    assert step(weir) == 0
    reload("memory-limit = 2mb\n")
    wait_until(lambda: step(weir) == 3, "there is too little")
    reload("memory-limit = 1gb\n")
    wait_until(lambda: step(weir) == 0, "there is enough")
    reload("memory-limit = 2mb\n")
    wait_until(lambda: step(weir) == 3, "there is too little again")
    reload("")
    wait_until(lambda: step(weir) == 0, "there is no limit")
    finish(conns)
    for conn in conns:
        conn.close()
