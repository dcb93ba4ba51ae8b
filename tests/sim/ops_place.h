/* Events for the rows of ops_place.c that clients' replies do not show. */
#ifndef WEIR_SIM_OPS_PLACE_H
#define WEIR_SIM_OPS_PLACE_H

#include "tests/sim/client.h"

/* A script on this key begins in Redis. */
void place_heard(struct slice key);

/* A fault of `ns` begins. */
void place_upset(uint64_t ns);

/* From now on weir has enough descriptors for its own connections. */
void place_served(void);

/* True if the client has a permit that another client waits for. */
bool place_is_due(const struct client *client);

/* The client is about to disconnect. */
void place_gone(struct client *client);

/* Asks for the next permit that must be free. False: no such permit is left. */
bool place_inherit(struct client *client);

#endif
