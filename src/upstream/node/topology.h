/*
 * Which servers the upstream consists of, at one moment. Immutable but for what the nodes
 * themselves learn, and for slots, which a redirect may give to another row at once.
 *
 * Counted by references, which workers and the main thread have; any thread. One server is a
 * topology of one row. A master and its replicas: row 0 is the master. A cluster: rows 0 to
 * n_masters - 1 are the masters that serve slots, and behind them stand replicas, where clients may
 * read from these.
 */
#ifndef WEIR_UPSTREAM_TOPOLOGY_H
#define WEIR_UPSTREAM_TOPOLOGY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "upstream/node/node.h"
#include "upstream/node/slot_map.h"

struct topology_row {
    struct node *node; /* one reference; no two rows have the same */
    uint16_t master;   /* the row of its master; of a master its own */
    /* Of a cluster: as the node is announced, which redirects repeat. Copied, heap; NULL: not announced. */
    const char *host, *hostname;
    uint16_t port;
};

struct topology {
    _Atomic unsigned holders;
    size_t n_rows;          /* at least one; behind the masters they are replicas, where clients may read from these */
    size_t n_masters;       /* at least one; 1 unless it is a cluster */
    struct slot_map *slots; /* owned; NULL: no cluster */
    uint16_t pubsub;        /* the row where classic pub/sub is; TOPOLOGY_HOME unless it is a cluster */
    struct topology_row rows[];
};

/*
 * Of these nodes, each with a reference of its own; n > 0. All belong to the first. Out of memory
 * ends the process.
 */
struct topology *topology_new(struct node *const *nodes, size_t n);

/*
 * Of a cluster: the first n_masters of the rows are masters, 0 < n_masters <= n < SLOT_UNSERVED.
 * Takes over `slots`: each entry is below n_masters or SLOT_UNSERVED. Out of memory ends the
 * process.
 */
struct topology *topology_new_cluster(const struct topology_row *rows, size_t n, size_t n_masters,
                                      struct slot_map *slots);

struct topology *topology_get(struct topology *topology); /* one more holder; any thread */
void topology_put(struct topology *topology);             /* safe on NULL */

/*
 * The home node, the first row: where clients log in, and where commands go for which no other node
 * can be told. Of a master and its replicas it is the master; while there is none, a node without
 * an address. Of a cluster it is the same master as before, as long as that serves slots.
 */
#define TOPOLOGY_HOME 0

/*
 * Classic pub/sub (SUBSCRIBE, PSUBSCRIBE, PUBLISH, PUBSUB) of all a cluster's clients is at one master, so that the
 * counts
 * and the order of messages are those of one server: of the masters that serve slots the one with the least address as
 * text. The rule needs no agreement: workers, and other weirs that the cluster tells the same addresses, choose alike.
 */

static inline struct node *topology_home(const struct topology *topology)
{
    return topology->rows[TOPOLOGY_HOME].node;
}

#endif
