#include "upstream/nodes.h"

#include <stdlib.h>

#include "base/mem.h"

void nodes_init(struct nodes *nodes, struct loop *loop, const struct topology *topology, bool keeps_shared,
                const struct lanes_ops *ops, void *arg)
{
    nodes->n = topology->n_rows;
    nodes->lanes = mem_zalloc(nodes->n, sizeof *nodes->lanes);
    for (size_t i = 0; i < nodes->n; i++)
        lanes_init(&nodes->lanes[i], loop, topology->rows[i].node, keeps_shared, ops, arg);
}

void nodes_set_login(struct nodes *nodes, struct slice user, struct slice password)
{
    for (size_t i = 0; i < nodes->n; i++)
        lanes_set_login(&nodes->lanes[i], user, password);
}

void nodes_start(struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++)
        lanes_start(&nodes->lanes[i]);
}

void nodes_close(struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++)
        lanes_close(&nodes->lanes[i]);
}

void nodes_fini(struct nodes *nodes)
{
    free(nodes->lanes);
}
