/*
 * Writes a snapshot as metrics: Prometheus' text format 0.0.4, or CSV. No label value comes from a client.
 */
#ifndef WEIR_ADMIN_METRICS_H
#define WEIR_ADMIN_METRICS_H

#include "admin/sheet.h"
#include "admin/snapshot.h"
#include "base/text.h"

/* Append all metrics, or only the one named `only` (NULL: all). */
void metrics_write(struct text *out, const struct snapshot *snapshot, enum sheet_format format, const char *only);

#endif
