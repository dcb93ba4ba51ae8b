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
    bool is_known = !address->is_unix &&
                    (is_numeric(address->host) || strcasecmp(address->host, "localhost") == 0);
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
           a->address->port != 0 && family(a) == family(b) &&
           (config_check_is_any(a) || config_check_is_any(b));
}

/* True if a connection to `to` comes to a listener at `at`. */
static bool is_reached(const struct spot *to, const struct spot *at)
{
    bool are_known = family(to) != AF_UNSPEC && family(at) != AF_UNSPEC;
    return config_check_is_same(to, at) ||
           (are_known && dialling_reaches(&to->endpoint, &at->endpoint, false));
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
    const struct address http = config->admin_listen,
                         socket = {.host = config->admin_socket, .is_unix = true};
    for (size_t i = 0; i < config->n_listens; i++) {
        struct spot clients = config_check_spot_of(&config->listens[i].address);
        struct spot admin = {0};
        if (http.host != NULL)
            admin = config_check_spot_of(&http);
        if (http.host != NULL &&
            (config_check_is_same(&admin, &clients) || config_check_is_within(&admin, &clients)))
            clash(file, config_file_entry(file, SECTION_ADMIN, "listen"), admin.address,
                  clients.address,
                  (struct words){
                      " overlaps ",
                      ", which clients connect to (listen in [weir]): choose another port"});
        admin.address = &socket;
        if (socket.host != NULL && config_check_is_same(&admin, &clients))
            clash(
                file, config_file_entry(file, SECTION_ADMIN, "socket"), admin.address,
                clients.address,
                (struct words){
                    " is ", ", which clients connect to (listen in [weir]): choose another path"});
    }
}

/*
 * Checks that Redis is not at `at`, where weir listens. `entry`: the line of `at`; NULL: a default.
 */
static void check_own(const struct config *config, struct config_file *file,
                      const struct address *at, const struct entry *entry)
{
    struct spot own = config_check_spot_of(at);
    for (size_t i = 0; i < config->sources.n; i++) {
        const struct address *source =
            address_map_find(&config->upstream_map, &config->sources.addresses[i]);
        const struct entry *upstream = nth_entry(file, SLICE("upstream"), i);
        struct spot to = config_check_spot_of(source);
        if (!is_reached(&to, &own))
            continue;
        if (upstream != NULL)
            clash(file, upstream, source, at,
                  (struct words){" is an address that weir itself listens on (",
                                 "): name the address of Redis"});
        else
            clash(file, entry, at, source,
                  (struct words){" is the address of Redis (upstream is ",
                                 "): choose another address, or set "
                                 "upstream"});
    }
    for (size_t i = 0; i < config->upstream_map.n; i++) {
        const struct address *dialled = &config->upstream_map.rows[i].dialled;
        struct spot to = config_check_spot_of(dialled);
        if (is_reached(&to, &own))
            clash(file, nth_entry(file, SLICE("upstream-map"), i), dialled, at,
                  (struct words){" is an address that weir itself listens on (",
                                 "): name the address of Redis"});
    }
}

/* Checks that a numeric address to be dialled is in upstream-allow. */
static void check_allowed(const struct config *config, struct config_file *file,
                          const struct address *address, const struct entry *entry)
{
    struct endpoint endpoint;
    char text[ADDRESS_TEXT], what[CONFIG_WHY_ROOM + ADDRESS_TEXT];
    if (networks_are_none(&config->upstream_allow) || address->is_unix ||
        !address_is_literal(address, &endpoint))
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
        check_allowed(config, file,
                      address_map_find(&config->upstream_map, &config->sources.addresses[i]),
                      nth_entry(file, SLICE("upstream"), i));
    for (size_t i = 0; i < config->upstream_map.n; i++)
        check_allowed(config, file, &config->upstream_map.rows[i].dialled,
                      nth_entry(file, SLICE("upstream-map"), i));
}

static void check_upstream(const struct config *config, struct config_file *file)
{
    for (size_t i = 0; i < config->n_listens; i++)
        check_own(config, file, &config->listens[i].address, listen_entry(file, i));
    const struct address socket = {.host = config->admin_socket, .is_unix = true};
    if (config->admin_listen.host != NULL)
        check_own(config, file, &config->admin_listen,
                  config_file_entry(file, SECTION_ADMIN, "listen"));
    if (socket.host != NULL)
        check_own(config, file, &socket, config_file_entry(file, SECTION_ADMIN, "socket"));
}

/* ---- keys that need other keys ---- */

static void check_reads(const struct config *config, struct config_file *file)
{
    if (config->reads.reads != READS_MASTER && config->sources.form == SOURCES_SERVER)
        entry_error(
            file, weir_entry(file, "reads"),
            "upstream names one server without replicas: write upstream = HOST:PORT, HOST:PORT, or upstream = "
            "sentinel:NAME@HOST:26379, or reads = master");
}

static void check_sentinels(const struct config *config, struct config_file *file)
{
    static const char *const keys[] = {"sentinel-user", "sentinel-password-file"};
    const struct entry *user = weir_entry(file, keys[0]);
    if (user != NULL && weir_entry(file, keys[1]) == NULL)
        entry_error(file, user, "needs sentinel-password-file");
    for (size_t i = 0; config->sources.form != SOURCES_SENTINEL && i < sizeof keys / sizeof keys[0];
         i++) {
        const struct entry *e = weir_entry(file, keys[i]);
        if (e != NULL)
            entry_error(
                file, e,
                "upstream names no sentinels: write upstream = sentinel:NAME@HOST:26379, or remove this line");
    }
}

static void want_cluster(struct config_file *file, const char *key)
{
    entry_error(
        file, weir_entry(file, key),
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
        entry_error(
            file, weir_entry(file, "lanes"),
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

/* ---- TLS contexts ---- */

/* The keys of the settings of each side; NULL: the side has no such key. */
static const char *const keys[][TLS_SETTINGS] = {
    [TLS_ACCEPT] = {[TLS_CERT] = "tls-cert-file",
                    [TLS_KEY] = "tls-key-file",
                    [TLS_CA] = "tls-ca-cert-file",
                    [TLS_CIPHERS] = "tls-ciphers",
                    [TLS_CIPHERSUITES] = "tls-ciphersuites"},
    [TLS_CONNECT] = {[TLS_CERT] = "upstream-tls-cert-file",
                     [TLS_KEY] = "upstream-tls-key-file",
                     [TLS_CA] = "upstream-tls-ca-file",
                     [TLS_SERVER_NAME] = "upstream-tls-server-name"},
};

struct loading {
    struct config_file *file;
    enum tls_side side;
};

static void say_for(struct config_file *file, bool is_error, const char *key, const char *what)
{
    const struct entry *e = config_file_entry(file, SECTION_WEIR, key);
    if (e != NULL)
        entry_says(file, is_error, e, what);
    else
        config_file_say(file, is_error, (struct location){0}, "weir", key, what);
}

static void say(void *arg, bool is_error, enum tls_setting which, const char *what)
{
    const struct loading *l = arg;
    say_for(l->file, is_error, keys[l->side][which], what);
}

/* True if certificate and key are both given, or neither: one is of no use without the other. */
static bool has_pair(const struct loading *l, const struct tls_settings *settings)
{
    bool has_cert = settings->texts[TLS_CERT] != NULL, has_key = settings->texts[TLS_KEY] != NULL;
    char what[CONFIG_WHY_ROOM];
    if (has_cert == has_key)
        return true;
    enum tls_setting given = has_cert ? TLS_CERT : TLS_KEY;
    snprintf(what, sizeof what, "needs %s", keys[l->side][has_cert ? TLS_KEY : TLS_CERT]);
    say_for(l->file, true, keys[l->side][given], what);
    return false;
}

static bool has_tls_listen(const struct config *config)
{
    for (size_t i = 0; i < config->n_listens; i++)
        if (config->listens[i].address.is_tls)
            return true;
    return false;
}

/* Warns of settings for a side that does not use TLS: the settings have no effect. */
static void warn_useless(const struct loading *l, const char *what)
{
    for (size_t i = 0; i < TLS_SETTINGS; i++) {
        const struct entry *e = keys[l->side][i] != NULL
                                    ? config_file_entry(l->file, SECTION_WEIR, keys[l->side][i])
                                    : NULL;
        if (e != NULL)
            entry_says(l->file, false, e, what);
    }
}

static void load_listeners(struct config *config, struct config_file *file)
{
    struct loading l = {file, TLS_ACCEPT};
    const struct tls_settings *settings = &config->tls_settings;
    if (!has_tls_listen(config)) {
        warn_useless(&l, "has no effect: no address of listen begins with tls:");
        return;
    }
    if (!has_pair(&l, settings))
        return;
    if (settings->texts[TLS_CERT] == NULL)
        say_for(file, true, "listen", "tls: needs tls-cert-file and tls-key-file");
    else if (settings->auth != TLS_AUTH_NO && settings->texts[TLS_CA] == NULL)
        say_for(file, true, "tls-auth-clients",
                "needs tls-ca-cert-file, the authorities that sign certificates of "
                "clients");
    else
        config->rules.tls = tls_context_new(settings, TLS_ACCEPT, say, &l);
}

static void load_upstream(struct config *config, struct config_file *file)
{
    struct loading l = {file, TLS_CONNECT};
    const struct tls_settings *settings = &config->upstream_tls_settings;
    if (!config->sources.addresses[0].is_tls) {
        warn_useless(&l, "has no effect: upstream does not begin with tls:");
        return;
    }
    if (!has_pair(&l, settings))
        return;
    config->rules.upstream_tls = tls_context_new(settings, TLS_CONNECT, say, &l);
}

void config_tls_load(struct config *config, struct config_file *file)
{
    load_listeners(config, file);
    load_upstream(config, file);
}
