/* The keys of a database: look-up, creation, removal, expiry, and notices of changes. */
#ifndef WEIR_SIM_REDIS_DB_H
#define WEIR_SIM_REDIS_DB_H

#include "tests/sim/redis_state.h"

/* NULL: no such key. An expired key is removed. */
struct value *db_find(struct redis *redis, struct db *db, struct slice name);

/* Adds a key that does not exist. Connections that wait for a list are served after the command. */
struct value *db_add(struct redis *redis, struct db *db, struct slice name, enum value_type type);

bool db_delete(struct redis *redis, struct db *db, struct slice name);
void db_set_expiry(struct db *db, struct value *value, int64_t expires_ms);
bool db_is_expired(const struct redis *redis, const struct value *value);

/* Removes all keys. Watchers and trackers are not told. */
void db_empty(struct db *db);

/* Notes a change of the key: transactions that watch it fail, and trackers are told. */
void key_modified(struct redis *redis, struct db *db, struct slice name);

/* The equivalents in the database of the command's connection. */
struct value *key_find(struct redis_conn *conn, struct slice name);
struct value *key_add(struct redis_conn *conn, struct slice name, enum value_type type);
bool key_delete(struct redis_conn *conn, struct slice name);
void key_changed(struct redis_conn *conn, struct slice name);

/* True if the key has this type, or does not exist. Else WRONGTYPE is replied. */
bool key_has_type(struct redis_conn *conn, const struct value *value, enum value_type type);

void value_free(void *value);

/* Removes a few expired keys. */
void db_expire_some(struct redis *redis);

#endif
