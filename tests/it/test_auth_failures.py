"""`auth-failures` counts a login from before Redis is asked until Redis has answered, whether the
client stays or not.

The test counts requests to Redis by Redis' own count of failed AUTH calls in INFO commandstats.
"""

import re
import select
import signal
import socket
import struct
import time

import pytest
from kit.harness import rounds, wait_until
from kit.limits import OPERATOR, tallies
from kit.reloading import reload
from kit.resp import Closed, Conn, Error, encode, pipeline

BARRED = Error("ERR too many failed logins, try again later")
LIMIT = "[policy default]\nauth-failures = 5/d\n"
WORDS = {
    "AUTH": ("AUTH", "alice", "{}"),
    "HELLO": ("HELLO", 3, "AUTH", "alice", "{}"),
    "short": ("AUTH", "{}"),
}


def words(form, password):
    return encode(*(password if word == "{}" else word for word in WORDS[form]))


@pytest.fixture
def locked(farm):
    """A Redis of the test's own: alice and the default user have the password pw."""
    server = farm.redis(password="pw")
    server.call("ACL", "SETUSER", "alice", "on", ">pw", "~*", "&*", "+@all")
    server.call("CONFIG", "RESETSTAT")
    return server


@pytest.fixture
def guarded(farm, locked, tmp_path):
    """Returns a function that starts weir with sections in front of that Redis. weir's own user
    needs no password.
    """

    (tmp_path / "password").write_text("any")

    def start(sections=LIMIT, **settings):
        login = {"upstream_user": "admin", "upstream_password_file": tmp_path / "password"}
        settings = {"workers": 4, **login, **settings}
        return farm.weir(locked, sections=sections + OPERATOR, **settings)

    return start


def tried(redis):
    """Returns how many logins Redis has refused."""
    with redis.connect() as conn:
        stats = conn.call("INFO", "commandstats").decode()
    found = re.search(r"cmdstat_auth:.*failed_calls=(\d+)", stats)
    return int(found[1]) if found else 0


def leave_by_reset(conn):
    conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


def answers(conns):
    """Returns the first reply on each connection."""
    replies = []
    for conn in conns:
        try:
            replies.append(conn.read())
        except (Closed, OSError):
            replies.append("closed")
        conn.close()
    return replies


def at_once(weir, data, n=100):
    """Opens n connections that send the same bytes."""
    conns = [weir.connect() for _ in range(n)]
    for conn in conns:
        conn.sock.sendall(data)
    return conns


def charged(weir):
    return tallies(weir)[0][1]


@pytest.mark.parametrize("form", WORDS)
def test_wrong_logins_at_once_try_the_allowance(form, guarded, locked):
    replies = answers(at_once(guarded(), words(form, "wrong")))
    assert tried(locked) == 5
    assert sum(reply.startswith("WRONGPASS") for reply in replies) == 5
    assert replies.count(BARRED) == 95


@pytest.mark.parametrize("form", WORDS)
def test_right_logins_at_once_all_come_in(form, guarded, locked):
    weir = guarded()
    replies = answers(at_once(weir, words(form, "pw")))
    assert all(not isinstance(reply, Error) and reply != "closed" for reply in replies), replies
    assert charged(weir) == 0


def test_right_and_wrong_logins_at_once(guarded, locked):
    """A wrong login uses up allowance and a right login uses none, whatever stands between them."""
    weir = guarded()
    conns = [weir.connect() for _ in range(60)]
    for i, conn in enumerate(conns):
        conn.sock.sendall(words("AUTH", "wrong" if i % 15 == 0 else "pw"))
    replies = answers(conns)
    assert [reply != "OK" for reply in replies] == [i % 15 == 0 for i in range(60)]
    assert (tried(locked), charged(weir)) == (4, 4)


@pytest.mark.parametrize("leave", [leave_by_reset, Conn.close], ids=["reset", "close"])
@pytest.mark.parametrize("form", ["AUTH", "HELLO"])
def test_clients_that_are_gone_are_charged(form, leave, guarded, locked):
    weir = guarded()
    for i in range(rounds(300)):
        conn = weir.connect()
        conn.sock.sendall(words(form, "wrong"))
        until = time.perf_counter() + i % 300 * 5e-6
        while time.perf_counter() < until:
            pass  # the login is not read yet, read, sent, or answered
        leave(conn)
    while charged(weir) < 5:
        with weir.connect() as conn:
            conn.call("AUTH", "alice", "wrong")
    with weir.connect() as conn:
        assert conn.call("AUTH", "alice", "pw") == BARRED
    assert tried(locked) == charged(weir) == 5


def test_logins_under_way_count_when_their_clients_are_gone(guarded, locked):
    """Redis does not answer: five logins are under way, the rest wait or their clients close. None
    is sent before an answer has come.
    """
    weir = guarded(handshake_timeout="1h")
    with weir.connect() as conn:  # auth lanes are open
        assert conn.call("AUTH", "alice", "pw") == "OK"
    locked.signal(signal.SIGSTOP)
    try:
        for conn in at_once(weir, words("AUTH", "wrong"), 50):
            leave_by_reset(conn)
        waiting = at_once(weir, words("AUTH", "wrong"), 20)
    finally:
        locked.signal(signal.SIGCONT)
    replies = answers(waiting)
    assert tried(locked) == charged(weir) == 5
    assert replies.count(BARRED) >= 15


def test_a_login_waits_at_most_for_the_handshake_timeout(guarded, locked):
    """The connection closes without a reply, and Redis is not asked."""
    weir = guarded(handshake_timeout="200ms", upstream_timeout="1h")
    with weir.connect() as conn:
        assert conn.call("AUTH", "alice", "pw") == "OK"
    locked.signal(signal.SIGSTOP)
    try:
        conns = at_once(weir, words("AUTH", "pw"), 20)
        wait_until(lambda: len(select.select([c.sock for c in conns], [], [], 0)[0]) == 15, "15 are closed")
    finally:
        locked.signal(signal.SIGCONT)
    replies = answers(conns)
    assert (replies.count("OK"), replies.count("closed")) == (5, 15)
    assert tried(locked) == 0


@pytest.mark.parametrize("is_gone", [False, True], ids=["", "gone"])
def test_a_lost_answer_is_charged(is_gone, guarded, locked):
    """Four logins are sent on four auth lanes. The fifth waits for a free auth lane, and then for
    Redis, which has restarted without passwords.
    """
    weir = guarded(workers=1)
    assert answers(at_once(weir, words("AUTH", "pw"), 40)) == ["OK"] * 40
    locked.signal(signal.SIGSTOP)
    conns = at_once(weir, words("AUTH", "pw"), 5)
    with weir.connect() as conn:
        conn.call("LIMIT", "STATUS")  # weir has read all earlier bytes
    for conn in conns:
        if is_gone:
            conn.close()
    locked.kill()
    wait_until(lambda: charged(weir) == 4, "four answers are lost")
    locked.start()
    with weir.connect() as conn:
        reply = conn.call("AUTH", "alice", "wrong")
        assert reply == BARRED or (reply.startswith("WRONGPASS") and conn.call("AUTH", "alice", "pw") == BARRED)


def test_every_refusal_is_charged(farm, redis):
    """Also the refusal that the default user has no password."""
    weir = farm.weir(redis, sections=LIMIT + OPERATOR)
    conns = at_once(weir, words("short", "any"), 20)
    replies = answers(conns)
    assert sum(reply.startswith("ERR AUTH") for reply in replies) == 5
    assert replies.count(BARRED) == 15


def test_logins_inside_multi_try_nothing(guarded, locked):
    """Such logins are refused. Redis is not asked, and nothing is charged."""
    weir = guarded(LIMIT)
    with weir.connect() as conn:
        assert conn.call("AUTH", "alice", "pw") == "OK"
        before = tried(locked)
        for _ in range(20):
            replies = conn.ask("MULTI", "AUTH alice wrong", "EXEC")
            assert "not allowed inside MULTI" in replies[1] and "EXECABORT" in replies[2]
        assert conn.call("AUTH", "alice", "pw") == "OK"
    assert tried(locked) == before
    assert charged(weir) == 0


def test_a_reload_while_logins_are_under_way(guarded, locked):
    """Logins under way count under the new limit, which lets two more waiting logins go."""
    weir = guarded(handshake_timeout="1h")
    with weir.connect() as conn:
        assert conn.call("AUTH", "alice", "pw") == "OK"
    locked.signal(signal.SIGSTOP)
    try:
        conns = at_once(weir, words("AUTH", "wrong"), 10)
        assert reload(weir, LIMIT.replace("5/d", "7/d") + OPERATOR.replace("{folder}", str(weir.folder)))
    finally:
        locked.signal(signal.SIGCONT)
    replies = answers(conns)
    assert sum(reply.startswith("WRONGPASS") for reply in replies) == tried(locked) == 7
    assert charged(weir) == 7


def test_logins_over_a_unix_socket(guarded, locked, tmp_path):
    path = str(tmp_path / "weir.sock")
    weir = guarded(listen=f"unix:{path}")
    conns = [Conn(path) for _ in range(40)]
    for conn in conns:
        conn.sock.sendall(words("AUTH", "wrong"))
    assert answers(conns).count(BARRED) == 35
    assert tried(locked) == 5


def test_addresses_of_the_proxy_protocol_count_apart(guarded, locked):
    """The address that the proxy announces is charged, not the proxy's address."""
    weir = guarded(listen="127.0.0.1:0 proxy", proxy_protocol_from="127.0.0.1")
    conns = [weir.connect() for _ in range(60)]
    for i, conn in enumerate(conns):
        header = f"PROXY TCP4 192.0.2.{i % 3} 127.0.0.1 4711 6390\r\n".encode()
        conn.sock.sendall(header + words("AUTH", "wrong"))
    replies = answers(conns)
    assert [replies[i::3].count(BARRED) for i in range(3)] == [15] * 3
    assert tried(locked) == 15
