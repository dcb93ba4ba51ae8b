/*
 * How much of each limit is used: by all together with scope PER_POLICY, else by the fullest among the heaviest
 * subjects (LIMIT TOP); others are not looked at. Main thread; takes the subjects' shard locks briefly.
 */
#ifndef WEIR_RUN_FULLNESS_H
#define WEIR_RUN_FULLNESS_H

#include "admin/snapshot.h"
#include "front/rules.h"
#include "limit/subjects.h"

/* Set `used` and `fullest` of snapshot->limits, which are in the order of their policies, using snapshot->tops. */
void fullness_look(struct snapshot *snapshot, const struct rules *rules, struct subjects *subjects,
                   struct subjects *key_subjects);

#endif
