/*
 * A lane of weir's own, asked for again whenever it is needed: what doors, the script connection and the release
 * listener have in common. Embedded in each; the worker's thread only.
 */
#ifndef WEIR_UPSTREAM_WEIR_LANE_H
#define WEIR_UPSTREAM_WEIR_LANE_H

#include <stdbool.h>
#include <stddef.h>

#include "upstream/lane/lanes.h"

struct weir_lane {
    struct lanes *lanes; /* to the node that it leads to */
    struct rider rider;
    struct link hollow; /* no connection: a link only to be woken, for the rider */
    bool is_open;       /* rider.lane is the lane, or is being opened */
};

/* For the rider_ops' to_link. */
#define WEIR_LANE_TO_LINK ((ptrdiff_t)offsetof(struct weir_lane, hollow) - (ptrdiff_t)offsetof(struct weir_lane, rider))

/* Of zeroed memory. Both tables outlive it; link_ops has only an on_wake. */
void weir_lane_init(struct weir_lane *base, struct lanes *lanes, const struct rider_ops *rider_ops,
                    const struct link_ops *link_ops);

/* Open a connection that logs in so; NULL: not at all. False: there may be none now, see lanes_why_none. */
__attribute__((warn_unused_result)) bool weir_lane_open(struct weir_lane *base, struct login *login,
                                                        enum lane_role role);

/* The rider has heard that the lane is gone, or could not be had. */
void weir_lane_lost(struct weir_lane *base);

/* Let it go. Nothing follows. */
void weir_lane_close(struct weir_lane *base);

/* The same, for good. */
void weir_lane_fini(struct weir_lane *base);

#endif
