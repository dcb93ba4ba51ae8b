/*
 * The one-master cluster that weir presents to clients in front of a Redis Cluster. The one master
 * is weir, which serves all slots. A library in cluster mode therefore connects only to weir, and a
 * library for a single server does not switch to cluster mode.
 *
 * Pure: the functions build replies, or change replies of a node, without sending. Any thread may
 * call.
 */
#ifndef WEIR_FRONT_EMULATED_H
#define WEIR_FRONT_EMULATED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "resp/build.h"

struct emulated {
    struct slice host; /* the address at which the client reaches weir */
    uint16_t port;
    bool is_tls;      /* `port` speaks TLS */
    bool is_before_7; /* replies have the form of Redis 6.2 */
};

enum emulated_word {
    EMULATED_SLOTS,
    EMULATED_SHARDS,
    EMULATED_NODES,
    EMULATED_INFO,
    EMULATED_MYID
};

/* Builds the reply to a CLUSTER subcommand. The master's node id depends on its address alone. */
void emulated_reply(enum emulated_word word, const struct emulated *emulated, struct build *out);

/*
 * Copies a node's HELLO reply with `standalone` as its mode. False if the reply names no cluster
 * mode; *out is then invalid.
 */
bool emulated_hello(struct slice reply, struct build *out);

/*
 * Copies a node's INFO reply with `standalone` as redis_mode (Valkey: server_mode). A section of
 * weir follows, which names the node. False if the reply is an error; *out is then invalid.
 */
bool emulated_info(struct slice reply, const char *node, struct build *out);

#endif
