/* Commands about keys, whatever is in them. */
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_db.h"
#include "tests/sim/redis_multi.h"
#include "tests/sim/redis_random.h"
#include "tests/sim/redis_reply.h"
#include "tests/sim/redis_args.h"
#include "tests/sim/redis_tracking.h"

void cmd_del(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    int64_t n = 0;
    for (size_t i = 1; i < argc; i++) {
        if (!key_delete(conn, argv[i]))
            continue;
        key_changed(conn, argv[i]);
        n++;
    }
    reply_number(conn, n);
}

void cmd_exists(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    int64_t n = 0;
    for (size_t i = 1; i < argc; i++)
        n += key_find(conn, argv[i]) != NULL;
    reply_number(conn, n);
}

static const char *const type_names[] = {
    [VALUE_STRING] = "string",
    [VALUE_LIST] = "list",
    [VALUE_HASH] = "hash",
    [VALUE_ZSET] = "zset",
};

void cmd_type(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    const struct value *value = key_find(conn, argv[1]);
    reply_status(conn, value != NULL ? type_names[value->type] : "none");
}

void cmd_rename(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    struct db *db = conn->db;
    struct value *value = key_find(conn, argv[1]);
    if (value == NULL) {
        reply_error(conn, "ERR no such key");
        return;
    }
    if (slice_eq(argv[1], argv[2])) {
        reply_ok(conn);
        return;
    }
    key_delete(conn, argv[2]);
    struct value *moved = key_add(conn, argv[2], value->type);
    struct value empty = *moved;
    *moved = *value;
    *value = empty;
    value->expires_ms = moved->expires_ms; /* which is counted once */
    db->n_expiring += moved->expires_ms != NO_EXPIRY;
    key_delete(conn, argv[1]);
    key_changed(conn, argv[1]);
    key_changed(conn, argv[2]);
    reply_ok(conn);
}

/* ---- all of them ---- */

void cmd_keys(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    size_t n = 0;
    size_t mark = reply_mark(conn);
    struct dict_walk walk = {0};
    for (struct dict_entry *entry; (entry = dict_next(&conn->db->keys, &walk)) != NULL;) {
        bool is_all = slice_eq(argv[1], SLICE("*"));
        if (db_is_expired(conn->redis, entry->value) || (!is_all && !text_matches(argv[1], dict_name(entry), false)))
            continue;
        reply_bulk(conn, dict_name(entry));
        n++;
    }
    reply_array_at(conn, mark, n);
}

void cmd_dbsize(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    reply_number(conn, (int64_t)conn->db->keys.count);
}

void cmd_randomkey(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    struct dict *keys = &conn->db->keys;
    if (keys->count == 0) {
        reply_null(conn);
        return;
    }
    struct dict_walk walk = {.bucket = redis_random(conn->redis) & keys->mask};
    const struct dict_entry *entry = dict_next(keys, &walk);
    if (entry == NULL) {
        walk = (struct dict_walk){0};
        entry = dict_next(keys, &walk);
    }
    reply_bulk(conn, dict_name(entry));
}

static bool read_flush_mode(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    if (argc == 1 || (argc == 2 && (text_is(argv[1], "sync") || text_is(argv[1], "async"))))
        return true;
    reply_syntax(conn);
    return false;
}

void cmd_flushdb(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    if (!read_flush_mode(conn, argv, argc))
        return;
    multi_touch_all(conn->db);
    db_empty(conn->db);
    tracking_flushed(conn->redis);
    reply_ok(conn);
}

void cmd_flushall(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    if (!read_flush_mode(conn, argv, argc))
        return;
    for (size_t i = 0; i < conn->redis->settings.databases; i++) {
        multi_touch_all(&conn->redis->dbs[i]);
        db_empty(&conn->redis->dbs[i]);
    }
    tracking_flushed(conn->redis);
    reply_ok(conn);
}

/* ---- SCAN ---- */

struct scan {
    uint64_t cursor;
    int64_t count;
    struct slice pattern, type; /* at NULL: none */
};

static bool is_type(struct slice name)
{
    for (size_t i = 0; i < sizeof type_names / sizeof type_names[0]; i++)
        if (text_is(name, type_names[i]))
            return true;
    return text_is(name, "set") || text_is(name, "stream");
}

static bool read_scan(struct redis_conn *conn, const struct slice *argv, size_t argc, struct scan *scan)
{
    *scan = (struct scan){.count = 10};
    int64_t cursor;
    if (!text_to_number(argv[1], &cursor) || cursor < 0) {
        reply_error(conn, "ERR invalid cursor");
        return false;
    }
    scan->cursor = (uint64_t)cursor;
    for (size_t i = 2; i < argc; i += 2) {
        bool has_value = i + 1 < argc;
        if (text_is(argv[i], "count") && has_value) {
            if (!arg_number(conn, argv[i + 1], &scan->count))
                return false;
            if (scan->count >= 1)
                continue;
        } else if (text_is(argv[i], "match") && has_value) {
            scan->pattern = argv[i + 1];
            continue;
        } else if (text_is(argv[i], "type") && has_value) {
            scan->type = argv[i + 1];
            if (is_valkey_8(conn->redis) && !is_type(scan->type)) {
                reply_error(conn, "ERR unknown type name '%.*s'", SHOWN(scan->type));
                return false;
            }
            continue;
        }
        reply_syntax(conn);
        return false;
    }
    return true;
}

static bool scan_wants(struct redis *redis, const struct scan *scan, const struct dict_entry *entry)
{
    const struct value *value = entry->value;
    if (db_is_expired(redis, value))
        return false;
    if (scan->type.at != NULL && !text_is(scan->type, type_names[value->type]))
        return false;
    return scan->pattern.at == NULL || text_matches(scan->pattern, dict_name(entry), false);
}

void cmd_scan(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct scan scan;
    if (!read_scan(conn, argv, argc, &scan))
        return;
    const struct dict *keys = &conn->db->keys;
    struct text found = {0};
    size_t n = 0;
    struct dict_walk walk = {.bucket = scan.cursor};
    int64_t seen = 0;
    struct redis_conn *out = conn;
    size_t mark = reply_mark(conn);
    for (struct dict_entry *entry; (entry = dict_next(keys, &walk)) != NULL;) {
        seen++;
        if (scan_wants(conn->redis, &scan, entry)) {
            reply_bulk(out, dict_name(entry));
            n++;
        }
        if (walk.next == NULL && seen >= scan.count)
            break;
    }
    bool is_over = keys->buckets == NULL || (walk.next == NULL && walk.bucket > keys->mask);
    reply_array_at(conn, mark, n);
    char digits[24];
    struct slice cursor = text_of_number(is_over ? 0 : (int64_t)walk.bucket, digits);
    text_addf(&found, "*2\r\n$%zu\r\n%.*s\r\n", cursor.len, (int)cursor.len, cursor.at);
    reply_insert(conn, mark, text_slice(&found));
    text_fini(&found);
}
