/*
 * The fast path of most requests: plain commands of a client in no special state, to the shared
 * lane that the client used last. On a cluster, the fast path uses the shared lane that the client
 * used last at the slot's node.
 *
 * The fast path and the full path (front/route/route.h) decide alike. A request that is not plain
 * is left to the full path. Checks that hold for all buffered requests are made once.
 */
#ifndef WEIR_FRONT_FAST_PATH_H
#define WEIR_FRONT_FAST_PATH_H

#include <stddef.h>

#include "base/slice.h"
#include "front/client/client.h"
#include "front/route/fair_share.h"
#include "front/route/request.h"
#include "resp/scan.h"

/*
 * Takes requests from `bytes`, which begin at a request, while they fit the fast path and
 * pace->left allows. *used is the number of bytes taken. After ROUTE_TAKEN the next request must
 * take the full path, or is incomplete, or pace->left is 0.
 */
__attribute__((warn_unused_result)) enum route fast_path_run(struct client *client,
                                                             const struct request_limits *limits,
                                                             struct slice bytes, size_t *used,
                                                             struct pace *pace);

#endif
