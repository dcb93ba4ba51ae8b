/*
 * Client side caching: who has read which key, and is told when it changes.
 */
#ifndef WEIR_SIM_REDIS_TRACKING_H
#define WEIR_SIM_REDIS_TRACKING_H

#include "tests/sim/redis_state.h"

/* The command has read its keys for this connection. */
void tracking_remember(struct redis_conn *conn, const struct command *command, const struct slice *argv, size_t argc);

/* Tells the readers of the key that it has changed. */
void tracking_invalidate(struct redis *redis, struct slice name);
void tracking_flushed(struct redis *redis);

/* What had to wait for the reply of the current command. */
void tracking_send_pending(struct redis *redis);

/* With these of enum tracking_flag; keys go to `redirect`, if that is not 0. */
void tracking_start(struct redis_conn *conn, unsigned flags, uint64_t redirect);
void tracking_stop(struct redis_conn *conn);
void tracking_fini(struct redis *redis);

#endif
