/*
 * Redis Cluster: what one node knows, and which commands it refuses because of that.
 *
 * There are only masters, and no cluster bus: a node learns of the other nodes by redis_own and
 * similar calls of redis.h. The order of refusals is that of getNodeByQuery.
 */
#ifndef WEIR_SIM_REDIS_CLUSTER_H
#define WEIR_SIM_REDIS_CLUSTER_H

#include "tests/sim/redis_state.h"

void cluster_free(struct redis *redis);

/* True: the command's keys are not, or not all, at this node, and the error is replied. */
bool cluster_refuses(struct redis_conn *conn, const struct slice *argv, size_t argc);

#endif
