#!/usr/bin/python3
"""The cost of fair share when many tenants want all of Redis: `fair-share = on` against `off`.

Several tenants, each with its own address and so its own subject, send batches and wait for the
replies, without a pause. With --copies several weirs run at the same time, each with its own Redis
and driver. With --copies all weirs wait for processors, and too short a queue at Redis would run
dry. "one tenant" is a run with two connections of one tenant. The two settings alternate in each
round. Ratios are of one round. The table shows their median and, in brackets, the least and the
greatest. "redis" and "weir" are processor time for each command, on / off.

On a machine with other work, throughput depends on that work: look at the processor time, or use
--realtime.
"""

import contextlib
import json
import statistics
import time

from cells import Load
from kit.harness import Redis
from machine import end_when_told, is_realtime
from rig import Endpoint, Rig, make_weir
from rounds import options, turns

FIRST_ADDRESS = "127.0.2.1"
BATCH = 500
START = 0.5  # seconds until all drivers send
SETTINGS = ("on", "off")


def copies(rig, n):
    """setting -> n weirs. The first weir of each setting uses the rig's Redis, each other weir a
    Redis of its own."""
    found = {setting: [] for setting in SETTINGS}
    for number in range(n):
        redis = rig.redis if number == 0 else rig.start(Redis(), rig.cores.all)
        for setting in SETTINGS:
            server = rig.start(make_weir(redis, "", fair_share=setting), rig.cores.all)
            found[setting].append((redis, Endpoint(setting, server.address, server.child.pid)))
    return found


def measure(rig, servers, tenants, connections, seconds):
    """Commands a second, and nanoseconds of Redis and of weir for each command, of all copies
    together."""
    at_ns = time.monotonic_ns() + round(START * 1e9)
    load = Load(("ECHO", "hello"), connections, BATCH)
    drives = []
    with contextlib.ExitStack() as stack:
        for redis, endpoint in servers:
            more = ("-b", f"{FIRST_ADDRESS}/{tenants}", "-A", at_ns, "-p", redis.child.pid, "-p", endpoint.pid)
            drives.append(rig.start_drive(Endpoint(endpoint.name, endpoint.address, None), load, seconds=seconds, more=more))
            stack.callback(drives[-1].wait)
            stack.callback(drives[-1].kill)
        said = [json.loads(drive.communicate()[0]) for drive in drives]
    ops = sum(one["ops"] for one in said)
    redis_ns, weir_ns = (sum(one["cpu_ns"][i] for one in said) / ops for i in (0, 1))
    return {"ops_s": sum(one["ops"] / one["seconds"] for one in said), "redis": redis_ns, "weir": weir_ns}


def compare(rig, servers, tenants, connections, args):
    """figure -> on / off, for each round."""
    found = {"ops_s": [], "redis": [], "weir": []}
    for number in range(args.rounds):
        one = {
            setting: measure(rig, servers[setting], tenants, connections, args.seconds)
            for setting in turns(list(SETTINGS), number)
        }
        for what, ratios in found.items():
            ratios.append(one["on"][what] / one["off"][what])
    return found


def show(name, found):
    cells = (f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})" for ratios in found.values())
    print(f"{name:24}" + "".join(f"{cell:>20}" for cell in cells), flush=True)


def main():
    parser = options(__doc__, rounds=5, seconds=1.0)
    parser.add_argument("--tenants", type=int, default=10)
    parser.add_argument("--copies", type=int, default=4)
    args = parser.parse_args()
    end_when_told()
    with Rig((), is_first=is_realtime(args.realtime)) as rig:
        servers = copies(rig, args.copies)
        alone = {setting: servers[setting][:1] for setting in SETTINGS}
        print(f"{'on / off':24}{'throughput':>20}{'redis':>20}{'weir':>20}")
        show(f"{args.tenants} tenants", compare(rig, alone, args.tenants, args.tenants, args))
        show("one tenant", compare(rig, alone, 1, 2, args))
        if args.copies > 1:
            show(f"{args.tenants} tenants, {args.copies} copies", compare(rig, servers, args.tenants, args.tenants, args))


if __name__ == "__main__":
    main()
