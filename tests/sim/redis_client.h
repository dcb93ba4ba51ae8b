/* The CLIENT command, and the look-up of connections. */
#ifndef WEIR_SIM_REDIS_CLIENT_H
#define WEIR_SIM_REDIS_CLIENT_H

#include "tests/sim/redis_state.h"

struct redis_conn *client_by_id(const struct redis *redis, uint64_t id); /* NULL: none */

/* A name for CLIENT SETNAME. False: the error is replied. */
bool client_set_name(struct redis_conn *conn, struct slice name);
bool client_check_name(struct redis_conn *conn, struct slice name);

#endif
