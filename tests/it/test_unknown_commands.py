"""Commands that no present server knows, as later versions will add: whatever they are, other
clients are not affected.
"""

import itertools

import pytest
from kit.fake import Fake
from kit.resp import encode

FLAGS = [
    [], ["write"], ["readonly", "fast"], ["write", "denyoom", "movablekeys"], ["blocking"], ["write", "blocking"], ["pubsub"],
    ["pubsub", "readonly"], ["admin", "noscript"], ["module"], ["readonly", "module"], ["loading", "stale", "no_auth", "fast"],
    ["skip_monitor", "may_replicate"], ["a_flag_of_tomorrow"],
]  # fmt: skip
ARITIES = [1, 2, 3, 7, -1, -2, -4]

REPLIES = {
    "a status": b"+FINE\r\n",
    "an error": b"-TOMORROW it is not today\r\n",
    "a number": b":42\r\n",
    "a string": b"$5\r\nab\r\nc\r\n",
    "no string": b"$-1\r\n",
    "no array": b"*-1\r\n",
    "an array": b"*3\r\n:1\r\n$1\r\nx\r\n*2\r\n+a\r\n*0\r\n",
    "what looks like a message": b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n",
    "what looks like a confirmation": b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n",
}
REPLIES_3 = {
    "nothing": b"_\r\n",
    "a truth": b"#t\r\n",
    "a fraction": b",1.5\r\n",
    "a large number": b"(123456789012345678901234567890\r\n",
    "a text": b"=7\r\ntxt:abc\r\n",
    "a map": b"%1\r\n+a\r\n:1\r\n",
    "a set": b"~2\r\n:1\r\n:2\r\n",
    "an attribute and its value": b"|1\r\n+a\r\n:1\r\n:2\r\n",
    "a long error": b"!9\r\nERR later\r\n",
}
KNOWN = ["TOMORROW", "TOMORROW.MODULE"]  # by COMMAND
NAMES = [*KNOWN, "CLIENT TOMORROW", "OBJECT TOMORROW", "FORESEEN"]


def row(name, arity, flags):
    """Returns a row of COMMAND."""
    listed = b"*%d\r\n" % len(flags) + b"".join(b"+%s\r\n" % flag.encode() for flag in flags)
    return b"*10\r\n" + encode(name)[4:] + b":%d\r\n" % arity + listed + b":1\r\n:1\r\n:1\r\n" + b"*0\r\n" * 4


@pytest.fixture
def fake():
    with Fake() as fake:
        fake.own[b"SLOWLOG"] = b":0\r\n"  # asked by weir itself
        del fake.own[b"CLIENT"]
        yield fake


INVENTED = {f"tomorrow-{i}-{arity}": (arity, flags) for i, flags in enumerate(FLAGS) for arity in ARITIES}


def start(farm, fake, **settings):
    rows = [row(name, *facts) for name, facts in INVENTED.items()]
    rows += [row("tomorrow", -1, ["readonly"]), row("tomorrow.module", -1, []), row("get", 2, ["readonly", "fast"])]
    rows += [row(name, -1, ["noscript", "fast"]) for name in ("hello", "multi", "exec", "reset", "client", "object")]
    fake.own[b"COMMAND"] = b"*%d\r\n" % len(rows) + b"".join(rows)
    return farm.weir(fake, workers=1, **settings)


def others_are_served(weir, shared):
    """On the shared lane, by the very next bytes on it."""
    with weir.connect() as other:
        other.send(encode("GET", "k"))
        shared.expect(encode("GET", "k"))
        shared.send(b"$5\r\nother\r\n")
        assert other.read() == b"other"


def open_shared(weir, fake):
    with weir.connect() as first:
        first.send(encode("GET", "k"))
        shared = fake.expect(encode("GET", "k"))
        shared.send(b"$1\r\nv\r\n")
        assert first.read() == b"v"
    return shared


def test_of_any_arity_and_flags_it_travels_alone(farm, fake):
    weir = start(farm, fake)
    shared = open_shared(weir, fake)
    for name, (arity, _) in INVENTED.items():
        asked = encode(name, *["x"] * (abs(arity) - 1))
        with weir.connect() as a:
            a.send(asked)
            lane = fake.expect(asked)
            assert lane is not shared, name
            others_are_served(weir, shared)
            lane.send(b"+FINE\r\n")
            assert a.read() == "FINE"
            others_are_served(weir, shared)
        lane.answer_again()  # the next owner gets the lane after RESET and a nonce


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_of_any_reply_every_byte_is_its_own_clients(farm, fake, name, protocol):
    weir = start(farm, fake)
    shared = open_shared(weir, fake)
    replies = {**REPLIES, **(REPLIES_3 if protocol == 3 else {})}
    for reply, more in itertools.product(replies.values(), [b"", b":7\r\n"]):
        with weir.connect() as a:
            if protocol == 3:
                a.call("HELLO", "3")
            a.send(encode(*name.split()))
            lane = fake.expect(encode(*name.split()))
            assert lane is not shared
            lane.send(reply + more)
            # a second, unsolicited frame: no client gets it, and weir trusts the lane no more
            if more:
                assert a.read_to_end() in (b"", reply)
                lane.wait_gone()
            else:
                assert a.read_bytes(len(reply)) == reply
            others_are_served(weir, shared)
        if not more and name in KNOWN:
            lane.answer_again()  # the next owner gets the lane after RESET and a nonce
        else:
            lane.wait_gone()


def test_a_push_that_it_brings_about_is_its_own_clients(farm, fake):
    weir = start(farm, fake)
    shared = open_shared(weir, fake)
    push = b">2\r\n+tomorrow\r\n:1\r\n"
    with weir.connect() as a:
        a.call("HELLO", "3")
        a.send(encode("FORESEEN"))
        lane = fake.expect(encode("FORESEEN"))
        lane.send(b"+OK\r\n" + push)
        assert a.read_bytes(5 + len(push)) == b"+OK\r\n" + push
        lane.send(push)
        assert a.read_bytes(len(push)) == push
        others_are_served(weir, shared)
    lane.wait_gone()


def test_in_a_transaction_it_ends_the_lane_with_its_client(farm, fake):
    weir = start(farm, fake)
    shared = open_shared(weir, fake)
    with weir.connect() as a:
        a.send(encode("MULTI") + encode("FORESEEN") + encode("EXEC"))
        lane = fake.expect(encode("MULTI"))
        lane.send(b"+OK\r\n")
        for asked, reply in (("FORESEEN", b"+QUEUED\r\n"), ("EXEC", b"*1\r\n+DONE\r\n")):
            lane.answer_again()  # weir checks that the reply belongs to its request
            lane.expect(encode(asked))
            lane.send(reply)
        assert [a.read(), a.read(), a.read()] == ["OK", "QUEUED", ["DONE"]]
        others_are_served(weir, shared)
    lane.wait_gone()


def test_what_the_server_does_not_know_either_leaves_the_lane_clean(farm, fake):
    weir = start(farm, fake)
    shared = open_shared(weir, fake)
    with weir.connect() as a:
        a.send(encode("YESTERDAY"))
        lane = fake.expect(encode("YESTERDAY"))
        lane.send(b"-ERR unknown command 'YESTERDAY', with args beginning with: \r\n")
        assert str(a.read()).startswith("ERR unknown command 'YESTERDAY'")
    others_are_served(weir, shared)
