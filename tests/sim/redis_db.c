#include "tests/sim/redis_db.h"

#include "tests/sim/redis_block.h"
#include "tests/sim/redis_lists.h"
#include "tests/sim/redis_multi.h"
#include "tests/sim/redis_reply.h"
#include "tests/sim/redis_tracking.h"
#include "tests/sim/redis_zset.h"

#define LOOKED_THROUGH 20 /* keys at a time, as in Redis */

void value_free(void *pointer)
{
    struct value *value = pointer;
    switch (value->type) {
    case VALUE_STRING:
        text_fini(&value->string);
        break;
    case VALUE_LIST:
        deque_fini(&value->list);
        break;
    case VALUE_ZSET:
        zset_fini(&value->zset);
        break;
    }
    free(value);
}

bool db_is_expired(const struct redis *redis, const struct value *value)
{
    return value->expires_ms != NO_EXPIRY && now_ms(redis) > value->expires_ms;
}

static void remove_key(struct db *db, struct slice name)
{
    struct value *value = dict_remove(&db->keys, name);
    db->n_expiring -= value->expires_ms != NO_EXPIRY;
    value_free(value);
}

struct value *db_find(struct redis *redis, struct db *db, struct slice name)
{
    struct dict_entry *entry = dict_find(&db->keys, name);
    if (entry == NULL)
        return NULL;
    if (!db_is_expired(redis, entry->value))
        return entry->value;
    if (redis->is_replica) /* only the master's DEL removes it */
        return NULL;
    remove_key(db, name);
    key_modified(redis, db, name);
    return NULL;
}

struct value *db_add(struct redis *redis, struct db *db, struct slice name, enum value_type type)
{
    struct value *value = take_zeroed(1, sizeof *value);
    value->type = type;
    value->expires_ms = NO_EXPIRY;
    dict_add(&db->keys, name)->value = value;
    if (type == VALUE_LIST)
        block_key_ready(redis, db, name);
    return value;
}

bool db_delete(struct redis *redis, struct db *db, struct slice name)
{
    if (db_find(redis, db, name) == NULL)
        return false;
    remove_key(db, name);
    return true;
}

void db_set_expiry(struct db *db, struct value *value, int64_t expires_ms)
{
    db->n_expiring -= value->expires_ms != NO_EXPIRY;
    db->n_expiring += expires_ms != NO_EXPIRY;
    value->expires_ms = expires_ms;
}

void db_empty(struct db *db)
{
    dict_fini(&db->keys, value_free);
    db->n_expiring = 0;
}

void key_modified(struct redis *redis, struct db *db, struct slice name)
{
    if (redis->current != NULL)
        redis->current->has_replicated = true;
    if (db->watchers.count > 0)
        multi_touch(db, name);
    if (redis->n_tracking > 0 || redis->tracking.count > 0)
        tracking_invalidate(redis, name);
}

/* ---- for commands ---- */

struct value *key_find(struct redis_conn *conn, struct slice name)
{
    return db_find(conn->redis, conn->db, name);
}

struct value *key_add(struct redis_conn *conn, struct slice name, enum value_type type)
{
    return db_add(conn->redis, conn->db, name, type);
}

bool key_delete(struct redis_conn *conn, struct slice name)
{
    return db_delete(conn->redis, conn->db, name);
}

void key_changed(struct redis_conn *conn, struct slice name)
{
    key_modified(conn->redis, conn->db, name);
}

bool key_has_type(struct redis_conn *conn, const struct value *value, enum value_type type)
{
    if (value == NULL || value->type == type)
        return true;
    reply_wrong_type(conn);
    return false;
}

/* ---- expiry ---- */

static void expire_some_of(struct redis *redis, struct db *db)
{
    struct dict_walk walk = {.bucket = db->looked_at};
    size_t left = LOOKED_THROUGH;
    for (struct dict_entry *entry; left > 0 && (entry = dict_next(&db->keys, &walk)) != NULL;
         left--) {
        if (!db_is_expired(redis, entry->value))
            continue;
        struct text name = {0};
        text_add(&name, dict_name(entry));
        remove_key(db, text_slice(&name));
        key_modified(redis, db, text_slice(&name));
        text_fini(&name);
    }
    db->looked_at = left > 0 ? 0 : walk.bucket;
}

void db_expire_some(struct redis *redis)
{
    for (size_t i = 0; i < redis->settings.databases; i++)
        if (redis->dbs[i].n_expiring > 0)
            expire_some_of(redis, &redis->dbs[i]);
}
