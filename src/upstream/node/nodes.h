/*
 * The state of one worker for each node of the topology: lanes, auth lanes, and a prober. Also the
 * state that all rows share.
 *
 * Nodes come and go with new topologies. The row of a node that has left the topology is retired.
 * Lanes of a retired row close when their calls are answered, and the row is freed with the last
 * lane. All rows of a worker share one fair queue (upstream/fair/fair_queue.h): a client keeps its
 * position in the queue, whichever nodes its commands go to. The worker's thread only, except
 * nodes_sum. Lanes close asynchronously: the event loop completes a close.
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
    struct list in_retired; /* in nodes.retired; empty while the row's node is in the topology */
    bool is_ending;         /* retired, and no lane is left: the row's timers are being closed */
};

struct nodes {
    struct worker_lanes worker_lanes;
    struct shed shed;        /* other workers need idle connections of this worker */
    struct nodes_row **rows; /* in the order of topology->rows; heap, as is each row */
    size_t n;
    struct topology *topology; /* the present topology; one reference */
    struct list retired;       /* rows of nodes that have left the topology */
    const struct lanes_ops *ops;
    void *arg;
    /*
     * protects rows, n, retired and past: the worker writes these fields, and any thread reads
     * these fields
     */
    pthread_mutex_t lock;
    struct lane_counts past; /* counts of freed rows */
};

/*
 * Like lanes_init, for each row. Takes a reference of the topology. Out of memory ends the process.
 */
void nodes_init(struct nodes *nodes, struct loop *loop, struct topology *topology, bool is_private,
                const struct lanes_ops *ops, void *arg);

/*
 * Switch to this topology. New nodes get rows, which open shared lanes for new clients. Rows of
 * removed nodes are retired. Takes a reference of the topology. Out of memory ends the process.
 */
void nodes_adopt(struct nodes *nodes, struct topology *topology);

/* Set weir's own login for new lanes. Out of memory: nothing changes. */
void nodes_set_login(struct nodes *nodes, const struct own_login_words *words);

/* Open the shared lanes for new clients. */
void nodes_start(struct nodes *nodes);

/* Like lanes_sweep, for each row. */
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

/* Adds the counters to `sum`. Any thread. */
void nodes_sum(const struct nodes *nodes, size_t row, struct nodes_sum *sum);

/* Like nodes_sum, without the nodes that the row had before. */
void nodes_sum_row(const struct nodes *nodes, size_t row, struct nodes_sum *sum);

/* Like nodes_sum, for all rows together, with all former nodes. */
void nodes_sum_all(const struct nodes *nodes, struct nodes_sum *sum);

/* The row of topology_default_node. */
static inline struct nodes_row *nodes_default_row(const struct nodes *nodes)
{
    return nodes->rows[0];
}

/*
 * The row of the master that serves the slot; NULL: no master serves the slot. Called only in a
 * cluster.
 */
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
struct nodes_row *nodes_row_named(const struct nodes *nodes, const struct redirect *redirect,
                                  const struct node *from);

#endif
