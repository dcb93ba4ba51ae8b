#!/usr/bin/env bash
# Runs the integration tests against $WEIR (build/asan/weir).
#
# K: an expression for pytest -k
# JOBS: parallel workers; the default is three for each processor, since tests mostly
#     wait, and two where a test has many servers
# HUNT=n: n times as many rounds of random tests
# SLOW=n: report the n most expensive tests (kit/costs.py)
# LONG=1: run tests with a mode in the two other modes (kit/harness.py)
# MOVES=1, FAILOVER=1, CLUSTER=1: only tests marked `moves`, `failover` or `cluster`;
#     with LONG=1 longer ones
# AGAIN=1: failed tests run once more (pytest-again)
# TALLY: a file to which counts are appended
set -euo pipefail
cd "$(dirname "$0")/../.."

export WEIR=${WEIR:-$PWD/build/asan/weir}
case $WEIR in /*) ;; *) WEIR=$PWD/$WEIR ;; esac
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:max_uar_stack_size_log=17}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

# Compiles the Python files once, and keeps the result: all workers need them at the same moment.
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
each=3
[ -z "${MOVES:-}${FAILOVER:-}${CLUSTER:-}" ] || each=2
tests/tools/pytest-again build/it.xml -n "${JOBS:-$((each * $(nproc)))}" -q tests/it ${K:+-k "$K"} || status=$?
[ "$status" -ne 5 ] || echo "no integration test matched" >&2
exit "$status"
