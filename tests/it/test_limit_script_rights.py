"""A right that weir's own user lacks in Redis ends a call before it has written anything."""

import pytest
from kit.resp import Error
from kit.server import at_least

pytestmark = pytest.mark.skipif(not at_least(7), reason="up to 6.2 a script cannot ask for its rights")

RIGHTS = (
    "+script|load +evalsha +eval +subscribe +publish +time +del +unlink +exists +mget +set +pexpire +pttl "
    "+zadd +zcard +zcount +zscore +zrem +zrange +zrevrange +zrevrangebyscore +zremrangebyscore +zremrangebyrank"
).split()  # fmt: skip
CALLS = [
    "LIMIT ALL FUNNEL a 9/h AND SLIDING b 9/h",
    "LIMIT ALL SLIDING b 9/h AND FUNNEL a 9/h",
    "LIMIT ALL FIXED e 9/h AND SLIDING c 9/h APPROX AND SLIDING b 9/h",
    "LIMIT ALL FUNNEL a 9/h AND FUNNEL f 9/h",
    "LIMIT SLIDING b 9/h",
    "LIMIT SLIDING b 1/h PENALTY 1h",
    "LIMIT FUNNEL a 9/h",
    "LIMIT ACQUIRE d 3 9000",
]
READS = {"script|load", "evalsha", "eval", "time", "subscribe"}


@pytest.fixture(scope="module")
def weak(kept, shared_redis):
    redis = shared_redis
    secret = redis.folder / "weak"
    secret.write_text("pw")
    secret.chmod(0o600)
    redis.call("ACL", "SETUSER", "weak", "on", ">pw", "-@all", "+info", "+command", "~limit:*", "&limit:released", *RIGHTS)
    yield kept(workers=1, upstream_user="weak", upstream_password_file=secret)
    redis.call("ACL", "DELUSER", "weak")


@pytest.fixture
def as_weak(weak, redis):
    redis.call("ACL", "SETUSER", "weak", *RIGHTS)
    with weak.connect() as conn:
        for call in CALLS:
            conn.call(*call.split())
    return weak, redis


def contents(redis):
    found = {}
    for key in redis.call("KEYS", "limit:*"):
        is_set = redis.call("TYPE", key) == "zset"
        found[key] = redis.call("ZRANGE", key, 0, -1, "WITHSCORES") if is_set else redis.call("GET", key)
    return found


@pytest.mark.parametrize("missing", sorted(right[1:] for right in RIGHTS if right[1:] not in READS))
def test_a_call_that_lacks_a_right_writes_nothing(missing, as_weak):
    weir, redis = as_weak
    with weir.connect() as conn:
        for call in CALLS:
            for keys in ("", "again"):
                redis.call("ACL", "SETUSER", "weak", *RIGHTS)
                redis.call("DEL", *(f"limit:{name}" for name in "abcdef"))
                if keys:
                    conn.call(*call.split())
                before = contents(redis)
                redis.call("ACL", "SETUSER", "weak", f"-{missing}")
                answer = conn.call(*call.split())
                if isinstance(answer, Error):
                    assert contents(redis) == before, (call, answer)
                    assert all(redis.call("PTTL", key) > 0 for key in before), call


def test_all_rights_together_are_enough(as_weak):
    weir, _ = as_weak
    with weir.connect() as conn:
        for call in CALLS:
            assert isinstance(conn.call(*call.split()), list), call
