#!/usr/bin/env bash
# Starts build/weir ($WEIR) with conf/weir.conf on 127.0.0.1:$PORT (6380), in front of $UPSTREAM
# (host:port or unix:/path). Without UPSTREAM the script starts a private redis-server without
# persistence.
#
# SENTINEL=1: a master with two replicas, watched by three sentinels
# CLUSTER=3: a Redis Cluster of so many masters
# ADMIN_PORT: HTTP for operators on 127.0.0.1 (9380, or the next free port); there is a socket too
#
# Ctrl-C stops all of them.
set -euo pipefail
# In a script's background job SIGINT is ignored from the start, and a shell cannot trap an ignored
# signal.
if [ -z "${WEIR_RUN_HEARS:-}" ] && env --default-signal=INT true 2>/dev/null; then
    WEIR_RUN_HEARS=1 exec env --default-signal=INT bash "$0" "$@"
fi
unset WEIR_RUN_HEARS
cd "$(dirname "$0")/../.."

port=${PORT:-6380}
admin_port=${ADMIN_PORT:-9380}
answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
if answers "$port"; then
    echo "port $port is in use: stop what listens there, or choose another: make run PORT=6390" >&2
    exit 1
fi
if [ -n "${SENTINEL:-}${CLUSTER:-}" ] && [ -n "${UPSTREAM:-}" ]; then
    echo "${SENTINEL:+SENTINEL=$SENTINEL}${CLUSTER:+CLUSTER=$CLUSTER} starts servers of its own, UPSTREAM names others: choose one" >&2
    exit 1
fi
if [ -n "${SENTINEL:-}" ] && [ -n "${CLUSTER:-}" ]; then
    echo "SENTINEL=1 starts a master with replicas, CLUSTER=$CLUSTER a cluster: choose one" >&2
    exit 1
fi
if [ -n "${CLUSTER:-}" ] && ! [[ $CLUSTER =~ ^[0-9]+$ && $CLUSTER -ge 3 && $CLUSTER -le 100 ]]; then
    echo "CLUSTER=$CLUSTER: the number of masters, from 3 to 100" >&2
    exit 1
fi

# end PID: sends SIGTERM every 20 ms, since a starting process may miss a signal, and SIGKILL after
# 10 s. The second SIGTERM tells weir not to wait for clients.
end() {
    local tries=0
    while kill -TERM "$1" && [ $((tries += 1)) -le 500 ]; do
        sleep 0.02
    done
    kill -KILL "$1" || true
    wait "$1" || true
} 2>/dev/null

# A signal that arrives before the first line of stop starts stop anew. From the first line on
# signals are ignored, and stop ends all processes.
stop() {
    trap '' HUP INT QUIT TERM
    trap - EXIT
    local pid
    for pid in $(jobs -p | tac); do # the newest first: weir before Redis
        end "$pid"
    done
    rm -rf "$folder"
}
folder=$(mktemp -u "${TMPDIR:-/tmp}/weir-run.XXXXXX")
trap stop EXIT
trap 'stop; exit 0' HUP INT QUIT TERM
mkdir -m 700 "$folder"

# wait_for PID NAME COMMAND...: waits until the command succeeds, at most 10 s, while the process
# lives.
wait_for() {
    local tries=0
    until "${@:3}" >/dev/null 2>&1; do
        if ! kill -0 "$1" 2>/dev/null || [ $((tries += 1)) -gt 100 ]; then
            echo "$2 did not start" >&2
            tail -q -n 5 "$folder"/*.log 2>/dev/null >&2 || true
            exit 1
        fi
        sleep 0.1
    done
}

# redis NAME OPTIONS...: a server without persistence. The server has a session of its own: Ctrl-C
# does not reach it, and stop ends weir first.
redis() {
    setsid redis-server "${@:2}" --bind 127.0.0.1 --dir "$folder" --save '' --appendonly no --logfile "$folder/$1.log" \
        --pidfile "$folder/$1.pid" </dev/null >/dev/null &
}

# free_port FROM: sets found to the first free port from FROM on.
free_port() {
    found=$1
    while answers "$found"; do found=$((found + 1)); done
}

# A sentinel starts no failover until it knows the other sentinels.
knows_others() { redis-cli -p "$1" SENTINEL CKQUORUM mymaster | grep -q 'OK 3'; }

# Starts a master, two replicas and three sentinels. Sets upstream.
replicated() {
    local master='' n sentinels=
    found=$((port + 10))
    for n in 1 2 3; do
        free_port $((found + 1))
        redis "redis-$n" --port "$found" --repl-diskless-sync-delay 0 ${master:+--replicaof 127.0.0.1 "$master"}
        wait_for $! "redis-$n" redis-cli -p "$found" PING
        master=${master:-$found}
    done
    for n in 1 2 3; do
        free_port $((found + 1))
        cat >"$folder/sentinel-$n.conf" <<END
port $found
bind 127.0.0.1
dir $folder
logfile $folder/sentinel-$n.log
sentinel monitor mymaster 127.0.0.1 $master 2
sentinel down-after-milliseconds mymaster 1000
sentinel failover-timeout mymaster 10000
END
        setsid redis-server "$folder/sentinel-$n.conf" --sentinel </dev/null >/dev/null &
        wait_for $! "sentinel-$n" redis-cli -p "$found" PING
        sentinels+=${sentinels:+, }127.0.0.1:$found
    done
    wait_for $! "the third sentinel" knows_others "$found"
    sentinel_port=$found
    upstream=sentinel:mymaster@$sentinels
}

all_are_ok() {
    local one
    for one in "${node_ports[@]}"; do
        redis-cli -p "$one" CLUSTER INFO | grep -q 'cluster_state:ok' || return
    done
}

# Starts server n at the next port. False if another program has taken its port or the port of its
# bus.
clustered_node() {
    free_port $((found + 1))
    ! answers $((found + 10000)) || return
    redis "redis-$1" --port "$found" --cluster-enabled yes --cluster-config-file "$folder/nodes-$1.conf" \
        --cluster-node-timeout 1000 --cluster-require-full-coverage no
    until redis-cli -p "$found" PING 2>/dev/null | grep -q PONG; do
        kill -0 $! 2>/dev/null || return
        sleep 0.05
    done
}

# Starts masters that share all slots. Sets upstream and node_ports. Each bus listens 10,000 above
# its server.
clustered() {
    local n
    found=$((port + 20))
    node_ports=()
    for ((n = 1; n <= CLUSTER; n++)); do
        until clustered_node "$n"; do
            [ "$found" -lt $((port + 120)) ] || wait_for $! "redis-$n" false
        done
        node_ports+=("$found")
    done
    redis-cli --cluster create "${node_ports[@]/#/127.0.0.1:}" --cluster-yes >"$folder/create.log" </dev/null ||
        { cat "$folder/create.log" >&2; exit 1; }
    wait_for $! "the cluster" all_are_ok
    upstream="cluster:127.0.0.1:${node_ports[0]}, 127.0.0.1:${node_ports[1]}"
}

upstream=${UPSTREAM:-}
if [ -n "${SENTINEL:-}" ]; then
    replicated
elif [ -n "${CLUSTER:-}" ]; then
    clustered
elif [ -z "$upstream" ]; then
    upstream=unix:$folder/redis.sock
    redis redis --port 0 --unixsocket "$folder/redis.sock" --unixsocketperm 700
    wait_for $! redis-server redis-cli -s "$folder/redis.sock" PING
fi

sed -E -e "s|^listen[[:space:]]*=.*|listen = 127.0.0.1:$port|" -e "s|^upstream[[:space:]]*=.*|upstream = $upstream|" \
    ${SENTINEL:+-e 's|^;?failover-wait[[:space:]]*=.*|failover-wait = 10s|'} conf/weir.conf >"$folder/weir.conf"
while answers "$admin_port"; do admin_port=$((admin_port + 1)); done
printf '\n[admin]\nlisten = 127.0.0.1:%s\nsocket = %s/admin.sock\n' "$admin_port" "$folder" >>"$folder/weir.conf"
setsid "${WEIR:-build/weir}" -c "$folder/weir.conf" </dev/null &
weir_pid=$!
wait_for "$weir_pid" weir answers "$port"

where="a private redis-server that keeps nothing"
[ -z "${UPSTREAM:-}" ] || where=$UPSTREAM
[ -z "${SENTINEL:-}" ] || where="a private master with two replicas, watched by three sentinels"
[ -z "${CLUSTER:-}" ] || where="a private Redis Cluster of $CLUSTER masters"
cat <<END

weir listens on 127.0.0.1:$port, in front of $where, with the limits of conf/weir.conf.
In another shell:

    redis-cli -p $port SET greeting hello
    redis-cli -p $port GET greeting
    for i in 1 2 3 4 5; do redis-cli -p $port KEYS 'greet*'; done
    redis-benchmark -p $port -q -t set,get
    redis-cli -s $folder/admin.sock --json LIMIT TOP        # as an operator: the heaviest subjects

What happens is shown at http://127.0.0.1:$admin_port/
END
[ -z "${SENTINEL:-}" ] || cat <<END

A client that goes on while its master dies. Let it run in a shell of its own:

    while redis-cli -p $port INCR n; do sleep 0.2; done

Then kill the master, or have the sentinels make another server the master; and see which one it is now:

    kill -9 \$(cat $folder/redis-1.pid)
    redis-cli -p $sentinel_port SENTINEL FAILOVER mymaster
    redis-cli -p $sentinel_port SENTINEL get-master-addr-by-name mymaster
END
[ -z "${CLUSTER:-}" ] || cat <<END

Keys of several masters in one command, and which master serves which slots:

    redis-cli -p $port MGET greeting a b c d
    redis-cli -p ${node_ports[0]} CLUSTER NODES

A client that goes on while slots move. Let it run in a shell of its own, then move 1,000 slots to the first master:

    while redis-cli -p $port INCR n; do sleep 0.2; done
    redis-cli --cluster reshard 127.0.0.1:${node_ports[0]} --cluster-from all --cluster-slots 1000 --cluster-yes \\
        --cluster-to \$(redis-cli -p ${node_ports[0]} CLUSTER MYID)
END
printf '\nCtrl-C stops all of them.\n'
wait "$weir_pid"
