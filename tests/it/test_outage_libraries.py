"""Programs with client libraries run through three seconds without Redis, and print the same lines
directly and through weir.
"""

import threading
import time

import pytest
import redis as redis_py
from kit.harness import wait_until
from redis.backoff import ConstantBackoff
from redis.retry import Retry
from test_library_sessions import Script

AWAY = 3.0  # seconds: longer than failover-wait
LANES = ["shared", "private"]


class Program(threading.Thread):
    """What an application sees with redis-py, which retries after a lost connection: each change of
    the outcome.
    """

    def __init__(self, server, is_busy):
        super().__init__(daemon=True)
        host, port = server.address
        errors = [redis_py.ConnectionError, redis_py.TimeoutError]
        retry = Retry(ConstantBackoff(0.1), 100)
        self.client = redis_py.Redis(host, port, db=3, client_name="me", retry=retry, retry_on_error=errors)
        self.is_busy, self.is_back, self.lines = is_busy, False, []
        self.client.set("k", "v")
        self.start()

    def say(self, text):
        if self.lines[-1:] != [text]:
            self.lines.append(text)

    def once(self):
        try:
            self.say(f"ok {self.client.set('k', 'v') if self.is_busy else self.client.blpop('q', 0)}")
        except redis_py.RedisError as error:
            self.say(f"error {type(error).__name__}: {error}")

    def run(self):
        is_last = False
        while not is_last:
            is_last = self.is_back or not self.is_busy
            self.once()
            is_last = is_last and self.lines[-1].startswith("ok")


def lose(redis, seconds):
    redis.kill()
    time.sleep(seconds)
    redis.start()


def push(redis):
    with redis.connect() as conn:
        assert conn.call("SELECT", 3) == "OK"
        conn.call("RPUSH", "q", "v")


def say_of_py(server, redis, is_busy, seconds=AWAY):
    program = Program(server, is_busy)
    wait_until(lambda: program.lines or redis.waiting()[0] > 0, "it works")
    lose(redis, seconds)
    if not is_busy:
        push(redis)
    program.is_back = True
    program.join(20)
    assert not program.is_alive(), program.lines
    return program.lines


def say_of_node(modules, library, server, redis, is_busy):
    with Script(modules, "outage.js", server, library, "busy" if is_busy else "idle") as program:
        program.until("ready")
        if not is_busy:
            wait_until(lambda: redis.waiting()[0] > 0, "it blocks")
        else:
            program.until("ok OK")
        lose(redis, AWAY)
        if not is_busy:
            push(redis)
        program.finish("back\n")
        return program.output.split("\n")


WORK = pytest.mark.parametrize("is_busy", [True, False], ids=["busy", "idle"])


def test_redis_py_idle_over_an_outage(farm):
    """One program of each kind always runs; the others run in `make test-moves`."""
    redis = farm.redis()
    lines = say_of_py(farm.weir(redis, failover_wait="200ms"), redis, is_busy=False, seconds=0.5)
    assert lines == ["ok (b'q', b'v')"]


@pytest.mark.moves
@pytest.mark.parametrize("lanes", LANES)
@WORK
def test_redis_py_over_an_outage(is_busy, lanes, farm):
    redis = farm.redis()
    directly = say_of_py(redis, redis, is_busy)
    through = say_of_py(farm.weir(redis, lanes=lanes), redis, is_busy)
    # redis-py 4 does not retry a refused connection, and weir accepts connections
    if through != directly:
        assert len(through) == 1 and directly[1].endswith("Connection refused."), directly
    assert through[-1].startswith("ok")


@pytest.mark.moves
@pytest.mark.parametrize("lanes", LANES)
@WORK
@pytest.mark.parametrize("library", ["ioredis", "redis"])
def test_node_over_an_outage(library, is_busy, lanes, farm, node_modules):
    redis = farm.redis()
    directly = say_of_node(node_modules, library, redis, redis, is_busy)
    assert say_of_node(node_modules, library, farm.weir(redis, lanes=lanes), redis, is_busy) == directly
    assert any(line.startswith("ok") for line in directly)
