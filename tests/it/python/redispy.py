"""An application with redis-py: redispy.py PORT busy|idle RETRIES. CA=file: the port speaks TLS.
PASSWORD: that of the default user.
"""

import os
import sys
import time

import redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

port, role, retries = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
tls = {"ssl": True, "ssl_ca_certs": os.environ["CA"], "ssl_check_hostname": False} if "CA" in os.environ else {}
patience = {}
if retries:
    lost = (redis.ConnectionError, redis.TimeoutError, OSError)
    backoff = ExponentialBackoff(cap=0.3, base=0.05)
    patience = {"retry": Retry(backoff, retries, supported_errors=lost), "retry_on_error": list(lost)}
session = {"decode_responses": True, "password": os.environ.get("PASSWORD")}
client = redis.Redis("127.0.0.1", port, **session, **patience, **tls)


def attempt(work):
    try:
        return work()
    except redis.RedisError as error:
        print("error", type(error).__name__, error, flush=True)
        time.sleep(0.02)


def busy():
    last = 0
    while attempt(lambda: client.get("stop")) is None:
        n = attempt(lambda: client.incr("n"))
        if n is not None:
            print("ok" if n > last else f"{n} after {last}", flush=True)
            last = n
        time.sleep(0.005)


def idle():
    popped = None
    while popped != "end":
        found = attempt(lambda: client.blpop("q", 0))
        if found:
            popped = found[1]
            print("popped", popped, flush=True)


{"busy": busy, "idle": idle}[role]()
