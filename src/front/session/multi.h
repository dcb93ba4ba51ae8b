/*
 * MULTI on a cluster: weir answers MULTI, and the first command with a key decides the node.
 *
 *   MULTI              +OK, and nothing is sent
 *   SET k 1            MULTI and SET are sent to the node of k's slot, on a private lane: +QUEUED.
 *                      A first command without a key is sent to the default node
 *   SET k 2, PING ...  sent to the same node. The client gets +QUEUED also for a redirect, which
 *                      weir remembers
 *   EXEC               sent to the same node. After a redirect, MULTI and the queued requests are
 *                      first sent to the redirect's node; their replies are discarded
 *
 * A key of another slot is answered with CROSSSLOT, and EXEC then runs nothing. Keys watched before
 * MULTI decide the node. If the slot of the watched keys has moved to another node, EXEC answers
 * nil, as after any change of a watched key. weir cannot send more than QUEUE_MAX bytes to another
 * node: EXEC of a larger transaction answers EXECABORT after a redirect. weir refuses commands
 * inside MULTI that change how replies are counted (SUBSCRIBE, MONITOR, CLIENT REPLY).
 *
 * Redis answers MULTI before the next request is sent, so that a user without the right to MULTI
 * runs nothing. EXEC is sent when all queued requests are answered. The lane is given back after
 * EXEC. All functions run on the worker's thread.
 */
#ifndef WEIR_FRONT_MULTI_H
#define WEIR_FRONT_MULTI_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "upstream/lane/lane.h"

/* A step of route, before the gate. ROUTE_GOES_ON: the request is forwarded. */
__attribute__((warn_unused_result)) enum route multi_take(struct client *client,
                                                          struct request *request);

/*
 * Begins the transaction on `lane`, which is ready for the next request. ROUTE_GOES_ON: Redis has
 * answered MULTI on the lane.
 */
__attribute__((warn_unused_result)) enum route multi_begin_on(struct client *client,
                                                              struct lane *lane);

/* Records that a request was queued. */
void multi_note_queued(struct client *client, const struct request *request);

#endif
