/*
 * Decides where a request goes: to a lane, or nowhere because weir answers it. The full path
 * takes every request that the fast path (fast_path.h) leaves.
 */
#ifndef WEIR_FRONT_ROUTE_H
#define WEIR_FRONT_ROUTE_H

#include "base/slice.h"
#include "front/client/client.h"
#include "front/route/request.h"
#include "resp/scan.h"

/* Routes a whole request: `bytes` as they came, located by `scan`. */
__attribute__((warn_unused_result)) enum route route_request(struct client *client,
                                                             const struct request_scan *scan,
                                                             struct slice bytes);

/*
 * Routes the beginning of a large request. After ROUTE_TAKEN the client's passage is set. The bytes
 * so far were passed on, or discarded if the request was refused.
 */
__attribute__((warn_unused_result)) enum route route_large(struct client *client,
                                                           const struct request_scan *scan,
                                                           struct slice bytes);

#endif
