#!/usr/bin/python3
"""Two tenants of one overloaded Redis: one with 2,000 connections, the other with 20.

Both count the bits of a large value, without a pause and one request at a time on each connection.
Redis is the bottleneck that the tenants share. The tenants come from different addresses and are
two subjects. The result is the number of commands of each tenant that are answered in the same
time. Through weir each tenant is to have half. With `weight = 300` for the tenant with few
connections the goal is three to one. That tenant is also measured with 80 connections, which are
enough to use three quarters. Redis alone divides its time by connections.
"""

import json
import time

import ratios
from cells import Load
from kit.harness import run_weir
from machine import Stretch, end_when_told, is_realtime
from rig import Endpoint, Failed, Rig, make_weir
from rounds import by_name, kept, options, turns

# Address, connections.
MANY, FEW = ("127.0.1.1", 2000), ("127.0.1.2", 20)
# 20 requests are 1 ms of work: less than three quarters of the window and of the round trip
ENOUGH = (FEW[0], 80)
VALUE_BYTES = 256 << 10  # some tens of microseconds of Redis' time
WARM_UP = 2.0  # seconds until all connections are open and served by shares
BUSY = 0.9  # part of Redis' core in use; with less Redis is not the bottleneck

EQUAL, WEIGHTED, FILLED = "weir", "weir, 3:1", "weir, 3:1, 80"
WEIGHTS = f"[policy few]\nmatch = ip:{FEW[0]}\nweight = 300\n[policy many]\nmatch = ip:{MANY[0]}\nweight = 100\n"
# commands of the tenant with few connections, for each command of the other tenant
WANTED = {EQUAL: 1.0, WEIGHTED: 3.0, FILLED: 3.0}
OFF_MAX = 1.1  # largest accepted deviation, as a factor


def knows_weights(folder):
    """True if this weir knows the key `weight`. Older weirs report an error."""
    config = folder / "weights.conf"
    config.write_text("[weir]\nupstream = 127.0.0.1:1\n" + WEIGHTS)
    return run_weir("-t", "-c", config).returncode == 0


def add(rig, name, sections):
    server = rig.start(make_weir(rig.redis, sections), rig.cores.proxy)
    rig.endpoints[name] = Endpoint(name, server.address, server.child.pid)


def start(rig, endpoint, tenant, at_ns, seconds):
    address, connections = tenant
    load = Load(("BITCOUNT", "bits"), connections)
    return rig.start_drive(endpoint, load, seconds=seconds, warm_up=0, more=("-b", address, "-A", at_ns))


def said_by(endpoint, drive):
    out, complaint = drive.communicate()
    if drive.returncode:
        raise Failed(f"{endpoint.name}: {complaint.strip()}")
    return json.loads(out)


def sample(rig, endpoint, seconds):
    """Commands a second of each of the two tenants, in the same seconds."""
    stretch = Stretch(rig.pids_of(endpoint))
    at_ns = time.monotonic_ns() + round(WARM_UP * 1e9)
    few = ENOUGH if endpoint.name == FILLED else FEW
    drives = [start(rig, endpoint, tenant, at_ns, seconds) for tenant in (MANY, few)]
    try:
        many, few = (said_by(endpoint, drive) for drive in drives)
    finally:
        for drive in drives:
            drive.kill()
            drive.wait()
    others, stolen = stretch.disturbance()
    many_s, few_s = (said["ops"] / said["seconds"] for said in (many, few))
    # Redis was running, or ready to run
    busy = (many["cpu_ns"][0] + many["waited_ns"][0]) / 1e9 / many["seconds"]
    return {
        "few": few_s,
        "many": many_s,
        "share": few_s / max(1, many_s),
        "p99_us": few["p99_us"],
        "busy": busy,
        "others": others,
        "stolen": stolen,
    }


def measure(rig, rounds, seconds):
    """endpoint -> its samples. All endpoints alternate in each round."""
    with rig.redis.connect() as conn:
        conn.call("SET", "bits", b"\x55" * VALUE_BYTES)
    add(rig, EQUAL, "")
    if knows_weights(rig.redis.folder):
        add(rig, WEIGHTED, WEIGHTS)
        add(rig, FILLED, WEIGHTS)
    else:
        print("two tenants, 3:1: skipped, this weir does not know `weight` in a policy")

    def one_round(number):
        return {name: sample(rig, rig.endpoints[name], seconds) for name in turns(list(rig.endpoints), number)}

    return by_name(kept(rounds, rig.is_first, one_round, "two tenants"))


def show(found):
    heads = ("few/s", "many/s", "p99 us of the few", "Redis busy")
    print(f"\n{'two tenants':14}{''.join(f'{head:>20}' for head in heads)}  few / many")
    for name, samples in found.items():
        figures = [ratios.median(samples, what) for what in ("few", "many", "p99_us", "busy")]
        share = ratios.Ratio([one["share"] for one in samples])
        print(f"{name:14}{''.join(f'{ratios.short(value):>20}' for value in figures)}"
              f"  {ratios.short(share.median)} ({share.spread})")


def rows(found):
    """(title, goal, measurement, verdict)."""
    for name, wanted in WANTED.items():
        few = ENOUGH if name == FILLED else FEW
        where = f"two tenants, {MANY[1] // few[1]} x the connections: weights {wanted:.0f}:1"
        asked = f"throughput / the other's within 10 % of {wanted:g}"
        samples = found.get(name)
        if not samples:
            yield where, asked, "", "not measured"
            continue
        share = ratios.Ratio([one["share"] for one in samples])
        shown = f"{ratios.short(share.median)} ({share.spread})"
        if ratios.median(samples, "busy") < BUSY:
            yield where, asked, shown, "not known: Redis was not saturated"
        else:
            is_near = wanted / OFF_MAX <= share.median <= wanted * OFF_MAX
            yield where, asked, shown, "ok" if is_near else "missed"


def main():
    parser = options(__doc__, rounds=3, seconds=1.0)
    args = parser.parse_args()
    end_when_told()
    with Rig((), is_first=is_realtime(args.realtime)) as rig:
        found = measure(rig, args.rounds, args.seconds)
    show(found)
    for row in rows(found):
        print("  " + "; ".join(row))


if __name__ == "__main__":
    main()
