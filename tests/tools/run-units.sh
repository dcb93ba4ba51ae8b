#!/usr/bin/env bash
# Runs cmocka programs, one line each; a failing one shows all it said. Counts go to $TALLY when that is set.
set -euo pipefail

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
export CMOCKA_MESSAGE_OUTPUT=STDOUT

count() { # how many tests cmocka says have PASSED, FAILED or SKIPPED, over all groups of one program
    sed -En "s/^\[  $1 *\] ([0-9]+) test.*/\1/p" "$2" | awk '{ n += $1 } END { print n + 0 }'
}

passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for program in "$@"; do
    start=$SECONDS
    status=0
    # No unit test waits for anything. ThreadSanitizer does not know every address layout; without randomization it always does.
    timeout -k 5 120 setarch "$(uname -m)" -R "$program" >"$log" 2>&1 || status=$?
    p=$(count PASSED "$log") f=$(count FAILED "$log") s=$(count SKIPPED "$log")
    # A program that died says nothing of its tests, or nothing of the one it died in.
    if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    if [ "$((p + f + s))" -eq 0 ]; then f=1; fi
    if [ "$f" -ne 0 ]; then cat "$log"; fi
    printf '  %-36s %4d passed' "$program" "$p"
    [ "$f" -eq 0 ] || printf ', %d FAILED (exit %d)' "$f" "$status"
    [ "$s" -eq 0 ] || printf ', %d skipped' "$s"
    [ $((SECONDS - start)) -lt 5 ] || printf ' (%d s)' $((SECONDS - start))
    printf '\n'
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done

[ -z "${TALLY:-}" ] || echo "$passed $failed $skipped" >>"$TALLY"
[ "$failed" -eq 0 ]
