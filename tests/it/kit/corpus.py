"""Every command of every server, with good and with bad arguments, and what may differ between two
servers.

GROUPS are played from an empty server, in order, each on its own connection. The commands of a line
are separated by " | " and quoted as in a shell (see script.py). Each command gets exactly one
reply, at once or within some milliseconds. A command that answers otherwise is in FLOWS (as scripts
of script.py) or has a reason in EXCEPTIONS.
"""

import re
from dataclasses import dataclass

GROUPS = {
    "strings": """
        SET s v | SET s w NX | SET s w XX GET | SET s w KEEPTTL | SET n 10 | SET s v BAD | SET s v EX 0 | SET s v EX x
        SET e v PXAT 33177117420000 | EXPIRETIME e | GET s | GET none | GET l | RPUSH l a | GET l | SET l v NX GET
        SETNX s x | SETNX new x | SETEX s 100 v | SETEX s 0 v | SETEX s x v | PSETEX s 100000 v | PSETEX s -1 v
        PSETEX s x v | GETSET s new | GETSET l x | GETDEL new | GETDEL l | GETEX s PERSIST | GETEX s EX 100 PERSIST
        GETEX l | MSET a 1 b 2 | MSET a 1 b | MSETNX a 9 c 3 | MSETNX c 3 d 4 | MSETNX c | MGET a b none l
        APPEND s more | APPEND l x | STRLEN s | STRLEN l | GETRANGE s 0 2 | GETRANGE s a b | GETRANGE l 0 1
        SUBSTR s -3 -1 | SUBSTR s x 1 | SETRANGE s 2 XX | SETRANGE s -1 x | SETRANGE l 0 x | SETRANGE none 0 '' | INCR n
        INCR s | INCR l | DECR n | DECR s | INCRBY n 5 | INCRBY n x | DECRBY n 3 | DECRBY n 9223372036854775808
        INCRBYFLOAT n 1.5 | INCRBYFLOAT n x | INCRBYFLOAT s 1 | SET max 9223372036854775807 | INCR max | LCS a s
        LCS a l | LCS s s LEN IDX | LCS s s IDX MINMATCHLEN 2 WITHMATCHLEN | LCS s s BAD | SET bin '\\x00\\r\\n\\xff'
        GET bin | SET '' '' | GET '' | MGET
    """,
    "bits": """
        SETBIT b 7 1 | SETBIT b -1 1 | SETBIT b 0 2 | GETBIT b 7 | GETBIT b x | BITCOUNT b | BITCOUNT b 0
        BITCOUNT b 0 7 BIT | BITCOUNT b 0 7 BAD | BITPOS b 1 | BITPOS b 2 | BITPOS none 0 | BITOP NOT to b
        BITOP NOT to b b | BITOP BAD to b | BITOP XOR to b none
        BITFIELD b SET u8 0 255 GET i4 4 OVERFLOW FAIL INCRBY u2 6 5 | BITFIELD b GET u65 0 | BITFIELD b BAD
        BITFIELD_RO b GET u8 0 | BITFIELD_RO b SET u8 0 1 | RPUSH l a | SETBIT l 0 1 | GETBIT l 0 | BITCOUNT l
        BITPOS l 1 | BITOP AND to l | BITFIELD l GET u8 0 | BITFIELD_RO l GET u8 0
    """,
    "keys": """
        SET k v | EXISTS k k none | EXISTS | TYPE k | TYPE none | TYPE | RENAME k j | RENAME k j | RENAMENX j k
        RENAMENX j k | COPY k copy | COPY k copy | COPY k copy REPLACE | COPY k k | COPY k copy DB 99 | COPY k copy BAD
        EXPIRE k 1000 | EXPIRE k 5 GT | EXPIRE k x | EXPIRE k 1 NX XX | EXPIRE none 1 | TTL k | TTL none | PTTL k | PTTL
        PEXPIRE k 1000000 | PEXPIRE k x | PERSIST k | PERSIST none | EXPIREAT k 33177117420 | EXPIREAT k x
        EXPIRETIME k | PEXPIREAT k 33177117420000 LT | PEXPIREAT k x | PEXPIREAT k 33177117420000 | PEXPIRETIME k
        PEXPIRETIME none | TOUCH k none | UNLINK copy none | DEL none | RANDOMKEY | KEYS k* | KEYS none | KEYS | DBSIZE
        DBSIZE x | MOVE k 1 | MOVE k 1 | MOVE k 99 | SELECT 1 | MOVE k 1 | GET k | SELECT 99 | SELECT x | SWAPDB 0 1
        SWAPDB 0 99 | SWAPDB x y | GET k | SELECT 0 | GET k | SCAN 0 | SCAN 0 MATCH k* COUNT 5 TYPE string | SCAN x
        SCAN 0 COUNT 0 | SCAN 0 BAD | OBJECT ENCODING k | OBJECT ENCODING none | OBJECT REFCOUNT k
        OBJECT REFCOUNT none | OBJECT IDLETIME k | OBJECT IDLETIME none | OBJECT FREQ k | OBJECT HELP | OBJECT BAD k
        OBJECT FREQ none | CONFIG SET maxmemory-policy allkeys-lfu | SET f v | OBJECT FREQ f | OBJECT IDLETIME f
        CONFIG SET maxmemory-policy noeviction | DUMP k | DUMP none | SET dumped v
        RESTORE back 0 '\\x00\\x01v\\n\\x00\\x91\\x08\\xce\\xb2\\x198\\x8a\\xce' | RESTORE back 0 bad | RESTORE back x y
        RESTORE-ASKING ask 0 bad REPLACE
        RESTORE-ASKING ask 0 '\\x00\\x01v\\n\\x00\\x91\\x08\\xce\\xb2\\x198\\x8a\\xce' | RESTORE-ASKING ask x y
        DUMP dumped | GET dumped | SORT none | SORT k | RPUSH l 3 1 2 | SORT l DESC LIMIT 0 2
        SORT l BY none GET # STORE sorted | SORT l BAD | SORT_RO l ALPHA | SORT_RO l STORE x | RPUSH words b a
        SORT words | SORT_RO words | FLUSHDB ASYNC | FLUSHDB BAD | DBSIZE | FLUSHALL SYNC | FLUSHALL BAD | DBSIZE
    """,
    "lists": """
        RPUSH l a b c | LPUSH l z | LPUSHX l y | LPUSHX none y | RPUSHX l d | RPUSHX none d | LRANGE l 0 -1
        LRANGE l a b | LLEN l | LLEN none | LINDEX l 0 | LINDEX l 99 | LINDEX l x | LSET l 0 Y | LSET l 99 x
        LSET none 0 x | LINSERT l BEFORE a n | LINSERT l BAD a n | LINSERT l AFTER none n
        LPOS l a RANK 1 COUNT 0 MAXLEN 9 | LPOS l a RANK 0 | LREM l 1 n | LREM l x n | LTRIM l 0 9 | LTRIM l a b
        LPOP l | LPOP l 2 | LPOP none 2 | LPOP l -1 | RPOP l | RPOP l 1 | RPOP none | RPOP l x | RPUSH from a b c
        LMOVE from to LEFT RIGHT | LMOVE from to BAD RIGHT | RPOPLPUSH from to | LMPOP 2 none to LEFT COUNT 2
        LMPOP 0 to LEFT | LMPOP 1 to BAD | LMPOP 1 none RIGHT | SET s v | RPUSH s a | LPUSH s a | LPUSHX s a
        RPUSHX s a | LRANGE s 0 1 | LLEN s | LINDEX s 0 | LSET s 0 x | LPOS s a | LINSERT s BEFORE a b | LREM s 0 a
        LTRIM s 0 1 | LPOP s | RPOP s | LMOVE s to LEFT LEFT | RPOPLPUSH s to | LMPOP 1 s LEFT
    """,
    "blocking commands that find something, or wait a moment": """
        RPUSH l a b c d e f | BLPOP none l 0 | BLPOP none 0.01 | BLPOP none x | BLPOP none -1 | BRPOP l 0
        BRPOP none 0.01 | BRPOP none x | BLMOVE l to LEFT RIGHT 0 | BLMOVE none to LEFT RIGHT 0.01
        BLMOVE l to BAD RIGHT 0 | BRPOPLPUSH l to 0 | BRPOPLPUSH none to 0.01 | BRPOPLPUSH l to x
        BLMPOP 0 2 none l LEFT COUNT 2 | BLMPOP 0.01 1 none LEFT | BLMPOP x 1 l LEFT | BLMPOP 0 0 l LEFT
        ZADD z 1 a 2 b 3 c 4 d | BZPOPMIN none z 0 | BZPOPMIN none 0.01 | BZPOPMIN z x | BZPOPMAX z 0
        BZPOPMAX none 0.01 | BZPOPMAX z x | BZMPOP 0 1 z MIN COUNT 2 | BZMPOP 0.01 1 none MAX | BZMPOP 0 1 z BAD
        SET s v | BLPOP s 0 | BRPOP s 0 | BLMOVE s to LEFT LEFT 0 | BRPOPLPUSH s to 0 | BLMPOP 0 1 s LEFT | BZPOPMIN s 0
        BZPOPMAX s 0 | BZMPOP 0 1 s MIN | WAIT 0 0 | WAIT 1 5 | WAIT x 0 | WAIT 0 -1 | SET s w | WAIT 0 5 | GET s
    """,
    "hashes": """
        HSET h f v g w | HSET h f | HSET h f x n 5 | HSETNX h f y | HSETNX h new y | HMSET h a 1 b 2 | HMSET h a
        HGET h f | HGET h none | HGET none f | HMGET h f none | HGETALL h | HGETALL none | HKEYS h | HVALS h | HLEN h
        HEXISTS h f | HSTRLEN h f | HINCRBY h n 2 | HINCRBY h f 1 | HINCRBY h n x | HINCRBYFLOAT h n 0.5
        HINCRBYFLOAT h f 1 | HDEL h a b none | HSCAN h 0 COUNT 100 | HSCAN h x | HSCAN h 0 BAD | HSET one f v
        HRANDFIELD one | HRANDFIELD one 2 WITHVALUES | HRANDFIELD one -3 | HRANDFIELD none | HRANDFIELD h x
        HRANDFIELD h 1 BAD | SET s v | HSET s f v | HSETNX s f v | HMSET s f v | HGET s f | HMGET s f | HGETALL s
        HKEYS s | HVALS s | HLEN s | HEXISTS s f | HSTRLEN s f | HINCRBY s f 1 | HINCRBYFLOAT s f 1 | HDEL s f
        HSCAN s 0 | HRANDFIELD s
    """,
    "sets": """
        SADD a 1 2 3 | SADD b 2 3 4 | SADD one m | SMEMBERS a | SMEMBERS one | SMEMBERS none | SCARD a | SISMEMBER a 1
        SISMEMBER a 9 | SMISMEMBER a 1 9 | SINTER a b | SUNION a b | SDIFF a b | SINTER a none | SINTERSTORE to a b
        SUNIONSTORE to a b | SDIFFSTORE to a b | SINTERCARD 2 a b LIMIT 1 | SINTERCARD 0 a | SINTERCARD 1 a LIMIT -1
        SMOVE a b 1 | SMOVE a b none | SREM b 1 9 | SSCAN a 0 | SSCAN a x | SSCAN a 0 COUNT x | SRANDMEMBER one
        SRANDMEMBER one 2 | SRANDMEMBER one -2 | SRANDMEMBER one x | SRANDMEMBER none | SPOP one 1 | SPOP one
        SPOP a -1 | SET s v | SADD s 1 | SMEMBERS s | SCARD s | SISMEMBER s 1 | SMISMEMBER s 1 | SINTER a s | SUNION a s
        SDIFF s a | SINTERSTORE to s | SUNIONSTORE to s | SDIFFSTORE to s | SINTERCARD 1 s | SMOVE s a 1 | SREM s 1
        SSCAN s 0 | SRANDMEMBER s | SPOP s
    """,
    "sorted sets": """
        ZADD z 1 a 2 b 3.5 c | ZADD z NX XX 1 a | ZADD z x a | ZADD z GT CH 5 c | ZADD z INCR 1 a | ZADD z NX INCR 1 a
        ZADD z inf top -inf bottom | ZRANGE z 0 -1 WITHSCORES | ZREM z top bottom none | ZCARD z | ZSCORE z a
        ZSCORE z none | ZMSCORE z a none | ZINCRBY z 2 a | ZINCRBY z x a | ZCOUNT z -inf (5 | ZCOUNT z a b | ZRANK z a
        ZRANK z none | ZREVRANK z a | ZREVRANK none a | ZRANGE z 0 -1 REV | ZRANGE z (1 5 BYSCORE LIMIT 0 2
        ZRANGE z 0 1 BAD | ZRANGE z 0 1 LIMIT 0 1 | ZRANGESTORE to z 0 -1 | ZRANGESTORE to z a b
        ZREVRANGE z 0 -1 WITHSCORES | ZREVRANGE z a b | ZRANGEBYSCORE z -inf +inf WITHSCORES LIMIT 0 1
        ZRANGEBYSCORE z x y | ZREVRANGEBYSCORE z 5 0 | ZREVRANGEBYSCORE z x y | ZADD lex 0 a 0 b 0 c
        ZRANGEBYLEX lex [a (c | ZRANGEBYLEX lex a c | ZREVRANGEBYLEX lex + - | ZREVRANGEBYLEX lex a c
        ZLEXCOUNT lex - + | ZLEXCOUNT lex a b | ZREMRANGEBYLEX lex [a [a | ZREMRANGEBYLEX lex a a
        ZREMRANGEBYRANK lex 0 0 | ZREMRANGEBYRANK lex a b | ZREMRANGEBYSCORE to 0 1 | ZREMRANGEBYSCORE to a b
        ZADD y 1 a 9 n | ZUNION 2 z y WEIGHTS 2 1 AGGREGATE MAX WITHSCORES | ZUNION 0 z | ZUNION 1 z BAD
        ZUNIONSTORE to 2 z y | ZUNIONSTORE to 1 z WEIGHTS x | ZINTER 2 z y WITHSCORES | ZINTER 2 z
        ZINTERSTORE to 2 z y | ZINTERSTORE to x z | ZINTERCARD 2 z y LIMIT 1 | ZINTERCARD 0 z | ZDIFF 2 z y WITHSCORES
        ZDIFF 0 z | ZDIFFSTORE to 2 z y | ZDIFFSTORE to x z | ZADD one 1 m | ZRANDMEMBER one
        ZRANDMEMBER one 2 WITHSCORES | ZRANDMEMBER one -2 | ZRANDMEMBER one x | ZRANDMEMBER none | ZSCAN z 0 | ZSCAN z x
        ZPOPMIN z | ZPOPMIN z 1 | ZPOPMIN z -1 | ZPOPMAX y | ZPOPMAX none | ZPOPMAX y x | ZMPOP 1 z MIN COUNT 1
        ZMPOP 0 z MIN | ZMPOP 1 z BAD | ZMPOP 1 none MAX | SET s v | ZADD s 1 a | ZREM s a | ZCARD s | ZSCORE s a
        ZMSCORE s a | ZINCRBY s 1 a | ZCOUNT s 0 1 | ZRANK s a | ZREVRANK s a | ZRANGE s 0 1 | ZRANGESTORE to s 0 1
        ZREVRANGE s 0 1 | ZRANGEBYSCORE s 0 1 | ZREVRANGEBYSCORE s 1 0 | ZRANGEBYLEX s - + | ZREVRANGEBYLEX s + -
        ZLEXCOUNT s - + | ZREMRANGEBYLEX s - + | ZREMRANGEBYRANK s 0 1 | ZREMRANGEBYSCORE s 0 1 | ZUNION 1 s
        ZINTER 1 s | ZDIFF 1 s | ZINTERCARD 1 s | ZUNIONSTORE to 1 s | ZINTERSTORE to 1 s | ZDIFFSTORE to 1 s
        ZRANDMEMBER s | ZSCAN s 0 | ZPOPMIN s | ZPOPMAX s | ZMPOP 1 s MIN
    """,
    "places": """
        GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania | GEOADD g 200 100 x | GEOADD g NX XX 1 1 x
        GEODIST g Palermo Catania km | GEODIST g Palermo none | GEODIST g Palermo Catania BAD | GEOHASH g Palermo none
        GEOPOS g Palermo none | GEORADIUS g 15 37 200 km WITHDIST WITHCOORD WITHHASH ASC | GEORADIUS g 15 37 200 BAD
        GEORADIUS g 15 37 200 km STORE to | GEORADIUS_RO g 15 37 200 km | GEORADIUS_RO g 15 37 200 km STORE to
        GEORADIUSBYMEMBER g Palermo 200 km | GEORADIUSBYMEMBER g none 200 km
        GEORADIUSBYMEMBER_RO g Palermo 200 km COUNT 1 | GEORADIUSBYMEMBER_RO g Palermo x km
        GEOSEARCH g FROMLONLAT 15 37 BYBOX 400 400 km ASC COUNT 3 WITHDIST
        GEOSEARCH g FROMMEMBER Palermo BYRADIUS 10 km | GEOSEARCH g FROMMEMBER none BYRADIUS 10 km
        GEOSEARCH g BYRADIUS 1 km | GEOSEARCHSTORE to g FROMLONLAT 15 37 BYRADIUS 200 km STOREDIST
        GEOSEARCHSTORE to g FROMLONLAT 15 37 BYRADIUS 1 BAD | SET s v | GEOADD s 1 1 x | GEODIST s a b | GEOHASH s a
        GEOPOS s a | GEORADIUS s 1 1 1 km | GEORADIUSBYMEMBER s a 1 km | GEOSEARCH s FROMLONLAT 1 1 BYRADIUS 1 km
        GEOSEARCHSTORE to s FROMLONLAT 1 1 BYRADIUS 1 km
    """,
    "hyperloglogs": """
        PFADD p a b c | PFADD p a | PFADD q d | PFCOUNT p q | PFCOUNT none | PFMERGE to p q | SET s v | PFADD s a
        PFCOUNT s | PFMERGE to s | PFDEBUG ENCODING p | PFDEBUG GETREG p x | PFDEBUG BAD p | PFDEBUG ENCODING none
    """,
    "streams": """
        XADD x 1-1 f v | XADD x 1-1 f v | XADD x 0-0 f v | XADD x 1-2 f | XADD x NOMKSTREAM MAXLEN ~ 100 2-1 f v g w
        XADD none NOMKSTREAM 1-1 f v | XADD x * f v | XADD x bad f v | XTRIM x MAXLEN 2 | XTRIM x BAD 2
        XTRIM x MINID 2-0 | XADD x 99999999999999-1 f v | XLEN x | XLEN none | XRANGE x 2-1 2-1 | XRANGE x bad +
        XREVRANGE x 2-1 - COUNT 1 | XREVRANGE x + bad | XDEL x 5-5 | XDEL x bad | XREAD COUNT 1 STREAMS x 0
        XREAD STREAMS x | XREAD STREAMS x bad | XREAD BLOCK 5 STREAMS none $ | XREAD BLOCK x STREAMS x $
        XREAD STREAMS x 99999999999999-1 | XGROUP CREATE x g 0 | XGROUP CREATE x g 0 | XGROUP CREATE none g $
        XGROUP CREATE made g $ MKSTREAM | XGROUP CREATE x h bad | XGROUP CREATECONSUMER x g c
        XGROUP CREATECONSUMER x none c | XREADGROUP GROUP g c COUNT 2 STREAMS x >
        XREADGROUP GROUP g c BLOCK 5 STREAMS made > | XREADGROUP GROUP none c STREAMS x >
        XREADGROUP GROUP g c STREAMS x 0 | XREADGROUP BAD g c STREAMS x > | XREADGROUP GROUP g c BLOCK 5 STREAMS x >
        XPENDING x g | XPENDING x g IDLE 100000 - + 10 | XPENDING x none | XPENDING x g - | XACK x g 2-1 5-5
        XACK x g bad | XCLAIM x g d 0 2-1 99999999999999-1 JUSTID | XCLAIM x none d 0 2-1 | XCLAIM x g d bad 2-1
        XAUTOCLAIM x g e 0 0 JUSTID | XAUTOCLAIM x g e bad 0 | XAUTOCLAIM x none e 0 0 | XINFO STREAM made
        XINFO STREAM none | XINFO STREAM x BAD | XINFO STREAM made FULL COUNT 1 | XINFO GROUPS x | XINFO GROUPS none
        XINFO CONSUMERS x g | XINFO CONSUMERS x none | XINFO HELP | XINFO BAD | XGROUP SETID x g 0 ENTRIESREAD 1
        XGROUP SETID x none 0 | XGROUP DELCONSUMER x g c | XGROUP DELCONSUMER x none c | XGROUP DESTROY x g
        XGROUP DESTROY none g | XGROUP HELP | XGROUP BAD | XSETID x 99999999999999-9 | XSETID x 0-1 | XSETID none 1-1
        SET s v | XADD s 1-1 f v | XLEN s | XRANGE s - + | XREVRANGE s + - | XTRIM s MAXLEN 1 | XDEL s 1-1
        XREAD STREAMS s 0 | XREAD BLOCK 5 STREAMS s 0 | XSETID s 1-1 | XGROUP CREATE s g 0
        XREADGROUP GROUP g c STREAMS s > | XACK s g 1-1 | XPENDING s g | XCLAIM s g c 0 1-1 | XAUTOCLAIM s g c 0 0
        XINFO STREAM s
    """,
    "transactions": """
        MULTI | SET k 1 | INCR k | LPUSH k x | GET k | EXEC | EXEC | DISCARD | MULTI x | EXEC x | DISCARD x | UNWATCH x
        MULTI | MULTI | WATCH k | PING | EXEC | MULTI | SET k 2 | DISCARD | GET k | WATCH k | WATCH | MULTI | INCR k
        EXEC | WATCH k | SET k 5 | MULTI | INCR k | EXEC | WATCH k | SET k 6 | UNWATCH | UNWATCH | MULTI | INCR k | EXEC
        MULTI | FOO | SET k 9 | EXEC | GET k | MULTI | GET | DISCARD | MULTI | EXEC | MULTI | BLPOP none 0 | EXEC
        MULTI | EVAL 'return redis.call("INCR", "k")' 0 | PUBLISH c m | CLIENT REPLY ON | RESET | GET k | EXEC | WATCH k
        RESET | SET k 7 | MULTI | GET k | EXEC
    """,
    "scripts": """
        SET k v | EVAL 'return redis.call("GET", KEYS[1])' 1 k | EVAL 'return {1, 2.5, "a", {1, {2}}, nil, 3}' 0
        EVAL 'bad (' 0 | EVAL 'return 1' x | EVAL 'return 1' 1 | EVAL 'return redis.call("FOO")' 0
        EVAL 'return redis.pcall("INCR", "k")' 0 | EVAL 'redis.setresp(3); return {double=3.5}' 0
        EVAL '#!lua flags=no-writes\\nreturn redis.call("SET", "k", "x")' 0
        EVAL_RO 'return redis.call("GET", KEYS[1])' 1 k | EVAL_RO 'return redis.call("SET", KEYS[1], 1)' 1 k
        EVAL_RO x y | SCRIPT LOAD 'return 42' | SCRIPT LOAD 'bad (' | EVALSHA 1fa00e76656cc152ad327c13fe365858fd7be306 0
        EVALSHA 0000000000000000000000000000000000000000 0 | EVALSHA_RO 1fa00e76656cc152ad327c13fe365858fd7be306 0
        EVALSHA_RO 0000000000000000000000000000000000000000 0 | SCRIPT EXISTS 1fa00e76656cc152ad327c13fe365858fd7be306 x
        SCRIPT DEBUG NO | SCRIPT DEBUG BAD | SCRIPT FLUSH BAD | SCRIPT FLUSH SYNC | SCRIPT KILL | SCRIPT HELP
        SCRIPT BAD | FUNCTION LOAD '#!lua name=lib\\nredis.register_function("f", function(k, a) return a[1] end)'
        FUNCTION LOAD '#!lua name=lib\\nredis.register_function("f", function(k, a) return a[1] end)'
        FUNCTION LOAD bad
        FUNCTION LOAD REPLACE '#!lua name=lib\\nredis.register_function{function_name="f", callback=function() end, flags={"no-writes"}}'
        FCALL f 0 hello | FCALL none 0 | FCALL f x | FCALL_RO f 0 hello | FCALL_RO none 0 | FUNCTION LIST WITHCODE
        FUNCTION LIST LIBRARYNAME none | FUNCTION LIST BAD | FUNCTION STATS | FUNCTION DUMP | FUNCTION RESTORE bad
        FUNCTION RESTORE '\\n\\x00]\\x9b\\\\@\\x0f\\x7f\\xa2\\xda' | FUNCTION KILL | FUNCTION DELETE none
        FUNCTION DELETE lib | FUNCTION FLUSH BAD | FUNCTION FLUSH | FUNCTION HELP | FUNCTION BAD
    """,
    "publishing": """
        PUBLISH c m | SPUBLISH c m | PUBSUB CHANNELS | PUBSUB CHANNELS c* | PUBSUB NUMSUB c | PUBSUB NUMPAT
        PUBSUB SHARDCHANNELS | PUBSUB SHARDNUMSUB c | PUBSUB HELP | PUBSUB BAD | PUBSUB | UNSUBSCRIBE c | PUNSUBSCRIBE c
        SUNSUBSCRIBE c | UNSUBSCRIBE | PUNSUBSCRIBE | SUNSUBSCRIBE | GET k
    """,
    "the connection": """
        PING | PING hello | PING a b | ECHO hello | ECHO a b | SELECT 1 | SELECT 16 | SELECT -1 | SET k v | HELLO
        HELLO 2 | HELLO 3 | HELLO 4 | HELLO x | HELLO 3 SETNAME me | CLIENT GETNAME | HELLO 3 AUTH default | HELLO 3 BAD
        HGETALL none | HELLO 2 | HGETALL none | CLIENT INFO | CLIENT GETNAME | RESET | CLIENT GETNAME | GET k
        CLIENT INFO | CLIENT SETNAME me | CLIENT SETNAME 'a b' | CLIENT GETNAME | CLIENT SETINFO lib-name x | CLIENT ID
        CLIENT ID | CLIENT INFO | CLIENT HELP | CLIENT BAD | CLIENT | CLIENT LIST | CLIENT LIST TYPE replica
        CLIENT LIST ID 999999999 | CLIENT LIST TYPE bad | CLIENT KILL ID 999999999 | CLIENT KILL 127.0.0.1:1
        CLIENT KILL ID x | CLIENT KILL BAD x | CLIENT UNBLOCK 999999999 | CLIENT UNBLOCK x | CLIENT UNBLOCK 1 BAD
        CLIENT PAUSE 1 WRITE | CLIENT PAUSE x | CLIENT PAUSE 1 BAD | CLIENT UNPAUSE | CLIENT UNPAUSE x | CLIENT REPLY ON
        CLIENT REPLY BAD | CLIENT GETREDIR | CLIENT TRACKINGINFO | CLIENT CACHING YES | CLIENT TRACKING BAD
        CLIENT TRACKING ON REDIRECT 999999999 | CLIENT TRACKING ON OPTIN NOLOOP | CLIENT CACHING YES
        CLIENT CACHING BAD | CLIENT TRACKINGINFO | CLIENT GETREDIR | GET k | CLIENT TRACKING OFF | CLIENT NO-EVICT ON
        CLIENT NO-EVICT BAD | CLIENT INFO | CLIENT NO-EVICT OFF | CLIENT INFO | AUTH x | AUTH default x | AUTH none x
        AUTH a b c | READONLY | READWRITE | ASKING | RESET x
    """,
    "users": """
        ACL SETUSER joe on >secret ~j:* resetchannels &c +@all -flushall | ACL SETUSER joe BAD | ACL USERS | ACL LIST
        ACL GETUSER joe | ACL GETUSER none | ACL DRYRUN joe GET k | ACL DRYRUN none GET k | ACL DRYRUN joe SET j:k v
        AUTH joe wrong | ACL WHOAMI | AUTH joe secret | ACL WHOAMI | SET j:k v | SET k v | FLUSHALL
        CONFIG SET maxmemory 0 | PUBLISH d m | PUBLISH c m | SUBSCRIBE d | GET k | GET j:k
        EVAL 'return redis.call("GET", KEYS[1])' 1 k | CLIENT INFO | AUTH joe wrong | ACL WHOAMI
        HELLO 3 AUTH joe wrong | HELLO 3 AUTH joe secret SETNAME me | ACL WHOAMI | CLIENT GETNAME
        HELLO 2 AUTH default x | ACL WHOAMI | AUTH default x | ACL WHOAMI | AUTH joe secret | RESET | ACL WHOAMI
        ACL LOG x | ACL LOG RESET | ACL LOG | ACL DELUSER default | ACL DELUSER joe none | ACL CAT
        ACL CAT string | ACL CAT none | ACL GENPASS | ACL GENPASS 8 | ACL GENPASS x | ACL SAVE | ACL LOAD | ACL HELP
        ACL BAD
    """,
    "the server": """
        TIME | LASTSAVE | INFO | INFO server clients | INFO none | ROLE | LOLWUT | LOLWUT VERSION 5 1 1 1
        LOLWUT VERSION x | CONFIG GET maxmemory | CONFIG GET max* save | CONFIG GET none | CONFIG SET timeout 0
        CONFIG SET timeout x | CONFIG SET none x | CONFIG SET timeout 0 timeout 0 | CONFIG RESETSTAT | CONFIG REWRITE
        CONFIG HELP | CONFIG BAD | CONFIG SET min-replicas-to-write 1 | SET k v | CONFIG SET min-replicas-to-write 0
        COMMAND INFO get none | COMMAND LIST FILTERBY PATTERN x* | COMMAND LIST FILTERBY BAD x | COMMAND LIST BAD
        COMMAND DOCS get | COMMAND GETKEYS SET k v | COMMAND GETKEYS PING | COMMAND GETKEYS EVAL 'return 1' 9
        COMMAND GETKEYSANDFLAGS SET k v | COMMAND GETKEYSANDFLAGS FOO | COMMAND HELP | COMMAND BAD | MEMORY USAGE k | SET k v | MEMORY USAGE k
        MEMORY USAGE k SAMPLES 0 | MEMORY USAGE k BAD | MEMORY STATS | MEMORY DOCTOR | MEMORY MALLOC-STATS
        MEMORY PURGE | MEMORY HELP | MEMORY BAD | LATENCY LATEST | LATENCY HISTORY none | LATENCY GRAPH none
        LATENCY DOCTOR | LATENCY RESET | LATENCY RESET command | LATENCY HISTOGRAM set | LATENCY HISTOGRAM none
        LATENCY HELP | LATENCY BAD | CONFIG SET slowlog-log-slower-than 20000 latency-monitor-threshold 20
        DEBUG SLEEP 0.03 | SLOWLOG GET 1 | CONFIG SET slowlog-log-slower-than -1 latency-monitor-threshold 0
        LATENCY GRAPH command | LATENCY RESET command | SLOWLOG GET x | SLOWLOG GET -2 | SLOWLOG RESET | SLOWLOG LEN
        SLOWLOG GET | SLOWLOG HELP | SLOWLOG BAD | MODULE LIST | MODULE LOAD /none | MODULE LOADEX /none
        MODULE UNLOAD none | MODULE HELP | MODULE BAD | REPLICAOF NO ONE | REPLICAOF x y | SLAVEOF NO ONE | SLAVEOF x y
        FAILOVER | FAILOVER ABORT | FAILOVER BAD | SYNC x | PSYNC x | REPLCONF x | MIGRATE 127.0.0.1 1 none 0 10
        MIGRATE 127.0.0.1 1 k 0 10 | MIGRATE a b c d e | MIGRATE 127.0.0.1 1 k 0 10 BAD | SHUTDOWN BAD | SHUTDOWN ABORT
        SHUTDOWN SAVE NOSAVE | SAVE | SAVE x | BGSAVE BAD | BGREWRITEAOF x | MONITOR x
    """,
    "DEBUG": """
        SET k v | RPUSH l a | DEBUG OBJECT k | DEBUG OBJECT none | DEBUG DIGEST | DEBUG DIGEST-VALUE k none
        DEBUG SDSLEN k | DEBUG LISTPACK l | DEBUG QUICKLIST l | DEBUG ERROR 'ERR mine' | DEBUG LOG line | DEBUG SLEEP 0
        DEBUG STRUCTSIZE | DEBUG SET-ACTIVE-EXPIRE 1 | DEBUG HTSTATS 9 | DEBUG RELOAD | DEBUG POPULATE 3 p 5
        DEBUG HELP | DEBUG BAD | DEBUG | DEBUG PROTOCOL STRING | DEBUG PROTOCOL INTEGER | DEBUG PROTOCOL DOUBLE
        DEBUG PROTOCOL NULL | DEBUG PROTOCOL ARRAY | DEBUG PROTOCOL SET | DEBUG PROTOCOL MAP | DEBUG PROTOCOL VERBATIM
        DEBUG PROTOCOL TRUE | DEBUG PROTOCOL FALSE | DEBUG PROTOCOL BIGNUM | DEBUG PROTOCOL BAD
    """,
    "out of memory": """
        SET k v | CONFIG SET maxmemory 1 | SET k w | GET k | DEL k | EVAL 'return redis.call("SET", "k", "v")' 0
        RPUSH l a | HELLO 3 | CONFIG SET maxmemory 0 | SET k v
    """,
    "no such command": """
        FOO | FOO a 'b c' | 'G\\x00T' k | '' | 'FOO\\r\\nBAR' 'a\\r\\nb' | JSON.GET k | CL.THROTTLED k 1 1 1 | GET|SET k
        CLIENT|ID | CONFIG|GET x | OBJECT k | GETT k | get | gEt none | cOnFiG gEt maxmemory
    """,
    "cluster commands of a server that is none": """
        CLUSTER INFO | CLUSTER BAD | CLUSTER ADDSLOTS 1 | CLUSTER ADDSLOTSRANGE 1 2 | CLUSTER BUMPEPOCH
        CLUSTER COUNT-FAILURE-REPORTS x | CLUSTER COUNTKEYSINSLOT 1 | CLUSTER DELSLOTS 1 | CLUSTER DELSLOTSRANGE 1 2
        CLUSTER FAILOVER | CLUSTER FLUSHSLOTS | CLUSTER FORGET x | CLUSTER GETKEYSINSLOT 1 1 | CLUSTER HELP
        CLUSTER KEYSLOT k | CLUSTER LINKS | CLUSTER MEET 127.0.0.1 1 | CLUSTER MYID | CLUSTER NODES | CLUSTER REPLICAS x
        CLUSTER REPLICATE x | CLUSTER RESET | CLUSTER SAVECONFIG | CLUSTER SET-CONFIG-EPOCH 1 | CLUSTER SETSLOT 1 STABLE
        CLUSTER SHARDS | CLUSTER SLAVES x | CLUSTER SLOTS
    """,
    "what only some versions have": """
        HSET h f v g w | HEXPIRE h 100 FIELDS 1 f | HEXPIRE h x FIELDS 1 f | HEXPIRE none 100 FIELDS 1 f
        HEXPIRE h 100 NX FIELDS 3 f g none | HEXPIRE h 100 FIELDS 2 f | HPEXPIRE h 200000 GT FIELDS 1 g
        HPEXPIRE h -1 FIELDS 1 f | HEXPIREAT h 33177117420 FIELDS 1 g | HEXPIREAT h 1 BAD FIELDS 1 g
        HPEXPIREAT h 33177117420000 XX FIELDS 1 f | HPEXPIREAT h x FIELDS 1 f | HEXPIRETIME h FIELDS 2 g none
        HEXPIRETIME h FIELDS 0 | HPEXPIRETIME h FIELDS 1 f | HPEXPIRETIME h BAD 1 f | HTTL h FIELDS 3 f g none
        HTTL h FIELDS x f | HPTTL h FIELDS 2 f none | HPTTL none FIELDS 1 f | HPERSIST h FIELDS 2 f none
        HPERSIST h FIELDS 2 f | HSCAN h 0 NOVALUES | HGETALL h | SET s v | HEXPIRE s 1 FIELDS 1 f | HTTL s FIELDS 1 f
        HPTTL s FIELDS 1 f | HPERSIST s FIELDS 1 f | HEXPIRETIME s FIELDS 1 f | SSCAN s 0 NOVALUES | SET s v IFEQ v
        RESTORE old 0 '\\x00\\x01v\\x06\\x00\\x07\\xe5\\xa62\\xecm\\xb6]' | RESTORE-ASKING ask 0 '\\x00\\x01v\\x06\\x00\\x07\\xe5\\xa62\\xecm\\xb6]'
        SET t abcab | STRALGO LCS KEYS s t | STRALGO LCS STRINGS abc bcd IDX WITHMATCHLEN | STRALGO LCS KEYS h t
        STRALGO BAD x y | ZADD z 1 a 2 b | ZRANK z b WITHSCORE | ZREVRANK z none WITHSCORE | ZRANK z a BAD
        CLIENT NO-TOUCH ON | CLIENT NO-TOUCH BAD | CLIENT NO-TOUCH OFF | CLIENT KILL MAXAGE 1000000
        CLIENT KILL MAXAGE x | CLIENT CAPA redirect | CLIENT CAPA bad | CLUSTER MYSHARDID | CLUSTER SLOT-STATS
        CLUSTER SLOT-STATS SLOTSRANGE 0 1 | WAITAOF x 0 0 | WAITAOF 1 0 0 | WAITAOF 0 0 0 | SCRIPT LOAD 'return 42'
        SCRIPT SHOW 1fa00e76656cc152ad327c13fe365858fd7be306 | SCRIPT SHOW x | SCRIPT FLUSH
        CONFIG GET maxmemory maxclients | XADD x 1-1 f v | XREAD STREAMS x + | GEOSEARCH g BYPOLYGON 3 1 1 2 2 3 3
    """,
}

# Each of these starts a child process of Redis. Each is sent after the child before has ended.
BACKGROUND = "BGSAVE | BGSAVE SCHEDULE | BGREWRITEAOF"

# Commands that do not have exactly one reply: scripts of script.py, with HELLO of the protocol sent
# first on each connection.
FLOWS = {
    "subscriptions": """
        a: SUBSCRIBE c d | PSUBSCRIBE p* q* | SSUBSCRIBE s t
        b: PUBLISH c m | PUBLISH px m | SPUBLISH s m | PUBSUB NUMSUB c d | PUBSUB NUMPAT | PUBSUB SHARDNUMSUB s
        a: PING | PING hello | GET k | SUBSCRIBE | PSUBSCRIBE | SSUBSCRIBE | CLIENT ID x
        a: UNSUBSCRIBE c none | PUNSUBSCRIBE | SUNSUBSCRIBE s | SUNSUBSCRIBE | UNSUBSCRIBE | GET k
        b: PUBLISH c m | PUBLISH px m | SPUBLISH s m
    """,
    "subscriptions queued": """
        a: MULTI | GET k | SUBSCRIBE c | PSUBSCRIBE p* | SSUBSCRIBE s | GET k | EXEC
        b: PUBLISH c m | PUBLISH px m | SPUBLISH s m
        a: MULTI | UNSUBSCRIBE c | PUNSUBSCRIBE p* | SUNSUBSCRIBE s | EXEC | GET k
        b: PUBLISH c m | PUBLISH px m | SPUBLISH s m
    """,
    "RESET of a subscriber": "a: SUBSCRIBE c | RESET | GET k\nb: PUBLISH c m\na: MULTI | SUBSCRIBE c | RESET | GET k",
    "QUIT": "a: SET k v | QUIT | SET k w",
    "QUIT with arguments": "a: QUIT now please | PING",
    "QUIT in MULTI": "a: MULTI | SET k v | QUIT | EXEC\nb: GET k",
    "CLIENT REPLY": """
        a: CLIENT REPLY SKIP | SET k 1 | GET k | CLIENT REPLY OFF | SET k 2 | FOO | GET | CLIENT REPLY SKIP | GET k
        a: CLIENT REPLY ON | GET k | CLIENT REPLY OFF | AUTH bad | SELECT 1 | CLIENT SETNAME me
        a: CLIENT REPLY ON | GET k | CLIENT GETNAME
        a: CLIENT REPLY SKIP | MULTI | SET k 3 | EXEC | CLIENT REPLY SKIP | CLIENT REPLY ON | GET k
    """,
    "CLIENT REPLY queued": "a: MULTI | GET k | CLIENT REPLY OFF | GET k | EXEC | GET k\na: CLIENT REPLY ON | PING",
    "CLIENT TRACKING": """
        a: SET k 1 | CLIENT TRACKING ON | GET k | MULTI | GET k | EXEC
        b: SET k 2
        a: GET k | CLIENT TRACKING ON BCAST PREFIX k | CLIENT TRACKING OFF | CLIENT TRACKING ON BCAST PREFIX k NOLOOP
        b: SET k 3 | SET other 1
        b: FLUSHALL
        a: SET k 4 | CLIENT TRACKING OFF | PING
        b: SET k 5
    """,
    "REPLCONF": "a: SET k v | REPLCONF listening-port 1 | REPLCONF capa eof capa psync2 | REPLCONF bad x\nb: GET k",
    "CLIENT KILL": "a: SUBSCRIBE c\nb: CLIENT KILL TYPE pubsub | PING",
    "POST": "a: SET k v\na< POST / HTTP/1.1",
    "POST and Host: as commands": "a: SET k v\na: POST / HTTP/1.1 | GET k\nb: Host: localhost | GET k",
    "an unfinished MULTI": "a: MULTI | SET k v\na.\nb: GET k",
}

# Commands (a pattern for the whole name), what the corpus lacks for these commands, and why.
EXCEPTIONS = [
    (r"acl\|(load|save)", "good", "needs an aclfile, which cannot go together with the other options of the tests"),
    (r"asking|readonly|readwrite|cluster.*", "good", "the server is not in cluster mode, as always behind weir"),
    (r"config\|rewrite", "good", "needs a configuration file"),
    (r"failover|module\|(load|loadex|unload)", "good", "needs replicas, or a module"),
    (r"(script|function)\|kill", "good", "needs a script that hangs: test_private_state"),
    (r"shutdown", "good", "ends the server: test_private_state"),
    (r"p?sync", "good", "what follows is no RESP and has random ids: test_private_state attaches a real replica"),
    (r"monitor", "good", "shows what weir asks for itself too: test_commands, test_private_state"),
    (r"pfselftest", "good", "keeps the server busy for a second: test_corpus plays it once"),
    (r"command(\|count)?", "good", "weir's own commands are among them: test_command_limit"),
    (r"quit|info|host:|post|command\|(docs|info)|[ps]?unsubscribe|latency\|(reset|histogram)", "bad", "takes any argument"),
    (r"pubsub\|(channels|numsub|shardchannels|shardnumsub)", "bad", "takes any argument"),
    (r"acl|client|config|function|latency|memory|module|object", "good", "needs a subcommand"),
    (r"pubsub|script|slowlog|xgroup|xinfo", "good", "needs a subcommand"),
]


@dataclass
class Mask:
    """What may differ between two servers in replies to `commands` (a pattern for the whole name).
    """

    commands: str
    pattern: bytes
    replacement: bytes
    why: str

    def apply(self, name, data):
        return re.sub(self.pattern, self.replacement, data) if re.fullmatch(self.commands, name) else data


NUMBER = rb"(?m)^([:,])-?[\d.]+(?:e[+-]?\d+)?\r$"
TEXT = rb"(?s)[$=]\d+\r\n.*"

MASKS = [
    Mask("hello", rb"(\$2\r\nid\r\n):\d+", rb"\1:N", "the connection's id"),
    Mask("client\\|id", rb":\d+", rb":N", "the connection's id"),
    Mask("client\\|(info|list)|acl\\|log", rb"\b(id|fd|age|idle)=\d+", rb"\1=N", "the connection's id and age"),
    Mask("client\\|(info|list)|acl\\|log", rb"addr=\S*:\d+", rb"addr=A", "addresses"),
    Mask(
        "client\\|(info|list)|acl\\|log",
        rb"\b(qbuf|qbuf-free|argv-mem|multi-mem|rbs|rbp|obl|oll|omem|tot-mem)=\d+",
        rb"\1=N",
        "memory of a connection",
    ),
    Mask(
        "client\\|(info|list)|acl\\|log",
        rb"\b(tot-net-in|tot-net-out|tot-cmds)=\d+",
        rb"\1=N",
        "what has passed on a connection, which need not be the client's own",
    ),
    Mask("client\\|(info|list)|acl\\|log", rb"[$=]\d+(?=\r\n(txt:)?id=)", rb"$N", "the length of such a text"),
    Mask("client\\|list", rb"(?s)id=.*", rb"LINES", "other connections"),
    Mask("acl\\|log", rb"(age-seconds\r\n)[$,][^*]*?(?=\$11\r\nclient-info)", rb"\1N\r\n", "time since the event"),
    Mask("time", rb"\$\d+\r\n\d+", rb"$N", "the time"),
    Mask("lastsave|h?p?ttl", NUMBER, rb"\1N\r", "the time"),
    Mask("lolwut|exec", rb"[$=]\d+\r\n(txt:)?(\x1b\[0;[\d;]+m|\x1b\[0m|[ \n])+", rb"DRAWING", "a drawing at random, of Redis 6"),
    Mask("info", rb"(?m)^(?!txt)(\w+):.*\r$", rb"\1:V\r", "figures of the server"),
    Mask("info", rb"[$=]\d+", rb"$N", "the length of a text with figures"),
    Mask("info", rb"(# Errorstats\r\n)(errorstat_\w+:V\r\n)*", rb"\1", "weir's own question, whether a connection is clean"),
    Mask("object\\|idletime", NUMBER, rb"\1N\r", "the time"),
    Mask("debug", rb"Value at:0x[0-9a-f]+", rb"Value at:A", "an address in memory"),
    Mask("debug", rb"lru:\d+ lru_seconds_idle:\d+", rb"lru:N", "the time"),
    Mask("xadd", rb"\$\d+\r\n\d{13}-\d+", rb"ID", "the time, in a generated id"),
    Mask("x(read|range|revrange|readgroup|pending|claim|autoclaim)", rb"\$\d+\r\n1\d{12}-\d+", rb"ID", "such an id"),
    Mask("xinfo\\|.*", rb"\$\d+\r\n1\d{12}-\d+", rb"ID", "such an id"),
    Mask("xinfo\\|(consumers|stream)", rb"((idle|seen-time|inactive)\r\n):\d+", rb"\1:N", "the time"),
    Mask("slowlog\\|get", rb"(\*6\r\n):\d+\r\n:\d+\r\n:\d+", rb"\1:ID\r\n:TIME\r\n:SPENT", "id, time and time spent"),
    Mask("slowlog\\|get", rb"\$\d+\r\n127\.0\.0\.1:\d+", rb"ADDR", "addresses"),
    Mask("acl\\|genpass", rb"\$(\d+)\r\n[0-9a-f]+", rb"$\1", "random"),
    Mask("memory\\|stats", NUMBER, rb"N", "memory"),
    Mask("memory\\|stats", rb"\$\d+\r\n[\d.]+\r\n", rb"N", "memory"),
    Mask("memory\\|(malloc-stats|doctor)", TEXT, rb"TEXT", "memory"),
    Mask("latency\\|graph", TEXT, rb"TEXT", "times"),
    Mask("latency\\|histogram", NUMBER, rb"\1N\r", "times"),
    Mask("latency\\|histogram", rb"(histogram_usec\r\n)[*%]\d+\r\n(:N\r\n)*", rb"\1", "times"),
    Mask("role", rb":\d+", rb":N", "the offset of replication"),
]

# Replies in the order of a hash table with a random seed: their lines are compared without order.
UNORDERED = "command(\\|(list|docs|info))?|config\\|get|object\\|help|acl\\|cat"


def masked(name, data):
    for mask in MASKS:
        data = mask.apply(name, data)
    if re.fullmatch(UNORDERED, name):
        data = b"\r\n".join(sorted(data.split(b"\r\n")))
    return data
