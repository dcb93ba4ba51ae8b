"""Which addresses weir connects to: upstream-map, and never a listener of weir's own."""

import os
import signal
import socket

import pytest
from kit.fake_sentinel import FakeSentinel
from kit.harness import wait_until
from kit.moving import NAME, At, Names, two
from kit.sentinel import NAME as MASTER
from kit.sentinel import SECONDS


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def test_an_address_that_is_mapped(farm, redis):
    """weir connects to the address in upstream-map, and reports the server by the configured
    address.
    """
    weir = farm.weir("192.0.2.7:7000", upstream_map=f"192.0.2.7:7000=127.0.0.1:{redis.port}")
    with weir.connect() as conn:
        assert conn.call("SET", "key", "value") == "OK"
    assert redis.call("GET", "key") == b"value"
    assert "forwarding to 192.0.2.7:7000 with" in weir.log()


def test_a_name_that_is_mapped(farm, redis):
    """A name on the announced side of upstream-map is not resolved."""
    weir = farm.weir("nowhere.invalid:7000", upstream_map=f"NOWHERE.invalid:7000=127.0.0.1:{redis.port}")
    assert weir.serves()


def test_a_name_that_leads_to_weir(farm, tmp_path):
    """weir does not connect to its own listener, and logs that. weir serves once the name resolves
    to another address.
    """
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
    """weir does not connect to its own listener at 0.0.0.0, by any address of this machine."""
    names = Names(tmp_path)
    names.point("127.0.0.9")
    port = free_port()
    weir = farm.weir(f"{NAME}:{port}", listen=f"0.0.0.0:{port}", prefix=names.prefix)
    assert "its name cannot be resolved: weir itself listens at its address" in weir.log()


# ---- addresses from a sentinel ----


def sentinel(farm, master, **how):
    return farm._start(FakeSentinel(master=master, **how))


def named(fake):
    return f"sentinel:{MASTER}@127.0.0.1:{fake.port}"


def test_a_master_that_is_mapped(farm, redis):
    """upstream-map applies to addresses from a sentinel, and to the sentinel itself."""
    fake = sentinel(farm, ("192.0.2.7", 7000))
    rows = f"192.0.2.7:7000=127.0.0.1:{redis.port}, sentinel.invalid:26379=127.0.0.1:{fake.port}"
    weir = farm.weir(f"sentinel:{MASTER}@sentinel.invalid:26379", upstream_map=rows)
    wait_until(weir.serves, "the master is served")


def test_a_master_outside_of_the_networks(farm):
    """A server outside upstream-allow gets no connection, and so no password."""
    outside, inside = farm._start(At(2)), farm._start(At(3))
    fake = sentinel(farm, outside.address)
    came = int(outside.info("total_connections_received"))
    weir = farm.weir(named(fake), upstream_allow="127.0.0.1, 127.0.0.3")
    weir.wait_for_log("upstream-allow does not contain its address")
    assert "not ready" in weir.log()
    assert int(outside.info("total_connections_received")) == came + 1  # the test's own connection
    fake.says(inside.address, epoch=2)
    wait_until(weir.serves, "a server inside is served", SECONDS)


def test_a_password_that_changes_is_read_at_a_reload(farm, redis, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("one\n")
    secret.chmod(0o600)
    fake = sentinel(farm, ("127.0.0.1", redis.port), password="one", user="watcher")
    weir = farm.weir(named(fake), sentinel_user="watcher", sentinel_password_file=secret)
    wait_until(weir.serves, "weir logs in")
    secret.write_text("two\n")
    # weir reads a file only after 200 ms without a change, as it may be half written
    os.utime(secret, (0, 0))
    weir.signal(signal.SIGHUP)
    weir.wait_for_log("sentinel-password-file has a new password")
    fake.password = "two"
    fake.end_connections()
    asked = fake.n_asked("SENTINEL")
    wait_until(lambda: fake.n_asked("SENTINEL") > asked, "weir logs in with the other password", SECONDS)


@pytest.mark.parametrize("announced", ["127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1"])
def test_a_sentinel_that_leads_to_weir(announced, farm):
    """weir does not connect to its own listener, logs that, and is not ready."""
    fake = sentinel(farm, ("192.0.2.7", 1))
    port = free_port()
    fake.says((announced, port))
    weir = farm.weir(named(fake), listen=f"127.0.0.1:{port}")
    weir.wait_for_log("weir itself listens at its address")
    assert "not ready" in weir.log()
