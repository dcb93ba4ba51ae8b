"""What a configuration is made of besides its lines: variables of the environment."""

import os
import re

from kit.harness import run_weir
from kit.reloading import reload


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
    assert "[policy default] read: ${MORE} is not set in the environment" in weir.log()


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
