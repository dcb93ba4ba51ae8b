#include "front/drain.h"

#include <stdio.h>

#include "front/client.h"
#include "front/meter.h"
#include "front/session.h"
#include "front/timeouts.h"

/* ---- one client ---- */

/* Has Redis, or weir, something for it that no command asks for anew? */
static bool is_attached(const struct client *client)
{
    const struct lane *lane = client->has_private_lane ? client->rider.lane : NULL;
    return !transaction_is_none(&client->transaction) || pin_has(client, PIN_PASSTHROUGH) ||
           pin_has(client, PIN_WATCH) ||
           (lane != NULL && (lane_is_subscribed(lane) || lane_is_monitoring(lane) || lane_is_in_message(lane)));
}

/* Has it sent something that is not done with? */
static bool is_unfinished(const struct client *client)
{
    const struct extra *extra = client_extra(client);
    return client->rider.in_flight > 0 || client->waits != 0 || reply_mode_skips(&client->reply_mode) ||
           extra->n_asked > 0 || extra->passage != NULL || extra->order != NULL || replies_bytes(&extra->replies) > 0 ||
           (client->intake != NULL && !intake_is_empty(client->intake)) || link_has_unread(&client->link);
}

static bool stays(const struct client *client)
{
    return client_is_operator(client) && !client->front->drain.lets_operators_go;
}

void client_drain_look(struct client *client)
{
    if (client->state != CLIENT_OPEN || stays(client))
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
    if (stays(client))
        return;
    const struct client_drain *drain = &client->front->drain;
    bool is_new = timeouts_is_new(client, drain->looked_ms) || (client_is_shaking(client) && !drain->has_looked);
    if (client->output == OUTPUT_OVERDUE || (client_is_shaking(client) && !is_new))
        client_close_for(client, CLOSED_DRAIN);
    else if (client_is_parted(client))
        client->output = link_is_sending(&client->link) ? OUTPUT_ENDED : OUTPUT_OVERDUE;
    else if (!is_new)
        client_drain_look(client);
}

/* ---- who is still there ---- */

static const char *why_there(const struct client *client)
{
    const struct extra *extra = client_extra(client);
    const struct lane *lane = client->has_private_lane ? client->rider.lane : NULL;
    if (client_is_leaving(client))
        return "let go, and still connected";
    if (lane != NULL && lane_is_monitoring(lane))
        return "monitors";
    if (lane != NULL && lane_is_subscribed(lane))
        return "subscribed";
    if (!transaction_is_none(&client->transaction))
        return "in MULTI";
    if (pin_has(client, PIN_WATCH))
        return "watches keys";
    if (client->rider.in_flight > 0 && lane != NULL && lane_may_wait(lane))
        return "blocks in Redis";
    if (client->rider.in_flight > 0)
        return "waits for Redis";
    if (extra->n_asked > 0 || extra->order != NULL)
        return "waits for LIMIT";
    if (extra->passage != NULL || (client->intake != NULL && !intake_is_empty(client->intake)))
        return client->waits != 0 ? "waits for its turn" : "has sent a part of a request";
    return link_is_sending(&client->link) ? "has replies to read" : "silent";
}

static void name_holder(const struct client *client, char out[DRAIN_LINE])
{
    char who[SESSION_TEXT];
    struct slice name = session_name(client);
    int shown = (int)(name.len < 64 ? name.len : 64);
    session_print(client, who);
    snprintf(out, DRAIN_LINE, "%s%s%.*s (%s)", who, shown > 0 ? " name:" : "", shown, name.at, why_there(client));
}

static void note_holders(struct front *front)
{
    struct drain_holders *holders = &front->drain.holders;
    pthread_mutex_lock(&front->drain.lock);
    holders->n = holders->n_named = 0;
    for (const struct list *at = front->clients.next; at != &front->clients; at = at->next) {
        const struct client *client = container_of(at, struct client, in_front);
        if (stays(client))
            continue;
        holders->n++;
        if (holders->n_named < DRAIN_NAMED)
            name_holder(client, holders->named[holders->n_named++]);
    }
    pthread_mutex_unlock(&front->drain.lock);
}

void client_drain_holders(struct front *front, struct drain_holders *out)
{
    pthread_mutex_lock(&front->drain.lock);
    *out = front->drain.holders;
    pthread_mutex_unlock(&front->drain.lock);
}

/* ---- once in a tick ---- */

static void on_tick(uv_timer_t *tick)
{
    struct front *front = tick->data;
    struct list *next;
    for (struct list *at = front->clients.next; at != &front->clients; at = next) {
        next = at->next;
        look_at(container_of(at, struct client, in_front));
    }
    front->drain.looked_ms = timeouts_now_ms(front);
    front->drain.has_looked = true;
    note_holders(front);
}

/* Operators are few: who is no operator is found soon. */
static bool is_empty(const struct front *front)
{
    for (const struct list *at = front->clients.next; at != &front->clients; at = at->next)
        if (!stays(container_of(at, struct client, in_front)))
            return false;
    return true;
}

void client_drain_left(struct front *front)
{
    if (front->drain.is_on && is_empty(front))
        front->settings->on_empty(front->worker);
}

void client_drain_init(struct front *front)
{
    uv_timer_init(&front->loop->uv, &front->drain.tick);
    front->drain.tick.data = front;
    pthread_mutex_init(&front->drain.lock, NULL);
}

void client_drain_fini(struct front *front)
{
    pthread_mutex_destroy(&front->drain.lock);
}

void client_drain_begin(struct front *front, uint64_t tick_ms, bool has_successor)
{
    front->drain.is_on = true;
    front->drain.lets_operators_go = has_successor;
    front->drain.looked_ms = timeouts_now_ms(front);
    for (struct list *at = front->clients.next; at != &front->clients; at = at->next) {
        struct client *client = container_of(at, struct client, in_front);
        client->rider.wants_idle |= client->rider.in_flight > 0;
    }
    uv_timer_start(&front->drain.tick, on_tick, tick_ms, tick_ms);
    client_drain_left(front);
}

void client_drain_close(struct front *front)
{
    front->drain.is_on = false;
    uv_close((uv_handle_t *)&front->drain.tick, NULL);
}
