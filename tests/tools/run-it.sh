#!/usr/bin/env bash
# Runs the integration tests against $WEIR (build/asan/weir). K: an expression for pytest -k. JOBS: parallel workers; most
# tests wait most of their time, so there are two for each processor. HUNT=n: n times as many rounds of random things.
# SLOW=n: the n tests that cost most are told of (kit/costs.py). LONG=1: the tests that have a mode, in the two modes that
# are left out otherwise (kit/harness.py). MOVES=1, FAILOVER=1, CLUSTER=1: the tests marked `moves`, `failover` or `cluster`, and
# no others; LONG=1 has longer ones of these. AGAIN=1: tests that fail run once more (pytest-again). Counts go to $TALLY when
# that is set.
set -euo pipefail
cd "$(dirname "$0")/../.."

export WEIR=${WEIR:-$PWD/build/asan/weir}
case $WEIR in /*) ;; *) WEIR=$PWD/$WEIR ;; esac
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

# What Python compiles is kept, and compiled once: each worker needs all of it at the same moment.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$PWD/build/pycache
if [ -z "${K:-}" ]; then
    for some in 'a-l' 'm-z'; do
        /usr/bin/python3 -m pytest -p no:cacheprovider -q --collect-only tests/it/test_[$some]*.py >/dev/null 2>&1 &
    done
    wait
fi

[ -z "${SLOW:-}" ] || export SLOW PYTHONPATH=$PWD/tests/it${PYTHONPATH:+:$PYTHONPATH} PYTEST_ADDOPTS="${PYTEST_ADDOPTS:-} -p kit.costs"
status=0
tests/tools/pytest-again build/it.xml -n "${JOBS:-$((2 * $(nproc)))}" -q tests/it ${K:+-k "$K"} || status=$?
[ "$status" -ne 5 ] || echo "no integration test matched" >&2
exit "$status"
