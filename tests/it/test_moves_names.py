"""The name of the upstream is followed: at the start, when a connection is lost, and from time to time."""

import socket
import time

import pytest
from kit.harness import MODE_IDS, MODES, wait_until
from kit.moving import NAME, At, Names, two

HURRY = {"WEIR_HURRY": "20"}  # a second is 50 ms


@pytest.fixture
def names(tmp_path):
    return Names(tmp_path)


@pytest.fixture(params=MODES, ids=MODE_IDS)
def follow(request, farm, names):
    """Starts a weir whose upstream is the name, at this port."""
    workers, lanes = request.param
    return lambda port, **settings: farm.weir(
        f"{NAME}:{port}", workers=workers, lanes=lanes, prefix=names.prefix, env=HURRY, **settings
    )


def test_another_address(farm, names, follow):
    """Clients that are connected go on at the new address; nothing is left at the old one."""
    first, second = two(farm)
    names.point(first)
    weir = follow(first.port)
    with weir.connect() as conn, weir.connect() as blocked:
        assert conn.call("GET", "who") == b"first"
        blocked.send(b"BLPOP list 0\r\n")
        wait_until(lambda: first.waiting()[0] == 1, "it blocks")
        names.point(second)
        wait_until(lambda: conn.call("GET", "who") == b"second", "the name is followed")
        assert first.waiting()[0] == 1  # it stays where it waits
        first.call("RPUSH", "list", "element")
        assert blocked.read() == [b"list", b"element"]
        assert blocked.call("GET", "who") == b"second"
        assert weir.serves()
        wait_until(lambda: first.info("connected_clients") == "1", "nothing is left at the old address")
    assert f"upstream {NAME}:{first.port} has moved from {first.upstream} to {second.upstream}" in weir.log()


def test_start_without_a_name(names, follow, farm):
    """weir starts, is not ready, says why, and serves as soon as the name is there."""
    (first,) = [farm._start(At(2))]
    weir = follow(first.port)
    assert "its name cannot be resolved" in weir.log() and ", but not ready: upstream" in weir.log()
    names.point(first)
    wait_until(weir.serves, "it serves at the address that has come")
    weir.wait_for_log(f"upstream {NAME}:{first.port} is at {first.upstream}")


@pytest.mark.moves
def test_all_addresses_are_tried(names, follow, farm):
    """The first refuses, the second is silent: the third serves, and the log tells what became of the others."""
    third = farm._start(At(4))
    with socket.socket() as silent:
        silent.bind(("127.0.0.3", third.port))
        silent.listen(0)
        with socket.create_connection(silent.getsockname()):  # nobody else gets in
            names.point("127.0.0.2", "127.0.0.3", third)
            weir = follow(third.port, connect_timeout="5s")
            assert weir.serves()
    assert f"is at {third.upstream}; tried in vain: 127.0.0.2:{third.port}: connection refused" in weir.log()


@pytest.mark.moves
def test_an_address_that_is_lost(names, follow, farm):
    """The next address of the name serves when the one in use refuses connections."""
    first, second = two(farm)
    names.point(first, second)
    weir = follow(first.port)
    with weir.connect() as conn:
        assert conn.call("GET", "who") == b"first"
        first.kill()
        wait_until(lambda: weir.connect().call("GET", "who") == b"second", "the other address serves")


@pytest.mark.moves
def test_a_killed_connection_moves_nothing(names, follow, farm):
    """weir's own connection is lost, its address is among those of the name, and answers: it stays."""
    first, second = two(farm)
    names.point(second, first)
    weir = follow(first.port)
    wait_until(weir.serves, "it serves")
    assert weir.connect().call("GET", "who") == b"second"
    names.point(first, second)
    for _ in range(3):
        second.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        wait_until(weir.serves, "it serves again")
        assert weir.connect().call("GET", "who") == b"second"
    assert "has moved" not in weir.log()


@pytest.mark.moves
def test_a_name_that_is_gone(names, follow, farm):
    """The last address stays in use while the name cannot be resolved, which the log says once."""
    first = farm._start(At(2))
    names.point(first)
    weir = follow(first.port)
    names.point()
    said = "its name cannot be resolved: Name or service not known; the last address stays in use: "
    weir.wait_for_log(said + first.upstream)
    with weir.connect() as conn:
        for _ in range(5):
            assert conn.call("PING") == "PONG"
            time.sleep(0.2)
    assert weir.log().count(said) == 1
