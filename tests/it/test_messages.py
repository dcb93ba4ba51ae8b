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
