"""No reply ever reaches a client that did not ask for it, whichever clients close and whichever
servers fail.
"""

import asyncio
import time

import pytest
from kit.crowd import Crowd
from kit.harness import TOLD_AT_ONCE, wait_until
from kit.resp import Closed, encode
from kit.server import at_least

CLIENTS = 200
SECONDS = 4.0  # `make soak` runs as long as wanted
RESTARTS = 4
BACK_WITHIN = 5.0


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_every_reply_carries_its_token(lanes, farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=2, lanes=lanes)
    crowd = Crowd(weir.address, seed=7)

    async def long_enough():
        await asyncio.sleep(SECONDS)
        for field, least in (("verified", 2000), ("left", 100), ("bytes", 10_000_000)):
            await grows(crowd, field, least - getattr(crowd, field))

    asyncio.run(crowd.run(CLIENTS, long_enough()))
    wait_until(lambda: connected(redis) < 20, "the clients' lanes are given back")
    with weir.connect() as conn:
        assert conn.call("PING") == "PONG"


def connected(redis):
    """Returns connections other than kept lanes: a leak would show."""
    return int(redis.info("connected_clients"))


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_while_redis_is_killed_and_restarted(lanes, farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=2, lanes=lanes, **TOLD_AT_ONCE)
    crowd = Crowd(weir.address, seed=8, upstream_may_go=True)

    async def restarts():
        for _ in range(RESTARTS):
            await grows(crowd, "verified", 2000)
            redis.kill()
            await grows(crowd, "unavailable", 50)
            await asyncio.to_thread(redis.start)
            await asyncio.to_thread(wait_until, weir.serves, "weir finds the restarted Redis", BACK_WITHIN)

    asyncio.run(crowd.run(CLIENTS, restarts()))
    assert crowd.closed > 0
    assert weir.serves()


async def grows(crowd, field, by):
    """Wait until the crowd has counted `by` more."""
    goal = getattr(crowd, field) + by
    deadline = time.monotonic() + 20
    while getattr(crowd, field) < goal:
        assert time.monotonic() < deadline, f"{field} stays at {getattr(crowd, field)}"
        await asyncio.sleep(0.002)


# Redis' error repeats the missing name unchanged, including line ends.
FORGERY = "#!lua name=a\nlocal t = {} t['x" + r"\r\n+FORGED" * 1000 + "']()"


@pytest.mark.skipif(not at_least(7, 0), reason="this redis-server has no libraries of functions")
@pytest.mark.parametrize("words", [("FUNCTION", "LOAD"), ("FUNCTION", "LOAD", "REPLACE")], ids=" ".join)
def test_a_library_that_forges_replies_forges_its_own(words, farm):
    weir = farm.weir(farm.redis(), workers=1)
    with weir.connect() as victim:
        for i in range(20):
            with weir.connect() as forger:
                # on the lane that both clients share
                assert forger.call("ECHO", "before") == b"before"
                forger.send(encode(*words, FORGERY))
                assert [victim.call("ECHO", f"{i}-{k}") for k in range(20)] == [b"%d-%d" % (i, k) for k in range(20)]
                with pytest.raises(Closed):  # more has come than the client asked for
                    for _ in range(1000):
                        forger.read()
