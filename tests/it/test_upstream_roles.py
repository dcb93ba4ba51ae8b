"""weir gives up a master that becomes a replica. weir keeps an upstream that always was a replica,
or that a script calls one.
"""

import re
import time

import pytest
from kit.harness import MODE_IDS, MODES, wait_until
from kit.moving import NAME, At, LoggedInAt, Names, two
from kit.resp import Closed

HURRY = {"WEIR_HURRY": "4"}  # a second is 250 ms


@pytest.fixture
def names(tmp_path):
    return Names(tmp_path)


@pytest.fixture(params=MODES, ids=MODE_IDS)
def follow(request, farm, names):
    """Returns a function that starts a weir with the name as upstream, at this port."""
    workers, lanes = request.param
    return lambda port, **settings: farm.weir(
        f"{NAME}:{port}", workers=workers, lanes=lanes, prefix=names.prefix, **{"env": HURRY, **settings}
    )


def calls(server, command):
    found = re.search(rf"cmdstat_{command}:calls=(\d+)", server.call("INFO", "commandstats").decode())
    return int(found[1]) if found else 0


def demote(old, new):
    """Makes the second server the master, and the first its replica."""
    assert old.call("REPLICAOF", new.ip, new.port) == "OK"


def two_with_users(farm):
    """Two servers that want a login."""
    acl = ["--user", "default", "off", "--user", "app", "on", ">pw", "~*", "&*", "+@all", "--user", "admin", "on", "nopass", "~*", "+@all"]
    first = farm._start(LoggedInAt(2, *acl))
    return first, farm._start(LoggedInAt(3, *acl, port=first.port))


def ends(conn):
    """True if the connection is closed, after any replies."""
    try:
        while True:
            conn.read()
    except TimeoutError:
        return False
    except (Closed, OSError):
        return True


def test_a_demoted_master(farm, names, follow):
    """Lanes to the demoted master close, clients that wait there are closed, and weir resolves the
    name.
    """
    first, second = two(farm)
    names.point(first)
    weir = follow(first.port)
    with weir.connect() as conn, weir.connect() as blocked, weir.connect() as subscribed, weir.connect() as queueing:
        assert conn.call("SET", "key", "1") == "OK"
        blocked.send(b"BLPOP list 0\r\n")
        assert subscribed.call("SUBSCRIBE", "channel")
        assert queueing.ask("WATCH key", "MULTI", "SET key 2") == ["OK", "OK", "QUEUED"]
        wait_until(lambda: first.waiting()[0] == 1, "it blocks")
        demote(first, second)
        names.point(second)
        wait_until(lambda: conn.call("SET", "key", "2") == "OK", "writes go to the new master")
        assert second.call("GET", "key") == b"2"
        assert str(blocked.read()).startswith("UNBLOCKED")
        assert ends(blocked) and ends(subscribed) and ends(queueing)
        wait_until(lambda: first.call("CLIENT", "LIST", "TYPE", "pubsub") == b"", "nothing is subscribed there")
        assert weir.serves()
    assert f"upstream {NAME}:{first.port}: {first.upstream} is no longer a master but a replica" in weir.log()


@pytest.mark.moves
def test_limits_follow_a_failover(farm, names, follow):
    """The demoted master refuses LIMIT's scripts, and the new master runs them."""
    first, second = two(farm)
    names.point(first)
    weir = follow(first.port)
    with weir.connect() as conn:
        assert conn.call("CL.THROTTLE", "key", 9, 10, 3600)[0] == 0
        demote(first, second)
        names.point(second)

        def is_decided():
            reply = conn.call("CL.THROTTLE", "key", 9, 10, 3600)
            return isinstance(reply, list)

        wait_until(is_decided, "the new master decides")
        assert second.call("DBSIZE") == 2  # with the key that names the server


@pytest.mark.moves
def test_a_demoted_master_that_keeps_its_name(farm, names, follow):
    """As directly: clients that reconnect read there, and writes are refused, until the name
    resolves to another address.
    """
    first, second = two(farm)
    names.point(first)
    weir = follow(first.port)
    with weir.connect() as conn, weir.connect() as subscribed:
        assert subscribed.call("SUBSCRIBE", "channel")
        demote(first, second)
        assert conn.call("SET", "key", "1").startswith("READONLY")
        assert ends(subscribed)
        wait_until(lambda: conn.call("GET", "who") in (b"first", b"second"), "it reads")
        assert conn.call("SET", "key", "1").startswith("READONLY")
        names.point(second)
        wait_until(lambda: conn.call("SET", "key", "1") == "OK", "writes go to the new master")
    assert weir.log().count("is no longer a master but a replica") == 1


@pytest.mark.moves
def test_a_master_is_preferred(farm, names, follow):
    """Of several addresses, weir uses that of a replica only where no master answers."""
    first, second = two(farm)
    demote(first, second)
    names.point(first, second)
    weir = follow(first.port)
    with weir.connect() as conn:
        assert conn.call("SET", "key", "1") == "OK"
        assert second.call("GET", "key") == b"1"


@pytest.mark.moves
def test_an_upstream_that_always_was_a_replica(farm, names, follow):
    """weir closes nothing there, and polls less and less often."""
    first, second = two(farm)
    demote(first, second)
    names.point(first)
    weir = follow(first.port, env={"WEIR_HURRY": "20"})
    with weir.connect() as conn, weir.connect() as subscribed:
        assert subscribed.call("SUBSCRIBE", "channel")
        conn.call("GET", "who")
        before = calls(first, "hello")
        end = time.monotonic() + 2
        while time.monotonic() < end:
            assert conn.call("SET", "key", "1").startswith("READONLY")
            time.sleep(0.01)
        # of forty that a second of 50 ms would allow
        assert 1 <= calls(first, "hello") - before <= 8
        first.call("PUBLISH", "channel", "message")
        assert subscribed.read()[2] == b"message"
    assert "is no longer a master but a replica" not in weir.log()


@pytest.mark.moves
def test_a_forged_refusal_is_harmless(farm, names, follow):
    """A script that returns READONLY again and again causes one question a second, and nothing
    else.
    """
    first = farm._start(At(2))
    names.point(first)
    weir = follow(first.port, env={"WEIR_HURRY": "2"})
    script = "return redis.error_reply('READONLY You can\\'t write against a read only replica.')"
    with weir.connect() as conn, weir.connect() as subscribed:
        assert subscribed.call("SUBSCRIBE", "channel")
        assert conn.call("EVAL", script, 0).startswith("READONLY")
        before, opened = calls(first, "hello"), int(first.info("total_connections_received"))
        for _ in range(200):
            assert conn.call("EVAL", script, 0).startswith("READONLY")
            time.sleep(0.01)
        assert 2 <= calls(first, "hello") - before <= 10
        # the tests' connections, and checks from other places
        assert int(first.info("total_connections_received")) - opened <= 12
        first.call("PUBLISH", "channel", "message")
        assert subscribed.read()[2] == b"message"
    assert "replica now" not in weir.log() and "moved" not in weir.log()


@pytest.mark.moves
def test_a_demoted_master_that_wants_a_password(farm, names, follow):
    """weir itself has no password, so it learns the role on a connection of a client's own user."""
    first, second = two_with_users(farm)
    second.call("SET", "who", "second")
    names.point(first)
    weir = follow(first.port)
    with weir.connect() as conn:
        assert conn.call("AUTH", "app", "pw") == "OK"
        assert conn.call("SET", "key", "1") == "OK"
        demote(first, second)

        def is_given_up():
            assert conn.call("SET", "key", "2") != "OK"
            return "is no longer a master but a replica" in weir.log()

        wait_until(is_given_up, "the role is asked by the client's own user")
        names.point(second)

        def is_written():
            return conn.call("SET", "key", "2") == "OK"

        wait_until(is_written, "writes go to the new master")
        assert second.call("GET", "key") == b"2"


@pytest.mark.moves
def test_clients_that_come_to_a_replica_leave_it_for_the_master(farm, names, follow):
    """The name follows a failover late. Clients that came in between have state at a replica, and
    are closed when weir moves.
    """
    first, second = two(farm)
    names.point(first)
    weir = follow(first.port, upstream_resolve="1s")
    with weir.connect() as conn:
        assert conn.call("SET", "key", "1") == "OK"
        demote(first, second)
        wait_until(lambda: str(conn.call("SET", "key", "2")).startswith("READONLY"), "it is a replica")
    wait_until(lambda: "is at " + first.upstream + ", a replica" in weir.log(), "weir knows")
    with weir.connect() as watching, weir.connect() as subscribed, weir.connect() as named:
        assert watching.call("WATCH", "key") == "OK"
        assert subscribed.call("SUBSCRIBE", "channel")
        assert named.call("CLIENT", "ID") > 0
        names.point(second)
        assert ends(watching) and ends(subscribed) and ends(named)


@pytest.mark.moves
def test_another_address_is_tried_first_where_roles_are_not_told(farm, names, follow):
    """Without a user of weir's own no server tells weir its role at connect."""
    first, second = two_with_users(farm)
    names.point(first, second)
    weir = follow(first.port)

    def is_written():
        with weir.connect() as conn:
            try:
                return conn.call("AUTH", "app", "pw") == "OK" and conn.call("SET", "key", "1") == "OK"
            except (Closed, OSError):
                return False

    assert is_written()
    demote(first, second)
    wait_until(is_written, "writes go to the new master")
    assert second.call("GET", "key") == b"1"
