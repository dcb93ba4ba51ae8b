/*
 * MULTI on a cluster: weir answers it, and the first command with a key decides the node.
 *
 *   MULTI              +OK, and nothing is sent
 *   SET k 1            MULTI, then SET go to the node of k's slot, on a lane of the client's own: +QUEUED. Without a
 *   key: to
 *                      the home node
 *   SET k 2, PING ...  the same node. A redirect in place of +QUEUED is +QUEUED to the client, and is remembered
 *   EXEC               to that node. After a redirect MULTI and all that is queued go first, to the node that the
 *                      redirect names; their replies are dropped
 *
 * A key of another slot hears CROSSSLOT, and EXEC runs nothing. Keys that are watched before MULTI decide the node;
 * if their
 * slot has gone from there, EXEC answers nil, as after any change of a watched key. More than QUEUE_MAX bytes cannot
 * be sent
 * to another node: after a redirect EXEC answers EXECABORT. What changes how replies are counted (SUBSCRIBE, MONITOR,
 * CLIENT REPLY) is refused inside MULTI.
 *
 * MULTI is answered before what follows is sent, so that a user that may not use MULTI runs nothing; and EXEC goes
 * when all that is queued has been answered. The lane is given back after EXEC. The worker's thread.
 */
#ifndef WEIR_FRONT_MULTI_H
#define WEIR_FRONT_MULTI_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "upstream/lane/lane.h"

/* As a step of route, before the gate. ROUTE_GOES_ON: the request is forwarded. */
__attribute__((warn_unused_result)) enum route multi_take(struct client *client, struct request *request);

/* In MULTI, and `lane` is there for the next request. ROUTE_GOES_ON: Redis has answered MULTI on it. */
__attribute__((warn_unused_result)) enum route multi_begin_on(struct client *client, struct lane *lane);

/* A request has been queued. */
void multi_note_queued(struct client *client, const struct request *request);

#endif
