/*
 * Replies of a node that weir changes in front of a Redis Cluster: HELLO and INFO say that the
 * server is in no cluster, and INFO names the node (front/cluster/emulated.h). Such a reply is gathered,
 * and passed on once it is whole. The worker's thread.
 */
#ifndef WEIR_FRONT_CHANGED_REPLY_H
#define WEIR_FRONT_CHANGED_REPLY_H

#include "front/client/client.h"

/* True if weir changes the reply to a request with this effect. False on one server. */
bool changed_reply_is_due(const struct client *client, enum effect effect);

/* The call of such a request has been sent; nothing else is in flight. And it has been answered. */
void changed_reply_ask(struct client *client);
void changed_reply_answered(struct client *client, enum effect effect);

#endif
