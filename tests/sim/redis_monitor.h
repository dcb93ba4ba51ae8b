/* MONITOR: connections that get all commands. */
#ifndef WEIR_SIM_REDIS_MONITOR_H
#define WEIR_SIM_REDIS_MONITOR_H

#include "tests/sim/redis_state.h"

/* Sends an executed command to all monitors. */
void monitor_feed(struct redis_conn *conn, const struct slice *argv, size_t argc);

#endif
