/*
 * How a lane becomes ready: connected, greeted (greeting.h), and greeted anew for each later owner.
 * Bytes of a ready lane go to deliver.h.
 *
 * Used by lanes.c and lend.c. The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_LANE_OPEN_H
#define WEIR_UPSTREAM_LANE_OPEN_H

#include "upstream/lane/lane.h"

/*
 * Opens a connection for `key`, which is copied. `owner`: only for roles that have an owner.
 * Results arrive through base->ops. NULL: out of memory or descriptors, and *error is the error of
 * libuv.
 */
struct lane *lane_open(struct lane_base *base, const struct lane_key *key, enum lane_role role,
                       struct lane_user *owner, int *error);

/*
 * Lend an unused private lane to another owner, or keep the lane idle (`owner` is NULL). The lane
 * is greeted anew, and the owner's requests wait for the greeting's answer. `written`: see
 * lane_cover. False: out of memory.
 */
__attribute__((warn_unused_result)) bool lane_renew(struct lane *lane, const struct lane_key *key,
                                                    struct lane_user *owner, struct slice written);

#endif
