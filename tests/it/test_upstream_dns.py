"""weir resolves the upstream's name at the start, when a connection is lost, and from time to time.
"""

import os
import socket
import time

import pytest
from kit.admin import ADMIN, get, stats
from kit.browser import page_of
from kit.harness import MODE_IDS, MODES, wait_until
from kit.limits import OPERATOR, order, plain
from kit.moving import NAME, At, Names, TlsAt, two
from kit.server import has_tls
from kit.tls import Authority

HURRY = {"WEIR_HURRY": "20"}  # a second is 50 ms


@pytest.fixture
def names(tmp_path):
    return Names(tmp_path)


@pytest.fixture(params=MODES, ids=MODE_IDS)
def follow(request, farm, names):
    """Returns a function that starts a weir with the name as upstream, at this port."""
    workers, lanes = request.param
    return lambda port, **settings: farm.weir(
        f"{NAME}:{port}", workers=workers, lanes=lanes, prefix=names.prefix, env=HURRY, **settings
    )


def test_another_address(farm, names, follow):
    """Connected clients go on at the new address. Nothing stays at the old one."""
    first, second = two(farm)
    names.point(first)
    weir = follow(first.port)
    with weir.connect() as conn, weir.connect() as blocked:
        assert conn.call("GET", "who") == b"first"
        blocked.send(b"BLPOP list 0\r\n")
        wait_until(lambda: first.waiting()[0] == 1, "it blocks")
        names.point(second)
        wait_until(lambda: conn.call("GET", "who") == b"second", "the name is followed")
        assert first.waiting()[0] == 1  # a blocked client stays
        first.call("RPUSH", "list", "element")
        assert blocked.read() == [b"list", b"element"]
        assert blocked.call("GET", "who") == b"second"
        assert weir.serves()
        wait_until(lambda: first.info("connected_clients") == "1", "nothing is left at the old address")
    assert f"upstream {NAME}:{first.port} has moved from {first.upstream} to {second.upstream}" in weir.log()


def test_start_without_a_name(names, follow, farm):
    """weir starts, is not ready, says why, and serves as soon as the name resolves."""
    (first,) = [farm._start(At(2))]
    weir = follow(first.port)
    assert "its name cannot be resolved" in weir.log() and ", but not ready: upstream" in weir.log()
    names.point(first)
    wait_until(weir.serves, "it serves at the address that has come")
    weir.wait_for_log(f"upstream {NAME}:{first.port} is at {first.upstream}")


@pytest.mark.moves
def test_all_addresses_are_tried(browser, names, follow, farm):
    """The first address refuses, the second is silent, and the third serves. The log tells the
    result of each.
    """
    third = farm._start(At(4))
    with socket.socket() as silent:
        silent.bind(("127.0.0.3", third.port))
        silent.listen(0)
        with socket.create_connection(silent.getsockname()):  # no further connection is accepted
            names.point("127.0.0.2", "127.0.0.3", third)
            weir = follow(third.port, connect_timeout="5s", sections=ADMIN + OPERATOR)
            assert weir.serves()
        said = f"is at {third.upstream}; failed before: 127.0.0.2:{third.port}: connection refused"
        assert said in weir.log()
        wait_until(lambda: stats(weir)["upstream"]["nodes"][0]["in_use"] == third.upstream, "the address in use is shown")
        (node,) = stats(weir)["upstream"]["nodes"]
        assert (node["address"], node["role"]) == (f"{NAME}:{third.port}", "master")
        assert [(one["address"], one["why"][:18]) for one in node["addresses"]] == [
            (f"127.0.0.2:{third.port}", "connection refused"),
            (f"127.0.0.3:{third.port}", ""),
            (third.upstream, ""),
        ]
        shown = f"{NAME}:{third.port}, {third.upstream}; 127.0.0.2:{third.port}: connection refused"
        assert page_of(browser, weir).fields["upstream-address"] == shown
        labels = f'upstream="{NAME}:{third.port}",address="{third.upstream}",role="master"'
        assert f"weir_upstream_info{{{labels}}} 1\n" in get(weir, "/metrics")[2]
        assert any(said in str(plain(event)) for event in order(weir, "LOG", 10))


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
    """weir's control connection is lost. The address still belongs to the name, and answers: weir
    stays there.
    """
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
    """The last address stays in use while the name cannot be resolved. The log says that once."""
    first = farm._start(At(2))
    names.point(first)
    weir = follow(first.port)
    names.point()
    said = "its name cannot be resolved: Name or service not known; weir keeps using the last address: "
    weir.wait_for_log(said + first.upstream)
    with weir.connect() as conn:
        for _ in range(5):
            assert conn.call("PING") == "PONG"
            time.sleep(0.2)
    assert weir.log().count(said) == 1


@pytest.mark.moves
@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_tls_checks_the_name_wherever_it_leads(farm, names, tmp_path, lanes):
    """A certificate for the name is valid at each address, and one for an address is valid at none.
    """
    if not has_tls():
        pytest.skip("this redis-server is built without TLS")
    ca = Authority(tmp_path)
    good = ca.issue("good", "/CN=redis", f"DNS:{NAME}")
    bad = ca.issue("bad", "/CN=redis", "IP:127.0.0.3")
    first = farm._start(TlsAt(2, ca, good))
    second = farm._start(TlsAt(3, ca, bad, tls_port=first.tls_port))
    third = farm._start(TlsAt(4, ca, good, tls_port=first.tls_port))
    names.point(first)
    upstream = f"tls:{NAME}:{first.tls_port}"
    weir = farm.weir(upstream, lanes=lanes, prefix=names.prefix, env=HURRY, upstream_tls_ca_file=ca.cert)
    with weir.connect() as conn:
        assert conn.call("SET", "key", "1") == "OK"
        names.point(second)
        wait_until(lambda: "none of its other addresses answers" in weir.log(), "the second is not believed")
        assert conn.call("SET", "key", "2") == "OK" and first.call("GET", "key") == b"2"
        names.point(third)
        wait_until(lambda: conn.call("SET", "key", "3") == "OK" and third.call("GET", "key") == b"3", "the third is")


@pytest.mark.moves
def test_a_look_up_that_hangs(farm, follow, names, tmp_path):
    """A hanging look-up delays neither the start, nor clients, nor the stop: the hosts file is a
    FIFO without a writer.
    """
    first = farm._start(At(2))
    os.unlink(names.path)
    os.mkfifo(names.path)
    weir = follow(first.port)
    assert ", but not ready" in weir.log()
    began = time.monotonic()
    with weir.connect() as conn:
        assert not weir.serves() and conn.call("LIMIT", "STATUS") is not None
    weir.stop()
    assert time.monotonic() - began < 5


@pytest.mark.moves
def test_addresses_that_are_not_allowed(farm, names, follow):
    """weir connects to no address outside upstream-allow."""
    first, second = two(farm)
    names.point(second)
    weir = follow(first.port, upstream_allow="127.0.0.2, 10.0.0.0/8")
    assert "its name cannot be resolved: upstream-allow does not contain its address" in weir.log()
    names.point(second, first)
    wait_until(weir.serves, "the other address serves")
    with weir.connect() as conn:
        assert conn.call("GET", "who") == b"first"
