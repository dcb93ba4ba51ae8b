"""LIMIT SUGGEST: the first day with weir, and suggestions from what weir has seen.

A test sends for less than a minute, so windows of a minute hold all of it. Rates are compared as
numbers only where they come from such windows. No test measures time.
"""

import contextlib
import re
import subprocess

import pytest
from kit.harness import run_weir, wait_until
from kit.limits import OPERATOR, limit_of, login, operator, order, passed
from kit.reloading import reload, signal_reload
from kit.resp import Error

LINE = re.compile(
    r"(?P<class>\S+) = (?P<rate>\d+)/(?P<per>[smh]) burst (?P<burst>\d+) ; (?P<whose>p\d+|all but \d+) of (?P<n>\d+) subjects?"
    r"(?: \((?P<out>\d+) left out\))? over "
    r"(?P<span>\d+ (?:s|min|h|d)), (?P<fate>(?:none|\d+) (?:would|might) have been limited.*)"
)
TENANTS = [f"shop-{i}" for i in range(8)]


def suggest(weir, *args):
    return [line.decode() for line in order(weir, "SUGGEST", *args)]


def parts(line):
    found = LINE.fullmatch(line)
    assert found, line
    return found.groupdict()


def tenant(weir, name):
    conn = weir.connect()
    assert conn.call("CLIENT", "SETNAME", name) == "OK"
    return conn


def day(weir, n=40):
    """The traffic of eight shops: reads, more of them the larger the shop, and a few writes, all at
    once. Returns how many passed.
    """
    conns = [tenant(weir, name) for name in TENANTS]
    replies = []
    for i, conn in enumerate(conns):
        replies += conn.ask(*[["GET", "k"]] * (n + 5 * i))
        replies += conn.ask(*[["SET", "k", "v"]] * 10, ["HGET", "h", "f"])
    for conn in conns:
        conn.close()
    return passed(replies), len(replies)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_the_first_day(n_workers, farm, redis):
    """Shadow mode and no numbers; traffic; the suggestions are pasted into the file; the same
    traffic passes.
    """
    redis.forget_data()
    weir = farm.weir(redis, workers=n_workers, mode="shadow", identity="name, ip", sections=OPERATOR)
    asked = day(weir)
    lines = suggest(weir)
    assert lines[0] == "[policy default]"
    assert [parts(line)["class"] for line in lines[1:]] == ["all", "read", "write"]
    assert {parts(line)["n"] for line in lines[1:]} == {"8"}
    assert asked[0] == asked[1]
    text = weir.config.read_text()
    weir.config.write_text(text.replace("mode = shadow\n", "") + "\n" + "\n".join(lines) + "\n")
    assert "mode" not in weir.config.read_text()
    assert signal_reload(weir)
    assert order(weir, "MODE") == b"enforce"
    assert {row[b"limit"] for row in order(weir, "LIST")} == {b"default/all", b"default/read", b"default/write"}
    assert day(weir) == asked
    burst = int(parts(lines[2])["burst"])
    assert burst < 1000
    with tenant(weir, "flood") as conn:  # a client that sends ten times as much is limited
        replies = conn.ask(*[["GET", "k"]] * 10 * burst)
        assert any(limit_of(reply) in ("default/read", "default/all") for reply in replies)


def test_the_first_day_passes_a_strict_check(farm, redis):
    """Policies with their match alone; all suggested lines are pasted; neither file causes a
    warning.
    """
    redis.forget_data()
    free = "[policy free]\nmatch = name:shop-*\n"
    weir = farm.weir(redis, workers=1, mode="shadow", identity="name, ip", sections=OPERATOR + free)
    assert run_weir("-t", "--strict", "-c", weir.config).stderr == ""
    for name in TENANTS:
        with tenant(weir, name) as conn:
            conn.ask(*[["GET", "k"]] * 40)
    lines = suggest(weir, "free")
    assert lines[0] == "[policy free]" and parts(lines[1])["class"] == "all"
    assert re.fullmatch(r"; read: \d+/[smh] burst \d+ would never bind, because all is lower", lines[2]), lines
    assert [parts(line)["class"] for line in suggest(weir, "free", "CLASS", "read")] == ["read"]
    text = weir.config.read_text().replace("mode = shadow\n", "")
    weir.config.write_text(text + "\n".join(lines[1:]) + "\n")
    done = run_weir("-t", "--strict", "-c", weir.config)
    assert (done.returncode, done.stderr) == (0, "")


def test_one_who_does_more_is_named(farm, redis):
    """Of 120 subjects one may be limited. The suggestion limits one subject, and the file that
    names the subject is valid.
    """
    weir = farm.weir(redis, workers=1, mode="shadow", identity="name, ip", sections=OPERATOR)
    for i in range(119):
        with tenant(weir, f"small-{i}") as conn:
            conn.ask(*[["GET", "k"]] * 5)
    with tenant(weir, "greedy;#or=so") as conn:
        conn.ask(*[["GET", "k"]] * 3000)
    [line] = suggest(weir, "default", "CLASS", "read")
    said = parts(line)
    assert said["n"] == "120"
    assert re.match(r"1 would have been limited: name:greedy\S* \(\d+ in \d+ s\)$", said["fate"]), line
    assert int(said["burst"]) < 100
    assert reload(weir, OPERATOR.replace("{folder}", str(weir.folder)) + f"[policy default]\n{line}\n")
    assert order(weir, "LIST")[0][b"burst"] == int(said["burst"])


@contextlib.contextmanager
def shops(weir, n, gets):
    """The first shop stays connected: of subjects without a client only the heaviest are known by
    name.
    """
    with tenant(weir, "shop-0") as first:
        first.ask(*[["GET", "k"]] * gets)
        for i in range(1, n):
            with tenant(weir, f"shop-{i}") as conn:
                conn.ask(*[["GET", "k"]] * gets)
        yield


def test_one_abuser_of_24(farm, redis):
    """The abuser does not determine the limit: the needs of the other subjects do. The abuser is
    named, can be left out, and can be let pass.
    """
    weir = farm.weir(redis, workers=2, mode="shadow", identity="name, ip", sections=OPERATOR)
    with shops(weir, 23, 10):
        with tenant(weir, "abuser") as conn:
            conn.ask(*[["GET", "k"]] * 3000)
        [line] = suggest(weir, "default", "CLASS", "read")
        said = parts(line)
        assert (said["whose"], said["n"], said["out"]) == ("all but 1", "24", None)
        assert re.match(r"1 would have been limited: name:abuser \(\d+ in \d+ s\)$", said["fate"]), line
        assert int(said["burst"]) < 100
        [line] = suggest(weir, "default", "CLASS", "read", "EXCEPT", "name:abuser", "name:shop-0")
        said = parts(line)
        assert (said["whose"], said["n"], said["out"]) == ("p99", "22", "2")
        assert said["fate"].startswith("none would have been limited, nearest: name:shop-"), line
        [line] = suggest(weir, "default", "percentile", "100", "class", "read")
        said = parts(line)
        assert (said["whose"], said["n"]) == ("p100", "24")
        assert said["fate"].startswith("none would have been limited, nearest: name:abuser "), line
        assert int(said["burst"]) >= 3000
        [line] = suggest(weir, "default", "CLASS", "read", "PERCENTILE", "90")
        assert parts(line)["whose"] == "p90" and int(parts(line)["burst"]) < 100
        assert suggest(weir, "EXCEPT", "name:abuser")[0] == "[policy default]"


def test_a_subject_left_out_that_was_never_seen_is_named(farm, redis):
    weir = farm.weir(redis, workers=2, mode="shadow", identity="name, ip", sections=OPERATOR)
    with shops(weir, 23, 10):
        line, *told = suggest(weir, "default", "CLASS", "read", "EXCEPT", "name:shop-0", "name:nobody", "name:typo")
    assert parts(line)["out"] == "1"
    assert told == [f"; weir has not seen {name}" for name in ("name:nobody", "name:typo")]


def test_the_forgotten_can_be_left_out(farm, redis):
    """Subjects with names that are still known: the three that asked for most."""
    weir = farm.weir(redis, workers=1, identity="name, ip", max_subjects=10, sections=OPERATOR)
    with tenant(weir, "abuser") as conn:
        conn.ask(*[["GET", "k"]] * 3000)
    with shops(weir, 60, 10):
        pass
    [line] = suggest(weir, "default", "CLASS", "read", "PERCENTILE", "100")
    assert "name:abuser" in line and parts(line)["n"] == "61"
    [line] = suggest(weir, "default", "CLASS", "read", "PERCENTILE", "100", "EXCEPT", "name:abuser")
    assert (parts(line)["n"], parts(line)["out"]) == ("60", "1")
    assert "abuser" not in line and int(parts(line)["burst"]) < 100


def test_policies_and_their_classes(farm, redis, users):
    """Each policy's subjects alone: in classes of its limits, and of the operator's own."""
    redis.forget_data()
    sections = (
        OPERATOR
        + "[class heavy]\ncommands = sort, hgetall\n[policy gold]\nmatch = user:vip-*\n@hash = 5/s over shadow\n"
        + "[policy free]\nmatch = user:*\nread = 2/d\n"
    )
    weir = farm.weir(redis, workers=1, sections=sections)
    assert suggest(weir) == ["; no subject has sent commands yet"]
    assert suggest(weir, "gold") == ["[policy gold]", "; no subject has sent commands yet"]
    assert suggest(weir, "gold", "CLASS", "heavy") == ["; heavy: no subject has sent any yet"]
    with login(weir, "vip-1") as conn:
        assert conn.ask(["HGETALL", "h"], ["GET", "k"], ["PING"]) == [[], None, "PONG"]
    with login(weir, "alice") as conn:
        replies = conn.ask(*[["GET", "k"]] * 9)
        assert passed(replies) == 2  # refused requests count as requests, too
    gold = suggest(weir, "gold")
    assert gold[0] == "[policy gold]"
    assert [re.match(r"; (\S+): only 1 subject in \d+ s: too few to suggest a limit$", line)[1] for line in gold[1:]] == [
        "all",
        "read",
        "@hash",
        "heavy",
    ]
    assert suggest(weir, "gold", "class", "WRITE") == ["; write: no subject has sent any yet"]
    both = suggest(weir)
    assert [line for line in both if line.startswith("[")] == ["[policy gold]", "[policy free]"]
    assert suggest(weir, "CLASS", "read")[0] == "[policy gold]"


def test_subjects_that_keys_name(farm, redis):
    """With identity = key: weir observes tenants one by one where a policy binds them, even an
    empty one.
    """
    weir = farm.weir(redis, workers=1, identity="key:1, ip", sections=OPERATOR + "[policy default]\n")
    with weir.connect() as conn:
        for i in range(7):
            conn.ask(*[["GET", f"t{i}:k"]] * (10 * i + 1))
    [line] = suggest(weir, "default", "CLASS", "read")
    assert parts(line)["n"] == "7"
    assert "key:t6 (61 in " in line


def test_a_reload_keeps_what_was_seen(farm, redis):
    rules = OPERATOR + "[policy default]\nread = 1000/s\n"
    weir = farm.weir(redis, workers=1, identity="name, ip", sections=rules)
    day(weir)
    before = suggest(weir, "default", "CLASS", "read")
    rules = rules.replace("{folder}", str(weir.folder))
    assert reload(weir, rules.replace("1000/s", "900/s") + "@hash = 100/s\n")
    after = suggest(weir, "default", "CLASS", "read")
    assert [parts(line)["n"] for line in before + after] == ["8", "8"]
    day(weir)
    assert parts(suggest(weir, "default", "CLASS", "@hash")[0])["n"] == "8"


def test_the_forgotten_count(farm, redis):
    """More tenants than the table holds."""
    weir = farm.weir(redis, workers=1, identity="name, ip", max_subjects=20, sections=OPERATOR)
    for i in range(100):
        with tenant(weir, f"t{i}") as conn:
            conn.ask(*[["GET", "k"]] * (i + 1))
    [line] = suggest(weir, "default", "CLASS", "read")
    assert int(parts(line)["n"]) > 60
    assert "name:t99" in line


def test_operators_are_not_counted(farm, redis):
    weir = farm.weir(redis, workers=1, sections=OPERATOR)
    with operator(weir) as op:
        for _ in range(20):
            op.call("GET", "k")
        assert op.call("LIMIT", "SUGGEST") == [b"; no subject has sent commands yet"]


def test_exceptions_are_seen_too(farm, redis):
    """A blocked subject, or one with limits of its own, counts like any other: with no policy, and
    with one.
    """
    for rules in ("", "[policy default]\nread = 1000/s\n"):
        weir = farm.weir(redis, workers=1, identity="name, ip", sections=OPERATOR + rules)
        order(weir, "BLOCK", "name:shop-3")
        if rules:
            assert order(weir, "SET", "default", "read", "900/s", "FOR", "name:shop-2") == "OK"
        asked = day(weir)
        assert asked[0] == asked[1]  # -NOPERM is not -THROTTLED
        assert [parts(line)["n"] for line in suggest(weir, "default", "CLASS", "read")] == ["8"]


ERRORS = [
    ("SUGGEST nobody", "ERR no policy nobody: there is gold"),
    ("SUGGEST goald", "ERR no policy goald (did you mean gold?)"),
    ("SUGGEST gold read", "ERR syntax error, unexpected 'read' (write CLASS read)"),
    ("SUGGEST CLASS", "ERR syntax error, an argument is missing after 'CLASS'"),
    ("SUGGEST gold CLASS", "ERR syntax error, an argument is missing after 'CLASS'"),
    ("SUGGEST gold CLASS read x", "ERR syntax error, unexpected 'x'"),
    ("SUGGEST CLASS read x", "ERR syntax error, unexpected 'x'"),
    ("SUGGEST CLASS read CLASS write", "ERR syntax error, unexpected 'CLASS'"),
    ("SUGGEST PERCENTILE", "ERR syntax error, an argument is missing after 'PERCENTILE'"),
    ("SUGGEST gold EXCEPT", "ERR syntax error, an argument is missing after 'EXCEPT'"),
    ("SUGGEST PERCENTILE 0", "ERR value is not an integer or out of range: '0' must be 1 to 100"),
    ("SUGGEST PERCENTILE 101", "ERR value is not an integer or out of range: '101' must be 1 to 100"),
    ("SUGGEST PERCENTILE 99.9", "ERR value is not an integer or out of range: '99.9' must be 1 to 100"),
    (
        "SUGGEST gold CLASS reads",
        "ERR weir does not observe class reads in policy gold: write all, read, write, a class of the policy's limits, or a [class NAME]",
    ),
]


@pytest.mark.parametrize("command, error", ERRORS)
def test_what_is_wrong_is_said(command, error, kept, redis):
    weir = kept(workers=1, sections=OPERATOR + "[policy gold]\nmatch = user:gold\n")
    assert order(weir, *command.split()) == Error(error)
    with weir.connect() as conn:
        assert conn.call("LIMIT", *command.split()).startswith("NOPERM ")


def test_lines_as_redis_cli_prints_them(farm, redis):
    weir = farm.weir(redis, workers=1, identity="name, ip", sections=OPERATOR)
    day(weir)
    for protocol in ("-2", "-3"):
        argv = ["redis-cli", protocol, "-s", str(weir.folder / "operator.sock"), "LIMIT", "SUGGEST"]
        printed = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=True).stdout.splitlines()
        assert printed[0] == "[policy default]"
        assert all(LINE.fullmatch(line) for line in printed[1:4])
