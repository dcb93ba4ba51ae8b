/*
 * How much of each limit is used: by the policy as a whole where all share it, else by the fullest of the heaviest
 * subjects. Of a subject that is not among those nothing is known. Main thread; takes the subjects' shard locks briefly.
 */
#ifndef WEIR_RUN_FULLNESS_H
#define WEIR_RUN_FULLNESS_H

#include "admin/snapshot.h"
#include "limit/policy.h"
#include "limit/subjects.h"

/* Sets `used` and `fullest` of the snapshot's limits, which are those of `policies` in their order, from its tops. */
void fullness_look(struct snapshot *snapshot, const struct policies *policies, struct subjects *subjects,
                   struct subjects *key_subjects);

#endif
