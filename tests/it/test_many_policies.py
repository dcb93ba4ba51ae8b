"""Many policies and many clients: which policy binds a client, and that a reload binds every client
anew.

A worker binds 128 clients in one iteration of its loop: with several hundred clients a reload takes
several iterations.
"""

import random
import signal
import socket

import pytest
from kit.crowd import RST
from kit.harness import run_weir, wait_until
from kit.iterations import Iterations
from kit.limits import OPERATOR, operator, order, plain, status
from kit.reloading import reload
from kit.resp import Error, encode

CLIENTS = 700
STEP = 128  # WALK_STEP in src/base/list.h


def rows_of(reply):
    return [row if isinstance(row, dict) else dict(zip(row[::2], row[1::2])) for row in plain(reply)]


@pytest.fixture
def crowd(request):
    """Opens connections to a weir; each has had a reply."""
    conns = []

    def come(weir, n=CLIENTS):
        new = [weir.connect() for _ in range(n)]
        conns.extend(new)
        for conn in new:
            conn.send(encode("PING"))
        assert [conn.read() for conn in new] == ["PONG"] * n
        return new

    yield come
    for conn in conns:
        conn.close()


def asked(conns, *command):
    for conn in conns:
        conn.send(encode(*command))
    return [conn.read() for conn in conns]


# ---- which policy binds ----


def test_the_first_of_a_thousand_policies_binds(farm, redis):
    """Names, prefixes, networks and patterns: the first policy in the file binds, whatever its
    kind.
    """
    kinds = ("name:app-{n}", "name:app-{n}*", "ip:10.{n}.0.0/16", "name:app-?{n}", "name:*-{n}")
    shuffled = random.Random(12)
    terms = [shuffled.choice(kinds).format(n=shuffled.randrange(250)) for _ in range(999)]
    lines = [f"[policy p{i}]\nmatch = {term}\nread = {1000 + i}/s\n" for i, term in enumerate(terms)]
    weir = farm.weir(redis, sections="".join(lines) + "[policy default]\nread = 1/s\n")

    def fits(term, name):
        kind, _, pattern = term.partition(":")
        head, star, tail = pattern.partition("*")
        if kind == "ip":
            return False
        if "?" in pattern:
            return len(name) == len(pattern) and name[:4] == pattern[:4] and name[5:] == pattern[5:]
        return name.startswith(head) and name.endswith(tail) and len(name) >= len(head + tail) if star else name == pattern

    with weir.connect() as conn:
        for name in [f"app-{n}" for n in range(0, 300, 7)] + ["app-", "appx", "x-17"]:
            conn.call("CLIENT", "SETNAME", name)
            first = next((f"p{i}" for i, term in enumerate(terms) if fits(term, name)), "default")
            found = plain(conn.call("LIMIT", "STATUS"))
            assert found[found.index("policy") + 1] == first, name


def test_patterns_that_are_compared_one_by_one(tmp_path):
    """More than 64 patterns are slow, which -t reports. There may be many names, prefixes and
    networks.
    """
    config = tmp_path / "weir.conf"
    text = "".join(f"[policy p{i}]\nmatch = name:*-{i}\nall = 1/s\n" for i in range(65))
    config.write_text(text)
    told = run_weir("-t", "--strict", "-c", config)
    assert told.returncode != 0 and "the match lines have 65 patterns" in told.stderr
    config.write_text(text.replace("name:*-", "name:free-"))
    assert run_weir("-t", "--strict", "-c", config).returncode == 0


# ---- reloads ----


@pytest.mark.parametrize("n_workers", [1, 2])
def test_new_rules_bind_every_client_once_they_are_answered(n_workers, farm, redis, crowd):
    weir = farm.weir(redis, workers=n_workers, sections="[policy default]\nread = 100000/s\n" + OPERATOR)
    conns = crowd(weir)
    assert order(weir, "SET", "default", "write", "deny") == "OK"
    assert asked(conns, "SET", "k", "v") == [Error("NOPERM denied by policy default")] * CLIENTS
    assert order(weir, "UNSET", "default", "write") == "OK"
    assert asked(conns, "SET", "k", "v") == ["OK"] * CLIENTS
    assert asked(conns, "GET", "k") == [b"v"] * CLIENTS


def test_an_iteration_binds_few_clients(tmp_path, farm, redis, crowd):
    """A worker locks two mutexes for each client that it binds. By that count the work of one
    iteration does not grow with the clients.
    """
    iterations = Iterations(tmp_path)
    text = "[policy default]\nread = 100000/s\n" + OPERATOR
    weir = farm.weir(redis, workers=1, sections=text, env=iterations.env)
    conns = crowd(weir)
    with operator(weir) as op:
        for change in (("SET", "default", "read", "999/s"), ("BLOCK", "ip:10.0.0.1"), ("MODE", "SHADOW"), ("RELOAD",)):
            iterations.clear()
            assert op.call("LIMIT", *change).startswith("OK")
            _, locks = iterations.largest()
            assert STEP < locks < 3 * STEP, change
    assert asked(conns, "GET", "none") == [None] * CLIENTS


def test_new_rules_while_clients_send(farm, redis, crowd):
    """A command during a reload is decided by the old or the new rules, and by the new rules from
    the reload's reply on.
    """
    weir = farm.weir(redis, workers=2, sections="[policy default]\nread = 100000/s\n" + OPERATOR)
    conns = crowd(weir)
    denied = Error("NOPERM denied by policy default")
    with operator(weir) as op:
        for _ in range(5):
            op.send(encode("LIMIT", "SET", "default", "write", "deny"))
            assert set(asked(conns, "SET", "k", "v")) <= {"OK", denied}
            assert op.read().startswith("OK")
            assert set(asked(conns, "SET", "k", "v")) == {denied}
            op.send(encode("LIMIT", "UNSET", "default", "write"))
            for conn in conns[::3]:
                conn.send(encode("GET", "none"))
            assert op.read().startswith("OK")
            assert [conn.read() for conn in conns[::3]] == [None] * len(conns[::3])
            assert set(asked(conns, "SET", "k", "v")) == {"OK"}


def test_reloads_one_right_after_the_other(farm, redis, crowd):
    """A reload waits until the one before has bound all clients. The last one counts."""
    weir = farm.weir(redis, workers=2, sections="[policy default]\nread = 100000/s\n" + OPERATOR)
    conns = crowd(weir)
    with operator(weir) as op:
        for i in range(10):
            op.send(encode("LIMIT", "SET", "default", "write", f"{i + 1}/h"))
        assert [op.read() for _ in range(10)] == ["OK"] * 10
        for i in range(10):
            text = f"[policy p{i}]\nmatch = ip:127.0.0.0/8\nread = {1000 + i}/s\n" + OPERATOR
            assert reload(weir, text.replace("{folder}", str(weir.folder)))
        rows = rows_of(op.call("LIMIT", "CLIENTS", "FOR", "ip:127.0.0.1"))
        assert {row["policy"] for row in rows} == {"p9"}
    assert len(rows) == CLIENTS
    assert asked(conns, "GET", "none") == [None] * CLIENTS


def test_connections_are_counted_through_new_rules(farm, redis, crowd):
    """Connections are counted anew without a decision: connected clients stay, and one more client
    is refused.
    """
    weir = farm.weir(redis, workers=2, sections="[policy default]\nread = 100000/s\n" + OPERATOR)
    conns = crowd(weir)
    assert asked(conns, "GET", "none") == [None] * CLIENTS
    assert order(weir, "SET", "default", "connections", str(CLIENTS)) == "OK"
    with weir.connect() as late:
        assert late.call("GET", "none") == Error("ERR max number of clients reached")
    assert asked(conns, "GET", "none") == [None] * CLIENTS
    assert order(weir, "SET", "default", "connections", str(CLIENTS + 1)) == "OK"
    with weir.connect() as late:
        assert late.call("GET", "none") is None
    for conn in conns:
        conn.close()
    wait_until(lambda: len(rows_of(order(weir, "CLIENTS", "FOR", "ip:127.0.0.1"))) == 0, "they have gone")
    with weir.connect() as one:
        assert status(one, 1)["remaining"] == CLIENTS


def test_clients_that_leave_and_come_meanwhile(farm, redis, crowd):
    weir = farm.weir(redis, workers=2, sections="[policy default]\nconnections = 5000\n" + OPERATOR)
    conns = crowd(weir)
    with operator(weir) as op:
        for i in range(5):
            op.send(encode("LIMIT", "SET", "default", "read", f"{1000 + i}/s"))
            for conn in conns[i::5]:
                conn.close()
            late = [weir.connect() for _ in range(50)]
            assert op.read() == "OK"
            assert asked(late, "GET", "none") == [None] * 50
            for conn in late:
                conn.close()
        wait_until(lambda: rows_of(op.call("LIMIT", "CLIENTS", "FOR", "ip:127.0.0.1")) == [], "all have gone")


def test_clients_that_are_reset_with_calls_under_way(farm, crowd):
    """Open calls of reset clients are charged by the rules that bound the client, and then by the
    new rules: no in-flight permit is lost.
    """
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, sections="[policy default]\ninflight = 5000\n" + OPERATOR)
    with operator(weir) as op:
        for i in range(4):
            conns = crowd(weir)
            redis.signal(signal.SIGSTOP)
            for conn in conns:
                conn.send(encode("GET", "none"))
            for conn in conns[::2]:
                conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST)
            op.send(encode("LIMIT", "SET", "default", "inflight", str(5000 + i)))
            for conn in reversed(conns[::2]):
                conn.close()
            assert op.read() == "OK"
            redis.signal(signal.SIGCONT)
            assert [conn.read() for conn in conns[1::2]] == [None] * (CLIENTS // 2)

            def places(most=5000 + i):
                return plain(op.call("LIMIT", "STATUS", "FOR", "ip:127.0.0.1"))["limits"][0]["remaining"] == most

            wait_until(places, "all calls are answered")
            for conn in conns:
                conn.close()


def test_delayed_commands_are_asked_again(farm, redis, crowd):
    """Each of several hundred commands that wait for a slow limit goes once that limit is removed.
    """
    weir = farm.weir(redis, workers=2, sections="[policy default]\nwrite = 1/m over delay 1d\n" + OPERATOR)
    conns = crowd(weir, 300)
    for conn in conns:
        conn.send(encode("SET", "k", "v"))
    standing = lambda: plain(order(weir, "STATUS", "FOR", "ip:127.0.0.1"))["limits"][0]  # noqa: E731
    wait_until(lambda: standing()["reset_after_ms"] > 299 * 60000, "all but one wait")
    assert order(weir, "UNSET", "default", "write") == "OK"
    assert [conn.read() for conn in conns] == ["OK"] * 300


# ---- long reports ----


def test_each_client_is_told_of_once(farm, redis, crowd):
    weir = farm.weir(redis, workers=2, sections=OPERATOR)
    conns = crowd(weir)
    for n, conn in enumerate(conns):
        assert conn.call("CLIENT", "SETNAME", f"c{n}") == "OK"
    rows = rows_of(order(weir, "CLIENTS", "FOR", "ip:127.0.0.1"))
    assert sorted(row["name"] for row in rows) == sorted(f"c{n}" for n in range(CLIENTS))


def test_all_connections_of_a_subject_are_closed(farm, redis, crowd):
    weir = farm.weir(redis, workers=2, sections=OPERATOR)
    conns = crowd(weir)
    assert order(weir, "KICK", "ip:127.0.0.1") == CLIENTS
    assert rows_of(order(weir, "CLIENTS", "FOR", "ip:127.0.0.1")) == []
    assert conns


def test_reports_stand_in_order(farm, redis):
    """In the order of the pipeline, also reports that another thread makes."""
    weir = farm.weir(redis, sections="[policy default]\nread = 5/s\n" + OPERATOR)
    with operator(weir) as op:
        for command in ("LIMIT LIST", "PING", "LIMIT TOP", "LIMIT BLOCKS", "LIMIT DIFF", "LIMIT MODE", "PING"):
            op.send(encode(*command.split()))
        found = [op.read() for _ in range(7)]
    assert [row["limit"] for row in rows_of(found[0])] == ["default/read"]
    assert found[1] == "PONG" and found[6] == "PONG" and found[5] == b"enforce"
    assert found[3] == [] and found[4] == []
