/* The server's version in replies. */
#ifndef WEIR_SIM_REDIS_SERVER_H
#define WEIR_SIM_REDIS_SERVER_H

#include "tests/sim/redis_state.h"

/*
 * Replies a version such as "7.0.15". is_own: Valkey's own version, else that of the Redis it
 * reports.
 */
void reply_version(struct redis_conn *conn, bool is_own);

#endif
