#include "admin/snapshot.h"

#include <stdlib.h>

struct snapshot *snapshot_new(void)
{
    struct snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (snapshot == NULL)
        return NULL;
    atomic_init(&snapshot->holders, 1);
    snapshot->block_id = TOP_NO_LIMIT;
    return snapshot;
}

struct snapshot *snapshot_get(struct snapshot *snapshot)
{
    atomic_fetch_add_explicit(&snapshot->holders, 1, memory_order_relaxed);
    return snapshot;
}

void snapshot_put(struct snapshot *snapshot)
{
    if (snapshot == NULL || atomic_fetch_sub_explicit(&snapshot->holders, 1, memory_order_acq_rel) > 1)
        return;
    history_free(snapshot->history);
    free(snapshot->nodes);
    free(snapshot->limits);
    free(snapshot->owns);
    free(snapshot->named);
    free(snapshot);
}

const char *node_use_name(enum node_use use)
{
    static const char *const names[] = {
        [USED_FOR_NOTHING] = "nothing", [USED_FOR_READS] = "reads", [USED_FOR_SLOTS] = "slots", [USED_FOR_ALL] = "all"};
    return names[use];
}

const struct snapshot_node *snapshot_default_node(const struct snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->n_nodes; i++)
        if (snapshot->nodes[i].use >= USED_FOR_SLOTS)
            return &snapshot->nodes[i];
    return NULL;
}

const char *node_state_name(enum node_state state)
{
    static const char *const names[] = {[NODE_UP] = "up",
                                        [NODE_BUSY] = "busy",
                                        [NODE_PAUSED] = "paused",
                                        [NODE_SILENT] = "silent",
                                        [NODE_AWAY] = "away"};
    return names[state];
}

uint64_t snapshot_clients(const struct snapshot *snapshot)
{
    uint64_t open = 0;
    for (size_t l = 0; l < snapshot->n_listeners; l++)
        open += snapshot->listeners[l].is_admin ? 0 : snapshot->listeners[l].open;
    return open;
}
