/*
 * Everything that one worker has to each node of its topology: lanes, auth lanes, and a prober; and what all of these
 * have in common.
 *
 * Nodes come and go with the topologies that the worker is handed. A row whose node is in none any more is retired: its
 * lanes end as they are done, and the last takes the row along. All rows of a worker have one fair queue
 * (upstream/fair/fair_queue.h), so that a client keeps its place in it wherever its commands go. The worker's thread
 * only, but for nodes_sum; closing is asynchronous, and ends with the loop.
 */
#ifndef WEIR_UPSTREAM_NODES_H
#define WEIR_UPSTREAM_NODES_H

#include "upstream/login/doors.h"
#include "upstream/lane/lanes.h"
#include "upstream/node/prober.h"
#include "upstream/node/topology.h"

struct nodes_row {
    struct lanes lanes;
    struct doors doors;
    struct prober prober;
    struct nodes *nodes;
    struct list in_retired; /* in nodes.retired; itself while its node is in the topology */
    bool is_ending;         /* retired, and no lane is left: its timers are being closed */
};

struct nodes {
    struct commons commons;
    struct shed shed;        /* other workers need the connections that this one only keeps */
    struct nodes_row **rows; /* in the order of the topology's; heap, and each of them too */
    size_t n;
    struct topology *topology; /* the one adopted; one reference */
    struct list retired;       /* rows of nodes that are in the topology no more */
    const struct lanes_ops *ops;
    void *arg;
    pthread_mutex_t lock;    /* of rows, n, retired and past: this thread writes them under it, others read them */
    struct lane_counts past; /* of rows that are gone */
};

/* As lanes_init, for each of them. Takes a reference of the topology. Out of memory ends the process. */
void nodes_init(struct nodes *nodes, struct loop *loop, struct topology *topology, bool is_private,
                const struct lanes_ops *ops, void *arg);

/*
 * The nodes are those of this topology from now on. Nodes that are new get rows, which open what is kept open for new
 * clients; rows of nodes that are no longer there are retired. Takes a reference. Out of memory ends the process.
 */
void nodes_adopt(struct nodes *nodes, struct topology *topology);

/* Weir's own login from now on, for lanes that are opened. Out of memory: nothing changes. */
void nodes_set_login(struct nodes *nodes, const struct own_login_words *words);

/* Open what is kept open for new clients. */
void nodes_start(struct nodes *nodes);

/* As lanes_sweep, for each. */
void nodes_sweep(struct nodes *nodes);

/* Close every lane. No rider but the doors' may be left. */
void nodes_close(struct nodes *nodes);

/* After the loop has ended. */
void nodes_fini(struct nodes *nodes);

/* What is counted of the lanes to the node in this row of the topology. */
struct nodes_sum {
    struct lane_counts counts; /* with those of nodes that had its place before, but for is_down */
    uint64_t oldest_ns;        /* how long the oldest call has waited */
};

/* Any thread. To what is in `sum`. */
void nodes_sum(const struct nodes *nodes, size_t row, struct nodes_sum *sum);

/* The same without nodes that had its place before. */
void nodes_sum_row(const struct nodes *nodes, size_t row, struct nodes_sum *sum);

/* The same of all rows together, with all nodes that were. */
void nodes_sum_all(const struct nodes *nodes, struct nodes_sum *sum);

/* The row of topology_home. */
static inline struct nodes_row *nodes_home(const struct nodes *nodes)
{
    return nodes->rows[0];
}

/* The row of the master that serves the slot; NULL: none does. Only of a cluster. */
static inline struct nodes_row *nodes_slot_row(const struct nodes *nodes, uint16_t slot)
{
    uint16_t row = slot_map_row(nodes->topology->slots, slot);
    return row != SLOT_UNSERVED ? nodes->rows[row] : NULL;
}

/* The row where classic pub/sub is. */
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
 * The row of the master that MOVED or ASK from a node names; NULL: no master of the topology has this address.
 */
struct nodes_row *nodes_row_named(const struct nodes *nodes, const struct redirect *redirect, const struct node *from);

#endif
