<?php
// A cluster client sends all commands to weir, which poses as a cluster of one node:
// php cluster_behind.php PORT ROUNDS
[, $port, $rounds] = $argv;

function same($found, $wanted)
{
    if ($found !== $wanted) {
        echo 'error ', json_encode($found), ' instead of ', json_encode($wanted), "\n";
        exit(1);
    }
}

$cluster = new RedisCluster(null, ["127.0.0.1:$port"], 5, 5);
same($cluster->_masters(), [['127.0.0.1', (int) $port]]);
$keys = array_map(fn ($i) => "k$i", range(0, 99));
for ($round = 0; $round < $rounds; $round++) {
    foreach ($keys as $key) {
        same($cluster->set($key, "$round"), true);
        same($cluster->get($key), "$round");
    }
    same($cluster->mget($keys), array_fill(0, 100, "$round"));
    same($cluster->multi()->set('{t}a', "$round")->get('{t}a')->exec(), [true, "$round"]);
    echo "ok\n";
}
same($cluster->del($keys), 100);
