/*
 * The lines that operators have set for single subjects, for display beside the limits of policies.
 */
#ifndef WEIR_ADMIN_OWN_LINES_H
#define WEIR_ADMIN_OWN_LINES_H

#include "admin/snapshot.h"
#include "base/text.h"

/*
 * Appends for example "5/s for user:ann, 9/s for user:bob and 3 more". Appends nothing if no
 * subject has a line of that limit.
 */
void own_lines_name(struct text *out, const struct snapshot *snapshot, const struct snapshot_limit *limit);

/* True if a subject has a line of that limit. */
bool own_lines_has(const struct snapshot *snapshot, const struct snapshot_limit *limit);

/* Returns how many commands of its subject the line refuses, per second. */
uint64_t own_lines_refused(const struct snapshot *snapshot, const struct snapshot_own *own);

#endif
