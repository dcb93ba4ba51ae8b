#!/usr/bin/env bash
# Installs the missing programs for `make bench`: those of `make run`, the peers, and the tools that
# count. DEPS=no skips the installation. Exit 2: a program is missing and cannot be installed from
# here.
set -euo pipefail

[ "${DEPS:-yes}" != no ] || exit 0
cd "$(dirname "$0")/.."
tests/tools/deps.sh run

missing=()
for program in nutcracker haproxy valgrind strace openssl; do # each is in the package of its name
    PATH=$PATH:/usr/sbin command -v $program >/dev/null || missing+=("$program")
done
[ ${#missing[@]} -gt 0 ] || exit 0

install=(apt-get install -y --no-install-recommends "${missing[@]}")
as_root=(env DEBIAN_FRONTEND=noninteractive)
[ "$(id -u)" -eq 0 ] || as_root=(sudo "${as_root[@]}")

# Installing a server would start it as a system service. Exit code 101 of policy-rc.d prevents
# that.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" sh -c "cat >$policy && chmod 755 $policy"
    trap '"${as_root[@]}" rm -f $policy' EXIT
fi

echo "installing: ${missing[*]} (as programs only: their system services are not started)"
log=$(mktemp)
if ! { "${as_root[@]}" "${install[@]}" || { "${as_root[@]}" apt-get update && "${as_root[@]}" "${install[@]}"; }; } >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    echo "make bench needs these packages: sudo apt-get update && sudo ${install[*]}" >&2
    exit 2
fi
rm -f "$log"
