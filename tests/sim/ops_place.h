/*
 * What the rows of ops_place.c are told of beside their clients' replies.
 */
#ifndef WEIR_SIM_OPS_PLACE_H
#define WEIR_SIM_OPS_PLACE_H

#include "tests/sim/client.h"

/* A script begins on that key of Redis'. */
void place_heard(struct slice key);

/* Something goes wrong for so long. */
void place_upset(uint64_t ns);

/* From now on weir can be told whatever is asked of it. */
void place_served(void);

/* It has a place that somebody waits for. */
bool place_is_due(const struct client *client);

/* The client is about to hang up. */
void place_gone(struct client *client);

/* The next place that must be free is asked for. False: there is none. */
bool place_inherit(struct client *client);

#endif
