/*
 * Writes a snapshot as one JSON object: the figures of the metrics, the heaviest subjects, the last
 * events, and the history of the last five minutes.
 */
#ifndef WEIR_ADMIN_STATS_H
#define WEIR_ADMIN_STATS_H

#include "admin/snapshot.h"
#include "base/text.h"

#define STATS_NO_HISTORY UINT64_MAX

/*
 * `after`: number of the point after which the history starts. 0: all points; STATS_NO_HISTORY: no
 * points.
 */
void stats_write(struct text *out, const struct snapshot *snapshot, uint64_t after);

#endif
