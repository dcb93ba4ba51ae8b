/*
 * Where a request goes: to a lane, or nowhere because weir answers it. The long way, of every request that express
 * leaves.
 */
#ifndef WEIR_FRONT_ROUTE_H
#define WEIR_FRONT_ROUTE_H

#include "base/slice.h"
#include "front/client/client.h"
#include "front/route/request.h"
#include "resp/scan.h"

/* A whole request: `bytes` as it came, located by `scan`. */
__attribute__((warn_unused_result)) enum route route_request(struct client *client, const struct request_scan *scan,
                                                             struct slice bytes);

/*
 * A request that is known to be large, of which only the beginning is here. After ROUTE_TAKEN its passage is set,
 * and the bytes so far have been passed on (or dropped, if it was refused).
 */
__attribute__((warn_unused_result)) enum route route_large(struct client *client, const struct request_scan *scan,
                                                           struct slice bytes);

#endif
