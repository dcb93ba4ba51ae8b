/*
 * Everything that one worker has to each node of its topology: lanes, doors, and a prober; and what all of these have
 * in common.
 *
 * The worker's thread only. Which nodes there are is settled at the start; closing is asynchronous, and ends with the
 * loop.
 */
#ifndef WEIR_UPSTREAM_NODES_H
#define WEIR_UPSTREAM_NODES_H

#include "upstream/doors.h"
#include "upstream/lanes.h"
#include "upstream/prober.h"
#include "upstream/topology.h"

struct nodes_row {
    struct lanes lanes;
    struct doors doors;
    struct prober prober;
};

struct nodes {
    struct commons commons;
    struct shed shed;       /* other workers need the connections that this one only keeps */
    struct nodes_row *rows; /* in the order of the topology's; heap */
    size_t n;
};

/* As lanes_init, for each of them. Out of memory ends the process. */
void nodes_init(struct nodes *nodes, struct loop *loop, const struct topology *topology, bool keeps_shared,
                const struct lanes_ops *ops, void *arg);

/* Weir's own login from now on, for lanes that are opened. Out of memory: nothing changes. */
void nodes_set_login(struct nodes *nodes, struct slice user, struct slice password);

/* Open what is kept open for new clients. */
void nodes_start(struct nodes *nodes);

/* As lanes_sweep, for each. */
void nodes_sweep(struct nodes *nodes);

/* Close every lane. No rider but the doors' may be left. */
void nodes_close(struct nodes *nodes);

/* After the loop has ended. */
void nodes_fini(struct nodes *nodes);

/* The row of topology_home. */
static inline struct nodes_row *nodes_home(const struct nodes *nodes)
{
    return &nodes->rows[0];
}

/* The row of the node that the lane leads to. */
static inline struct nodes_row *nodes_row_of(const struct lane *lane)
{
    return container_of(lanes_of(lane), struct nodes_row, lanes);
}

#endif
