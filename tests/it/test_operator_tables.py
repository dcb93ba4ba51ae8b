"""INFO on the operators' socket as tables for people, and LIMIT LIST for some of the limits."""

import re
import subprocess

import pytest
from kit.admin import ADMIN
from kit.browser import page_of
from kit.harness import wait_until
from kit.limits import OPERATOR, login, operator, order, plain
from kit.resp import Conn, Error

LINES = """
[policy free]
match = user:alice
read = 2/d
write = 1000/s
[policy Batch]
match = user:bob
read = 1000/s
[limit signup]
fixed = 1/d
[limit upload]
fixed = 1000/d
"""


@pytest.fixture
def weir(farm, redis, users):
    return farm.weir(redis, sections=LINES + OPERATOR, identity="user, ip")


def use_up(weir):
    """Uses up alice's limit, and waits until the refusals show."""
    with login(weir, "alice") as alice:
        alice.ask(*["GET k"] * 10)
        assert alice.call("LIMIT", "CHECK", "signup", "x")[0] == 0
        assert alice.call("LIMIT", "CHECK", "signup", "x")[0] == 1
    wait_until(lambda: listed(weir, "free/*", "REFUSING"), "it is known who refuses")


def listed(weir, *words):
    return [plain(row)["limit"] for row in order(weir, "LIST", *words)]


def cli(weir, *words):
    argv = ["redis-cli", "-s", str(weir.folder / "operator.sock"), *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=20).stdout


def table(text, heading):
    """Returns the rows of the table with this first heading. Columns are separated by two or more
    blanks.
    """
    lines = text.replace("\r", "").split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith(heading + " "))
    rows = [re.split(r"  +", line.strip()) for line in lines[first:]]
    end = next((i for i, row in enumerate(rows) if row == [""]), len(rows))
    return [dict(zip(rows[0], row)) for row in rows[1:end]]


# ---- INFO ----


def test_info_of_limits(weir):
    use_up(weir)
    text = cli(weir, "INFO", "limits")
    assert text.startswith("# Limits: 1 of 3 refuse, mode = enforce")
    rows = table(text, "limit")
    assert [row["limit"] for row in rows] == ["free/read", "free/write", "batch/read"], "what refuses comes first"
    wanted = {"rate": "2/d", "over": "refuse", "now": "refuses", "admitted": "2", "refused": "8"}
    assert rows[0].items() >= wanted.items()
    assert rows[1]["now"] == "-"
    assert re.search(r"^signup +fixed +1/d +1 +1 +0 +0\r?$", text, re.M)
    widths = {len(line.rstrip("\r")) for line in text.split("\n")[1:4]}
    assert len(widths) == 1, "numbers stand one below the other"


def test_info_of_clients(weir):
    use_up(weir)
    with weir.connect() as conn:
        assert conn.call("PING") == "PONG"
        text = cli(weir, "INFO", "CLIENTS")
        assert re.match(r"# Clients: 1 of at most \d+\r?\n", text), "who asks is an operator, who takes no place"
    assert table(text, "listener")[0]["listener"].startswith("127.0.0.1:")
    alice = next(row for row in table(text, "subject") if row["subject"] == "user:alice")
    assert alice["policy"] == "free" and alice["refused by"] == "free/read" and int(alice["commands/s"]) > 0


def test_what_is_denied_has_no_rate(browser, farm, redis):
    weir = farm.weir(redis, sections="[policy default]\ncmd.flushall = deny\nread = 9/s\n" + OPERATOR + ADMIN.replace("[admin]\n", ""))
    rows = {row["limit"]: row for row in table(cli(weir, "INFO", "limits"), "limit")}
    assert (rows["default/cmd.flushall"]["rate"], rows["default/cmd.flushall"]["over"]) == ("-", "deny")
    assert (rows["default/read"]["rate"], rows["default/read"]["over"]) == ("9/s", "refuse")
    shown = [re.sub(r"\d+ subjects?.*", "", row[0]) for row in page_of(browser, weir).tables["limits"][1:]]
    assert shown == ["default/cmd.flushallcommands denied", "default/readcommands 9/s burst 9, per subject, refuse"]


def test_info_of_the_upstream_and_when_it_has_gone(weir, redis, farm):
    text = cli(weir, "INFO", "upstream")
    assert text.startswith("# Upstream: up")
    assert table(text, "upstream")[0]["upstream"] == redis.upstream
    own = farm.redis()
    other = farm.weir(own, sections=OPERATOR)
    with Conn(str(other.folder / "operator.sock")) as conn:
        own.kill()
        wait_until(lambda: conn.call("INFO", "upstream").startswith(b"# Upstream: away"), "it says so")


@pytest.mark.parametrize("protocol", [2, 3])
def test_info_alone_and_redis_own(weir, protocol):
    with Conn(str(weir.folder / "operator.sock")) as conn:
        conn.call("HELLO", protocol)
        text = str(conn.call("INFO"))
        places = [text.index(heading) for heading in ("# Limits", "# Clients", "# Upstream")]
        assert places == sorted(places)
        for words in (["INFO", "server"], ["INFO", "everything"], ["INFO", "limits", "clients"]):
            assert "# Limits" not in str(conn.call(*words)), "other sections are Redis' own"
        assert "redis_version" in str(conn.call("INFO", "server"))
        assert conn.ask("PING", "INFO limits", "PING")[2] == "PONG", "in order"
        conn.call("MULTI")
        assert conn.call("INFO", "limits") == "QUEUED"
        conn.call("DISCARD")


def test_others_have_redis_info(weir):
    with weir.connect() as conn:
        assert b"redis_version" in conn.call("INFO")
        assert b"# Limits" not in conn.call("INFO", "limits")


# ---- LIST ----


def test_some_of_the_limits(weir):
    assert listed(weir) == ["free/read", "free/write", "batch/read", "signup", "upload"]
    assert listed(weir, "free/*") == ["free/read", "free/write"]
    assert listed(weir, "*/READ") == ["free/read", "batch/read"]
    assert listed(weir, "batch/*") == ["batch/read"]
    assert listed(weir, "s*") == ["signup"]
    assert listed(weir, "nobody") == []
    assert listed(weir, "REFUSING") == []
    with operator(weir) as op:
        for wrong in (["["], ["a" * 200], ["a", "b"], ["a", "b", "REFUSING"]):
            assert isinstance(op.call("LIMIT", "LIST", *wrong), Error)


def test_those_that_refuse(weir):
    use_up(weir)
    assert listed(weir, "refusing") == ["free/read", "signup"]
    assert listed(weir, "batch/*", "refusing") == []


def test_a_pattern_that_fits_nothing_says_what_is_meant(weir):
    policy = plain(order(weir, "LIST"))[0]["limit"].split("/")[0]
    assert order(weir, "LIST", policy) == Error(f"ERR no limit is called {policy} (did you mean {policy}/*?)")
    assert order(weir, "LIST", "REFUSED") == Error("ERR syntax error, unexpected 'REFUSED' (did you mean REFUSING?)")
    assert order(weir, "LIST", "nobody/*") == []
