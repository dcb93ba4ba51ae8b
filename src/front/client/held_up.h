/*
 * A wait of a client for its fair share (front/route/fair_share.h) is counted when it ends: for the worker, for its
 * subject, and for LIMIT TOP. Its next calls are known to have waited, for the slow log.
 */
#ifndef WEIR_FRONT_HELD_UP_H
#define WEIR_FRONT_HELD_UP_H

#include "front/client/client.h"

/* Its next request may go at last: it has waited since rider.arrived_ns. */
void held_up_end(struct client *client);

#endif
