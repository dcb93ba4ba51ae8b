/*
 * The short way on a cluster: plain commands of one key that lie in memory as a whole go to the
 * places of their slots, in as few steps as can be.
 *
 * Only where each needs nothing but to be sent: its place has a lane that is ready, no slot has
 * changed its node since what is in flight was sent, and no hop is held. Everything else goes the
 * long way, from the first request on that needs it. The worker's thread.
 */
#ifndef WEIR_FRONT_EXPRESS_SLOTS_H
#define WEIR_FRONT_EXPRESS_SLOTS_H

#include <stddef.h>

#include "base/slice.h"
#include "front/client/client.h"
#include "front/route/fair_share.h"
#include "front/route/request.h"
#include "resp/scan.h"

/*
 * As express_run, of a client of a cluster for which express_run has found nothing that burdens it.
 */
enum route express_slots_run(struct client *client, const struct request_limits *limits, struct slice bytes,
                             size_t *used, struct pace *pace);

#endif
