/* Connections that wait: for a list, for replicas, for the end of a pause. */
#ifndef WEIR_SIM_REDIS_BLOCK_H
#define WEIR_SIM_REDIS_BLOCK_H

#include "tests/sim/redis_state.h"

/*
 * The connection waits until the event, or until `due_us`. The connection's input is not executed
 * meanwhile.
 */
void block_until(struct redis_conn *conn, enum block_kind kind, uint64_t due_us);

/* The connection goes on with its input. */
void block_end(struct redis_conn *conn);

/* Replies as at the time-out, and goes on. */
void block_time_out(struct redis_conn *conn);

/* The connection closes. */
void block_forget(struct redis_conn *conn);

/*
 * key_ready: a list was created. serve: serves connections that wait for such lists, after the
 * command.
 */
void block_key_ready(struct redis *redis, struct db *db, struct slice name);
void block_serve(struct redis *redis);

/* Connections that the pause held back run their command again. */
void block_end_pause(struct redis *redis);

/* The next connection with a time-out that is over; NULL: none. */
struct redis_conn *block_due(const struct redis *redis);
uint64_t block_next_us(const struct redis *redis);
void block_free_ready(struct redis *redis);
void block_free_list(void *waiting); /* frees a value of db->blocked */

#endif
