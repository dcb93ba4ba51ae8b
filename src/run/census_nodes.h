/*
 * The part of a snapshot that is about the servers of the upstream: a row for each, with what its lanes count. Main
 * thread.
 */
#ifndef WEIR_RUN_CENSUS_NODES_H
#define WEIR_RUN_CENSUS_NODES_H

#include <stdbool.h>

#include "admin/snapshot.h"
#include "run/census_sources.h"

/* False: out of memory. */
__attribute__((warn_unused_result)) bool census_take_nodes(struct snapshot *s, const struct census *census);

/* How the home node is. */
enum node_state census_home_state(const struct census *census);

#endif
