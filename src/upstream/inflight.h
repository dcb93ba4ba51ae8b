/*
 * What is under way on a worker's lanes, as numbers: requests in flight, those of them that may wait in Redis, and lanes
 * with subscriptions.
 */
#ifndef WEIR_UPSTREAM_INFLIGHT_H
#define WEIR_UPSTREAM_INFLIGHT_H

#include "upstream/lane.h"

/* All calls of the lane that have not been sent are sent at now_ns. */
void inflight_send(struct lane *lane, uint64_t now_ns);

/* `n` requests of the call have been answered, or will not be. */
void inflight_end(struct lane *lane, const struct call *call, uint32_t n);

/* Subscriptions have been confirmed: was_subscribed before. */
void inflight_subscribe(struct lane *lane, bool was_subscribed);

/* The lane is closed. */
void inflight_close(struct lane *lane);

#endif
