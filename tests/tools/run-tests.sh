#!/usr/bin/env bash
# Everything CI runs, each part also when an earlier one failed; the last line counts it all. The integration tests wait
# much of their time: all else, which is nothing but work for the processors, runs beside them in the time that they leave.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

# This driver chooses its own parallelism; variables given to make come along through the environment.
unset MAKEFLAGS MFLAGS MAKELEVEL
jobs=$(nproc 2>/dev/null || echo 2)
quiet_make() { make --no-print-directory -s -k -j"$jobs" "$@"; }
# Who wakes up goes before what is started so, at once.
modest=(nice -n 19)
! chrt --idle 0 true 2>/dev/null || modest=(chrt --idle 0)
modest_make() { "${modest[@]}" make --no-print-directory -s -k -j"$jobs" "$@"; }

folder=$(mktemp -d)
it= # its process group
finish() {
    [ -z "$it" ] || ! kill -INT -- -"$it" 2>/dev/null || wait "$it"
    rm -rf "$folder"
}
trap finish EXIT
trap 'exit 130' INT TERM

# A part that counts for itself writes "passed failed skipped" to $TALLY; whatever fails without a count is one failure.
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

one_check() { # a check is one test, and silent when it passes
    if modest_make "$1" >"$folder/log" 2>&1; then
        echo "  $1"
        echo "1 0 0" >>"$TALLY"
    else
        cat "$folder/log"
        echo "0 1 0" >>"$TALLY"
        return 1
    fi
}

package() { # what it runs has so many seconds to start
    modest_make build/weir >"$folder/log" 2>&1 || { cat "$folder/log"; return 1; }
    tests/tools/test-package.sh
}

# In a process group of its own, so that it can be told to end whole. What does not compile is told of by the part unit.
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
