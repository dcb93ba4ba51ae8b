#!/usr/bin/env bash
# Runs all of CI. A part runs also if an earlier part failed. The last line adds up the counts. The
# integration tests mostly wait. All other parts, which need processors only, run beside them at a
# low priority.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

# This script sets its own parallelism. Variables given to make arrive in the environment.
unset MAKEFLAGS MFLAGS MAKELEVEL
jobs=$(nproc 2>/dev/null || echo 2)
quiet_make() { make --no-print-directory -s -k -j"$jobs" "$@"; }
# Processes started by modest_make yield at once to any other process that wakes up.
modest=(nice -n 19)
! chrt --idle 0 true 2>/dev/null || modest=(chrt --idle 0)
modest_make() { "${modest[@]}" make --no-print-directory -s -k -j"$jobs" "$@"; }

folder=$(mktemp -d)
it= # process group of the integration tests
finish() {
    [ -z "$it" ] || ! kill -INT -- -"$it" 2>/dev/null || wait "$it"
    rm -rf "$folder"
}
trap finish EXIT
trap 'exit 130' INT TERM

# A part that counts its tests writes "passed failed skipped" to $TALLY. A failure without counts is
# one failure.
part() { # name command...
    local name=$1 own status=0
    own=$(mktemp "$folder/tally-XXXXXX")
    echo "== $name"
    TALLY=$own "${@:2}" || status=$?
    if [ "$status" -ne 0 ]; then
        echo "== $name FAILED"
        [ -s "$own" ] || echo "0 1 0" >"$own"
    fi
}

one_check() { # a check counts as one test, and prints nothing if it passes
    if modest_make "$1" >"$folder/log" 2>&1; then
        echo "  $1"
        echo "1 0 0" >>"$TALLY"
    else
        cat "$folder/log"
        echo "0 1 0" >>"$TALLY"
        return 1
    fi
}

package() { # the test is not modest: the servers it starts must be ready within 20 s
    modest_make build/weir >"$folder/log" 2>&1 || { cat "$folder/log"; return 1; }
    tests/tools/test-package.sh
}

# The integration tests have their own process group, so that they can be ended as a whole. The part
# "unit" reports compile errors.
quiet_make build/asan/weir build/asan/sim_redis >/dev/null 2>&1
set -m
part "it (ASan, UBSan), beside all the above" quiet_make it >"$folder/it" 2>&1 &
it=$!
set +m

part "sim (ASan, UBSan)" modest_make sim-seeds
part "package" package
part "tsan" modest_make threads
for check in $(make -s list-checks); do
    part "$check" one_check "$check"
done
part "unit (ASan, UBSan)" modest_make unit
tail -n +1 -f --pid="$it" "$folder/it" &
wait $!
wait "$it"

cat "$folder"/tally-* >"$folder/tally"
grep '^skipped:' "$folder/tally"
grep '^failed first' "$folder/tally"
echo "ran: check, unit, sim and it under ASan and UBSan, thread tests under TSan, the package ($SECONDS s)"
awk '/^[0-9]/ { p += $1; f += $2; s += $3 }
     END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 || p == 0 }' "$folder/tally"
