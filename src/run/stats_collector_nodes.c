/* The servers in a snapshot. */
#include "run/stats_collector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "run/topology/cluster.h"

/* ---- state of a node ---- */

/* One server and its state. */
struct about {
    const struct node *node;
    const struct control *control; /* NULL: no control connection */
    struct nodes_sum sum;          /* zero if no lane leads to the server */
};

/* Returns the number of greeted client lanes to the node. */
static uint64_t count_ready(const struct lane_counts *counts)
{
    return count_read(&counts->lists[LIST_SHARED]) + count_read(&counts->lists[LIST_PRIVATE]);
}

/*
 * True if the node is up. Redis rejects a control connection if weir's own user lacks rights, or at
 * maxclients. The node is then up while clients have lanes. A control connection that cannot
 * connect, or gets no answer, shows that the node is down, even while lanes are open.
 */
static bool is_connected(const struct about *about)
{
    if (about->control == NULL || node_is_barred(about->node) ||
        count_read(&about->sum.counts.is_down) != 0)
        return false;
    return control_is_up(about->control) ||
           (count_ready(&about->sum.counts) > 0 && control_is_turned_away(about->control));
}

static enum node_state stats_collector_nodes_state_of(const struct about *about)
{
    static const enum node_state states[] = {[PULSE_WELL] = NODE_UP,
                                             [PULSE_BUSY] = NODE_BUSY,
                                             [PULSE_HELD] = NODE_PAUSED,
                                             [PULSE_SILENT] = NODE_SILENT};
    if (is_connected(about))
        return states[control_pulse(about->control)];
    return node_is_silent(about->node) ? NODE_SILENT : NODE_AWAY;
}

typedef void (*sum_fn)(const struct nodes *nodes, size_t row, struct nodes_sum *sum);

static void sum_workers(const struct stats_collector *collector, sum_fn sum_of, size_t row,
                        struct nodes_sum *sum)
{
    for (unsigned w = 0; collector->pool != NULL && w < collector->config->workers; w++)
        sum_of(&worker_pool_front(collector->pool, w)->nodes, row, sum);
}

/*
 * With several servers each row has the counts of its own node. A new master must not show the
 * counts of the old master.
 */
static sum_fn summing(const struct stats_collector *collector)
{
    bool are_several =
        collector->controls != NULL && (controls_are_replicated(collector->controls) ||
                                        controls_cluster(collector->controls) != NULL);
    return are_several ? nodes_sum_row : nodes_sum;
}

static void look_at_row(struct about *about, const struct stats_collector *collector, size_t row)
{
    const struct finder *finder =
        collector->controls != NULL ? controls_finder(collector->controls, row) : NULL;
    *about = (struct about){.node = collector->topology->rows[row].node,
                            .control = finder != NULL ? finder_control(finder) : NULL};
    sum_workers(collector, summing(collector), row, &about->sum);
}

enum node_state collector_default_node_state(const struct stats_collector *collector)
{
    struct about about;
    look_at_row(&about, collector, TOPOLOGY_DEFAULT);
    return stats_collector_nodes_state_of(&about);
}

/* ---- a row of the snapshot ---- */

static void take_addresses(struct snapshot_node *to, const struct node *node,
                           const struct finder *finder)
{
    static const char *const roles[] = {
        [ROLE_UNKNOWN] = "unknown", [ROLE_MASTER] = "master", [ROLE_REPLICA] = "replica"};
    struct finder_try try;
    snprintf(to->in_use, sizeof to->in_use, "%s", node->address);
    to->role = roles[node_role(node)];
    while (finder != NULL && to->n_tries < SNAPSHOT_TRIES &&
           finder_try(finder, to->n_tries, &try)) {
        struct snapshot_try *one = &to->tries[to->n_tries++];
        snprintf(one->address, sizeof one->address, "%s", try.address);
        snprintf(one->why, sizeof one->why, "%s", try.why);
    }
}

/*
 * Sets the greatest age that the replica's copy of the master's state can have. The age is known
 * only where clients may read from replicas.
 */
static void take_lag(struct snapshot_node *to, const struct node *node, uint64_t now_ns)
{
    uint64_t as_of_ns = atomic_load_explicit(&node->reach.as_of_ns, memory_order_relaxed);
    to->lag_ms = SNAPSHOT_NO_LAG;
    if (as_of_ns == 0 || node_role(node) != ROLE_REPLICA)
        return;
    to->lag_ms = now_ns > as_of_ns ? (now_ns - as_of_ns) / NS_PER_MS : 0;
    to->behind_bytes = atomic_load_explicit(&node->reach.behind, memory_order_relaxed);
}

static void take_about(struct snapshot_node *to, const struct about *about, uint64_t now_ns)
{
    struct snapshot_health *health = &to->health;
    snprintf(to->why, sizeof to->why, "%s",
             about->control != NULL ? control_why(about->control) : "");
    to->lacks = atomic_load_explicit(&about->node->lacks, memory_order_relaxed);
    take_lag(to, about->node, now_ns);
    health->state = stats_collector_nodes_state_of(about);
    if (health->state != NODE_AWAY && about->control != NULL)
        health->silence_ns = control_silence_ns(about->control, now_ns);
    counts_add(&to->lanes, &about->sum.counts, sizeof to->lanes);
    health->oldest_ns = about->sum.oldest_ns;
}

/* A replica that is too far behind its master is not read from. */
static enum node_use use_of(const struct stats_collector *collector, size_t row,
                            const struct node *node, uint64_t now_ns)
{
    if (collector->topology->slots != NULL && row < collector->topology->n_masters)
        return USED_FOR_SLOTS;
    if (row == TOPOLOGY_DEFAULT)
        return USED_FOR_ALL;
    bool is_read = row != CONTROLS_NO_ROW &&
                   reach_is_in_sync(&node->reach, now_ns, node->upstream->reads.lag_max_ns);
    return is_read ? USED_FOR_READS : USED_FOR_NOTHING;
}

/* Returns the snapshot's row of a node of the view; NULL: the node is no member. */
static struct snapshot_node *row_of_node(struct snapshot *s, const struct cluster *cluster,
                                         size_t number)
{
    const struct member *member = cluster_member(cluster, number);
    for (size_t i = 0; member != NULL && i < s->n_nodes; i++)
        if (strcmp(s->nodes[i].address, member->key) == 0)
            return &s->nodes[i];
    return NULL;
}

static void count_moving(struct snapshot_node *node)
{
    if (node != NULL)
        node->slots_moving++;
}

static void stats_collector_nodes_take_slots(struct snapshot *s, const struct cluster *cluster)
{
    const struct cluster_view *view = cluster_known(cluster);
    struct cluster_service service = cluster_words_look(cluster);
    s->slots_served = (unsigned)service.n_served;
    s->slots_up = (unsigned)service.n_up;
    for (size_t i = 0; i < cluster_view_count(view); i++) {
        struct snapshot_node *node = row_of_node(s, cluster, i);
        if (node == NULL)
            continue;
        node->slots = cluster_view_node(view, i)->n_slots;
        node->epoch = cluster_view_node(view, i)->epoch;
    }
    for (uint16_t slot = 0; slot < SLOT_COUNT; slot++) {
        uint16_t other;
        if (cluster_view_state(view, slot, &other) == SLOT_STABLE)
            continue;
        count_moving(row_of_node(s, cluster, cluster_view_owner(view, slot)));
        count_moving(row_of_node(s, cluster, other));
    }
}

static void take_server(struct snapshot_node *to, const struct stats_collector *collector,
                        const struct controls_server *server, const struct snapshot *s)
{
    struct about about;
    if (server->row != CONTROLS_NO_ROW)
        look_at_row(&about, collector, server->row);
    else
        about = (struct about){.node = finder_node(server->finder),
                               .control = finder_control(server->finder)};
    snprintf(to->address, sizeof to->address, "%s", server->key);
    to->use = use_of(collector, server->row, about.node, s->taken_ns);
    to->epoch = server->epoch;
    if (server->changed_ns != 0)
        to->changed_unix_ms = clock_unix_ms() - (s->taken_ns - server->changed_ns) / NS_PER_MS;
    take_addresses(to, about.node, server->finder);
    take_about(to, &about, s->taken_ns);
}

/* Adds the default node before controls exist (at the start): only its address is known. */
static void take_default_node(struct snapshot_node *to, const struct stats_collector *collector,
                              const struct snapshot *s)
{
    struct about about;
    look_at_row(&about, collector, TOPOLOGY_DEFAULT);
    snprintf(to->address, sizeof to->address, "%s", about.node->text);
    to->use = USED_FOR_ALL;
    take_addresses(to, about.node, NULL);
    take_about(to, &about, s->taken_ns);
}

static size_t count_servers(const struct controls *controls)
{
    struct controls_server server;
    size_t n = 0;
    while (controls != NULL && controls_server(controls, n, &server))
        n++;
    return n;
}

static uint64_t stats_collector_nodes_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Sums all nodes. The state of the upstream is the state of the default node. */
static void take_whole(struct snapshot *s, const struct stats_collector *collector)
{
    struct about default_node;
    look_at_row(&default_node, collector, TOPOLOGY_DEFAULT);
    s->health.state = stats_collector_nodes_state_of(&default_node);
    if (s->health.state != NODE_AWAY && default_node.control != NULL)
        s->health.silence_ns = control_silence_ns(default_node.control, s->taken_ns);
    s->is_replicated = collector->controls != NULL && controls_are_replicated(collector->controls);
    const struct cluster *cluster =
        collector->controls != NULL ? controls_cluster(collector->controls) : NULL;
    s->is_cluster = cluster != NULL;
    if (cluster != NULL)
        stats_collector_nodes_take_slots(s, cluster);
    for (unsigned w = 0; collector->pool != NULL && w < collector->config->workers; w++) {
        struct nodes_sum sum = {0};
        nodes_sum_all(&worker_pool_front(collector->pool, w)->nodes, &sum);
        counts_add(&s->lanes, &sum.counts, sizeof s->lanes);
        s->health.oldest_ns = stats_collector_nodes_larger(s->health.oldest_ns, sum.oldest_ns);
    }
}

bool collector_take_nodes(struct snapshot *s, const struct stats_collector *collector)
{
    struct controls_server server;
    size_t n = count_servers(collector->controls);
    s->nodes = calloc(n > 0 ? n : 1, sizeof *s->nodes);
    if (s->nodes == NULL)
        return false;
    s->n_nodes = n;
    for (size_t i = 0; i < n && controls_server(collector->controls, i, &server); i++)
        take_server(&s->nodes[i], collector, &server, s);
    if (n == 0 && (collector->controls == NULL || !controls_are_replicated(collector->controls)))
        take_default_node(&s->nodes[s->n_nodes++], collector, s);
    take_whole(s, collector);
    return true;
}
