"""LIMIT SLOWLOG: slow commands and where their time went, in the form of Redis' SLOWLOG."""

import time

import pytest
from kit.harness import MODE_IDS, MODES, wait_until
from kit.limits import OPERATOR, operator, order, plain
from kit.reloading import reload
from kit.resp import Conn, Error
from kit.server import at_least

US = 1_000_000


@pytest.fixture(params=MODES, ids=MODE_IDS)
def slow(request, farm, redis):
    """Returns a function that starts a weir with this [policy default] and settings of [weir]."""
    workers, lanes = request.param

    def start(policy="", **settings):
        sections = f"[policy default]\n{policy}\n" + OPERATOR
        return farm.weir(redis, sections=sections, workers=workers, lanes=lanes, **settings)

    return start


def entries(weir, name=None):
    """Returns the entries, newest first, as (command, arguments, microseconds, waited, upstream,
    address, client, waits).
    """
    found = []
    for entry in plain(order(weir, "SLOWLOG", "GET", "-1")):
        number, unix_s, total, words, address, client, waited, upstream, turn, waits, node = entry
        assert (node != "") == (upstream > 0) or upstream == 0
        assert number >= 0 and abs(unix_s - time.time()) < 300
        assert upstream + turn <= total + 2
        n = int(words[1].split("(")[1].split()[0]) if len(words) > 1 else 0
        assert (waited > 0) == ("delay" in waits) and (turn == 0 or waits)
        found.append((words[0], n, total, waited, upstream, address, client, waits))
    return [entry for entry in found if name in (None, entry[0])]


def one(weir, name, arguments):
    """A busy machine may make other commands slow too."""
    found = [entry for entry in entries(weir, name) if entry[1] == arguments]
    assert len(found) == 1, found
    return found[0]


def test_what_redis_is_slow_with(slow):
    weir = slow(slowlog_log_slower_than="200ms")
    with weir.connect() as conn:
        conn.call("CLIENT", "SETNAME", "billing")
        assert conn.call("DEBUG", "SLEEP", "0.3") == "OK"
        _, _, total, waited, upstream, address, client, _ = one(weir, "debug", 2)
        assert total >= upstream >= 0.3 * US and waited == 0
        assert (address, client) == (conn.name, "billing")


def test_what_a_limit_makes_wait_is_beside_it(slow):
    weir = slow("cmd.set = 2/s burst 1 over delay 5s", slowlog_log_slower_than="0")
    with weir.connect() as conn:
        conn.ask("SET a 1", "SET b 2 EX 60")
    _, _, total, waited, upstream, _, client, waits = one(weir, "set", 4)
    assert (client, waits) == ("", "delay")
    assert waited > 0.45 * US and upstream <= total + 1


def test_what_a_limit_makes_wait_is_not_slow(slow):
    weir = slow("cmd.debug = 1/s burst 1 over delay 60s\ncmd.set = 1/s burst 1 over delay 60s", slowlog_log_slower_than="1200ms")
    with weir.connect() as conn:
        conn.ask("SET a 1", *["SET b 2 EX 60"] * 3)
        assert conn.ask("DEBUG SLEEP 1.3") == ["OK"]
    assert one(weir, "debug", 2)[2] >= 1.3 * US
    assert not entries(weir, "set")


def test_with_0_everything_is_in_it_and_what_it_was_about_is_not(slow):
    weir = slow("cmd.append = deny", slowlog_log_slower_than="0", slowlog_max_len="1000")
    with weir.connect() as conn:
        conn.ask("SET secret1 secret2", "APPEND secret1 secret3", "NOSUCH secret4", "CONFIG GET secret5", "SUBSCRIBE secret6")
        conn.ask("UNSUBSCRIBE secret6")
        conn.ask("MULTI", "LPUSH secret7 a b c", "EXEC", "LIMIT FUNNEL secret8 5/s", "LIMIT STATUS", "LIMIT NIX", "PING")
        found = entries(weir)
    wanted = [("set", 2), ("append", 2), ("unknown", 1), ("config|get", 2), ("subscribe", 1), ("unsubscribe", 1), ("multi", 0)]
    wanted += [("lpush", 4), ("exec", 0), ("limit|funnel", 3), ("limit|status", 1), ("limit", 1), ("ping", 0)]
    said = [entry[:2] for entry in reversed(found) if entry[0] not in ("hello", "limit|slowlog")]
    assert sorted(said) == sorted(wanted)
    assert "secret" not in str(order(weir, "SLOWLOG", "GET", "-1"))


def test_one_entry_for_each_kind_of_a_pipeline(slow):
    weir = slow(slowlog_log_slower_than="200ms", slowlog_max_len="1000")
    with weir.connect() as conn:
        conn.call("GET", "x")
        conn.ask("DEBUG SLEEP 0.3", *["INCR n"] * 100, "LPUSH l a", *["INCR n"] * 100)
    found = [entry[:2] for entry in reversed(entries(weir)) if entry[0] != "get"]
    # Commands behind the slow one wait as long. The system decides in how many pieces replies come.
    assert found[0] == ("debug", 2) and len(found) < 60, found
    assert set(found) <= {("debug", 2), ("incr", 1), ("lpush", 2)}


def test_what_blocks_is_not_slow(slow, redis):
    weir = slow(slowlog_log_slower_than="300ms")
    with weir.connect() as conn:
        assert conn.call("BLPOP", "nothing", "0.5") is None
        assert conn.call("LIMIT", "SLIDING", "k", "1/h")[0] == 0
        assert conn.call("LIMIT", "SLIDING", "k", "1/h", "WAIT", "500")[0] == 1
        conn.call("DEBUG", "SLEEP", "0.4")
    assert one(weir, "debug", 2) and not entries(weir, "blpop")
    assert all(entry[1] == 3 for entry in entries(weir, "limit|sliding"))


def test_its_length_is_bounded_and_a_reload_changes_it(slow):
    weir = slow(slowlog_log_slower_than="0", slowlog_max_len="3")
    with weir.connect() as conn, operator(weir) as op:
        for _ in range(5):
            conn.call("PING")
        assert op.call("LIMIT", "SLOWLOG", "LEN") == 3
        before = [entry[0] for entry in op.call("LIMIT", "SLOWLOG", "GET")]
        assert before == sorted(before, reverse=True) and len(before) == 3
        assert [len(op.call("LIMIT", "SLOWLOG", "GET", n)) for n in (0, 1, 2, 100, -1)] == [0, 1, 2, 3, 3]
        assert op.call("LIMIT", "SLOWLOG", "RESET") == "OK"
        newest = op.call("LIMIT", "SLOWLOG", "GET", 1)
        assert newest[0][0] > before[0] and op.call("LIMIT", "SLOWLOG", "LEN") <= 3
        text = weir.config.read_text()
        weir.own_settings = text.split("\n[")[0].replace("slowlog-log-slower-than = 0", "").replace("slowlog-max-len = 3", "") + "\n"
        rest = "[" + text.split("\n[", 1)[1]
        assert reload(weir, rest, slowlog_log_slower_than="off", slowlog_max_len="2")
        wait_until(lambda: op.call("LIMIT", "SLOWLOG", "LEN") == 2, "the newest two are kept")

        def is_off():
            """True if every worker's slow log is off."""
            assert op.call("LIMIT", "SLOWLOG", "RESET") == "OK"
            conn.call("PING")
            return op.call("LIMIT", "SLOWLOG", "GET") == [] and op.call("LIMIT", "SLOWLOG", "LEN") == 0

        wait_until(is_off, "nothing is slow any more")
        assert not reload(weir, rest, slowlog_log_slower_than="soon")
        assert not reload(weir, rest, slowlog_max_len="10001")


@pytest.mark.parametrize("protocol", [2, 3])
def test_an_entry_of_the_slow_log_has_redis_form(protocol, farm, redis):
    weir = farm.weir(redis, sections=OPERATOR, slowlog_log_slower_than="0")
    with Conn(str(weir.folder / "operator.sock")) as op:
        op.call("HELLO", protocol)
        op.call("SET", "k", "v")
        found = op.call("LIMIT", "SLOWLOG", "GET", 1)
        assert [type(field) for field in found[0]] == [int, int, int, list, bytes, bytes, int, int, int, bytes, bytes]
        assert found[0][3] == [b"set", b"... (2 arguments)"] and found[0][4] == b"unix"
        assert len(op.call("LIMIT", "SLOWLOG", "HELP")) > 8
        info = op.call("COMMAND", "INFO", "LIMIT|SLOWLOG")[0]
        assert info[0] == b"limit|slowlog" and info[1] == -3 and "admin" in info[2]
        if at_least(7, 0):
            assert b"slowlog" in str(op.call("COMMAND", "DOCS", "LIMIT")).encode()
        assert any("SLOWLOG" in line for line in op.call("LIMIT", "HELP"))


def test_it_is_for_operators(farm, redis):
    weir = farm.weir(redis, sections=OPERATOR)
    with weir.connect() as conn:
        for words in ("GET", "LEN", "RESET", "HELP", "NIX"):
            reply = conn.call("LIMIT", "SLOWLOG", words)
            assert isinstance(reply, Error) and reply.startswith("NOPERM"), reply


ERRORS = {
    "SLOWLOG": "ERR wrong number of arguments for 'limit|slowlog' command",
    "SLOWLOG GET x": "ERR value is not an integer or out of range",
    "SLOWLOG GET -2": "ERR count should be greater than or equal to -1",
    "SLOWLOG GET 1 2": "ERR unknown subcommand or wrong number of arguments",
    "SLOWLOG LEN 1": "ERR unknown subcommand or wrong number of arguments",
    "SLOWLOG NIX": "ERR unknown subcommand or wrong number of arguments",
}


@pytest.mark.parametrize("words", ERRORS)
def test_wrong_slowlog_commands_are_errors(words, kept):
    weir = kept(sections=OPERATOR)
    reply = order(weir, *words.split())
    assert isinstance(reply, Error) and reply.startswith(ERRORS[words]), reply
