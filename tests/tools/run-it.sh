#!/usr/bin/env bash
# Runs the integration tests against $WEIR (build/asan/weir). K: an expression for pytest -k. JOBS: parallel workers; most
# tests wait most of their time, so there are two for each processor. HUNT=n: n times as many rounds of random things.
# SLOW=n: the n tests that cost most are told of (kit/costs.py). LONG=1: the tests that have a mode, in the two modes that
# are left out otherwise (kit/harness.py). MOVES=1, FAILOVER=1: the tests marked `moves` or `failover`, and no others; LONG=1
# has longer ones of these. Counts go to $TALLY when that is set.
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
report=build/it.xml
rm -f "$report"
status=0
/usr/bin/python3 -m pytest -p no:cacheprovider -n "${JOBS:-$((2 * $(nproc)))}" -q tests/it --junitxml="$report" ${K:+-k "$K"} || status=$?
[ "$status" -ne 5 ] || echo "no integration test matched" >&2

if [ -n "${TALLY:-}" ]; then
    /usr/bin/python3 - "$report" >>"$TALLY" <<'END' || echo "0 1 0" >>"$TALLY"
import sys, xml.etree.ElementTree as tree
suites = list(tree.parse(sys.argv[1]).iter("testsuite"))
total, bad, skipped = (sum(int(s.get(k, 0)) for s in suites for k in keys)
                       for keys in (["tests"], ["failures", "errors"], ["skipped"]))
print(total - bad - skipped, bad, skipped)
for case in tree.parse(sys.argv[1]).iter("testcase"):
    for skip in case.iter("skipped"):
        print("skipped:", case.get("classname"), case.get("name"), "-", skip.get("message"))
END
fi
exit "$status"
