#!/usr/bin/env bash
# Runs cmocka programs, one for each processor at a time, with one line each. A failing program
# shows its whole output. Counts are appended to $TALLY if set. HUNT=n: n times as many rounds of
# random tests.
set -euo pipefail

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
export CMOCKA_MESSAGE_OUTPUT=STDOUT
export COUNTS LIMIT_S=$((300 * ${HUNT:-1}))

# prints the number of tests that PASSED, FAILED or were SKIPPED, in all groups of a program
count() {
    sed -En "s/^\[  $1 *\] ([0-9]+) test.*/\1/p" "$2" | awk '{ n += $1 } END { print n + 0 }'
}

run() { # program
    local program=$1 start=$SECONDS status=0 log p f s line
    log=$(mktemp)
    # The time-out is long although no unit test waits: make test leaves unit tests little processor
    # time. ThreadSanitizer needs a fixed address layout, so randomization is off.
    timeout -k 5 "$LIMIT_S" setarch "$(uname -m)" -R "$program" >"$log" 2>&1 || status=$?
    p=$(count PASSED "$log") f=$(count FAILED "$log") s=$(count SKIPPED "$log")
    # A program that crashes reports no tests, or not the test that crashed.
    if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    if [ "$((p + f + s))" -eq 0 ]; then f=1; fi
    line=$(printf '  %-36s %4d passed' "$program" "$p")
    [ "$f" -eq 0 ] || line+=$(printf ', %d FAILED (exit %d)' "$f" "$status")
    [ "$s" -eq 0 ] || line+=$(printf ', %d skipped' "$s")
    [ $((SECONDS - start)) -lt 5 ] || line+=" ($((SECONDS - start)) s)"
    { [ "$f" -eq 0 ] || cat "$log"; echo "$line"; } | flock "$COUNTS" cat
    echo "$p $f $s" >>"$COUNTS"
    rm -f "$log"
}
export -f count run

COUNTS=$(mktemp)
trap 'rm -f "$COUNTS"' EXIT
printf '%s\0' "$@" | xargs -0 -P "$(nproc)" -I{} bash -euo pipefail -c 'run {}'

read -r passed failed skipped < <(awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$COUNTS")
[ "$(wc -l <"$COUNTS")" -eq $# ] || failed=$((failed + 1))
[ -z "${TALLY:-}" ] || echo "$passed $failed $skipped" >>"$TALLY"
[ "$failed" -eq 0 ]
