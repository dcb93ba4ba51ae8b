/*
 * The limits that operators see in a snapshot: what they have done, and how full they are. Main thread.
 */
#ifndef WEIR_RUN_CENSUS_LIMITS_H
#define WEIR_RUN_CENSUS_LIMITS_H

#include <stdbool.h>

#include "admin/snapshot.h"
#include "run/census_sources.h"

/* Those of policies and of single subjects; named ones. False: out of memory. */
__attribute__((warn_unused_result)) bool census_take_limits(struct snapshot *snapshot, const struct census *census);
__attribute__((warn_unused_result)) bool census_take_named(struct snapshot *snapshot, const struct census *census);

/* What limits of that id have done, on all workers. */
void census_sum_tallies(struct snapshot_limit *to, const struct census *census, uint16_t id);

/*
 * Set `used` and `fullest` of snapshot->limits, which are in the order of their policies, using snapshot->tops. How much
 * of a limit is used: by all together with scope PER_POLICY, else by the fullest among the heaviest subjects; others are
 * not looked at. Takes the subjects' shard locks briefly.
 */
void census_take_fullness(struct snapshot *snapshot, const struct census *census);

#endif
