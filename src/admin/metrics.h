/* Writes the figures of admin/metrics.def: as Prometheus text, as CSV, and as JSON members. */
#ifndef WEIR_ADMIN_METRICS_H
#define WEIR_ADMIN_METRICS_H

#include "admin/snapshot.h"
#include "base/text.h"

/*
 * number of limits with series of their own (chosen); all further limits share series with the name
 * "_other"
 */
#define METRICS_RULES 128

/*
 * The owner of a figure. Values up to OF_SUBJECTS mean weir itself, and name the part of the JSON
 * with the figure. From OF_LISTENER on the owner is one of several objects, named by a label.
 */
enum figure_of {
    OF_WEIR,
    OF_RELOADS,
    OF_CLIENTS,
    OF_TIMES,
    OF_SUBJECTS,
    OF_LISTENER,
    OF_CLASS, /* class of commands */
    OF_NODE,
    OF_UPSTREAM, /* one node; in the JSON index snapshot.n_nodes means all nodes together */
    OF_LIMIT,
    OF_NAMED,
};

enum metrics_format { METRICS_TEXT, METRICS_CSV };

/* Writes all metrics, or only the metric named `only` if `only` is not NULL. */
void metrics_write(struct text *out, const struct snapshot *snapshot, enum metrics_format format,
                   const char *only);

/*
 * Writes the JSON members of weir (`i` is 0), or of the listener, node, class or limit at index
 * `i`.
 */
void metrics_json(struct text *out, const struct snapshot *snapshot, enum figure_of of, size_t i);

#endif
