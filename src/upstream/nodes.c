#include "upstream/nodes.h"

#include <stdlib.h>

#include "base/mem.h"
#include "upstream/health.h"
#include "upstream/timers.h"

static bool close_idle(struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++)
        if (lanes_close_idle(&nodes->rows[i].lanes))
            return true;
    return false;
}

/*
 * Shared lanes that nobody remembers count for somebody still. Of those that are kept for the next as many as are
 * wanted, and no more: what is closed without need is opened again by whoever would have come next.
 */
static void on_shed(uv_async_t *async)
{
    struct nodes *nodes = async->data;
    struct room *room = &nodes->commons.upstream->room;
    for (size_t i = 0; i < nodes->n; i++)
        while (lanes_close_unleased(&nodes->rows[i].lanes, 0))
            ;
    while (room_is_wanted(room))
        if (!close_idle(nodes)) {
            room_want(room); /* some other worker keeps one, or will */
            return;
        }
}

static void init_row(struct nodes *nodes, struct nodes_row *row, struct node *node, bool keeps_shared,
                     const struct lanes_ops *ops, void *arg)
{
    lanes_init(&row->lanes, &nodes->commons, node, keeps_shared, ops, arg);
    row->lanes.base.ops = &health_ops;
    timers_init(&row->lanes);
    doors_init(&row->doors, &row->lanes);
    prober_init(&row->prober, &row->lanes);
}

void nodes_init(struct nodes *nodes, struct loop *loop, const struct topology *topology, bool keeps_shared,
                const struct lanes_ops *ops, void *arg)
{
    struct upstream *upstream = topology_home(topology)->upstream;
    commons_init(&nodes->commons, loop, upstream);
    nodes->n = topology->n_rows;
    nodes->rows = mem_zalloc(nodes->n, sizeof *nodes->rows);
    for (size_t i = 0; i < nodes->n; i++)
        init_row(nodes, &nodes->rows[i], topology->rows[i].node, keeps_shared, ops, arg);
    uv_async_init(&loop->uv, &nodes->shed.async, on_shed);
    nodes->shed.async.data = nodes;
    upstream_enter_shed(upstream, &nodes->shed);
}

void nodes_set_login(struct nodes *nodes, struct slice user, struct slice password)
{
    commons_set_login(&nodes->commons, user, password);
    for (size_t i = 0; i < nodes->n; i++)
        nodes->rows[i].lanes.login_refused_ns = 0;
}

void nodes_start(struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++)
        health_start(&nodes->rows[i].lanes);
}

void nodes_sweep(struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++)
        lanes_sweep(&nodes->rows[i].lanes);
}

void nodes_close(struct nodes *nodes)
{
    upstream_leave_shed(nodes->commons.upstream, &nodes->shed);
    uv_close((uv_handle_t *)&nodes->shed.async, NULL);
    for (size_t i = 0; i < nodes->n; i++) {
        doors_fini(&nodes->rows[i].doors);
        lanes_close(&nodes->rows[i].lanes);
        timers_close(&nodes->rows[i].lanes);
    }
    commons_fini(&nodes->commons);
}

void nodes_fini(struct nodes *nodes)
{
    free(nodes->rows);
}
