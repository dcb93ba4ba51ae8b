/*
 * Metrics of the upstream, and of the connections to it.
 */
#include "admin/show.h"

static void put_one(struct sheet *s, uint64_t value)
{
    put(s, LABELS({"upstream", s->snapshot->upstream}), value);
}

void show_up(struct sheet *s)
{
    put_one(s, s->snapshot->is_up);
}

void show_lanes(struct sheet *s)
{
    for (int in = LIST_NONE + 1; in < LIST_COUNT; in++)
        put(s, LABELS({"upstream", s->snapshot->upstream}, {"state", lane_list_name((enum lane_list)in)}),
            count_read(&s->snapshot->lanes.lists[in]));
}

void show_in_flight(struct sheet *s)
{
    put_one(s, count_read(&s->snapshot->lanes.in_flight));
}

void show_blocking(struct sheet *s)
{
    put_one(s, count_read(&s->snapshot->lanes.blocking));
}

void show_subscribed(struct sheet *s)
{
    put_one(s, count_read(&s->snapshot->lanes.subscribed));
}

void show_opened(struct sheet *s)
{
    put_one(s, count_read(&s->snapshot->lanes.opened));
}

void show_losses(struct sheet *s)
{
    for (int loss = 0; loss < LOSS_COUNT; loss++)
        put(s, LABELS({"upstream", s->snapshot->upstream}, {"reason", lane_loss_name((enum lane_loss)loss)}),
            count_read(&s->snapshot->lanes.lost[loss]));
}

void show_pushes_dropped(struct sheet *s)
{
    put_one(s, count_read(&s->snapshot->lanes.pushes_dropped));
}

void show_lanes_limit(struct sheet *s)
{
    put(s, NO_LABELS, s->snapshot->max_lanes);
}
