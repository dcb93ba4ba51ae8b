#include "quota/routes.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "quota/away.h"
#include "upstream/lane/lack.h"
#include "upstream/node/not_run.h"

#define HOPS_MAX 5

enum wait_for {
    WAIT_FOR_MASTER,  /* until failover-wait ends */
    WAIT_FOR_CLUSTER, /* until failover-wait ends */
    WAIT_FOR_KEYS,    /* until redirect-timeout ends */
};

static const struct pauses {
    uint64_t first_ns, most_ns;
} pauses[] = {
    [WAIT_FOR_MASTER] = {50 * NS_PER_MS, 50 * NS_PER_MS},
    [WAIT_FOR_CLUSTER] = {10 * NS_PER_MS, 100 * NS_PER_MS},
    [WAIT_FOR_KEYS] = {1 * NS_PER_MS, 50 * NS_PER_MS},
};

static struct batch *batch_at(const struct list *at)
{
    return container_of(at, struct batch, in_exchange);
}

/* ---- members ---- */

static struct script_node *any_member(const struct routes *routes)
{
    const struct list *first = routes->members.next;
    return first != &routes->members ? routes_member_at(first) : NULL;
}

static struct script_node *routes_find(const struct routes *routes, const struct lanes *lanes)
{
    for (struct list *at = routes->members.next; at != &routes->members; at = at->next) {
        struct script_node *node = routes_member_at(at);
        if (!node->is_leaving && node->base.lanes == lanes)
            return node;
    }
    return NULL;
}

/* Finds or makes the member of this row. NULL: out of memory. */
static struct script_node *member_of(struct routes *routes, struct nodes_row *row)
{
    struct lanes *lanes = &row->lanes;
    struct script_node *node = routes_find(routes, lanes);
    if (node != NULL)
        return node;
    node = script_node_new(lanes, routes->alarms, login_get(lanes->base.worker_lanes->own.newest),
                           any_member(routes), routes->ops, routes->arg);
    if (node == NULL)
        return NULL;
    node->number = routes->n_numbers++;
    list_push(&routes->members, &node->in_routes);
    return node;
}

struct nodes_row *routes_row(const struct routes *routes, uint16_t slot)
{
    const struct nodes *nodes = routes->nodes;
    if (!routes->is_cluster)
        return nodes_default_row(nodes);
    return nodes->topology->slots != NULL ? nodes_slot_row(nodes, slot) : NULL;
}

/* Returns the member that serves the slot. NULL: out of memory. */
static struct script_node *serving(struct routes *routes, uint16_t slot)
{
    struct nodes_row *row = routes_row(routes, slot);
    return member_of(routes, row != NULL ? row : nodes_default_row(routes->nodes));
}

/* ---- unsent batches ---- */

/* Queues a batch, which is in no list, at that node. */
static void put_at(struct routes *routes, struct batch *batch, struct script_node *node)
{
    struct list *near = routes_near(routes, batch->slot), *at = near->prev;
    while (at != near && routes_near_at(at)->order > batch->order)
        at = at->prev;
    list_push(at->next, &batch->in_slot);
    batch->node = node;
    script_node_add(node, batch);
}

/* Moves the slot's unsent batches to this node, except those that follow an ASK. */
static void move_slot(struct routes *routes, uint16_t slot, struct script_node *node)
{
    const struct list *near = routes_near(routes, slot);
    for (const struct list *at = near->next; at != near; at = at->next) {
        struct batch *batch = routes_near_at(at);
        if (batch->slot != slot || batch->node == node || batch->is_asking)
            continue;
        list_take(&batch->in_exchange);
        batch->node = node;
        script_node_add(node, batch);
    }
}

void routes_starve(struct routes *routes, struct batch *batch)
{
    batch_fail(routes->calls, batch, err_text(ERR_OUT_OF_MEMORY), false);
}

bool routes_put(struct routes *routes, struct batch *batch)
{
    struct script_node *node = serving(routes, batch->slot);
    if (node == NULL) {
        routes_starve(routes, batch);
        return false;
    }
    batch->is_asking = false;
    move_slot(routes, batch->slot, node);
    put_at(routes, batch, node);
    return true;
}

void routes_take_out(struct batch *batch)
{
    list_take(&batch->in_exchange);
    list_take(&batch->in_slot);
}

/* ---- batches in flight ---- */

/* Wakes the nodes of the slot's unsent batches, which may have waited for a batch in flight. */
static void wake_slot(struct routes *routes, uint16_t slot)
{
    const struct list *near = routes_near(routes, slot);
    for (const struct list *at = near->next; at != near; at = at->next)
        if (routes_near_at(at)->slot == slot)
            script_node_wake(routes_near_at(at)->node);
}

bool routes_must_wait(struct routes *routes, const struct batch *batch)
{
    const struct slot_use *use = &routes->uses[batch->slot];
    bool is_careful = use->is_careful || (routes->is_cluster && routes_was_refused(batch));
    if (use->n_sent > 0 && (is_careful || use->number != batch->node->number))
        return true;
    const struct list *at = routes_near(routes, batch->slot)->next;
    for (; routes_near_at(at) != batch; at = at->next)
        if (routes_near_at(at)->slot == batch->slot && routes_near_at(at)->node != batch->node)
            return true;
    return false;
}

void routes_note_sent(struct routes *routes, const struct batch *batch)
{
    struct slot_use *use = &routes->uses[batch->slot];
    use->n_sent++;
    use->number = batch->node->number;
    use->is_careful |= routes->is_cluster && routes_was_refused(batch);
}

void routes_note_over(struct routes *routes, const struct batch *batch)
{
    struct slot_use *use = &routes->uses[batch->slot];
    if (--use->n_sent > 0)
        return;
    use->is_careful = false;
    wake_slot(routes, batch->slot);
}

void routes_note_unsent(struct routes *routes, const struct batch *batch)
{
    wake_slot(routes, batch->slot);
}

/* ---- counting ---- */

static uint64_t failover_wait_ns(const struct batch *batch)
{
    return batch_first_call(&batch->entries[0])->failover_wait_ns;
}

static void routes_count(const struct script_node *node, enum lane_redirect redirect)
{
    count_add(&node->base.lanes->base.counts.redirects[redirect], 1);
}

/* On a cluster: counts a failed batch at the node that serves the batch's slot now. */
static void routes_count_given_up(struct routes *routes, const struct batch *batch)
{
    const struct script_node *node = routes->is_cluster ? serving(routes, batch->slot) : NULL;
    if (node != NULL)
        routes_count(node, REDIRECT_GIVEN_UP);
}

/* ---- retries ---- */

static void hold_until_again(struct routes *routes, struct batch *batch)
{
    batch_put_in_order(&routes->held, batch);
    if (alarm_is_set(&routes->again) && routes->again.due_ns <= batch->again_ns)
        return;
    alarm_stop(routes->alarms, &routes->again);
    alarm_set(routes->alarms, &routes->again, batch->again_ns);
}

/*
 * Stores the error as the reason of the wait. False: the wait since the first refusal has ended, or
 * memory is short. In both cases the batch has failed.
 */
static bool routes_may_wait(struct routes *routes, struct batch *batch, struct slice error,
                            bool is_away)
{
    char *refusal = strndup(error.at, error.len);
    if (refusal == NULL || routes_now_ns(routes) >= batch->until_ns) {
        free(refusal);
        routes_count_given_up(routes, batch);
        batch_fail(routes->calls, batch, error, is_away);
        return false;
    }
    free(batch->refusal);
    batch->refusal = refusal;
    batch->is_away = is_away;
    return true;
}

/* Retries the batch after an interval. The wait ends when the time for `wait` is over. */
static void routes_hold(struct routes *routes, struct batch *batch, struct slice error,
                        bool is_away, enum wait_for wait)
{
    uint64_t now_ns = routes_now_ns(routes), longer_ns = 2 * batch->pause_ns;
    const struct pauses *pause = &pauses[wait];
    uint64_t wait_ns = wait == WAIT_FOR_KEYS
                           ? routes->nodes->worker_lanes.upstream->redirect_timeout_ns
                           : failover_wait_ns(batch);
    if (batch->until_ns == 0)
        batch->until_ns = now_ns + wait_ns;
    if (!routes_may_wait(routes, batch, error, is_away))
        return;
    batch->pause_ns = longer_ns < pause->first_ns ? pause->first_ns : longer_ns;
    if (batch->pause_ns > pause->most_ns)
        batch->pause_ns = pause->most_ns;
    batch->again_ns = now_ns + batch->pause_ns;
    hold_until_again(routes, batch);
}

bool routes_put_behind(struct routes *routes, struct batch *batch, const struct batch *before)
{
    if (batch->until_ns == 0)
        batch->until_ns = routes_now_ns(routes) + failover_wait_ns(batch);
    if (!routes_may_wait(routes, batch, slice_str(before->refusal), before->is_away))
        return false;
    batch->again_ns = before->again_ns;
    hold_until_again(routes, batch);
    return true;
}

static void routes_set_alarm(struct routes *routes)
{
    uint64_t due_ns = UINT64_MAX;
    for (struct list *at = routes->held.next; at != &routes->held; at = at->next)
        due_ns = batch_at(at)->again_ns < due_ns ? batch_at(at)->again_ns : due_ns;
    alarm_stop(routes->alarms, &routes->again);
    if (due_ns != UINT64_MAX)
        alarm_set(routes->alarms, &routes->again, due_ns);
}

/* Moves the waiting batches that are due at due_ns into `due`. */
static void take_due(struct routes *routes, uint64_t due_ns, struct list *due)
{
    struct list *next;
    list_init(due);
    for (struct list *at = routes->held.next; at != &routes->held; at = next) {
        next = at->next;
        if (batch_at(at)->again_ns > due_ns)
            continue;
        list_take(at);
        list_push(due, at);
    }
}

/* Fails the due batches with an ended wait, and sends the other due batches again. */
static void routes_ask_again(struct routes *routes, uint64_t due_ns)
{
    uint64_t now_ns = routes_now_ns(routes);
    struct list due;
    take_due(routes, due_ns, &due);
    while (!list_is_empty(&due)) {
        struct batch *batch = batch_at(due.next);
        list_take(&batch->in_exchange);
        if (now_ns >= batch->until_ns) {
            routes_count_given_up(routes, batch);
            batch_fail(routes->calls, batch, slice_str(batch->refusal), batch->is_away);
            continue;
        }
        batch->asked_ns = now_ns;
        (void)routes_put(routes, batch);
    }
    routes_set_alarm(routes);
}

static void routes_on_due(struct alarm *alarm)
{
    struct routes *routes = container_of(alarm, struct routes, again);
    routes_ask_again(routes, routes_now_ns(routes));
}

/* ---- errors of Redis ---- */

static const struct slice moved = {"-UPSTREAM moved\r\n", sizeof "-UPSTREAM moved\r\n" - 1};

/*
 * Redis has answered that it is no master, or loads its data. Until failover-wait ends a master may
 * appear, even if the node becomes unreachable.
 */
static void be_refused(struct routes *routes, struct batch *batch, struct slice error)
{
    batch->node->moves_until_ns = routes_now_ns(routes) + failover_wait_ns(batch);
    if (routes->is_cluster)
        upstream_ask_topology(routes->nodes->worker_lanes.upstream);
    routes_hold(routes, batch, error, false, WAIT_FOR_MASTER);
}

static void routes_wait_for_topology(struct routes *routes, struct batch *batch, struct slice error)
{
    upstream_ask_topology(routes->nodes->worker_lanes.upstream);
    routes_hold(routes, batch, error, true, WAIT_FOR_CLUSTER);
}

/*
 * Sends each entry alone: a command with one key never gets TRYAGAIN. Out of memory: some entries
 * stay together.
 */
static void routes_split(struct routes *routes, struct batch *batch)
{
    struct list parts; /* in reverse order of entries */
    struct batch *part;
    list_init(&parts);
    while (batch->n > 1 && (part = batch_split(batch)) != NULL)
        list_push(&parts, &part->in_exchange);
    (void)routes_put(routes, batch);
    while (!list_is_empty(&parts)) {
        part = batch_at(parts.prev);
        list_take(&part->in_exchange);
        (void)routes_put(routes, part);
    }
}

static uint16_t routes_index_of(const struct nodes *nodes, const struct nodes_row *row)
{
    uint16_t i = 0;
    while (nodes->rows[i] != row)
        i++;
    return i;
}

/*
 * Sends the batch to the node that a redirect names. That node serves the slot from now on (MOVED),
 * or imports the slot (ASK).
 */
static void routes_follow(struct routes *routes, struct batch *batch, struct slice reply)
{
    struct redirect redirect;
    const struct lanes *from = batch->node->base.lanes;
    bool is_one = redirect_parse(reply, &redirect);
    if (is_one)
        routes_count(batch->node, redirect.is_ask ? REDIRECT_ASK : REDIRECT_MOVED);
    if (!is_one || redirect.slot != batch->slot || batch->n_hops++ == HOPS_MAX) {
        routes_count_given_up(routes, batch);
        batch_fail(routes->calls, batch, moved, true);
        return;
    }
    struct nodes_row *row = nodes_row_named(routes->nodes, &redirect, lanes_node(from));
    if (row == NULL || &row->lanes == from) {
        routes_wait_for_topology(routes, batch, moved);
        return;
    }
    struct script_node *node = member_of(routes, row);
    if (node == NULL) {
        routes_starve(routes, batch);
        return;
    }
    batch->is_asking = redirect.is_ask;
    if (!redirect.is_ask) {
        slot_map_set(routes->nodes->topology->slots, batch->slot,
                     routes_index_of(routes->nodes, row));
        upstream_ask_topology(routes->nodes->worker_lanes.upstream);
        move_slot(routes, batch->slot, node);
    }
    put_at(routes, batch, node);
}

/* Handles errors that only a cluster sends. False: another error. */
static bool take_clusters(struct routes *routes, struct batch *batch, enum unable unable,
                          struct slice error)
{
    switch (unable) {
    case UNABLE_REDIRECTED:
        routes_follow(routes, batch, error);
        return true;
    case UNABLE_TRY_AGAIN:
        routes_count(batch->node, REDIRECT_TRYAGAIN);
        if (batch->n > 1)
            routes_split(routes, batch);
        else
            routes_hold(routes, batch, error, true, WAIT_FOR_KEYS);
        return true;
    case UNABLE_CLUSTER_DOWN:
        routes_count(batch->node, REDIRECT_CLUSTERDOWN);
        routes_wait_for_topology(routes, batch, error);
        return true;
    case UNABLE_NOT_RUN:
    case UNABLE_TO_DECIDE:
    case UNABLE_NO:
        break;
    }
    return false;
}

void routes_take_error(struct routes *routes, struct batch *batch, struct slice error)
{
    char named[LACK_ERROR_ROOM];
    enum unable unable = unable_of(error);
    if (routes->is_cluster && take_clusters(routes, batch, unable, error))
        return;
    if (unable == UNABLE_NOT_RUN)
        be_refused(routes, batch, error);
    else
        batch_fail(routes->calls, batch, batch_explain(script_node_of(batch->node), error, named),
                   false);
}

/*
 * Batches that wait for a master keep waiting. So does a decision that has waited for its rate or
 * for a permit (LIMIT ... WAIT).
 */
void routes_take_lack(struct routes *routes, struct batch *batch, struct slice error, bool is_away)
{
    if (routes_now_ns(routes) < batch->node->moves_until_ns && batch->until_ns == 0)
        batch->until_ns = batch->node->moves_until_ns;
    if (!is_away && unable_of(error) == UNABLE_NOT_RUN)
        be_refused(routes, batch, error);
    else if (batch->until_ns != 0 || batch_first_call(&batch->entries[0])->has_waited)
        routes_hold(routes, batch, error, is_away, WAIT_FOR_MASTER);
    else
        batch_fail(routes->calls, batch, error, is_away);
}

/* ---- another topology ---- */

/* True if the lanes lead to a node that decides calls: a master, or the default node. */
static bool has_lanes(const struct routes *routes, const struct lanes *lanes)
{
    const struct nodes *nodes = routes->nodes;
    size_t n = routes->is_cluster ? nodes->topology->n_masters : 1;
    for (size_t i = 0; i < n; i++)
        if (&nodes->rows[i]->lanes == lanes)
            return true;
    return false;
}

/* Moves all unsent batches to the nodes that serve their slots now. */
static void put_all_anew(struct routes *routes)
{
    struct list all;
    list_init(&all);
    for (struct list *at = routes->members.next; at != &routes->members; at = at->next) {
        struct script_node *node = routes_member_at(at);
        while (!list_is_empty(&node->open)) {
            struct batch *batch = batch_at(node->open.next);
            routes_take_out(batch);
            batch_put_in_order(&all, batch);
        }
    }
    while (!list_is_empty(&all)) {
        struct batch *batch = batch_at(all.next);
        list_take(&batch->in_exchange);
        (void)routes_put(routes, batch);
    }
}

void routes_adopt(struct routes *routes)
{
    uint64_t moves_until_ns = 0;
    bool has_left = false;
    for (struct list *at = routes->members.next; at != &routes->members; at = at->next) {
        struct script_node *node = routes_member_at(at);
        if (node->is_leaving || has_lanes(routes, node->base.lanes))
            continue;
        has_left = true;
        moves_until_ns =
            node->moves_until_ns > moves_until_ns ? node->moves_until_ns : moves_until_ns;
        script_node_leave(node);
    }
    if (!has_left && !routes->is_cluster)
        return;
    struct script_node *default_node =
        moves_until_ns > 0 ? member_of(routes, nodes_default_row(routes->nodes)) : NULL;
    if (default_node != NULL && !routes->is_cluster)
        default_node->moves_until_ns = moves_until_ns;
    put_all_anew(routes);
    routes_ask_again(routes, UINT64_MAX);
}

/* ---- start and end ---- */

void routes_init(struct routes *routes, struct nodes *nodes, struct alarms *alarms,
                 const struct batch_ops *calls, const struct script_node_ops *ops, void *arg)
{
    *routes = (struct routes){.calls = calls,
                              .nodes = nodes,
                              .alarms = alarms,
                              .ops = ops,
                              .arg = arg,
                              .again.on_due = routes_on_due};
    routes->is_cluster = nodes->worker_lanes.upstream->is_cluster;
    routes->uses = mem_zalloc(routes->is_cluster ? SLOT_COUNT : 1, sizeof *routes->uses);
    list_init(&routes->members);
    list_init(&routes->held);
    for (unsigned i = 0; i < ROUTES_NEAR; i++)
        list_init(&routes->near[i]);
}

void routes_fini(struct routes *routes)
{
    while (any_member(routes) != NULL)
        script_node_free(any_member(routes));
    alarm_stop(routes->alarms, &routes->again);
    while (!list_is_empty(&routes->held)) {
        struct batch *batch = batch_at(routes->held.next);
        list_take(&batch->in_exchange);
        batch_drop(batch);
    }
    free(routes->uses);
}
