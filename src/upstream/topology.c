#include "upstream/topology.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

struct topology *topology_new(struct node *const *nodes, size_t n)
{
    assert(n > 0);
    struct topology *topology = mem_alloc(sizeof *topology + n * sizeof topology->rows[0]);
    atomic_init(&topology->holders, 1);
    topology->n_rows = n;
    for (size_t i = 0; i < n; i++)
        topology->rows[i].node = node_get(nodes[i]);
    return topology;
}

struct topology *topology_get(struct topology *topology)
{
    atomic_fetch_add_explicit(&topology->holders, 1, memory_order_relaxed);
    return topology;
}

void topology_put(struct topology *topology)
{
    if (topology == NULL || atomic_fetch_sub_explicit(&topology->holders, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < topology->n_rows; i++)
        node_put(topology->rows[i].node);
    free(topology);
}
