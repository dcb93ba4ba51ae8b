/*
 * Moves a cluster client's subscriptions when their nodes change. Shard channels follow their slot.
 * New masters get the names that the client has subscribed at all masters.
 *
 * The client notices only that messages may be missing. If no node accepts the channels, the client
 * is closed. All functions run on the worker's thread.
 */
#ifndef WEIR_FRONT_RESUBSCRIBE_H
#define WEIR_FRONT_RESUBSCRIBE_H

#include "front/client/client.h"

/*
 * resubscribe_go_on: called when the client's link was woken. resubscribe_adopt: called when the
 * worker has a new topology. Both functions are safe on all clients.
 */
void resubscribe_go_on(struct client *client);
void resubscribe_adopt(struct client *client);

#endif
