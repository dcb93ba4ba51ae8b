/*
 * Connections that wait: for a list, for replicas, for the end of a pause.
 */
#ifndef WEIR_SIM_REDIS_BLOCK_H
#define WEIR_SIM_REDIS_BLOCK_H

#include "tests/sim/redis_state.h"

/* Until what is waited for is there, or `due_us`. What comes from it is not carried out until then. */
void block_until(struct redis_conn *conn, enum block_kind kind, uint64_t due_us);

/* It goes on with what has come meanwhile. */
void block_end(struct redis_conn *conn);

/* As if its time were over: it is answered so, and goes on. */
void block_time_out(struct redis_conn *conn);

/* It is gone. */
void block_forget(struct redis_conn *conn);

/* A list has been made; who waits for it is served when the command is over. */
void block_key_ready(struct redis *redis, struct db *db, struct slice name);
void block_serve(struct redis *redis);

/* Who was held back asks again. */
void block_end_pause(struct redis *redis);

/* The next whose time is over; NULL: none. */
struct redis_conn *block_due(const struct redis *redis);
uint64_t block_next_us(const struct redis *redis);
void block_free_ready(struct redis *redis);
void block_free_list(void *waiting); /* what db->blocked has */

#endif
