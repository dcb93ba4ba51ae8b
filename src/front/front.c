#include "front/front.h"

/* The operator's connections are not among those that there can be too many of. */
void front_leave(struct front *front, const struct entrance *entrance)
{
    if (!entrance->is_admin)
        atomic_fetch_sub_explicit(&front->settings->clients, 1, memory_order_relaxed);
}

/* It does not list what came with 7.0. */
bool front_is_before_7(const struct front *front)
{
    return command_by_name(front->commands, SLICE("ssubscribe")) == NULL;
}
