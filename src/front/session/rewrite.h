/*
 * Requests that travel in weir's words instead of the client's, so that they cannot do more than weir has read of
 * them: HELLO without its login, CLIENT TRACKING without other people's connections.
 */
#ifndef WEIR_FRONT_REWRITE_H
#define WEIR_FRONT_REWRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "upstream/lane/lane.h"

/* The protocol that HELLO is sent with on that lane; 0: none. */
uint8_t rewrite_protocol(const struct lane *lane, const struct hello *hello);

/* Each sends the request, whose call is the lane's newest. False: out of memory. */

/* Outside MULTI. */
__attribute__((warn_unused_result)) bool rewrite_hello(struct client *client, struct lane *lane,
                                                       const struct hello *hello);

__attribute__((warn_unused_result)) bool rewrite_tracking(struct client *client, struct lane *lane,
                                                          const struct request *request);

#endif
