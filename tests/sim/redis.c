/* The server as a whole: start, stop, and the choice of the next connection. */
#include "tests/sim/redis.h"

#include "tests/sim/redis_acl.h"
#include "tests/sim/redis_block.h"
#include "tests/sim/redis_call.h"
#include "tests/sim/redis_cluster.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_conn.h"
#include "tests/sim/redis_db.h"
#include "tests/sim/redis_multi.h"
#include "tests/sim/redis_pubsub.h"
#include "tests/sim/redis_random.h"
#include "tests/sim/redis_reply.h"
#include "tests/sim/redis_request.h"
#include "tests/sim/redis_schedule.h"
#include "tests/sim/redis_script.h"
#include "tests/sim/redis_tracking.h"

#define FIRST_US (1700000000ULL * US_PER_S)
#define EXPIRE_EVERY_US (100 * US_PER_MS)
#define FORK_VERSION 70204 /* the Redis version that every Valkey reports */

/* ---- start and stop ---- */

static char *copy_or_null(const char *text)
{
    return text != NULL ? text_copy(slice_str(text)) : NULL;
}

static void take_config(struct redis *redis, const struct redis_config *config)
{
    redis->config = *config;
    redis->config.requirepass = copy_or_null(config->requirepass);
    redis->config.users = copy_or_null(config->users);
    if (redis->config.version == 0)
        redis->config.version = 70015;
    redis->version = config->is_valkey ? FORK_VERSION : redis->config.version;
    redis->settings = (struct settings){
        .maxclients = config->maxclients != 0 ? config->maxclients : 10000,
        .databases = config->databases != 0 ? config->databases : 16,
        .busy_us = config->busy_us != 0 ? config->busy_us : 5 * US_PER_S,
        .bulk_max = 512LL * 1024 * 1024,
        .is_stale_served = true,
    };
    if (config->requirepass != NULL)
        text_add(&redis->settings.requirepass, slice_str(config->requirepass));
}

static void drop_config(struct redis *redis)
{
    free((char *)(uintptr_t)redis->config.requirepass);
    free((char *)(uintptr_t)redis->config.users);
    text_fini(&redis->settings.requirepass);
    text_fini(&redis->settings.notify);
    text_fini(&redis->master);
}

static void make_dbs(struct redis *redis)
{
    redis->dbs = take_zeroed(redis->settings.databases, sizeof *redis->dbs);
    for (unsigned i = 0; i < redis->settings.databases; i++)
        redis->dbs[i].index = i;
}

static void free_dbs(struct redis *redis)
{
    for (size_t i = 0; i < redis->settings.databases; i++) {
        db_empty(&redis->dbs[i]);
        dict_fini(&redis->dbs[i].watchers, multi_free_list);
        dict_fini(&redis->dbs[i].blocked, block_free_list);
    }
    free(redis->dbs);
}

/* Initialises all but time, random numbers and data. */
static void start(struct redis *redis)
{
    struct list *lists[] = {&redis->all,     &redis->ready,      &redis->touched,
                            &redis->blocked, &redis->monitors,   &redis->postponed,
                            &redis->killed,  &redis->ready_keys, &redis->pending_invalid};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        list_init(lists[i]);
    for (size_t i = 0; i + 1 < sizeof redis->run_id; i++)
        redis->run_id[i] = "0123456789abcdef"[redis_random(redis) & 15];
    redis->next_id = redis->config.first_id != 0 ? redis->config.first_id : 1;
    redis->started_us = redis->now_us;
    commands_init(redis);
    acl_init(redis);
    script_init(redis);
}

static void free_conns(struct redis *redis)
{
    struct list *lists[] = {&redis->all, &redis->killed};
    for (size_t i = 0; i < 2; i++)
        while (!list_is_empty(lists[i]))
            conn_free(container_of(lists[i]->next, struct redis_conn, in_all));
}

static void stop(struct redis *redis)
{
    script_abandon(redis);
    free_conns(redis);
    block_free_ready(redis);
    tracking_fini(redis);
    script_fini(redis);
    acl_fini(redis);
    commands_fini(redis);
    dict_fini(&redis->by_id, NULL);
    dict_fini(&redis->channels, pubsub_free_list);
    dict_fini(&redis->patterns, pubsub_free_list);
    dict_fini(&redis->shards, pubsub_free_list);
    drop_config(redis);
}

struct redis *redis_new(const struct redis_config *config)
{
    struct redis *redis = take_zeroed(1, sizeof *redis);
    redis->now_us = config->time_us != 0 ? config->time_us : FIRST_US;
    redis_random_init(redis, config->seed);
    take_config(redis, config);
    make_dbs(redis);
    start(redis);
    return redis;
}

void redis_free(struct redis *redis)
{
    struct settings settings = redis->settings;
    stop(redis);
    redis->settings.databases = settings.databases;
    free_dbs(redis);
    cluster_free(redis);
    free(redis);
}

void redis_restart_as(struct redis *redis, bool keeps_data, const struct redis_config *config)
{
    struct redis was = *redis;
    stop(redis);
    *redis = (struct redis){.now_us = was.now_us,
                            .rng = {was.rng[0], was.rng[1]},
                            .dbs = was.dbs,
                            .cluster = was.cluster};
    redis->settings.databases = was.settings.databases;
    if (!keeps_data)
        free_dbs(redis);
    take_config(redis, config);
    redis->settings.databases = was.settings.databases;
    if (!keeps_data)
        make_dbs(redis);
    start(redis);
}

void redis_restart(struct redis *redis, bool keeps_data, const char *requirepass)
{
    struct redis_config config = redis->config;
    config.requirepass = copy_or_null(requirepass);
    config.users = copy_or_null(redis->config.users);
    redis_restart_as(redis, keeps_data, &config);
    free((char *)(uintptr_t)config.requirepass);
    free((char *)(uintptr_t)config.users);
}

void redis_swap_keys(struct redis *a, struct redis *b)
{
    for (size_t i = 0; i < a->settings.databases; i++) {
        struct db *of_a = &a->dbs[i], *of_b = &b->dbs[i];
        struct db was = *of_a;
        of_a->keys = of_b->keys;
        of_a->n_expiring = of_b->n_expiring;
        of_a->looked_at = of_b->looked_at;
        of_b->keys = was.keys;
        of_b->n_expiring = was.n_expiring;
        of_b->looked_at = was.looked_at;
    }
}

/* ---- time ---- */

void redis_clock(struct redis *redis, uint64_t now_us)
{
    redis->now_us = now_us;
}

void redis_slow_reader(struct redis *redis, uint64_t us)
{
    redis->stalled_until_us = redis->now_us + us;
}

void redis_break_disk(struct redis *redis, bool is_broken)
{
    redis->is_disk_broken = is_broken;
}

void redis_load(struct redis *redis, uint64_t us)
{
    redis->loading_until_us = redis->now_us + us;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t redis_next_us(const struct redis *redis)
{
    if (redis->now_us < redis->stalled_until_us)
        return redis->stalled_until_us;
    if (script_is_running(redis)) {
        bool is_waiting = !list_is_empty(&redis->ready) && !script_is_busy(redis);
        return is_waiting ? earlier(script_due_us(redis), script_busy_from_us(redis))
                          : script_due_us(redis);
    }
    if (!list_is_empty(&redis->ready))
        return redis->now_us;
    uint64_t next_us = block_next_us(redis);
    if (redis->pause_until_us != 0 && !list_is_empty(&redis->postponed))
        next_us = earlier(next_us, redis->pause_until_us + 1); /* after the end of the pause */
    return next_us;
}

/* ---- scheduling ---- */

void schedule_ready(struct redis_conn *conn)
{
    bool is_shut = conn->is_gone || conn->is_closing || conn->block.kind != BLOCK_NONE;
    if (!is_shut && list_is_empty(&conn->in_ready))
        list_push(&conn->redis->ready, &conn->in_ready);
}

/* A closing connection closes once it has output. Without output Redis forgets to close it. */
static void close_if_due(struct redis_conn *conn)
{
    if (!conn->is_closing || conn->out.len == conn->out_taken)
        return;
    conn->wants_close = true;
    conn_touch(conn);
}

/* Ends what holds only for the next request, even if that request is empty. */
void schedule_done(struct redis_conn *conn)
{
    const struct command *command = conn->command;
    bool is_client = command != NULL && strncmp(command->name, "client", 6) == 0;
    conn->is_reply_skip = conn->is_reply_skip_next;
    conn->is_reply_skip_next = false;
    if (!conn->is_multi && !is_client)
        conn->tracking &= ~(unsigned)TRACKING_CACHING;
    bool is_asking = command != NULL && command->run == cmd_asking;
    conn->is_asking = conn->is_asking && (conn->is_multi || is_asking);
    conn->command = NULL;
    request_done(conn);
}

/*
 * Queues the connection behind all other connections, or keeps it in front while it has more input.
 */
static void go_on(struct redis_conn *conn)
{
    struct redis *redis = conn->redis;
    schedule_ready(conn);
    bool is_ready = !list_is_empty(&conn->in_ready) && conn->in_at < conn->in.len;
    if (!is_ready ||
        (redis->config.mixing > 0 && redis_random(redis) % 1000 < redis->config.mixing))
        return;
    list_take(&conn->in_ready);
    list_push(redis->ready.next, &conn->in_ready); /* before the first */
    conn->is_going_on = true;
}

static void carry_out(struct redis_conn *conn)
{
    struct redis *redis = conn->redis;
    size_t argc;
    const struct slice *argv = request_words(conn, &argc);
    redis->current = conn;
    if (redis->config.on_request != NULL && !conn->is_told)
        redis->config.on_request(redis_owner(conn), argv, argc);
    bool is_done = call_process(conn, argv, argc);
    conn->is_told = conn->block.kind == BLOCK_PAUSE;
    redis->current = NULL;
    if (conn->is_gone)
        return;
    if (is_done && conn->block.kind == BLOCK_NONE) {
        schedule_done(conn);
        go_on(conn);
    }
    close_if_due(conn);
}

/* Executes one command of the first connection that is ready. */
static bool take_turn(struct redis *redis)
{
    while (!list_is_empty(&redis->ready)) {
        struct redis_conn *conn = container_of(redis->ready.next, struct redis_conn, in_ready);
        list_take(&conn->in_ready);
        conn->has_written &= conn->is_going_on;
        conn->is_going_on = false;
        enum request_result result;
        while ((result = request_read(conn)) == REQUEST_EMPTY)
            if (!conn->is_inline)
                schedule_done(conn);
        if (result == REQUEST_BAD)
            close_if_due(conn);
        if (result != REQUEST_WHOLE)
            continue;
        carry_out(conn);
        return true;
    }
    return false;
}

/* Output written during the stall becomes visible. */
static void end_slow_reader(struct redis *redis)
{
    redis->stalled_until_us = 0;
    for (struct list *at = redis->all.next; at != &redis->all; at = at->next) {
        struct redis_conn *conn = container_of(at, struct redis_conn, in_all);
        if (conn->out.len > conn->out_taken)
            conn_touch(conn);
    }
}

static bool step_script(struct redis *redis)
{
    if (redis->now_us >= script_due_us(redis)) {
        script_go_on(redis);
        return true;
    }
    return script_is_busy(redis) && take_turn(redis);
}

static void expire_in_turn(struct redis *redis)
{
    uint64_t since_us = redis->now_us - redis->expired_us;
    if (redis->now_us >= redis->expired_us && since_us < EXPIRE_EVERY_US)
        return;
    redis->expired_us = redis->now_us;
    if (redis->pause_until_us == 0 && !redis->is_replica)
        db_expire_some(redis);
}

bool redis_step(struct redis *redis)
{
    if (redis->now_us < redis->stalled_until_us)
        return false;
    if (redis->stalled_until_us != 0)
        end_slow_reader(redis);
    if (script_is_running(redis))
        return step_script(redis);
    expire_in_turn(redis);
    if (redis->pause_until_us != 0 && redis->now_us > redis->pause_until_us)
        block_end_pause(redis);
    if (!list_is_empty(&redis->blocked)) {
        struct redis_conn *late = block_due(redis);
        if (late != NULL) {
            block_time_out(late);
            return true;
        }
    }
    return take_turn(redis);
}
