#!/usr/bin/env bash
# Runs the simulator.
#
# run-sim.sh SEED STEPS: repeats a run.
# run-sim.sh T: replays the kept failures, then hunts with new seeds for T seconds: two fifths with
#     sanitizers, one fifth with refused memory, allocation by allocation. A failure is shrunk and
#     kept in build/sim/. The last line counts seeds, commands, and commands a second of all hunts.
# run-sim.sh: replays the kept failures and a fixed set of seeds with sanitizers, with and without a
#     cluster. One seed runs with refused memory, allocation by allocation. Checks that runs repeat.
#     TALLY: a file to which counts are appended.
set -euo pipefail
cd "$(dirname "$0")/../.."

keep=build/sim
mkdir -p "$keep"

# Checks that each run is equal byte for byte: among other runs, alone, as a scenario, and in a
# second process with other addresses.
repeats() { # flavour seed seeds steps [--refuses]
    for log in once again; do
        build/"$1"/sim --seed "$2" --seeds "$3" --steps "$4" "${@:5}" --repeats >"$keep/$log.log" 2>&1 ||
            { tail -n 20 "$keep/$log.log"; exit 1; }
    done
    cmp -s "$keep/once.log" "$keep/again.log" ||
        { echo "sim: a second process does not repeat the first:"; diff "$keep/once.log" "$keep/again.log"; exit 1; }
}

hunt() { # flavour seed seconds [--fail-sites]
    found=$keep/$1-$2.scenario
    if build/"$1"/sim --seed "$2" --steps 5000 --seconds "$3" --record "$found" "${@:4}" >"$keep/$1.log" 2>&1; then
        tail -n 2 "$keep/$1.log"
        tail -n 1 "$keep/$1.log" >>"$keep/sums"
        return
    fi
    tail -n 60 "$keep/$1.log"
    build/"$1"/sim --shrink "$found" || true
    echo "sim: $found; replay it with: build/$1/sim --trace --replay $found" >&2
    exit 1
}

# Adds up lines "sim: N seeds, N commands, N commands a second".
add_up() {
    awk '{ seeds += $2; commands += $4; seconds += $4 > 0 ? $4 / $6 : 0 }
         END { printf "sim: %d seeds, %d commands, %d commands a second\n", seeds, commands, commands / seconds }' "$1"
}

if [ $# -eq 2 ]; then
    exec build/asan/sim --seed "$1" --steps "$2"
fi
for scenario in tests/sim/seeds/*.scenario; do
    build/asan/sim --replay "$scenario" >"$keep/replay.log" 2>&1 || { tail -n 60 "$keep/replay.log"; exit 1; }
done
if [ $# -eq 0 ]; then
    # Each process runs 25 of the 100 seeds, since a start costs a fifth of a run.
    seq 1 25 100 | xargs -P "$(nproc)" -I{} bash -c 'build/asan/sim --seed "$1" --seeds 25 --steps 2000 >"$2/seed-$1.log" 2>&1 ||
        { tail -n 60 "$2/seed-$1.log"; exit 1; }' _ {} "$keep"
    seq 1 20 40 | xargs -P "$(nproc)" -I{} bash -c 'build/asan/sim --cluster --seed "$1" --seeds 20 --steps 1000 >"$2/seed-c$1.log" 2>&1 ||
        { tail -n 60 "$2/seed-c$1.log"; exit 1; }' _ {} "$keep"
    build/asan/sim --seed 11 --steps 1000 --fail-sites >"$keep/places.log" 2>&1 || { tail -n 60 "$keep/places.log"; exit 1; }
    repeats asan 2001 5 500 --refuses
    rm -f "$keep"/seed-*.log
    [ -z "${TALLY:-}" ] || echo "$((141 + $(find tests/sim/seeds -name '*.scenario' | wc -l))) 0 0" >>"$TALLY"
    exit 0
fi
repeats release 1 10 5000
repeats release 2001 20 2000 --refuses
rm -f "$keep/sums"
seed=$(date +%s)000
hunt asan "$seed" $(($1 * 2 / 5))
hunt release $((seed + 500)) $(($1 * 2 / 5))
hunt release $((seed + 700)) $(($1 / 5)) --fail-sites
add_up "$keep/sums"
