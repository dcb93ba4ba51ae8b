#!/usr/bin/python3
"""Two tenants of one Redis that has more to do than it can: 2,000 connections of one, 20 of the other.

Both count the bits of a large value, without a pause and each connection one at a time, so that Redis is what is
shared. They come from different addresses and so are two subjects. What counts is how many commands of each are
answered in the same stretch of time: through weir, which is to serve half and half, and with
`weight = 300` for the one with few connections three to one, also with 80 connections of its own, which are enough to
ask for three quarters; and on Redis alone, which goes by connections.
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
ENOUGH = (FEW[0], 80)  # 20 requests are 1 ms of work: less than three quarters of the window and of what travels
VALUE_BYTES = 256 << 10  # some tens of microseconds of Redis' time
WARM_UP = 2.0  # seconds until all connections are open and served by shares
BUSY = 0.9  # of its core: below it Redis is not what the tenants share

EQUAL, WEIGHTED, FILLED = "weir", "weir, 3:1", "weir, 3:1, 80"
WEIGHTS = f"[policy few]\nmatch = ip:{FEW[0]}\nweight = 300\n[policy many]\nmatch = ip:{MANY[0]}\nweight = 100\n"
WANTED = {EQUAL: 1.0, WEIGHTED: 3.0, FILLED: 3.0}  # commands of the few for each of the many
OFF_MAX = 1.1  # how far it may be off


def knows_weights(folder):
    """Does this weir know the key? Otherwise it says so."""
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
    """How many commands a second of the few and of the many are answered, in the same seconds."""
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
    busy = (many["cpu_ns"][0] + many["waited_ns"][0]) / 1e9 / many["seconds"]  # running, or ready to run
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
    """endpoint -> its samples; all endpoints take their turn in each round."""
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
    """(where, what is asked, what was measured, the verdict)."""
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
