#!/usr/bin/env bash
# Everything CI runs, each part also when an earlier one failed; the last line counts it all.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

# This driver chooses its own parallelism; variables given to make come along through the environment.
unset MAKEFLAGS MFLAGS MAKELEVEL
jobs=$(nproc 2>/dev/null || echo 2)
quiet_make() { make --no-print-directory -s -k -j"$jobs" "$@"; }

TALLY=$(mktemp)
log=$(mktemp)
trap 'rm -f "$TALLY" "$log"' EXIT

# A part that counts for itself writes "passed failed skipped" to $TALLY; whatever fails without a count is one failure.
part() { # name command...
    local name=$1 before after status=0
    echo "== $name"
    before=$(wc -l <"$TALLY")
    TALLY=$TALLY "${@:2}" || status=$?
    after=$(wc -l <"$TALLY")
    if [ "$status" -ne 0 ]; then
        echo "== $name FAILED"
        [ "$after" -gt "$before" ] || echo "0 1 0" >>"$TALLY"
    fi
}

one_check() { # a check is one test, and silent when it passes
    if quiet_make "$1" >"$log" 2>&1; then
        echo "  $1"
        echo "1 0 0" >>"$TALLY"
    else
        cat "$log"
        echo "0 1 0" >>"$TALLY"
        return 1
    fi
}

for check in $(make -s list-checks); do
    part "$check" one_check "$check"
done
part "unit (ASan, UBSan)" quiet_make unit
part "tsan" quiet_make threads
part "sim (ASan, UBSan)" quiet_make sim-seeds
part "it (ASan, UBSan)" quiet_make it
part "package" tests/tools/test-package.sh

grep '^skipped:' "$TALLY"
echo "ran: check, unit, sim and it under ASan and UBSan, thread tests under TSan, the package ($SECONDS s)"
awk '/^[0-9]/ { p += $1; f += $2; s += $3 }
     END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 || p == 0 }' "$TALLY"
