/*
 * Channels, patterns and shard channels, and who listens to them.
 */
#ifndef WEIR_SIM_REDIS_PUBSUB_H
#define WEIR_SIM_REDIS_PUBSUB_H

#include "tests/sim/redis_state.h"

/* One connection's listening: in the channel's list, and the value in the connection's own dict. */
struct sub {
    struct list in_channel;
    struct redis_conn *conn;
    uint64_t number; /* the order in which the connection came to listen */
};

/* Returns how many have heard it. */
int64_t pubsub_publish(struct redis *redis, struct slice channel, struct slice message, bool is_shard);
void pubsub_send(struct redis_conn *conn, const char *kind, struct slice channel, struct slice message);

/* Nothing is listened to any more, and nothing said of it. */
void pubsub_forget(struct redis_conn *conn);
bool pubsub_is_listening(const struct redis_conn *conn);
void pubsub_free_list(void *listeners); /* what redis->channels has */

#endif
