/*
 * A client's two sides: what its own connection calls (bytes, room, its end) and what its lane calls (replies,
 * answers, the lane's end), and what each part of front does when the client leaves and is closed.
 *
 * It stands above those parts, which know of a client only what client.h has.
 */
#ifndef WEIR_FRONT_CONNECTION_H
#define WEIR_FRONT_CONNECTION_H

#include "front/client/client.h"

/* For front.client_ops. */
extern const struct client_ops connection_client_ops;

/* Begin with a connection that was accepted from `peer`; takes over `client`, zeroed heap memory. */
void client_open(struct client *client, struct front *front, int fd, const struct link_peer *peer,
                 const struct entrance *entrance);

#endif
