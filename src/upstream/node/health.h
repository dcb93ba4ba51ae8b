/*
 * Whether a node is up, as its lanes show: the reaction to a lane that is ready, failed or closed,
 * and the next retry.
 *
 * A failed lane concerns only its clients while other lanes are up. When lanes for newcomers cannot
 * be opened, the node is away. While the node is away, every request is answered with an error at
 * once, and a connection is retried in the background, with back-off. The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_HEALTH_H
#define WEIR_UPSTREAM_HEALTH_H

#include "upstream/lane/lanes.h"

/* The value of lanes->base.ops. */
extern const struct lane_ops health_ops;

/* Open the shared lane for new clients, if lanes->keeps_shared. */
void health_start(struct lanes *lanes);

/* Retry the node if a retry is due. Returns true if another retry will be due. */
bool health_retry(struct lanes *lanes, uint64_t now_ns);

#endif
