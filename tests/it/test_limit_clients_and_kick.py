"""LIMIT CLIENTS lists connected clients; LIMIT KICK closes the connections of a subject."""

import time

from kit.decisions import speaking
from kit.harness import wait_until
from kit.limits import OPERATOR, login, operator, order, plain
from kit.resp import Error, encode

FIELDS = "address name user library age_s idle_s policy subject lane in_flight bytes_in bytes_out waits".split()


def rows_of(reply):
    return [row if isinstance(row, dict) else dict(zip(row[::2], row[1::2])) for row in plain(reply)]


def is_closed(conn):
    conn.sock.settimeout(10)
    try:
        return conn.sock.recv(1) == b""
    except ConnectionResetError:
        return True


def test_who_is_connected(limited, users, protocol):
    weir = limited("[policy u]\nmatch = user:*\nread = 900/d\n" + OPERATOR)
    with login(weir, "alice") as a, weir.connect() as b, speaking(operator(weir), protocol) as op:
        a.ask("CLIENT SETNAME etl", "CLIENT SETINFO LIB-NAME redis-x", "CLIENT SETINFO LIB-VER 1.2", "SET k v", "GET k")
        b.send(encode("BLPOP", "nothing", "0"))

        def told():
            return rows_of(op.call("LIMIT", "CLIENTS"))

        wait_until(lambda: any(row["in_flight"] for row in told()), "BLPOP is under way")
        rows = told()
        assert [list(row) for row in rows] == [FIELDS] * 3
        found = {row["subject"]: row for row in rows}
        alice = found["user:alice"]
        assert alice["address"] == "127.0.0.1:%d" % a.sock.getsockname()[1]
        assert (alice["name"], alice["user"], alice["policy"], alice["in_flight"]) == ("etl", "alice", "u", 0)
        assert alice["library"] in ("redis-x 1.2", ""), "empty where Redis does not know SETINFO"
        assert 0 <= alice["idle_s"] <= alice["age_s"] <= 60
        assert alice["bytes_in"] > 100 and alice["bytes_out"] > 10
        other = found["ip:127.0.0.1"]
        assert (other["user"], other["policy"], other["lane"], other["in_flight"]) == ("", None, "private", 1)
        assert found["ip:unix"]["address"] == "unix", "the operator"
        assert [row["user"] for row in rows_of(op.call("LIMIT", "CLIENTS", "FOR", "user:alice"))] == ["alice"]
        assert op.call("LIMIT", "CLIENTS", "FOR", "user:bob") == []


def test_idle_and_age(farm, redis):
    weir = farm.weir(redis, workers=2, sections=OPERATOR)
    with weir.connect() as a, weir.connect() as b:
        a.call("PING")
        began = time.monotonic()

        def told():
            b.call("PING")
            found = rows_of(order(weir, "CLIENTS", "FOR", "ip:127.0.0.1"))
            return {row["address"].split(":")[1]: row for row in found}

        mine, other = str(a.sock.getsockname()[1]), str(b.sock.getsockname()[1])
        wait_until(lambda: told()[mine]["idle_s"] >= 2, "it is idle")
        found = told()
        assert found[other]["idle_s"] < found[mine]["idle_s"] <= time.monotonic() - began + 1
        assert found[other]["age_s"] >= 2


def test_the_answer_is_bounded(farm, redis):
    weir = farm.weir(redis, workers=2, sections=OPERATOR, max_clients=1200, unauthenticated=0)
    conns = [weir.connect() for _ in range(1003)]
    conns[-1].call("PING")
    wait_until(lambda: plain(order(weir, "CLIENTS", "FOR", "ip:127.0.0.1"))[-1] == {"more": 3}, "all have come")
    assert len(order(weir, "CLIENTS", "FOR", "ip:127.0.0.1")) == 1001
    assert order(weir, "KICK", "ip:127.0.0.1") == 1003
    for conn in conns:
        assert is_closed(conn)
        conn.close()


def test_kick(limited, users):
    weir = limited("[policy u]\nmatch = user:*\nread = 900/d\nconnections = 4\n" + OPERATOR)
    mine = [login(weir, "alice") for _ in range(4)]
    mine[0].ask("MULTI", "SET k v")
    mine[1].send(encode("BLPOP", "nothing", "0"))
    mine[2].call("SUBSCRIBE", "news")
    with login(weir, "bob") as bob:
        assert order(weir, "KICK", "user:alice") == 4
        for conn in mine:
            assert is_closed(conn)
            conn.close()
        assert bob.call("GET", "k") is None
        assert order(weir, "KICK", "user:alice") == 0
        with login(weir, "alice") as again:
            assert again.call("GET", "k") is None, "who is kicked may come again"
        weir.wait_for_log("4 connections of user:alice closed, by the operators' socket")
        assert any(event["kind"] == "kick" for event in plain(order(weir, "LOG")))


def test_who_kicks_itself_hears_the_answer(farm, redis, users):
    weir = farm.weir(redis, workers=2, sections="[policy ops]\nmatch = user:alice\nadmin = yes\n" + OPERATOR)
    with login(weir, "alice") as a, login(weir, "alice") as b:
        assert a.call("LIMIT", "KICK", "user:alice") == 1
        assert is_closed(b)
        assert a.call("PING") == "PONG"


def test_many_ask_while_clients_come_and_go(farm, redis):
    weir = farm.weir(redis, workers=2, sections=OPERATOR)
    with operator(weir) as one, operator(weir) as two:
        for _ in range(60):
            conns = [weir.connect() for _ in range(3)]
            one.send(encode("LIMIT", "CLIENTS") + encode("LIMIT", "KICK", "ip:127.0.0.1"))
            two.send(encode("LIMIT", "CLIENTS") + encode("LIMIT", "SET", "none", "read", "1/s"))
            assert isinstance(one.read(), list) and isinstance(one.read(), int)
            assert isinstance(two.read(), list) and isinstance(two.read(), Error)
            for conn in conns:
                conn.close()
        with operator(weir) as gone:
            gone.send(encode("LIMIT", "CLIENTS"))
        assert len(rows_of(one.call("LIMIT", "CLIENTS", "FOR", "ip:unix"))) >= 2


ERRORS = [
    ("CLIENTS x", "ERR syntax error, unexpected 'x'"),
    ("CLIENTS FOR", "ERR syntax error, an argument is missing after 'FOR'"),
    ("CLIENTS FOR user:x y", "ERR syntax error, unexpected 'y'"),
    ("CLIENTS FOR usr:x", "ERR no such subject: usr:x (did you mean user:x?)"),
    ("KICK usr:x", "ERR no such subject: usr:x (did you mean user:x?)"),
    ("KICK key:x", "ERR commands name such subjects by key: connections do not belong to them"),
    ("CLIENTS FOR key:x", "ERR commands name such subjects by key: connections do not belong to them"),
    ("KICK", "ERR wrong number of arguments for 'limit|kick' command"),
    ("KICK user:free-*", "ERR no such subject: user:free-*: write one subject, not a pattern"),
    ("CLIENTS FOR user:free-*", "ERR no such subject: user:free-*: write one subject"),
    ("STATUS FOR user:free-*", "ERR no such subject: user:free-*: write one subject"),
    ("EXPLAIN GET k FOR user:free-*", "ERR no such subject: user:free-*: write one subject"),
    ("FORGIVE user:free-*", "ERR no such subject: user:free-*: write one subject"),
    ("CLIENTS user:ann", "ERR syntax error, unexpected 'user:ann' (write FOR user:ann)"),
    ("STATUS user:ann", "ERR syntax error, unexpected 'user:ann' (write FOR user:ann)"),
    ("STATUS FOR", "ERR syntax error, an argument is missing after 'FOR'"),
    ("EXPLAIN FOR user:ann", "ERR syntax error, a command is missing before 'FOR'"),
    ("EXPLAIN FOR user:ann GET k", "ERR syntax error, a command is missing before 'FOR'"),
    ("EXPLAIN GET x FOR user:ann EX", "ERR syntax error, unexpected 'EX'"),
    ("KICK user:x y", "ERR wrong number of arguments for 'limit|kick' command"),
]


def test_wrong_orders_are_errors(farm, redis):
    weir = farm.weir(redis, workers=1, sections=OPERATOR, identity="key:1, user, ip")
    with operator(weir) as op:
        for command, error in ERRORS:
            reply = op.call("LIMIT", *command.split())
            assert isinstance(reply, Error) and reply.startswith(error), (command, reply)
