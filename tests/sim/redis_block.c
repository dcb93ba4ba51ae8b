#include "tests/sim/redis_block.h"

#include "tests/sim/redis_args.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_db.h"
#include "tests/sim/redis_lists.h"
#include "tests/sim/redis_schedule.h"
#include "tests/sim/redis_tracking.h"

struct ready_key {
    struct list in_ready;
    struct db *db;
    struct text name;
};

/* ---- start and end of a wait ---- */

void block_until(struct redis_conn *conn, enum block_kind kind, uint64_t due_us)
{
    conn->block.kind = kind;
    conn->block.due_us = due_us;
    list_push(&conn->redis->blocked, &conn->in_blocked);
    conn->redis->n_blocked++;
}

void block_forget(struct redis_conn *conn)
{
    struct block *block = &conn->block;
    for (size_t i = 0; i < block->n_keys; i++) {
        struct block_key *key = &block->keys[i];
        list_take(&key->in_key);
        struct list *waiting = dict_get(&block->db->blocked, text_slice(&key->name));
        if (waiting != NULL && list_is_empty(waiting))
            free(dict_remove(&block->db->blocked, text_slice(&key->name)));
        text_fini(&key->name);
    }
    free(block->keys);
    text_fini(&block->target);
    if (block->kind != BLOCK_NONE)
        conn->redis->n_blocked--;
    *block = (struct block){0};
    list_take(&conn->in_blocked);
}

void block_end(struct redis_conn *conn)
{
    bool is_held_back = conn->block.kind == BLOCK_PAUSE;
    block_forget(conn);
    if (!is_held_back)
        schedule_done(conn);
    schedule_ready(conn);
}

/*
 * Returns how many replicas have all writes of the connection. There is no replica, or a replica
 * with only the data from before the first write.
 */
static int64_t count_replicas(const struct redis_conn *conn)
{
    return conn->redis->config.has_replica && !conn->has_replicated;
}

void block_time_out(struct redis_conn *conn)
{
    if (conn->block.kind == BLOCK_WAIT)
        reply_number(conn, count_replicas(conn));
    else
        reply_null_array(conn);
    block_end(conn);
}

void block_end_pause(struct redis *redis)
{
    redis->pause_until_us = 0;
    redis->pause_is_all = false;
    while (!list_is_empty(&redis->postponed)) {
        struct redis_conn *conn =
            container_of(redis->postponed.next, struct redis_conn, in_postponed);
        list_take(&conn->in_postponed);
        block_end(conn);
    }
}

struct redis_conn *block_due(const struct redis *redis)
{
    struct redis_conn *first = NULL;
    for (struct list *at = redis->blocked.next; at != &redis->blocked; at = at->next) {
        struct redis_conn *conn = container_of(at, struct redis_conn, in_blocked);
        if (conn->block.due_us <= redis->now_us &&
            (first == NULL || conn->block.due_us < first->block.due_us))
            first = conn;
    }
    return first;
}

uint64_t block_next_us(const struct redis *redis)
{
    uint64_t next_us = REDIS_NEVER;
    for (struct list *at = redis->blocked.next; at != &redis->blocked; at = at->next) {
        const struct redis_conn *conn = container_of(at, struct redis_conn, in_blocked);
        if (conn->block.due_us < next_us)
            next_us = conn->block.due_us;
    }
    return next_us;
}

/* ---- keys with waiting connections ---- */

static void wait_for_keys(struct redis_conn *conn, const struct slice *names, size_t n,
                          uint64_t due_us)
{
    struct block *block = &conn->block;
    block->db = conn->db;
    block->keys = take_memory(n * sizeof *block->keys);
    for (size_t i = 0; i < n; i++) {
        bool is_known = false;
        for (size_t k = 0; k < block->n_keys && !is_known; k++)
            is_known = slice_eq(text_slice(&block->keys[k].name), names[i]);
        if (is_known)
            continue;
        struct block_key *key = &block->keys[block->n_keys++];
        *key = (struct block_key){.conn = conn};
        text_add(&key->name, names[i]);
        struct dict_entry *entry = dict_add(&conn->db->blocked, names[i]);
        if (entry->value == NULL) {
            entry->value = take_memory(sizeof(struct list));
            list_init(entry->value);
        }
        list_push(entry->value, &key->in_key);
    }
    block_until(conn, BLOCK_LIST, due_us);
}

void block_key_ready(struct redis *redis, struct db *db, struct slice name)
{
    if (db->blocked.count == 0 || dict_find(&db->blocked, name) == NULL)
        return;
    for (struct list *at = redis->ready_keys.next; at != &redis->ready_keys; at = at->next) {
        const struct ready_key *ready = container_of(at, struct ready_key, in_ready);
        if (ready->db == db && slice_eq(text_slice(&ready->name), name))
            return;
    }
    struct ready_key *ready = take_zeroed(1, sizeof *ready);
    ready->db = db;
    text_add(&ready->name, name);
    list_push(&redis->ready_keys, &ready->in_ready);
}

static struct ready_key *take_ready(struct redis *redis)
{
    struct ready_key *ready = container_of(redis->ready_keys.next, struct ready_key, in_ready);
    list_take(&ready->in_ready);
    return ready;
}

static void free_ready(struct ready_key *ready)
{
    text_fini(&ready->name);
    free(ready);
}

void block_free_ready(struct redis *redis)
{
    while (!list_is_empty(&redis->ready_keys))
        free_ready(take_ready(redis));
}

void block_free_list(void *waiting)
{
    free(waiting);
}

/* ---- serving ---- */

static void serve_pop(struct redis_conn *conn, struct slice name, struct value *value)
{
    struct text item = deque_pop(&value->list, conn->block.from_left);
    reply_array(conn, 2);
    reply_bulk(conn, name);
    reply_bulk(conn, text_slice(&item));
    text_fini(&item);
}

static void serve_move(struct redis_conn *conn, struct value *value)
{
    struct slice target = text_slice(&conn->block.target);
    struct value *there = db_find(conn->redis, conn->block.db, target);
    if (!key_has_type(conn, there, VALUE_LIST))
        return; /* replied with the error, so the wait ends */
    struct text item = deque_pop(&value->list, conn->block.from_left);
    list_move_to(conn, target, there, &item, conn->block.to_left);
}

/* The connection that has waited longest for the key. */
static struct redis_conn *first_waiting(const struct ready_key *ready)
{
    const struct list *waiting = dict_get(&ready->db->blocked, text_slice(&ready->name));
    return waiting != NULL ? container_of(waiting->next, struct block_key, in_key)->conn : NULL;
}

/*
 * Since 7.2 the whole command runs again: the first of its keys that exists counts, whatever its
 * type.
 */
static const struct block_key *key_to_serve(const struct redis *redis,
                                            const struct redis_conn *conn,
                                            const struct ready_key *ready)
{
    const struct block *block = &conn->block;
    for (size_t i = 0; i < block->n_keys; i++) {
        struct slice name = text_slice(&block->keys[i].name);
        bool is_it = is_at_least(redis, 70200) ? dict_find(&block->db->keys, name) != NULL
                                               : slice_eq(name, text_slice(&ready->name));
        if (is_it)
            return &block->keys[i];
    }
    return &block->keys[0];
}

static void serve_conn(struct redis *redis, struct redis_conn *conn, const struct ready_key *ready)
{
    struct slice name = text_slice(&key_to_serve(redis, conn, ready)->name);
    struct value *value = db_find(redis, ready->db, name);
    if (value == NULL || !key_has_type(conn, value, VALUE_LIST))
        return;
    if (conn->block.is_move)
        serve_move(conn, value);
    else
        serve_pop(conn, name, value);
    if (value->list.count == 0)
        db_delete(redis, ready->db, name);
    if (is_at_least(redis, 70200))
        key_modified(redis, ready->db, name);
}

static void serve_key(struct redis *redis, const struct ready_key *ready)
{
    for (;;) {
        struct redis_conn *conn = first_waiting(ready);
        const struct value *value = db_find(redis, ready->db, text_slice(&ready->name));
        if (conn == NULL || value == NULL || value->type != VALUE_LIST)
            return;
        redis->current = conn;
        serve_conn(redis, conn, ready);
        block_end(conn);
        tracking_send_pending(redis);
        redis->current = NULL;
    }
}

void block_serve(struct redis *redis)
{
    struct redis_conn *current = redis->current;
    while (!list_is_empty(&redis->ready_keys)) {
        struct ready_key *ready = take_ready(redis);
        serve_key(redis, ready);
        free_ready(ready);
    }
    redis->current = current;
}

/* ---- commands ---- */

static void blocking_pop(struct redis_conn *conn, const struct slice *argv, size_t argc,
                         bool from_left)
{
    uint64_t due_us;
    if (!arg_timeout(conn, argv[argc - 1], US_PER_S, &due_us))
        return;
    for (size_t i = 1; i < argc - 1; i++) {
        struct value *value = key_find(conn, argv[i]);
        if (value == NULL)
            continue;
        if (!key_has_type(conn, value, VALUE_LIST))
            return;
        conn->block.from_left = from_left;
        serve_pop(conn, argv[i], value);
        if (value->list.count == 0)
            key_delete(conn, argv[i]);
        key_changed(conn, argv[i]);
        return;
    }
    if (conn->is_deny_blocking) {
        reply_null_array(conn);
        return;
    }
    conn->block = (struct block){.from_left = from_left};
    wait_for_keys(conn, argv + 1, argc - 2, due_us);
}

void cmd_blpop(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    blocking_pop(conn, argv, argc, true);
}

void cmd_brpop(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    blocking_pop(conn, argv, argc, false);
}

static void blocking_move(struct redis_conn *conn, const struct slice *argv, bool from_left,
                          bool to_left, uint64_t due_us)
{
    struct value *source = key_find(conn, argv[1]);
    if (source != NULL) {
        list_move(conn, argv[1], argv[2], from_left, to_left);
    } else if (conn->is_deny_blocking) {
        reply_null(conn);
    } else {
        conn->block = (struct block){.is_move = true, .from_left = from_left, .to_left = to_left};
        text_add(&conn->block.target, argv[2]);
        wait_for_keys(conn, argv + 1, 1, due_us);
    }
}

void cmd_blmove(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    bool from_left;
    bool to_left;
    uint64_t due_us;
    if (arg_side(conn, argv[3], &from_left) && arg_side(conn, argv[4], &to_left) &&
        arg_timeout(conn, argv[5], US_PER_S, &due_us))
        blocking_move(conn, argv, from_left, to_left, due_us);
}

void cmd_wait(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    int64_t wanted;
    uint64_t due_us;
    if (conn->redis->is_replica) {
        reply_error(
            conn,
            "ERR WAIT cannot be used with replica instances. Please also note that %sif a replica is configured "
            "to be writable (which is not the default) writes to replicas are just local and are not propagated.",
            is_valkey_8(conn->redis) ? "" : "since Redis 4.0 ");
        return;
    }
    if (!arg_number(conn, argv[1], &wanted) || !arg_timeout(conn, argv[2], US_PER_MS, &due_us))
        return;
    if (wanted <= count_replicas(conn) || conn->is_deny_blocking)
        reply_number(conn, count_replicas(conn));
    else
        block_until(conn, BLOCK_WAIT, due_us);
}
