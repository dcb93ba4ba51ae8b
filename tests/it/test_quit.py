"""A client that has the reply to QUIT is closed at Redis too: a second connection may rely on that.
"""

import pytest
from kit.decisions import speaking
from kit.resp import Push, pipeline
from kit.server import at_least

ROUNDS = 100
pytestmark = pytest.mark.skipif(not at_least(7), reason="Redis 6.2 takes an ended connection out of its lists a turn later")


@pytest.mark.parametrize("ahead", [[], ["PING", "PING"]], ids=["alone", "behind others"])
def test_a_redirection_is_broken_once_its_target_has_quit(ahead, weir):
    with speaking(weir.connect(), 3) as tracked, weir.connect() as writer:
        for number in range(ROUNDS):
            with weir.connect() as target:
                assert tracked.call("CLIENT", "TRACKING", "on", "REDIRECT", target.call("CLIENT", "ID")) == "OK"
                tracked.ask("SET quit 1", "GET quit")
                target.send(pipeline(*ahead, "QUIT"))
                assert [target.read() for _ in [*ahead, "QUIT"]] == ["PONG"] * len(ahead) + ["OK"]
                assert writer.call("SET", "quit", number) == "OK"
                tracked.send(pipeline("PING"))
                broken = tracked.read()
                assert isinstance(broken, Push) and broken[0] == b"tracking-redir-broken", f"round {number}"
                assert tracked.read() == "PONG"


@pytest.mark.parametrize("ahead", [[], ["PING", "PING"]], ids=["alone", "behind others"])
def test_who_has_quit_receives_no_message(ahead, weir):
    with weir.connect() as publisher:
        for number in range(ROUNDS):
            with speaking(weir.connect(), 3) as subscriber:
                subscriber.call("SUBSCRIBE", "quit")
                subscriber.send(pipeline(*ahead, "QUIT"))
                assert [subscriber.read() for _ in [*ahead, "QUIT"]] == ["PONG"] * len(ahead) + ["OK"]
                assert publisher.call("PUBLISH", "quit", "x") == 0, f"round {number}"
