"""Crowds of clients that reconnect after a restart of Redis."""

import asyncio
import select
import time

import pytest
from kit.resp import Closed, Conn, encode

SUBSCRIBERS, BLOCKED, SECONDS = 3000, 500, 10


class Crowd:
    """Clients that reconnect whenever they are closed, as libraries do; `back` holds the connected
    ones.
    """

    def __init__(self, address):
        self.address = address
        self.back = set()
        self.errors = []
        self.is_over = False

    async def client(self, n, request, answer):
        while not self.is_over:
            try:
                reader, writer = await asyncio.open_connection(*self.address)
                writer.write(request)
                if answer:
                    line = await reader.readuntil(answer)
                    if line.startswith(b"-"):
                        self.errors.append(line)
                self.back.add(n)
                data = await reader.read(1000)
                if data.startswith(b"-"):
                    self.errors.append(data)
            except (OSError, asyncio.IncompleteReadError):
                pass
            finally:
                self.back.discard(n)
                writer.close()
            await asyncio.sleep(0.1)

    def ordinary(self, served):
        """An ordinary client, on a thread: one command after the other."""
        while not self.is_over:
            try:
                with Conn(self.address, 10) as conn:
                    while not self.is_over and conn.call("PING") == "PONG":
                        served.append(time.monotonic())
                        time.sleep(0.005)
            except (OSError, Closed):
                time.sleep(0.02)


async def all_back(crowd, n, seconds):
    until = time.monotonic() + seconds
    while len(crowd.back) < n and time.monotonic() < until:
        await asyncio.sleep(0.02)
    assert len(crowd.back) == n, (len(crowd.back), crowd.errors[:3])


async def restart(farm, redis, weir, n_subscribers, n_blocked, seconds):
    crowd, served = Crowd(weir.address), []
    tasks = [
        asyncio.create_task(crowd.client(n, encode("SUBSCRIBE", f"c{n}"), b":1\r\n")) for n in range(n_subscribers)
    ]
    pop = encode("CLIENT", "SETNAME", "w") + encode("BLPOP", "jobs", "0")
    tasks += [asyncio.create_task(crowd.client(-1 - n, pop, b"+OK\r\n")) for n in range(n_blocked)]
    tasks.append(asyncio.create_task(asyncio.to_thread(crowd.ordinary, served)))
    total = n_subscribers + n_blocked
    await all_back(crowd, total, 60)
    redis.signal(9)
    redis.wait()
    began = time.monotonic()
    redis.start()
    while len(crowd.back) == total and time.monotonic() < began + 5:
        await asyncio.sleep(0.01)
    await all_back(crowd, total, seconds)
    while not await asyncio.to_thread(lambda: redis.info("blocked_clients") == str(n_blocked)):
        assert time.monotonic() - began < seconds, redis.info("blocked_clients")
        await asyncio.sleep(0.05)
    took = time.monotonic() - began
    crowd.is_over = True
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return took, [at - began for at in served if at > began], crowd.errors


def play(farm, n_subscribers, n_blocked, seconds, **settings):
    redis = farm.redis()
    weir = farm.weir(redis, workers=2, unauthenticated=0, **settings)
    return asyncio.run(restart(farm, redis, weir, n_subscribers, n_blocked, seconds))


def test_a_crowd_comes_back_after_a_restart(farm):
    took, served, errors = play(farm, 100, 50, SECONDS)
    assert served and not errors, (took, errors[:3])


@pytest.mark.moves
@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_a_great_crowd_comes_back_after_a_restart(farm, lanes):
    """Ordinary commands are served meanwhile."""
    took, served, errors = play(farm, SUBSCRIBERS, BLOCKED, SECONDS, lanes=lanes)
    print("back after", took, "served", len(served))
    gaps = [after - before for before, after in zip([0, *served], served) if before < took]
    assert max(gaps) < SECONDS / 2 and not errors, (took, max(gaps), errors[:3])


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_connections_are_opened_at_the_rate(farm, redis, lanes):
    """The connections of a tenth of a second open at once, the others at upstream-dial-rate. No
    client gets an error.
    """
    weir = farm.weir(redis, workers=2, lanes=lanes, upstream_dial_rate="50/s")
    with weir.connect() as conn:
        conn.call("PING")
    began = time.monotonic()
    conns = [weir.connect() for _ in range(30)]
    for n, conn in enumerate(conns):
        conn.send(encode("SUBSCRIBE", f"c{n}"))
    for n, conn in enumerate(conns):
        assert conn.read() == [b"subscribe", f"c{n}".encode(), 1]
    assert time.monotonic() - began >= (30 - 5 - 1) / 50
    for conn in conns:
        conn.close()


def test_a_shared_connection_is_opened_before_the_crowds(farm):
    redis = farm.redis()
    redis.call("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all")
    weir = farm.weir(redis, workers=1, upstream_dial_rate="5/s")
    conns = [weir.connect() for _ in range(20)]
    for n, conn in enumerate(conns):
        conn.send(encode("SUBSCRIBE", f"c{n}"))
    with weir.connect() as conn:
        assert conn.call("AUTH", "app", "pw") == "OK"
        assert conn.call("GET", "k") is None
    assert not select.select([conns[-1].sock], [], [], 0)[0], "the crowd still waits"
    for conn in conns:
        conn.close()
