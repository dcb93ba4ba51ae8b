"""A library that writes a whole pipeline before it reads gets all replies, as from Redis, up to
output-limit.
"""

import socket

import pytest
from kit.harness import MODE_IDS, MODES
from kit.resp import Conn, encode, pipeline

PAD = "k" * 1500  # makes more bytes of requests than sockets and weir buffer


@pytest.fixture(params=MODES, ids=MODE_IDS)
def start(request, farm, redis):
    workers, lanes = request.param
    return lambda **settings: farm.weir(redis, workers=workers, lanes=lanes, **settings)


class Narrow(Conn):
    """A client with a small send buffer. The receive buffer keeps its size: if both sides of a
    connection are full, the kernel itself may wait half a minute before it retries.
    """

    def __init__(self, address):
        super().__init__(address)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
        self.sock.settimeout(30)


@pytest.mark.parametrize("line", ["", "bytes-out = 1gb/s burst 1gb"], ids=["unlimited", "bytes-out"])
def test_large_replies(line, start, redis):
    """weir asks for few large replies at a time, but not for a client that has not begun to read.
    """
    redis.call("SET", "big", b"x" * 300_000)
    weir = start(sections=f"[policy default]\nall = 1g/s\n{line}\n")
    with Narrow(weir.address) as conn:
        conn.send(pipeline(*["GET big"] * 100) + encode("EXISTS", "k" * 8192) * 2000 + encode("ECHO", "last"))
        assert all(len(conn.read()) == 300_000 for _ in range(100))
        assert [conn.read() for _ in range(2001)] == [0] * 2000 + [b"last"]


@pytest.mark.parametrize("line", ["", "bytes-out = 200mb/s over delay 30s"], ids=["unlimited", "bytes-out delayed"])
@pytest.mark.parametrize("length", [1, 10], ids=["short", "long"])
def test_transactions(length, line, start, redis):
    """Each transaction waits for the reply to the one before, which waits for the client to read.
    """
    redis.call("SET", "value", b"x" * 4096)
    weir = start(sections=f"[policy default]\nall = 1g/s\n{line}\n")
    requests = encode("MULTI") + encode("MGET", "value", PAD) * length + encode("EXEC")
    n = 4000 // length
    with Narrow(weir.address) as conn:
        conn.send(requests * n)
        for _ in range(n):
            assert [conn.read() for _ in range(length + 1)] == ["OK"] + ["QUEUED"] * length
            assert conn.read() == [[b"x" * 4096, None]] * length


def test_commands_of_weirs_between(start, redis):
    redis.call("SET", "value", b"x" * 4096)
    weir = start()
    with Narrow(weir.address) as conn:
        conn.send((encode("MGET", "value", PAD) + encode("LIMIT", "FUNNEL", "f", "1000000/s")) * 5000)
        for _ in range(5000):
            assert conn.read() == [b"x" * 4096, None] and conn.read()[0] == 0
