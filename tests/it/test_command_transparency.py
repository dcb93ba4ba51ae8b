"""Every kind of command: through weir each connection gets the same bytes as from Redis."""

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from kit.harness import wait_until
from kit.resp import encode, pipeline
from kit.script import same_as_redis

SCRIPTS = {
    # ---- data ----
    "strings": """
        a: SET k v | GET k | APPEND k w | STRLEN k | GETSET k x | DEL k | GET k | SETEX t 100 v | INCR n | INCRBY n 41
        a: MSET a 1 b 2 | MGET a b none | SET k '' | GET k | SET bin '\\x00\\r\\n\\xff' | GET bin | INCR k
    """,
    "collections": """
        a: RPUSH l a b c | LRANGE l 0 -1 | HSET h f v g w | HGETALL h | SADD s m | SMEMBERS s | ZADD z 1.5 m 2 n
        a: ZRANGE z 0 -1 WITHSCORES | ZSCORE z m | LPOP l 2 | LPOP none 2 | HGET h none | GEOADD g 13.3 38.1 p
        a: GEOPOS g p none | XADD x 1-1 f v | XRANGE x - + | XREAD STREAMS x 0 | SETBIT b 7 1 | BITFIELD b GET u8 0
        a: PFADD p a b | PFCOUNT p | TYPE l | OBJECT ENCODING s | EXISTS l h none | LPUSH h x
    """,
    "collections in RESP3": """
        a: HELLO 3 | HSET h f v g w | HGETALL h | SADD s m | SMEMBERS s | ZADD z 1.5 m | ZRANGE z 0 -1 WITHSCORES
        a: ZSCORE z m | GET none | HGET h none | LRANGE none 0 -1 | CONFIG GET maxmemory | LPOP none 2 | GEOADD g 1 2 p
        a: GEOPOS g p none | COMMAND INFO get none | XADD x 1-1 f v | XREAD STREAMS x 0 | XREAD STREAMS none 0
    """,
    "keyspace": """
        a: SET k v | SCAN 0 | KEYS * | RANDOMKEY | RENAME k j | TTL j | EXPIRE j 100 | PERSIST j | DBSIZE | COPY j i
        a: TOUCH i j | UNLINK i j | DBSIZE | OBJECT HELP | DUMP none | SORT none
    """,
    "errors": """
        a: FOO | FOO a 'b c' | GET | GET a b | SET k v BAD | CONFIG | CONFIG BAD | CLIENT | CLIENT BAD | XADD x
        a: LPUSH l a | INCR l | GET l | SELECT x | SELECT 99 | EVAL 'return 1' | EVALSHA abc 0 | 'G\\x00T' k | ''
        a: CL.THROTTLED k 1 1 1 | JSON.GET k | GET 'a\\r\\nb' | FOO 'a\\r\\nb' | OBJECT ENCODING | PING a b
    """,
    "case": "a: set k v | GeT k | eXISTS k | config get maxmemory | Client GetName",
    "introspection": """
        a: COMMAND INFO get set none | COMMAND GETKEYS SET k v | COMMAND LIST FILTERBY PATTERN xr*
        a: CONFIG GET save | DBSIZE | ACL WHOAMI | ACL CAT | ACL GETUSER default | MEMORY USAGE none
        a: LATENCY LATEST | MODULE LIST | CLUSTER INFO | ROLE | LASTSAVE x | WAIT 0 0 | READONLY | ASKING
    """,
    # ---- framing ----
    "inline": """
        a< SET k v | GET k | set  k   "a b" | GET k | ECHO "\\x41\\n" | ECHO 'it\\'s' | ECHO "" | FOO "a b" | GET
        a< MULTI | INCR n | EXEC | SELECT 1 | DBSIZE | PING
    """,
    "a mixed pipeline": [
        (
            "a",
            b"\r\n*0\r\n*-1\r\nPING\r\n"
            + pipeline("SET k 1", "INCR k", "FOO", "GET", "SELECT 3", "SET k 5", "MULTI", "INCR k", "GET k", "EXEC")
            + b"\n\nGET k\r\n"
            + pipeline("SELECT 0", "GET k", "WATCH k", "UNWATCH", "LPUSH l a b", "BLPOP l 0", "PING end")
            + pipeline("SUBSCRIBE c", "PING", "GET k", "UNSUBSCRIBE", "GET k", "RESET", "ECHO last", "QUIT", "GET k"),
        ),
    ],
    "empty requests": [
        ("a", b"\r\n\n\r\n*0\r\n*-5\r\n"),
        ("a", encode("PING")),
        ("a", b"*0\r\n\r\nPING\r\n*0\r\n"),
        ("a", b'""\r\n'),
        ("a", b"*1\r\n$0\r\n\r\n"),
        ("a", encode("PING")),
    ],
    "POST ends a connection": [("a", encode("SET", "k", "v")), ("a", pipeline("GET k") + b"POST / HTTP/1.1\r\n")],
    "Host: ends a connection": [("a", encode("SET", "k", "v")), ("a", b"Host: localhost\r\n" + pipeline("GET k"))],
    "an error after replies": [("a", pipeline("SET k v", "GET k") + b"*1\r\n:1\r\n" + pipeline("GET k"))],
    "big arguments": [
        ("a", encode("SET", "k", b"x" * 100_000) + encode("STRLEN", "k") + encode("GET", "k")),
        ("a", encode("SET", "k", b"y" * 3_000_000) + encode("STRLEN", "k")),
        ("a", pipeline("GET k", "PING", "GET k")),
        ("a", encode("GET", b"k" * 70_000) + encode("ECHO", b"e" * 70_000)),
    ],
    "many arguments": [
        ("a", encode("RPUSH", "l", *range(20_000))),
        ("a", pipeline("LRANGE l 0 -1", "LLEN l") + encode("DEL", *range(2000))),
        ("a", b"".join(encode("ECHO", i) for i in range(3000))),
    ],
    "types of RESP3": "a: HELLO 3\n"
    + "\n".join(
        f"a: DEBUG PROTOCOL {kind} | PING"
        for kind in "STRING INTEGER DOUBLE NULL ARRAY SET MAP ATTRIB PUSH VERBATIM TRUE FALSE BIGNUM".split()
    ),
    "types in RESP2": "\n".join(
        f"a: DEBUG PROTOCOL {kind} | PING"
        for kind in "STRING INTEGER DOUBLE NULL ARRAY SET MAP VERBATIM TRUE FALSE BIGNUM".split()
    ),
    "odd errors": """
        a: EVAL 'return {err="x"}' 0 | PING | EVAL 'return {err=""}' 0 | PING | EVAL 'return {err="10001"}' 0 | PING
        a: EVAL 'return {ok=""}' 0 | PING | EVAL 'return redis.error_reply("MOVED 1 2")' 0 | PING
    """,
    # ---- transactions ----
    "MULTI": """
        a: MULTI
        a: SET k 1 | INCR k | LPUSH k x | GET k
        a: EXEC | GET k | EXEC | DISCARD
        a: MULTI | SET k 9 | DISCARD | GET k
        a: MULTI | MULTI | WATCH k | PING | EXEC | PING
        a: MULTI | EXEC | MULTI | GET none | EXEC
    """,
    "MULTI with an error": """
        a: MULTI | SET k 1 | FOO | SET k 2 | EXEC | GET k
        a: MULTI | GET | DISCARD | MULTI | SET k 3 | EXEC | GET k
    """,
    "MULTI queues everything": """
        a: MULTI | PING | SELECT 2 | SET k two | CLIENT SETNAME n | HELLO | SELECT 0 | GET k | BLPOP none 0 | EXEC
        a: CLIENT GETNAME | GET k | SELECT 2 | GET k
    """,
    "MULTI in RESP3": "a: HELLO 3 | MULTI | HSET h f v | HGETALL h | HELLO 3 | HGETALL h | EXEC | HGETALL h",
    "WATCH": """
        a: WATCH k | GET k
        b: SET k other
        a: MULTI | SET k mine | EXEC | GET k
        a: WATCH k | MULTI | SET k mine | EXEC | GET k
        a: WATCH k
        b: SET k other
        a: UNWATCH | MULTI | SET k mine | EXEC | GET k
        a: WATCH k | MULTI | GET k | DISCARD
        b: SET k other
        a: MULTI | SET k mine | EXEC | GET k
    """,
    "WATCH in another database": """
        a: SELECT 5 | WATCH k
        b: SELECT 5 | SET k other | SELECT 0
        a: MULTI | SET k mine | EXEC | GET k
    """,
    "transactions do not mix": """
        a: MULTI | SET a 1
        b: MULTI | SET b 1
        c: SET a c | GET b
        a: EXEC | MGET a b
        b: EXEC | MGET a b
    """,
    "QUIT in MULTI": "a: MULTI | SET k v | QUIT\nb: GET k",
    "RESET in MULTI": "a: MULTI | SET k v | RESET | GET k | EXEC",
    "MULTI, EXEC and DISCARD that fail": """
        a: MULTI | EXEC x | UNSUBSCRIBE x y | SET k 1 | EXEC | GET k
        a: MULTI | DISCARD x | UNSUBSCRIBE x y | DISCARD | UNSUBSCRIBE x y
        a: MULTI x | UNSUBSCRIBE x y | EXEC | WATCH | GET k
    """,
    "commands that would change a connection, and fail": """
        a: CLIENT REPLY OFF x | PING | CLIENT REPLY | PING | CLIENT REPLY SKIP x | PING | MONITOR x | PING | PING
        a: SELECT 1 2 | SET k 0 | HELLO 3 x | GET none | HELLO 3 SETNAME | GET none
        a: RESET x | GET k | SUBSCRIBE | GET k
        a: CLIENT SETNAME a b | CLIENT GETNAME | PSYNC | PING | CLIENT TRACKING x | CLIENT TRACKING | PING | UNWATCH x
        a: BLPOP l | BLPOP l x | BLPOP l -1 | WAIT x 0 | WAIT 0 | PING | QUITX | PING
    """,
    "what a user may not do changes nothing": """
        direct: ACL SETUSER lame on nopass ~* &* +@all -multi -client|reply -monitor -subscribe -select -watch -hello
        direct: ACL SETUSER lame -reset
        a: AUTH lame x | MULTI | UNSUBSCRIBE x y | EXEC | CLIENT REPLY OFF | PING
        a: CLIENT REPLY SKIP | PING | MONITOR | PING | SUBSCRIBE c d | PING | PSUBSCRIBE c | GET k
        a: PUNSUBSCRIBE | SELECT 1 | SET k v
        a: WATCH k | HELLO 3 | GET none
        b: GET k | SELECT 1 | GET k
        a: RESET | ACL WHOAMI
        a.
        direct: ACL DELUSER lame
    """,
    "a user who may not EXEC": """
        direct: ACL SETUSER lame on nopass ~* +@all -exec -discard
        a: AUTH lame x | MULTI | SET k v | EXEC | UNSUBSCRIBE x y | DISCARD | UNSUBSCRIBE x y | RESET | GET k
        a.
        direct: ACL DELUSER lame
    """,
    # ---- pub/sub ----
    "SUBSCRIBE": """
        a: SUBSCRIBE c1 c2 c3
        b: PUBLISH c2 hello | PUBLISH none x | PUBSUB NUMSUB c1 c2 | PUBSUB CHANNELS
        a: GET k | PING | PING there | SUBSCRIBE c4
        a: UNSUBSCRIBE c1 c2
        b: PUBLISH c2 gone | PUBLISH c3 still
        a: UNSUBSCRIBE
        a: GET k | UNSUBSCRIBE | UNSUBSCRIBE x y | PUNSUBSCRIBE
        b: PUBLISH c3 gone
    """,
    "PSUBSCRIBE": """
        a: PSUBSCRIBE c* d? | SUBSCRIBE c1
        b: PUBLISH c1 hello | PUBLISH d2 x | PUBSUB NUMPAT
        a: PUNSUBSCRIBE c*
        b: PUBLISH c1 hello
        a: UNSUBSCRIBE c1 | PUNSUBSCRIBE | GET k
    """,
    "SSUBSCRIBE": """
        a: SSUBSCRIBE s1 s2
        b: SPUBLISH s1 hello | PUBSUB SHARDCHANNELS
        a: SUNSUBSCRIBE s1 | SUNSUBSCRIBE | GET k
    """,
    "SUBSCRIBE in RESP3": """
        a: HELLO 3 | SUBSCRIBE c1 c2 | GET k | PING
        b: HELLO 3 | PUBLISH c1 hello
        a: PSUBSCRIBE c* | SET k v | GET k | PUBLISH c1 self
        b: PUBLISH c2 hello
        a: UNSUBSCRIBE c1 | UNSUBSCRIBE | PUNSUBSCRIBE | GET k | MULTI | GET k | EXEC
        b: PUBLISH c1 gone
    """,
    "SUBSCRIBE in a transaction": """
        a: MULTI | SUBSCRIBE c d | EXEC | PING
        b: PUBLISH c hello
        a: UNSUBSCRIBE | GET k
    """,
    "SUBSCRIBE in a RESP3 transaction": """
        a: HELLO 3 | MULTI | GET k | SUBSCRIBE c d | GET k | EXEC | PING
        b: PUBLISH c hello
        a: UNSUBSCRIBE | GET k
    """,
    "a refused SUBSCRIBE": """
        direct: ACL SETUSER quiet on nopass ~* +@all resetchannels
        a: AUTH quiet x | SUBSCRIBE c | GET k | SUBSCRIBE | PING
        a.
        direct: ACL DELUSER quiet
    """,
    "what fails when subscribed changes nothing": """
        a: SUBSCRIBE c | MULTI | UNSUBSCRIBE x y | EXEC | CLIENT REPLY SKIP | AUTH x | CLIENT REPLY OFF | GET k | PING
        a: WAIT 0 0 | PING | SELECT 1 | HELLO 3 | MONITOR | CLIENT SETNAME x | WATCH k
        a: BLPOP l 0 | EVAL 'return 1' 0 | PING
        a: UNSUBSCRIBE | GET k | CLIENT GETNAME | HELLO | MULTI | UNSUBSCRIBE x y | EXEC
        b: SSUBSCRIBE s | MULTI | UNSUBSCRIBE x y | EXEC | WAIT 0 0 | PING | SUNSUBSCRIBE | WAIT 0 0 | PING
        b: MULTI | GET k | EXEC
        c: SUBSCRIBE c1 c2 | MULTI | DISCARD
        c: UNSUBSCRIBE | GET k
    """,
    "many messages": """
        a: SUBSCRIBE c
        b: EVAL 'for i = 1, 3000 do redis.call("PUBLISH", "c", "message " .. i) end return 1' 0
        a: UNSUBSCRIBE | PING
    """,
    "QUIT when subscribed": "a: SUBSCRIBE c | QUIT",
    "RESET when subscribed": "a: SUBSCRIBE c | RESET | GET k\nb: PUBLISH c x",
    "CLIENT TRACKING": """
        a: HELLO 3 | CLIENT TRACKING ON | SET k v | GET k
        b: SET k w
        a: GET k | CLIENT TRACKING OFF | PING
        b: SET k x
        a: CLIENT TRACKINGINFO
    """,
    "keyspace events": """
        direct: CONFIG SET notify-keyspace-events KEA
        a: PSUBSCRIBE __key*__:*
        b: SET k v | DEL k
        direct: CONFIG SET notify-keyspace-events ''
    """,
    # ---- blocking ----
    "BLPOP": """
        a: BLPOP l 0
        b: PING | RPUSH l v
        a: GET k | RPUSH l w | BLPOP none l 0 | PING
        a: BRPOP l 0 | PING
        b: RPUSH l x
    """,
    "blocking commands": """
        a: BLMOVE from to LEFT RIGHT 0
        b: BRPOPLPUSH to last 0
        c: BZPOPMIN z 0
        d: BLMPOP 0 2 x y LEFT COUNT 5
        e: XREAD BLOCK 0 STREAMS s 0-0
        f: RPUSH from v
        f: ZADD z 1 m
        f: RPUSH y a b
        f: XADD s 1-1 f v
        a: LRANGE last 0 -1
    """,
    "the first to wait is the first served": """
        a: BLPOP l 0
        b: BLPOP l 0
        c: BRPOP l 0
        d: RPUSH l 1
        d: RPUSH l 2 3
    """,
    "a pipeline behind BLPOP": """
        a: SET k v | BLPOP l 0 | GET k | INCR n | GET n
        b: GET n
        b: RPUSH l v
    """,
    "BLPOP in another database": "a: SELECT 3 | BLPOP l 0\nb: RPUSH l v\nb: SELECT 3 | RPUSH l w\na: PING",
    "CLIENT REPLY OFF with BLPOP": "a: CLIENT REPLY OFF | BLPOP l 0 | CLIENT REPLY ON | PING\nb: RPUSH l v\nb: LLEN l",
    # ---- connection state ----
    "CLIENT REPLY": """
        a: CLIENT REPLY SKIP | SET k 1 | GET k
        a: CLIENT REPLY SKIP | CLIENT REPLY SKIP | GET k | GET k
        a: CLIENT REPLY OFF | SET k 2 | FOO | GET k | CLIENT REPLY SKIP | GET k
        a: CLIENT REPLY ON
        a: GET k | CLIENT REPLY | CLIENT REPLY BAD | CLIENT REPLY ON
    """,
    "CLIENT REPLY OFF and RESET": "a: CLIENT REPLY OFF | GET k | RESET | PING",
    "CLIENT REPLY OFF and SUBSCRIBE": """
        a: HELLO 3 | CLIENT REPLY OFF | SUBSCRIBE c | GET k
        b: PUBLISH c x
        a: CLIENT REPLY ON | PING
    """,
    "CLIENT REPLY and subscriptions": """
        a: CLIENT REPLY OFF | SUBSCRIBE c1 c2
        a: CLIENT REPLY ON | PING | UNSUBSCRIBE
        b: HELLO 3 | SSUBSCRIBE s | CLIENT REPLY SKIP | GET k | PING
        b: SUBSCRIBE c | CLIENT REPLY OFF | GET k | PSUBSCRIBE d | PING
        b: CLIENT REPLY ON | PING
    """,
    "CLIENT REPLY in a transaction": """
        a: MULTI | CLIENT REPLY SKIP | EXEC x | PING
        b: CLIENT REPLY SKIP | MULTI | SET k v | EXEC | MULTI | GET k | CLIENT REPLY SKIP | EXEC | PING | PING
    """,
    "CLIENT REPLY of a client that hears, in a transaction": """
        direct: SET k v
        a: MULTI | CLIENT REPLY ON | EXEC | PING | GET k
        c: MULTI | CLIENT REPLY ON | ECHO 1 | CLIENT REPLY OFF | ECHO 2 | EXEC | CLIENT REPLY ON | PING
        d: MULTI | CLIENT REPLY SKIP | CLIENT REPLY ON | ECHO 1 | CLIENT REPLY SKIP | EXEC | PING | PING
        e: CLIENT REPLY OFF | MULTI | CLIENT REPLY | SET e 1 | EXEC | MULTI | CLIENT REPLY BAD | SET f 1 | EXEC
        e: CLIENT REPLY ON | EXISTS e f
        f: WATCH k | MULTI | CLIENT REPLY OFF
        direct: SET k w
        f: EXEC | GET k
    """,
    "words that end at a NUL": """
        a: CLIENT REPLY off\0x | PING
        b: CLIENT REPLY 'skip\0x' | PING | PING
        a: CLIENT REPLY ON\0 | PING
        c: HELLO 2 auth\0 default x | HELLO 2 SETNAME\0 me | CLIENT GETNAME
        d: HELLO 3 | CLIENT TRACKING on\0 BCAST | SET k v
        e: HELLO 3 | EVAL 'return 1' 0 | SET k w | CLIENT TRACKINGINFO
    """,
    "a login whose word ends at a NUL": """
        direct: ACL SETUSER joe on >secret ~* &* +@all
        direct: ACL SETUSER amy on >secret ~* &* +@all
        a: AUTH amy secret | ACL WHOAMI
        b: AUTH amy secret | HELLO 2 auth\0 joe secret | ACL WHOAMI
        a: ACL WHOAMI
        direct: ACL DELUSER joe amy
    """,
    "SELECT": """
        a: SELECT 1 | SET k one | SELECT 0 | GET k | SELECT 1 | GET k | SELECT 16 | GET k | SELECT -1 | SELECT
        b: GET k | SELECT 1 | GET k
        a: SWAPDB 1 2 | GET k | SELECT 2 | GET k | MOVE k 0
        b: GET k
    """,
    "SELECT in one pipeline": "a: "
    + " | ".join(f"SELECT {i % 16} | SET k {i} | GET k" for i in range(48)),
    "HELLO": """
        a: HELLO | HELLO 2 | HELLO 3 | HELLO | HELLO 4 | HELLO x | HELLO 2 | HELLO 3 SETNAME me | CLIENT GETNAME
        a: HELLO 3 AUTH default bad | HELLO 3 AUTH | HELLO 3 SETNAME 'a b' | GET none | HELLO 2 SETNAME | GET none
    """,
    "HELLO 3 of one client leaves others alone": """
        a: HELLO 3 | GET none
        b: GET none | HELLO
        a: GET none
    """,
    "CLIENT SETNAME": """
        a: CLIENT GETNAME | CLIENT SETNAME me | CLIENT GETNAME | CLIENT SETNAME 'a b' | CLIENT GETNAME
        b: CLIENT GETNAME
        a: RESET | CLIENT GETNAME | CLIENT SETNAME me | CLIENT SETNAME '' | CLIENT GETNAME
    """,
    "CLIENT subcommands": """
        a: CLIENT NO-EVICT ON | CLIENT HELP | CLIENT TRACKINGINFO | CLIENT GETREDIR | CLIENT CACHING YES
        a: CLIENT UNBLOCK 999999 | CLIENT KILL ID 999999 | CLIENT UNPAUSE | CLIENT SETINFO lib-name x | CLIENT PAUSE x
    """,
    "RESET": """
        a: SELECT 4 | SET k four | HELLO 3 | CLIENT SETNAME me | RESET | GET k | CLIENT GETNAME | HELLO
    """,
    "QUIT": "a: SET k v | QUIT | SET k w\nb: GET k",
    "QUIT with arguments": "a: QUIT now please",
    "AUTH without a password set": "a: AUTH x | AUTH default x | AUTH | AUTH a b c | PING",
    "ACL users": """
        direct: ACL SETUSER joe on >secret ~j:* +@all -flushall
        a: AUTH joe wrong | AUTH joe secret | ACL WHOAMI | SET j:k v | SET k v | FLUSHALL | GET j:k | GET k
        b: ACL WHOAMI | SET k v | HELLO 3 AUTH joe secret SETNAME x | SET k v | CLIENT GETNAME | ACL WHOAMI
        a: MULTI | SET j:k w | SET k w | EXEC | GET j:k | AUTH default x | ACL WHOAMI | RESET | ACL WHOAMI
        direct: ACL DELUSER joe
    """,
    "a deleted user's connections close": """
        direct: ACL SETUSER joe on >secret ~* +@all
        a: AUTH joe secret | SET k v
        direct: ACL DELUSER joe
    """,
    # ---- scripts ----
    "EVAL": """
        a: EVAL 'return 1' 0 | EVAL 'return redis.call("SET", KEYS[1], ARGV[1])' 1 k v | GET k
        a: EVAL 'return {1, 2.5, "a", {1, {2}}, nil, 3}' 0 | EVAL 'return redis.call("FOO")' 0 | EVAL 'bad (' 0
        a: EVAL 'return redis.pcall("INCR", KEYS[1])' 1 k | EVAL 'return false' 0
        a: EVAL_RO 'return redis.call("GET", KEYS[1])' 1 k
        a: SCRIPT LOAD 'return 42' | SCRIPT EXISTS 1fa00e76656cc152ad327c13fe365858fd7be306 x | SCRIPT FLUSH
        a: EVALSHA 1fa00e76656cc152ad327c13fe365858fd7be306 0 | SCRIPT LOAD 'return 42'
        a: EVALSHA 1fa00e76656cc152ad327c13fe365858fd7be306 0 | EVAL 'return redis.setresp(3)' 0
    """,
    "EVAL in a database, in RESP3": """
        a: SELECT 2 | HELLO 3 | SET k two | EVAL 'return redis.call("GET", "k")' 0
        a: EVAL 'redis.setresp(3); return {double=3.5}' 0 | EVAL 'redis.call("SELECT", 3); return 1' 0 | GET k
    """,
    "EVAL keeps the order": "a: SET n 0 | "
    + " | ".join("INCR n | EVAL 'return redis.call(\"INCR\", KEYS[1])' 1 n" for _ in range(20)),
    "functions": """
        a: FUNCTION LOAD '#!lua name=lib\\nredis.register_function("f", function(keys, args) return args[1] end)'
        a: FCALL f 0 hello | FCALL none 0 | FUNCTION LIST LIBRARYNAME lib | FUNCTION DELETE lib
    """,
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_same_as_redis(script, weir, redis):
    same_as_redis(weir, redis, script)


BEHIND_A_PASSWORD = {
    "before AUTH": "a: PING | GET k | FOO | MULTI | SUBSCRIBE c | SELECT 1 | CLIENT GETNAME | HELLO | HELLO 3 | QUIT",
    "AUTH": "a: GET k | AUTH wrong | GET k | AUTH secret | SET k v | GET k | AUTH wrong | GET k",
    "AUTH default": "a: AUTH default secret | SET k v | GET k | RESET | GET k | AUTH secret | GET k",
    "AUTH in one pipeline": "a: AUTH secret | SELECT 2 | SET k v | CLIENT SETNAME me | GET k | MULTI | GET k | EXEC",
    "HELLO AUTH": """
        a: HELLO 3 AUTH default wrong | GET k | HELLO 3 AUTH default secret SETNAME me | GET k | HELLO 2 | GET k
    """,
    "one AUTH lets nobody else in": """
        a: AUTH secret | SET k v
        b: GET k
        a: GET k
        b: SELECT 0 | AUTH wrong | GET k | AUTH secret | GET k
        c: GET k
    """,
    "ACL users": """
        a: AUTH secret | ACL SETUSER joe on >pw ~j:* +@all
        b: AUTH joe pw | ACL WHOAMI | SET k v | SET j:k v | AUTH secret | ACL WHOAMI | SET k v
        c: AUTH joe secret | AUTH joe pw | GET k | AUTH joe wrong | ACL WHOAMI | HELLO 3 AUTH joe pw | ACL WHOAMI
        a: ACL DELUSER joe | PING
    """,
    "a changed password": """
        a: AUTH secret | CONFIG SET requirepass other
        b: AUTH secret | AUTH other | CONFIG SET requirepass secret | PING
        a: PING
    """,
    "limits before AUTH": [("a", b"*11\r\n" + pipeline("PING"))],
    "limits after AUTH": [("a", pipeline("AUTH secret") + encode("DEL", *range(11)) + encode("ECHO", b"x" * 20_000))],
    "limits after RESET": [("a", pipeline("AUTH secret", "RESET") + encode("DEL", *range(11)))],
}


@pytest.fixture(scope="module")
def guarded(shared_farm, tmp_path_factory):
    """A Redis with a password, and one weir of each lanes setting in front of it."""
    secret = tmp_path_factory.mktemp("secret") / "password"
    secret.write_text("secret")
    redis = shared_farm.redis(password="secret")
    weirs = {
        lanes: shared_farm.weir(redis, lanes=lanes, upstream_password_file=secret) for lanes in ("shared", "private")
    }
    return redis, weirs


@pytest.mark.parametrize("lanes", ["shared", "private"])
@pytest.mark.parametrize("script", BEHIND_A_PASSWORD.values(), ids=BEHIND_A_PASSWORD.keys())
def test_behind_a_password(script, lanes, guarded):
    redis, weirs = guarded
    same_as_redis(weirs[lanes], redis, script)


# ---- tests that need more than a comparison ----


@pytest.mark.parametrize("end", [b"POST / HTTP/1.1\r\n", b"Host: x\r\n", encode("POST", "x")], ids=["POST", "Host:", "as a request"])
def test_what_was_sent_before_an_http_request_is_carried_out(end, weir, redis):
    """As with Redis, the client gets no more replies than those sent before."""
    for number in range(20):
        with weir.connect() as conn:
            conn.send(encode("SET", "before", number) + encode("MULTI") + encode("INCR", "n") + encode("EXEC") + end + encode("DEL", "n"))
            assert conn.read_to_end() in (b"", b"+OK\r\n")
        wait_until(lambda: redis.call("GET", "before") == b"%d" % number, "it is set")
        wait_until(lambda: redis.call("GET", "n") == b"%d" % (number + 1), "the transaction is carried out")
    redis.call("DEL", "before", "n")


def test_client_ids_stay_and_differ(weir):
    with weir.connect() as a, weir.connect() as b:
        a_id, b_id = a.call("CLIENT", "ID"), b.call("CLIENT", "ID")
        assert a_id != b_id
        a.ask("SET k v", "GET k")
        assert a.call("CLIENT", "ID") == a_id
        assert f"id={a_id} ".encode() in a.call("CLIENT", "INFO")


def test_client_kill_and_unblock_reach_the_right_client(weir, redis):
    with weir.connect() as a, weir.connect() as b, weir.connect() as c:
        a_id, b_id = a.call("CLIENT", "ID"), b.call("CLIENT", "ID")
        a.send(encode("BLPOP", "none", 0))
        wait_until(lambda: redis.waiting()[0] == 1, "a blocks")
        assert c.call("CLIENT", "UNBLOCK", a_id) == 1
        assert a.read() is None
        assert c.call("CLIENT", "KILL", "ID", b_id) == 1
        assert b.read_to_end() == b""
        assert a.call("PING") == "PONG"


@pytest.mark.parametrize("proto", [2, 3])
def test_monitor_shows_what_others_do(weir, proto):
    with weir.connect() as watcher, weir.connect() as other:
        watcher.call("HELLO", proto)
        assert watcher.call("MONITOR") == "OK"
        other.ask("SET seen 1", "GET seen")
        lines = []
        while not lines or '"GET" "seen"' not in lines[-1]:
            lines.append(watcher.read())
        assert any('"SET" "seen" "1"' in line for line in lines)
        other.call("EVAL", "return redis.call('GET', 'seen')", 0)
        while 'lua] "GET" "seen"' not in lines[-1]:
            lines.append(watcher.read())


def test_monitor_ends_with_reset(weir):
    with weir.connect() as watcher, weir.connect() as other:
        assert watcher.call("MONITOR") == "OK"
        watcher.send(encode("RESET"))
        while watcher.read() != "RESET":
            pass
        other.ask("SET k v")
        assert watcher.ask("GET k", "PING") == [b"v", "PONG"]


@pytest.mark.parametrize("behind", ["", "PING", "BLPOP l 0", "SELECT 1", "SUBSCRIBE c", "EVAL 1 0", "QUIT"])
@pytest.mark.parametrize("command", ["BLPOP l 0", "BLMOVE l to LEFT LEFT 0", "XREAD BLOCK 0 STREAMS l $", "WAIT 1 0"])
def test_a_client_that_left_takes_nothing(weir, redis, command, behind):
    """Nothing runs of what the client sent behind its blocking command."""
    clients = [weir.connect() for _ in range(10)]
    for client in clients:
        client.send(pipeline("PING", command, *filter(None, [behind])))
    wait_until(lambda: redis.waiting()[0] == 10, "they block")
    for client in clients:
        client.close()
    wait_until(lambda: redis.waiting()[0] == 0, "Redis forgets them")
    with weir.connect() as other:
        if command.startswith("BL"):
            assert other.ask("RPUSH l v", "LLEN l", "EXISTS to") == [1, 1, 0]


def test_blocking_ends_when_its_time_is_over(weir):
    with weir.connect() as a, weir.connect() as b:
        a.send(pipeline("BLPOP l 0.2", "PING"))
        assert b.call("PING") == "PONG"
        assert [a.read(), a.read()] == [None, "PONG"]


def test_a_transaction_of_a_client_that_left_does_not_run(weir, redis):
    with weir.connect() as a:
        assert a.ask("WATCH k", "MULTI", "SET k v") == ["OK", "OK", "QUEUED"]
    with weir.connect() as b:
        for _ in range(50):
            assert b.ask("GET k", "MULTI", "SET other 1", "EXEC") == [None, "OK", "QUEUED", ["OK"]]


def test_a_subscriber_that_left_is_forgotten(weir, redis):
    with weir.connect() as a:
        a.call("SUBSCRIBE", "c")
        assert redis.call("PUBSUB", "NUMSUB", "c") == [b"c", 1]
    wait_until(lambda: redis.call("PUBSUB", "NUMSUB", "c") == [b"c", 0], "Redis forgets it")


def test_a_half_closed_client_gets_all_its_replies(weir):
    with weir.connect() as a:
        a.send(pipeline(*[f"ECHO {i}" for i in range(500)]))
        a.sock.shutdown(1)
        assert [a.read() for _ in range(500)] == [b"%d" % i for i in range(500)]
        assert a.read_to_end() == b""


def test_a_half_closed_client_leaves_no_blocked_command(weir, redis):
    with weir.connect() as a:
        a.send(pipeline("BLPOP l 0"))
        wait_until(lambda: redis.waiting()[0] == 1, "it blocks")
        a.sock.shutdown(1)
        wait_until(lambda: redis.waiting()[0] == 0, "Redis forgets it")
        assert a.read_to_end() == b""


def test_a_half_closed_client_hears_of_what_it_has_taken(weir, redis):
    """A command that need not block is answered, with all that follows, however replies and weir's
    check for blocking interleave.
    """

    def take(which):
        for i in range(100):
            key = f"half:{which}:{i}"
            with weir.connect() as a:
                a.send(pipeline(f"RPUSH {key} x", f"BLPOP {key} 0", f"SET own:{which} {i}", f"GET own:{which}"))
                a.sock.shutdown(1)
                want = [1, [key.encode(), b"x"], "OK", b"%d" % i]
                assert [a.read() for _ in want] == want
                assert a.read_to_end() == b""

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(take, range(4)))


def test_a_slow_script_hangs_nobody_else(farm):
    """EVAL travels on a lane of its own. Other clients get BUSY, as from Redis, and can end the
    script.
    """
    redis = farm.redis("--lua-time-limit", "1")
    weir = farm.weir(redis, workers=1)
    with weir.connect() as slow, weir.connect() as other:
        other.call("SET", "k", "v")
        slow.send(encode("EVAL", "while true do end", 0))
        wait_until(lambda: str(other.call("GET", "k")).startswith("BUSY"), "Redis is busy")
        assert other.call("SCRIPT", "KILL") == "OK"
        assert "Script killed by user" in slow.read()
        assert other.call("GET", "k") == b"v"


def test_wait_speaks_for_the_clients_own_writes(farm):
    redis = farm.redis("--repl-diskless-sync-delay", "0")
    replica = farm.redis("--replicaof", "127.0.0.1", str(redis.port))
    wait_until(lambda: replica.info("master_link_status") == "up", "the replica is in step", 20)
    for lanes in ("shared", "private"):
        weir = farm.weir(redis, lanes=lanes)
        with weir.connect() as a:
            assert a.ask("SET k v", "WAIT 1 5000", "SET k w", "GET k", "WAIT 1 5000") == ["OK", 1, "OK", b"w", 1]
        with weir.connect() as a:
            replica.signal(signal.SIGSTOP)
            assert a.ask("SET k x", "WAIT 1 100", "GET k") == ["OK", 0, b"x"]
            replica.signal(signal.SIGCONT)
            assert a.call("WAIT", 1, 5000) == 1


def test_client_addresses_are_of_the_proxy_but_commands_work(weir):
    with weir.connect() as a:
        assert a.call("CLIENT", "LIST").startswith(b"id=")
        assert a.call("PING") == "PONG"


def test_many_idle_connections_and_one_busy(weir):
    idle = [weir.connect() for _ in range(100)]
    try:
        for conn in idle:
            assert conn.call("PING") == "PONG"
        with weir.connect() as busy:
            busy.ask(*["INCR n"] * 1000)
        for conn in idle:
            assert conn.call("PING") == "PONG"
    finally:
        for conn in idle:
            conn.close()


def test_sync_relays_bytes_without_frames(weir, redis):
    """A replica's stream starts with a snapshot, which is not a RESP frame."""
    with weir.connect() as replica, weir.connect() as writer:
        writer.call("SET", "before", "1")
        replica.send(encode("PSYNC", "?", "-1"))
        assert replica.line().lstrip(b"\n").startswith(b"+FULLRESYNC")
        assert replica.line().lstrip(b"\n").startswith(b"$")
        writer.call("SET", "streamed", "1")
        while b"streamed" not in replica.buffer:
            replica.more()
