"""Scripts of several connections, played on Redis and on weir: both must give every connection the
same bytes.

A script is text, one step a line. The words of a command are quoted as in a shell:

    a: MULTI | SET k 'a b' | EXEC      connection a sends these as multibulk, in one write
    b< GET k | PING                    the same as inline commands, unchanged
    direct: ACL SETUSER joe            sent to Redis itself in both plays
    a.                                 closes connection a

or a list of (connection, bytes).
"""

import re
import select
import shlex

from kit.harness import wait_until
from kit.resp import Closed, Conn, encode
from kit.server import at_least

READ_SIZE = 8192  # the least that is read of one connection before the next connection is read
PROBES = 8  # enough to meet every worker

MASKS = [
    (re.compile(rb"(\$2\r\nid\r\n):\d+"), rb"\1:N"),  # HELLO
    (re.compile(rb"\+\d+\.\d+ \[(\d+) [^\]]+\]"), rb"+TIME [\1 ADDR]"),  # MONITOR
]


def parse(text):
    steps = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, kind, rest = re.fullmatch(r"(\w+)([:<.])\s*(.*)", line, re.S).groups()
        commands = rest.split(" | ")
        if kind == ":":
            data = b"".join(encode(*map(_bytes, shlex.split(c))) for c in commands)
        else:
            data = b"".join(c.encode() + b"\r\n" for c in commands)
        steps.append((name, None if kind == "." else data))
    return steps


def _bytes(word):
    return word.encode("latin1").decode("unicode_escape").encode("latin1")


def mask(data):
    for pattern, replacement in MASKS:
        data = pattern.sub(replacement, data)
    return data


class Player:
    """The connections of one play, and what each connection has received."""

    def __init__(self, address, direct):
        self.address, self.direct = address, direct
        self.conns, self.got, self.closed = {}, {}, set()
        self.unsettled = 0  # bytes sent since the server was last idle

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for conn in self.conns.values():
            conn.close()

    def play(self, name, data):
        if data is None:
            self.conns.pop(name).close()
            return
        if name not in self.conns:
            self.conns[name] = Conn(self.direct if name == "direct" else self.address)
            self.got[name] = b""
        self.conns[name].send(data)
        self.unsettled += len(data)

    def collect(self):
        """Reads what has come; true if anything has."""
        socks = {conn.sock: name for name, conn in self.conns.items() if name not in self.closed}
        ready = select.select(list(socks), [], [], 0)[0]
        for sock in ready:
            name = socks[sock]
            try:
                self.conns[name].more()
            except Closed:
                self.closed.add(name)
            self.got[name] += bytes(self.conns[name].buffer)
            self.conns[name].buffer.clear()
        return bool(ready)

    def state(self):
        return {name: (mask(data), name in self.closed) for name, data in self.got.items()}


class Probes:
    """Further connections to the server. When all of them have answered some rounds, the server has
    nothing left to do.
    """

    def __init__(self, address, count):
        self.conns = [Conn(address) for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for conn in self.conns:
            conn.close()

    def round(self):
        for conn in self.conns:
            conn.send(encode("PING"))
        for conn in self.conns:
            conn.read()

    def settle(self, player):
        rounds = 3 + player.unsettled // READ_SIZE
        player.unsettled = 0
        quiet = 0
        while quiet < rounds:
            self.round()
            quiet = 0 if player.collect() else quiet + 1


LOGIN = re.compile(rb"(?=\*\d+\r\n\$[45]\r\n(?:AUTH|HELLO)\r\n)|(?<=\n)(?=(?:AUTH|HELLO)\b)", re.I)


def logins_apart(data):
    """Puts each login in a batch of its own. Since 7.2 Redis answers no failed login behind unsent
    replies.
    """
    return filter(None, LOGIN.split(data)) if data and at_least(7, 2) else [data]


def on_redis(redis, steps):
    """Returns after each step what each connection had received, and the state of Redis."""
    states = []
    with Player(redis.address, redis.address) as player, Probes(redis.address, 1) as probes:
        for name, data in steps:
            for part in logins_apart(data):
                player.play(name, part)
                probes.settle(player)
                # since 7.4 run in the background, and then answered
                if part and b"flush" in part.lower():
                    wait_until(lambda: redis.info("lazyfree_pending_objects") == "0", "it is flushed")
                    player.unsettled = 20 * READ_SIZE
                    probes.settle(player)
            states.append((player.state(), redis.state()))
    return states


def on_weir(weir, redis, steps, wanted):
    """Plays the steps, waits after each step for the wanted state, and checks that nothing more
    comes.
    """
    with Player(weir.address, redis.address) as player, Probes(weir.address, PROBES) as probes:
        received = None
        for step, (want, state) in zip(steps, wanted):
            player.play(*step)
            expect(player, want, f"after {step}")
            if want == received:
                probes.settle(player)  # no reply tells when the server is done
            received = want
            wait_until(lambda: redis.state() == state, f"the same state of Redis after {step}", 20)
        probes.settle(player)
        assert player.state() == want, "more came"


def expect(player, want, when):
    if player.state() == want:
        return
    try:
        wait_until(lambda: player.collect() and player.state() == want, when, 20)
    except AssertionError:
        for name, (data, closed) in want.items():
            got = player.state()[name]
            assert got == (data, closed), f"connection {name} {when}"
        raise


def wait_until_nobody_subscribes(redis):
    """Waits for the end of subscriptions of an earlier test, which PUBLISH would count."""
    with redis.connect() as conn:

        def is_quiet():
            channels = conn.call("PUBSUB", "CHANNELS")
            shards = conn.call("PUBSUB", "SHARDCHANNELS") if at_least(7, 0) else []
            others = [channel for channel in channels + shards if not channel.startswith(b"limit:")]
            return not others and conn.call("PUBSUB", "NUMPAT") == 0

        wait_until(is_quiet, "no subscription of a test before is left")


def same_as_redis(weir, redis, script):
    steps = parse(script) if isinstance(script, str) else script
    wait_until_nobody_subscribes(redis)
    redis.forget_data()
    wanted = on_redis(redis, steps)
    redis.forget_data()
    on_weir(weir, redis, steps, wanted)
