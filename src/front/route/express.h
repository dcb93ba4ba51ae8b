/*
 * The short way of most requests: plain commands of a client in no special state, to the shared lane it used last.
 *
 * It decides nothing that the long way (route) would decide otherwise: whatever is not as plain as that is left to it.
 * What holds for all requests that lie one behind the other is looked at once.
 */
#ifndef WEIR_FRONT_EXPRESS_H
#define WEIR_FRONT_EXPRESS_H

#include <stddef.h>

#include "base/slice.h"
#include "front/client/client.h"
#include "front/route/fair_share.h"
#include "front/route/request.h"
#include "resp/scan.h"

/*
 * Take requests from the beginning of `bytes`, which is where one begins, for as long as they can go this way, and no
 * more than pace->left of them; *used tells how many bytes that were. After ROUTE_TAKEN what follows them must go the
 * long way, or is not whole, unless pace->left is 0.
 */
__attribute__((warn_unused_result)) enum route express_run(struct client *client, const struct request_limits *limits,
                                                           struct slice bytes, size_t *used, struct pace *pace);

#endif
