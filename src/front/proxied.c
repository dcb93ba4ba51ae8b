#include "front/proxied.h"

#include <netinet/in.h>
#include <stdlib.h>

#include "base/log.h"
#include "front/client.h"
#include "front/session.h"
#include "net/proxy_header.h"

static uint16_t port_of(const struct sockaddr_storage *peer)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    memcpy(&in, peer, sizeof in);
    memcpy(&in6, peer, sizeof in6);
    return ntohs(peer->ss_family == AF_INET6 ? in6.sin6_port : in.sin_port);
}

struct client_address proxied_address(const struct client *client)
{
    struct sockaddr_storage peer;
    if (client_extra(client)->is_announced)
        return client_extra(client)->announced;
    link_peer(&client->link, &peer);
    return (struct client_address){ip_of((const struct sockaddr *)&peer), port_of(&peer)};
}

static void turn_away(struct client *client, const char *why)
{
    char name[SESSION_TEXT];
    session_print(client, name);
    log_at(LOG_SITE_PROXY, LOG_WARN, "client %s on %s is closed: %s", name, client_entrance(client)->listener, why);
    client_close_for(client, CLOSED_PROXY);
}

void proxied_begin(struct client *client)
{
    struct client_address peer = proxied_address(client);
    if (!networks_hold(&client->front->rules->proxies, &peer.ip)) {
        turn_away(client, "its address is not in proxy-protocol-from");
        return;
    }
    client->is_announcing = true;
    struct extra *extra = client_need_extra(client);
    if (extra == NULL)
        return;
    extra->header = calloc(1, sizeof *extra->header);
    if (extra->header == NULL)
        client_close_starved(client);
    else
        timeouts_begin_handshake(client);
}

/* Returns how many of the bytes behind it are dealt with: in TLS they are not yet requests. */
static size_t end(struct client *client, const char *rest, size_t n)
{
    struct proxy_header *header = client->extra->header;
    struct extra *extra = client->extra;
    extra->is_announced = header->ip.family != 0;
    extra->announced = (struct client_address){header->ip, header->port};
    extra->header = NULL;
    free(header);
    timeouts_end_handshake(client);
    client->is_announcing = false;
    if (client_entrance(client)->is_tls) {
        client_secure(client, rest, n);
        return n;
    }
    client_admit(client);
    return 0;
}

size_t proxied_take(struct client *client, const char *data, size_t n)
{
    size_t used;
    struct proxy_header *header = client->extra->header;
    enum scan_result result = proxy_header_scan(header, data, n, &used);
    if (result == SCAN_BAD)
        turn_away(client, header->why);
    else if (result == SCAN_FRAME)
        used += end(client, data + used, n - used);
    return used;
}
