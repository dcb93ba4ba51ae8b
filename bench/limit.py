#!/usr/bin/python3
"""LIMIT FUNNEL through weir, against the plain GCRA script by EVALSHA directly on the same Redis.

Decisions per second and Redis' CPU per decision, as ratios within one round. Both sides use the
same keys and rates, and continue after errors. "random" is 100,000 keys with room, "denied" one key
without room until tomorrow. bench/gcra.lua is the script. WEIR_BEFORE=path adds a second build of
weir.
"""

import os
from pathlib import Path

import ratios
from kit import harness
from machine import end_when_told, is_realtime
from rig import REPO, Conn, Endpoint, Failed, Load, Rig, make_weir
from rounds import by_name, kept, options, sliced

SCRIPT = (REPO / "bench/gcra.lua").read_text()
KEYS = 100_000
CLIENTS = 50
BEFORE = os.environ.get("WEIR_BEFORE")


class Case:
    """One decision, as requests to weir and to Redis."""

    def __init__(self, name, pipeline, key, keys, burst, period, goals):
        self.name, self.goals = name, goals  # goals: (figure, sign, bound)
        limit = ("LIMIT", "FUNNEL"), (f"{burst}/{period}s", "BURST", str(burst))
        script = ("EVALSHA", "{sha}", "1"), (str(burst), str(burst), str(period), "1")
        self.words = {
            name: (*head, f"{name[0]}:{key}", *tail)
            for name, (head, tail) in {"weir": limit, "before": limit, "direct": script}.items()
        }
        self.shape = {"clients": CLIENTS, "pipeline": pipeline, "keys": keys}

    def load(self, endpoint, sha):
        return Load(tuple(sha if word == "{sha}" else word for word in self.words[endpoint]), **self.shape)


CASES = (
    Case("random P1", 1, "{k}", KEYS, 1000, 1, [("ops_s", ">=", 1.1)]),
    Case("random P16", 16, "{k}", KEYS, 1000, 1, [("ops_s", ">=", 2.5), ("redis_us", "<=", 0.4)]),
    Case("denied P16", 16, "hot", 1, 1, 86400, [("ops_s", ">=", 5.0)]),
)


def agree(rig, sha):
    """Checks that weir and the script decide alike: for a key with room, and for a key without room
    after the first call."""
    for case in CASES:
        for name in rig.endpoints:
            words = [word.replace("{k}", "agree") for word in case.load(name, sha).words]
            with Conn(rig.endpoints[name].address) as conn:
                conn.call(*words)
                reply = conn.call(*words)
            limited = 1 if case.shape["keys"] == 1 else 0
            if not isinstance(reply, list) or reply[0] != limited:
                raise Failed(f"{case.name}, {name}: {' '.join(words)} is answered {reply!r}")


def add_weir(rig, name):
    server = rig.start(make_weir(rig.redis, ""), rig.cores.proxy)
    rig.endpoints[name] = Endpoint(name, server.address, server.child.pid)


def measure(rig, rounds, seconds, slices=3, is_rehearsal=False, cases=CASES):
    """case -> endpoint -> samples. A rehearsal sends Redis' requests to weir too."""
    with rig.redis.connect() as conn:
        sha = conn.call("SCRIPT", "LOAD", SCRIPT).decode()
    if not is_rehearsal:
        agree(rig, sha)
    found = {}
    for case in cases:
        loads = {name: case.load("direct" if is_rehearsal else name, sha) for name in rig.endpoints}
        samples = kept(
            rounds, rig.is_first, lambda number: sliced(rig, loads, number, seconds, slices, give_up), case.name
        )
        found[case.name] = by_name(samples)
        ratios.show_cell(f"LIMIT {case.name}", found[case.name])
    return found


def give_up(_, failed):
    raise failed


def verdicts(found):
    for case in CASES:
        if case.name not in found:
            continue
        for what, sign, bound in case.goals:
            value = ratios.ratio(found[case.name], what, "weir", "direct")
            is_good = value.median >= bound if sign == ">=" else value.median <= bound
            verdict = ("reached" if is_good else "NOT reached") if value.agrees else "not known"
            yield case.name, f"{ratios.FIGURES[what][0]} / direct {sign} {bound:g}", str(value), verdict
        if BEFORE:
            value = ratios.ratio(found[case.name], "ops_s", "weir", "before")
            verdict = "not known" if not value.agrees else "reached" if value.median >= 0.97 else "NOT reached"
            yield case.name, "throughput / before >= 0.97", str(value), verdict


def main():
    parser = options(__doc__, rounds=5, seconds=1.5)
    parser.add_argument("--rehearse", action="store_true", help="EVALSHA through weir too: the bench itself, not LIMIT")
    args = parser.parse_args()
    end_when_told()
    with Rig((), is_first=is_realtime(args.realtime)) as rig:
        add_weir(rig, "weir")
        if BEFORE:
            harness.WEIR = Path(BEFORE).resolve()
            add_weir(rig, "before")
        try:
            found = measure(rig, args.rounds, args.seconds, is_rehearsal=args.rehearse)
        except Failed as failed:
            raise SystemExit(f"{failed}\nDoes this weir know LIMIT FUNNEL?")
    print()
    for row in verdicts(found):
        print("  {:12} {:32} {:22} {}".format(*row))


if __name__ == "__main__":
    main()
