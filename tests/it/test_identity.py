"""Which connections share a limit: addresses and networks, listeners, names, keys; and more
subjects than the table holds.
"""

import socket

import pytest
from kit.harness import wait_until
from kit.limits import OPERATOR, limit_of, login, order, passed, plain, remaining, tallies
from kit.resp import Conn, Error, encode


def connect_from(address, source):
    """Returns a connection from the given address."""
    conn = Conn.__new__(Conn)
    conn.buffer = bytearray()
    conn.sock = socket.create_connection(address, 15, (source, 0))
    return conn


def subject_of(conn):
    return plain(conn.call("LIMIT", "STATUS"))[1]


# ---- addresses ----


def test_neighbours_in_a_network_are_one(limited):
    weir = limited("[policy default]\nread = 3/d\n", identity="ip/24", listen="0.0.0.0:0")
    address = ("127.0.0.1", weir.address[1])
    neighbours = [connect_from(address, f"127.0.0.{i}") for i in (2, 3, 250)]
    assert passed(conn.call("GET", "k") for conn in neighbours * 2) == 3
    with connect_from(address, "127.0.1.2") as other:
        assert passed(other.ask(*["GET k"] * 5)) == 3
        assert subject_of(other) == "ip:127.0.1.0/24"
    for conn in neighbours:
        assert subject_of(conn) == "ip:127.0.0.0/24"
        conn.close()


def test_addresses_are_apart(limited):
    weir = limited("[policy here]\nmatch = ip:127.0.0.0/24\nread = 3/d\n", listen="0.0.0.0:0")
    address = ("127.0.0.1", weir.address[1])
    with connect_from(address, "127.0.0.2") as a, connect_from(address, "127.0.0.3") as b:
        with connect_from(address, "127.0.1.2") as outside:
            assert passed(a.ask(*["GET k"] * 5)) == passed(b.ask(*["GET k"] * 5)) == 3
            assert passed(outside.ask(*["GET k"] * 5)) == 5


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
        return True
    except OSError:
        return False


@pytest.mark.skipif(not has_ipv6(), reason="there is no IPv6 on this machine")
def test_families_are_apart(limited):
    weir = limited(
        "[policy four]\nmatch = ip:127.0.0.0/8\nread = 3/d\n[policy six]\nmatch = ip:::1\nread = 2/d\n",
        listen="127.0.0.1:0, [::1]:0",
    )
    with Conn(weir.addresses[0]) as four, Conn(weir.addresses[1]) as six:
        with Conn(("::ffff:127.0.0.1", weir.addresses[0][1])) as mapped:
            assert passed(four.ask(*["GET k"] * 2) + mapped.ask(*["GET k"] * 3)) == 3
            assert subject_of(mapped) == "ip:127.0.0.1"
        assert passed(six.ask(*["GET k"] * 5)) == 2
        assert subject_of(six) == "ip:::1"


@pytest.mark.skipif(not has_ipv6(), reason="there is no IPv6 on this machine")
def test_a_network_of_the_other_family_does_not_name(limited):
    """ip6/64 applies to no IPv4 address, nor ip/24 to an IPv6 address: the next source names the
    subject.
    """
    weir = limited("[policy default]\nread = 3/d\n", listen="127.0.0.1:0, [::1]:0", identity="ip6/64, ip/8")
    with Conn(weir.addresses[0]) as four, Conn(weir.addresses[1]) as six:
        assert subject_of(four) == "ip:127.0.0.0/8"
        assert subject_of(six) == "ip:::/64"


def test_unix_sockets_have_no_address(limited):
    weir = limited("[policy default]\nread = 3/d\n", listen="127.0.0.1:0, unix:{folder}/weir.sock")
    with Conn(weir.addresses[0]) as tcp, Conn(weir.addresses[1]) as a, Conn(weir.addresses[1]) as b:
        assert passed(tcp.ask(*["GET k"] * 5)) == 3
        assert passed(a.ask(*["GET k"] * 2) + b.ask(*["GET k"] * 3)) == 3
        assert subject_of(a) == "ip:unix"


# ---- listeners, names ----


def test_listeners_are_matched_by_their_address(limited):
    weir = limited(
        "[policy socket]\nmatch = listener:unix:*\nread = 5/d\n[policy default]\nread = 3/d\n",
        listen="127.0.0.1:0, unix:{folder}/a.sock, unix:{folder}/b.sock",
        identity="user, listener",
    )
    tcp, a, b = weir.addresses
    for address, wanted in ((tcp, 3), (a, 5), (b, 5)):
        with Conn(address) as one, Conn(address) as two:
            assert passed(one.ask(*["GET k"] * 4) + two.ask(*["GET k"] * 4)) == wanted
            assert subject_of(one).startswith("listener:")


def test_names_are_escaped(farm, redis):
    weir = farm.weir(redis, workers=1, sections="[policy default]\nread = 2/d\n" + OPERATOR, identity="name, ip")
    with weir.connect() as a, weir.connect() as b:
        a.call("CLIENT", "SETNAME", "50%/a")
        assert subject_of(a) == "name:50%25/a"
        b.call("CLIENT", "SETNAME", "x" * 1000)
        assert len(subject_of(b)) <= 320
        assert passed(a.ask(*["GET k"] * 4)) == 2
        rest = plain(order(weir, "STATUS", "FOR", "name:50%25/a"))["limits"][0]["remaining"]
        assert rest == 0
        assert order(weir, "FORGIVE", "name:50%25/a") == 1
        assert passed(a.ask(*["GET k"] * 4)) == 2


def test_a_subject_outlives_its_connections(limited, users):
    weir = limited("[policy default]\nread = 4/d\n[policy u]\nmatch = user:*\nread = 3/d\n" + OPERATOR)
    counts = [0, 0]
    for _ in range(4):
        with weir.connect() as a:
            counts[0] += passed(a.ask(*["GET k"] * 2))
            a.call("AUTH", "alice", "pw")
            counts[1] += passed(a.ask(*["GET k"] * 2))
        assert order(weir, "RELOAD") == "OK"
    assert counts == [4, 3]


# ---- keys ----


def test_the_key_names_the_subject(limited):
    weir = limited("[policy default]\nall = 3/d\n" + OPERATOR, identity="key:1, ip")
    with weir.connect() as a, weir.connect() as b:
        assert passed(a.ask(*["SET acme:1 x", "GET acme:2", "DEL acme", "GET acme:1:2", "LPUSH acme:l x"])) == 3
        assert passed(b.ask("GET acme:1", "GET other:1", "GET other:1", "GET other:2", "GET other:3")) == 3
        assert passed(a.ask("GET :x", "GET x", "GET ''", "GET 'a", "DBSIZE", "DBSIZE", "DBSIZE", "DBSIZE", "DBSIZE")) == 7
        limits = plain(order(weir, "STATUS", "FOR", "key:acme"))["limits"]
        assert limits[0]["remaining"] == 0
        assert order(weir, "FORGIVE", "key:acme") == 1
        assert passed(b.ask(*["GET acme:1"] * 5)) == 3


def test_two_segments_of_the_key(limited):
    weir = limited("[policy default]\nwrite = 2/d\n", identity="key:2, ip")
    with weir.connect() as a:
        assert passed(a.ask("SET a:b:c 1", "SET a:b:d 1", "SET a:b 1", "SET a:c:c 1", "SET a:c 1", "SET a 1", "SET a 1")) == 6


def test_a_key_may_belong_to_another_policy(limited):
    weir = limited(
        "[policy hot]\nmatch = key:hot:*\nall = 2/d\n[policy default]\nall = 4/d\n" + OPERATOR, identity="user, ip"
    )
    with weir.connect() as a:
        replies = a.ask("GET hot:1", "SET hot:2 x", "GET hot:1", "EVAL return{} 1 hot:x", "XREAD STREAMS hot:s 0")
        assert [limit_of(reply) for reply in replies] == [None, None, *["hot/all"] * 3]
        replies = a.ask("GET cold", "GET cold:hot:1", "DBSIZE", "EVAL return{} 0", "GET cold")
        assert [limit_of(reply) for reply in replies] == [None] * 4 + ["default/all"]
    assert [row[:4] for row in tallies(weir)] == [("hot/all", 2, 0, 3), ("default/all", 4, 0, 1)]


def test_where_the_key_stands(limited):
    """The key is not always the word after the command's name."""
    weir = limited("[policy default]\nall = 1/d\n", identity="key:1, ip")
    commands = [
        "EVAL return{} 2 k{i}:1 x", "XREAD COUNT 1 STREAMS k{i} 0", "OBJECT ENCODING k{i}", "ZUNION 1 k{i}",
        "BLPOP k{i} 0.01", "MSET k{i} v other v", "BITOP AND k{i} x y", "XGROUP CREATE k{i} g $ MKSTREAM",
    ]  # fmt: skip
    with weir.connect() as a:
        for i, command in enumerate(commands):
            words = command.replace("{i}", str(i)).split()
            assert limit_of(a.call(*words)) is None, command
            assert limit_of(a.call("GET", f"k{i}:z")) == "default/all", command
        a.send(encode("SET", "large:1", b"x" * 1_000_000) * 2)
        assert [a.read() == "OK", limit_of(a.read())] == [True, "default/all"]


def test_calls_in_flight_belong_to_the_connection(limited):
    """Whatever the keys of the calls are."""
    weir = limited("[policy default]\ninflight = 2\n", identity="key:1, ip")
    with weir.connect() as a:
        for i in range(5):
            assert a.ask("SET a:1 x", "GET b:1") == ["OK", None], i
            assert a.call("DBSIZE") == 1
            assert remaining(a) == 2


def test_calls_in_flight_where_a_key_belongs_to_another_policy(limited):
    weir = limited("[policy hot]\nmatch = key:hot:*\ninflight = 2\n[policy default]\ninflight = 3\n")
    with weir.connect() as a:
        for i in range(8):
            assert a.call("GET", "hot:1") is None, i
            assert a.call("GET", "cold") is None, i
        assert remaining(a) == 3


def test_bytes_belong_to_the_connection(limited):
    """The connection's debt binds every command, whatever the keys of the command are."""
    weir = limited("[policy default]\nbytes-in = 1000/1000d\n", identity="key:1, ip")
    with weir.connect() as a:
        replies = [a.call("SET", f"{key}:1", b"x" * 600) for key in "abcd"]
        assert [limit_of(reply) for reply in replies] == [None, None, *["default/bytes-in"] * 2]


def test_a_key_that_is_out_of_sight_escapes_nobody(limited, redis):
    """The key is beyond the buffered part of a request. No other subject is charged, and the
    request does not pass.
    """
    weir = limited("[policy default]\nall = 2/d\n" + OPERATOR, identity="key:1, ip")
    script = b"--" + b"x" * (1 << 20) + b"\nreturn 1"
    hidden = Error("ERR the arguments before the key are too long: limits need the key")
    with weir.connect() as a:
        assert a.call("EVAL", script, 1, "a:1") == hidden
        assert a.call("GET", b"a:" + b"x" * (1 << 20)) == hidden
        assert tallies(weir)[0][1:] == (0, 0, 0, 0)
        assert a.ask("MULTI") == ["OK"]
        assert a.call("EVAL", script, 1, "a:1") == hidden
        assert a.call("EXEC").startswith("EXECABORT")
        assert a.call("EVAL", "return 1", 1, "a:1") == 1
        assert a.call("SET", "a:2", b"x" * (1 << 20)) == "OK"
        assert limit_of(a.call("SET", "a:3", b"x" * (1 << 20))) == "default/all"
        assert a.call("EVAL", script, 0, "a:1") == hidden, "whether it is a key is out of sight too"
        assert a.call("EVAL", script, 0) == 1
    weir = limited("[policy default]\nall = 2/d\n")
    with weir.connect() as a:
        assert a.call("EVAL", script, 1, "a:1") == 1


# ---- too many subjects ----


def test_too_many_subjects_share_one(farm, redis):
    weir = farm.weir(
        redis, workers=2, sections="[policy default]\nread = 3/d\n" + OPERATOR, identity="name, ip", max_subjects=10
    )
    counts = []
    for i in range(20):
        with weir.connect() as a:
            a.call("CLIENT", "SETNAME", f"n{i}")
            counts.append(passed(a.ask(*["GET k"] * 5)))
            assert subject_of(a) in (f"name:n{i}", "overflow")
    assert 5 <= counts.count(3) <= 11, "some had their own, one was the first of the rest"
    assert counts[-1] == 0
    wait_until(lambda: "max-subjects" in weir.log(), "it is told")
    with weir.connect() as a:
        a.call("CLIENT", "SETNAME", "n0")
        assert passed(a.ask("GET k")) == 0, "debtors are not forgotten"
    told = [e for e in plain(order(weir, "LOG", 50)) if "max-subjects" in e["text"]]
    assert [e["kind"] for e in told] == ["subjects"], "once, however many share it"
    assert weir.log().count("max-subjects is reached") == 1


def test_too_many_keys_leave_connections_alone(farm, redis, users):
    """Subjects of keys have a cap of their own."""
    sections = "[policy k]\nmatch = key:*\nread = 1/d\n[policy default]\nall = 5/d\n" + OPERATOR
    weir = farm.weir(redis, workers=1, sections=sections, identity="user, key:1, ip", max_subjects=10)
    with weir.connect() as a:
        replies = a.ask(*[f"GET k{i}" for i in range(50)])
        assert 5 <= passed(replies) <= 11
        assert passed(a.ask(*["DBSIZE"] * 8)) == 5
    for user in ("alice", "bob"):
        with login(weir, user) as b:
            assert subject_of(b) == f"user:{user}"
            assert passed(b.ask(*["DBSIZE"] * 8)) == 5


def test_those_without_debt_make_room(farm, redis):
    weir = farm.weir(
        redis, workers=1, sections="[policy default]\nread = 100/s\n" + OPERATOR, identity="name, ip", max_subjects=10
    )
    for i in range(60):
        with weir.connect() as a:
            a.call("CLIENT", "SETNAME", f"n{i}")
            assert a.call("GET", "k") is None
            wait_until(lambda: remaining(a) == 100, "its debt is paid")
            assert subject_of(a) == f"name:n{i}"
    assert "max-subjects" not in weir.log()
