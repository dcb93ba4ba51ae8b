/*
 * Transactions, and the keys that are watched for them.
 */
#ifndef WEIR_SIM_REDIS_MULTI_H
#define WEIR_SIM_REDIS_MULTI_H

#include "tests/sim/redis_state.h"

/* The command is kept for EXEC. */
void multi_queue(struct redis_conn *conn, const struct slice *argv, size_t argc);

/* An error when a command was to be queued: EXEC will fail. */
void multi_spoil(struct redis_conn *conn);

/* The transaction and the watching are over. */
void multi_discard(struct redis_conn *conn);
void multi_unwatch(struct redis_conn *conn);

/* EXEC itself was refused with this error, which begins with its code. */
void multi_abort(struct redis_conn *conn, struct slice error);

/* A key was changed; all of a database are to be removed. */
void multi_touch(struct db *db, struct slice name);
void multi_touch_all(struct db *db);
void multi_free_list(void *watchers); /* what db->watchers has */

#endif
