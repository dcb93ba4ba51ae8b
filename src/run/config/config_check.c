/*
 * Two addresses are compared as their sockets would be bound. Listening sockets of IPv6 take no
 * IPv4 (net/listen.c), so only addresses of one family can be the same.
 */
#include "run/config/config_check.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"
#include "run/config/dialling.h"

/* ---- addresses ---- */

struct spot {
    const struct address *address;
    struct endpoint endpoint; /* of a numeric address or localhost; else family 0 */
};

static bool is_numeric(const char *host)
{
    return strchr(host, ':') != NULL || strspn(host, "0123456789.") == strlen(host);
}

static struct spot config_check_spot_of(const struct address *address)
{
    struct spot spot = {.address = address};
    bool is_known = !address->is_unix && (is_numeric(address->host) || strcasecmp(address->host, "localhost") == 0);
    if (is_known && address_resolve(address, &spot.endpoint) != NULL)
        spot.endpoint.address.ss_family = AF_UNSPEC;
    return spot;
}

static sa_family_t family(const struct spot *spot)
{
    return spot->endpoint.address.ss_family;
}

static const struct in_addr *v4(const struct spot *spot)
{
    return &((const struct sockaddr_in *)(const void *)&spot->endpoint.address)->sin_addr;
}

static const struct in6_addr *v6(const struct spot *spot)
{
    return &((const struct sockaddr_in6 *)(const void *)&spot->endpoint.address)->sin6_addr;
}

/* True for 0.0.0.0 or [::]: every address of this machine, of its family. */
static bool config_check_is_any(const struct spot *spot)
{
    return (family(spot) == AF_INET && v4(spot)->s_addr == INADDR_ANY) ||
           (family(spot) == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(v6(spot)));
}

/* Takes the next part of a path, skipping "/" and "/.". False: there is none. */
static bool next_part(const char **path, struct slice *part)
{
    do {
        *path += strspn(*path, "/");
        *part = slice_of(*path, strcspn(*path, "/"));
        *path += part->len;
    } while (slice_eq(*part, SLICE(".")));
    return part->len > 0;
}

static bool config_check_is_same_path(const char *a, const char *b)
{
    struct slice of_a, of_b;
    bool has_a, has_b;
    do {
        has_a = next_part(&a, &of_a);
        has_b = next_part(&b, &of_b);
    } while (has_a && has_b && slice_eq(of_a, of_b));
    return !has_a && !has_b;
}

static bool config_check_is_same(const struct spot *a, const struct spot *b)
{
    if (a->address->is_unix || b->address->is_unix)
        return a->address->is_unix && b->address->is_unix &&
               config_check_is_same_path(a->address->host, b->address->host);
    if (a->address->port != b->address->port || a->address->port == 0 || family(a) != family(b))
        return false;
    switch (family(a)) {
    case AF_INET:
        return v4(a)->s_addr == v4(b)->s_addr;
    case AF_INET6:
        return IN6_ARE_ADDR_EQUAL(v6(a), v6(b));
    default:
        return strcasecmp(a->address->host, b->address->host) == 0;
    }
}

/*
 * True if one of the two is every address of this machine, with the family and port of the other.
 */
static bool config_check_is_within(const struct spot *a, const struct spot *b)
{
    return !a->address->is_unix && !b->address->is_unix && a->address->port == b->address->port &&
           a->address->port != 0 && family(a) == family(b) && (config_check_is_any(a) || config_check_is_any(b));
}

/* True if a connection to `to` comes to a listener at `at`. */
static bool is_reached(const struct spot *to, const struct spot *at)
{
    bool are_known = family(to) != AF_UNSPEC && family(at) != AF_UNSPEC;
    return config_check_is_same(to, at) || (are_known && dialling_reaches(&to->endpoint, &at->endpoint, false));
}

/* ---- the lines of addresses ---- */

/* Returns the line of [weir] with the i-th address of that key; NULL: the default applies. */
static const struct entry *nth_entry(const struct config_file *file, struct slice key, size_t i)
{
    const struct entry *e = NULL;
    while ((e = config_file_next_of(file, SECTION_WEIR, SLICE(""), e)) != NULL) {
        struct slice rest = slice_str(e->value), part;
        while (slice_eq_nocase(slice_str(e->key), key) && split_next(&rest, ',', &part))
            if (i-- == 0)
                return e;
    }
    return NULL;
}

/* Returns the line with the i-th address of `listen`; NULL: the default applies. */
static const struct entry *listen_entry(const struct config_file *file, size_t i)
{
    return nth_entry(file, SLICE("listen"), i);
}

static const struct entry *weir_entry(const struct config_file *file, const char *key)
{
    return config_file_entry(file, SECTION_WEIR, key);
}

struct words {
    const char *between, *after; /* texts between and after two addresses */
};

static void clash(struct config_file *file, const struct entry *entry, const struct address *first,
                  const struct address *second, struct words words)
{
    char texts[2][ADDRESS_TEXT], what[CONFIG_WHY_ROOM + 2 * ADDRESS_TEXT];
    address_print(first, texts[0], sizeof texts[0]);
    address_print(second, texts[1], sizeof texts[1]);
    snprintf(what, sizeof what, "%s%s%s%s", texts[0], words.between, texts[1], words.after);
    if (entry != NULL)
        entry_error(file, entry, what);
    else
        config_file_say(file, true, (struct location){0}, NULL, NULL, what);
}

/* ---- the checks ---- */

static void check_listens(const struct config *config, struct config_file *file)
{
    for (size_t i = 1; i < config->n_listens; i++)
        for (size_t j = 0; j < i; j++) {
            struct spot a = config_check_spot_of(&config->listens[i].address),
                        b = config_check_spot_of(&config->listens[j].address);
            if (config_check_is_same(&a, &b))
                clash(file, listen_entry(file, i), a.address, b.address,
                      (struct words){" is the same address as ", ": name it once"});
        }
}

static void check_admin(const struct config *config, struct config_file *file)
{
    const struct address http = config->admin_listen, socket = {.host = config->admin_socket, .is_unix = true};
    for (size_t i = 0; i < config->n_listens; i++) {
        struct spot clients = config_check_spot_of(&config->listens[i].address);
        struct spot admin = {0};
        if (http.host != NULL)
            admin = config_check_spot_of(&http);
        if (http.host != NULL && (config_check_is_same(&admin, &clients) || config_check_is_within(&admin, &clients)))
            clash(file, config_file_entry(file, SECTION_ADMIN, "listen"), admin.address, clients.address,
                  (struct words){" overlaps ", ", which clients connect to (listen in [weir]): choose another port"});
        admin.address = &socket;
        if (socket.host != NULL && config_check_is_same(&admin, &clients))
            clash(file, config_file_entry(file, SECTION_ADMIN, "socket"), admin.address, clients.address,
                  (struct words){" is ", ", which clients connect to (listen in [weir]): choose another path"});
    }
}

/*
 * Checks that Redis is not at `at`, where weir listens. `entry`: the line of `at`; NULL: a default.
 */
static void check_own(const struct config *config, struct config_file *file, const struct address *at,
                      const struct entry *entry)
{
    struct spot own = config_check_spot_of(at);
    for (size_t i = 0; i < config->sources.n; i++) {
        const struct address *source = address_map_find(&config->upstream_map, &config->sources.addresses[i]);
        const struct entry *upstream = nth_entry(file, SLICE("upstream"), i);
        struct spot to = config_check_spot_of(source);
        if (!is_reached(&to, &own))
            continue;
        if (upstream != NULL)
            clash(file, upstream, source, at,
                  (struct words){" is an address that weir itself listens on (", "): name the address of Redis"});
        else
            clash(file, entry, at, source,
                  (struct words){" is the address of Redis (upstream is ", "): choose another address, or set "
                                                                           "upstream"});
    }
    for (size_t i = 0; i < config->upstream_map.n; i++) {
        const struct address *dialled = &config->upstream_map.rows[i].dialled;
        struct spot to = config_check_spot_of(dialled);
        if (is_reached(&to, &own))
            clash(file, nth_entry(file, SLICE("upstream-map"), i), dialled, at,
                  (struct words){" is an address that weir itself listens on (", "): name the address of Redis"});
    }
}

/* Checks that a numeric address to be dialled is in upstream-allow. */
static void check_allowed(const struct config *config, struct config_file *file, const struct address *address,
                          const struct entry *entry)
{
    struct endpoint endpoint;
    char text[ADDRESS_TEXT], what[CONFIG_WHY_ROOM + ADDRESS_TEXT];
    if (networks_are_none(&config->upstream_allow) || address->is_unix || !address_is_literal(address, &endpoint))
        return;
    struct ip ip = ip_of((const struct sockaddr *)&endpoint.address);
    if (networks_hold(&config->upstream_allow, &ip))
        return;
    address_print(address, text, sizeof text);
    snprintf(what, sizeof what,
             "weir may not connect to %s: upstream-allow does not contain it: write upstream-allow "
             "= %s",
             text, address->host);
    if (entry == NULL)
        entry = weir_entry(file, "upstream-allow");
    entry_error(file, entry, what);
}

static void check_allows(const struct config *config, struct config_file *file)
{
    for (size_t i = 0; i < config->sources.n; i++)
        check_allowed(config, file, address_map_find(&config->upstream_map, &config->sources.addresses[i]),
                      nth_entry(file, SLICE("upstream"), i));
    for (size_t i = 0; i < config->upstream_map.n; i++)
        check_allowed(config, file, &config->upstream_map.rows[i].dialled, nth_entry(file, SLICE("upstream-map"), i));
}

static void check_upstream(const struct config *config, struct config_file *file)
{
    for (size_t i = 0; i < config->n_listens; i++)
        check_own(config, file, &config->listens[i].address, listen_entry(file, i));
    const struct address socket = {.host = config->admin_socket, .is_unix = true};
    if (config->admin_listen.host != NULL)
        check_own(config, file, &config->admin_listen, config_file_entry(file, SECTION_ADMIN, "listen"));
    if (socket.host != NULL)
        check_own(config, file, &socket, config_file_entry(file, SECTION_ADMIN, "socket"));
}

/* ---- keys that need other keys ---- */

static void check_reads(const struct config *config, struct config_file *file)
{
    if (config->reads.reads != READS_MASTER && config->sources.form == SOURCES_SERVER)
        entry_error(file, weir_entry(file, "reads"),
                    "upstream names one server without replicas: write upstream = HOST:PORT, HOST:PORT, or upstream = "
                    "sentinel:NAME@HOST:26379, or reads = master");
}

static void check_sentinels(const struct config *config, struct config_file *file)
{
    static const char *const keys[] = {"sentinel-user", "sentinel-password-file"};
    const struct entry *user = weir_entry(file, keys[0]);
    if (user != NULL && weir_entry(file, keys[1]) == NULL)
        entry_error(file, user, "needs sentinel-password-file");
    for (size_t i = 0; config->sources.form != SOURCES_SENTINEL && i < sizeof keys / sizeof keys[0]; i++) {
        const struct entry *e = weir_entry(file, keys[i]);
        if (e != NULL)
            entry_error(file, e,
                        "upstream names no sentinels: write upstream = sentinel:NAME@HOST:26379, or remove this line");
    }
}

static void want_cluster(struct config_file *file, const char *key)
{
    entry_error(file, weir_entry(file, key),
                "upstream names no cluster: write upstream = cluster:HOST:PORT, or remove this line");
}

static void check_cluster(const struct config *config, struct config_file *file)
{
    bool is_cluster = config->sources.form == SOURCES_CLUSTER;
    if (!is_cluster && config->cross_slot != CROSS_SLOT_SPLIT)
        want_cluster(file, "cross-slot");
    if (!is_cluster && config->refuses_cluster_commands)
        want_cluster(file, "cluster-commands");
    if (!is_cluster && config->cluster_announce.host != NULL)
        want_cluster(file, "cluster-announce");
    if (is_cluster && config->lanes_private)
        entry_error(file, weir_entry(file, "lanes"),
                    "a cluster has no single server for a private connection: write lanes = shared");
    if (is_cluster && config->cluster_announce.host != NULL && config->refuses_cluster_commands)
        entry_error(file, weir_entry(file, "cluster-announce"),
                    "has no effect with cluster-commands = refuse: remove this line");
}

void config_check(const struct config *config, struct config_file *file)
{
    check_listens(config, file);
    check_admin(config, file);
    check_upstream(config, file);
    check_allows(config, file);
    if (file->n_errors > 0)
        return;
    check_reads(config, file);
    check_sentinels(config, file);
    check_cluster(config, file);
}
