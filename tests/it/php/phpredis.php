<?php
// An application with phpredis: php phpredis.php PORT busy|idle RETRIES
[, $port, $role, $retries] = $argv;

$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port);
$redis->setOption(Redis::OPT_MAX_RETRIES, (int) $retries);
$redis->setOption(Redis::OPT_BACKOFF_ALGORITHM, Redis::BACKOFF_ALGORITHM_EXPONENTIAL);
$redis->setOption(Redis::OPT_BACKOFF_BASE, 50);
$redis->setOption(Redis::OPT_BACKOFF_CAP, 500);
$redis->setOption(Redis::OPT_READ_TIMEOUT, -1);

function attempt(callable $work)
{
    try {
        return $work();
    } catch (RedisException $error) {
        echo 'error ', get_class($error), ' ', $error->getMessage(), "\n";
        usleep(20000);
        return false;
    }
}

function busy(Redis $redis): void
{
    $last = 0;
    while (attempt(fn() => $redis->get('stop')) === false) {
        $n = attempt(fn() => $redis->incr('n'));
        if ($n !== false) {
            echo $n > $last ? "ok\n" : "$n after $last\n";
            $last = $n;
        }
        usleep(5000);
    }
}

function idle(Redis $redis): void
{
    do {
        $found = attempt(fn() => $redis->blPop(['q'], 0));
        if ($found) {
            echo "popped $found[1]\n";
        }
    } while (!$found || $found[1] !== 'end');
}

$role($redis);
