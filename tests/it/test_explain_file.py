"""weir -t --explain: what would happen to a command, decided from the file alone."""

import pytest
from kit.harness import REPO, run_weir
from kit.limits import OPERATOR, operator, plain

TIERS = """
[class heavy]
commands = keys, sort
[cost]
keys = 100
[policy gold]
match = user:gold-*
heavy = 5/s over delay 200ms
cost = 200/s
read = 100/s per connection
[policy cheap]
match = user:cheap-*, ip:10.0.0.0/8
@scripting = deny
cost = 50/s over close
bytes-in = 1mb/s
inflight = 5 per policy
[policy keyed]
match = key:tenant:*
write = 1/m
[policy quiet]
match = name:quiet
keyspace = deny
[class keyspace]
commands = @keyspace
"""


def explain(path, *words):
    """Returns (exit status, {field: text}, stderr); `limits` is a list of such dicts."""
    done = run_weir("-c", path, "-t", "--explain", *words)
    found = {}
    for line in done.stdout.splitlines():
        if line.startswith("  "):
            found["limits"].append(dict(field.split(" ", 1) for field in line.strip().split(", ")))
        else:
            name, _, value = line.partition(" ")
            found[name] = [] if name == "limits" else value
    return done.returncode, found, done.stderr


def said(value):
    """Returns the value as printed."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [{name: said(field) for name, field in row.items()} for row in value]
    if isinstance(value, list):
        return " ".join(value) if value else []
    return "none" if value is None else str(value)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "weir.conf"
    path.write_text("[weir]\nidentity = user, key:2, ip\nupstream = 192.0.2.1:6379\n" + TIERS)
    return path


@pytest.mark.parametrize(
    "subject, command, status, verdict, limit",
    [
        ("user:gold-1", ["GET", "k"], 0, "pass", "none"),
        ("user:gold-1", ["KEYS", "*"], 0, "pass", "none"),
        ("user:cheap-1", ["KEYS", "*"], 3, "close", "cheap/cost"),
        ("ip:10.1.2.3", ["EVAL", "return 1", "0"], 3, "deny", "cheap/@scripting"),
        ("user:gold-1,ip:10.1.2.3", ["EVAL", "return 1", "0"], 0, "pass", "none"),
        ("user:x,ip:10.1.2.3", ["EVAL", "return 1", "0"], 3, "deny", "cheap/@scripting"),
        ("name:quiet", ["DEL", "k"], 3, "deny", "quiet/keyspace"),
        ("name:quiet", ["DEL", "tenant:a:k"], 0, "pass", "none"),
        ("ip:::1", ["PING"], 0, "pass", "none"),
    ],
)
def test_the_verdict_is_the_exit_status(subject, command, status, verdict, limit, file):
    got, found, _ = explain(file, subject, *command)
    assert (got, found["verdict"], found["limit"]) == (status, verdict, limit)


def test_who_it_is(file):
    assert explain(file, "user:gold-1", "GET", "k")[1]["subject"] == "user:gold-1"
    assert explain(file, "ip:10.0.0.1", "GET", "k")[1]["subject"] == "key:k"
    assert explain(file, "ip:10.0.0.1", "GET", "tenant:a:b")[1]["subject"] == "key:tenant:a"
    assert explain(file, "ip:10.0.0.1,key:tenant:z", "INFO")[1]["subject"] == "key:tenant:z"
    found = explain(file, "ip:192.0.2.7", "INFO")[1]
    assert (found["policy"], found["subject"]) == ("none", "ip:192.0.2.7")
    assert explain(file, "ip:unix", "INFO")[1]["subject"] == "ip:unix"


def test_options_of_the_command_are_its_own(file):
    status, found, _ = explain(file, "user:gold-1", "SET", "k", "v", "-t", "--strict")
    assert (status, found["command"]) == (0, "set")


@pytest.mark.parametrize(
    "words, said",
    [
        (["nobody", "GET", "k"], '"nobody" names no client'),
        (["user:", "GET", "k"], '"user:" names no client'),
        (["ip:10.0.0", "GET", "k"], '"10.0.0" is not an address'),
        (["user:default", "GET", "k"], "leave user: out"),
        (["users:x", "GET", "k"], "write user:, ip:, name:, tls:, listener: or key:"),
        (["user:x"], "needs a command"),
        (["user:free-1,user:gold-1", "GET", "k"], "user: is given twice"),
        (["ip:10.0.0.1,user:x,IP:10.0.0.2", "GET", "k"], "IP: is given twice"),
    ],
)
def test_questions_that_make_no_sense(words, said, file):
    status, found, stderr = explain(file, *words)
    assert (status, found) == (1, {}) and said in stderr


@pytest.mark.parametrize(
    "words, said",
    [
        (["KEYZ", "x"], "KEYZ is not a known command (did you mean keys?): only limits on all"),
        (["config", "gett", "x"], "config|gett is not a known command (did you mean config|get?)"),
        (["QQQQQQQQ"], "QQQQQQQQ is not a known command: only limits on all"),
    ],
)
def test_a_command_that_nobody_knows(words, said, file):
    status, found, stderr = explain(file, "user:gold-1", *words)
    assert (status, found["verdict"]) == (0, "pass") and said in stderr
    done = run_weir("-c", file, "-t", "--strict", "--explain", "user:gold-1", *words)
    assert done.returncode == 1 and said in done.stderr
    assert run_weir("-c", file, "-t", "--strict", "--explain", "user:gold-1", "KEYS", "x").returncode == 0


def test_options_stand_before_it(file):
    done = run_weir("--explain", "user:x", "GET", "k", "-t", "-c", file)
    assert done.returncode == 1 and "needs -t before it" in done.stderr


def test_the_manual_shows_every_line(file):
    shown = (REPO / "docs/configuration.md").read_text().split("### What would become of a command")[1].split("```")[1]
    done = run_weir("-c", file, "-t", "--explain", "user:gold-1", "KEYS", "*")
    names = [[line.split(" ")[0] for line in text.splitlines()] for text in (shown, done.stdout)]
    assert [name for name in names[0] if name not in ("", "$")] == [name for name in names[1] if name != ""]


def test_a_mistake_in_the_file_is_told_first(tmp_path):
    path = tmp_path / "weir.conf"
    path.write_text("[weir]\nworkers = x\n")
    status, found, stderr = explain(path, "user:x", "GET", "k")
    assert (status, found) == (1, {}) and f"{path}:2: [weir] workers: " in stderr
    done = run_weir("-c", path, "--explain", "user:x", "GET", "k")
    assert done.returncode == 1 and "needs -t" in done.stderr


def test_an_unknown_command_is_told(file):
    status, found, stderr = explain(file, "user:gold-1", "KEYZ", "*")
    assert (status, found["command"]) == (0, "unknown")
    assert "KEYZ is not a known command" in stderr


def test_a_shadow_stops_nobody(tmp_path):
    path = tmp_path / "weir.conf"
    path.write_text("[weir]\nmode = shadow\n" + TIERS)
    (tmp_path / "enforced.conf").write_text(TIERS)
    before = explain(tmp_path / "enforced.conf", "user:cheap-1", "KEYS", "*")[1]
    status, found, _ = explain(path, "user:cheap-1", "KEYS", "*")
    assert (status, found["mode"], found["verdict"]) == (0, "shadow", before["verdict"]), "what would be"
    assert found["verdict"] != "pass"


COMMANDS = [
    ["GET", "k"], ["KEYS", "*"], ["EVAL", "return 1", "0"], ["SET", "k", "v"], ["PING"], ["WATCH", "k"], ["LIMIT", "STATUS"],
    ["CONFIG", "GET", "x"], ["NOSUCH", "x"], ["XREAD", "BLOCK", "0", "STREAMS", "s", "0"], ["CL.THROTTLE", "k", "1", "1", "1"],
]


@pytest.mark.parametrize("subject", ["user:gold-1", "user:cheap-2", "user:nobody", "ip:10.1.2.3", "ip:192.0.2.1"])
def test_it_says_what_limit_explain_says(subject, farm, redis):
    """For a subject that has not been seen yet, with the commands of Redis 7.0."""
    weir = farm.weir(redis, sections=OPERATOR + TIERS)
    with operator(weir) as conn:
        for command in COMMANDS:
            told = plain(conn.call("LIMIT", "EXPLAIN", *command, "FOR", subject))
            status, found, _ = explain(weir.config, subject, *command)
            assert found == {name: said(value) for name, value in told.items()}, command
            assert (status == 0) == (told["verdict"] in ("pass", "delay"))
