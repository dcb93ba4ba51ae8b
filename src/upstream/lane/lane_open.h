/*
 * How a lane comes to be ready: connected, greeted (greeting.h), and greeted anew for each later owner; from then on
 * its link's bytes are delivered (deliver.h).
 *
 * For those who keep lanes (lanes.c, lend.c). The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_LANE_OPEN_H
#define WEIR_UPSTREAM_LANE_OPEN_H

#include "upstream/lane/lane.h"

/*
 * A new connection for `key`, which is copied; `owner` goes with the roles that have one. base->ops hear of it. NULL:
 * out of memory or descriptors, and *error is libuv's for it.
 */
struct lane *lane_open(struct lane_base *base, const struct lane_key *key, enum lane_role role, struct rider *owner,
                       int *error);

/*
 * A private lane that is done with becomes that of another owner, or nobody's (NULL); it is greeted anew, and nothing
 * of the owner's goes before that has been answered. `written` as lane_cover. False: out of memory.
 */
__attribute__((warn_unused_result)) bool lane_renew(struct lane *lane, const struct lane_key *key, struct rider *owner,
                                                    struct slice written);

#endif
