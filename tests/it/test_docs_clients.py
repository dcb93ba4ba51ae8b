"""Runs docs/clients.md as printed: the loops that wait and retry do exactly what the page says.

weir's limit is one SET an hour, which is too long to wait for. Instead of each wait the test
forgives the limit, or does not.
"""

import os
import re
import subprocess
import time

import pytest
import redis as redis_py
from kit.harness import NODE_SOURCES, REPO
from kit.transcript import File, story

PAGE = "docs/clients.md"
HOUR_MS = 3_600_000
ONE_AN_HOUR = "[policy default]\nadmin = yes\ncmd.set = 1/h\n"
MAIN_C = """
#include "patiently.c"
#include <string.h>

static redisContext *redis;
static int is_forgiven, waits;
static int waited_ms;

int on_wait(struct pollfd *fds, nfds_t n_fds, int ms)
{
    (void)fds, (void)n_fds;
    waits++;
    waited_ms = ms;
    if (is_forgiven)
        freeReplyObject(redisCommand(redis, "LIMIT FORGIVE ip:127.0.0.1"));
    return 0;
}

static void set(long most_ms)
{
    waits = 0;
    redisReply *reply = patiently(redis, "SET k v", 4, most_ms);
    printf("%.9s %d %d\\n", reply->str, waits, waited_ms);
    freeReplyObject(reply);
}

int main(int argc, char **argv)
{
    redis = redisConnect("127.0.0.1", atoi(argv[argc - 1]));
    set(2000);
    set(2000);
    set(3600000);
    is_forgiven = 1;
    set(3600000);
    redisFree(redis);
}
"""


def file_of_page(name):
    (text,) = [step.text for step in story(PAGE) if isinstance(step, File) and step.name == name]
    return text


POINT_JS = """
const Redis = require('ioredis');
const { createClient } = require('redis');
(async () => {
  const one = %s;
  const two = await %s.connect();
  console.log(await one.ping(), await two.ping());
  await Promise.all([one.quit(), two.close()]);
})();
"""


def pointed_at_weir(path):
    """Returns {library: the code in the page's table}."""
    rows = re.findall(r"^\| (?:\[([^]]+)\]\([^)]+\)|([^|]+)) \| `([^`]+6380[^`]*)` \|", (REPO / path).read_text(), re.M)
    return {linked or plain: code for linked, plain, code in rows}


@pytest.fixture
def weir(farm):
    return farm.weir(farm.redis(), workers=1, sections=ONE_AN_HOUR)


def test_what_is_not_run_says_so():
    sections = re.split(r"^## ", (REPO / PAGE).read_text(), flags=re.M)
    for section in sections[1:]:
        has_code = re.search(r"^```(?!python|js|c )\w", section, re.M)
        assert bool(has_code) == ("*Not run by our tests.*" in section), section[:40]


def test_each_library_is_pointed_at_weir_as_printed(weir, node_modules):
    lines = pointed_at_weir(PAGE)
    front_page = pointed_at_weir("README.md")
    assert front_page.pop("redis-cli") and front_page == lines and len(lines) == 9
    port = str(weir.address[1])
    with eval(lines["redis-py"].replace("6380", port), {"redis": redis_py}) as client:
        assert client.ping()
    code = POINT_JS % (lines["ioredis"].replace("6380", port), lines["node-redis"].replace("6380", port))
    env = {**os.environ, "NODE_PATH": str(node_modules)}
    done = subprocess.run(["node", "-e", code], env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout == "PONG PONG\n", done.stdout + done.stderr


def test_redis_py_waits_as_the_page_says(weir, monkeypatch):
    names = {}
    exec(file_of_page("patiently.py"), names)
    patiently, waits, forgives = names["patiently"], [], []

    def wait(seconds):
        waits.append(seconds * 1000)
        if forgives:
            assert client.execute_command("LIMIT", "FORGIVE", "ip:127.0.0.1") == 1

    with redis_py.Redis(*weir.address) as client:
        monkeypatch.setattr(time, "sleep", wait)
        assert patiently(client.set, "k", "v") is True
        with pytest.raises(redis_py.ResponseError, match="^THROTTLED retry_in_ms="):
            patiently(client.set, "k", "v")
        assert not waits
        with pytest.raises(redis_py.ResponseError, match="^THROTTLED"):
            patiently(client.set, "k", "v", most_ms=HOUR_MS)
        assert len(waits) == 3 and all(HOUR_MS / 2 < ms <= 2 * HOUR_MS for ms in waits)
        with pytest.raises(redis_py.ResponseError, match="not an integer"):
            patiently(client.incr, "k")
        assert len(waits) == 3
        refused, value = client.pipeline(transaction=False).set("k", "w").get("k").execute(raise_on_error=False)
        assert str(refused).startswith("THROTTLED") and value == b"v"
        forgives.append(True)
        assert patiently(client.set, "k", "v", most_ms=HOUR_MS) is True
        assert len(waits) == 4


@pytest.mark.parametrize("library", ["ioredis", "redis"])
def test_node_waits_as_the_page_says(weir, library, node_modules, tmp_path):
    file = tmp_path / "patiently.js"
    file.write_text(file_of_page(file.name))
    argv = ["node", NODE_SOURCES / "patiently.js", str(weir.address[1]), library, file]
    env = {**os.environ, "NODE_PATH": str(node_modules)}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok in a pipeline the others run\n" in done.stdout


def test_hiredis_waits_as_the_page_says(weir, tmp_path):
    (tmp_path / "patiently.c").write_text(file_of_page("patiently.c"))
    (tmp_path / "main.c").write_text(MAIN_C)
    argv = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Dpoll=on_wait", "main.c", "-lhiredis", "-o", "main"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([tmp_path / "main", str(weir.address[1])], capture_output=True, text=True, timeout=60)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[:2] for line in lines] == [["OK", "0"], ["THROTTLED", "0"], ["THROTTLED", "3"], ["OK", "1"]]
    assert all(HOUR_MS / 2 < int(line[2]) <= 2 * HOUR_MS for line in lines[2:])
