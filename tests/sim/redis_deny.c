#include "tests/sim/redis_deny.h"

#include "tests/sim/redis_commands.h"

#define MEMORY_USED (1024 * 1024) /* the model counts no bytes: a limit below this is exceeded */

#define OOM "OOM command not allowed when used memory > 'maxmemory'."
#define READONLY "READONLY You can't write against a read only replica."
#define NOREPLICAS "NOREPLICAS Not enough good replicas to write."
#define MISCONF(name, is_unable)                                                                                  \
    "-MISCONF " name " is configured to save RDB snapshots, but " is_unable                                       \
    ". Commands that may modify the data set are disabled, because this instance is configured to report errors " \
    "during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the " name        \
    " logs for details about the RDB error."

/* The error begins with a dash. */
static const char *misconf(const struct redis *redis)
{
    if (is_valkey_8(redis))
        return MISCONF("Valkey", "it's currently unable to persist to disk");
    return is_at_least(redis, 70000)
               ? MISCONF("Redis", "it's currently unable to persist to disk")
               : MISCONF("Redis", "it is currently not able to persist on disk");
}

/* A replica leaves eviction to its master, and during a pause memory is not checked. */
static bool is_out_of_memory(const struct redis *redis)
{
    return !redis->is_replica && redis->pause_until_us == 0 && redis->settings.memory_max > 0 &&
           redis->settings.memory_max < MEMORY_USED;
}

static uint32_t bits_of(const struct redis_conn *conn)
{
    return conn->command->bits | (conn->command->run == cmd_exec ? conn->queue_bits : 0);
}

/* Before 7.4 queueing needs memory, too. */
static bool takes_memory(const struct redis_conn *conn)
{
    const struct command *command = conn->command;
    bool queues = conn->is_multi && !is_at_least(conn->redis, 70400) && !is_valkey_8(conn->redis);
    bool ends =
        command->run == cmd_exec || command->run == cmd_discard || command->run == cmd_reset;
    return (bits_of(conn) & FLAG_DENYOOM) != 0 || (queues && !ends);
}

static const char *not_run(const struct redis *redis, const char *words)
{
    if (redis->config.on_not_run != NULL)
        redis->config.on_not_run();
    return words;
}

const char *deny_write(const struct redis_conn *conn)
{
    const struct redis *redis = conn->redis;
    bool is_write = (bits_of(conn) & FLAG_WRITE) != 0;
    if (is_out_of_memory(redis) && takes_memory(conn))
        return OOM;
    if (redis->is_disk_broken && !redis->is_replica && (is_write || conn->command->run == cmd_ping))
        return misconf(redis) + 1;
    if (is_write && redis->settings.replicas_min > 0 && !redis->is_replica)
        return NOREPLICAS;
    return is_write && redis->is_replica ? not_run(redis, READONLY) : NULL;
}

const char *deny_stale_words(const struct redis *redis)
{
    return not_run(
        redis, "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");
}

bool deny_is_stale(const struct redis *redis)
{
    return redis->is_replica && !redis->settings.is_stale_served;
}

static bool lacks(const struct redis_conn *conn, uint32_t bit)
{
    return (conn->command->bits & bit) == 0 ||
           (conn->command->run == cmd_exec && (conn->queue_lacks & bit) != 0);
}

const char *deny_any(const struct redis_conn *conn)
{
    const struct redis *redis = conn->redis;
    if (deny_is_stale(redis) && lacks(conn, FLAG_STALE))
        return deny_stale_words(redis);
    if (redis->now_us < redis->loading_until_us && lacks(conn, FLAG_LOADING))
        return not_run(redis, is_valkey_8(redis)
                                  ? "LOADING Valkey is loading the dataset in memory"
                                  : "LOADING Redis is loading the dataset in memory");
    return NULL;
}

const char *deny_in_script(const struct redis_conn *conn, bool has_written)
{
    const struct redis *redis = conn->redis;
    uint32_t bits = conn->command->bits;
    bool is_old = !is_at_least(redis, 70000);
    if (!is_old && has_written)
        return NULL;
    if ((bits & FLAG_WRITE) != 0 && redis->is_replica)
        return not_run(redis, "-" READONLY);
    if ((bits & FLAG_WRITE) != 0 && redis->is_disk_broken)
        return misconf(redis);
    if ((bits & FLAG_WRITE) != 0 && redis->settings.replicas_min > 0)
        return "-" NOREPLICAS;
    return is_out_of_memory(redis) && (bits & FLAG_DENYOOM) != 0 && !has_written ? "-" OOM : NULL;
}
