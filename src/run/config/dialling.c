#include "run/config/dialling.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/mem.h"
#include "base/slice.h"

/* ---- upstream-map ---- */

static const struct address_map_row *dialling_row_of(const struct address_map *map,
                                                     const struct address *announced)
{
    for (size_t i = 0; i < map->n; i++)
        if (address_is_same(&map->rows[i].announced, announced))
            return &map->rows[i];
    return NULL;
}

/* True if rows lead from `from` back to `start`. */
static bool dialling_leads_to(const struct address_map *map, const struct address *from,
                              const struct address *start)
{
    const struct address_map_row *row;
    for (size_t hops = 0; hops <= map->n && !address_is_same(from, start); hops++) {
        if ((row = dialling_row_of(map, from)) == NULL)
            return false;
        from = &row->dialled;
    }
    return true;
}

static bool parse_side(struct address *address, struct slice text, struct why why)
{
    struct address parsed = {0};
    if (!address_parse(&parsed, text, false, why))
        return false;
    if (parsed.is_unix || parsed.is_tls) {
        address_fini(&parsed);
        return why_refuse(why,
                          "\"%.*s\": write HOST:PORT on both sides; tls: belongs only in upstream",
                          WHY_SLICE(text));
    }
    *address = parsed;
    return true;
}

static bool parse_row(struct address_map_row *row, struct slice item, struct why why)
{
    struct slice rest = item, announced, dialled;
    bool is_pair = split_next(&rest, '=', &announced) && split_next(&rest, '=', &dialled) &&
                   rest.at == NULL && announced.len > 0 && dialled.len > 0;
    if (!is_pair)
        return why_refuse(
            why, "\"%.*s\" lacks the address to connect to: write ANNOUNCED:PORT=DIALLED:PORT",
            WHY_SLICE(item));
    return parse_side(&row->announced, announced, why) && parse_side(&row->dialled, dialled, why);
}

static bool may_stand(const struct address_map *map, const struct address_map_row *row,
                      struct slice item, struct why why)
{
    if (map->n == ADDRESS_MAP_MOST)
        return why_refuse(why, "at most %d addresses: remove %.*s", ADDRESS_MAP_MOST,
                          WHY_SLICE(item));
    if (dialling_row_of(map, &row->announced) != NULL)
        return why_refuse(why, "%.*s is mapped twice: name each address once", WHY_SLICE(item));
    if (dialling_leads_to(map, &row->dialled, &row->announced))
        return why_refuse(why, "%.*s leads back to itself: remove it", WHY_SLICE(item));
    return true;
}

static void fini_row(struct address_map_row *row)
{
    address_fini(&row->announced);
    address_fini(&row->dialled);
}

bool address_map_add(struct address_map *map, struct slice value, struct why why)
{
    struct slice item;
    while (split_next(&value, ',', &item)) {
        struct address_map_row row = {.announced = {.host = NULL}};
        if (!parse_row(&row, item, why) || !may_stand(map, &row, item, why)) {
            fini_row(&row);
            return false;
        }
        map->rows = mem_realloc(map->rows, map->n + 1, sizeof row);
        map->rows[map->n++] = row;
    }
    return true;
}

const struct address *address_map_find(const struct address_map *map,
                                       const struct address *announced)
{
    const struct address_map_row *row = dialling_row_of(map, announced);
    return row != NULL ? &row->dialled : announced;
}

void address_map_fini(struct address_map *map)
{
    for (size_t i = 0; i < map->n; i++)
        fini_row(&map->rows[i]);
    free(map->rows);
    *map = (struct address_map){0};
}

/* ---- weir's own listeners ---- */

struct own {
    struct endpoint endpoint;
    bool is_dual; /* an IPv6 socket that takes IPv4, too */
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
                  getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &is_v6_only, &size) == 0 &&
                  is_v6_only == 0;
    dialling->own = mem_realloc(dialling->own, dialling->n_own + 1, sizeof own);
    dialling->own[dialling->n_own++] = own;
}

static struct ip ip_at(const struct endpoint *endpoint)
{
    return ip_of((const struct sockaddr *)&endpoint->address);
}

/* True for 0.0.0.0 or [::]. */
static bool dialling_is_any(const struct ip *ip)
{
    const struct ip any = {.family = ip->family};
    return ip->family != 0 && ip_eq(ip, &any);
}

static bool is_loopback(const struct ip *ip)
{
    static const struct ip v6 = {.family = 6, .bytes = {[15] = 1}};
    return ip->family == 4 ? ip->bytes[0] == IN_LOOPBACKNET : ip_eq(ip, &v6);
}

/* True if the address belongs to this machine. */
static bool is_local(const struct ip *ip)
{
    struct ifaddrs *all = NULL;
    bool is =
        dialling_is_any(ip) || is_loopback(ip); /* a connection to 0.0.0.0 goes to 127.0.0.1 */
    if (is || getifaddrs(&all) != 0)
        return is;
    for (const struct ifaddrs *at = all; at != NULL && !is; at = at->ifa_next) {
        struct ip own = at->ifa_addr != NULL ? ip_of(at->ifa_addr) : (struct ip){.family = 0};
        is = own.family != 0 && ip_eq(&own, ip);
    }
    freeifaddrs(all);
    return is;
}

static bool dialling_is_same_path(const struct endpoint *a, const struct endpoint *b)
{
    const struct sockaddr_un *of_a = (const void *)&a->address, *of_b = (const void *)&b->address;
    return a->address.ss_family == AF_UNIX && b->address.ss_family == AF_UNIX &&
           of_a->sun_path[0] != '\0' &&
           strncmp(of_a->sun_path, of_b->sun_path, sizeof of_a->sun_path) == 0;
}

bool dialling_reaches(const struct endpoint *to, const struct endpoint *own, bool is_dual)
{
    struct ip there = ip_at(to), here = ip_at(own);
    if (there.family == 0 || here.family == 0)
        return dialling_is_same_path(to, own);
    if (endpoint_port(to) != endpoint_port(own))
        return false;
    if (dialling_is_any(&here) && (here.family == there.family || is_dual))
        return is_local(&there);
    if (dialling_is_any(&there) && here.family == there.family)
        return is_loopback(&here);
    return ip_eq(&there, &here);
}

/* ---- permission to dial ---- */

const struct address *dialling_target(const struct dialling *dialling,
                                      const struct address *announced, const char **why)
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
    bool is_allowed =
        ip.family == 0 || networks_are_none(dialling->allow) || networks_hold(dialling->allow, &ip);
    return is_allowed ? NULL : "upstream-allow does not contain its address";
}

struct resolved dialling_allowed(const struct dialling *dialling, const struct resolved *found)
{
    struct resolved left = {.why = found->why};
    for (unsigned i = 0; i < found->n; i++) {
        const char *refusal = dialling_refusal(dialling, &found->endpoints[i]);
        if (refusal == NULL)
            left.endpoints[left.n++] = found->endpoints[i];
        else
            left.why = refusal;
    }
    return left;
}

void dialling_free(struct dialling *dialling)
{
    if (dialling != NULL)
        free(dialling->own);
    free(dialling);
}
