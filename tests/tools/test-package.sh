#!/usr/bin/env bash
# Builds the Debian package, checks its units, and installs the package into a root of its own. Runs
# the installed weir with its packaged configuration and user. A real redis-server is behind it.
# Everything runs in private namespaces. The root is this machine's, with an overlay (overlayfs)
# that is discarded at the end. Counts and the reasons of skipped tests are appended to $TALLY if
# set.
set -euo pipefail
cd "$(dirname "$0")/../.."
EXPOSURE=20 # systemd-analyze's, in tenths: what it calls OK

passed=0
skipped=0
pass() { passed=$((passed + 1)); }
skip() {
    skipped=$((skipped + 1))
    echo "skipped: package: $1" | tee -a "${TALLY:-/dev/null}"
}
finish() {
    local status=$?
    [ -z "${TALLY:-}" ] || echo "$passed $((status != 0)) $skipped" >>"$TALLY"
}
trap finish EXIT

# The unit's program is replaced by the built one, and man pages are not installed yet.
check_units() {
    local units=build/units
    mkdir -p $units
    cp "$root/usr/lib/systemd/system/weir.socket" $units
    sed "s|/usr/bin/weir|$root/usr/bin/weir|" "$root/usr/lib/systemd/system/weir.service" >$units/weir.service
    local said
    said=$(systemd-analyze verify --man=no $units/weir.service $units/weir.socket 2>&1 | grep "weir" || true)
    [ -z "$said" ] || { echo "$said" >&2; return 1; }
    systemd-analyze security --offline=true --threshold=$EXPOSURE $units/weir.service >/dev/null
}

# Checks that the link targets of the documents in folder $1 exist.
check_links() {
    local page target lost=0
    for page in "$1"/*.md; do
        while read -r target; do
            [ -e "$1/$target" ] || { echo "${page##*/}: there is no $target" >&2; lost=1; }
        done < <(grep -o ']([^)]*)' "$page" | sed -e 's/^](//' -e 's/)$//' -e 's/#.*//' | grep -v -e '^$' -e '://' | sort -u)
    done
    return $lost
}

# wait_for COMMAND...: waits at most 20 s
wait_for() {
    local tries=0
    until "$@" >/dev/null 2>&1; do
        [ $((tries += 1)) -le 200 ] || { echo "not within 20 s: $*" >&2; return 1; }
        sleep 0.1
    done
}

# Runs in the namespaces: $1 is the package, $2 an empty folder.
inside() {
    local deb=$1 folder=$2 root=$2/root
    mount -t tmpfs weir-test "$folder"
    mkdir "$folder/upper" "$folder/work" "$root"
    mount -t overlay weir-test -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$root"
    mount --rbind /dev "$root/dev"
    mount -t proc proc "$root/proc"
    ip link set lo up
    rm -rf "$root/etc/weir" "$root/etc/logrotate.d/weir" # of a weir that this machine has
    cp "$deb" "$root/tmp/weir.deb"

    chroot "$root" dpkg -i /tmp/weir.deb >"$folder/log" 2>&1 || { cat "$folder/log" >&2; return 1; }
    chroot "$root" getent passwd weir >/dev/null
    chroot "$root" /usr/bin/weir -t -c /etc/weir/weir.conf

    # Enables the sample's operators' socket, in the folder that systemd makes for the service.
    sed -i -e 's/^;\(\[admin\]\)/\1/' -e 's/^;\(socket = \)/\1/' "$root/etc/weir/weir.conf"
    chroot "$root" install -d -o weir -g weir /run/weir

    redis-server --port 6379 --bind 127.0.0.1 --save '' --appendonly no --dir "$folder" >"$folder/redis.log" &
    wait_for redis-cli -p 6379 PING
    chroot --userspec=weir:weir "$root" /usr/bin/weir -c /etc/weir/weir.conf 2>"$folder/weir.log" &
    local weir=$!
    wait_for redis-cli -p 6380 PING || { cat "$folder/weir.log" >&2; return 1; }
    [ "$(redis-cli -p 6380 SET k v)" = OK ]
    [ "$(redis-cli -p 6379 GET k)" = v ]
    [ "$(redis-cli -s "$root/run/weir/admin.sock" LIMIT MODE)" = enforce ]
    kill "$weir"
    wait "$weir"

    # The administrator's changes stay when the package is installed again, and when it is removed.
    echo "; mine" >>"$root/etc/weir/weir.conf"
    chroot "$root" dpkg -i /tmp/weir.deb >"$folder/log" 2>&1 </dev/null
    tail -n 1 "$root/etc/weir/weir.conf" | grep -q '^; mine$'
    chroot "$root" dpkg -r weir >"$folder/log" 2>&1
    [ -e "$root/etc/weir/weir.conf" ] && [ ! -e "$root/usr/bin/weir" ]
    chroot "$root" dpkg -P weir >"$folder/log" 2>&1
    [ ! -e "$root/etc/weir/weir.conf" ]
}

if [ "${1:-}" = inside ]; then
    trap - EXIT
    inside "$2" "$3"
    exit
fi

if ! command -v dpkg-shlibdeps >/dev/null; then
    skip "dpkg-dev is not installed"
    exit 0
fi
deb=$(make -s -j"$(nproc)" deb | tail -n 1)
root=$deb.root
[ "$(basename "$deb")" = "$(dpkg-deb --show --showformat '${Package}_${Version}_${Architecture}' "$deb").deb" ]
pass

check_links "$root/usr/share/doc/weir"
pass

if command -v systemd-analyze >/dev/null; then
    check_units
    pass
else
    skip "units are not checked: systemd-analyze is not installed"
fi

private=(unshare --mount --net --pid --fork --kill-child)
folder=$(mktemp -d)
if [ "$(id -u)" -ne 0 ]; then
    skip "it is installed by root only"
elif ! "${private[@]}" true 2>/dev/null; then
    skip "it is not installed: no namespaces here"
elif ! "${private[@]}" sh -c "mount -t tmpfs t $folder && mkdir $folder/u $folder/w && mount -t overlay o -o lowerdir=/,upperdir=$folder/u,workdir=$folder/w $folder" 2>/dev/null; then
    skip "it is not installed: no overlayfs here"
else
    "${private[@]}" "$0" inside "$deb" "$folder"
    pass
fi
rmdir "$folder"
echo "package: $passed passed, $skipped skipped"
