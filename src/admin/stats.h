/*
 * A snapshot as one JSON object: what metrics have, the heaviest subjects, the last events,
 * and how the last five minutes were.
 */
#ifndef WEIR_ADMIN_STATS_H
#define WEIR_ADMIN_STATS_H

#include "admin/snapshot.h"
#include "base/text.h"

#define STATS_NO_HISTORY UINT64_MAX

/* Of the history the points behind number `after`; 0: all. */
void stats_write(struct text *out, const struct snapshot *snapshot, uint64_t after);

#endif
