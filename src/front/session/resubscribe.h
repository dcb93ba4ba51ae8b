/*
 * What a client of a cluster has subscribed to, when its node is another: channels of shards that
 * moved with their slot, and masters that have come where it has subscribed at all of them.
 *
 * Nothing of it is heard by the client but that messages may be missing, or, where no node takes
 * the channels, its end. The worker's thread.
 */
#ifndef WEIR_FRONT_RESUBSCRIBE_H
#define WEIR_FRONT_RESUBSCRIBE_H

#include "front/client/client.h"

/* The client's link was woken; another topology has been adopted. Safe on all clients. */
void resubscribe_go_on(struct client *client);
void resubscribe_adopt(struct client *client);

#endif
