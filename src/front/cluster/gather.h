/*
 * Replies of Redis that weir changes. Such a reply is gathered, and passed on once it is whole.
 *
 * weir's own commands are added to the replies to COMMAND. In front of a Redis Cluster HELLO and INFO
 * say that the server is in no cluster, and INFO names the node (front/cluster/emulated.h). A reply is
 * gathered only while no other request is in flight, so that all bytes belong to it. The worker's
 * thread.
 */
#ifndef WEIR_FRONT_GATHER_H
#define WEIR_FRONT_GATHER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "front/client/client.h"

/* True if weir may change the reply to a request with this effect. */
bool gather_is_due(const struct client *client, enum effect effect);

/*
 * Such a request has been sent. The client waits for the reply, which is gathered with a copy of
 * `request`: of COMMAND the request, else empty. Out of memory: the reply is passed on as it is.
 */
void gather_begin(struct client *client, struct slice request);

/* Keep these bytes of a reply. False: pass them on, behind what was gathered, which has been. */
__attribute__((warn_unused_result)) bool gather_take(struct client *client, const char *data, size_t n);

/* The request with this effect has been answered: the client gets the reply, and goes on. */
void gather_end(struct client *client, enum effect effect);

/* Forget what was gathered. Safe when nothing is being gathered. */
void gather_drop(struct client *client);

#endif
