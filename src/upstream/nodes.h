/*
 * The lanes of one worker to each node of its topology.
 *
 * One thread. Which nodes there are is settled at the start; closing is asynchronous, and ends with the loop.
 */
#ifndef WEIR_UPSTREAM_NODES_H
#define WEIR_UPSTREAM_NODES_H

#include "upstream/lanes.h"
#include "upstream/topology.h"

struct nodes {
    struct lanes *lanes; /* of each row of the topology, in its order; heap */
    size_t n;
};

/* As lanes_init, for each of them. Out of memory ends the process. */
void nodes_init(struct nodes *nodes, struct loop *loop, const struct topology *topology, bool keeps_shared,
                const struct lanes_ops *ops, void *arg);

/* As lanes_set_login, lanes_start and lanes_close, for each. */
void nodes_set_login(struct nodes *nodes, struct slice user, struct slice password);
void nodes_start(struct nodes *nodes);
void nodes_close(struct nodes *nodes);

/* After the loop has ended. */
void nodes_fini(struct nodes *nodes);

/* The lanes to topology_home. */
static inline struct lanes *nodes_home(const struct nodes *nodes)
{
    return &nodes->lanes[0];
}

#endif
