"""Which addresses weir dials: upstream-map, and never its own listeners."""

import socket

from kit.harness import wait_until
from kit.moving import NAME, Names, two


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def test_an_address_that_is_mapped(farm, redis):
    """weir dials the address that upstream-map names, and calls the server by the configured one."""
    weir = farm.weir("192.0.2.7:7000", upstream_map=f"192.0.2.7:7000=127.0.0.1:{redis.port}")
    with weir.connect() as conn:
        assert conn.call("SET", "key", "value") == "OK"
    assert redis.call("GET", "key") == b"value"
    assert "forwarding to 192.0.2.7:7000 with" in weir.log()


def test_a_name_that_is_mapped(farm, redis):
    """A name on the announced side is not looked up."""
    weir = farm.weir("nowhere.invalid:7000", upstream_map=f"NOWHERE.invalid:7000=127.0.0.1:{redis.port}")
    assert weir.serves()


def test_a_name_that_leads_to_weir(farm, tmp_path):
    """weir does not connect to its own listener, says so, and serves when the name leads elsewhere."""
    names = Names(tmp_path)
    first, _ = two(farm)
    names.point("127.0.0.1")
    weir = farm.weir(
        f"{NAME}:{first.port}", listen=f"127.0.0.1:{first.port}", prefix=names.prefix, env={"WEIR_HURRY": "20"}
    )
    assert "its name cannot be resolved: weir itself listens at its address" in weir.log()
    names.point(first)
    wait_until(weir.serves, "it serves at the other address")


def test_a_name_that_leads_to_every_address(farm, tmp_path):
    """A listener at 0.0.0.0 is not dialled by any address of this machine."""
    names = Names(tmp_path)
    names.point("127.0.0.9")
    port = free_port()
    weir = farm.weir(f"{NAME}:{port}", listen=f"0.0.0.0:{port}", prefix=names.prefix)
    assert "its name cannot be resolved: weir itself listens at its address" in weir.log()
