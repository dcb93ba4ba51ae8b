#include "front/client/proxied.h"

#include <stdlib.h>

#include "base/log.h"
#include "front/client/client.h"
#include "front/client/session.h"
#include "front/client/timeouts.h"
#include "net/proxy_header.h"

static void turn_away(struct client *client, const char *why)
{
    char name[SESSION_TEXT];
    session_print(client, name);
    log_at(LOG_SITE_PROXY, LOG_WARN, "client %s on %s is closed: %s", name, client_entrance(client)->listener, why);
    client_close_for(client, CLOSED_PROXY);
}

void proxied_begin(struct client *client)
{
    if (!networks_hold(&client->front->rules->proxies, &client->link.peer.ip)) {
        turn_away(client, "its address is not in proxy-protocol-from");
        return;
    }
    struct extra *extra = client_need_extra(client);
    if (extra == NULL)
        return;
    extra->header = calloc(1, sizeof *extra->header);
    if (extra->header == NULL)
        client_close_starved(client);
    else
        timeouts_begin_handshake(client);
}

static void end(struct client *client)
{
    struct extra *extra = client->extra;
    struct proxy_header *header = extra->header;
    if (header->ip.family != 0)
        client->link.peer = (struct link_peer){header->ip, header->port};
    extra->reached = (struct link_peer){header->to, header->to_port};
    extra->header = NULL;
    free(header);
    timeouts_end_handshake(client);
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
        turn_away(client, header->why);
    else if (result == SCAN_FRAME)
        end(client);
    return used;
}
