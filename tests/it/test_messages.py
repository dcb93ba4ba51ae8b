"""What is wrong is named as what it is, with what to write instead."""

import pytest
from kit.harness import run_weir


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
