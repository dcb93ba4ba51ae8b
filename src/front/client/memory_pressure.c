#include "front/client/memory_pressure.h"

#include "base/ladder.h"
#include "front/client/client.h"
#include "front/client/feed.h"

static uint64_t unread(const struct client *client)
{
    return link_pending(&client->link) + replies_bytes(&client_extra(client)->replies);
}

/* Operators are heard always; and who gets what it has not asked for would not get less of it. */
static bool is_exempt(const struct client *client)
{
    return client_entrance(client)->is_admin || pin_has(client, PIN_PASSTHROUGH) || client_is_leaving(client);
}

/* It goes on at half of its share, so that it does not stop again at once. */
static void judge(struct client *client, enum ladder_step step, uint64_t share_bytes)
{
    uint64_t most = client_waits_for(client, WAIT_MEMORY) ? share_bytes / 2 : share_bytes;
    bool is_stalled = step >= LADDER_STALL && !is_exempt(client) && unread(client) > most;
    if (is_stalled == client_waits_for(client, WAIT_MEMORY))
        return;
    count_add(&client->front->counts.stalled, is_stalled ? 1 : UINT64_MAX);
    feed_stall(client, is_stalled);
}

void memory_pressure_look(struct front *front)
{
    struct memory_pressure *pressure = &front->settings->memory_pressure;
    enum ladder_step step = (enum ladder_step)atomic_load_explicit(&pressure->step, memory_order_relaxed);
    uint64_t share_bytes = atomic_load_explicit(&pressure->share_bytes, memory_order_relaxed);
    if (step >= LADDER_SHED)
        pool_shed(&front->loop->pool);
    if (step < LADDER_STALL && count_read(&front->counts.stalled) == 0)
        return;
    for (struct list *at = front->clients.next; at != &front->clients; at = at->next)
        judge(container_of(at, struct client, in_front), step, share_bytes);
}

void memory_pressure_forget(struct client *client)
{
    if (!client_waits_for(client, WAIT_MEMORY))
        return;
    count_add(&client->front->counts.stalled, UINT64_MAX);
    feed_stall(client, false);
}
