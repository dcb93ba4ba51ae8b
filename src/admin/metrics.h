/*
 * A snapshot as numbers with names and labels: Prometheus' text format 0.0.4, or CSV. No label has what a client said.
 */
#ifndef WEIR_ADMIN_METRICS_H
#define WEIR_ADMIN_METRICS_H

#include "admin/sheet.h"
#include "admin/snapshot.h"
#include "base/text.h"

/* Append all metrics, or with a name only that one. */
void metrics_write(struct text *out, const struct snapshot *snapshot, enum sheet_format format, const char *only);

#endif
