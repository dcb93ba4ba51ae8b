"""The actions of a limit on refused commands: `over close`, `deny`, and refusals by several limits
at once.
"""

from kit.limits import EXECABORT, OPERATOR, limit_of, order, refusal, tallies
from kit.resp import Error, encode, pipeline
from kit.server import at_least

DENIED = Error("NOPERM denied by policy default")


# ---- close ----


def test_over_close_closes_who_is_refused(limited, redis):
    weir = limited("[policy default]\nwrite = 2/h over close\n" + OPERATOR)
    with weir.connect() as a, weir.connect() as b:
        assert a.ask("SET k 1", "GET k") == ["OK", b"1"]
        a.send(pipeline("SET k 2", "ECHO x", "SET k 3", "SET k 4", "PING"))
        assert [a.read(), a.read()] == ["OK", b"x"]
        limit, retry = refusal(a.read())
        assert limit == "default/write" and 0 < retry <= 1_800_000
        assert a.read_to_end() == b""
        assert b.call("GET", "k") == b"2"
        assert limit_of(b.call("SET", "k", "5")) == "default/write"
        assert b.read_to_end() == b""
    assert redis.call("GET", "k") == b"2"
    assert tallies(weir) == [("default/write", 2, 0, 2, 0)]


def test_close_after_what_blocks(limited, redis):
    """Earlier replies come first, also the reply of a blocking command."""
    weir = limited("[policy default]\n@string = 1/h over close\n")
    with weir.connect() as a:
        a.send(pipeline("SET k 1", "BLPOP l 0.2", "SET k 2", "PING"))
        assert [a.read(), a.read()] == ["OK", None]
        assert limit_of(a.read()) == "default/@string"
        assert a.read_to_end() == b""


def test_close_in_the_middle_of_a_large_request(limited, redis):
    weir = limited("[policy default]\nwrite = 1/h over close\n")
    with weir.connect() as a:
        assert a.call("SET", "k", "1") == "OK"
        a.send(encode("SET", "k", b"x" * 3_000_000) + encode("PING"))
        assert limit_of(a.read()) == "default/write"
        assert a.read_to_end() == b""
    assert redis.call("GET", "k") == b"1"


def test_close_inside_multi(limited, redis):
    weir = limited("[policy default]\nwrite = 1/h over close\n")
    with weir.connect() as a:
        a.send(pipeline("MULTI", "SET k 1", "SET k 2", "EXEC"))
        assert [a.read(), a.read()] == ["OK", "QUEUED"]
        assert limit_of(a.read()) == "default/write"
        assert a.read_to_end() == b""
    assert redis.call("EXISTS", "k") == 0


def test_close_of_a_silent_client(limited, redis):
    weir = limited("[policy default]\nwrite = 1/h over close\n")
    with weir.connect() as a:
        a.send(pipeline("CLIENT REPLY OFF", "SET k 1", "SET k 2", "CLIENT REPLY ON", "PING"))
        assert a.read_to_end() == b""
    assert redis.call("GET", "k") == b"1"


def test_close_of_class_control(limited):
    weir = limited("[policy default]\ncmd.ping = 3/h over close\n")
    with weir.connect() as a:
        a.send(pipeline(*["PING"] * 5))
        assert [a.read() for _ in range(3)] == ["PONG"] * 3
        assert limit_of(a.read()) == "default/cmd.ping"
        assert a.read_to_end() == b""


def test_close_where_replies_cannot_be_told_apart(limited, redis):
    """No error fits between the frames of such replies, so the connection just closes."""
    weir = limited("[policy default]\ncmd.set = 1/h\n")
    with weir.connect() as a:
        assert a.ask("MULTI", "SUBSCRIBE c", "EXEC")[:2] == ["OK", "QUEUED"]
        a.send(pipeline("UNSUBSCRIBE", "SET k 1", "SET k 2", "SET k 3"))
        assert b"THROTTLED" not in a.read_to_end()
    assert redis.call("GET", "k") in (None, b"1")


# ---- deny ----


def test_deny_refuses_every_time(limited, redis):
    weir = limited("[policy default]\n@dangerous = deny\ncmd.get = deny\n" + OPERATOR)
    with weir.connect() as a:
        assert a.ask("GET k", "KEYS *", "FLUSHALL", "SET k v", "get k", "MGET k") == [DENIED] * 3 + ["OK", DENIED, [b"v"]]
        a.send(b"GET k\r\n" + encode("GET", b"k" * 200_000) + encode("ECHO", "x"))
        assert [a.read() for _ in range(3)] == [DENIED, DENIED, b"x"]
        assert a.call("INFO", "server"), "of class control, though it is dangerous"
    assert [row[3] for row in tallies(weir)] == [2, 4]


def test_deny_voids_a_transaction(limited, redis):
    weir = limited("[policy default]\ncmd.del = deny\n")
    with weir.connect() as a:
        replies = a.ask("SET k v", "MULTI", "SET k w", "DEL k", "SET k x", "EXEC", "GET k", "MULTI", "GET k", "EXEC")
        assert replies == ["OK", "OK", "QUEUED", DENIED, "QUEUED", EXECABORT, b"v", "OK", "QUEUED", [b"v"]]


def test_deny_of_scripts(limited, redis):
    redis.call("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 1 end)")
    weir = limited("[policy default]\n@scripting = deny\n")
    with weir.connect() as a:
        commands = ["EVAL 1 0", "EVALSHA x 0", "SCRIPT LOAD x"]
        if at_least(7, 0):
            commands += ["eval_ro 1 0", "FCALL f 0", "FCALL_RO f 0", "FUNCTION LIST"]
        assert a.ask(*commands, "GET k") == [DENIED] * len(commands) + [None]


def test_deny_goes_before_other_limits(limited):
    weir = limited("[policy default]\ncmd.set = deny\nwrite = 2/h\nall = 1/h over delay 1h\n" + OPERATOR)
    with weir.connect() as a:
        assert a.ask(*["SET k v"] * 5) == [DENIED] * 5
    assert [row[1:4] for row in tallies(weir)] == [(0, 0, 5), (0, 0, 0), (0, 0, 0)]


def test_deny_of_all_leaves_control(limited):
    weir = limited("[policy default]\nall = deny\n")
    with weir.connect() as a:
        assert a.ask("PING", "ECHO x", "GET k", "MULTI", "GET k", "EXEC", "LIMIT STATUS")[:6] == [
            "PONG", b"x", DENIED, "OK", DENIED, EXECABORT,
        ]  # fmt: skip


# ---- several ----


def test_of_several_the_longest_wait_is_told_and_acted_on(limited):
    weir = limited("[policy default]\nread = 2/h over close\n@string = 2/d\n")
    with weir.connect() as a:
        replies = a.ask(*["GET k"] * 4)
        assert [limit_of(reply) for reply in replies] == [None, None, *["default/@string"] * 2]
        assert a.call("PING") == "PONG"


def test_live_changes_bind_the_next_command(limited):
    weir = limited("[policy default]\nwrite = 100/h\n" + OPERATOR)
    with weir.connect() as a, weir.connect() as b:
        assert a.call("SET", "k", "v") == b.call("SET", "k", "v") == "OK"
        assert order(weir, "SET", "default", "write", "deny") == "OK"
        assert a.call("SET", "k", "v") == b.call("SET", "k", "v") == DENIED
        assert order(weir, "SET", "default", "write", "100/h", "over", "close") == "OK"
        assert a.call("SET", "k", "v") == b.call("SET", "k", "v") == "OK"
