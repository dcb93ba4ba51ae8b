/*
 * What a client of a cluster subscribes to, and at which nodes.
 *
 *   SUBSCRIBE, PSUBSCRIBE   at the node of classic pub/sub (topology.pubsub), where PUBLISH and PUBSUB
 *                           go too: counts and order are those of one server. The cluster's bus
 *                           carries messages of other nodes there.
 *   __key...                keyspace notifications, which are local to a node: at all masters. One
 *                           confirmation, when all have confirmed; messages from all.
 *   SSUBSCRIBE              at the node of the channels' slot
 *
 * A client has at most two taps (front/session/tap.h) at a node: one for SSUBSCRIBE, one for the others. main
 * is never subscribed on a cluster: commands of a RESP3 subscriber go as if it were none, and a RESP2
 * one may only subscribe.
 *
 * One request at a time: it waits until all calls of the client are answered, and stays in the
 * intake (ROUTE_WAIT) until Redis has confirmed it, so that a redirect sends it again. The number
 * in each confirmation is the client's own: of shard channels, of all nodes together.
 *
 * A redirect is obeyed for the channels' own slot, within redirect-timeout; CLUSTERDOWN and the
 * like are waited for up to failover-wait. Every 20 ms it is tried again.
 *
 * A slot that moves: its node says sunsubscribe, unasked. The client does not hear that: the
 * channels have no tap for a while (orphans), and are subscribed to again at the slot's new node.
 * Messages may be lost in between, as Redis itself says. If that takes longer than
 * redirect-timeout and failover-wait the client is closed. A node that is lost closes its
 * subscribers, as Redis would; so does another node of classic pub/sub.
 *
 * A request of more than LARGE_REQUEST bytes is refused. Owner: extra.subscriptions; the worker's
 * thread.
 */
#ifndef WEIR_FRONT_SUBSCRIBE_H
#define WEIR_FRONT_SUBSCRIBE_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "front/client/session.h"

/* True if subscribe_run carries out or answers the request: on a cluster, outside MULTI. */
bool subscribe_takes(const struct client *client, const struct request *request);

/* As a step of route: it has not been charged. */
__attribute__((warn_unused_result)) enum route subscribe_run(struct client *client, struct request *request);

/*
 * True if the client's next request is with subscribe_run already: it has been charged, and must
 * go on there.
 */
bool subscribe_is_under_way(const struct client *client);

/*
 * True if the client's subscriptions keep it in another protocol: HELLO with this one (0: none) is
 * refused.
 */
static inline bool subscribe_is_bound(const struct client *client, uint8_t protocol)
{
    return client_extra(client)->n_subscribed > 0 && protocol != 0 && protocol != session_protocol(client);
}

/* RESET: ROUTE_GOES_ON: nothing of the client's subscriptions is left in Redis. */
__attribute__((warn_unused_result)) enum route subscribe_reset(struct client *client);

/* The client has read its output. Safe on all clients. */
void subscribe_catch_up(struct client *client);

/* The client is closed; its memory goes. Safe on all clients. */
void subscribe_leave(struct client *client);
void subscribe_free(struct client *client);

#endif
