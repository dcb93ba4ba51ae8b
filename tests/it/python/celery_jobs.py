"""Jobs with Celery: celery_jobs.py PORT worker|producer. The producer reads lines "NUMBER SECONDS".
"""

import os
import sys
import time

from celery import Celery

port, role = sys.argv[1:]
url = f"redis://127.0.0.1:{port}/0"
app = Celery("jobs", broker=url, backend=url)
app.conf.worker_redirect_stdouts = False
patience = {"max_retries": 50, "interval_start": 0.1, "interval_step": 0, "interval_max": 0.1}


@app.task(name="work")
def work(n, seconds):
    os.write(1, b"begun %d\n" % n)  # several processes write lines
    time.sleep(seconds)
    os.write(1, b"done %d\n" % n)


def produce():
    for line in sys.stdin:
        n, seconds = line.split()
        work.apply_async((int(n), float(seconds)), retry_policy=patience)
        print("enqueued", n, flush=True)


# Celery 5.2 takes no more jobs after it has looked for neighbours on a second connection, so it
# runs without mingle.
ALONE = ["--without-mingle", "--without-gossip"]

if role == "producer":
    produce()
else:
    app.worker_main(["worker", *ALONE, "--concurrency", "2", "--loglevel", "CRITICAL"])
