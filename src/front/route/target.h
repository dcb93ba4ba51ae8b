/*
 * On a cluster: the node for a client's next request by its main side (client.lane_user).
 *
 *     request with keys of one slot                 the slot's master
 *     PUBLISH, PUBSUB                               the node of classic pub/sub
 *     any other request without keys                the private lane's node, else the default node
 *     any request of a client tied to its lane      that lane's node
 *
 * A client is tied to its lane by MULTI, watched keys, subscriptions, MONITOR, and replies that
 * weir does not count. Any other state of the lane ends when the client's requests go to another
 * node.
 *
 * target_set sets the node for each request before a lane is chosen. The client's proof, outage and
 * lane are then the ones for this node. With one server, or a master and its replicas, the node is
 * always the default node. Thread: the worker's.
 */
#ifndef WEIR_FRONT_TARGET_H
#define WEIR_FRONT_TARGET_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"

/*
 * Returns the row of the client's target, never NULL. Without a target, or if the target has left
 * the topology, the row is the default node's.
 */
struct nodes_row *target_row(const struct client *client);

/* Sets the target of the client's next request. False: out of memory, and the client is closed. */
__attribute__((warn_unused_result)) bool target_set(struct client *client, struct nodes_row *row);

/*
 * As keys_slot. For a request too large to be buffered, returns the slot of the first key: Redis
 * checks the other keys.
 */
int32_t target_slot(const struct request *request);

/*
 * Returns the row to which the request goes. If no node serves the slot, returns the default node's
 * row: the default node answers with the error.
 */
struct nodes_row *target_for(const struct client *client, const struct request *request);

/* True if the client must keep its private lane, wherever the lane leads. */
bool target_is_held(const struct client *client);

#endif
