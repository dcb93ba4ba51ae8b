/* Defaults and bounds are written as values in a file are, and parsed the same way. */
#include "run/config/config_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "admin/host.h"
#include "base/choice.h"
#include "base/mem.h"
#include "base/split.h"
#include "base/why.h"
#include "limit/policy/rate.h"
#include "limit/figures/slowlog.h"
#include "quota/prefix.h"
#include "run/config/address.h"
#include "run/config/config_file.h"
#include "run/config/config_tls.h"
#include "run/config/error_words.h"
#include "run/config/secret.h"
#include "run/config/socket_words.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define NAME_MAX_BYTES 64 /* of `name`: it is to fit into a heading */
#define USER_MAX 255
#define ADDRESS_TEXT 512
#define WORDS_ROOM 64

/* ---- numbers ---- */

static void keep(const struct config_key *key, struct config *config, uint64_t number)
{
    void *member = (char *)config + key->offset;
    switch (key->size) {
    case sizeof(bool):
        *(bool *)member = number != 0;
        break;
    case sizeof(unsigned):
        *(unsigned *)member = (unsigned)number;
        break;
    case sizeof(uint64_t):
        *(uint64_t *)member = number;
        break;
    default:
        abort(); /* the table itself is wrong */
    }
}

/* ", or 0", from the words that may stand instead of a number. */
static void print_words(const struct config_key *key, char *out, size_t size)
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; key->words != NULL && key->words[i] != NULL && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, ", or %s", key->words[i]);
}

static bool parse_bounded(const struct config_key *key, struct slice value, uint64_t *number, char *why,
                          size_t why_size)
{
    uint64_t least, most;
    if (!key->parse(value, number, why, why_size) || !key->parse(slice_str(key->least), &least, why, why_size) ||
        !key->parse(slice_str(key->most), &most, why, why_size))
        return false;
    if (*number >= least && *number <= most)
        return true;
    char words[WORDS_ROOM];
    print_words(key, words, sizeof words);
    return why_set(why, why_size, "must be from %s to %s%s", key->least, key->most, words);
}

static bool is_word_of(const struct config_key *key, const char *word)
{
    return key->words != NULL && key->words[choice_find(key->words, slice_str(word))] != NULL;
}

enum key_result key_number(const struct config_key *key, struct config *config, struct slice value, char *why,
                           size_t why_size)
{
    uint64_t number = 0;
    bool is_zero = slice_eq(value, SLICE("0")) && is_word_of(key, "0");
    if (!is_zero && !parse_bounded(key, value, &number, why, why_size))
        return KEY_BAD;
    keep(key, config, number);
    return KEY_SET;
}

/* 0: everything is slow, as in Redis. */
enum key_result key_slow(const struct config_key *key, struct config *config, struct slice value, char *why,
                         size_t why_size)
{
    if (!slice_eq_nocase(value, SLICE("off")))
        return key_number(key, config, value, why, why_size);
    keep(key, config, SLOWLOG_OFF);
    return KEY_SET;
}

enum key_result key_workers(const struct config_key *key, struct config *config, struct slice value, char *why,
                            size_t why_size)
{
    uint64_t most;
    if (!slice_eq_nocase(value, SLICE("cores")))
        return key_number(key, config, value, why, why_size);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (!key->parse(slice_str(key->most), &most, why, why_size))
        return KEY_BAD;
    keep(key, config, cores < 1 ? 1 : (uint64_t)cores > most ? most : (uint64_t)cores);
    return KEY_SET;
}

enum key_result key_include(const struct config_key *key, struct config *config, struct slice value, char *why,
                            size_t why_size)
{
    (void)key;
    (void)config;
    (void)value;
    (void)why;
    (void)why_size;
    return KEY_SET;
}

/* ---- addresses ---- */

static enum key_result add_listen(struct config *config, struct slice text, char *why, size_t why_size)
{
    struct socket_words words;
    if (!socket_words_parse(&words, text, why, why_size))
        return KEY_BAD;
    struct listen listen = {.has_proxy_header = words.has_proxy, .rights = words.rights};
    const struct address *address = &listen.address;
    if (config->n_listens == LISTENS_MAX) {
        why_set(why, why_size, "at most %d addresses", LISTENS_MAX);
        return KEY_BAD;
    }
    if (!address_parse(&listen.address, words.address, true, why, why_size))
        return KEY_BAD;
    for (size_t i = 0; i < config->n_listens; i++)
        if (address_eq(&config->listens[i].address, address) && (address->port || address->is_unix)) {
            address_fini(&listen.address);
            why_set(why, why_size, "%.*s is given twice", WHY_SLICE(words.address));
            return KEY_BAD;
        }
    config->listens = mem_realloc(config->listens, config->n_listens + 1, sizeof listen);
    config->listens[config->n_listens++] = listen;
    return KEY_SET;
}

/* True if it stands behind a comma of a path, and is no address and no word like "mode=0660". */
static bool is_part_of_path(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] == ':' || text.at[i] == ' ' || text.at[i] == '=')
            return false;
    return text.len > 0;
}

enum key_result key_listen(const struct config_key *key, struct config *config, struct slice value, char *why,
                           size_t why_size)
{
    struct slice text, before = SLICE("");
    (void)key;
    for (; split_next(&value, ',', &text); before = text) {
        if (add_listen(config, text, why, why_size) == KEY_SET)
            continue;
        bool is_name = is_part_of_path(text);
        if (address_is_unix(before) && is_name)
            why_set(why, why_size, "the path of a unix socket has no commas, which separate addresses");
        return KEY_BAD;
    }
    return KEY_SET;
}

enum key_result key_upstream_allow(const struct config_key *key, struct config *config, struct slice value, char *why,
                                   size_t why_size)
{
    struct slice text;
    (void)key;
    while (split_next(&value, ',', &text))
        if (!networks_add(&config->upstream_allow, text, why, why_size))
            return KEY_BAD;
    return KEY_SET;
}

enum key_result key_proxies(const struct config_key *key, struct config *config, struct slice value, char *why,
                            size_t why_size)
{
    struct slice text;
    (void)key;
    while (split_next(&value, ',', &text))
        if (!networks_add(&config->rules.proxies, text, why, why_size))
            return KEY_BAD;
    return KEY_SET;
}

enum key_result key_upstream(const struct config_key *key, struct config *config, struct slice value, char *why,
                             size_t why_size)
{
    (void)key;
    return sources_add(&config->sources, value, (struct why){why, why_size}) ? KEY_SET : KEY_BAD;
}

enum key_result key_upstream_map(const struct config_key *key, struct config *config, struct slice value, char *why,
                                 size_t why_size)
{
    (void)key;
    return address_map_add(&config->upstream_map, value, (struct why){why, why_size}) ? KEY_SET : KEY_BAD;
}

enum key_result key_cluster_announce(const struct config_key *key, struct config *config, struct slice value, char *why,
                                     size_t why_size)
{
    (void)key;
    if (address_is_unix(value))
        why_set(why, why_size, "clients of a cluster are told a host and a port: write cluster-announce = HOST:PORT");
    else if (address_parse_http(&config->cluster_announce, value, why, why_size) && config->cluster_announce.port != 0)
        return KEY_SET;
    else if (config->cluster_announce.host != NULL)
        why_set(why, why_size, "clients cannot connect to port 0: write cluster-announce = HOST:PORT");
    return KEY_BAD;
}

/* ---- words ---- */

static enum key_result take_user(char **user, struct slice value, char *why, size_t why_size)
{
    struct slice rest = value, word;
    if (!split_word(&rest, &word) || rest.len > 0 || word.len > USER_MAX) {
        why_set(why, why_size, "a user is one word of at most %d bytes", USER_MAX);
        return KEY_BAD;
    }
    *user = mem_strndup(word.at, word.len);
    return KEY_SET;
}

enum key_result key_user(const struct config_key *key, struct config *config, struct slice value, char *why,
                         size_t why_size)
{
    (void)key;
    return take_user(&config->upstream_user, value, why, why_size);
}

enum key_result key_sentinel_user(const struct config_key *key, struct config *config, struct slice value, char *why,
                                  size_t why_size)
{
    (void)key;
    return take_user(&config->sentinel_user, value, why, why_size);
}

static enum key_result take_password(char **secret, char **kept, struct slice value, char *why, size_t why_size)
{
    char *path = mem_strndup(value.at, value.len);
    enum key_result result = KEY_BAD;
    switch (secret_read(path, secret, why, why_size)) {
    case SECRET_READ:
        result = KEY_SET;
        break;
    case SECRET_READ_BY_OTHERS:
        result = KEY_SET_WITH_WARNING;
        break;
    case SECRET_BAD:
        free(path);
        return KEY_BAD;
    }
    *kept = path;
    return result;
}

enum key_result key_password_file(const struct config_key *key, struct config *config, struct slice value, char *why,
                                  size_t why_size)
{
    (void)key;
    struct own_password *password = &config->rules.upstream_password;
    return take_password(&password->newest, &password->path, value, why, why_size);
}

enum key_result key_sentinel_password_file(const struct config_key *key, struct config *config, struct slice value,
                                           char *why, size_t why_size)
{
    char *secret = NULL; /* what talks to sentinels reads it again */
    (void)key;
    enum key_result result = take_password(&secret, &config->sentinel_password_file, value, why, why_size);
    secret_forget(secret);
    return result;
}

enum key_result key_limit_prefix(const struct config_key *key, struct config *config, struct slice value, char *why,
                                 size_t why_size)
{
    static const struct slice own = {"weir:", 5};
    (void)key;
    if (!prefix_check(value, why, why_size))
        return KEY_BAD;
    memcpy(config->rules.limit_prefix, value.at, value.len);
    config->rules.limit_prefix[value.len] = '\0';
    if (value.len < own.len || !slice_eq(slice_of(value.at, own.len), own))
        return KEY_SET;
    why_set(why, why_size, "keys that begin with weir: are for state of weir's own: write limit-prefix = limit:");
    return KEY_SET_WITH_WARNING;
}

enum key_result key_word(const struct config_key *key, struct config *config, struct slice value, char *why,
                         size_t why_size)
{
    unsigned index;
    if (!choice_take(key->words, value, &index, why, why_size))
        return KEY_BAD;
    keep(key, config, index);
    return KEY_SET;
}

/* A tenth of what a second brings may come at once: less than Redis' tcp-backlog at the default rate. */
enum key_result key_dial_rate(const struct config_key *key, struct config *config, struct slice value, char *why,
                              size_t why_size)
{
    uint64_t count, period_ns;
    (void)key;
    if (slice_eq(value, SLICE("0"))) {
        config->dial_rate = (struct rate){0};
        return KEY_SET;
    }
    if (!rate_parse_amount(value, false, &count, &period_ns, why, why_size))
        return KEY_BAD;
    uint64_t burst = (uint64_t)((double)count * (double)(NS_PER_S / 10) / (double)period_ns);
    if (rate_init(&config->dial_rate, count, period_ns, burst > 0 ? burst : 1))
        return KEY_SET;
    why_set(why, why_size, "\"%.*s\" is too slow", WHY_SLICE(value));
    return KEY_BAD;
}

enum key_result key_when_down(const struct config_key *key, struct config *config, struct slice value, char *why,
                              size_t why_size)
{
    if (!slice_eq_nocase(value, SLICE("local")))
        return key_word(key, config, value, why, why_size);
    why_set(why, why_size, "local is for named limits alone: give it as when-down in a [limit NAME]");
    return KEY_BAD;
}

enum key_result key_admin_socket(const struct config_key *key, struct config *config, struct slice value, char *why,
                                 size_t why_size)
{
    struct address address;
    struct slice rest = value, path;
    char text[ADDRESS_TEXT];
    (void)key;
    split_word(&rest, &path);
    if (path.len == 0 || path.at[0] != '/') {
        bool is_unix = address_is_unix(path);
        why_set(why, why_size, "\"%.*s\" is not a path: %s%.*s", WHY_SLICE(value),
                is_unix ? "write socket = " : "the path of a unix socket starts with /",
                WHY_SLICE(is_unix ? slice_of(path.at + 5, path.len - 5) : SLICE("")));
        return KEY_BAD;
    }
    if (rest.len > 0) {
        why_set(why, why_size,
                "\"%.*s\" may not stand behind the path, which has no blanks: the operators' socket has the mode 0600, "
                "and only root and the user that weir runs as may connect",
                WHY_SLICE(split_trim(rest)));
        return KEY_BAD;
    }
    snprintf(text, sizeof text, "unix:%.*s", (int)path.len, path.at);
    if (!address_parse(&address, slice_str(text), false, why, why_size))
        return KEY_BAD;
    config->admin_socket = address.host;
    return KEY_SET;
}

enum key_result key_instance(const struct config_key *key, struct config *config, struct slice value, char *why,
                             size_t why_size)
{
    (void)key;
    if (value.len == 0 || value.len > NAME_MAX_BYTES) {
        why_set(why, why_size, "a name has 1 to %d bytes", NAME_MAX_BYTES);
        return KEY_BAD;
    }
    config->name = mem_strndup(value.at, value.len);
    return KEY_SET;
}

enum key_result key_admin_listen(const struct config_key *key, struct config *config, struct slice value, char *why,
                                 size_t why_size)
{
    (void)key;
    if (address_is_unix(value))
        why_set(why, why_size, "HTTP needs host:port");
    else if (address_parse_http(&config->admin_listen, value, why, why_size))
        return KEY_SET;
    return KEY_BAD;
}

static void add_host(struct config *config, struct slice name)
{
    struct slice before = slice_str(config->admin_hosts != NULL ? config->admin_hosts : "");
    char *hosts = mem_zalloc(before.len + name.len + 2, 1);
    snprintf(hosts, before.len + name.len + 2, "%s%s%.*s", before.at, before.len > 0 ? "," : "", (int)name.len,
             name.at);
    free(config->admin_hosts);
    config->admin_hosts = hosts;
}

enum key_result key_admin_host(const struct config_key *key, struct config *config, struct slice value, char *why,
                               size_t why_size)
{
    struct slice name;
    (void)key;
    while (split_next(&value, ',', &name)) {
        if (!host_is_name(name)) {
            why_set(why, why_size, "\"%.*s\" is not a name: write it as in the address bar, without a port",
                    WHY_SLICE(name));
            return KEY_BAD;
        }
        add_host(config, name);
    }
    return KEY_SET;
}

enum key_result key_identity(const struct config_key *key, struct config *config, struct slice value, char *why,
                             size_t why_size)
{
    struct identity more;
    (void)key;
    if (!identity_parse(&more, value, why, why_size))
        return KEY_BAD;
    if (config->rules.identity.count + more.count > IDENTITY_MAX_SOURCES) {
        why_set(why, why_size, "at most %d sources", IDENTITY_MAX_SOURCES);
        return KEY_BAD;
    }
    for (size_t i = 0; i < more.count; i++)
        config->rules.identity.sources[config->rules.identity.count++] = more.sources[i];
    return KEY_SET;
}

enum key_result key_prefix(const struct config_key *key, struct config *config, struct slice value, char *why,
                           size_t why_size)
{
    (void)key;
    enum error_word verdict = error_word_find(value);
    bool is_good = value.len > 0 && value.len < sizeof config->rules.error_prefix;
    for (size_t i = 0; i < value.len; i++)
        is_good = is_good && value.at[i] >= 'A' && value.at[i] <= 'Z';
    if (!is_good)
        why_set(why, why_size, "\"%.*s\" is not 1 to %zu capital letters", WHY_SLICE(value),
                sizeof config->rules.error_prefix - 1);
    if (verdict != ERROR_WORD_NONE)
        why_set(why, why_size,
                "clients act on %.*s by themselves (retry, reconnect, log in again): choose another word",
                WHY_SLICE(value));
    if (!is_good || verdict == ERROR_WORD_REFUSED)
        return KEY_BAD;
    memcpy(config->rules.error_prefix, value.at, value.len);
    config->rules.error_prefix[value.len] = '\0';
    return verdict == ERROR_WORD_WARNED ? KEY_SET_WITH_WARNING : KEY_SET;
}

/* ---- the log ---- */

static enum key_result add_log(struct config *config, struct slice where, char *why, size_t why_size)
{
    bool is_stderr = slice_eq_nocase(where, SLICE("stderr"));
    if (!is_stderr && (where.len == 0 || where.at[0] != '/'))
        why_set(why, why_size, "\"%.*s\" is neither stderr nor a path, which starts with /", WHY_SLICE(where));
    else if (is_stderr ? config->log_to_stderr : config->log_path != NULL)
        why_set(why, why_size, "stderr and one file at most");
    else {
        config->log_to_stderr |= is_stderr;
        if (!is_stderr)
            config->log_path = mem_strndup(where.at, where.len);
        return KEY_SET;
    }
    return KEY_BAD;
}

enum key_result key_log(const struct config_key *key, struct config *config, struct slice value, char *why,
                        size_t why_size)
{
    struct slice where;
    (void)key;
    while (split_next(&value, ',', &where))
        if (add_log(config, where, why, why_size) != KEY_SET)
            return KEY_BAD;
    return KEY_SET;
}

/* ---- TLS ---- */

enum key_result key_text(const struct config_key *key, struct config *config, struct slice value, char *why,
                         size_t why_size)
{
    (void)why;
    (void)why_size;
    *(char **)(void *)((char *)config + key->offset) = mem_strndup(value.at, value.len);
    return KEY_SET;
}

enum key_result key_tls_protocols(const struct config_key *key, struct config *config, struct slice value, char *why,
                                  size_t why_size)
{
    (void)key;
    return tls_protocols_parse(value, &config->tls_settings, why, why_size) ? KEY_SET : KEY_BAD;
}
