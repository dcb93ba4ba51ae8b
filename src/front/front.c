#include "front/front.h"

#include "limit/gate_request.h"

/* Operators' connections do not count for max-clients. */
void front_leave(struct front *front, const struct listen_address *listen_address)
{
    if (!listen_address->is_admin)
        atomic_fetch_sub_explicit(&front->settings->clients, 1, memory_order_relaxed);
}

/* SSUBSCRIBE came with Redis 7.0. */
bool front_is_before_7(const struct front *front)
{
    return command_by_name(front->commands, SLICE("ssubscribe")) == NULL;
}

/* ---- tables ---- */

struct tables tables_get(const struct tables *tables)
{
    command_table_get(tables->commands);
    rules_get(tables->rules);
    topology_get(tables->topology);
    return *tables;
}

void tables_put(const struct tables *tables)
{
    if (tables->rules == NULL)
        return;
    command_table_put(tables->commands);
    rules_put(tables->rules);
    topology_put(tables->topology);
}

/* ---- for the log ---- */

void front_note_stopped(struct front *front, const struct charge_target *target,
                        const struct limit *limit, enum offender_kind kind)
{
    const struct subject *subject = target->holders[PER_SUBJECT];
    offenders_note(front->offenders, limit->id, kind, subject_name(subject), subject->hash);
}
