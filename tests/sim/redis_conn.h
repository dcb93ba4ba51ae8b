/* Connections: creation, look-up and end. */
#ifndef WEIR_SIM_REDIS_CONN_H
#define WEIR_SIM_REDIS_CONN_H

#include "tests/sim/redis_state.h"

/*
 * The server closes the connection now, and drops its subscriptions and waits. The memory stays
 * until redis_disconnect.
 */
void conn_kill(struct redis_conn *conn);

/* RESET: the state of a new connection, except for its id and peer. */
void conn_reset(struct redis_conn *conn);
struct redis_conn *conn_new(struct redis *redis);
void conn_free(struct redis_conn *conn);

#endif
