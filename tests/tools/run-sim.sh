#!/usr/bin/env bash
# Simulates: run-sim.sh SEED STEPS repeats a run; run-sim.sh T first replays what was found before, then hunts with new
# seeds for T seconds, two fifths of them with sanitizers and one fifth refusing memory place by place. A failure is kept in
# build/sim/ and shrunk. run-sim.sh alone: what was found before, the same seeds each time, and memory refused place by
# place for one of them, with sanitizers; counts go to $TALLY when that is set.
set -euo pipefail
cd "$(dirname "$0")/../.."

keep=build/sim
mkdir -p "$keep"

# The same run twice, at other addresses, is the same byte for byte.
repeat() {
    first=$(build/release/sim --seed "$1" --steps "$2") && second=$(build/release/sim --seed "$1" --steps "$2") || exit 1
    [ "$first" = "$second" ] || { printf 'sim: it does not repeat:\n%s\n%s\n' "$first" "$second" >&2; exit 1; }
}

hunt() { # flavour seed seconds [--fail-sites]
    found=$keep/$1-$2.scenario
    if build/"$1"/sim --seed "$2" --steps 5000 --seconds "$3" --record "$found" "${@:4}" >"$keep/$1.log" 2>&1; then
        tail -n 1 "$keep/$1.log"
        return
    fi
    tail -n 60 "$keep/$1.log"
    build/"$1"/sim --shrink "$found" || true
    echo "sim: $found; replay it with: build/$1/sim --trace --replay $found" >&2
    exit 1
}

if [ $# -eq 2 ]; then
    exec build/asan/sim --seed "$1" --steps "$2"
fi
for scenario in tests/sim/seeds/*.scenario; do
    build/asan/sim --replay "$scenario" >"$keep/replay.log" 2>&1 || { tail -n 60 "$keep/replay.log"; exit 1; }
done
if [ $# -eq 0 ]; then
    # Each process goes through 25 of the 100 seeds: to start one costs a fifth of a run.
    seq 1 25 100 | xargs -P "$(nproc)" -I{} bash -c 'build/asan/sim --seed "$1" --seeds 25 --steps 2000 >"$2/seed-$1.log" 2>&1 ||
        { tail -n 60 "$2/seed-$1.log"; exit 1; }' _ {} "$keep"
    build/asan/sim --seed 11 --steps 1000 --fail-sites >"$keep/places.log" 2>&1 || { tail -n 60 "$keep/places.log"; exit 1; }
    rm -f "$keep"/seed-*.log
    [ -z "${TALLY:-}" ] || echo "$((100 + $(find tests/sim/seeds -name '*.scenario' | wc -l))) 0 0" >>"$TALLY"
    exit 0
fi
repeat 1 20000
repeat 2 20000
seed=$(date +%s)000
hunt asan "$seed" $(($1 * 2 / 5))
hunt release $((seed + 500)) $(($1 * 2 / 5))
hunt release $((seed + 700)) $(($1 / 5)) --fail-sites
