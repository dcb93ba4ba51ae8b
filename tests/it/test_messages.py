"""What is wrong is named as what it is, with what to write instead."""

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from kit.harness import WEIR, run_weir


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
    assert f"{tmp_path}/nowhere/" in said and "its folder is missing" in said and key in said
    assert "in use" not in done.stderr


SOCKETS = ["[weir]\nlisten = 127.0.0.1:0, unix:{path}\n", "[weir]\nlisten = 127.0.0.1:0\n[admin]\nsocket = {path}\n"]


@pytest.mark.parametrize("lines", SOCKETS)
@pytest.mark.parametrize(
    "path, said",
    [
        ("{folder}/nowhere/a.sock", "there is no folder {folder}/nowhere: make it, or choose another path"),
        ("{folder}/text/a.sock", "{folder}/text is no folder: choose another path"),
        ("{folder}/text/deep/a.sock", "{folder}/text/deep is not in a folder: choose another path"),
        ("{folder}/text", "{folder}/text is there and no socket, and weir does not replace it: choose another path"),
        ("{folder}", "{folder} is a folder: name a file in it, which weir makes"),
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
    assert "Permission denied: choose a folder that the user may write to whom weir runs as" in done.stderr
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
    assert "weir.conf:3: [weir]: a comment behind a value begins with ; (# only begins a whole line)" in done.stdout + done.stderr


def test_what_has_a_hash_in_it_is_no_comment(tmp_path):
    done = tried(tmp_path, "[weir]\nlimit-prefix = we#ir: ; a prefix\n", "-t")
    assert done.returncode == 0, done.stderr


# ---- what is good as it stands, and can hardly be meant; and slips that are known from elsewhere ----

A = "[policy a]\nmatch = user:x\nread = 5/s\n"
LINES = [
    (A + "weight = 2\nweight = 3\n", 5, True, "weight: given twice: the first is in line 4"),
    (A + "admin = no\n[policy b]\nmatch = user:y\nread = 1/s\n[policy a]\nadmin = no\n", 9, True, "given twice: the first is in line 4"),
    (A + "priority = low\nPRIORITY = normal\n", 5, True, "given twice: the first is in line 4"),
    ("[policy a]\nmatch = user:a;alice\nread = 5/s\n", 2, False, "user:a, user:alice"),
    ("[policy a]\nmatch = user:/free-.*/\nread = 5/s\n", 2, False, "write user:free-*"),
    ("[policy a]\nmatch = name:'web'\nread = 5/s\n", 2, False, "write name:web"),
    ("[policy READONLY]\nmatch = user:a\nread = 5/s\n", 1, False, "clients act on READONLY"),
    ("[policy a-MOVED]\nmatch = user:a\nread = 5/s\n", 1, False, "clients act on MOVED"),
    *[(f"[weir]\nerror-prefix = {word}\n", 2, False, f"clients act on {word}") for word in
      ("NOPROTO", "NOREPLICAS", "ERR", "WRONGTYPE", "CROSSSLOT", "NOMASTERLINK", "NOQUORUM", "BUSYGROUP", "BUSYKEY")],
    ("[weir]\nerror-prefix = MOVED\n", 2, True, "clients act on MOVED"),
    ("[weir]\nlisten = unix:/tmp/x.sock mode=0666\n", 2, True, "write mode 0666"),
    ("[weir]\nupstream = a:1, b:2\n", 2, True, "write upstream = a:1"),
    ("[weir]\nupstream = \"a:1\"\n", 2, True, "write upstream = a:1"),
    ("[weir]\nname = \"eu\"\n", 2, False, "write name = eu without them"),
    ("[weir]\nlisten = :6380\n", 2, True, "write 127.0.0.1:6380"),
    ("[weir]\nupstream-password = tiger\n", 2, True, "write upstream-password-file = PATH"),
    ("[weir]\nsentinel = a:26379\n", 2, True, "write upstream = HOST:PORT"),
    ("[weir]\ntimeout = 300\n", 2, True, "write idle-timeout = TIME"),
    ("[weir]\nrequirepass = tiger\n", 2, True, "upstream-password-file = PATH"),
    ("[policy default]\ncommands = 100/s\n", 2, True, "write all = 100/s"),
    ("weir:\n  listen: 127.0.0.1:6380\n", 1, True, "this is YAML, and weir reads INI"),
    ("- name: default\n", 1, True, "this is YAML, and weir reads INI"),
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
