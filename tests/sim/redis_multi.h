/* Transactions, and watched keys. */
#ifndef WEIR_SIM_REDIS_MULTI_H
#define WEIR_SIM_REDIS_MULTI_H

#include "tests/sim/redis_state.h"

/* Queues the command for EXEC. */
void multi_queue(struct redis_conn *conn, const struct slice *argv, size_t argc);

/* A command could not be queued: EXEC will fail. */
void multi_spoil(struct redis_conn *conn);

/* Ends the transaction and WATCH. */
void multi_discard(struct redis_conn *conn);
void multi_unwatch(struct redis_conn *conn);

/* EXEC itself was refused with this error, which begins with its code. */
void multi_abort(struct redis_conn *conn, struct slice error);

/* touch: a key has changed. touch_all: all keys of a database are about to be removed. */
void multi_touch(struct db *db, struct slice name);
void multi_touch_all(struct db *db);
void multi_free_list(void *watchers); /* frees a value of db->watchers */

#endif
