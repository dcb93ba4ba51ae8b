#!/usr/bin/python3
"""Redis' time for a tenant with expensive commands beside a tenant that pipelines GETs.

Both tenants send batches and wait for the replies, without a pause, each from its own address. The
cost of an expensive command is its processor time in Redis when its tenant is alone, on the same
weir with `fair-share = off`. The tenant's part is that cost times its commands, divided by the
processor time of Redis. The rest is the other tenant's part. The table also shows the rate of each
tenant as a part of its rate alone. That part tells how load generators and weir share the
processors. Settings alternate in each round. The table shows medians and, in brackets, the least
and the greatest.

On a machine with other work, use --realtime.
"""

import json
import statistics
import time

from cells import Load
from machine import end_when_told, is_realtime
from rig import Endpoint, Failed, Rig, make_weir
from rounds import options, turns

CHEAP, DEAR = "127.0.1.2", "127.0.1.1"  # addresses of the tenants
CONNECTIONS = 4
GETS = 500  # in a batch, enough for half of the time; a batch of expensive commands is smaller
COMMANDS = 20
KEYS = 1000
SETTINGS = ("on", "off")
KINDS = {  # name -> a command
    "BITCOUNT 256 KiB": ("BITCOUNT", "large"),
    "KEYS of 1,000": ("KEYS", "key:*"),
    "BITCOUNT 16 KiB": ("BITCOUNT", "small"),
    "LRANGE of 50": ("LRANGE", "list", "0", "-1"),
    "EVAL of 1 ms": ("EVAL", "local n = 0 for i = 1, 330000 do n = n + i end return n", "0"),
}
START = 3.0  # seconds from the start of weir until weir knows the costs of commands


def fill(redis):
    with redis.connect() as conn:
        conn.call("SET", "large", b"\x55" * (256 << 10))
        conn.call("SET", "small", b"\x55" * (16 << 10))
        conn.call("SET", "value", "x")
        conn.call("RPUSH", "list", *map(str, range(50)))
        conn.call("MSET", *(word for number in range(KEYS) for word in (f"key:{number}", "x")))


def rates(rig, setting, loads, seconds):
    """For each (address, command, batch), sent to a new weir at the same time: commands a second,
    and ns of Redis a second."""
    server = rig.start(make_weir(rig.redis, "", fair_share=setting), rig.cores.proxy)
    try:
        return rates_at(rig, Endpoint(setting, server.address, server.child.pid), loads, seconds)
    finally:
        rig.stop(server)


def rates_at(rig, endpoint, loads, seconds):
    at_ns = time.monotonic_ns() + round(START * 1e9)
    drives = []
    for address, command, batch in loads:
        load = Load(command, CONNECTIONS, batch)
        more = ("-b", address, "-A", at_ns)
        drives.append(rig.start_drive(endpoint, load, seconds=seconds, warm_up=0, more=more))
    found = []
    try:
        for drive in drives:
            out, complaint = drive.communicate()
            if drive.returncode:
                raise Failed(complaint.strip())
            said = json.loads(out)
            found.append((said["ops"] / said["seconds"], said["cpu_ns"][0] / said["seconds"]))
    finally:
        for drive in drives:
            drive.kill()
            drive.wait()
    return found


def compare(rig, command, args):
    """setting -> for each round the expensive tenant's part, and both tenants' rates as parts of
    their rates alone."""
    cheap, dear = (CHEAP, ("GET", "value"), GETS), (DEAR, command, COMMANDS)
    found = {setting: ([], [], []) for setting in SETTINGS}
    for number in range(args.rounds):
        alone = [rates(rig, "off", [load], args.seconds)[0] for load in (cheap, dear)]
        for setting in turns(list(SETTINGS), number):
            both = rates(rig, setting, [cheap, dear], args.seconds)
            parts = [rate / most for (rate, _), (most, _) in zip(both, alone)]
            share = parts[1] * alone[1][1] / both[1][1]
            for values, value in zip(found[setting], (share, *parts)):
                values.append(value)
    return found


def show(name, found):
    for setting, parts in found.items():
        cells = (f"{statistics.median(one):.2f} ({min(one):.2f}-{max(one):.2f})" for one in parts)
        print(f"{name:20}{setting:6}" + "".join(f"{cell:>20}" for cell in cells), flush=True)


def main():
    args = options(__doc__, rounds=3, seconds=1.5).parse_args()
    end_when_told()
    with Rig((), is_first=is_realtime(args.realtime)) as rig:
        fill(rig.redis)
        print(f"{'beside':20}{'share':6}{'share of the dear':>20}{'GETs':>20}{'the dear':>20}")
        for name, command in KINDS.items():
            show(name, compare(rig, command, args))


if __name__ == "__main__":
    main()
