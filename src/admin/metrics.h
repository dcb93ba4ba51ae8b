/*
 * A snapshot as numbers with names and labels: Prometheus' text format 0.0.4, or CSV. No label has what a client said.
 */
#ifndef WEIR_ADMIN_METRICS_H
#define WEIR_ADMIN_METRICS_H

#include "admin/snapshot.h"
#include "base/text.h"

#define METRICS_RULES 128 /* limits with series of their own; the others share the rule "_other" */

enum metrics_format { METRICS_TEXT, METRICS_CSV };

/* Append all metrics, or with a name only that one. */
void metrics_write(struct text *out, const struct snapshot *snapshot, enum metrics_format format, const char *only);

#endif
