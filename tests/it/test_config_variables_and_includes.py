"""Configuration beyond plain lines: environment variables, included files, and how the
configuration is written out.
"""

import os
import re

import pytest
from kit.harness import run_weir
from kit.limits import OPERATOR, order, plain
from kit.reloading import reload, signal_reload


def write(folder, text, name="weir.conf"):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def check(path, *options, **variables):
    return run_weir("-t", *options, "-c", path, env={**os.environ, **variables})


# ---- variables ----


def test_values_come_from_the_environment(farm, redis):
    limits = "[policy default]\nset-once = ${MANY}/${PERIOD:-h}\n[class set-once]\ncommands = set\n"
    weir = farm.weir(redis, env={"MANY": "2"}, sections=limits, listen="127.0.0.1:${NO_SUCH_PORT:-0}")
    with weir.connect() as conn:
        assert [conn.call("SET", "k", "v") for _ in range(2)] == ["OK", "OK"]
        assert re.search(r"limit=default/set-once$", conn.call("SET", "k", "v"))
    assert reload(weir, "[policy default]\nread = ${MANY}/h\n")  # a reload has the same environment
    assert not reload(weir, "[policy default]\nread = ${MORE}/h\n")
    weir.wait_for_log("[policy default] read: ${MORE} is not set in the environment")


def test_a_variable_that_is_not_set_is_named(tmp_path):
    path = write(tmp_path, "[weir]\nupstream = ${REDIS_HOST}:6379\n")
    done = check(path)
    assert done.returncode == 1
    assert done.stderr == (
        f"{path}:2: [weir] upstream: ${{REDIS_HOST}} is not set in the environment: set it, or write "
        "${REDIS_HOST:-default}\n"
    )
    assert check(path, REDIS_HOST="10.0.0.1").returncode == 0


def test_what_a_variable_holds_is_not_told(tmp_path):
    path = write(tmp_path, "[weir]\nupstream = ${REDIS_URL}\nworkers = ${REDIS_URL}\n")
    done = check(path, REDIS_URL="redis://:hunter2@10.0.0.1:6379")
    assert done.returncode == 1 and "[weir] upstream: " in done.stderr and '"${REDIS_URL}"' in done.stderr
    assert "hunter2" not in done.stderr + done.stdout


# ---- other files ----


def test_files_are_included_where_they_are_named_and_sorted(tmp_path):
    write(tmp_path, "[policy b]\nmatch = user:x*\nall = 2/s\n", "conf.d/20.conf")
    write(tmp_path, "[policy a]\nmatch = user:x\nall = 1/s\n", "conf.d/10.conf")
    write(tmp_path, "nonsense", "conf.d/10.conf~")
    path = write(tmp_path, "[weir]\ninclude = conf.d/*.conf\nmax-clients = 5\n[policy c]\nmatch = user:xy\nall = 3/s\n")
    done = check(path)
    assert done.returncode == 0
    # The order of policies is that of the files: policy b comes before policy c and matches all of
    # c's users.
    assert done.stderr == (
        f"warning: {path}:4: [policy c]: binds no client: [policy b] in line 1 of "
        f"{tmp_path}/conf.d/20.conf binds all of them before: move this policy up, or remove it\n"
    )


def test_a_path_is_relative_to_the_file_that_names_it(tmp_path):
    write(tmp_path, "[weir]\ninclude = deep/z.conf, ../side.conf\n", "conf.d/a.conf")
    write(tmp_path / "conf.d", "[policy default]\nall = 0/s\n", "deep/z.conf")
    write(tmp_path, "[weir]\nworkers = x\n", "side.conf")
    path = write(tmp_path, f"[weir]\ninclude = {tmp_path}/conf.d/a.conf\n")
    done = check(path)
    assert done.returncode == 1
    assert f"{tmp_path}/conf.d/deep/z.conf:2: [policy default] all: " in done.stderr
    assert f"{tmp_path}/conf.d/../side.conf:2: [weir] workers: " in done.stderr
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize(
    "line, files, said",
    [
        ("a.conf", {}, "{dir}/weir.conf:2: [weir] include: there is no file a.conf"),
        ("none.d/*.conf", {}, "{dir}/weir.conf:2: [weir] include: the folder of none.d/*.conf cannot be read"),
        ("conf.d", {"conf.d/x": ""}, "{dir}/weir.conf:2: [weir] include: {dir}/conf.d is a folder: write {dir}/conf.d/*.conf for the files in it"),
        ("weir.conf", {}, "{dir}/weir.conf:2: [weir] include: {dir}/weir.conf would include itself: remove this line"),
        (
            "a.conf", {"a.conf": "[weir]\ninclude = ./weir.conf\n"},
            "{dir}/a.conf:2: [weir] include: {dir}/./weir.conf would include itself: remove this line",
        ),
        (
            "a.conf, *.conf", {"a.conf": ""},
            "{dir}/weir.conf:2: [weir] include: {dir}/a.conf is already included in line 2",
        ),
        (
            "a.conf b.conf", {"a.conf": "", "b.conf": ""},
            "{dir}/weir.conf:2: [weir] include: there is no file a.conf b.conf: several paths are separated by commas",
        ),
        (
            "a.conf", {"a.conf": "read = 1/s\n"},
            "{dir}/a.conf:1: read: this line is in no section: write [weir] above it, or [policy NAME] for a limit",
        ),
        (
            "a.conf", {"a.conf": "[weir]\nmax-clients = 1\n"},
            "{dir}/weir.conf:3: [weir] max-clients: given twice: the first is in line 2 of {dir}/a.conf",
        ),
        ("a.conf,", {"a.conf": ""}, "{dir}/weir.conf:2: [weir] include: a path is missing next to a comma"),
    ],
)
def test_mistakes_name_the_file(line, files, said, tmp_path):
    for name, text in files.items():
        write(tmp_path, text, name)
    done = check(write(tmp_path, f"[weir]\ninclude = {line}\nmax-clients = 2\n"))
    assert done.returncode == 1
    assert said.format(dir=tmp_path) + "\n" in done.stderr


def test_depth_and_number_are_bounded(tmp_path):
    for depth in range(1, 10):
        write(tmp_path, f"[weir]\ninclude = {depth + 1}.conf\n", f"{depth}.conf")
    write(tmp_path, "", "10.conf")
    done = check(write(tmp_path, "[weir]\ninclude = 1.conf\n"))
    assert done.stderr == f"{tmp_path}/8.conf:2: [weir] include: files are included more than 8 deep\n"
    for number in range(257):
        write(tmp_path, "", f"many/{number:03}.conf")
    done = check(write(tmp_path, "[weir]\ninclude = many/*.conf\n"))
    assert done.stderr == f"{tmp_path}/weir.conf:2: [weir] include: more than 256 files are included\n"
    (tmp_path / "many/000.conf").unlink()
    assert check(tmp_path / "weir.conf").returncode == 0


def test_a_pattern_that_nothing_fits_is_a_warning(tmp_path):
    (tmp_path / "conf.d").mkdir()
    path = write(tmp_path, "[weir]\ninclude = conf.d/*.conf\n")
    assert check(path).stderr == f"warning: {path}:2: [weir] include: no file matches conf.d/*.conf\n"
    assert check(path, "--strict").returncode == 1
    write(tmp_path, "[weir]\ninclude = conf.d/*.conf more.conf\n")
    assert "no file matches conf.d/*.conf more.conf: several paths are separated by commas\n" in check(path).stderr


def test_a_reload_reads_them_anew_and_diff_knows_them(farm, redis, tmp_path):
    write(tmp_path, "", "conf.d/nothing.conf")
    weir = farm.weir(redis, sections=OPERATOR + f"[weir]\ninclude = {tmp_path}/conf.d/*.conf\n")
    limits = write(tmp_path, "[policy default]\nread = 5/h\n", "conf.d/limits.conf")
    assert plain(order(weir, "DIFF")) == [{"section": "policy default", "what": "read", "running": "", "file": "5/h"}]
    assert signal_reload(weir)
    assert order(weir, "DIFF") == []
    with weir.connect() as conn:
        assert [conn.call("GET", "k") for _ in range(5)] == [None] * 5
        assert re.search(r"limit=default/read$", conn.call("GET", "k"))
    limits.write_text("[policy default]\nread = 0/h\n")
    assert not signal_reload(weir)
    weir.wait_for_log(f"{limits}:2: [policy default] read: a rate of 0")


# ---- written out ----


def dump(path, **variables):
    done = run_weir("-c", path, "--dump", env={**os.environ, **variables})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def without_names(text):
    return re.sub("^; .*\n", "", text, flags=re.M)


def test_the_example_is_written_and_read_again(tmp_path):
    text = dump("conf/weir.conf")
    again = write(tmp_path, text)
    assert check(again, "--strict").returncode == 0
    assert without_names(dump(again)) == without_names(text)
    for line in ("upstream = 127.0.0.1:6379", "max-clients = 10000", "heavy = 3/10s burst 3 per subject over refuse"):
        assert f"\n{line}\n" in text, line


def test_all_files_and_variables_are_in_what_is_written(tmp_path):
    write(tmp_path, "[policy a]\nmatch = user:${WHO}\nall = 1/s\n", "conf.d/a.conf")
    path = write(tmp_path, "[weir]\ninclude = conf.d/*.conf\nupstream-password-file = secret\n")
    write(tmp_path, "hunter2", "secret").chmod(0o600)
    path.write_text(path.read_text().replace("= secret", f"= {tmp_path}/secret"))
    text = dump(path, WHO="ann")
    assert f"; from {path}\n; included {tmp_path}/conf.d/a.conf\n" in text
    assert "\n[policy a]\nmatch = user:ann\n" in text and "\ninclude" not in text
    assert f"\nupstream-password-file = {tmp_path}/secret\n" in text and "hunter2" not in text
    again = write(tmp_path, text, "again.conf")
    assert without_names(dump(again)) == without_names(text)


def test_a_bad_file_is_not_written(tmp_path):
    path = write(tmp_path, "[weir]\nworkers = x\n")
    done = run_weir("-c", path, "--dump")
    assert (done.returncode, done.stdout) == (1, "") and f"{path}:2: " in done.stderr
