"""redis-benchmark as a driver: one thread, which reads one reply at a time.

redis-benchmark never sends large batches, since it reads reply by reply. redis-benchmark takes a
number of requests, not a duration. Processor time is that of the whole run. Connecting is included,
which is negligible beside tens of thousands of requests. The run ends at the first error.
"""

import csv
import subprocess

from machine import cpu_ns, own_s

PROGRAM = "redis-benchmark"
KEY = "get%d:%012d"  # redis-benchmark's form of random keys
PACE = 20_000  # requests per second, before anything is known
LEAST = 1000


def run(address, load, count, pids, preexec_fn):
    """Runs about `count` requests. Returns a result in the driver's form."""
    host, port = address
    count = max(count, LEAST)
    argv = [PROGRAM, "-h", host, "-p", str(port), "-c", str(load.clients), "-P", str(load.pipeline)]
    argv += ["-r", str(load.keys), "-n", str(count), "--csv", *load.words]
    before, own = [cpu_ns(pid) for pid in pids], own_s()
    done = subprocess.run(argv, capture_output=True, text=True, check=True, preexec_fn=preexec_fn)
    own = own_s() - own
    used = [(ran - ran_before, waited - waited_before)
            for (ran, waited), (ran_before, waited_before) in zip(map(cpu_ns, pids), before)]
    row = next(csv.DictReader(line for line in done.stdout.splitlines() if line.startswith('"')))
    return {
        "ops": count,
        "seconds": count / float(row["rps"]),
        "p50_us": float(row["p50_latency_ms"]) * 1e3,
        "p99_us": float(row["p99_latency_ms"]) * 1e3,
        "late_p99_us": 0.0,
        "own_cpu_ns": own * 1e9,
        "cpu_ns": [ran for ran, _ in used],
        "waited_ns": [waited for _, waited in used],
        "replies_in_all": count,
        "errors": 0,
        "lost": 0,
        "first_error": "",
    }
