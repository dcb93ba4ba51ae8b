#include "front/client/drain.h"

#include <stdio.h>

#include "front/client/client.h"
#include "front/client/session.h"
#include "front/client/timeouts.h"

#define WHY_ROOM 256

/* ---- one client ---- */

/* True if Redis or weir keeps something for the client that a new connection would not have. */
static bool is_attached(const struct client *client)
{
    const struct lane *lane = client_has_own_lane(client) ? client->lane_user.lane : NULL;
    return !transaction_is_none(&client->transaction) || pin_has(client, PIN_PASSTHROUGH) ||
           pin_has(client, PIN_WATCH) || client_is_subscribed(client) ||
           (lane != NULL && (lane_is_monitoring(lane) || lane_is_in_message(lane)));
}

/* True if a request of the client is not answered, or a reply not written. */
static bool is_unfinished(const struct client *client)
{
    const struct extra *extra = client_extra(client);
    return client_has_calls(client) || client->waits != 0 ||
           reply_mode_skips(&client->reply_mode) || extra->n_asked > 0 || extra->passage != NULL ||
           extra->admin_command != NULL || replies_bytes(&extra->replies) > 0 ||
           (client->intake != NULL && client->intake->taken < client->intake->filled) ||
           link_has_unread(&client->link);
}

static bool stays(const struct client *client)
{
    return client_is_operator(client) && !client->front->drain.lets_operators_go;
}

void client_drain_look(struct client *client)
{
    if (client->state != CLIENT_OPEN || stays(client))
        return;
    client_want_idle(client);
    if (is_attached(client) || is_unfinished(client))
        return;
    client_part(client);
}

/* ---- all clients ---- */

/*
 * Closes a client that has ignored client_part for a tick. For example, a connection pool may not
 * read its idle connections. Closes a client after a whole tick of its handshake, since no reply
 * can reach it.
 */
static void drain_look_at(struct client *client)
{
    if (stays(client))
        return;
    const struct client_drain *drain = &client->front->drain;
    bool is_new = timeouts_is_new(client, drain->looked_ms) ||
                  (client_is_shaking(client) && !drain->has_looked);
    if (client->output == OUTPUT_OVERDUE || (client_is_shaking(client) && !is_new))
        client_close_for(client, CLOSED_DRAIN);
    else if (client_is_parted(client))
        client_note_kept_open(client);
    else if (!is_new)
        client_drain_look(client);
}

/* ---- clients that are still connected, for the log ---- */

/*
 * Returns a text that names the state that Redis keeps for the client, or the command that blocks
 * the client. NULL: neither.
 */
static const char *attachment(const struct client *client)
{
    const struct lane *lane = client_has_own_lane(client) ? client->lane_user.lane : NULL;
    if (lane != NULL && lane_is_monitoring(lane))
        return "monitors";
    if (client_is_subscribed(client))
        return "subscribed";
    if (!transaction_is_none(&client->transaction))
        return "in MULTI";
    if (pin_has(client, PIN_WATCH))
        return "watches keys";
    if (client->lane_user.in_flight > 0 && lane != NULL && lane_may_wait(lane))
        return "blocks in Redis";
    return NULL;
}

/* Returns a text that names the reason why the client is busy. */
static const char *occupation(const struct client *client)
{
    const struct extra *extra = client_extra(client);
    if (client_has_calls(client))
        return "waits for Redis";
    if (extra->n_asked > 0)
        return "waits for Redis to decide LIMIT commands";
    if (extra->passage != NULL ||
        (client->intake != NULL && client->intake->taken < client->intake->filled))
        return "has sent part of a request";
    return link_is_sending(&client->link) ? "has replies to read" : "silent";
}

static int print_waits(const struct client *client, char *out, size_t size)
{
    int n = 0;
    for (unsigned row = 0; row < WAIT_ROWS && n >= 0 && (size_t)n < size; row++)
        if (client_waits_for(client, 1U << row))
            n += snprintf(out + n, size - (size_t)n, "%s%s", n > 0 ? " and " : "waits for ",
                          client_wait_text((enum client_wait_row)row));
    return n;
}

static void print_why(const struct client *client, char *out, size_t size)
{
    const char *attached = attachment(client);
    if (client_is_leaving(client))
        attached = "closed by weir, and still connected";
    if (attached != NULL || print_waits(client, out, size) == 0)
        snprintf(out, size, "%s", attached != NULL ? attached : occupation(client));
}

static void name_holder(const struct client *client, char out[DRAIN_LINE])
{
    char session_text[SESSION_TEXT], why[WHY_ROOM];
    struct slice name = session_name(client);
    int shown = (int)(name.len < 64 ? name.len : 64);
    session_print(client, session_text);
    print_why(client, why, sizeof why);
    snprintf(out, DRAIN_LINE, "%s%s%.*s (%s)", session_text, shown > 0 ? " name:" : "", shown,
             name.at, why);
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

static void drain_on_tick(uv_timer_t *tick)
{
    struct front *front = tick->data;
    struct list *next;
    loop_tick(front->loop); /* the loop may have had no event since the last tick */
    for (struct list *at = front->clients.next; at != &front->clients; at = next) {
        next = at->next;
        drain_look_at(container_of(at, struct client, in_front));
    }
    front->drain.looked_ms = timeouts_now_ms(front);
    front->drain.has_looked = true;
    note_holders(front);
}

/*
 * True if only operators that stay are left. Operators are few, so the loop finds any other client
 * soon.
 */
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
    loop_tick(front->loop);
    front->drain.is_on = true;
    front->drain.lets_operators_go = has_successor;
    front->drain.looked_ms = timeouts_now_ms(front);
    for (struct list *at = front->clients.next; at != &front->clients; at = at->next) {
        struct client *client = container_of(at, struct client, in_front);
        client_want_idle(client);
    }
    uv_timer_start(&front->drain.tick, drain_on_tick, tick_ms, tick_ms);
    client_drain_left(front);
}

void client_drain_close(struct front *front)
{
    front->drain.is_on = false;
    uv_close((uv_handle_t *)&front->drain.tick, NULL);
}
