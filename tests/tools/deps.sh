#!/usr/bin/env bash
# Installs the missing distribution packages: deps.sh build|run|test|moves. Prints nothing if all
# are there. DEPS=no skips the installation. Exit 2: a package is missing and cannot be installed
# from here. The packages of `moves` are optional: tests without their packages are skipped.
set -euo pipefail

[ "${DEPS:-yes}" != no ] || exit 0
want=${1:-build}
python=/usr/bin/python3

has_command() { command -v "$1" >/dev/null; }
has_server() { PATH=$PATH:/usr/sbin command -v "$1" >/dev/null; }
has_header() { echo "#include <$1>" | ${CC:-cc} -E -x c - -o /dev/null 2>/dev/null; }
has_module() { $python -c "import importlib.util as u, sys; sys.exit(not u.find_spec('$1'))" 2>/dev/null; }
has_fuzzer() { compgen -G "$(clang -print-resource-dir 2>/dev/null)/lib/linux/libclang_rt.fuzzer-*.a" >/dev/null; }

has_extension() { php -r "exit(extension_loaded('$1') ? 0 : 1);" 2>/dev/null; }
has_gem() { ruby -e "require '$1'" 2>/dev/null; }

missing=()
need() { # package probe [argument]
    "${@:2}" || missing+=("$1")
}

need gcc has_command cc
need make has_command make
need pkg-config has_command pkg-config
need libc6-dev has_header stdio.h
need libuv1-dev has_header uv.h
need libhiredis-dev has_header hiredis/read.h
need libinih-dev has_header ini.h
need libmicrohttpd-dev has_header microhttpd.h
need libssl-dev has_header openssl/ssl.h

if [ "$want" = run ] || [ "$want" = test ]; then
    need redis-server has_command redis-server
    need redis-tools has_command redis-cli
fi
if [ "$want" = test ]; then
    need clang has_command clang
    need clang-tidy has_command clang-tidy
    need libclang-rt-dev has_fuzzer
    need libcmocka-dev has_header cmocka.h
    need liblua5.1-0-dev has_header lua5.1/lua.h
    need python3 has_command $python
    need tzdata test -e /usr/share/zoneinfo/Europe/Berlin
    need python3-pytest has_module pytest
    need python3-pytest-xdist has_module xdist
    need python3-redis has_module redis
    need haproxy has_server haproxy
    need dpkg-dev has_command dpkg-shlibdeps
    need iproute2 has_command ip
    need mandoc has_command mandoc
    need systemd has_command systemd-analyze
    need nodejs has_command node
    need npm has_command npm
    need openssl has_command openssl
    need chromium has_command chromium
    need chromium-driver has_command chromedriver
    need python3-selenium has_module selenium
    need prometheus has_command promtool
fi

if [ "$want" = moves ]; then # the libraries of tests/it/test_restart_libraries.py
    need golang-go has_command go
    need golang-github-gomodule-redigo-dev test -e /usr/share/gocode/src/github.com/gomodule/redigo
    need golang-github-mna-redisc-dev test -e /usr/share/gocode/src/github.com/mna/redisc
    need golang-gopkg-redis.v5-dev test -e /usr/share/gocode/src/gopkg.in/redis.v5
    need php-cli has_command php
    need php-redis has_extension redis
    need ruby-redis has_gem redis
    need ruby-sidekiq has_gem sidekiq
    need python3-celery has_module celery
    need python3-rq has_module rq
fi

[ ${#missing[@]} -gt 0 ] || exit 0

install=(apt-get install -y --no-install-recommends "${missing[@]}")
give_up() {
    echo "weir needs packages that $1. On Debian or Ubuntu:" >&2
    echo "    sudo apt-get update && sudo ${install[*]}" >&2
    echo "Elsewhere install their equivalents. DEPS=no skips this check." >&2
    [ "$want" = moves ] || exit 2
    exit 0
}

has_command apt-get || give_up "are not installed, and there is no apt-get here"
as_root=(env DEBIAN_FRONTEND=noninteractive)
if [ "$(id -u)" -ne 0 ]; then
    has_command sudo || give_up "only root can install, and there is no sudo here"
    as_root=(sudo "${as_root[@]}")
fi

# Installing a server would start it as a system service. Exit code 101 of policy-rc.d prevents
# that.
policy=/usr/sbin/policy-rc.d
forbid_services() {
    [ ! -e $policy ] || return 0
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" sh -c "cat >$policy && chmod 755 $policy"
    trap '"${as_root[@]}" rm -f $policy' EXIT
}

echo "installing: ${missing[*]}"
log=$(mktemp)
for service in redis-server haproxy prometheus; do
    [[ " ${missing[*]} " == *" $service "* ]] || continue
    forbid_services || give_up "could not be installed"
    echo "($service as a program only: its system service is not started; systemctl disable $service keeps it so)"
done
if ! "${as_root[@]}" "${install[@]}" >"$log" 2>&1; then
    "${as_root[@]}" apt-get update >"$log" 2>&1 || true
    "${as_root[@]}" "${install[@]}" >"$log" 2>&1 || { tail -n 15 "$log" >&2; give_up "could not be installed"; }
fi
rm -f "$log"
