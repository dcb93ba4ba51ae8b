#include "tests/sim/redis_multi.h"

#include "tests/sim/redis_acl.h"
#include "tests/sim/redis_call.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_db.h"
#include "tests/sim/redis_reply.h"

/* ---- the queue ---- */

void multi_queue(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    if (conn->is_dirty_cas || conn->is_dirty_exec)
        return;
    if (conn->n_queued == conn->queue_room) {
        conn->queue_room = conn->queue_room > 0 ? conn->queue_room * 2 : 4;
        conn->queue = take_more(conn->queue, conn->queue_room, sizeof *conn->queue);
    }
    struct queued *queued = &conn->queue[conn->n_queued++];
    *queued = (struct queued){conn->command, take_zeroed(argc, sizeof *queued->words), argc};
    for (size_t i = 0; i < argc; i++) {
        text_reserve(&queued->words[i], 1);
        text_add(&queued->words[i], argv[i]);
    }
    conn->queue_bits |= conn->command->bits;
    conn->queue_lacks |= ~conn->command->bits;
}

static void empty_queue(struct redis_conn *conn)
{
    for (size_t i = 0; i < conn->n_queued; i++) {
        for (size_t k = 0; k < conn->queue[i].n; k++)
            text_fini(&conn->queue[i].words[k]);
        free(conn->queue[i].words);
    }
    free(conn->queue);
    conn->queue = NULL;
    conn->n_queued = conn->queue_room = 0;
    conn->queue_bits = conn->queue_lacks = 0;
}

void multi_spoil(struct redis_conn *conn)
{
    if (!conn->is_multi)
        return;
    conn->is_dirty_exec = true;
    if (is_valkey_8(conn->redis))
        empty_queue(conn);
}

void multi_discard(struct redis_conn *conn)
{
    empty_queue(conn);
    conn->is_multi = conn->is_dirty_cas = conn->is_dirty_exec = false;
    multi_unwatch(conn);
}

void multi_abort(struct redis_conn *conn, struct slice error)
{
    multi_discard(conn);
    bool is_plain = error.len > 4 && memcmp(error.at, "ERR ", 4) == 0;
    struct slice told = is_plain ? slice_of(error.at + 4, error.len - 4) : error;
    reply_error(conn, "EXECABORT Transaction discarded because of: %.*s", SHOWN(told));
}

/* ---- WATCH ---- */

static void free_watch(struct watch *watch)
{
    struct slice name = slice_of(watch->name, watch->len);
    list_take(&watch->in_conn);
    list_take(&watch->in_key);
    const struct list *watchers = dict_get(&watch->db->watchers, name);
    if (watchers != NULL && list_is_empty(watchers))
        free(dict_remove(&watch->db->watchers, name));
    free(watch);
}

void multi_unwatch(struct redis_conn *conn)
{
    while (!list_is_empty(&conn->watched))
        free_watch(container_of(conn->watched.next, struct watch, in_conn));
}

static bool is_watching(const struct redis_conn *conn, struct slice name)
{
    for (struct list *at = conn->watched.next; at != &conn->watched; at = at->next) {
        const struct watch *watch = container_of(at, struct watch, in_conn);
        if (watch->db == conn->db && slice_eq(slice_of(watch->name, watch->len), name))
            return true;
    }
    return false;
}

/* True if the key has expired and is not removed yet. */
static bool is_key_expired(const struct redis *redis, const struct db *db, struct slice name)
{
    const struct value *value = dict_get(&db->keys, name);
    return value != NULL && db_is_expired(redis, value);
}

static void watch_key(struct redis_conn *conn, struct slice name)
{
    if (is_watching(conn, name))
        return;
    struct dict_entry *entry = dict_add(&conn->db->watchers, name);
    if (entry->value == NULL) {
        entry->value = take_memory(sizeof(struct list));
        list_init(entry->value);
    }
    struct watch *watch = take_memory(sizeof *watch + name.len);
    *watch = (struct watch){.conn = conn, .db = conn->db, .len = name.len};
    memcpy(watch->name, name.at, name.len);
    watch->was_expired =
        is_at_least(conn->redis, 70000) && is_key_expired(conn->redis, conn->db, name);
    list_push(entry->value, &watch->in_key);
    list_push(&conn->watched, &watch->in_conn);
}

static bool has_expired(const struct redis_conn *conn)
{
    for (struct list *at = conn->watched.next; at != &conn->watched; at = at->next) {
        const struct watch *watch = container_of(at, struct watch, in_conn);
        if (!watch->was_expired &&
            is_key_expired(conn->redis, watch->db, slice_of(watch->name, watch->len)))
            return true;
    }
    return false;
}

/* The removal of a key that had expired before WATCH is no change. */
static bool is_only_removed(struct watch *watch, const struct db *db, struct slice name)
{
    bool is = watch->was_expired && dict_find(&db->keys, name) == NULL;
    if (is)
        watch->was_expired = false;
    return is;
}

static struct redis_conn *first_dirty(const struct list *watchers)
{
    for (struct list *at = watchers->next; at != watchers; at = at->next) {
        struct redis_conn *conn = container_of(at, struct watch, in_key)->conn;
        if (conn->is_dirty_cas)
            return conn;
    }
    return NULL;
}

/* A connection with a failed transaction stops watching. */
void multi_touch(struct db *db, struct slice name)
{
    const struct list *watchers = dict_get(&db->watchers, name);
    for (struct list *at = watchers != NULL ? watchers->next : NULL; at != watchers;
         at = at->next) {
        struct watch *watch = container_of(at, struct watch, in_key);
        watch->conn->is_dirty_cas |= !is_only_removed(watch, db, name);
    }
    while ((watchers = dict_get(&db->watchers, name)) != NULL) {
        struct redis_conn *conn = first_dirty(watchers);
        if (conn == NULL)
            return;
        if (is_valkey_8(conn->redis))
            empty_queue(conn);
        multi_unwatch(conn);
    }
}

void multi_touch_all(struct db *db)
{
    struct dict_walk walk = {0};
    for (struct dict_entry *entry; (entry = dict_next(&db->watchers, &walk)) != NULL;) {
        if (dict_find(&db->keys, dict_name(entry)) == NULL)
            continue;
        const struct list *watchers = entry->value;
        for (struct list *at = watchers->next; at != watchers; at = at->next) {
            struct watch *watch = container_of(at, struct watch, in_key);
            watch->conn->is_dirty_cas |= !watch->was_expired;
            watch->was_expired = false;
        }
    }
}

void multi_free_list(void *watchers)
{
    free(watchers);
}

/* ---- commands ---- */

void cmd_multi(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    if (conn->is_multi) {
        reply_error(conn, "ERR MULTI calls can not be nested");
        return;
    }
    conn->is_multi = true;
    reply_ok(conn);
}

void cmd_discard(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    if (!conn->is_multi) {
        reply_error(conn, "ERR DISCARD without MULTI");
        return;
    }
    multi_discard(conn);
    reply_ok(conn);
}

void cmd_watch(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    if (conn->is_multi) {
        reply_error(conn, "ERR WATCH inside MULTI is not allowed");
        return;
    }
    for (size_t i = 1; i < argc && !conn->is_dirty_cas; i++)
        watch_key(conn, argv[i]);
    reply_ok(conn);
}

void cmd_unwatch(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    multi_unwatch(conn);
    conn->is_dirty_cas = false;
    reply_ok(conn);
}

static void run_queued(struct redis_conn *conn, const struct queued *queued)
{
    struct slice *argv = take_memory(queued->n * sizeof *argv);
    for (size_t i = 0; i < queued->n; i++)
        argv[i] = text_slice(&queued->words[i]);
    conn->command = queued->command;
    call_run(conn, argv, queued->n);
    free(argv);
}

void cmd_exec(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    if (!conn->is_multi) {
        reply_error(conn, "ERR EXEC without MULTI");
        return;
    }
    if (conn->is_dirty_exec || conn->is_dirty_cas || has_expired(conn)) {
        if (conn->is_dirty_exec)
            reply_error(conn, "EXECABORT Transaction discarded because of previous errors.");
        else
            reply_null_array(conn);
        multi_discard(conn);
        return;
    }
    const struct command *exec = conn->command;
    multi_unwatch(conn);
    bool was_deny_blocking = conn->is_deny_blocking;
    conn->is_deny_blocking = true;
    reply_array(conn, conn->n_queued);
    for (size_t i = 0; i < conn->n_queued && !conn->is_gone; i++)
        run_queued(conn, &conn->queue[i]);
    conn->is_deny_blocking = was_deny_blocking;
    conn->command = exec;
    multi_discard(conn);
}
