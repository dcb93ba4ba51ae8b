#include "quota/held.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "quota/unable.h"
#include "upstream/lane/lack.h"
#include "upstream/node/redirect.h"

#define HOPS_MAX 5

enum wait_for {
    WAIT_FOR_MASTER,  /* a promotion takes longer than a pause */
    WAIT_FOR_CLUSTER, /* failover-wait, too */
    WAIT_FOR_KEYS,    /* redirect-timeout */
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

static const struct decision *first_call(const struct batch *batch)
{
    return container_of(batch->entries[0].calls.next, struct decision, in_entry);
}

static uint64_t failover_wait_ns(const struct batch *batch)
{
    return first_call(batch)->failover_wait_ns;
}

static uint64_t now_of(const struct held *held)
{
    return routes_now_ns(held->routes);
}

static void count(const struct script_node *node, enum lane_redirect redirect)
{
    count_add(&node->conn.base.lanes->base.counts.redirects[redirect], 1);
}

/* A batch of a cluster fails; whichever node serves its slot now is named for that. */
static void count_given_up(const struct held *held, const struct batch *batch)
{
    const struct script_node *node = held->routes->is_cluster ? routes_of(held->routes, batch->slot) : NULL;
    if (node != NULL)
        count(node, REDIRECT_GIVEN_UP);
}

/* ---- waiting ---- */

static void put(struct held *held, struct batch *batch)
{
    struct alarms *alarms = held->routes->alarms;
    batch_put_in_order(&held->batches, batch);
    if (alarm_is_set(&held->alarm) && held->alarm.due_ns <= batch->again_ns)
        return;
    alarm_stop(alarms, &held->alarm);
    alarm_set(alarms, &held->alarm, batch->again_ns);
}

/* False: there is no memory for the error, or the time since the first refusal is over: it has failed. */
static bool may_wait(struct held *held, struct batch *batch, struct slice error, bool is_away)
{
    char *refusal = strndup(error.at, error.len);
    if (refusal == NULL || now_of(held) >= batch->until_ns) {
        free(refusal);
        count_given_up(held, batch);
        batch_fail(held->routes->owner, batch, error, is_away);
        return false;
    }
    free(batch->refusal);
    batch->refusal = refusal;
    batch->is_away = is_away;
    return true;
}

/* It is asked again in a moment; until the wait is over, which begins with the first refusal. */
static void hold(struct held *held, struct batch *batch, struct slice error, bool is_away, enum wait_for wait)
{
    uint64_t now_ns = now_of(held), longer_ns = 2 * batch->pause_ns;
    const struct pauses *pause = &pauses[wait];
    uint64_t wait_ns =
        wait == WAIT_FOR_KEYS ? routes_upstream(held->routes)->redirect_timeout_ns : failover_wait_ns(batch);
    if (batch->until_ns == 0)
        batch->until_ns = now_ns + wait_ns;
    if (!may_wait(held, batch, error, is_away))
        return;
    batch->pause_ns = longer_ns < pause->first_ns ? pause->first_ns : longer_ns;
    if (batch->pause_ns > pause->most_ns)
        batch->pause_ns = pause->most_ns;
    batch->again_ns = now_ns + batch->pause_ns;
    put(held, batch);
}

bool held_put_behind(struct held *held, struct batch *batch, const struct batch *before)
{
    if (batch->until_ns == 0)
        batch->until_ns = now_of(held) + failover_wait_ns(batch);
    if (!may_wait(held, batch, slice_str(before->refusal), before->is_away))
        return false;
    batch->again_ns = before->again_ns;
    put(held, batch);
    return true;
}

static void set_alarm(struct held *held)
{
    uint64_t due_ns = UINT64_MAX;
    for (struct list *at = held->batches.next; at != &held->batches; at = at->next)
        due_ns = batch_at(at)->again_ns < due_ns ? batch_at(at)->again_ns : due_ns;
    alarm_stop(held->routes->alarms, &held->alarm);
    if (due_ns != UINT64_MAX)
        alarm_set(held->routes->alarms, &held->alarm, due_ns);
}

/* Those that are due by then. */
static void take_due(struct held *held, uint64_t due_ns, struct list *due)
{
    struct list *next;
    list_init(due);
    for (struct list *at = held->batches.next; at != &held->batches; at = next) {
        next = at->next;
        if (batch_at(at)->again_ns > due_ns)
            continue;
        list_take(at);
        list_push(due, at);
    }
}

/* Those that have waited long enough fail; the others that are due are asked again. */
static void ask_again(struct held *held, uint64_t due_ns)
{
    uint64_t now_ns = now_of(held);
    struct list due;
    take_due(held, due_ns, &due);
    while (!list_is_empty(&due)) {
        struct batch *batch = batch_at(due.next);
        list_take(&batch->in_exchange);
        if (now_ns >= batch->until_ns) {
            count_given_up(held, batch);
            batch_fail(held->routes->owner, batch, slice_str(batch->refusal), batch->is_away);
            continue;
        }
        batch->asked_ns = now_ns;
        routes_put(held->routes, batch);
    }
    set_alarm(held);
}

static void on_due(struct alarm *alarm)
{
    struct held *held = container_of(alarm, struct held, alarm);
    ask_again(held, now_of(held));
}

void held_ask_all(struct held *held)
{
    ask_again(held, UINT64_MAX);
}

/* ---- what Redis says ---- */

static const struct slice moved = {"-UPSTREAM moved\r\n", sizeof "-UPSTREAM moved\r\n" - 1};

/* Redis has answered that it is no master. Until failover-wait is over, another may be, though none can be reached. */
static void be_refused(struct held *held, struct batch *batch, struct slice error)
{
    batch->node->moves_until_ns = now_of(held) + failover_wait_ns(batch);
    if (held->routes->is_cluster)
        upstream_ask_topology(routes_upstream(held->routes));
    hold(held, batch, error, false, WAIT_FOR_MASTER);
}

static void wait_for_topology(struct held *held, struct batch *batch, struct slice error)
{
    upstream_ask_topology(routes_upstream(held->routes));
    hold(held, batch, error, true, WAIT_FOR_CLUSTER);
}

/* Each entry by itself: a command with one key is never told to try again. Out of memory: some stay together. */
static void split(struct held *held, struct batch *batch)
{
    struct list parts; /* the last entry first */
    struct batch *part;
    list_init(&parts);
    while (batch->n > 1 && (part = batch_split(batch)) != NULL)
        list_push(&parts, &part->in_exchange);
    routes_put(held->routes, batch);
    while (!list_is_empty(&parts)) {
        part = batch_at(parts.prev);
        list_take(&part->in_exchange);
        routes_put(held->routes, part);
    }
}

static uint16_t index_of(const struct nodes *nodes, const struct nodes_row *row)
{
    uint16_t i = 0;
    while (nodes->rows[i] != row)
        i++;
    return i;
}

/* The node that a redirect names serves the slot from now on, or takes it. */
static void follow(struct held *held, struct batch *batch, struct slice reply)
{
    struct redirect redirect;
    struct routes *routes = held->routes;
    const struct lanes *from = batch->node->conn.base.lanes;
    bool is_one = redirect_parse(reply, &redirect);
    if (is_one)
        count(batch->node, redirect.is_ask ? REDIRECT_ASK : REDIRECT_MOVED);
    if (!is_one || redirect.slot != batch->slot || batch->n_hops++ == HOPS_MAX) {
        count_given_up(held, batch);
        batch_fail(routes->owner, batch, moved, true);
        return;
    }
    struct nodes_row *row = redirect_row(&redirect, routes->nodes, lanes_node(from));
    if (row == NULL || &row->lanes == from) {
        wait_for_topology(held, batch, moved);
        return;
    }
    struct script_node *node = routes_member(routes, row);
    if (node == NULL) {
        routes_starve(routes, batch);
        return;
    }
    batch->is_asking = redirect.is_ask;
    if (!redirect.is_ask) {
        slot_map_set(routes->nodes->topology->slots, batch->slot, index_of(routes->nodes, row));
        upstream_ask_topology(routes_upstream(routes));
        routes_move_slot(routes, batch->slot, node);
    }
    routes_put_at(routes, batch, node);
}

/* What only a cluster says. False: it is another error. */
static bool take_clusters(struct held *held, struct batch *batch, enum unable unable, struct slice error)
{
    switch (unable) {
    case UNABLE_REDIRECTED:
        follow(held, batch, error);
        return true;
    case UNABLE_TRY_AGAIN:
        count(batch->node, REDIRECT_TRYAGAIN);
        if (batch->n > 1)
            split(held, batch);
        else
            hold(held, batch, error, true, WAIT_FOR_KEYS);
        return true;
    case UNABLE_CLUSTER_DOWN:
        count(batch->node, REDIRECT_CLUSTERDOWN);
        wait_for_topology(held, batch, error);
        return true;
    case UNABLE_NOT_RUN:
    case UNABLE_TO_DECIDE:
    case UNABLE_NO:
        break;
    }
    return false;
}

void held_take_error(struct held *held, struct batch *batch, struct slice error)
{
    char named[LACK_ERROR_ROOM];
    enum unable unable = unable_of(error);
    if (held->routes->is_cluster && take_clusters(held, batch, unable, error))
        return;
    if (unable == UNABLE_NOT_RUN)
        be_refused(held, batch, error);
    else
        batch_fail(held->routes->owner, batch, script_conn_explain(&batch->node->conn, error, named), false);
}

/* Its caller waits in any case, for a window or a permit: so it may wait for a master, too. */
static bool has_waited(const struct batch *batch)
{
    return first_call(batch)->has_waited;
}

/* What waits for a master waits on. */
void held_take_lack(struct held *held, struct batch *batch, struct slice error, bool is_away)
{
    if (now_of(held) < batch->node->moves_until_ns && batch->until_ns == 0)
        batch->until_ns = batch->node->moves_until_ns;
    if (!is_away && unable_of(error) == UNABLE_NOT_RUN)
        be_refused(held, batch, error);
    else if (batch->until_ns != 0 || has_waited(batch))
        hold(held, batch, error, is_away, WAIT_FOR_MASTER);
    else
        batch_fail(held->routes->owner, batch, error, is_away);
}

/* ---- the exchange's ---- */

void held_init(struct held *held, struct routes *routes)
{
    *held = (struct held){.alarm.on_due = on_due, .routes = routes};
    list_init(&held->batches);
}

void held_fini(struct held *held)
{
    alarm_stop(held->routes->alarms, &held->alarm);
    while (!list_is_empty(&held->batches)) {
        struct batch *batch = batch_at(held->batches.next);
        list_take(&batch->in_exchange);
        batch_drop(batch);
    }
}
