/*
 * Connections: how they come, are looked up, and go.
 */
#ifndef WEIR_SIM_REDIS_CONN_H
#define WEIR_SIM_REDIS_CONN_H

#include "tests/sim/redis_state.h"

/* The server closes it now: what it listened to and waited for is forgotten. It stays until its owner lets go. */
void conn_kill(struct redis_conn *conn);

/* As it was when it came, but for its id and its peer: RESET. */
void conn_reset(struct redis_conn *conn);
struct redis_conn *conn_new(struct redis *redis);
void conn_free(struct redis_conn *conn);

#endif
