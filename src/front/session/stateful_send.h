/*
 * Sends requests that have more than one plain reply, or that change the session. The stateful
 * commands are rows of stateful.c.
 */
#ifndef WEIR_FRONT_STATEFUL_SEND_H
#define WEIR_FRONT_STATEFUL_SEND_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "upstream/lane/lane.h"

/* True if the request can be sent as one plain call, without any other work. */
bool stateful_is_plain(const struct client *client, const struct request *request);

/*
 * True if all earlier calls must be answered before the request is sent. First reason: weir could
 * not tell the replies to earlier calls from the replies to the request. Second reason: the request
 * ends the counting of replies.
 */
bool stateful_must_wait(const struct client *client, const struct request *request);

/* Sends the request. False: out of memory. */
__attribute__((warn_unused_result)) bool stateful_send(struct client *client, struct lane *lane,
                                                       const struct request *request);

/*
 * Sends a request that Redis certainly refuses. The refusal voids the open transaction. The reply
 * is discarded. False: out of memory.
 */
__attribute__((warn_unused_result)) bool stateful_break_multi(struct client *client,
                                                              struct lane *lane);

#endif
