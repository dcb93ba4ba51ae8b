/*
 * Replies of Redis that weir changes. Such a reply is buffered, and passed on once it is complete.
 *
 * weir adds its own commands to the replies to COMMAND. In front of a Redis Cluster, weir changes
 * HELLO and INFO to report a standalone server, and INFO also names the node
 * (front/cluster/emulated.h).
 *
 * Invariant: a reply is gathered only while no other request is in flight, hence all bytes belong
 * to that reply. The worker's thread.
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
 * Called when a request with such an effect has been sent. The client waits for the reply. The
 * reply is gathered with a copy of `request`, which is the request for COMMAND and empty otherwise.
 * Out of memory, the reply is passed on unchanged.
 */
void gather_begin(struct client *client, struct slice request);

/*
 * Buffers the next bytes of the reply. False if the caller passes these bytes on itself: the reply
 * is too long, or memory is out. The bytes buffered before have then been passed on.
 */
__attribute__((warn_unused_result)) bool gather_take(struct client *client, const char *data, size_t n);

/* Called when the request with this effect is answered. The client gets the reply and resumes. */
void gather_end(struct client *client, enum effect effect);

/* Frees the buffered reply. Safe when nothing is being gathered. */
void gather_drop(struct client *client);

#endif
