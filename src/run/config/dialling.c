#include "run/config/dialling.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/mem.h"

struct own {
    struct endpoint endpoint;
    bool is_dual; /* of IPv6, and takes IPv4 too */
};

struct dialling {
    const struct address_map *map;
    const struct networks *allow;
    struct own *own;
    size_t n_own;
};

struct dialling *dialling_new(const struct address_map *map, const struct networks *allow)
{
    struct dialling *dialling = mem_zalloc(1, sizeof *dialling);
    dialling->map = map;
    dialling->allow = allow;
    return dialling;
}

void dialling_add_own(struct dialling *dialling, int fd)
{
    struct own own = {.is_dual = false};
    int is_v6_only = 1;
    socklen_t size = sizeof is_v6_only;
    own.endpoint.length = sizeof own.endpoint.address;
    if (getsockname(fd, (struct sockaddr *)&own.endpoint.address, &own.endpoint.length) != 0)
        return;
    own.is_dual = own.endpoint.address.ss_family == AF_INET6 &&
                  getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &is_v6_only, &size) == 0 && is_v6_only == 0;
    dialling->own = mem_realloc(dialling->own, dialling->n_own + 1, sizeof own);
    dialling->own[dialling->n_own++] = own;
}

/* ---- weir's own listeners ---- */

static struct ip ip_at(const struct endpoint *endpoint)
{
    return ip_of((const struct sockaddr *)&endpoint->address);
}

/* 0.0.0.0 or [::] */
static bool is_any(const struct ip *ip)
{
    const struct ip any = {.family = ip->family};
    return ip->family != 0 && ip_eq(ip, &any);
}

static bool is_loopback(const struct ip *ip)
{
    static const struct ip v6 = {.family = 6, .bytes = {[15] = 1}};
    return ip->family == 4 ? ip->bytes[0] == IN_LOOPBACKNET : ip_eq(ip, &v6);
}

/* True if the address is one of this machine's. */
static bool is_local(const struct ip *ip)
{
    struct ifaddrs *all = NULL;
    bool is = is_any(ip) || is_loopback(ip); /* a connection to 0.0.0.0 is made to 127.0.0.1 */
    if (is || getifaddrs(&all) != 0)
        return is;
    for (const struct ifaddrs *at = all; at != NULL && !is; at = at->ifa_next) {
        struct ip own = at->ifa_addr != NULL ? ip_of(at->ifa_addr) : (struct ip){.family = 0};
        is = own.family != 0 && ip_eq(&own, ip);
    }
    freeifaddrs(all);
    return is;
}

static bool is_same_path(const struct endpoint *a, const struct endpoint *b)
{
    const struct sockaddr_un *of_a = (const void *)&a->address, *of_b = (const void *)&b->address;
    return a->address.ss_family == AF_UNIX && b->address.ss_family == AF_UNIX && of_a->sun_path[0] != '\0' &&
           strncmp(of_a->sun_path, of_b->sun_path, sizeof of_a->sun_path) == 0;
}

bool dialling_reaches(const struct endpoint *to, const struct endpoint *own, bool is_dual)
{
    struct ip there = ip_at(to), here = ip_at(own);
    if (there.family == 0 || here.family == 0)
        return is_same_path(to, own);
    if (endpoint_port(to) != endpoint_port(own))
        return false;
    if (is_any(&here) && (here.family == there.family || is_dual))
        return is_local(&there);
    if (is_any(&there) && here.family == there.family)
        return is_loopback(&here);
    return ip_eq(&there, &here);
}

/* ---- may it be dialled? ---- */

const struct address *dialling_target(const struct dialling *dialling, const struct address *announced,
                                      const char **why)
{
    const struct address *to = address_map_find(dialling->map, announced);
    if (to->host == NULL || to->host[0] == '\0') {
        *why = "it has no host";
        return NULL;
    }
    if (!to->is_unix && to->port == 0) {
        *why = "its port is 0";
        return NULL;
    }
    return to;
}

const char *dialling_refusal(const struct dialling *dialling, const struct endpoint *endpoint)
{
    struct ip ip = ip_at(endpoint);
    if (ip.family != 0 && endpoint_port(endpoint) == 0)
        return "its port is 0";
    for (size_t i = 0; i < dialling->n_own; i++)
        if (dialling_reaches(endpoint, &dialling->own[i].endpoint, dialling->own[i].is_dual))
            return "weir itself listens at its address";
    bool is_allowed = ip.family == 0 || networks_are_none(dialling->allow) || networks_hold(dialling->allow, &ip);
    return is_allowed ? NULL : "upstream-allow does not hold its address";
}

void dialling_free(struct dialling *dialling)
{
    if (dialling != NULL)
        free(dialling->own);
    free(dialling);
}
