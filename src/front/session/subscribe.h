/*
 * What a client of a cluster subscribes to, and at which nodes.
 *
 *   SUBSCRIBE, PSUBSCRIBE   at the node of classic pub/sub (topology.pubsub). PUBLISH and PUBSUB go
 *                           to the same node, so counts and order are as on one server. The
 *                           cluster's bus carries messages of other nodes to this node.
 *   __key...                at all masters, because keyspace notifications are local to a node. The
 *                           client gets one confirmation when all masters have confirmed, and
 *                           the messages of all masters.
 *   SSUBSCRIBE              at the node of the channels' slot
 *
 * A client has at most two taps (front/session/tap.h) at a node: one for SSUBSCRIBE, one for
 * SUBSCRIBE and PSUBSCRIBE. The main side is never subscribed on a cluster. Commands of a RESP3
 * subscriber therefore take the same route as without subscriptions. A RESP2 subscriber may only
 * subscribe.
 *
 * A client has one subscription request at a time. The request waits until all calls of the client
 * are answered. Until Redis has confirmed the request, the request stays in the client's input
 * (ROUTE_WAIT), so that weir can send the request again after a redirect. Each confirmation
 * contains the number of the client's own subscriptions. For shard channels this number covers all
 * nodes.
 *
 * weir follows a redirect for the channels' own slot, within redirect-timeout. After CLUSTERDOWN
 * and other errors of a missing node, weir sends the request again every 20 ms, up to
 * failover-wait.
 *
 * When a slot moves, its node sends an unsolicited sunsubscribe, which the client does not get. The
 * channels are orphans: they have no tap until weir has subscribed them again at the slot's new
 * node. Messages between the two subscriptions may be lost, as without weir. After redirect-timeout
 * plus failover-wait, weir closes a client that still has orphans. A lost node closes its
 * subscribers, as Redis would. A change of the node of classic pub/sub closes all classic
 * subscribers.
 *
 * A request of more than LARGE_REQUEST bytes is refused. The state is extra.subscriptions. All
 * functions run on the worker's thread.
 */
#ifndef WEIR_FRONT_SUBSCRIBE_H
#define WEIR_FRONT_SUBSCRIBE_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "front/client/session.h"

/* True if subscribe_run carries out or answers the request: on a cluster, outside MULTI. */
bool subscribe_takes(const struct client *client, const struct request *request);

/* A step of route, for a request that is not charged yet. */
__attribute__((warn_unused_result)) enum route subscribe_run(struct client *client,
                                                             struct request *request);

/*
 * True if subscribe_run has begun the client's next request. The request was charged and must
 * continue in subscribe_run.
 */
bool subscribe_is_under_way(const struct client *client);

/*
 * True if HELLO with this protocol (0: none) is refused, because the client has subscriptions in
 * another protocol.
 */
static inline bool subscribe_is_bound(const struct client *client, uint8_t protocol)
{
    return client_extra(client)->n_subscribed > 0 && protocol != 0 &&
           protocol != session_protocol(client);
}

/* Ends the client's subscriptions, for RESET. ROUTE_GOES_ON: no subscription is left in Redis. */
__attribute__((warn_unused_result)) enum route subscribe_reset(struct client *client);

/* Resumes the taps after a slow client has read its output. Safe on all clients. */
void subscribe_catch_up(struct client *client);

/*
 * subscribe_leave: called when the client is closed. subscribe_free: frees the memory. Both
 * functions are safe on all clients.
 */
void subscribe_leave(struct client *client);
void subscribe_free(struct client *client);

#endif
