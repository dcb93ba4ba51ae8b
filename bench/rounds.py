"""Rounds: in each round all endpoints alternate. A round that other work has disturbed is measured
again.
"""

import argparse
import statistics
import time

from machine import noise
from rig import Failed

WARM_UP = 0.3  # seconds, of all slices of a measurement together
PER_OPERATION = ("proxy_us", "redis_us", "driver_us", "reached")
TIMES = ("p50_us", "p99_us", "late_us")


def options(doc, rounds, seconds):
    """A parser with the options of every measurement in rounds. A script adds its own."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=seconds, help=f"of each measurement ({seconds})")
    parser.add_argument("--realtime", action="store_true", help="before the machine's other work (SCHED_FIFO): needs root")
    return parser


def turns(names, number):
    """The names in the order of this round. Each round starts with another name."""
    first = number % len(names)
    return names[first:] + names[:first]


def kept(count, is_first, measure, what):
    """
    name -> sample, for each of `count` rounds of measure(number). A round in which other processes
    used too much of the machine is measured again. Since some machines are never quiet, at most
    `count` rounds are repeated.
    """
    rounds, thrown = [], 0
    while len(rounds) < count:
        began = time.monotonic()
        samples = measure(len(rounds))
        if is_first:
            # processes that had to stand still get the same time
            time.sleep(time.monotonic() - began)
        why = noise(samples.values(), is_first)
        if why and thrown < count:
            thrown += 1
            print(f"  {what}: round {len(rounds) + 1} is thrown away and measured again: {why}", flush=True)
            continue
        rounds.append(samples)
    return rounds


def by_name(rounds):
    """name -> its samples. A name that is missing in the last round has no samples."""
    return {name: [samples[name] for samples in rounds] if name in rounds[-1] else [] for name in rounds[0]}


def sliced(rig, loads, number, seconds, slices, cannot):
    """
    One round: endpoint -> its sample. Each measurement is made of slices in which all endpoints
    alternate. The chances of a single run of the driver, like the sharing of cores, then do not
    count as properties of the endpoint. For an endpoint that fails, cannot(endpoint, why) is
    called, and there is no sample.
    """
    parts = {name: [] for name in loads}
    for part in range(slices):
        for name in turns(list(parts), number + part):
            how = {"seconds": seconds / slices, "warm_up": WARM_UP / slices, "seed": number * slices + part + 1}
            try:
                parts[name].append(rig.measure(rig.endpoints[name], loads[name], **how))
            except Failed as failed:
                cannot(name, failed)
                del parts[name]
    return {name: merge(slices) for name, slices in parts.items()}


def merge(slices):
    """Merges samples of one endpoint as if they were one run. Quantiles become their median."""
    ops = [part["ops_s"] for part in slices]
    merged = {}
    for what, first in slices[0].items():
        values = [part[what] for part in slices]
        if first is None:
            merged[what] = None
        elif what in PER_OPERATION:
            merged[what] = sum(value * n for value, n in zip(values, ops)) / sum(ops)
        else:
            merged[what] = (statistics.median if what in TIMES else statistics.fmean)(values)
    work = [part["proxy_us"] or part["redis_us"] for part in slices]
    merged["unsteady"] = max(work) / min(work)
    return merged
