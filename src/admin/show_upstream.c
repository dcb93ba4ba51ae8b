/*
 * Metrics about the upstream and the connections to it.
 */
#include "admin/show.h"

#include "base/clock.h"
#include "limit/command/slot.h"

/* For each node, the counter at this offset of its counts. */
static void put_counts(struct sheet *s, size_t at)
{
    for (size_t i = 0; i < s->snapshot->n_nodes; i++) {
        const struct snapshot_node *node = &s->snapshot->nodes[i];
        put(s, LABELS({"upstream", node->address}), count_read((const void *)((const char *)&node->lanes + at)));
    }
}

void show_up(struct sheet *s)
{
    for (size_t i = 0; i < s->snapshot->n_nodes; i++)
        put(s, LABELS({"upstream", s->snapshot->nodes[i].address}),
            node_state_is_up(s->snapshot->nodes[i].health.state));
}

void show_upstream_info(struct sheet *s)
{
    for (size_t i = 0; i < s->snapshot->n_nodes; i++) {
        const struct snapshot_node *node = &s->snapshot->nodes[i];
        put(s, LABELS({"upstream", node->address}, {"address", node->in_use}, {"role", node->role}), 1);
    }
}

void show_masters(struct sheet *s)
{
    for (size_t i = 0; i < s->snapshot->n_nodes; i++)
        put(s, LABELS({"upstream", s->snapshot->nodes[i].address}), s->snapshot->nodes[i].use >= USED_FOR_SLOTS);
}

void show_has_master(struct sheet *s)
{
    put(s, NO_LABELS, snapshot_home(s->snapshot) != NULL);
}

void show_lags(struct sheet *s)
{
    for (size_t i = 0; i < s->snapshot->n_nodes; i++) {
        const struct snapshot_node *node = &s->snapshot->nodes[i];
        if (node->lag_ms != SNAPSHOT_NO_LAG)
            put_real(s, LABELS({"upstream", node->address}), (double)node->lag_ms / 1000.0);
    }
}

void show_epochs(struct sheet *s)
{
    for (size_t i = 0; i < s->snapshot->n_nodes; i++)
        if (s->snapshot->nodes[i].epoch != 0)
            put(s, LABELS({"upstream", s->snapshot->nodes[i].address}), s->snapshot->nodes[i].epoch);
}

void show_changes(struct sheet *s)
{
    for (size_t i = 0; i < s->snapshot->n_nodes; i++)
        put_real(s, LABELS({"upstream", s->snapshot->nodes[i].address}),
                 (double)s->snapshot->nodes[i].changed_unix_ms / 1000.0);
}

void show_sent(struct sheet *s)
{
    put_counts(s, offsetof(struct lane_counts, requests));
}

void show_oldest(struct sheet *s)
{
    for (size_t i = 0; i < s->snapshot->n_nodes; i++)
        put_real(s, LABELS({"upstream", s->snapshot->nodes[i].address}),
                 (double)s->snapshot->nodes[i].health.oldest_ns / (double)NS_PER_S);
}

/* Every state of every node, 1 for the one it is in. */
void show_states(struct sheet *s)
{
    for (size_t i = 0; i < s->snapshot->n_nodes; i++)
        for (int state = NODE_UP; state <= NODE_AWAY; state++)
            put(s,
                LABELS({"upstream", s->snapshot->nodes[i].address}, {"state", node_state_name((enum node_state)state)}),
                s->snapshot->nodes[i].health.state == (enum node_state)state);
}

void show_lanes(struct sheet *s)
{
    for (size_t i = 0; i < s->snapshot->n_nodes; i++) {
        const struct snapshot_node *node = &s->snapshot->nodes[i];
        for (int in = LIST_NONE + 1; in < LIST_COUNT; in++)
            put(s, LABELS({"upstream", node->address}, {"state", lane_list_name((enum lane_list)in)}),
                count_read(&node->lanes.lists[in]));
    }
}

void show_in_flight(struct sheet *s)
{
    put_counts(s, offsetof(struct lane_counts, in_flight));
}

void show_blocking(struct sheet *s)
{
    put_counts(s, offsetof(struct lane_counts, blocking));
}

void show_subscribed(struct sheet *s)
{
    put_counts(s, offsetof(struct lane_counts, subscribed));
}

void show_opened(struct sheet *s)
{
    put_counts(s, offsetof(struct lane_counts, opened));
}

void show_losses(struct sheet *s)
{
    for (size_t i = 0; i < s->snapshot->n_nodes; i++) {
        const struct snapshot_node *node = &s->snapshot->nodes[i];
        for (int loss = 0; loss < LOSS_COUNT; loss++)
            put(s, LABELS({"upstream", node->address}, {"reason", lane_loss_name((enum lane_loss)loss)}),
                count_read(&node->lanes.lost[loss]));
    }
}

void show_redirects(struct sheet *s)
{
    for (size_t i = 0; s->snapshot->is_cluster && i < s->snapshot->n_nodes; i++) {
        const struct snapshot_node *node = &s->snapshot->nodes[i];
        for (int kind = 0; kind < REDIRECT_COUNT; kind++)
            put(s, LABELS({"upstream", node->address}, {"kind", lane_redirect_name((enum lane_redirect)kind)}),
                count_read(&node->lanes.redirects[kind]));
    }
}

static void put_slots(struct sheet *s, bool are_moving)
{
    for (size_t i = 0; i < s->snapshot->n_nodes; i++) {
        const struct snapshot_node *node = &s->snapshot->nodes[i];
        if (node->use == USED_FOR_SLOTS)
            put(s, LABELS({"upstream", node->address}), are_moving ? node->slots_moving : node->slots);
    }
}

void show_slots(struct sheet *s)
{
    put_slots(s, false);
}

void show_slots_moving(struct sheet *s)
{
    put_slots(s, true);
}

void show_slots_served(struct sheet *s)
{
    if (!s->snapshot->is_cluster)
        return;
    put(s, LABELS({"state", "up"}), s->snapshot->slots_up);
    put(s, LABELS({"state", "away"}), s->snapshot->slots_served - s->snapshot->slots_up);
    put(s, LABELS({"state", "unserved"}), SLOT_COUNT - s->snapshot->slots_served);
}

void show_error_replies(struct sheet *s)
{
    put_counts(s, offsetof(struct lane_counts, error_replies));
}

void show_pushes_dropped(struct sheet *s)
{
    put_counts(s, offsetof(struct lane_counts, pushes_dropped));
}

void show_lanes_limit(struct sheet *s)
{
    put(s, NO_LABELS, s->snapshot->max_lanes);
}
