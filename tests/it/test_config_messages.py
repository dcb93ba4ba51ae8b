"""Error messages name what is wrong, and what to write instead."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from kit.harness import REPO, WEIR, run_weir


def tried(tmp_path, lines, *options):
    path = tmp_path / "weir.conf"
    path.write_text(lines.replace("{folder}", str(tmp_path)))
    return run_weir(*options, "-c", path)


@pytest.mark.parametrize(
    "lines, key",
    [
        ("[weir]\nlisten = unix:{folder}/nowhere/weir.sock\n", "listen= in [weir]"),
        ("[weir]\nlisten = 127.0.0.1:0\n[admin]\nsocket = {folder}/nowhere/admin.sock\n", "socket= in [admin]"),
    ],
)
def test_the_folder_of_a_socket_is_missing(lines, key, tmp_path):
    done = tried(tmp_path, lines)
    assert done.returncode != 0
    said = next(line for line in done.stderr.splitlines() if "cannot listen on" in line)
    assert f"{tmp_path}/nowhere/" in said and "its folder does not exist" in said and key in said
    assert "in use" not in done.stderr


SOCKETS = ["[weir]\nlisten = 127.0.0.1:0, unix:{path}\n", "[weir]\nlisten = 127.0.0.1:0\n[admin]\nsocket = {path}\n"]


@pytest.mark.parametrize("lines", SOCKETS)
@pytest.mark.parametrize(
    "path, said",
    [
        ("{folder}/nowhere/a.sock", "the folder {folder}/nowhere does not exist: create it, or choose another path"),
        ("{folder}/text/a.sock", "{folder}/text is not a folder: choose another path"),
        ("{folder}/text/deep/a.sock", "{folder}/text/deep is not in a folder: choose another path"),
        ("{folder}/text", "{folder}/text exists and is not a socket, so weir does not replace it: choose another path"),
        ("{folder}", "{folder} is a folder: name a file in it, which weir creates"),
    ],
)
def test_a_check_warns_of_what_stands_in_a_sockets_way(lines, path, said, tmp_path):
    (tmp_path / "text").write_text("kept\n")
    lines = lines.format(path=path)
    done = tried(tmp_path, lines, "-t")
    warnings = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert done.returncode == 0 and [line.endswith(": " + said.format(folder=tmp_path)) for line in warnings] == [True], done.stderr
    assert tried(tmp_path, lines, "-t", "--strict").returncode == 1
    done = tried(tmp_path, lines)
    assert done.returncode != 0 and "cannot listen on unix:" in done.stderr
    assert (tmp_path / "text").read_text() == "kept\n" and tmp_path.is_dir()


@pytest.mark.parametrize("lines", SOCKETS)
def test_a_check_is_content_with_a_path_that_is_free_or_was_left(lines, tmp_path):
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "left.sock"))
    for path in (tmp_path / "left.sock", tmp_path / "new.sock", "/run/no-such-service/admin.sock"):
        done = tried(tmp_path, lines.format(path=path), "-t", "--strict")
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("lines", SOCKETS)
def test_a_folder_of_somebody_else_is_no_matter_of_ports(lines):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = Path(folder) / "weir.conf"
        path.write_text(lines.format(path=Path(folder) / "a.sock"))
        binary = shutil.copy(WEIR, folder)
        done = subprocess.run([binary, "-c", path], user=65534, group=65534, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "Permission denied: choose a folder that weir's user may write to" in done.stderr
    assert "port" not in done.stderr.split("Permission denied")[1]


@pytest.mark.parametrize(
    "value, wanted",
    [
        ("redis://127.0.0.1:6379", "redis://... is a URL: write 127.0.0.1:6379"),
        ("redis://127.0.0.1", "redis://... is a URL: write 127.0.0.1:6379"),
        ("rediss://redis.example:6380/0", "rediss://... is a URL: write tls:redis.example:6380"),
        ("redis://ann:tiger@127.0.0.1:6379", "write 127.0.0.1:6379, and its user and password in upstream-user"),
    ],
)
def test_a_url_is_no_address(value, wanted, tmp_path):
    done = tried(tmp_path, f"[weir]\nupstream = {value}\n", "-t")
    assert done.returncode == 1
    assert wanted in done.stdout + done.stderr
    assert "tiger" not in done.stdout + done.stderr


@pytest.mark.parametrize("line", ["workers = 2 # of them", "upstream-user = weir\t#me", "mode = # shadow"])
def test_a_comment_behind_a_value(line, tmp_path):
    done = tried(tmp_path, f"[weir]\n# a comment\n{line}\n", "-t")
    assert done.returncode == 1
    assert "weir.conf:3: [weir]: a comment after a value begins with ; (# only begins a comment line)" in done.stdout + done.stderr


def test_what_has_a_hash_in_it_is_no_comment(tmp_path):
    done = tried(tmp_path, "[weir]\nlimit-prefix = we#ir: ; a prefix\n", "-t")
    assert done.returncode == 0, done.stderr


# ---- valid but suspicious settings, and settings of other programs ----

A = "[policy a]\nmatch = user:x\nread = 5/s\n"
LINES = [
    (A + "weight = 2\nweight = 3\n", 5, True, "weight: given twice: the first is in line 4"),
    (A + "admin = no\n[policy b]\nmatch = user:y\nread = 1/s\n[policy a]\nadmin = no\n", 9, True, "given twice: the first is in line 4"),
    (A + "priority = low\nPRIORITY = normal\n", 5, True, "given twice: the first is in line 4"),
    ("[policy a]\nmatch = user:a;alice\nread = 5/s\n", 2, False, "user:a, user:alice"),
    ("[policy a]\nmatch = user:/free-.*/\nread = 5/s\n", 2, False, "write user:free-*"),
    ("[policy a]\nmatch = name:'web'\nread = 5/s\n", 2, False, "write name:web"),
    ("[policy READONLY]\nmatch = user:a\nread = 5/s\n", 1, False, "client libraries act on READONLY"),
    ("[policy a-MOVED]\nmatch = user:a\nread = 5/s\n", 1, False, "client libraries act on MOVED"),
    *[(f"[weir]\nerror-prefix = {word}\n", 2, False, f"client libraries act on {word}") for word in
      ("NOPROTO", "NOREPLICAS", "ERR", "WRONGTYPE", "CROSSSLOT", "NOMASTERLINK", "NOQUORUM", "BUSYGROUP", "BUSYKEY")],
    ("[weir]\nerror-prefix = MOVED\n", 2, True, "client libraries act on MOVED"),
    ("[weir]\nlisten = unix:/tmp/x.sock mode=0666\n", 2, True, "write mode 0666"),
    ("[weir]\nupstream = a:1 b:2\n", 2, True, "write upstream = a:1, b:2"),
    ("[weir]\nupstream = a:1, b:2\n", 2, False, "upstream-allow = NETWORK"),
    ("[weir]\nupstream = sentinel:a:1, b:2\n", 2, True, "write upstream = sentinel:NAME@a:1"),
    ("[weir]\nupstream = cluster:a:1\n", 2, False, "upstream-allow = NETWORK"),
    ("[weir]\nupstream = cluster:a:1\nlanes = private\n", 3, True, "write lanes = shared"),
    ("[weir]\ncross-slot = refuse\n", 2, True, "write upstream = cluster:HOST:PORT"),
    ("[weir]\nreads = replicas\n", 2, True, "or reads = master"),
    ("[weir]\nupstream-map = a:1=a:1\n", 2, True, "leads back to itself"),
    ("[weir]\nupstream = \"a:1\"\n", 2, True, "write upstream = a:1"),
    ("[weir]\nname = \"eu\"\n", 2, False, "write name = eu without quotes"),
    ("[weir]\nlisten = :6380\n", 2, True, "write 127.0.0.1:6380"),
    ("[weir]\nupstream-password = tiger\n", 2, True, "write upstream-password-file = PATH"),
    ("[weir]\nsentinel = a:26379\n", 2, True, "write upstream = sentinel:NAME@HOST:26379"),
    ("[weir]\ntimeout = 300\n", 2, True, "write idle-timeout = TIME"),
    ("[weir]\nrequirepass = tiger\n", 2, True, "upstream-password-file = PATH"),
    ("[policy default]\ncommands = 100/s\n", 2, True, "write all = 100/s"),
    ("weir:\n  listen: 127.0.0.1:6380\n", 1, True, "this file is YAML, but weir reads INI"),
    ("- name: default\n", 1, True, "this file is YAML, but weir reads INI"),
]  # fmt: skip


@pytest.mark.parametrize("text, line, is_mistake, said", LINES, ids=[said[:40] for *_, said in LINES])
def test_a_slip_is_told_with_the_line_to_write(text, line, is_mistake, said, tmp_path):
    done = tried(tmp_path, text, "-t")
    assert done.returncode == (1 if is_mistake else 0), done.stderr
    told = done.stderr.splitlines()
    assert len(told) == 1 and said in told[0] and "tiger" not in told[0]
    where = f"weir.conf:{line}: "
    assert where in told[0] and told[0].startswith("warning: ") != is_mistake
    assert tried(tmp_path, text, "-t", "--strict").returncode == 1


# ---- a line that a message proposes is itself accepted ----

STANDS_FOR = {
    "HOST:PORT": "127.0.0.1:6399", "ADDRESS/N": "10.0.0.0/8", "ADDRESS": "10.0.0.1", "PATTERN": "a*", "COUNT": "10", "SIZE": "64mb",
    "TIME": "5s", "PORT": "6399", "HOST": "127.0.0.1", "NAME": "root", "@CATEGORY": "@read",
}  # fmt: skip
LINE = re.compile(r"(?<![\w.@-])(@?[A-Za-z][\w.-]*) = (\S[^,;()]*?)(?= for | below| in it| and |,|;| \(|$)")
HINT = re.compile(r'^HINT\((\w+), "([^"]+)",', re.M)
VALUES = ["10", "127.0.0.1:6391", "r1 127.0.0.1:6392 check", "10/s", "mymaster", "/tmp/x", "a b, c", "redis://ann:tiger@redis:6379/0"]
TLS = ["tls-cert-file", "tls-key-file", "tls-ca-cert-file"]


def filled(text, folder):
    for word, value in STANDS_FOR.items():
        text = re.sub(rf"(?<![\w@]){re.escape(word)}(?!\w)", value, text)
    return text.replace("/PATH", str(folder / "a")).replace("PATH", str(folder / "a"))


def file_with_the_lines_of(said, place, folder):
    """Returns the lines that a message proposes, and a file with these lines."""
    sections = {"[weir]": [], "[admin]": [], "[policy hinted]": []}
    lines = LINE.findall(said) if "write " in said else []
    for key, value in lines:
        is_admin = place == "ADMIN" or "[admin]" in said.split(f"{key} = ")[0]
        is_of_policy = place == "POLICY" or key in ("all", "match", "cmd.NAME", "admin")
        section = "[admin]" if is_admin and key in ("listen", "socket") else "[policy hinted]" if is_of_policy else "[weir]"
        line = filled(f"{key} = {value}", folder).replace("tls:", "")  # without a certificate
        sections[section].append(line.replace("6399", "6398") if key == "upstream" else line)
    policy = sections["[policy hinted]"]
    if policy and not any(line.startswith("match") for line in policy):
        policy.insert(0, "match = user:x")
    return lines, "\n".join("\n".join([head, *of]) for head, of in sections.items() if of) + "\n"


@pytest.mark.parametrize("place", ["WEIR", "ADMIN", "POLICY"])
def test_a_line_that_a_hint_names_is_accepted(place, tmp_path):
    (tmp_path / "a").write_text("tiger\n")
    (tmp_path / "a").chmod(0o600)
    names = [name for where, name in HINT.findall((REPO / "src/run/config/config_hints.def").read_text()) if where == place]
    files = {}
    for value in VALUES:
        for i in range(0, len(names), 90):  # the 100th mistake is the last that is reported
            heads = {"WEIR": "[weir]\n", "ADMIN": "[admin]\n", "POLICY": "[policy a]\nmatch = user:x\n"}
            text = heads[place] + "".join(f"{name} = {value}\n" for name in names[i : i + 90])
            told = tried(tmp_path, text, "-t").stderr.splitlines()
            assert len(told) == len(names[i : i + 90]) and all("unknown key: " in line for line in told), told
            for line in told:
                assert "tiger" not in line
                said = line.split("unknown key: ")[1]
                lines, text = file_with_the_lines_of(said, place, tmp_path)
                if lines and not any(key in TLS for key, _ in lines):
                    files[text] = said
    assert len(files) > 3
    for text, said in files.items():
        done = tried(tmp_path, text, "-t")
        assert done.returncode == 0, (said, text, done.stderr)


P = "[policy a]\nmatch = user:x\nall = 1k/s\n"
M = "[policy a]\nall = 1/s\nmatch = "
IN_PLACE = [  # the text of the file, the wrong part, what the message proposes instead
    ("[weir]\nserver = r1 127.0.0.1:6379 check\n", "server = r1 127.0.0.1:6379 check", "upstream = 127.0.0.1:6379"),
    ("[weir]\nmaster = mymaster\n", "master = mymaster", "upstream = HOST:PORT"),
    ("[weir]\nupstream = 127.0.0.1:6379; comment\n", "upstream = 127.0.0.1:6379; comment", "upstream = 127.0.0.1:6379"),
    ("[weir]\nupstream = 127.0.0.1:6379 check\n", "upstream = 127.0.0.1:6379 check", "upstream = 127.0.0.1:6379"),
    ("[weir]\nupstream-allow = ::1\nupstream = mymaster, b:1\n", "mymaster", "mymaster:6379"),
    ("[weir]\nupstream = redis://a\n", "redis://a", "a:6379"),
    ("[weir]\nworkers = 2; two\n", "workers = 2; two", "workers = 2"),
    ("[weir]\nnbthread = 4\n", "nbthread = 4", "workers = 4"),
    ("[weir]\nworker_processes = auto\n", "worker_processes = auto", "workers = cores"),
    ("[weir]\ntimeout client = 30s\n", "timeout client = 30s", "idle-timeout = 30s"),
    ("[weir]\nlimit-prefix = weir:\n", "limit-prefix = weir:", "limit-prefix = limit:"),
    ("[weir]\nlisten = 6390\n", "6390", "127.0.0.1:6390"),
    ("[weir]\nlisten = unix:/tmp/x mode 000\n", "mode 000", "mode 0660"),
    ("[weir]\nlisten = unix:/tmp/x mode=0666\n", "mode=0666", "mode 0666"),
    ("[weir]\nlisten = /tmp/x\n", "/tmp/x", "unix:/tmp/x"),
    ("[prometheus]\n", "[prometheus]", "[admin]"),
    (P + "cmd:get = 10/s\n", "cmd:get = 10/s", "cmd.get = 10/s"),
    (P + "cmd_get = 10/s\n", "cmd_get = 10/s", "cmd.get = 10/s"),
    (P + "read = 9/s; c\n", "read = 9/s; c", "read = 9/s"),
    (P + "auth_failures = 5/m\n", "auth_failures = 5/m", "auth-failures = 5/m"),
    (P + "maxconn = 50\n", "maxconn = 50", "connections = 50"),
    (P + "bytes-out = 10mb/s burst 40\n", "burst 40", "burst 40mb"),
    (P + "[class c]\ncommands = *\n", "*", "all"),
    (P.replace("a]", "a]\n[class a]\ncommands = get\n[policy a]") + "reads = 9/s\n", "reads = 9/s", "read = 9/s"),
    (M + "listener:6390\n", "listener:6390", "listener:127.0.0.1:6380"),
    (M + "user:[!a]*\n", "user:[!a]*", "user:[^a]*"),
    (M + "user:free-+\n", "user:free-+", "user:free-*"),
    (M + "user:free$\n", "user:free$", "user:free"),
    (M + "user:a\\\n", "user:a\\", "user:a\\\\"),
    (M + "user:<name>\n", "user:<name>", "user:name"),
    (M + "user:user:a\n", "user:user:a", "user:a"),
    (M + "user:/free-.*/\n", "user:/free-.*/", "user:free-*"),
    (M + "name:'web'\n", "name:'web'", "name:web"),
]  # fmt: skip


@pytest.mark.parametrize("text, wrong, right", IN_PLACE, ids=[right for *_, right in IN_PLACE])
def test_a_line_that_a_message_names_is_accepted_in_its_place(text, wrong, right, tmp_path):
    told = tried(tmp_path, text, "-t").stderr.splitlines()
    assert len(told) == 1 and re.search(rf"write {re.escape(right)}(?![\w:.*\\-])", told[0]), told
    at = text.rindex(wrong)
    done = tried(tmp_path, text[:at] + filled(right, tmp_path) + text[at + len(wrong) :], "-t", "--strict")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "text, said",
    [
        ("[weir]\nupstream = unix:/tmp/a b\n", "the path of a unix socket cannot contain blanks"),
        ("[weir]\nlisten = unix:/tmp/x,y.sock\n", "the path of a unix socket has no commas"),
        (M + "tls:x\n", "no address of listen begins with tls:"),
        (M + "user:!a\n", "give clients to exclude"),
        (M + "user:/default/\n", "not a regular expression"),
        ("[class a]\ncommands = ab\n", "ab is not a known command"),
    ],
)
def test_a_message_names_no_line_where_none_is_meant(text, said, tmp_path):
    told = tried(tmp_path, text, "-t").stderr.splitlines()
    assert len(told) == 1 and said in told[0] and "write" not in told[0] and "did you mean" not in told[0]
