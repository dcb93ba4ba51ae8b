#include "front/commands/round.h"

#include <stdio.h>

#include "base/clock.h"
#include "front/client/client.h"
#include "front/client/facts.h"
#include "front/client/session.h"
#include "front/client/timeouts.h"
#include "limit/policy/identity.h"
#include "resp/build.h"
#include "quota/report.h"

#define FIELDS 13

/* Its name by what is known of it, also where it shares another's for want of room. */
static struct slice name_of(const struct client *client, char *text)
{
    if (!subject_is_overflow(client->subject))
        return subject_name(client->subject);
    const struct facts facts = facts_of(client);
    return slice_of(text, identity_subject(&client->front->rules->identity, &facts, text));
}

static bool is_meant(const struct client *client, const struct order *order)
{
    char text[SUBJECT_NAME_MAX];
    if (client->subject == NULL)
        return false; /* it has not come in yet, or has just gone */
    return order->key == NULL || slice_eq(name_of(client, text), slice_of(order->key, order->key_len));
}

/* ---- LIMIT CLIENTS ---- */

static void field_library(struct build *out, const struct client *client)
{
    char text[2 * LIBRARY_TEXT_MAX + 2];
    const struct library *library = session_library(client);
    struct slice name = library_name(library), version = library_version(library);
    int len = snprintf(text, sizeof text, "%.*s%s%.*s", (int)name.len, name.at, version.len > 0 ? " " : "",
                       (int)version.len, version.at);
    report_field(out, "library", slice_of(text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1));
}

static struct slice lane_of(const struct client *client)
{
    if (client_has_own_lane(client))
        return SLICE("private");
    return client_has_calls(client) ? SLICE("shared") : SLICE("none");
}

static void tell(struct build *out, const struct client *client)
{
    char address[SESSION_TEXT], name[SUBJECT_NAME_MAX], waits[CLIENT_WAITS_ROOM];
    session_print_address(client, address);
    build_map(out, FIELDS);
    report_field(out, "address", slice_str(address));
    report_field(out, "name", session_name(client));
    report_field(out, "user", session_user(client));
    field_library(out, client);
    report_number(out, "age_s", timeouts_age_s(client));
    report_number(out, "idle_s", timeouts_idle_s(client));
    build_bulk_str(out, "policy");
    if (client->bound != NULL && client->bound->name[0] != '\0')
        build_bulk_str(out, client->bound->name);
    else
        build_nil(out);
    report_field(out, "subject", name_of(client, name));
    report_field(out, "lane", lane_of(client));
    report_number(out, "in_flight", client->rider.in_flight + spread_in_flight(client_spread(client)));
    report_number(out, "bytes_in", client->link.n_read);
    report_number(out, "bytes_out", client->link.n_written);
    report_field(out, "waits", slice_of(waits, client_waits_print(client->waits, waits)));
}

static void list(struct client *client, struct order *order)
{
    if (order->n_rows < ROUND_ROWS_MAX) {
        order->n_rows++;
        tell(&order->rows, client);
    } else {
        order->n_more++;
    }
}

/* ---- LIMIT KICK ---- */

/* But not who gives the order: it is to hear the answer. (Only its own worker may look who that is.) */
static void kick(struct client *client, struct order *order)
{
    const void *giver = order->worker == client->front->worker ? order->client : NULL;
    if (client == giver || client_is_closed(client))
        return;
    order->n_rows++;
    client_close_for(client, CLOSED_KICKED);
}

static void look(struct list *item, void *arg)
{
    struct client *client = container_of(item, struct client, in_front);
    struct order *order = arg;
    if (!is_meant(client, order))
        return;
    if (order->kind == ORDER_KICK)
        kick(client, order);
    else
        list(client, order);
}

bool front_round_some(struct front *front, struct order *order)
{
    front->loop->now_ns = clock_ns();
    if (!walk_is_on(&front->round_walk))
        walk_begin(&front->round_walk, &front->clients);
    if (!walk_step(&front->round_walk, &front->clients, look, order))
        return false;
    timeouts_go_on(front);
    return true;
}
