/*
 * Redis Cluster: what one node knows of it, and which commands it refuses for that.
 *
 * Masters alone, and no bus: what a node hears of the others its owner tells it (redis_own and its kin in redis.h). The
 * order of refusals is that of getNodeByQuery.
 */
#ifndef WEIR_SIM_REDIS_CLUSTER_H
#define WEIR_SIM_REDIS_CLUSTER_H

#include "tests/sim/redis_state.h"

void cluster_free(struct redis *redis);

/* True: the command is not for this node, or no longer whole there, and has been answered. */
bool cluster_refuses(struct redis_conn *conn, const struct slice *argv, size_t argc);

#endif
