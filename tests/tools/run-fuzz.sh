#!/usr/bin/env bash
# run-fuzz.sh SECONDS PROGRAM...: runs each fuzzer for SECONDS, from its seeds in
# tests/fuzz/seeds/NAME. tests/fuzz/seeds/NAME.options has further options of libFuzzer, one a line.
# The corpus is kept in build/fuzz/corpus/NAME. An input that causes a failure is kept in
# build/fuzz/ with the fuzzer's name.
set -euo pipefail
cd "$(dirname "$0")/../.."

export ASAN_OPTIONS=${ASAN_OPTIONS:-quarantine_size_mb=32}
seconds=$1
shift
for program in "$@"; do
    name=$(basename "$program")
    corpus=build/fuzz/corpus/$name
    seeds=tests/fuzz/seeds/$name
    dictionary=$seeds.dict
    [ -e "$dictionary" ] || dictionary=tests/fuzz/seeds/resp.dict
    mkdir -p "$corpus"
    echo "$name: $seconds s"
    arguments=("$corpus")
    [ ! -d "$seeds" ] || arguments+=("$seeds")
    [ ! -e "$seeds.options" ] || mapfile -t -O "${#arguments[@]}" arguments <"$seeds.options"
    [ ! -e "$dictionary" ] || arguments+=("-dict=$dictionary")
    "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="build/fuzz/$name-" \
        -print_final_stats=1 -verbosity=1 "${arguments[@]}" >"build/fuzz/$name.log" 2>&1 ||
        { tail -n 40 "build/fuzz/$name.log"; exit 1; }
    grep -E 'number_of_executed_units|DONE' "build/fuzz/$name.log" | tail -n 2
done
