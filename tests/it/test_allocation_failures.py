"""Allocations fail while weir runs. Again and again some call sites are refused memory while
clients and operators use every feature. A client that needed the memory is closed or gets an error.
Other clients notice nothing, no client waits for ever, and afterwards everything works.
"""

import itertools
import random
import re
import socket
import ssl
import threading
import urllib.error

from concurrent.futures import ThreadPoolExecutor

import pytest
from kit.admin import get
from kit.harness import Farm, rounds, wait_until
from kit.limits import OPERATOR, operator, order
from kit.reloading import signal_reload
from kit.resp import Closed, Conn, Error, encode, pipeline
from kit.starve import BY_CHANCE, EACH_SITE_ONCE, SOME_SITES, Starver
from test_admin_http import metrics, value
from test_proxy_protocol import binary, text
from kit.tls import Authority, TlsConn, tls_settings, trusting

# mem_would_give asks before these functions allocate
CONFIGURATION = ("mem_alloc", "mem_zalloc", "mem_realloc", "mem_strndup")
POLICIES = """
[class slow]
commands = keys, hgetall
[policy calm]
match = user:calm
all = 1000000/s
[policy delayed]
match = user:alice
write = 2000/s over delay 5s
bytes-in = 20mb/s burst 2mb over delay 5s
bytes-out = 20mb/s burst 100kb over delay 5s
[policy counted]
match = user:bob
inflight = 1000 per connection
connections = 100
connects = 10000/s
all = 100000/s per connection
read = 100000/s per policy
write = 100000/s per connection over shadow
[policy default]
@slow = 100000/s
auth-failures = 100000/s
cost = 1000000/s per policy
"""
KEYED = """
[policy keyed]
match = key:tenant:*
all = 100000/s
write = 100000/s per connection
inflight = 1000 per connection
"""
NAMED = """
[limit signup]
sliding = 9000/60s, 10000/d
[limit api]
bucket = 100000/s
when-down = local
"""
REFUSED = re.compile("UPSTREAM |ERR out of memory|ERR max number of clients|EXECABORT|NOAUTH|ERR .*upstream|ERR EXEC without")
COMMANDS = ["get", "set", "incr", "del", "hget", "hset", "lpush", "rpush", "zadd", "sadd", "mget", "mset", "ttl", "type"]
SCOPES = ["subject", "connection", "policy"]
UNAVAILABLE = Error("UPSTREAM unavailable")
numbers = itertools.count()


class Careful(Conn):
    """A client that may be closed or refused at any time, but must not get a wrong reply."""

    def expect(self, *pairs):
        """Sends commands and checks replies. Each is a command, as a string or its words, and its
        reply or a predicate of the reply.
        """
        commands = [command.split() if isinstance(command, str) else command for command, _ in pairs]
        self.send(b"".join(encode(*command) for command in commands))
        for command, (_, wanted) in zip(commands, pairs):
            reply = self.read()
            if isinstance(reply, Error) and REFUSED.match(reply):
                continue
            good = wanted(reply) if callable(wanted) else reply == wanted
            assert good, f"{command}: {reply!r}"

    def do(self, *commands):
        """Sends commands; any reply in RESP is right."""
        self.expect(*((command, lambda reply: True) for command in commands))

    def wants_queued(self, *commands):
        self.expect(*((command, "QUEUED") for command in commands))


def fresh():
    return f"k{next(numbers)}"


def bulk(value):
    """Accepts this value, or nil if the SET before was refused."""
    return lambda reply: reply in (None, value.encode())


# ---- what clients do, each on its own connection, which may close ----


def pipelines(conn):
    key = fresh()
    pairs = [(f"SET {key} {key}", "OK"), (f"GET {key}", bulk(key)), (f"INCR {key}n", lambda n: isinstance(n, int))]
    conn.expect(*(pairs * 120))
    conn.expect(*[(f"GET {key}", bulk(key))] * 300)


def large_values(conn):
    key, value = fresh(), fresh() * 40_000
    conn.expect((["SET", key, value], "OK"), (f"GET {key}", bulk(value)))
    conn.send(encode("SET", key, value)[:100_000])
    conn.send(encode("SET", key, value)[100_000:] + encode("GET", key))
    conn.expect((["ECHO", key], lambda reply: True))


def pieces(conn):
    """A request in parts, and inline requests."""
    key = fresh()
    whole = encode("SET", key, key * 500)
    for i in range(0, len(whole), 900):
        conn.send(whole[i : i + 900])
    assert conn.read() in ("OK",) or True
    conn.send(b"ECHO inline\r\n\r\n")
    conn.read()


def transactions(conn):
    key = fresh()
    conn.expect((f"WATCH {key}", "OK"), ("MULTI", "OK"))
    conn.do(f"SET {key} {key}", f"GET {key}", "EXEC")
    conn.do("MULTI", "CLIENT PAUSE 1 WRITE", f"CLIENT SETNAME {key}", "DISCARD")
    conn.do("MULTI", "AUTH bob pw", "HELLO 3 AUTH alice pw SETNAME x", "EXEC")
    conn.do("MULTI", f"CLIENT SETNAME {key}", "SELECT 1", "CLIENT TRACKING OFF", "EXEC", "RESET", "PING")


def sessions(conn):
    key = fresh()
    conn.expect((f"CLIENT SETNAME {key}", "OK"), ("CLIENT GETNAME", lambda name: name in (None, key.encode())))
    conn.do("CLIENT SETINFO LIB-NAME lib", f"CLIENT SETINFO LIB-VER {key}", "CLIENT INFO", "SELECT 3", f"SET {key} 3", "SELECT 0")
    conn.do("HELLO 3 AUTH bob pw SETNAME bobby", "CLIENT ID", "HELLO 2 SETNAME x", "RESET", "AUTH alice wrong", "AUTH wrong", "AUTH calm pw")
    conn.do("RESET", "PING")


def subscriptions(conn):
    key = fresh()
    conn.do(["SUBSCRIBE", key], ["PSUBSCRIBE", key + "*"])
    conn.do("RESET")


def blocking(conn):
    conn.do(f"BLPOP {fresh()} 0.01", "WAIT 0 1")
    conn.send(encode("BLPOP", fresh(), 10))
    conn.sock.shutdown(socket.SHUT_WR)
    conn.read_to_end()


def scripts(conn):
    conn.expect(("EVAL return{KEYS[1]} 1 x", [b"x"]), ("EVAL return{ARGV[1]} 0 y", [b"y"]))
    conn.do("CLIENT TRACKING ON", "CLIENT TRACKING OFF", "FOO", "CONFIG GET maxmemory", "INFO server")
    conn.do("COMMAND COUNT", "COMMAND INFO get limit", "COMMAND DOCS limit")


def silences(conn):
    conn.send(pipeline("CLIENT REPLY SKIP", "PING", "CLIENT REPLY OFF", "SET x y", "CLIENT REPLY ON"))
    conn.read()
    conn.do("MONITOR")


def decisions(conn):
    key = fresh()
    conn.do(f"LIMIT FUNNEL {key} 5/s", f"LIMIT SLIDING {key}s 5/s", f"LIMIT BUCKET {key}b 5/s WAIT 100", f"LIMIT FIXED {key}f 5/s")
    conn.do(*[f"LIMIT FUNNEL {key}{i} 5/s" for i in range(50)], f"CL.THROTTLE {key}c 1 10 60", "PING")
    conn.do(f"LIMIT CHECK signup {key}", f"LIMIT CHECK api {key}", f"LIMIT CHECK nobody {key}", f"LIMIT RESET {key} {key}s")
    conn.do(f"LIMIT CHECK signup {key} AND api {key}", f"LIMIT BAN SLIDING {key}s 1s", f"LIMIT UNBAN SLIDING {key}s")
    conn.do(f"LIMIT FUNNEL {key}w 50/s BURST 1", f"LIMIT FUNNEL {key}w 50/s BURST 1 WAIT 100")


def places(conn):
    key = fresh()
    conn.send(encode("LIMIT", "ACQUIRE", key, 1, 20))
    held = conn.read()
    conn.do(f"LIMIT ACQUIRE {key} 1 20 WAIT 100", "PING")
    if isinstance(held, list) and held[1]:
        conn.do(["LIMIT", "RELEASE", key, held[1]])


def tenants(conn):
    for tenant in range(4):
        key = f"tenant:{tenant}:{fresh()}"
        conn.expect((f"SET {key} {key}", "OK"), (f"GET {key}", bulk(key)), (f"LIMIT EXPLAIN SET {key} x", lambda reply: True))


def reports(conn):
    conn.do("LIMIT HELP", "LIMIT STATUS", "LIMIT EXPLAIN GET x", "LIMIT LIST")
    conn.do("AUTH bob pw", "LIMIT STATUS")


def as_user(user, act):
    def acting(conn):
        conn.expect((f"AUTH {user} pw", "OK"))
        act(conn)

    acting.__name__ = f"{act.__name__}_of_{user}"
    return acting


PLAIN = [pipelines, large_values, pieces, transactions, sessions, subscriptions, blocking, scripts, silences, decisions]
PLAIN += [places, tenants, reports]
PLAIN += [as_user("alice", act) for act in (pipelines, large_values, decisions)]
PLAIN += [as_user("calm", act) for act in (pipelines, large_values)]
PLAIN += [as_user("bob", act) for act in (pipelines, transactions, tenants, blocking)]


# ---- operators, other listeners ----


def orders(world):
    with Careful(str(world.weir.folder / "operator.sock")) as conn:
        conn.do("LIMIT SUGGEST", "LIMIT SUGGEST counted CLASS write")
        conn.do("LIMIT TOP", "LIMIT TOP BY BYTES", "LIMIT TOP BY LIMITED", "LIMIT LOG", "LIMIT SLOWLOG GET", "LIMIT SLOWLOG LEN")
        conn.do("LIMIT STATUS FOR user:bob", "LIMIT STATUS FOR user:nobody", "LIMIT EXPLAIN GET x FOR user:bob", "LIMIT FORGIVE ip:127.0.0.1")
        conn.do(f"LIMIT SET counted write {random.randrange(10_000, 90_000)}/s per connection", f"LIMIT SET counted cmd.{random.choice(COMMANDS)} 900000/s per {random.choice(SCOPES)}", "LIMIT DIFF")
        conn.do("LIMIT SET LIMIT signup sliding 8000/60s", "LIMIT MODE", "LIMIT MODE shadow", "LIMIT MODE enforce")
        conn.do("LIMIT SET LIMIT signup sliding 5/s FOR ann EX 10s", "LIMIT DIFF", "LIMIT UNSET LIMIT signup FOR ann", "LIMIT RELOAD")


def pages(world):
    for path in ("/", "/metrics", "/api/v1/stats?history=0", "/api/v1/stats?format=csv"):
        try:
            get(world.weir, path)
        except (OSError, urllib.error.URLError):
            pass


def announced(world):
    for header in (text("192.0.2.7"), binary("198.51.100.9")):
        with Careful(world.behind_proxy) as conn:
            conn.send(header)
            pipelines(conn)


def in_tls(world):
    with TlsConn(world.in_tls, world.trust) as conn:
        for _ in range(3):
            try:
                conn.call("ECHO", fresh())
                conn.call("SET", "x", "y" * 100_000)
            except (Closed, OSError):
                return


def newcomers(world):
    conns = [Careful(world.plain) for _ in range(8)]
    for conn in conns:
        conn.send(encode("ECHO", "x"))
    for conn in conns:
        try:
            conn.read()
        except Closed:
            pass
        conn.close()


class Neighbour(threading.Thread):
    """A client that sends plain commands all the time. The client may be closed, but must not get a
    reply to another client.
    """

    def __init__(self, world):
        super().__init__()
        self.world, self.is_over, self.wrong, self.answered = world, False, None, 0
        self.start()

    def run(self):
        try:
            while not self.is_over:
                try:
                    with Careful(self.world.plain) as conn:
                        self.talk(conn)
                except (Closed, ConnectionError):
                    pass
        except Exception as error:
            self.wrong = error

    def talk(self, conn):
        conn.expect(("AUTH calm pw", "OK"))
        while not self.is_over:
            words = [fresh() for _ in range(random.randrange(1, 30))]
            conn.expect(*((f"ECHO {word}", word.encode()) for word in words))
            self.answered += len(words)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.join()
        if self.wrong:
            raise AssertionError(self.world.weir.log()[-3000:]) from self.wrong


def upheaval(world):
    """Redis closes all connections from weir."""
    world.redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    world.redis.call("CLIENT", "KILL", "TYPE", "pubsub")


OTHERS = [orders, pages, announced, in_tls, newcomers, upheaval]


# ---- one weir, and clients that take no part ----


class World:
    def __init__(self, farm, redis, folder, is_keyed):
        authority = Authority(folder)
        self.redis = redis
        self.trust = trusting(authority)
        self.starver = Starver(folder, exempt=CONFIGURATION)
        settings = tls_settings(authority.issue("weir"), listen="127.0.0.1:0, 127.0.0.1:0 proxy, tls:127.0.0.1:0")
        self.weir = farm.weir(
            redis,
            proxy_protocol_from="127.0.0.1",
            identity="key:2, user, ip" if is_keyed else "user, ip",
            slowlog_log_slower_than="0",
            sections=(KEYED if is_keyed else "") + POLICIES + NAMED + OPERATOR + "listen = 127.0.0.1:0\n",
            env=self.starver.env,
            **settings,
        )
        self.plain, self.behind_proxy, self.in_tls = self.weir.addresses
        self.calm = [self.weir.connect() for _ in range(4)]
        for conn in self.calm:
            assert conn.call("AUTH", "calm", "pw") == "OK"
            assert conn.call("SET", "calm", "calm") == "OK"

    def act(self, act):
        """Runs one action as far as it gets."""
        try:
            if act in OTHERS:
                act(self)
            else:
                with Careful(self.plain) as conn:
                    act(conn)
        except (Closed, ConnectionError, BrokenPipeError, ssl.SSLError):
            pass
        except TimeoutError as error:
            raise AssertionError(f"{act.__name__} waits for ever\n{self.weir.log()[-3000:]}") from error
        assert self.weir.is_running(), f"{act.__name__}\n{self.weir.log()[-6000:]}"

    def check(self):
        """New clients are served. A client that was connected throughout and sent nothing is still
        connected.
        """
        # and weir has noticed the connections that Redis closed
        wait_until(self.weir.serves, "newcomers are served")
        for conn in self.calm:
            wait_until(lambda conn=conn: self.is_served(conn), "who did nothing is served")

    def is_served(self, conn):
        """True if the client is served. False if weir found no upstream, because an attempt to
        connect failed a moment ago.
        """
        try:
            reply = conn.call("GET", "calm")
        except Closed as closed:
            raise AssertionError(self.weir.log()[-3000:]) from closed
        assert reply in (b"calm", UNAVAILABLE)
        return reply == b"calm"

    def check_upstream(self):
        """Redis has answered all requests in time, so weir never reported otherwise."""
        before = self.accepted()
        wait_until(lambda: self.accepted() > before, "what has happened is counted")
        errors = value(metrics(self.weir), "weir_upstream_errors_total", upstream=self.redis.upstream, reason="protocol")
        assert errors == 0, self.weir.log()[-3000:]

    def accepted(self):
        with self.weir.connect():
            return value(metrics(self.weir), "weir_connections_accepted_total", listener="127.0.0.1:0")

    def act_all(self, dice, acts):
        """Runs all actions, many at a time."""
        acts = list(acts)
        dice.shuffle(acts)
        with Neighbour(self), Neighbour(self), ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(self.act, act) for act in acts]:
                done.result()


@pytest.fixture(scope="module", params=[False, True], ids=["by user", "by key"])
def world(request, tmp_path_factory):
    farm = Farm()
    try:
        redis = farm.redis()
        for user in ("alice", "bob", "calm"):
            assert redis.call("ACL", "SETUSER", user, "on", ">pw", "~*", "&*", "+@all") == "OK"
        world = World(farm, redis, tmp_path_factory.mktemp("starve"), request.param)
        yield world
        world.check_upstream()
    finally:
        farm.close()


def test_every_place_that_asks_for_memory(world):
    """The request that needed the memory ends cleanly; idle clients stay connected."""
    dice = random.Random(1)
    acts = PLAIN + OTHERS
    for act in acts:
        world.act(act)
    with Neighbour(world) as neighbour, Neighbour(world):
        for _ in range(rounds(2)):
            dice.shuffle(acts)
            for act in acts:
                if dice.random() < 0.4:
                    upheaval(world)  # buffers that have grown are small again
                    wait_until(world.weir.serves, "weir has connected again")
                world.starver.begin_anew()
                world.starver.starve(EACH_SITE_ONCE, dice.choice([0.05, 0.2, 0.5]), dice.randrange(1 << 32))
                world.act(act)
                world.starver.stop()
                world.check()
    assert neighbour.answered > 100
    sites, failed = world.starver.sites()
    assert len(failed) > len(sites) / 5, world.starver.names(sites - failed)


def test_many_at_a_time(world):
    """Allocations fail from rarely to always: each action runs while all other actions run."""
    dice = random.Random(2)
    for chance in [0.002, 0.05, 0.3, 1] * rounds(1):
        world.starver.starve(BY_CHANCE, chance, dice.randrange(1 << 32))
        world.act_all(dice, PLAIN + OTHERS if chance < 1 else set(PLAIN + OTHERS) - {upheaval})
        world.starver.stop()
        world.check()


def test_few_places_all_the_time(world):
    """With few failing call sites, code behind the other call sites runs too."""
    dice = random.Random()
    world.act_all(dice, PLAIN + OTHERS)
    for _ in range(rounds(6)):
        upheaval(world)  # buffers that have grown are small again
        wait_until(world.weir.serves, "weir has connected again")
        seed = dice.randrange(1 << 32)
        world.starver.starve(SOME_SITES, dice.choice([0.1, 0.3, 0.5]), seed, share=dice.choice([0.05, 0.15]))
        try:
            world.act_all(dice, PLAIN + OTHERS)
            world.starver.stop()
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error


def test_what_is_said(world):
    """In replies to clients and operators, in the log and in the metrics."""
    weir = world.weir
    with weir.connect() as conn, operator(weir) as ops:
        assert conn.call("PING") == "PONG"
        ops.call("LIMIT", "STATUS")
        world.starver.starve(BY_CHANCE, 1, 0)
        with pytest.raises(Closed):
            conn.call("AUTH", "alice", "pw")
        with pytest.raises(Closed):
            ops.call("LIMIT", "RELOAD")
        with weir.connect() as late:
            assert late.read() == Error("ERR out of memory")
        assert not signal_reload(weir)
        world.starver.stop()
    assert order(weir, "RELOAD") == "OK"
    assert re.search(r"client 127\.0\.0\.1:\d+ is closed: out of memory", weir.log())
    weir.wait_for_log("configuration not reloaded: out of memory: weir keeps the running configuration")
    closed = ("weir_connections_closed_total", {"listener": "127.0.0.1:0", "reason": "memory"})
    wait_until(lambda: value(metrics(weir), closed[0], **closed[1]) >= 1, "it is counted")
    world.check()
