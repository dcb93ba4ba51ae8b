"""weir's own replies to a client that has received half a message come after the other half,
wherever the message is cut.
"""

import functools
import re

import pytest
from kit.fake import Fake
from kit.resp import Closed, encode, pipeline

LANES = ["shared", "private"]
LIMITS = "[policy default]\nwrite = 1/h\n[policy joe]\nmatch = user:joe\nconnections = 1\n"
MAX_CLIENTS = b"-ERR max number of clients reached\r\n"
THROTTLED = rb"-THROTTLED retry_in_ms=\d+ limit=default/write\r\n"
SET, GET = encode("SET", "k", "v"), encode("GET", "k")

# How a client comes to receive messages: each request with its reply, if the fake has none by
# itself, and a message.
LISTENERS = {
    "subscriber": (
        {"SUBSCRIBE c": b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"},
        b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$5\r\nhello\r\n",
    ),
    "subscriber-resp3": (
        {"HELLO 3": None, "SUBSCRIBE c": b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"},
        b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$5\r\nhello\r\n",
    ),
    "tracking": (
        {"HELLO 3": None, "CLIENT TRACKING ON": None, "GET k": b"$1\r\nv\r\n"},
        b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n",
    ),
    "monitor": ({"MONITOR": b"+OK\r\n"}, b'+1700000000.123456 [0 127.0.0.1:1] "GET" "k"\r\n'),
}

# A pattern of each reply of weir's own, and whether weir then closes the connection.
OWN = {
    "quit": (encode("QUIT"), rb"\+OK\r\n", True),
    "protocol-error": (b"*1\r\n?3\r\n", rb"-ERR Protocol error: expected '\$', got '\?'\r\n", True),
    "half-a-request": (
        b"*3\r\n$3\r\nGET\r\n$70000\r\n" + b"k" * 70000 + b"\r\n?1\r\n",
        rb"-ERR Protocol error: expected '\$', got '\?'\r\n",
        True,
    ),
    "limit-command": (encode("LIMIT", "NONE"), rb"-ERR unknown subcommand[^\r]*\r\n", False),
    "no-command": (encode("G\0"), rb"-ERR unknown command 'G'[^\r]*\r\n", False),
    "refusal": (SET, THROTTLED, False),
    "pipeline": (SET + encode("G\0") + SET, THROTTLED + rb"-ERR unknown[^\r]*\r\n" + THROTTLED, False),
    "pipeline-and-quit": (SET + encode("QUIT"), THROTTLED + rb"\+OK\r\n", True),
}


@pytest.fixture(scope="module")
def fake():
    with Fake() as fake:
        yield fake


@pytest.fixture(scope="module")
def weirs(fake, kept):
    @functools.cache
    def weir(lanes):
        weir = kept(fake.upstream, workers=1, lanes=lanes, sections=LIMITS)
        with weir.connect() as conn:
            conn.send(SET)  # the one that may pass
            lane = fake.expect(SET)
            lane.send(b"+OK\r\n")
            assert conn.read() == "OK"
            lane.answer_again()
        return weir

    return weir


@pytest.fixture(params=LANES)
def weir(request, weirs):
    return weirs(request.param)


def listen(name, fake, weir):
    """Returns (the client, its lane, a message)."""
    answers, message = LISTENERS[name]
    conn = weir.connect()
    for command, answer in answers.items():
        conn.send(pipeline(command))
        if answer:
            lane = fake.expect(pipeline(command))
            lane.send(answer)
        conn.read()
    return conn, lane, message


class Bystander:
    """A client for ordering: when it has its reply, weir has read all bytes sent before."""

    def __init__(self, weir):
        self.conn = weir.connect()
        self.wait()

    def wait(self):
        for _ in range(2):
            assert self.conn.call("ECHO", "x") == b"x"


def cuts(message):
    return sorted({1, 2, 3, 4, 5, len(message) // 2, len(message) - 2, len(message) - 1})


@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("listener", LISTENERS)
def test_own_answers_follow_the_message(listener, own, fake, weir):
    request, answer, closes = OWN[own]
    bystander = Bystander(weir)
    for cut in cuts(LISTENERS[listener][1]):
        conn, lane, message = listen(listener, fake, weir)
        with conn:
            lane.send(message[:cut])
            assert conn.read_bytes(cut) == message[:cut]
            conn.send(request)
            bystander.wait()
            assert not conn.is_closed() and not conn.buffer, "nothing inside the message"
            lane.send_slowly(message[cut:])
            assert conn.read_bytes(len(message) - cut) == message[cut:]
            if closes:
                got = conn.read_to_end()
            else:
                lane.send(message)
                got = b""
                while not got.endswith(message):
                    conn.more()
                    got, conn.buffer = got + bytes(conn.buffer), bytearray()
                got = got[: -len(message)]
            assert re.fullmatch(answer, got), (cut, got)


@pytest.mark.parametrize("listener", LISTENERS)
def test_a_message_among_answers_waits_for_its_place(listener, fake, weir):
    """Refused, sent, refused: the message, and then all replies in order."""
    conn, lane, message = listen(listener, fake, weir)
    get = encode("PING") if listener == "subscriber" else GET
    pong = b"*2\r\n$4\r\npong\r\n$0\r\n\r\n"
    reply = pong if listener == "subscriber" else b"$1\r\nv\r\n"
    with conn:
        lane.send(message[:7])
        assert conn.read_bytes(7) == message[:7]
        conn.send(SET + get + SET)
        lane.expect(get)
        lane.send_slowly(message[7:] + message[:9])
        conn.send(SET)
        lane.send_slowly(message[9:] + reply + message)
        last = re.escape(message)  # on a private lane: it may overtake the refusals
        ends = b"|".join([THROTTLED * 2 + last, THROTTLED + last + THROTTLED, last + THROTTLED * 2])
        wanted = re.escape(message[7:]) + THROTTLED + re.escape(message + reply) + b"(?:" + ends + b")"
        got = b""
        while not got.endswith(reply) or len(got) < len(reply):
            conn.more()
            got, conn.buffer = got + bytes(conn.buffer), bytearray()
            if re.fullmatch(wanted, got):
                break
        assert re.fullmatch(wanted, got), got


def test_a_message_ends_though_the_client_is_sent_away(fake, weir):
    """The client logs in as one connection too many while half a message has come."""
    auth = encode("AUTH", "joe", "pw")
    with weir.connect() as first:
        assert first.call("AUTH", "joe", "pw") == "OK"
        conn, lane, message = listen("tracking", fake, weir)
        with conn:
            lane.send(message[:7])
            assert conn.read_bytes(7) == message[:7]
            conn.send(auth)
            lane.send_slowly(message[7:] + message)
            assert conn.read_to_end() in (message[7:] + MAX_CLIENTS, message[7:] + message + MAX_CLIENTS)


@pytest.mark.parametrize("listener", ["subscriber-resp3", "tracking", "monitor"])
def test_a_changed_reply_follows_the_message(listener, fake, weir):
    """weir has buffered the reply to COMMAND COUNT; the other half of the message has not come."""
    count = encode("COMMAND", "COUNT")
    conn, lane, message = listen(listener, fake, weir)
    with conn:
        lane.send(message[:7])
        assert conn.read_bytes(7) == message[:7]
        conn.send(count)
        lane.expect(count)
        lane.send_slowly(message[7:])
        assert conn.read_bytes(len(message) - 7) == message[7:], "before the answer has come"
        lane.send_slowly(message + b":240\r\n" + message)
        got = conn.read_bytes(2 * len(message) + 6)
        assert re.fullmatch(re.escape(message) + rb":24[1-9]\r\n" + re.escape(message), got), got


@pytest.mark.parametrize("listener", LISTENERS)
def test_reset_waits_for_the_message(listener, fake, weir):
    """RESET is answered as soon as the other half has come, though nothing else comes."""
    bystander = Bystander(weir)
    conn, lane, message = listen(listener, fake, weir)
    with conn:
        lane.send(message[:7])
        assert conn.read_bytes(7) == message[:7]
        conn.send(encode("RESET"))
        bystander.wait()
        assert not conn.is_closed() and not conn.buffer, "nothing inside the message"
        lane.send_slowly(message[7:])
        assert conn.read_bytes(len(message) - 7) == message[7:]
        if listener.startswith("subscriber"):  # Redis ends its subscriptions first
            lane.expect(encode("rESET"))
            lane.send(b"+RESET\r\n")
        assert conn.read_bytes(8) == b"+RESET\r\n"


@pytest.mark.parametrize("listener", LISTENERS)
def test_a_lane_that_breaks_in_a_message(listener, fake, weir):
    """weir does not send the replies that should follow the message."""
    conn, lane, message = listen(listener, fake, weir)
    with conn:
        lane.send(message[:7])
        assert conn.read_bytes(7) == message[:7]
        conn.send(SET + encode("QUIT"))
        Bystander(weir)
        lane.reset()
        assert conn.read_to_end() == b""


def test_a_reply_that_began_before_it_was_asked(fake, weir):
    """Such a reply reaches no client, also if a client asks before the reply ends."""
    conn, lane, _ = listen("tracking", fake, weir)
    with conn:
        lane.send(b"$5\r\nhel")
        try:
            conn.send(GET)
            lane.send(b"lo\r\n")
            assert b"lo\r\n" not in conn.read_to_end()
        except Closed:
            pass
        lane.wait_gone()
