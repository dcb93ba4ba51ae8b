#include "admin/snapshot.h"

#include <stdlib.h>

struct snapshot *snapshot_new(void)
{
    struct snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (snapshot == NULL)
        return NULL;
    atomic_init(&snapshot->holders, 1);
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
    free(snapshot->named);
    free(snapshot);
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
