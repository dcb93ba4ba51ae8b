/*
 * The keys of a database: found, made, removed, expired; and who is told of that.
 */
#ifndef WEIR_SIM_REDIS_DB_H
#define WEIR_SIM_REDIS_DB_H

#include "tests/sim/redis_state.h"

/* NULL: there is none. A key whose time is over is removed on the way. */
struct value *db_find(struct redis *redis, struct db *db, struct slice name);

/* A new value, where there is none. Who waits for a list is served when the command is over. */
struct value *db_add(struct redis *redis, struct db *db, struct slice name, enum value_type type);

bool db_delete(struct redis *redis, struct db *db, struct slice name);
void db_set_expiry(struct db *db, struct value *value, int64_t expires_ms);
bool db_is_expired(const struct redis *redis, const struct value *value);

/* All keys of it; watchers and trackers are not told. */
void db_empty(struct db *db);

/* The key has changed: watchers' transactions fail, trackers are told. */
void key_modified(struct redis *redis, struct db *db, struct slice name);

/* The same, for a command: its connection's database. */
struct value *key_find(struct redis_conn *conn, struct slice name);
struct value *key_add(struct redis_conn *conn, struct slice name, enum value_type type);
bool key_delete(struct redis_conn *conn, struct slice name);
void key_changed(struct redis_conn *conn, struct slice name);

/* Is it of this type, or none? If not, that is the answer. */
bool key_has_type(struct redis_conn *conn, const struct value *value, enum value_type type);

void value_free(void *value);

/* Removes keys whose time is over, a few at a time. */
void db_expire_some(struct redis *redis);

#endif
