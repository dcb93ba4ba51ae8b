/*
 * What the server tells of itself.
 */
#ifndef WEIR_SIM_REDIS_SERVER_H
#define WEIR_SIM_REDIS_SERVER_H

#include "tests/sim/redis_state.h"

/* As "7.0.15"; a Valkey's own version, or that of the Redis that it says it is. */
void reply_version(struct redis_conn *conn, bool is_own);

#endif
