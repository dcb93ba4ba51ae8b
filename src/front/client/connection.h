/*
 * The callbacks of a client's socket and of its lane. The socket reports bytes, room and the end of
 * the connection. The lane reports replies, answers and the lane's end. When a client leaves or is
 * closed, the callbacks here tell each part of front.
 *
 * Layers: this file calls the other parts of front. The other parts use clients only through
 * client.h.
 */
#ifndef WEIR_FRONT_CONNECTION_H
#define WEIR_FRONT_CONNECTION_H

#include "front/client/client.h"

/* The value of front.client_ops. */
extern const struct client_ops connection_client_ops;

/*
 * Begins to serve a connection that was accepted from `peer`. Takes over `client`, zeroed heap
 * memory.
 */
void client_open(struct client *client, struct front *front, int fd, const struct link_peer *peer,
                 const struct listen_address *listen_address);

#endif
