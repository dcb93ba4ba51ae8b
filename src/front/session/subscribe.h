/*
 * What a client of a cluster subscribes to, and at which nodes.
 *
 *   SUBSCRIBE, PSUBSCRIBE   at the node of classic pub/sub (topology.pubsub). PUBLISH and PUBSUB go
 *                           to that node, too, so counts and order are those of one server. The
 *                           cluster's bus carries messages of other nodes to that node.
 *   __key...                at all masters, because keyspace notifications are local to a node. The
 *                           client gets one confirmation when all masters have confirmed, and
 *                           the messages of all masters.
 *   SSUBSCRIBE              at the node of the channels' slot
 *
 * A client has at most two taps (front/session/tap.h) at a node: one for SSUBSCRIBE, one for
 * SUBSCRIBE and PSUBSCRIBE. The main side is never subscribed on a cluster. Commands of a RESP3
 * subscriber therefore go as without subscriptions. A RESP2 subscriber may only subscribe.
 *
 * A client has one subscription request at a time. The request waits until all calls of the client
 * are answered. Then the request stays in the intake (ROUTE_WAIT) until Redis has confirmed it, so
 * that it can be sent again after a redirect. Each confirmation contains the number of the client's
 * own subscriptions. For shard channels this number covers all nodes.
 *
 * A redirect is followed for the channels' own slot, within redirect-timeout. After CLUSTERDOWN and
 * the like the request is sent again every 20 ms, up to failover-wait.
 *
 * When a slot moves, its node sends an unsolicited sunsubscribe, which the client does not get. The
 * channels have no tap for a while (orphans), and are subscribed again at the slot's new node.
 * Messages between the two subscriptions may be lost, as Redis itself says. After redirect-timeout
 * and failover-wait together the client is closed. A lost node closes its subscribers, as Redis
 * would. A change of the node of classic pub/sub closes its subscribers, too.
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
 * subscribe_leave is called when the client is closed. subscribe_free frees the memory. Both
 * functions are safe on all clients.
 */
void subscribe_leave(struct client *client);
void subscribe_free(struct client *client);

#endif
