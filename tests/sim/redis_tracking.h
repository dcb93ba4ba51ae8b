/* Client side caching: which connections have read a key, and the notices of its changes. */
#ifndef WEIR_SIM_REDIS_TRACKING_H
#define WEIR_SIM_REDIS_TRACKING_H

#include "tests/sim/redis_state.h"

/* The command has read its keys for this connection. */
void tracking_remember(struct redis_conn *conn, const struct command *command,
                       const struct slice *argv, size_t argc);

/* Notifies the readers of the key. */
void tracking_invalidate(struct redis *redis, struct slice name);
void tracking_flushed(struct redis *redis);

/* Sends the notices that wait for the reply of the current command. */
void tracking_send_pending(struct redis *redis);

/* `flags` of enum tracking_flag. Notices go to `redirect`, if that is not 0. */
void tracking_start(struct redis_conn *conn, unsigned flags, uint64_t redirect);
void tracking_stop(struct redis_conn *conn);
void tracking_fini(struct redis *redis);

#endif
