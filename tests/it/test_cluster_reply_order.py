"""One client at several nodes of a cluster: plain commands go to the nodes of their keys, and
replies come in order.
"""

import random

import pytest

from kit.cluster import Cluster, weir_before
from kit.harness import Farm
from kit.resp import Error


@pytest.fixture(scope="module")
def made():
    farm = Farm()
    yield Cluster(farm, masters=3)
    farm.close()


@pytest.fixture(scope="module", params=[1, 2], ids=["1 worker", "2 workers"])
def weir(request, made):
    return weir_before(made, workers=request.param)


def keys_of(n, seed):
    chance = random.Random(seed)
    return [f"k{chance.randrange(1000)}" for _ in range(n)]


@pytest.mark.parametrize("protocol", [2, 3])
def test_pipelines_of_keys_at_all_nodes_are_answered_in_order(weir, protocol):
    with weir.connect() as conn:
        conn.call("HELLO", protocol)
        for size in 1, 2, 3, 16, 100, 1000:
            keys = keys_of(size, size)
            assert conn.ask(*[["SET", key, f"{key}:{n}"] for n, key in enumerate(keys)]) == ["OK"] * size
            last = {key: f"{key}:{n}".encode() for n, key in enumerate(keys)}
            assert conn.ask(*[["GET", key] for key in keys]) == [last[key] for key in keys]


def test_commands_on_one_key_run_in_their_order(weir):
    with weir.connect() as conn:
        keys = [f"order{n}" for n in range(10)]
        conn.ask(*[["DEL", key] for key in keys])
        calls = [["INCR", random.choice(keys)] for _ in range(500)]
        seen = {key: 0 for key in keys}
        for (_, key), value in zip(calls, conn.ask(*calls)):
            seen[key] += 1
            assert value == seen[key]


def test_what_weir_says_itself_stands_in_its_place(weir):
    with weir.connect() as conn:
        keys = keys_of(60, 7)
        conn.ask(*[["SET", key, key] for key in keys])
        calls, wanted = [], []
        for n, key in enumerate(keys):
            calls.append(["GET", key])
            wanted.append(key.encode())
            if n % 7 == 0:
                calls.append(["NO-SUCH-COMMAND-OF-REDIS"])
                wanted.append(Error)
            if n % 5 == 0:
                calls.append(["ECHO", f"e{n}"])
                wanted.append(f"e{n}".encode())
        for got, want in zip(conn.ask(*calls), wanted):
            assert isinstance(got, Error) if want is Error else got == want


def test_commands_that_need_a_lane_of_their_own_alternate_with_others(weir, made):
    with weir.connect() as conn:
        key = made.key_at(made.masters[0])
        others = keys_of(20, 3)
        conn.ask(*[["SET", other, other] for other in others])
        for _ in range(3):
            calls = [["GET", other] for other in others[:10]] + [["CLIENT", "GETNAME"], ["SET", key, "1"]]
            calls += [["GET", other] for other in others[10:]] + [["GET", key]]
            got = conn.ask(*calls)
            assert got[:10] == [other.encode() for other in others[:10]]
            assert got[11] == "OK" and got[12:-1] == [other.encode() for other in others[10:]] and got[-1] == b"1"


def test_a_client_that_ends_its_side_gets_all_replies(weir):
    with weir.connect() as conn:
        keys = keys_of(50, 11)
        conn.ask(*[["SET", key, key] for key in keys])
        conn.send(b"".join(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(key), key.encode()) for key in keys))
        conn.sock.shutdown(1)
        assert [conn.read() for _ in keys] == [key.encode() for key in keys]


def test_quit_behind_keys_at_all_nodes(weir):
    with weir.connect() as conn:
        keys = keys_of(30, 12)
        conn.ask(*[["SET", key, key] for key in keys])
        assert conn.ask(*[["GET", key] for key in keys], "QUIT") == [key.encode() for key in keys] + ["OK"]


def test_replies_that_the_client_does_not_want_to_hear(weir):
    with weir.connect() as conn:
        keys = keys_of(30, 13)
        conn.ask(*[["DEL", key] for key in keys])
        conn.send(b"*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n")
        conn.send(b"".join(b"*2\r\n$4\r\nINCR\r\n$%d\r\n%s\r\n" % (len(key), key.encode()) for key in keys))
        assert conn.call("CLIENT", "REPLY", "ON") == "OK"
        values = conn.ask(*[["GET", key] for key in keys])
        assert values == [b"%d" % keys.count(key) for key in keys]


def test_large_values_at_several_nodes_come_in_order(weir):
    with weir.connect() as conn:
        keys = [f"large{n}" for n in range(6)]
        values = [chr(97 + n) * (10_000 * (n + 1)) for n in range(6)]
        for key, value in zip(keys, values):
            assert conn.call("SET", key, value) == "OK"
        assert conn.ask(*[["GET", key] for key in keys * 3]) == [value.encode() for value in values * 3]


def test_users_are_asked_about_at_each_node(weir, made):
    for node in made.masters:
        assert node.call("ACL", "SETUSER", "alice", "on", ">secret", "~*", "+@all") == "OK"
    try:
        with weir.connect() as conn:
            assert conn.call("AUTH", "alice", "secret") == "OK"
            keys = keys_of(40, 14)
            assert conn.ask(*[["SET", key, key] for key in keys]) == ["OK"] * 40
            assert {conn.call("ACL", "WHOAMI")} == {b"alice"}
    finally:
        for node in made.masters:
            node.call("ACL", "DELUSER", "alice")


def test_a_node_that_refuses_the_user_answers_the_commands_of_its_slots(weir, made):
    first, second, third = made.masters
    for node in first, second:
        assert node.call("ACL", "SETUSER", "bob", "on", ">secret", "~*", "+@all") == "OK"
    home = [node for node in made.masters if node in (first, second)]
    try:
        with weir.connect() as conn:
            if conn.call("AUTH", "bob", "secret") != "OK":
                pytest.skip("the home node does not know the user")
            got = conn.ask(*[["SET", made.key_at(node), "1"] for node in (first, third, second)])
            assert got[0] == "OK" and got[2] == "OK" and str(got[1]).startswith("WRONGPASS"), got
            assert conn.call("GET", made.key_at(home[0])) == b"1"
    finally:
        for node in first, second:
            node.call("ACL", "DELUSER", "bob")


def test_many_clients_use_few_connections(weir, made):
    conns = [weir.connect() for _ in range(30)]
    try:
        for conn in conns:
            conn.ask(*[["SET", key, "1"] for key in keys_of(20, id(conn))])
        for node in made.masters:
            assert len(node.call("CLIENT", "LIST", "TYPE", "normal").decode().splitlines()) < 25
    finally:
        for conn in conns:
            conn.close()
