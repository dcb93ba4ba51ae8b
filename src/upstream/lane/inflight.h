/*
 * How much is under way on a worker's lanes to one node, as numbers: requests in flight, those of them that may wait in
 * Redis, and lanes with subscriptions.
 */
#ifndef WEIR_UPSTREAM_INFLIGHT_H
#define WEIR_UPSTREAM_INFLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "upstream/lane/calls.h"
#include "upstream/lane/lane_counts.h"

/* All calls that have not been sent are sent at now_ns. */
void inflight_send(struct lane_counts *counts, const struct calls *calls, uint64_t now_ns);

/* `n` requests of the call have been answered, or will not be. */
void inflight_end(struct lane_counts *counts, const struct call *call, uint32_t n);

/* Nor will any of these be: their lane is closed. */
void inflight_end_all(struct lane_counts *counts, const struct calls *calls);

/* A lane had subscriptions or not, and has some now or not. */
void inflight_subscribe(struct lane_counts *counts, bool was_subscribed, bool is_subscribed);

#endif
