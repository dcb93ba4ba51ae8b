"""clients-as = upstream: a client without a login travels as weir's own user. The password of
weir's user can change while weir runs.
"""

import pytest
from kit.harness import MODE_IDS, MODES, run_weir, wait_until
from kit.limits import limit_of, plain
from kit.reloading import reload, signal_reload
from kit.resp import Closed, Error, encode

RIGHTS = ("~*", "&*", "+@all")
UNAVAILABLE = Error("UPSTREAM unavailable")


@pytest.fixture
def redis(farm):
    """A Redis that refuses all commands without a password."""
    redis = farm.redis()
    redis.call("ACL", "SETUSER", "weir", "reset", "on", ">first", *RIGHTS)
    redis.call("ACL", "SETUSER", "alice", "reset", "on", ">pw", *RIGHTS)
    redis.call("ACL", "SETUSER", "admin", "reset", "on", "nopass", *RIGHTS)
    redis.call("CONFIG", "SET", "requirepass", "closed")
    redis.has_password = True
    return redis


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text("first\n")
    path.chmod(0o600)
    return path


@pytest.fixture(params=MODES, ids=MODE_IDS)
def make(request, farm, redis, secret):
    workers, lanes = request.param

    def weir(sections="", **settings):
        settings = {"clients_as": "upstream", "upstream_user": "weir", "upstream_password_file": secret, **settings}
        return farm.weir(redis, workers=workers, lanes=lanes, sections=sections, **settings)

    return weir


def whoami(conn):
    return conn.call("ACL", "WHOAMI").decode()


def users_of(redis):
    """Returns the users of the connections that weir has opened for clients, as Redis lists them.
    """
    lines = redis.call("CLIENT", "LIST").decode().splitlines()
    return [dict(field.split("=", 1) for field in line.split() if "=" in field)["user"] for line in lines]


# ---- identity ----


def test_who_does_not_log_in_is_weirs_user(make):
    weir = make()
    for first in ("GET k", "HELLO 3", "HELLO 2", "MULTI", "SELECT 3", "EVAL return{} 0", "WATCH k", "PING", "LIMIT STATUS"):
        with weir.connect() as conn:
            reply = conn.call(*first.split())
            assert not isinstance(reply, Error), first
            if first == "MULTI":
                conn.ask("SET k v", "EXEC")
            assert whoami(conn) == "weir", first


def test_on_every_kind_of_connection(make, redis):
    weir = make()
    with weir.connect() as conn, weir.connect() as other:
        assert conn.ask("MULTI", "ACL WHOAMI", "EXEC")[2] == [b"weir"]
        assert conn.call("EVAL", "return redis.call('GET', KEYS[1])", 1, "k") is None
        conn.send(encode("BLPOP", "list", 0))
        assert other.call("RPUSH", "list", "x") == 1 and conn.read() == [b"list", b"x"]
        conn.call("SUBSCRIBE", "ch")
        assert other.call("PUBLISH", "ch", "word") == 1 and conn.read()[-1] == b"word"
        assert conn.call("UNSUBSCRIBE", "ch")[-1] == 0 and whoami(conn) == "weir"
        assert other.call("SET", "big", "x" * 300_000) == "OK" and whoami(other) == "weir"
        assert other.call("LIMIT", "FUNNEL", "f", "1/s")[0] == 0


def test_who_logs_in_is_itself_until_reset(make):
    weir = make()
    with weir.connect() as conn, weir.connect() as other:
        assert whoami(conn) == "weir"
        assert conn.call("AUTH", "alice", "pw") == "OK" and whoami(conn) == "alice"
        assert other.call("HELLO", 3, "AUTH", "alice", "pw")[b"proto"] == 3 and whoami(other) == "alice"
        for each in (conn, other):
            for first in ("WATCH k", "GET k"):
                each.ask(first)
                assert each.call("RESET") == "RESET" and whoami(each) == "weir"
                assert each.ask("SELECT 2", "SET k v", "GET k")[2] == b"v" and whoami(each) == "weir"
                assert each.call("AUTH", "alice", "pw") == "OK" and whoami(each) == "alice"
        assert str(conn.call("AUTH", "alice", "wrong")).startswith("WRONGPASS") and whoami(conn) == "alice"
    with weir.connect() as conn:
        assert str(conn.call("AUTH", "alice", "wrong")).startswith("WRONGPASS") and whoami(conn) == "weir"
        assert conn.call("AUTH", "closed") == "OK" and whoami(conn) == "default"


def test_reset_inside_a_pipeline(make):
    with make().connect() as conn:
        replies = conn.ask("WATCH k", "AUTH alice pw", "ACL WHOAMI", "RESET", "ACL WHOAMI", "MULTI", "ACL WHOAMI", "EXEC")
        assert replies == ["OK", "OK", b"alice", "RESET", b"weir", "OK", "QUEUED", [b"weir"]]


def test_such_a_client_has_no_user_of_its_own(make):
    weir = make("[policy weirs]\nmatch = user:weir\nall = 1/d\n[policy default]\nread = 2/d\n")
    with weir.connect() as conn:
        assert [limit_of(reply) for reply in conn.ask("GET k", "GET k", "GET k")] == [None, None, "default/read"]
        assert plain(conn.call("LIMIT", "STATUS"))[1] == "ip:127.0.0.1"
        assert conn.call("AUTH", "alice", "pw") == "OK"
        assert plain(conn.call("LIMIT", "STATUS"))[1] == "user:alice"


def test_as_without_it(farm, redis, secret):
    """clients-as = client, the default."""
    weir = farm.weir(redis, upstream_user="weir", upstream_password_file=secret)
    with weir.connect() as conn:
        assert str(conn.call("GET", "k")).startswith("NOAUTH")
        assert conn.call("AUTH", "alice", "pw") == "OK" and whoami(conn) == "alice"


def test_rights_are_those_of_the_user(make, redis):
    redis.call("ACL", "SETUSER", "weir", "-flushall", "resetkeys", "~mine:*", "~limit:*")
    with make().connect() as conn:
        assert str(conn.call("FLUSHALL")).startswith("NOPERM") and str(conn.call("GET", "k")).startswith("NOPERM")
        assert conn.call("SET", "mine:k", "v") == "OK"


# ---- the password ----


def all_serve(weir, n=8):
    """True if new clients on every worker are served, including clients that need a private lane.
    """
    conns = [weir.connect() for _ in range(n)]
    try:
        return all(conn.ask("WATCH k", "ACL WHOAMI", "UNWATCH")[1] == b"weir" for conn in conns)
    except Closed:
        return False
    finally:
        for conn in conns:
            conn.close()


def drop_weirs_connections(redis):
    redis.call("CLIENT", "KILL", "USER", "weir")
    wait_until(lambda: redis.call("PING") == "PONG", "Redis goes on")


@pytest.mark.parametrize("by", ["SIGHUP", "LIMIT RELOAD"])
def test_a_password_is_changed_without_a_break(by, make, redis, secret):
    weir = make("[policy default]\nadmin = yes\n")
    with weir.connect() as old:
        assert whoami(old) == "weir"
        redis.call("ACL", "SETUSER", "weir", ">second")
        secret.write_text("second\n")
        if by == "SIGHUP":
            assert signal_reload(weir)
        else:
            assert old.call("LIMIT", "RELOAD") == "OK"
        redis.call("ACL", "SETUSER", "weir", "<first")
        assert whoami(old) == "weir", "a connection that runs stays"
    wait_until(lambda: all_serve(weir), "every worker has heard of it")
    drop_weirs_connections(redis)
    wait_until(lambda: all_serve(weir), "with the new password alone")
    with weir.connect() as conn:
        assert conn.call("LIMIT", "FUNNEL", "f", "1/s")[0] == 0
    wait_until(lambda: "the control connection is back" in weir.log(), "it logs in with the new one too")


def test_a_password_that_redis_does_not_take(make, redis, secret):
    """Logged-in clients go on. A client that would travel as weir gets an error. weir recovers by
    itself.
    """
    weir = make()
    with weir.connect() as alice:
        assert alice.call("AUTH", "alice", "pw") == "OK"
        redis.call("ACL", "SETUSER", "weir", "resetpass", ">second")
        drop_weirs_connections(redis)

        def is_told():
            with weir.connect() as conn:
                try:
                    return conn.call("GET", "k") == UNAVAILABLE
                except Closed:
                    return False

        wait_until(is_told, "it cannot log in")
        assert alice.call("SET", "k", "v") == "OK" and whoami(alice) == "alice"
        said = "does not accept upstream-user and upstream-password-file"
        wait_until(lambda: said in weir.log(), "the log tells it")
        secret.write_text("second\n")
        assert signal_reload(weir)
        wait_until(lambda: all_serve(weir), "the new one is good")
        assert whoami(alice) == "alice"


def test_what_is_wrong_with_the_file_changes_nothing(make, secret):
    weir = make()
    secret.write_text("two\nlines\n")
    assert not signal_reload(weir)
    weir.wait_for_log("the file has more than one line")
    secret.unlink()
    assert not signal_reload(weir)
    assert all_serve(weir)


def test_a_line_that_is_set_does_not_read_it(make, secret):
    weir = make("[admin]\nsocket = {folder}/operator.sock\n[policy default]\nread = 5/s\nadmin = yes\n")
    secret.unlink()
    with weir.connect() as conn:
        assert conn.call("LIMIT", "SET", "default", "read", "1000/s") == "OK"
        assert whoami(conn) == "weir"
    assert all_serve(weir)


def test_a_reload_reads_another_password_file(make, redis, secret, tmp_path):
    weir = make()
    other = tmp_path / "other"
    other.write_text("second")
    other.chmod(0o600)
    redis.call("ACL", "SETUSER", "weir", "resetpass", ">second")
    drop_weirs_connections(redis)
    weir.config.write_text(weir.config.read_text().replace(str(secret), str(other)))
    assert signal_reload(weir)
    wait_until(lambda: all_serve(weir), "it is read")


def test_whether_there_is_a_password_is_settled_at_the_start(farm, redis, secret):
    weir = farm.weir(redis)
    assert reload(weir, "", upstream_password_file=secret)
    said = "changed in the file, but needs a restart: upstream-password-file"
    wait_until(lambda: said in weir.log(), "the log tells it")


@pytest.mark.parametrize("mode, warns", [(0o600, False), (0o400, False), (0o640, True), (0o644, True), (0o602, True)])
def test_whoever_else_may_use_the_file_is_warned_of(mode, warns, secret, tmp_path):
    secret.chmod(mode)
    path = tmp_path / "weir.conf"
    path.write_text(f"[weir]\nupstream-password-file = {secret}\n")
    done = run_weir("-t", "-c", path)
    assert done.returncode == 0 and ("chmod 600" in done.stderr) == warns
