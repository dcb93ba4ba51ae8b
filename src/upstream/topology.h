/*
 * Which servers the upstream consists of, at one moment. Immutable but for what the nodes themselves learn.
 *
 * Counted by references, which workers and the main thread have; any thread. One server is a topology of one row.
 */
#ifndef WEIR_UPSTREAM_TOPOLOGY_H
#define WEIR_UPSTREAM_TOPOLOGY_H

#include <stdatomic.h>
#include <stddef.h>

#include "upstream/node.h"

struct topology_row {
    struct node *node; /* one reference; no two rows have the same */
};

struct topology {
    _Atomic unsigned holders;
    size_t n_rows; /* at least one; behind the home node they are replicas, where clients may read from these */
    struct topology_row rows[];
};

/* Of these nodes, each with a reference of its own; n > 0. Out of memory ends the process. */
struct topology *topology_new(struct node *const *nodes, size_t n);
struct topology *topology_get(struct topology *topology); /* one more holder; any thread */
void topology_put(struct topology *topology);             /* safe on NULL */

/*
 * The home node, the first row: where clients log in, and where commands go for which no other node can be told. Of a
 * master and its replicas it is the master; while there is none, a node without an address.
 */
#define TOPOLOGY_HOME 0

static inline struct node *topology_home(const struct topology *topology)
{
    return topology->rows[TOPOLOGY_HOME].node;
}

#endif
