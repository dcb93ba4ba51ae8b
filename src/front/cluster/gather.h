/*
 * Replies of Redis that weir changes. A reply that weir changes is buffered, and passed on once the
 * reply is complete.
 *
 * weir adds its own commands to the replies to COMMAND. In front of a Redis Cluster, weir changes
 * HELLO and INFO to report a standalone server, and INFO also names the node
 * (front/cluster/emulated.h).
 *
 * Invariant: a reply is gathered only while no other request of the client is in flight. All bytes
 * therefore belong to the gathered reply. All functions run on the worker's thread.
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
 * Called when a request for which gather_is_due is true has been sent. The client waits for the
 * reply. `request` is a request of COMMAND, which the function copies, else empty. Out of memory,
 * the reply is passed on unchanged.
 */
void gather_begin(struct client *client, struct slice request);

/*
 * Buffers the next bytes of the reply. False if the caller must pass these bytes on: the reply is
 * too long, or memory is out. If false, the function has passed on the bytes buffered before.
 */
__attribute__((warn_unused_result)) bool gather_take(struct client *client, const char *data,
                                                     size_t n);

/* Called when the request with this effect is answered. The client gets the reply and resumes. */
void gather_end(struct client *client, enum effect effect);

/* Frees the buffered reply. Safe when nothing is being gathered. */
void gather_drop(struct client *client);

#endif
