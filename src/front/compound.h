/*
 * A request that becomes several calls on a cluster, and has one reply: a command whose keys lie in several slots, one for
 * every master, SCAN, WAIT.
 *
 *   request   MGET a b c           one position among the client's replies, one charge, one entry of the slow log
 *   parts     MGET a c | MGET b    a hop for each (hop.h), in parallel, each at its own node
 *   reply     a b c                joined (resp/join.h) when the last part is answered; an error of one part is the reply
 *
 * Not atomic. A command of several slots that cannot be split hears CROSSSLOT, as from Redis Cluster itself.
 * The worker's thread.
 */
#ifndef WEIR_FRONT_COMPOUND_H
#define WEIR_FRONT_COMPOUND_H

#include <stdbool.h>

#include "front/client.h"
#include "front/request.h"

/*
 * True if compound_run answers the request: outside MULTI, on a cluster. A request that is not here in full, and whose keys
 * lie in several slots as far as it is, hears CROSSSLOT there, too.
 */
bool compound_takes(const struct client *client, const struct request *request);

/* As a step of route: it has not been charged. */
__attribute__((warn_unused_result)) enum route compound_run(struct client *client, struct request *request);

#endif
