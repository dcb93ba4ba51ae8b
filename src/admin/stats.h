/*
 * A snapshot as one JSON object: what metrics have, the heaviest subjects, and the last events.
 */
#ifndef WEIR_ADMIN_STATS_H
#define WEIR_ADMIN_STATS_H

#include "admin/snapshot.h"
#include "base/text.h"

void stats_write(struct text *out, const struct snapshot *snapshot);

#endif
