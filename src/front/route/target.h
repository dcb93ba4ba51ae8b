/*
 * On a cluster: the node that a client's next request by its own rider goes to.
 *
 *     request with keys of one slot                     the slot's master
 *     PUBLISH, PUBSUB                                   the node of classic pub/sub
 *     any other without keys                            where the client's own lane leads, else the home node
 *     any, while something holds the client's lane      where that lane leads
 *
 * What holds a lane: MULTI, watched keys, subscriptions, MONITOR, replies that are not counted. Everything else that
 * Redis remembers of a client on its lane ends when the client's requests go to another node.
 * Set for each request before a lane is looked for (target_set); proofs, outages and lanes are those of this node. One
 * server, or a master and its replicas: always the home node. The worker's thread.
 */
#ifndef WEIR_FRONT_TARGET_H
#define WEIR_FRONT_TARGET_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"

/* Never NULL: the home node's row if none is set, or the one that was has left the topology. */
struct nodes_row *target_row(const struct client *client);

/* False: out of memory, and the client is closed. */
__attribute__((warn_unused_result)) bool target_set(struct client *client, struct nodes_row *row);

/* As keys_slot; of a request that is too large to be seen whole, the slot of its first key: Redis looks at the others. */
int32_t target_slot(const struct request *request);

/* Where the request goes. A slot that no node serves: the home node, which says so. */
struct nodes_row *target_for(const struct client *client, const struct request *request);

/* True if the client's own lane must stay the client's, wherever it leads. */
bool target_is_held(const struct client *client);

#endif
