#include "run/config/config_sources.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/slice.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const struct slice sentinel_scheme = {"sentinel:", 9}, cluster_scheme = {"cluster:", 8};

static bool begins_with(struct slice text, struct slice start)
{
    return text.len >= start.len && slice_eq_nocase(slice_of(text.at, start.len), start);
}

/*
 * True if the item begins with the scheme. "sentinel:6379" and "cluster:7000" are addresses with a
 * host's name.
 */
static bool config_sources_has_scheme(struct slice item, struct slice scheme)
{
    bool is_host = true;
    for (size_t i = scheme.len; i < item.len; i++)
        is_host = is_host && item.at[i] >= '0' && item.at[i] <= '9';
    return begins_with(item, scheme) && !(is_host && item.len > scheme.len);
}

/* ---- words after an address ---- */

/* Words that other programs allow after an address, and what to write instead. */
static const struct behind {
    struct slice word; /* "db", also in "db=3" */
    const char *instead;
} behinds[] = {
    {{"password", 8}, "write the password into a file: upstream-password-file = PATH"},
    {{"pass", 4}, "write the password into a file: upstream-password-file = PATH"},
    {{"auth", 4}, "write the password into a file: upstream-password-file = PATH"},
    {{"user", 4}, "write upstream-user = NAME, and upstream-password-file = PATH"},
    {{"username", 8}, "write upstream-user = NAME, and upstream-password-file = PATH"},
    {{"tls", 3}, "TLS goes before the address: tls:host:port"},
    {{"ssl", 3}, "TLS goes before the address: tls:host:port"},
    {{"db", 2}, "clients choose their database with SELECT"},
    {{"database", 8}, "clients choose their database with SELECT"},
};

static struct slice config_sources_until(struct slice text, char end)
{
    const char *at = memchr(text.at, end, text.len);
    return slice_of(text.at, at != NULL ? (size_t)(at - text.at) : text.len);
}

static bool config_sources_is_address(struct slice text)
{
    struct address address = {0};
    char unused[WHY_SHOWN_MAX];
    bool is = address_parse(&address, text, false, (struct why){unused, sizeof unused});
    address_fini(&address);
    return is;
}

/* True if the text is one word. False: `why` has the error. */
static bool stands_alone(struct slice text, struct why why)
{
    struct slice rest = text, first, word;
    split_word(&rest, &first);
    split_word(&rest, &word);
    struct slice one = config_sources_until(first, ';');
    bool has_comment = one.len < first.len;
    if (!has_comment && word.len == 0)
        return true;
    struct slice name = config_sources_until(word, '=');
    for (size_t i = 0; !has_comment && i < COUNT_OF(behinds); i++)
        if (slice_eq_nocase(name, behinds[i].word))
            return why_refuse(why, "%.*s cannot follow the address: %s", WHY_SLICE(name),
                              behinds[i].instead);
    if (address_is_unix(first) && !has_comment)
        return why_refuse(why, "the path of a unix socket cannot contain blanks");
    if (!config_sources_is_address(one))
        return why_refuse(why, "write upstream = HOST:PORT, with commas between several addresses");
    if (has_comment)
        return why_refuse(
            why,
            "a comment after a value begins with a blank and a semicolon: write upstream = %.*s",
            WHY_SLICE(one));
    if (config_sources_is_address(word))
        return why_refuse(why, "separate addresses by commas: write upstream = %.*s, %.*s",
                          WHY_SLICE(one), WHY_SLICE(word));
    return why_refuse(
        why, "only a comma and another address may follow an address: write upstream = %.*s",
        WHY_SLICE(one));
}

/* ---- items ---- */

/* Takes "sentinel:NAME@" off *item. */
static bool config_sources_take_master(struct sources *sources, struct slice *item, struct why why)
{
    struct slice rest = slice_of(item->at + sentinel_scheme.len, item->len - sentinel_scheme.len);
    struct slice name = split_trim(config_sources_until(rest, '@'));
    if (sources->form == SOURCES_SENTINEL)
        return why_refuse(
            why,
            "write sentinel:NAME@ only before the first sentinel, and the others as HOST:PORT");
    if (sources->n > 0)
        return why_refuse(why, "upstream names servers or sentinels, not both: write upstream = "
                               "sentinel:NAME@HOST:26379, and only sentinels after it");
    if (name.len == rest.len && config_sources_is_address(rest))
        return why_refuse(why,
                          "the name of the master is missing: write upstream = sentinel:NAME@%.*s",
                          WHY_SLICE(rest));
    if (name.len == 0 || name.len == rest.len || memchr(name.at, ' ', name.len) != NULL)
        return why_refuse(
            why, "the name of the master is missing: write upstream = sentinel:NAME@HOST:26379");
    *item = split_trim(slice_of(rest.at + config_sources_until(rest, '@').len + 1,
                                rest.len - config_sources_until(rest, '@').len - 1));
    if (item->len == 0)
        return why_refuse(
            why, "the address of a sentinel is missing: write upstream = sentinel:%.*s@HOST:26379",
            WHY_SLICE(name));
    sources->form = SOURCES_SENTINEL;
    sources->master_name = mem_strndup(name.at, name.len);
    return true;
}

/* Takes "cluster:" off *item. */
static bool take_cluster(struct sources *sources, struct slice *item, struct why why)
{
    if (sources->form == SOURCES_CLUSTER)
        return why_refuse(why,
                          "write cluster: only before the first node, and the others as HOST:PORT");
    if (sources->n > 0)
        return why_refuse(
            why, "upstream names servers, sentinels or nodes of a cluster, not two of these: write "
                 "upstream = cluster:HOST:PORT, and only its nodes after it");
    *item = split_trim(slice_of(item->at + cluster_scheme.len, item->len - cluster_scheme.len));
    if (item->len == 0)
        return why_refuse(why,
                          "the address of a node is missing: write upstream = cluster:HOST:PORT");
    sources->form = SOURCES_CLUSTER;
    return true;
}

static bool may_join(const struct sources *sources, const struct address *address,
                     struct slice text, struct why why)
{
    if (sources->form == SOURCES_SENTINEL && address->is_unix)
        return why_refuse(why, "a sentinel cannot have a unix socket: write HOST:26379");
    if (sources->form == SOURCES_CLUSTER && address->is_unix)
        return why_refuse(why, "a node of a cluster cannot have a unix socket: write HOST:PORT");
    if (sources->n == SOURCES_MOST)
        return why_refuse(why, "at most %d addresses: remove %.*s", SOURCES_MOST, WHY_SLICE(text));
    for (size_t i = 0; i < sources->n; i++)
        if (address_is_same(&sources->addresses[i], address))
            return why_refuse(why, "%.*s is given twice: name each address once", WHY_SLICE(text));
    if (sources->n > 0 && sources->addresses[0].is_tls != address->is_tls)
        return why_refuse(why, "tls: must precede every address of upstream, or none: %.*s has %s",
                          WHY_SLICE(text), address->is_tls ? "it" : "none");
    return true;
}

static bool add_item(struct sources *sources, struct slice item, struct why why)
{
    struct address address = {0};
    if (config_sources_has_scheme(item, cluster_scheme) && !take_cluster(sources, &item, why))
        return false;
    if (config_sources_has_scheme(item, sentinel_scheme) &&
        !config_sources_take_master(sources, &item, why))
        return false;
    if (item.len == 0)
        return why_refuse(why, "an address is missing next to a comma");
    if (!address_is_unix(item) && memchr(item.at, '@', item.len) != NULL)
        return why_refuse(
            why,
            "only the name of a master may precede an @: write upstream = sentinel:NAME@HOST:26379, and "
            "a login in upstream-user and upstream-password-file");
    if (!stands_alone(item, why))
        return false;
    bool is_good = sources->form == SOURCES_SENTINEL ? address_parse_sentinel(&address, item, why)
                                                     : address_parse(&address, item, false, why);
    if (!is_good || !may_join(sources, &address, item, why)) {
        address_fini(&address);
        return false;
    }
    sources->addresses = mem_realloc(sources->addresses, sources->n + 1, sizeof address);
    sources->addresses[sources->n++] = address;
    if (sources->form == SOURCES_SERVER && sources->n > 1)
        sources->form = SOURCES_LIST;
    return true;
}

/* Refuses a URL as a whole: it may contain a password, with commas and blanks. */
static bool refuse_url(struct slice value, struct why why)
{
    struct address address = {0};
    struct slice head = config_sources_until(value, ':');
    bool is_first = head.len + 2 < value.len && value.at[head.len + 1] == '/';
    if (!is_first)
        return why_refuse(
            why, "a URL is not an address: write HOST:PORT, and a login in upstream-user and "
                 "upstream-password-file");
    bool is_good = address_parse(&address, value, false, why);
    address_fini(&address);
    return is_good && why_refuse(why, "a URL is not an address: write HOST:PORT");
}

bool sources_add(struct sources *sources, struct slice value, struct why why)
{
    struct slice item, before = SLICE("");
    if (memmem(value.at, value.len, "://", 3) != NULL)
        return refuse_url(value, why);
    for (; split_next(&value, ',', &item); before = item) {
        if (add_item(sources, item, why))
            continue;
        bool is_name = item.len > 0 && config_sources_until(item, ':').len == item.len &&
                       config_sources_until(item, ' ').len == item.len;
        if (address_is_unix(before) && is_name)
            why_refuse(why, "the path of a unix socket has no commas, which separate addresses");
        return false;
    }
    return true;
}

void sources_fini(struct sources *sources)
{
    for (size_t i = 0; i < sources->n; i++)
        address_fini(&sources->addresses[i]);
    free(sources->addresses);
    free(sources->master_name);
    *sources = (struct sources){.form = SOURCES_SERVER};
}
