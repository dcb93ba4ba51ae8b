"""Jobs with RQ: rq_jobs.py PORT worker|producer. The producer reads lines "NUMBER SECONDS"."""

import sys
import time

import redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry
from rq import Queue, SimpleWorker

LOST = (redis.ConnectionError, redis.TimeoutError, OSError)


def work(n, seconds):
    print("begun", n, flush=True)
    time.sleep(seconds)
    print("done", n, flush=True)


def enqueue(queue, n, seconds):
    while True:
        try:
            queue.enqueue("rq_jobs.work", int(n), float(seconds))
            return print("enqueued", n, flush=True)
        except redis.RedisError as error:
            print("error", type(error).__name__, error, flush=True)
            time.sleep(0.05)


if __name__ == "__main__":
    port, role = sys.argv[1:]
    patience = Retry(ExponentialBackoff(cap=0.3, base=0.05), 20, supported_errors=LOST)
    connection = redis.Redis("127.0.0.1", int(port), retry=patience, retry_on_error=list(LOST))
    queue = Queue("jobs", connection=connection)
    if role == "worker":
        SimpleWorker([queue], connection=connection).work(logging_level="CRITICAL")
    for line in sys.stdin:
        enqueue(queue, *line.split())
