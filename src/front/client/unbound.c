#include "front/client/unbound.h"

#include <stdlib.h>

#include "base/log.h"
#include "front/client/session.h"
#include "limit/gate.h"
#include "limit/policy/identity.h"
#include "net/proxy_header.h"

#define UNITS (1U << UNIT_CONNECTIONS)

/* The charge target of an address. If `unauthenticated` is 0, the target has no policy. */
static struct charge_target unbound_charge_target_of(const struct rules *rules,
                                                     struct subject *address)
{
    return (struct charge_target){address != NULL ? &rules->unbound_policy : NULL,
                                  {address, NULL, NULL}};
}

/* The subject of an address; takes a reference. NULL: `unauthenticated` is 0. */
static struct subject *unbound_find_address(struct front *front, const struct ip *ip)
{
    char name[SUBJECT_NAME_MAX];
    if (front->rules->unauthenticated == 0)
        return NULL;
    size_t len = identity_site(ip, name);
    return subject_get(front->settings->addresses, front->rules->unbound_state, slice_of(name, len),
                       front->loop->now_ns);
}

/* Counts the connection for its address. False: the address has too many unbound connections. */
static bool unbound_count(struct client *client)
{
    struct front *front = client->front;
    struct unbound *unbound = client->unbound;
    struct verdict verdict = {0};
    unbound->address = unbound_find_address(front, &client->link.peer.ip);
    if (unbound->address == NULL)
        return true;
    const struct charge_target target = unbound_charge_target_of(front->rules, unbound->address);
    bool is_welcome = gate_connect(&target, UNITS, front->loop->now_ns, front->limit_counters,
                                   &verdict) == GATE_PASS;
    unbound->counted = verdict.counted;
    if (!is_welcome || verdict.is_shadowed)
        front_note_stopped(front, &target, verdict.limit,
                           is_welcome ? OFFENDER_SHADOWED : OFFENDER_REFUSED);
    return is_welcome;
}

void unbound_release(struct client *client)
{
    struct unbound *unbound = client->unbound;
    if (unbound == NULL || unbound->address == NULL)
        return;
    const struct charge_target target =
        unbound_charge_target_of(client_rules(client), unbound->address);
    gate_disconnect(&target, unbound->counted);
    subject_put(client->front->settings->addresses, unbound->address);
    unbound->address = NULL;
    unbound->counted = 0;
}

void unbound_retake(struct client *client)
{
    struct unbound *unbound = client->unbound;
    if (unbound == NULL)
        return;
    unbound->address = unbound_find_address(client->front, &client->link.peer.ip);
    if (unbound->address == NULL)
        return;
    const struct charge_target target =
        unbound_charge_target_of(client->front->rules, unbound->address);
    unbound->counted = gate_reconnect(&target);
}

bool unbound_begin(struct client *client)
{
    struct unbound *unbound = calloc(1, sizeof *unbound);
    if (unbound == NULL) {
        client_close_starved(client);
        return false;
    }
    unbound->client = client;
    list_init(&unbound->in_list);
    client->unbound = unbound;
    return unbound_count(client);
}

bool unbound_move(struct client *client)
{
    unbound_release(client);
    return unbound_count(client);
}

void unbound_end(struct client *client)
{
    if (client->unbound == NULL)
        return;
    unbound_release(client);
    list_take(&client->unbound->in_list);
    free(client->unbound);
    client->unbound = NULL;
}

const char *unbound_refuser(struct front *front, const struct ip *ip)
{
    char name[SUBJECT_NAME_MAX];
    const struct policy *policy = &front->rules->unbound_policy;
    if (front->rules->unauthenticated == 0 || policy->shadows != 0)
        return NULL;
    struct subject *address =
        subject_find(front->settings->addresses, slice_of(name, identity_site(ip, name)));
    if (address == NULL)
        return NULL;
    const struct charge_target target = unbound_charge_target_of(front->rules, address);
    bool is_full = gate_standing(&target, 0, front->loop->now_ns).remaining == 0;
    subject_put(front->settings->addresses, address);
    return is_full ? policy->limits[0].label : NULL;
}

/* ---- PROXY headers ---- */

static void turn_away_header(struct client *client, const char *why)
{
    char name[SESSION_TEXT];
    session_print(client, name);
    log_at(LOG_SITE_PROXY, LOG_WARN, "client %s on %s is closed: %s", name,
           client_listen_address(client)->listener, why);
    client_close_for(client, CLOSED_PROXY);
}

bool proxied_begin(struct client *client)
{
    if (!networks_hold(&client->front->rules->proxies, &client->link.peer.ip)) {
        turn_away_header(client, "its address is not in proxy-protocol-from");
        return false;
    }
    struct extra *extra = client_need_extra(client);
    if (extra == NULL)
        return false;
    extra->header = calloc(1, sizeof *extra->header);
    if (extra->header == NULL)
        client_close_starved(client);
    return extra->header != NULL;
}

static void end_header(struct client *client)
{
    struct extra *extra = client->extra;
    struct proxy_header *header = extra->header;
    if (header->ip.family != 0)
        client->link.peer = (struct link_peer){header->ip, header->port};
    extra->reached = (struct link_peer){header->to, header->to_port};
    extra->header = NULL;
    free(header);
}

bool proxied_waits(const struct client *client)
{
    return client_extra(client)->header != NULL;
}

size_t proxied_take(struct client *client, const char *data, size_t n)
{
    size_t used;
    struct proxy_header *header = client->extra->header;
    enum scan_result result = proxy_header_scan(header, data, n, &used);
    if (result == SCAN_BAD)
        turn_away_header(client, header->why);
    else if (result == SCAN_FRAME)
        end_header(client);
    return used;
}
