"""Arbitrary bytes from Redis' side: weir stays up, serves other clients, and answers an error for
an unbelievable reply.
"""

import pytest
from kit.decisions import decide, fresh, place
from kit.fake import INFO, Fake
from kit.harness import wait_until
from kit.resp import Closed, Error, encode, pipeline

SHA = b"$40\r\n" + b"a1" * 20 + b"\r\n"
CALLS = {
    "funnel": ("LIMIT FUNNEL {} 5/h", "EVALSHA"),
    "rates": ("LIMIT FUNNEL {} 5/h 7/d 9/d", "EVALSHA"),
    "sliding": ("LIMIT SLIDING {} 5/h", "EVALSHA"),
    "fixed": ("LIMIT FIXED {} 5/h", "EVALSHA"),
    "throttle": ("CL.THROTTLE {} 4 1 60", "EVALSHA"),
    "acquire": ("LIMIT ACQUIRE {} 1 9000", "EVALSHA"),
    "release": ("LIMIT RELEASE {} token", "EVALSHA"),
}
LARGE, SMALL = b":9223372036854775807\r\n", b":-9223372036854775808\r\n"

# Answers to no question of weir's.
GARBAGE = [
    b"+OK\r\n", b":1\r\n", b":-1\r\n", LARGE, b"$-1\r\n", b"*-1\r\n", b"*0\r\n", b"$0\r\n\r\n", b"$3\r\nabc\r\n", b"-\r\n", b"- \r\n",
    b"-NOSCRIPT none\r\n", b"*1\r\n*1\r\n:1\r\n", b"*1\r\n+OK\r\n", b"*1\r\n$0\r\n\r\n", b"*1\r\n$-1\r\n", b"*1\r\n-ERR x\r\n",
    b"*1\r\n" + SMALL, b"*1\r\n" + LARGE, b"*1\r\n:-1\r\n", b"*2\r\n:1\r\n:1\r\n", b"*3\r\n:1\r\n:1\r\n*0\r\n", b"*3\r\n" + LARGE * 3,
    b"*3\r\n" + SMALL * 3, b"*3\r\n:2\r\n:1\r\n:1\r\n", b"*4\r\n:3\r\n:0\r\n:0\r\n:0\r\n", b"*4\r\n:-1\r\n:0\r\n:0\r\n:0\r\n",
    b"*4\r\n:1\r\n" + LARGE * 3, b"*4\r\n:1\r\n" + SMALL * 3, b"*4\r\n:0\r\n:0\r\n:0\r\n$1\r\n", b"*4\r\n" + b"*1\r\n" * 4 + b":1\r\n" * 4,
    b"*5\r\n" + b":0\r\n" * 5, b"*25\r\n" + b":0\r\n" * 25, b"*1\r\n" * 500 + b":1\r\n",
    b">1\r\n:1\r\n", b"%1\r\n:1\r\n:1\r\n", b"~1\r\n:1\r\n", b"_\r\n", b"#t\r\n", b",1\r\n", b"(1\r\n", b"|1\r\n+a\r\n+b\r\n:1\r\n",
    b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0", b"\r\n", b"*x\r\n", b"*99999999999999999999\r\n", b"$99999999999999999999\r\n", b"*2\r\n:1\r\n",
]  # fmt: skip


@pytest.fixture
def fake():
    with Fake() as fake:
        fake.own |= {b"SCRIPT": SHA, b"SLOWLOG": b":0\r\n"}
        yield fake


def start(farm, fake, **settings):
    return farm.weir(fake, workers=1, upstream_timeout="300ms", connect_timeout="300ms", **settings)


def serves(weir):
    """Commands of other clients travel. If weir finds its upstream down for a moment, they travel a
    moment later.
    """

    def is_served():
        with weir.connect() as conn:
            try:
                return conn.call("ECHO", "x") == b"x"
            except Closed:
                return False

    wait_until(lambda: is_served() or not weir.is_running(), "others are served")
    assert weir.is_running(), weir.log()


def is_unlike(garbage, call):
    """False for an array that could be the debts of three rates."""
    return call != "rates" or garbage != b"*3\r\n:2\r\n:1\r\n:1\r\n"


@pytest.mark.parametrize("call", CALLS)
def test_answers_to_scripts(farm, fake, call):
    """The call never passes and weir does not crash. Each call gets an error, and the next call is
    decided normally.
    """
    weir = start(farm, fake, limit_when_down="error")
    command, asked = CALLS[call]
    for garbage in filter(lambda g: is_unlike(g, call), GARBAGE):
        fake.own |= {asked.encode(): garbage, b"EVAL": garbage}
        with weir.connect() as conn:
            found = conn.ask(*[command.format(fresh())] * 2)
        assert all(isinstance(reply, Error) for reply in found), (garbage, found)
        assert all(str(reply) for reply in found), (garbage, found)
        serves(weir)


def test_answers_to_deletes(farm, fake):
    weir = start(farm, fake)
    for garbage in filter(lambda g: g != b":1\r\n", GARBAGE):
        fake.own |= {b"UNLINK": garbage, b"DEL": garbage}
        with weir.connect() as conn:
            assert isinstance(conn.call("LIMIT", "RESET", fresh()), Error), garbage
        serves(weir)


def test_one_bad_answer_among_many(farm, fake):
    """weir believes no part of a reply that is not right as a whole."""
    weir = start(farm, fake)
    with weir.connect() as conn:
        fake.own[b"EVALSHA"] = b"*1\r\n:0\r\n"
        assert decide(conn, f"LIMIT FUNNEL {fresh()} 5/h").limited == 0
        for bad in (b"+x\r\n", b"*1\r\n:1\r\n", b"$-1\r\n"):
            fake.own[b"EVALSHA"] = b"*3\r\n:0\r\n:0\r\n" + bad
            found = conn.ask(*[f"LIMIT FUNNEL {fresh()} 5/h" for _ in range(3)])
            assert all(isinstance(reply, Error) for reply in found), (bad, found)
        serves(weir)


def test_answers_to_loading(farm, fake):
    """Wrong answers to the loading of scripts."""
    weir = start(farm, fake)
    good = b"*1\r\n:0\r\n"
    for garbage in [*GARBAGE, b"$40\r\n" + b"\r\n" * 20 + b"\r\n", b"$40\r\n" + b"z" * 40 + b"\r\n"]:
        fake.own |= {b"SCRIPT": garbage, b"EVALSHA": good}
        with weir.connect() as conn:
            assert isinstance(conn.call("LIMIT", "FUNNEL", fresh(), "5/h"), Error), garbage
        serves(weir)
    fake.own[b"SCRIPT"] = SHA

    def is_decided():
        with weir.connect() as conn:
            return not isinstance(conn.call("LIMIT", "FUNNEL", fresh(), "5/h"), Error)

    wait_until(is_decided, "scripts are taken again")


def bulks(*words):
    return encode(*words)


def test_what_is_published(farm, fake):
    """Clients that wait for a permit are woken only by valid messages of the channel of releases.
    """
    weir = start(farm, fake)
    channel = "limit:released"
    confirmed = b"*3\r\n$9\r\nsubscribe\r\n$14\r\nlimit:released\r\n:1\r\n"
    noise = [
        b"*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\nk\r\n",
        b"*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*-1\r\n",
        b"*3\r\n$7\r\nmessage\r\n$14\r\nlimit:released\r\n:1\r\n",
        b"*3\r\n$7\r\nmessage\r\n$14\r\nlimit:released\r\n*1\r\n$1\r\nk\r\n",
        b"*3\r\n$7\r\nmessage\r\n$14\r\nlimit:released\r\n$-1\r\n",
        b"*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$14\r\nlimit:released\r\n$7\r\nlimit:k\r\n",
        bulks("message", channel),
        bulks("message", channel, "limit:k", "more"),
        bulks("message", "other", "limit:k"),
        bulks("message", "", ""),
    ]
    fake.own[b"EVALSHA"] = b"*3\r\n:0\r\n:1\r\n:60000\r\n"
    for sent in [confirmed + b"".join(noise), *noise, *GARBAGE]:
        fake.own[b"SUBSCRIBE"] = sent
        with weir.connect() as conn:
            found = conn.call("LIMIT", "ACQUIRE", "k", 1, 9000, "WAIT", 60)
            assert isinstance(found, Error) or place(found).limited == 1, (sent, found)
        serves(weir)


# ---- the control connection ----


def command_row(name=b"$3\r\nget\r\n", arity=b":2\r\n", flags=b"*1\r\n+readonly\r\n", keys=b":1\r\n" * 3, categories=b"*0\r\n", subs=b"*0\r\n"):
    return b"*10\r\n" + name + arity + flags + keys + categories + b"*0\r\n*0\r\n" + subs


ODD_COMMANDS = [
    b"*%d\r\n" % 5 + command_row() * 5,
    b"*1\r\n" + command_row(name=b"$0\r\n\r\n"),
    b"*1\r\n" + command_row(name=b"$5\r\n\r\n\0\x7f \r\n"),
    b"*1\r\n" + command_row(name=b"*1\r\n:1\r\n", flags=b":1\r\n", categories=b"$1\r\nx\r\n", subs=b"$-1\r\n"),
    b"*1\r\n" + command_row(arity=SMALL, keys=b":0\r\n:-1\r\n:0\r\n"),
    b"*1\r\n" + command_row(arity=LARGE, keys=b":1\r\n" + LARGE + SMALL),
    b"*1\r\n" + command_row(keys=b":-5\r\n:-5\r\n:-5\r\n"),
    b"*1\r\n" + command_row(categories=b"*200\r\n" + b"".join(b"+@c%d\r\n" % i for i in range(200))),
    b"*1\r\n" + command_row(flags=b"*200\r\n" + b"$-1\r\n" * 200),
    b"*1\r\n" + command_row(subs=b"*1\r\n" + command_row(subs=b"*1\r\n" + b"*1\r\n" * 6 + b":1\r\n")),
    b"*20000\r\n" + b"".join(command_row(name=b"$6\r\nc%05d\r\n" % i) for i in range(20000)),
    b"*1\r\n" + b"*1\r\n" * 20 + b":1\r\n",
    b"*3\r\n:1\r\n$-1\r\n*-1\r\n",
]  # fmt: skip
ENDLESS = [b"*2147483647\r\n", b"*1000000\r\n:1\r\n", b"$1000000\r\nabc", b"$68719476736\r\n" + b"x" * 100, b"+no end", b""]


@pytest.mark.parametrize("asked", [b"INFO", b"COMMAND", b"SLOWLOG"])
def test_answers_to_the_control_connection(farm, fake, asked):
    """weir closes an unbelievable control connection and opens a new one. Clients are served
    meanwhile.
    """
    weir = start(farm, fake)
    for garbage in [*GARBAGE, *(ODD_COMMANDS if asked == b"COMMAND" else [])]:
        fake.own[asked] = garbage
        drop_control(fake)
        serves(weir)
    with weir.connect() as conn:
        for command in ("EXPLAIN GET x", "EXPLAIN CONFIG GET z", "EXPLAIN MSET a b", "STATUS"):
            assert not isinstance(conn.call("LIMIT", *command.split()), Error)


def drop_control(fake):
    """Makes weir ask again."""
    with fake.lock:
        for lane in list(fake.lanes):
            if lane.is_control:
                lane.reset()


@pytest.mark.parametrize("asked", [b"INFO", b"COMMAND"])
def test_answers_that_do_not_end(farm, fake, asked):
    """weir is ready in time, and gives such a connection up."""
    for garbage in ENDLESS:
        fake.own[asked] = garbage
        weir = start(farm, fake)
        serves(weir)
        wait_until(lambda: "does not answer within connect-timeout" in weir.log(), f"{garbage[:20]} is given up")
        weir.stop()


def test_a_flood_on_the_control_connection(farm, fake):
    """weir does not buffer an unsolicited answer until it ends, nor an answer that is too long."""
    weir = start(farm, fake)
    control = wait_until(lambda: [lane for lane in fake.lanes if lane.is_control], "it is there")[0]
    control.send(b"$68719476736\r\n")
    control.wait_gone()
    fake.own[b"INFO"] = b"$%d\r\n" % (64 << 20) + b"x" * (8 << 20)
    wait_until(lambda: any(text in weir.log() for text in ("weir cannot parse its reply", "or malformed", "without a request")), "it is given up")
    fake.own[b"INFO"] = b"$%d\r\n%s\r\n" % (len(INFO), INFO)
    serves(weir)


# ---- a real Redis ----


def test_tracking_redirected_to_who_listens(farm, redis):
    """Redis itself writes a foreign message on the connection of releases."""
    weir = farm.weir(redis, workers=1)
    with weir.connect() as holder, weir.connect() as waiter, redis.connect() as admin:
        key = fresh()
        held = place(holder.call("LIMIT", "ACQUIRE", key, 1, 100_000))
        waiter.send(pipeline(f"LIMIT ACQUIRE {key} 1 100000 WAIT 100000"))
        line = wait_until(lambda: listener(admin), "it listens")
        assert admin.call("CLIENT", "TRACKING", "ON", "REDIRECT", line, "BCAST") == "OK"
        for i in range(20):
            holder.call("SET", f"tracked-{i}", "v")
        serves(weir)
        assert not waiter.is_closed() and not waiter.buffer
        assert holder.call("LIMIT", "RELEASE", key, held.token) == 1
        assert place(waiter.read()).limited == 0


def listener(admin):
    for line in admin.call("CLIENT", "LIST", "TYPE", "pubsub").decode().splitlines():
        return int(dict(field.split("=", 1) for field in line.split(" "))["id"])
    return None
