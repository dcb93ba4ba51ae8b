/*
 * The rows of the topology of a cluster, as they follow from what is known of it.
 *
 * Masters that serve slots come first, and of these the home: the same member as before, while it serves slots and is
 * not lost and failed; then the replicas that clients may read from. A slot that no node with an address serves has no
 * row. A worker may have changed a slot's row by a redirect: its change stays while the view wants another node asked.
 *
 * Main thread. Sends nothing.
 */
#ifndef WEIR_RUN_CLUSTER_ROWS_H
#define WEIR_RUN_CLUSTER_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "run/topology/cluster.h"
#include "upstream/node/topology.h"

struct cluster_rows {
    struct member **members;   /* of each row; heap; NULL of a home without an address */
    struct topology_row *rows; /* heap; the texts are the view's; a node has no reference of its own */
    size_t n, n_masters;       /* 0: no node that is known serves slots */
    struct slot_map *slots;    /* to be handed to a topology, or freed */
};

/* `home`: the member in row 0 now; NULL: none is. `now` is the topology that workers have. cluster_rows_fini is to follow. */
void cluster_rows_make(struct cluster_rows *rows, const struct cluster *cluster, const struct member *home,
                       const struct topology *now);

/* True if workers would see nothing new in it. */
bool cluster_rows_are_same(const struct cluster_rows *rows, const struct topology *now);

void cluster_rows_fini(struct cluster_rows *rows);

/*
 * Tell the view of each slot that workers have given to another row than `told` has, which is brought up to date: row
 * numbers of `now`, SLOT_COUNT of them. True: there is one.
 */
bool cluster_rows_note_redirects(struct cluster *cluster, const struct topology *now, uint16_t *told);

#endif
