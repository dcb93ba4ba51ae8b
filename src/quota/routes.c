#include "quota/routes.h"

#include <stdlib.h>

#include "base/mem.h"

/* ---- members ---- */

static struct script_node *any_member(const struct routes *routes)
{
    const struct list *first = routes->members.next;
    return first != &routes->members ? routes_member_at(first) : NULL;
}

static struct script_node *find(const struct routes *routes, const struct lanes *lanes)
{
    for (struct list *at = routes->members.next; at != &routes->members; at = at->next) {
        struct script_node *node = routes_member_at(at);
        if (!node->is_leaving && node->conn.base.lanes == lanes)
            return node;
    }
    return NULL;
}

struct script_node *routes_member(struct routes *routes, struct nodes_row *row)
{
    struct lanes *lanes = &row->lanes;
    struct script_node *node = find(routes, lanes);
    if (node != NULL)
        return node;
    node = script_node_new(lanes, routes->alarms, login_get(lanes->base.commons->own.newest), any_member(routes),
                           routes->ops, routes->arg);
    if (node == NULL)
        return NULL;
    node->number = routes->n_numbers++;
    list_push(&routes->members, &node->in_exchange);
    return node;
}

struct nodes_row *routes_row(const struct routes *routes, uint16_t slot)
{
    const struct nodes *nodes = routes->nodes;
    if (!routes->is_cluster)
        return nodes_home(nodes);
    return nodes->topology->slots != NULL ? nodes_slot_row(nodes, slot) : NULL;
}

struct script_node *routes_of(struct routes *routes, uint16_t slot)
{
    struct nodes_row *row = routes_row(routes, slot);
    return routes_member(routes, row != NULL ? row : nodes_home(routes->nodes));
}

/* ---- what is to be sent ---- */

void routes_put_at(struct routes *routes, struct batch *batch, struct script_node *node)
{
    struct list *near = routes_near(routes, batch->slot), *at = near->prev;
    while (at != near && routes_near_at(at)->order > batch->order)
        at = at->prev;
    list_push(at->next, &batch->in_slot);
    batch->node = node;
    script_node_add(node, batch);
}

void routes_move_slot(struct routes *routes, uint16_t slot, struct script_node *node)
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
    batch_fail(routes->owner, batch, err_text(ERR_OUT_OF_MEMORY), false);
}

void routes_put(struct routes *routes, struct batch *batch)
{
    struct script_node *node = routes_of(routes, batch->slot);
    if (node == NULL) {
        routes_starve(routes, batch);
        return;
    }
    batch->is_asking = false;
    routes_move_slot(routes, batch->slot, node);
    routes_put_at(routes, batch, node);
}

void routes_take_out(struct batch *batch)
{
    list_take(&batch->in_exchange);
    list_take(&batch->in_slot);
}

/* ---- what is under way ---- */

/* Batches of the slot may wait for what is no longer under way. */
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

/* ---- another topology ---- */

/* True if the worker has a row with these lanes that decisions go to. */
static bool has_lanes(const struct routes *routes, const struct lanes *lanes)
{
    const struct nodes *nodes = routes->nodes;
    size_t n = routes->is_cluster ? nodes->topology->n_masters : 1;
    for (size_t i = 0; i < n; i++)
        if (&nodes->rows[i]->lanes == lanes)
            return true;
    return false;
}

/* What is to be sent goes where its slot is served now. */
static void put_all_anew(struct routes *routes)
{
    struct list all;
    list_init(&all);
    for (struct list *at = routes->members.next; at != &routes->members; at = at->next) {
        struct script_node *node = routes_member_at(at);
        while (!list_is_empty(&node->open)) {
            struct batch *batch = container_of(node->open.next, struct batch, in_exchange);
            routes_take_out(batch);
            batch_put_in_order(&all, batch);
        }
    }
    while (!list_is_empty(&all)) {
        struct batch *batch = container_of(all.next, struct batch, in_exchange);
        list_take(&batch->in_exchange);
        routes_put(routes, batch);
    }
}

bool routes_adopt(struct routes *routes)
{
    uint64_t moves_until_ns = 0;
    bool has_left = false;
    for (struct list *at = routes->members.next; at != &routes->members; at = at->next) {
        struct script_node *node = routes_member_at(at);
        if (node->is_leaving || has_lanes(routes, node->conn.base.lanes))
            continue;
        has_left = true;
        moves_until_ns = node->moves_until_ns > moves_until_ns ? node->moves_until_ns : moves_until_ns;
        script_node_leave(node);
    }
    if (!has_left && !routes->is_cluster)
        return false;
    struct script_node *home = moves_until_ns > 0 ? routes_member(routes, nodes_home(routes->nodes)) : NULL;
    if (home != NULL && !routes->is_cluster)
        home->moves_until_ns = moves_until_ns;
    put_all_anew(routes);
    return true;
}

/* ---- the worker's ---- */

void routes_init(struct routes *routes, struct nodes *nodes, struct alarms *alarms, const struct batch_owner *owner,
                 const struct script_node_ops *ops, void *arg)
{
    *routes = (struct routes){.owner = owner, .nodes = nodes, .alarms = alarms, .ops = ops, .arg = arg};
    routes->is_cluster = nodes->commons.upstream->is_cluster;
    routes->uses = mem_zalloc(routes->is_cluster ? SLOT_COUNT : 1, sizeof *routes->uses);
    list_init(&routes->members);
    for (unsigned i = 0; i < ROUTES_NEAR; i++)
        list_init(&routes->near[i]);
}

void routes_fini(struct routes *routes)
{
    while (any_member(routes) != NULL)
        script_node_free(any_member(routes));
    free(routes->uses);
}
