/* Channels, patterns and shard channels, and their subscribers. */
#ifndef WEIR_SIM_REDIS_PUBSUB_H
#define WEIR_SIM_REDIS_PUBSUB_H

#include "tests/sim/redis_state.h"

/* A subscription: in the channel's list, and the value in the connection's dict. */
struct sub {
    struct list in_channel;
    struct redis_conn *conn;
    uint64_t number; /* order of the subscriptions */
};

/* Returns the number of receivers. */
int64_t pubsub_publish(struct redis *redis, struct slice channel, struct slice message,
                       bool is_shard);
void pubsub_send(struct redis_conn *conn, const char *kind, struct slice channel,
                 struct slice message);

/* Drops all subscriptions without confirmations. */
void pubsub_forget(struct redis_conn *conn);
bool pubsub_is_listening(const struct redis_conn *conn);
void pubsub_free_list(void *listeners); /* frees a value of redis->channels */

#endif
