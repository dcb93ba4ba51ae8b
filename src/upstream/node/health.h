/*
 * Whether a node is there, as its lanes tell: what is done when a lane is ready, has failed or is closed, and when the
 * node is tried again.
 *
 * A lane that fails is that client's affair as long as others stand; when newcomers cannot be let in any more the node
 * is away, every request is answered so at once, and a connection is tried in the background, later and later. The
 * worker's thread only.
 */
#ifndef WEIR_UPSTREAM_HEALTH_H
#define WEIR_UPSTREAM_HEALTH_H

#include "upstream/lane/lanes.h"

/* For lanes->base.ops. */
extern const struct lane_ops health_ops;

/* Open what is kept open for new clients. */
void health_start(struct lanes *lanes);

/* Try the node again if that is due. Will it be, later? */
bool health_retry(struct lanes *lanes, uint64_t now_ns);

#endif
