/* Defaults and bounds are written like values in a file, and parsed by the same functions. */
#include "run/config/config_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/host.h"
#include "base/mem.h"
#include "base/slice.h"
#include "base/why.h"
#include "limit/figures/slowlog.h"
#include "limit/policy/rate.h"
#include "quota/prefix.h"
#include "run/config/address.h"
#include "run/config/config_terms.h"
#include "run/config/secret.h"

#define NAME_MAX_BYTES 64 /* of `name`, which must fit into a heading */
#define USER_MAX 255
#define WORDS_ROOM 64

/* ---- numbers ---- */

static bool config_values_keep(const struct setting *s, uint64_t number)
{
    void *member = (char *)s->config + s->key->offset;
    if (s->key->size == sizeof(bool))
        *(bool *)member = number != 0;
    else if (s->key->size == sizeof(unsigned))
        *(unsigned *)member = (unsigned)number;
    else if (s->key->size == sizeof(uint64_t))
        *(uint64_t *)member = number;
    else
        abort(); /* the table itself is wrong */
    return true;
}

static bool config_values_parse(const struct setting *s, struct slice text, uint64_t *number)
{
    return s->key->parse(text, number, s->why.out, s->why.size);
}

static bool parse_bounded(const struct setting *s, uint64_t *number)
{
    const struct config_key *key = s->key;
    uint64_t least, most;
    if (!config_values_parse(s, s->value, number) ||
        !config_values_parse(s, slice_str(key->least), &least) ||
        !config_values_parse(s, slice_str(key->most), &most))
        return false;
    if (*number >= least && *number <= most)
        return true;
    char words[WORDS_ROOM] = ""; /* ", or 0": the words allowed instead */
    size_t len = 0;
    for (size_t i = 0; key->words != NULL && key->words[i] != NULL && len < sizeof words; i++)
        len += (size_t)snprintf(words + len, sizeof words - len, ", or %s", key->words[i]);
    return why_refuse(s->why, "must be from %s to %s%s", key->least, key->most, words);
}

static bool is_word_of(const struct config_key *key, const char *word)
{
    return key->words != NULL && key->words[choice_find(key->words, slice_str(word))] != NULL;
}

bool key_number(const struct setting *s)
{
    uint64_t number = 0;
    bool is_zero = slice_eq(s->value, SLICE("0")) && is_word_of(s->key, "0");
    return (is_zero || parse_bounded(s, &number)) && config_values_keep(s, number);
}

/* 0: every command is slow, as in Redis. */
bool key_slow(const struct setting *s)
{
    return slice_eq_nocase(s->value, SLICE("off")) ? config_values_keep(s, SLOWLOG_OFF)
                                                   : key_number(s);
}

bool key_workers(const struct setting *s)
{
    uint64_t most;
    if (!slice_eq_nocase(s->value, SLICE("cores")))
        return key_number(s);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return config_values_parse(s, slice_str(s->key->most), &most) &&
           config_values_keep(s, cores < 1                ? 1
                                 : (uint64_t)cores > most ? most
                                                          : (uint64_t)cores);
}

bool key_include(const struct setting *s)
{
    (void)s;
    return true;
}

/* ---- addresses ---- */

static bool add_listen(struct config *config, struct slice text, struct why why)
{
    struct socket_words words;
    if (!socket_words_parse(&words, text, why))
        return false;
    struct listen listen = {.has_proxy_header = words.has_proxy, .rights = words.rights};
    const struct address *address = &listen.address;
    if (config->n_listens == LISTENS_MAX)
        return why_refuse(why, "at most %d addresses", LISTENS_MAX);
    if (!address_parse(&listen.address, words.address, true, why))
        return false;
    for (size_t i = 0; i < config->n_listens; i++)
        if (address_eq(&config->listens[i].address, address) &&
            (address->port || address->is_unix)) {
            address_fini(&listen.address);
            return why_refuse(why, "%.*s is given twice", WHY_SLICE(words.address));
        }
    config->listens = mem_realloc(config->listens, config->n_listens + 1, sizeof listen);
    config->listens[config->n_listens++] = listen;
    return true;
}

/*
 * True if the text follows a comma in a path: it is neither an address nor a word like "mode=0660".
 */
static bool is_part_of_path(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] == ':' || text.at[i] == ' ' || text.at[i] == '=')
            return false;
    return text.len > 0;
}

bool key_listen(const struct setting *s)
{
    struct slice rest = s->value, text, before = SLICE("");
    for (; split_next(&rest, ',', &text); before = text) {
        if (add_listen(s->config, text, s->why))
            continue;
        if (address_is_unix(before) && is_part_of_path(text))
            why_refuse(s->why, "the path of a unix socket has no commas, which separate addresses");
        return false;
    }
    return true;
}

static bool add_networks(const struct setting *s, struct networks *networks)
{
    struct slice rest = s->value, text;
    while (split_next(&rest, ',', &text))
        if (!networks_add(networks, text, s->why.out, s->why.size))
            return false;
    return true;
}

bool key_upstream_allow(const struct setting *s)
{
    return add_networks(s, &s->config->upstream_allow);
}

bool key_proxies(const struct setting *s)
{
    return add_networks(s, &s->config->rules.proxies);
}

bool key_upstream(const struct setting *s)
{
    return sources_add(&s->config->sources, s->value, s->why);
}

bool key_upstream_map(const struct setting *s)
{
    return address_map_add(&s->config->upstream_map, s->value, s->why);
}

bool key_cluster_announce(const struct setting *s)
{
    struct address *address = &s->config->cluster_announce;
    if (address_is_unix(s->value))
        return why_refuse(
            s->why,
            "clients of a cluster need a host and a port: write cluster-announce = HOST:PORT");
    return address_parse_http(address, s->value, s->why) &&
           (address->port != 0 ||
            why_refuse(s->why,
                       "clients cannot connect to port 0: write cluster-announce = HOST:PORT"));
}

bool key_admin_listen(const struct setting *s)
{
    if (address_is_unix(s->value))
        return why_refuse(s->why, "HTTP needs host:port");
    return address_parse_http(&s->config->admin_listen, s->value, s->why);
}

bool key_admin_socket(const struct setting *s)
{
    struct address address;
    struct slice rest = s->value, path;
    char text[ADDRESS_TEXT];
    split_word(&rest, &path);
    if (path.len == 0 || path.at[0] != '/') {
        bool is_unix = address_is_unix(path);
        return why_refuse(s->why, "\"%.*s\" is not a path: %s%.*s", WHY_SLICE(s->value),
                          is_unix ? "write socket = "
                                  : "the path of a unix socket must start with /",
                          WHY_SLICE(is_unix ? slice_of(path.at + 5, path.len - 5) : SLICE("")));
    }
    if (rest.len > 0)
        return why_refuse(
            s->why,
            "\"%.*s\" cannot follow the path: the operators' socket always has the mode 0600, for root and weir's "
            "user; a path cannot contain blanks",
            WHY_SLICE(split_trim(rest)));
    snprintf(text, sizeof text, "unix:%.*s", (int)path.len, path.at);
    if (!address_parse(&address, slice_str(text), false, s->why))
        return false;
    s->config->admin_socket = address.host;
    return true;
}

static void add_host(struct config *config, struct slice name)
{
    char *before = config->admin_hosts;
    config->admin_hosts = mem_print("%s%s%.*s", before != NULL ? before : "",
                                    before != NULL ? "," : "", (int)name.len, name.at);
    free(before);
}

bool key_admin_host(const struct setting *s)
{
    struct slice rest = s->value, name;
    while (split_next(&rest, ',', &name)) {
        if (!host_is_name(name))
            return why_refuse(
                s->why,
                "\"%.*s\" is not a host name: write it as in the address bar, without a port",
                WHY_SLICE(name));
        add_host(s->config, name);
    }
    return true;
}

/* ---- words ---- */

bool key_text(const struct setting *s)
{
    *(char **)(void *)((char *)s->config + s->key->offset) = mem_strndup(s->value.at, s->value.len);
    return true;
}

bool key_instance(const struct setting *s)
{
    return (s->value.len <= NAME_MAX_BYTES ||
            why_refuse(s->why, "a name has 1 to %d bytes", NAME_MAX_BYTES)) &&
           key_text(s);
}

bool key_user(const struct setting *s)
{
    struct slice rest = s->value, word;
    bool is_one = split_word(&rest, &word) && rest.len == 0 && word.len <= USER_MAX;
    return (is_one || why_refuse(s->why, "a user is one word of at most %d bytes", USER_MAX)) &&
           key_text(s);
}

/* Warns of a file that other users can read. */
static bool take_password(const struct setting *s, char **secret, char **kept)
{
    char *path = mem_strndup(s->value.at, s->value.len);
    if (!secret_read(path, secret, NULL, s->why)) {
        free(path);
        return false;
    }
    *kept = path;
    return true;
}

bool key_password_file(const struct setting *s)
{
    struct own_password *password = &s->config->rules.upstream_password;
    return take_password(s, &password->newest, &password->path);
}

bool key_sentinel_password_file(const struct setting *s)
{
    char *secret = NULL; /* the connection to sentinels reads the file again */
    bool is_good = take_password(s, &secret, &s->config->sentinel_password_file);
    secret_forget(secret);
    return is_good;
}

bool key_limit_prefix(const struct setting *s)
{
    static const struct slice own = {"weir:", 5};
    if (!prefix_check(s->value, s->why.out, s->why.size))
        return false;
    memcpy(s->config->rules.limit_prefix, s->value.at, s->value.len);
    s->config->rules.limit_prefix[s->value.len] = '\0';
    if (s->value.len >= own.len && slice_eq(slice_of(s->value.at, own.len), own))
        why_refuse(
            s->why,
            "the prefix weir: is reserved for weir's own state: write limit-prefix = limit:");
    return true;
}

bool key_word(const struct setting *s)
{
    unsigned index;
    return choice_take(s->key->words, s->value, &index, s->why.out, s->why.size) &&
           config_values_keep(s, index);
}

bool key_when_down(const struct setting *s)
{
    if (slice_eq_nocase(s->value, SLICE("local")))
        return why_refuse(
            s->why, "local is only for named limits: write when-down = local in a [limit NAME]");
    return key_word(s);
}

/* The burst is a tenth of a second's count: below Redis' tcp-backlog at the default rate. */
bool key_dial_rate(const struct setting *s)
{
    struct rate_text text;
    struct rate *rate = &s->config->dial_rate;
    if (slice_eq(s->value, SLICE("0"))) {
        *rate = (struct rate){0};
        return true;
    }
    if (!rate_parse(s->value, RATE_OF_UNITS, &text, s->why.out, s->why.size))
        return false;
    uint64_t burst =
        (uint64_t)((double)text.count * (double)(NS_PER_S / 10) / (double)text.period_ns);
    return rate_init(rate, text.count, text.period_ns, burst > 0 ? burst : 1) ||
           why_refuse(s->why, "\"%.*s\" is too slow", WHY_SLICE(s->value));
}

bool key_identity(const struct setting *s)
{
    struct identity more, *all = &s->config->rules.identity;
    if (!identity_parse(&more, s->value, s->why.out, s->why.size))
        return false;
    if (all->count + more.count > IDENTITY_MAX_SOURCES)
        return why_refuse(s->why, "at most %d sources", IDENTITY_MAX_SOURCES);
    for (size_t i = 0; i < more.count; i++)
        all->sources[all->count++] = more.sources[i];
    return true;
}

bool key_prefix(const struct setting *s)
{
    char *prefix = s->config->rules.error_prefix;
    const size_t room = sizeof s->config->rules.error_prefix;
    enum error_word verdict = error_word_find(s->value);
    bool is_good = s->value.len < room;
    for (size_t i = 0; i < s->value.len; i++)
        is_good = is_good && s->value.at[i] >= 'A' && s->value.at[i] <= 'Z';
    if (!is_good)
        return why_refuse(s->why, "\"%.*s\" is not 1 to %zu capital letters", WHY_SLICE(s->value),
                          room - 1);
    if (verdict != ERROR_WORD_NONE)
        why_refuse(
            s->why,
            "client libraries act on %.*s (retry, reconnect, log in again): choose another word",
            WHY_SLICE(s->value));
    memcpy(prefix, s->value.at, s->value.len);
    prefix[s->value.len] = '\0';
    return verdict != ERROR_WORD_REFUSED;
}

static bool add_log(struct config *config, struct slice where, struct why why)
{
    bool is_stderr = slice_eq_nocase(where, SLICE("stderr"));
    if (!is_stderr && (where.len == 0 || where.at[0] != '/'))
        return why_refuse(why, "\"%.*s\" is not valid: write stderr, or a path that starts with /",
                          WHY_SLICE(where));
    if (is_stderr ? config->log_to_stderr : config->log_path != NULL)
        return why_refuse(why, "at most stderr and one file");
    config->log_to_stderr |= is_stderr;
    if (!is_stderr)
        config->log_path = mem_strndup(where.at, where.len);
    return true;
}

bool key_log(const struct setting *s)
{
    struct slice rest = s->value, where;
    while (split_next(&rest, ',', &where))
        if (!add_log(s->config, where, s->why))
            return false;
    return true;
}

bool key_tls_protocols(const struct setting *s)
{
    struct tls_settings *settings = &s->config->tls_settings;
    struct slice rest = s->value, word;
    settings->no_tls12 = settings->no_tls13 = true;
    while (split_next(&rest, ',', &word)) {
        if (slice_eq_nocase(word, SLICE("TLSv1.2")))
            settings->no_tls12 = false;
        else if (slice_eq_nocase(word, SLICE("TLSv1.3")))
            settings->no_tls13 = false;
        else
            return why_refuse(s->why, "\"%.*s\" is not supported: write TLSv1.2, TLSv1.3 or both",
                              WHY_SLICE(word));
    }
    return true;
}
