#include "front/drain.h"

#include "front/client.h"
#include "front/holds.h"

/* ---- one client ---- */

/* Has Redis, or weir, something for it that no command asks for anew? */
static bool is_attached(const struct client *client)
{
    const struct lane *lane = client->has_private_lane ? client->rider.lane : NULL;
    return !transaction_is_none(&client->transaction) || client->is_raw || (client->holds & HOLD_WATCH) != 0 ||
           (lane != NULL && (lane_is_subscribed(lane) || lane->is_monitoring || lane_is_in_message(lane)));
}

/* Has it sent something that is not done with? */
static bool is_unfinished(const struct client *client)
{
    const struct extra *extra = client_extra(client);
    return client->rider.in_flight > 0 || client->is_held || reply_mode_skips(&client->reply_mode) ||
           extra->n_asked > 0 || extra->passage != NULL || extra->order != NULL || replies_bytes(&extra->replies) > 0 ||
           (client->intake != NULL && !intake_is_empty(client->intake)) || link_has_unread(&client->link);
}

void client_drain_came(struct client *client)
{
    client->is_fresh = true;
}

void client_drain_look(struct client *client)
{
    if (client_is_closed(client) || client->is_leaving)
        return;
    if (client->rider.in_flight > 0)
        client->rider.wants_idle = true;
    if (is_attached(client) || is_unfinished(client))
        return;
    client_part(client);
}

/* ---- all of them ---- */

/*
 * One who has been let go and still is there ignores it, as a pool with idle connections does. To one who is not even in
 * nothing can be said.
 */
static void look_at(struct client *client)
{
    bool was_fresh = client->is_fresh;
    bool is_outside = client->subject == NULL && !was_fresh;
    client->is_fresh = false;
    if (client->is_overdue || is_outside)
        client_close_for(client, CLOSED_DRAIN);
    else if (client->is_parted)
        client->is_overdue = !link_is_sending(&client->link);
    else if (!was_fresh)
        client_drain_look(client);
}

static void on_tick(uv_timer_t *tick)
{
    struct front *front = tick->data;
    struct list *next;
    for (struct list *at = front->clients.next; at != &front->clients; at = next) {
        next = at->next;
        look_at(container_of(at, struct client, in_front));
    }
}

void client_drain_left(struct front *front)
{
    if (front->drain.is_on && list_is_empty(&front->clients))
        front->settings->on_empty(front->worker);
}

void client_drain_init(struct front *front)
{
    uv_timer_init(&front->loop->uv, &front->drain.tick);
    front->drain.tick.data = front;
}

void client_drain_begin(struct front *front, uint64_t tick_ms)
{
    front->drain.is_on = true;
    for (struct list *at = front->clients.next; at != &front->clients; at = at->next) {
        struct client *client = container_of(at, struct client, in_front);
        client->rider.wants_idle |= client->rider.in_flight > 0;
        client->is_fresh &= client->subject == NULL;
    }
    uv_timer_start(&front->drain.tick, on_tick, tick_ms, tick_ms);
    client_drain_left(front);
}

void client_drain_close(struct front *front)
{
    front->drain.is_on = false;
    uv_close((uv_handle_t *)&front->drain.tick, NULL);
}
