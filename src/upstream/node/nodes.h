/*
 * Everything that one worker has to each node of its topology: lanes, auth lanes, and a prober,
 * with their shared state.
 *
 * Nodes come and go with new topologies. The row of a node that has left the topology is retired.
 * Lanes of a retired row close when done, and the row is freed with the last lane. All rows of a
 * worker share one fair queue (upstream/fair/fair_queue.h): a client keeps its position there,
 * whichever nodes its commands go to. The worker's thread only, except nodes_sum. Closing is
 * asynchronous: the event loop completes it.
 */
#ifndef WEIR_UPSTREAM_NODES_H
#define WEIR_UPSTREAM_NODES_H

#include "upstream/login/auth_lanes.h"
#include "upstream/lane/lanes.h"
#include "upstream/node/prober.h"
#include "upstream/node/topology.h"

struct nodes_row {
    struct lanes lanes;
    struct auth_lanes auth_lanes;
    struct prober prober;
    struct nodes *nodes;
    struct list in_retired; /* in nodes.retired; empty while its node is in the topology */
    bool is_ending;         /* retired, and no lane is left: its timers are being closed */
};

struct nodes {
    struct worker_lanes worker_lanes;
    struct shed shed;        /* other workers need idle connections of this one */
    struct nodes_row **rows; /* in the order of the topology's; heap, as each row */
    size_t n;
    struct topology *topology; /* the present one; one reference */
    struct list retired;       /* rows of nodes that have left the topology */
    const struct lanes_ops *ops;
    void *arg;
    /* protects rows, n, retired and past: the worker writes them, any thread reads them */
    pthread_mutex_t lock;
    struct lane_counts past; /* of freed rows */
};

/*
 * As lanes_init, for each row. Takes a reference of the topology. Out of memory ends the process.
 */
void nodes_init(struct nodes *nodes, struct loop *loop, struct topology *topology, bool is_private,
                const struct lanes_ops *ops, void *arg);

/*
 * Switch to this topology. New nodes get rows, which open shared lanes for new clients. Rows of
 * removed nodes are retired. Takes a reference. Out of memory ends the process.
 */
void nodes_adopt(struct nodes *nodes, struct topology *topology);

/* Set weir's own login for new lanes. Out of memory: nothing changes. */
void nodes_set_login(struct nodes *nodes, const struct own_login_words *words);

/* Open the shared lanes for new clients. */
void nodes_start(struct nodes *nodes);

/* As lanes_sweep, for each row. */
void nodes_sweep(struct nodes *nodes);

/* Close every lane. Only lane users of auth lanes may be left. */
void nodes_close(struct nodes *nodes);

/* Call after the event loop has ended. */
void nodes_fini(struct nodes *nodes);

/* Counters of the lanes to the node in one row of the topology. */
struct nodes_sum {
    struct lane_counts counts; /* includes the nodes that the row had before, except is_down */
    uint64_t oldest_ns;        /* how long the oldest call has waited */
};

/* Adds to `sum`. Any thread. */
void nodes_sum(const struct nodes *nodes, size_t row, struct nodes_sum *sum);

/* As nodes_sum, without the nodes that the row had before. */
void nodes_sum_row(const struct nodes *nodes, size_t row, struct nodes_sum *sum);

/* As nodes_sum, for all rows together, with all former nodes. */
void nodes_sum_all(const struct nodes *nodes, struct nodes_sum *sum);

/* The row of topology_default_node. */
static inline struct nodes_row *nodes_default_row(const struct nodes *nodes)
{
    return nodes->rows[0];
}

/* The row of the master that serves the slot; NULL: none. Only in a cluster. */
static inline struct nodes_row *nodes_slot_row(const struct nodes *nodes, uint16_t slot)
{
    uint16_t row = slot_map_row(nodes->topology->slots, slot);
    return row != SLOT_UNSERVED ? nodes->rows[row] : NULL;
}

/* The row of classic pub/sub. */
static inline struct nodes_row *nodes_pubsub_row(const struct nodes *nodes)
{
    return nodes->rows[nodes->topology->pubsub];
}

/* The row of the node that the lane leads to. */
static inline struct nodes_row *nodes_row_of(const struct lane *lane)
{
    return container_of(lanes_of(lane), struct nodes_row, lanes);
}

/*
 * The row of the master that MOVED or ASK from a node names; NULL: no master of the topology has
 * this address.
 */
struct nodes_row *nodes_row_named(const struct nodes *nodes, const struct redirect *redirect, const struct node *from);

#endif
