/*
 * The cluster of one master that clients in front of a Redis Cluster are told of: weir, which
 * serves all slots. So the client of a cluster stays behind weir, and the client of a single server
 * does not turn to cluster mode.
 *
 * Pure: replies are built, and replies of a node changed; nothing is sent. Any thread.
 */
#ifndef WEIR_FRONT_EMULATED_H
#define WEIR_FRONT_EMULATED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "resp/build.h"

struct emulated {
    struct slice host; /* where the client reaches weir */
    uint16_t port;
    bool is_tls;      /* that port speaks TLS */
    bool is_before_7; /* the replies are those of Redis 6.2 */
};

enum emulated_word { EMULATED_SLOTS, EMULATED_SHARDS, EMULATED_NODES, EMULATED_INFO, EMULATED_MYID };

/* The reply to CLUSTER SLOTS and so on. The master's name depends on its address alone. */
void emulated_reply(enum emulated_word word, const struct emulated *emulated, struct build *out);

/*
 * A node's reply to HELLO with `standalone` as its mode. False: it says nothing of a cluster, and
 * *out is to be ignored.
 */
bool emulated_hello(struct slice reply, struct build *out);

/*
 * A node's reply to INFO with `standalone` as redis_mode (Valkey: server_mode), and with a section
 * of weir's own, which names the node. False: it is an error, and *out is to be ignored.
 */
bool emulated_info(struct slice reply, const char *node, struct build *out);

#endif
