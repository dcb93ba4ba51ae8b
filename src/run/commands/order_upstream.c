#include "run/commands/order_upstream.h"

#include "resp/build.h"

static void put_text(struct build *out, const char *name, const char *text)
{
    build_bulk_str(out, name);
    build_bulk_str(out, text);
}

static void put_number(struct build *out, const char *name, int64_t n)
{
    build_bulk_str(out, name);
    build_int(out, n);
}

/* What weir could say of each address that it dialled, or why the server cannot be served; "": nothing. */
static const char *why_of(const struct snapshot_node *node)
{
    const char *why = node->why;
    for (unsigned i = 0; i < node->n_tries && why[0] == '\0'; i++)
        why = node->tries[i].why;
    return why;
}

static void put_row(struct build *out, const struct snapshot_node *node, const struct snapshot *s)
{
    const struct lane_counts *lanes = &node->lanes;
    uint64_t n_lanes = 0, n_lost = 0;
    for (int in = LIST_NONE + 1; in < LIST_COUNT; in++)
        n_lanes += count_read(&lanes->lists[in]);
    for (int loss = 0; loss < LOSS_COUNT; loss++)
        n_lost += count_read(&lanes->lost[loss]);
    bool has_changed = node->changed_unix_ms != 0 && node->changed_unix_ms <= s->unix_ms;
    build_map(out, 17);
    put_text(out, "address", node->address);
    put_text(out, "in_use", node->in_use);
    put_text(out, "role", node->role);
    put_text(out, "state", node_state_name(node->health.state));
    put_text(out, "used_for", node_use_name(node->use));
    put_number(out, "epoch", (int64_t)node->epoch);
    put_number(out, "lag_ms", node->lag_ms != SNAPSHOT_NO_LAG ? (int64_t)node->lag_ms : -1);
    put_number(out, "behind_bytes", node->lag_ms != SNAPSHOT_NO_LAG ? (int64_t)node->behind_bytes : -1);
    put_number(out, "lanes", (int64_t)n_lanes);
    put_number(out, "in_flight", (int64_t)count_read(&lanes->in_flight));
    put_number(out, "requests", (int64_t)count_read(&lanes->requests));
    put_number(out, "errors", (int64_t)count_read(&lanes->error_replies));
    put_number(out, "lost", (int64_t)n_lost);
    put_number(out, "changed_ms_ago", has_changed ? (int64_t)(s->unix_ms - node->changed_unix_ms) : -1);
    put_text(out, "why", why_of(node));
    put_number(out, "slots", node->slots);
    put_number(out, "slots_moving", node->slots_moving);
}

void order_upstream(struct order *order, const struct census *census)
{
    struct snapshot *snapshot = census_look(census);
    order->is_starved = snapshot == NULL;
    if (snapshot == NULL)
        return;
    build_array(&order->rows, snapshot->n_nodes);
    for (size_t i = 0; i < snapshot->n_nodes; i++)
        put_row(&order->rows, &snapshot->nodes[i], snapshot);
    order->is_starved = order->rows.is_broken;
    snapshot_put(snapshot);
}
