#include "upstream/node/nodes.h"

#include <stdlib.h>

#include "base/mem.h"
#include "upstream/node/health.h"
#include "upstream/lane/timers.h"

static struct nodes_row *nodes_retired_at(const struct list *at)
{
    return container_of(at, struct nodes_row, in_retired);
}

static bool close_idle(struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++)
        if (lanes_close_idle(&nodes->rows[i]->lanes))
            return true;
    return false;
}

/*
 * Another worker needs room. Shared lanes without a lease still count for their subject, and are
 * closed. Of the idle lanes only as many as wanted are closed: closing more would only cause new
 * connections.
 */
static void on_shed(uv_async_t *async)
{
    struct nodes *nodes = async->data;
    struct room *room = &nodes->worker_lanes.upstream->room;
    for (size_t i = 0; i < nodes->n; i++)
        while (lanes_close_unleased(&nodes->rows[i]->lanes, 0))
            ;
    while (room_is_wanted(room))
        if (!close_idle(nodes)) {
            room_want(room); /* another worker has an idle lane, or will have an idle lane */
            return;
        }
}

/* ---- rows ---- */

static void free_row(struct nodes_row *row)
{
    prober_fini(&row->prober);
    lanes_fini(&row->lanes);
    free(row);
}

/* Adds the row's counters to `past`, and closes the row's lanes. */
static void nodes_end_row(struct nodes_row *row)
{
    struct nodes *nodes = row->nodes;
    row->is_ending = true;
    pthread_mutex_lock(&nodes->lock);
    list_take(&row->in_retired);
    counts_add(&nodes->past, &row->lanes.base.counts, sizeof nodes->past);
    pthread_mutex_unlock(&nodes->lock);
    auth_lanes_fini(&row->auth_lanes);
    lanes_close(&row->lanes);
    timers_close(&row->lanes);
}

/* Called when the last lane or a timer has closed. */
static void on_unused(struct lanes *lanes)
{
    struct nodes_row *row = container_of(lanes, struct nodes_row, lanes);
    if (!lanes->is_retired || lanes->base.n_links > 0)
        return;
    if (!row->is_ending)
        nodes_end_row(row);
    else if (lanes->n_timers == 0)
        free_row(row);
}

static struct nodes_row *new_row(struct nodes *nodes, struct node *node, const struct lanes *before)
{
    struct nodes_row *row = mem_zalloc(1, sizeof *row);
    row->nodes = nodes;
    list_init(&row->in_retired);
    lanes_init(&row->lanes, &nodes->worker_lanes, node, before, nodes->ops, nodes->arg);
    row->lanes.base.ops = &health_ops;
    row->lanes.on_unused = on_unused;
    timers_init(&row->lanes);
    auth_lanes_init(&row->auth_lanes, &row->lanes);
    prober_init(&row->prober, &row->lanes);
    return row;
}

/* Logins that wait at the old default node move to the new default node. */
static void nodes_retire(struct nodes *nodes, struct nodes_row *row, bool was_default)
{
    count_set(&row->lanes.base.counts.is_down, 0);
    lanes_retire(&row->lanes);
    auth_lanes_retire(&row->auth_lanes, was_default ? &nodes_default_row(nodes)->auth_lanes : NULL);
    on_unused(&row->lanes);
}

/* ---- a worker's nodes ---- */

void nodes_init(struct nodes *nodes, struct loop *loop, struct topology *topology, bool is_private,
                const struct lanes_ops *ops, void *arg)
{
    struct upstream *upstream = topology_default_node(topology)->upstream;
    worker_lanes_init(&nodes->worker_lanes, loop, upstream, is_private);
    pthread_mutex_init(&nodes->lock, NULL);
    list_init(&nodes->retired);
    nodes->ops = ops;
    nodes->arg = arg;
    nodes->topology = topology_get(topology);
    nodes->n = topology->n_rows;
    nodes->rows = mem_zalloc(nodes->n, sizeof(struct nodes_row *));
    for (size_t i = 0; i < nodes->n; i++)
        nodes->rows[i] =
            new_row(nodes, topology->rows[i].node, i > 0 ? &nodes->rows[0]->lanes : NULL);
    uv_async_init(&loop->uv, &nodes->shed.async, on_shed);
    nodes->shed.async.data = nodes;
    upstream_enter_shed(upstream, &nodes->shed);
}

static bool has_node(const struct topology *topology, const struct node *node)
{
    for (size_t i = 0; i < topology->n_rows; i++)
        if (topology->rows[i].node == node)
            return true;
    return false;
}

static struct nodes_row *nodes_find_row(const struct nodes *nodes, const struct node *node)
{
    for (size_t i = 0; i < nodes->n; i++)
        if (lanes_node(&nodes->rows[i]->lanes) == node)
            return nodes->rows[i];
    return NULL;
}

void nodes_adopt(struct nodes *nodes, struct topology *topology)
{
    struct nodes_row **before = nodes->rows;
    size_t n_before = nodes->n;
    struct topology *topology_before = nodes->topology;
    const struct lanes *default_node = &nodes_default_row(nodes)->lanes;
    struct nodes_row **now = mem_zalloc(topology->n_rows, sizeof(struct nodes_row *));
    for (size_t i = 0; i < topology->n_rows; i++)
        now[i] = nodes_find_row(nodes, topology->rows[i].node);
    for (size_t i = 0; i < topology->n_rows; i++)
        if (now[i] == NULL) {
            now[i] = new_row(nodes, topology->rows[i].node, default_node);
            health_start(&now[i]->lanes);
        }
    pthread_mutex_lock(&nodes->lock);
    nodes->rows = now;
    nodes->n = topology->n_rows;
    nodes->topology = topology_get(topology);
    for (size_t i = 0; i < n_before; i++)
        if (!has_node(topology, lanes_node(&before[i]->lanes)))
            list_push(&nodes->retired, &before[i]->in_retired);
    pthread_mutex_unlock(&nodes->lock);
    for (size_t i = 0; i < n_before; i++)
        if (!has_node(topology, lanes_node(&before[i]->lanes)))
            nodes_retire(nodes, before[i], i == TOPOLOGY_DEFAULT);
    free(before);
    topology_put(topology_before);
    /* lane users that wait for room may have been served by the tick of a removed row */
    lanes_tick(&nodes_default_row(nodes)->lanes);
}

void nodes_set_login(struct nodes *nodes, const struct own_login_words *words)
{
    if (!own_login_set(&nodes->worker_lanes.own, words))
        return;
    for (size_t i = 0; i < nodes->n; i++) {
        nodes->rows[i]->lanes.login_refused_ns = 0;
        lanes_sweep(&nodes->rows[i]->lanes); /* lanes log in again: timers.h */
    }
}

void nodes_start(struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++)
        health_start(&nodes->rows[i]->lanes);
}

void nodes_sweep(struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++)
        lanes_sweep(&nodes->rows[i]->lanes);
    for (struct list *at = nodes->retired.next; at != &nodes->retired; at = at->next)
        lanes_sweep(&nodes_retired_at(at)->lanes);
}

static void close_row(struct nodes_row *row)
{
    auth_lanes_fini(&row->auth_lanes);
    lanes_close(&row->lanes);
    timers_close(&row->lanes);
}

void nodes_close(struct nodes *nodes)
{
    upstream_leave_shed(nodes->worker_lanes.upstream, &nodes->shed);
    uv_close((uv_handle_t *)&nodes->shed.async, NULL);
    for (size_t i = 0; i < nodes->n; i++)
        close_row(nodes->rows[i]);
    while (!list_is_empty(&nodes->retired))
        nodes_end_row(nodes_retired_at(nodes->retired.next));
    worker_lanes_fini(&nodes->worker_lanes);
}

void nodes_fini(struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++)
        free_row(nodes->rows[i]);
    free(nodes->rows);
    topology_put(nodes->topology);
    pthread_mutex_destroy(&nodes->lock);
}

/* ---- counters ---- */

static void sum_lanes(struct nodes_sum *sum, const struct lanes *lanes)
{
    uint64_t oldest_ns = atomic_load_explicit(&lanes->oldest_ns, memory_order_relaxed);
    counts_add(&sum->counts, &lanes->base.counts, sizeof sum->counts);
    sum->oldest_ns = oldest_ns > sum->oldest_ns ? oldest_ns : sum->oldest_ns;
}

/* Counters of nodes that have left the topology are added to the first row. */
static void sum_past(const struct nodes *nodes, struct nodes_sum *sum)
{
    for (struct list *at = nodes->retired.next; at != &nodes->retired; at = at->next)
        sum_lanes(sum, &nodes_retired_at(at)->lanes);
    counts_add(&sum->counts, &nodes->past, sizeof nodes->past);
}

static void sum_some(const struct nodes *nodes, size_t row, bool with_past, struct nodes_sum *sum)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&nodes->lock;
    pthread_mutex_lock(lock);
    if (with_past)
        sum_past(nodes, sum);
    if (row < nodes->n)
        sum_lanes(sum, &nodes->rows[row]->lanes);
    pthread_mutex_unlock(lock);
}

void nodes_sum(const struct nodes *nodes, size_t row, struct nodes_sum *sum)
{
    sum_some(nodes, row, row == 0, sum);
}

void nodes_sum_row(const struct nodes *nodes, size_t row, struct nodes_sum *sum)
{
    sum_some(nodes, row, false, sum);
}

void nodes_sum_all(const struct nodes *nodes, struct nodes_sum *sum)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&nodes->lock;
    pthread_mutex_lock(lock);
    sum_past(nodes, sum);
    for (size_t row = 0; row < nodes->n; row++)
        sum_lanes(sum, &nodes->rows[row]->lanes);
    pthread_mutex_unlock(lock);
}

/* ---- redirects ---- */

/* A node may be announced by address and by name, and weir may connect by either. */
static bool is_announced(const struct redirect *redirect, const struct topology_row *row)
{
    return redirect->port == row->port &&
           ((row->host != NULL && slice_eq_nocase(redirect->host, slice_str(row->host))) ||
            (row->hostname != NULL && slice_eq_nocase(redirect->host, slice_str(row->hostname))));
}

struct nodes_row *nodes_row_named(const struct nodes *nodes, const struct redirect *redirect,
                                  const struct node *from)
{
    for (size_t i = 0; i < nodes->topology->n_masters; i++)
        if (is_announced(redirect, &nodes->topology->rows[i]) ||
            redirect_is_to(redirect, from, lanes_node(&nodes->rows[i]->lanes)))
            return nodes->rows[i];
    return NULL;
}
