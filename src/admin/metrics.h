/*
 * The figures of admin/metrics.def: as metrics in Prometheus' text format, as CSV, and as members of JSON.
 */
#ifndef WEIR_ADMIN_METRICS_H
#define WEIR_ADMIN_METRICS_H

#include "admin/snapshot.h"
#include "base/text.h"

#define METRICS_RULES 128 /* how many limits have series of their own; all others share the name "_other" */

/*
 * What has a figure: weir, by the part of the JSON where the figure stands; or, from OF_LISTENER on,
 * each of several, by a label with its name.
 */
enum figure_of {
    OF_WEIR,
    OF_RELOADS,
    OF_CLIENTS,
    OF_TIMES,
    OF_SUBJECTS,
    OF_LISTENER,
    OF_CLASS, /* of commands */
    OF_NODE,
    OF_UPSTREAM, /* each node; in the JSON also all nodes together, with the index snapshot.n_nodes */
    OF_LIMIT,
    OF_NAMED,
};

enum metrics_format { METRICS_TEXT, METRICS_CSV };

/* Writes all metrics, or the one named `only` unless that is NULL. */
void metrics_write(struct text *out, const struct snapshot *snapshot, enum metrics_format format, const char *only);

/* Writes the JSON members of weir (`i` is 0), or of the listener, node, class or limit at index `i`. */
void metrics_json(struct text *out, const struct snapshot *snapshot, enum figure_of of, size_t i);

#endif
