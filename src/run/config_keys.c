/*
 * The table of the keys of [weir] and [admin], and a setter for each kind of value.
 *
 * Defaults and bounds are written as values in the file would be, and read the same way.
 */
#include "run/config_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/split.h"
#include "base/why.h"
#include "limit/rate.h"
#include "limit/slowlog.h"
#include "run/address.h"
#include "run/config_tls.h"
#include "run/secret.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define WORKERS_MAX 256
#define LISTENS_MAX 64
#define USER_MAX 255
#define ADDRESS_TEXT 512

struct config_key {
    const char *name;
    const char *initial; /* NULL: none */
    /* NULL: the key is known, and not yet supported */
    enum key_result (*set)(const struct config_key *key, struct config *config, struct slice value, char *why,
                           size_t why_size);
    size_t offset; /* of a number in struct config */
    const char *least, *most;
    bool is_list;
    bool is_admin;      /* of [admin] */
    bool needs_restart; /* a reload does not change it */
    bool names_file;    /* or says how files are used, which are read only when the whole configuration is */
};

/* ---- numbers, bytes, times ---- */

typedef bool (*parse_number)(struct slice text, uint64_t *number, char *why, size_t why_size);

static bool parse_bounded(const struct config_key *key, parse_number parse, struct slice value, uint64_t *number,
                          char *why, size_t why_size)
{
    uint64_t least, most;
    if (!parse(value, number, why, why_size) || !parse(slice_str(key->least), &least, why, why_size) ||
        !parse(slice_str(key->most), &most, why, why_size))
        return false;
    if (*number < least || *number > most)
        return why_set(why, why_size, "must be from %s to %s", key->least, key->most);
    return true;
}

static void *member(const struct config_key *key, struct config *config)
{
    return (char *)config + key->offset;
}

static enum key_result set_count(const struct config_key *key, struct config *config, struct slice value, char *why,
                                 size_t why_size)
{
    uint64_t number;
    if (!parse_bounded(key, rate_parse_count, value, &number, why, why_size))
        return KEY_BAD;
    *(unsigned *)member(key, config) = (unsigned)number;
    return KEY_SET;
}

static enum key_result set_subjects(const struct config_key *key, struct config *config, struct slice value, char *why,
                                    size_t why_size)
{
    uint64_t number;
    if (!parse_bounded(key, rate_parse_count, value, &number, why, why_size))
        return KEY_BAD;
    *(size_t *)member(key, config) = number;
    return KEY_SET;
}

static enum key_result set_bytes(const struct config_key *key, struct config *config, struct slice value, char *why,
                                 size_t why_size)
{
    uint64_t bytes;
    if (!parse_bounded(key, rate_parse_bytes, value, &bytes, why, why_size))
        return KEY_BAD;
    *(size_t *)member(key, config) = bytes;
    return KEY_SET;
}

static enum key_result set_time(const struct config_key *key, struct config *config, struct slice value, char *why,
                                size_t why_size)
{
    uint64_t ns;
    if (!parse_bounded(key, rate_parse_time, value, &ns, why, why_size))
        return KEY_BAD;
    *(uint64_t *)member(key, config) = ns;
    return KEY_SET;
}

/* 0: none. */
static enum key_result set_timeout(const struct config_key *key, struct config *config, struct slice value, char *why,
                                   size_t why_size)
{
    if (!slice_eq(value, SLICE("0")))
        return set_time(key, config, value, why, why_size);
    *(uint64_t *)member(key, config) = 0;
    return KEY_SET;
}

/* 0: everything is slow, as in Redis. */
static enum key_result set_slow(const struct config_key *key, struct config *config, struct slice value, char *why,
                                size_t why_size)
{
    if (!slice_eq_nocase(value, SLICE("off")))
        return set_timeout(key, config, value, why, why_size);
    config->slow_ns = SLOWLOG_OFF;
    return KEY_SET;
}

/* 0: none. */
static enum key_result set_bytes_or_none(const struct config_key *key, struct config *config, struct slice value,
                                         char *why, size_t why_size)
{
    if (!slice_eq(value, SLICE("0")))
        return set_bytes(key, config, value, why, why_size);
    *(size_t *)member(key, config) = 0;
    return KEY_SET;
}

static enum key_result set_workers(const struct config_key *key, struct config *config, struct slice value, char *why,
                                   size_t why_size)
{
    if (!slice_eq_nocase(value, SLICE("cores")))
        return set_count(key, config, value, why, why_size);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    config->workers = cores < 1 ? 1 : cores > WORKERS_MAX ? WORKERS_MAX : (unsigned)cores;
    return KEY_SET;
}

/* ---- addresses ---- */

/* "... proxy": without the word. */
static bool take_proxy_word(struct slice *text)
{
    static const struct slice word = {" proxy", 6};
    if (text->len <= word.len || !slice_eq_nocase(slice_of(text->at + text->len - word.len, word.len), word))
        return false;
    *text = split_trim(slice_of(text->at, text->len - word.len));
    return true;
}

static enum key_result add_listen(struct config *config, struct slice text, char *why, size_t why_size)
{
    struct listen listen = {.has_proxy_header = take_proxy_word(&text)};
    const struct address *address = &listen.address;
    if (config->n_listens == LISTENS_MAX) {
        why_set(why, why_size, "at most %d addresses", LISTENS_MAX);
        return KEY_BAD;
    }
    if (!address_parse(&listen.address, text, true, why, why_size))
        return KEY_BAD;
    for (size_t i = 0; i < config->n_listens; i++)
        if (address_eq(&config->listens[i].address, address) && (address->port || address->is_unix)) {
            address_fini(&listen.address);
            why_set(why, why_size, "%.*s is given twice", WHY_SLICE(text));
            return KEY_BAD;
        }
    config->listens = mem_realloc(config->listens, config->n_listens + 1, sizeof listen);
    config->listens[config->n_listens++] = listen;
    return KEY_SET;
}

static enum key_result set_listen(const struct config_key *key, struct config *config, struct slice value, char *why,
                                  size_t why_size)
{
    struct slice text;
    (void)key;
    while (split_next(&value, ',', &text))
        if (add_listen(config, text, why, why_size) != KEY_SET)
            return KEY_BAD;
    return KEY_SET;
}

static enum key_result set_proxies(const struct config_key *key, struct config *config, struct slice value, char *why,
                                   size_t why_size)
{
    struct slice text;
    (void)key;
    while (split_next(&value, ',', &text))
        if (!networks_add(&config->proxies, text, why, why_size))
            return KEY_BAD;
    return KEY_SET;
}

static enum key_result set_upstream(const struct config_key *key, struct config *config, struct slice value, char *why,
                                    size_t why_size)
{
    (void)key;
    return address_parse(&config->upstream, value, false, why, why_size) ? KEY_SET : KEY_BAD;
}

/* ---- words ---- */

static enum key_result set_user(const struct config_key *key, struct config *config, struct slice value, char *why,
                                size_t why_size)
{
    struct slice rest = value, word;
    (void)key;
    if (!split_word(&rest, &word) || rest.len > 0 || word.len > USER_MAX) {
        why_set(why, why_size, "a user is one word of at most %d bytes", USER_MAX);
        return KEY_BAD;
    }
    config->upstream_user = mem_strndup(word.at, word.len);
    return KEY_SET;
}

static enum key_result set_password_file(const struct config_key *key, struct config *config, struct slice value,
                                         char *why, size_t why_size)
{
    char *path = mem_strndup(value.at, value.len);
    (void)key;
    enum key_result result = KEY_BAD;
    switch (secret_read(path, &config->upstream_password, why, why_size)) {
    case SECRET_READ:
        result = KEY_SET;
        break;
    case SECRET_READ_BY_OTHERS:
        result = KEY_SET_WITH_WARNING;
        break;
    case SECRET_BAD:
        break;
    }
    free(path);
    return result;
}

static enum key_result set_clients_as(const struct config_key *key, struct config *config, struct slice value,
                                      char *why, size_t why_size)
{
    (void)key;
    config->clients_as_upstream = slice_eq_nocase(value, SLICE("upstream"));
    if (config->clients_as_upstream || slice_eq_nocase(value, SLICE("client")))
        return KEY_SET;
    why_set(why, why_size, "\"%.*s\" is neither client nor upstream", WHY_SLICE(value));
    return KEY_BAD;
}

static enum key_result set_lanes(const struct config_key *key, struct config *config, struct slice value, char *why,
                                 size_t why_size)
{
    (void)key;
    config->lanes_private = slice_eq_nocase(value, SLICE("private"));
    if (config->lanes_private || slice_eq_nocase(value, SLICE("shared")))
        return KEY_SET;
    why_set(why, why_size, "\"%.*s\" is neither shared nor private", WHY_SLICE(value));
    return KEY_BAD;
}

static enum key_result set_mode(const struct config_key *key, struct config *config, struct slice value, char *why,
                                size_t why_size)
{
    (void)key;
    config->is_shadow = slice_eq_nocase(value, SLICE("shadow"));
    if (config->is_shadow || slice_eq_nocase(value, SLICE("enforce")))
        return KEY_SET;
    why_set(why, why_size, "\"%.*s\" is neither enforce nor shadow", WHY_SLICE(value));
    return KEY_BAD;
}

static enum key_result set_limit_prefix(const struct config_key *key, struct config *config, struct slice value,
                                        char *why, size_t why_size)
{
    (void)key;
    if (value.len >= sizeof config->limit_prefix) {
        why_set(why, why_size, "at most %zu bytes", sizeof config->limit_prefix - 1);
        return KEY_BAD;
    }
    memcpy(config->limit_prefix, value.at, value.len);
    config->limit_prefix[value.len] = '\0';
    return KEY_SET;
}

static enum key_result set_when_down(const struct config_key *key, struct config *config, struct slice value, char *why,
                                     size_t why_size)
{
    static const char *const words[] = {
        [QUOTA_DOWN_ERROR] = "error", [QUOTA_DOWN_ALLOW] = "allow", [QUOTA_DOWN_DENY] = "deny"};
    (void)key;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (slice_eq_nocase(value, slice_str(words[i]))) {
            config->when_down = (enum quota_when_down)i;
            return KEY_SET;
        }
    why_set(why, why_size, "\"%.*s\" is neither error nor allow nor deny", WHY_SLICE(value));
    return KEY_BAD;
}

static enum key_result set_admin_socket(const struct config_key *key, struct config *config, struct slice value,
                                        char *why, size_t why_size)
{
    struct address address;
    char text[ADDRESS_TEXT];
    (void)key;
    if (value.at[0] != '/') {
        why_set(why, why_size, "\"%.*s\" is not a path: the path of a unix socket starts with /", WHY_SLICE(value));
        return KEY_BAD;
    }
    snprintf(text, sizeof text, "unix:%.*s", (int)value.len, value.at);
    if (!address_parse(&address, slice_str(text), false, why, why_size))
        return KEY_BAD;
    config->admin_socket = address.host;
    return KEY_SET;
}

static enum key_result set_admin_listen(const struct config_key *key, struct config *config, struct slice value,
                                        char *why, size_t why_size)
{
    (void)key;
    if (address_is_unix(value))
        why_set(why, why_size, "HTTP needs host:port");
    else if (address_parse_tcp(&config->admin_listen, value, true, why, why_size))
        return KEY_SET;
    return KEY_BAD;
}

static enum key_result set_identity(const struct config_key *key, struct config *config, struct slice value, char *why,
                                    size_t why_size)
{
    struct identity more;
    (void)key;
    if (!identity_parse(&more, value, why, why_size))
        return KEY_BAD;
    if (config->identity.count + more.count > IDENTITY_MAX_SOURCES) {
        why_set(why, why_size, "at most %d sources", IDENTITY_MAX_SOURCES);
        return KEY_BAD;
    }
    for (size_t i = 0; i < more.count; i++)
        config->identity.sources[config->identity.count++] = more.sources[i];
    return KEY_SET;
}

static bool is_acted_on(struct slice prefix)
{
    static const char *const words[] = {"ASK",      "BUSY",     "CLUSTERDOWN", "EXECABORT", "LOADING",  "MASTERDOWN",
                                        "MISCONF",  "MOVED",    "NOAUTH",      "NOPERM",    "NOSCRIPT", "OOM",
                                        "READONLY", "TRYAGAIN", "UNBLOCKED",   "WRONGPASS"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (slice_eq(prefix, slice_str(words[i])))
            return true;
    return false;
}

static enum key_result set_prefix(const struct config_key *key, struct config *config, struct slice value, char *why,
                                  size_t why_size)
{
    (void)key;
    bool is_good = value.len > 0 && value.len < sizeof config->error_prefix;
    for (size_t i = 0; i < value.len; i++)
        is_good = is_good && value.at[i] >= 'A' && value.at[i] <= 'Z';
    if (!is_good)
        why_set(why, why_size, "\"%.*s\" is not 1 to %zu capital letters", WHY_SLICE(value),
                sizeof config->error_prefix - 1);
    else if (is_acted_on(value))
        why_set(why, why_size,
                "clients act on %.*s by themselves (retry, reconnect, log in again): choose another word",
                WHY_SLICE(value));
    else {
        memcpy(config->error_prefix, value.at, value.len);
        config->error_prefix[value.len] = '\0';
        return KEY_SET;
    }
    return KEY_BAD;
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

static enum key_result set_log(const struct config_key *key, struct config *config, struct slice value, char *why,
                               size_t why_size)
{
    struct slice where;
    (void)key;
    while (split_next(&value, ',', &where))
        if (add_log(config, where, why, why_size) != KEY_SET)
            return KEY_BAD;
    return KEY_SET;
}

static enum key_result set_log_format(const struct config_key *key, struct config *config, struct slice value,
                                      char *why, size_t why_size)
{
    (void)key;
    for (int i = 0; i < LOG_FORMATS; i++)
        if (slice_eq_nocase(value, slice_str(log_format_name((enum log_format)i)))) {
            config->log_format = (enum log_format)i;
            return KEY_SET;
        }
    why_set(why, why_size, "\"%.*s\" is neither text nor logfmt nor json", WHY_SLICE(value));
    return KEY_BAD;
}

static enum key_result set_log_level(const struct config_key *key, struct config *config, struct slice value, char *why,
                                     size_t why_size)
{
    (void)key;
    for (int i = 0; i < LOG_LEVELS; i++)
        if (slice_eq_nocase(value, slice_str(log_level_name((enum log_level)i)))) {
            config->log_level = (enum log_level)i;
            return KEY_SET;
        }
    why_set(why, why_size, "\"%.*s\" is neither debug nor info nor warn nor error", WHY_SLICE(value));
    return KEY_BAD;
}

/* ---- TLS ---- */

static enum key_result set_text(const struct config_key *key, struct config *config, struct slice value, char *why,
                                size_t why_size)
{
    (void)why;
    (void)why_size;
    *(char **)member(key, config) = mem_strndup(value.at, value.len);
    return KEY_SET;
}

static enum key_result set_tls_auth(const struct config_key *key, struct config *config, struct slice value, char *why,
                                    size_t why_size)
{
    (void)key;
    return tls_auth_parse(value, &config->tls_settings.auth, why, why_size) ? KEY_SET : KEY_BAD;
}

static enum key_result set_tls_protocols(const struct config_key *key, struct config *config, struct slice value,
                                         char *why, size_t why_size)
{
    (void)key;
    return tls_protocols_parse(value, &config->tls_settings, why, why_size) ? KEY_SET : KEY_BAD;
}

static enum key_result set_tls_verify(const struct config_key *key, struct config *config, struct slice value,
                                      char *why, size_t why_size)
{
    (void)key;
    config->upstream_tls_settings.is_unverified = slice_eq_nocase(value, SLICE("no"));
    if (config->upstream_tls_settings.is_unverified || slice_eq_nocase(value, SLICE("yes")))
        return KEY_SET;
    why_set(why, why_size, "\"%.*s\" is neither yes nor no", WHY_SLICE(value));
    return KEY_BAD;
}

/* ---- the table ---- */

#define NUMBER(field, from, to) .offset = offsetof(struct config, field), .least = (from), .most = (to)
#define TEXT(field) .offset = offsetof(struct config, field)
#define STAYS .needs_restart = true
#define FILES .names_file = true

static const struct config_key keys[] = {
    {.name = "listen", .initial = "127.0.0.1:6380", .set = set_listen, .is_list = true, STAYS},
    {.name = "proxy-protocol-from", .set = set_proxies, .is_list = true},
    {.name = "upstream", .initial = "127.0.0.1:6379", .set = set_upstream, STAYS},
    {.name = "upstream-user", .set = set_user, STAYS},
    {.name = "upstream-password-file", .set = set_password_file, .names_file = true},
    {.name = "clients-as", .initial = "client", .set = set_clients_as, STAYS},
    {.name = "workers", .initial = "cores", .set = set_workers, NUMBER(workers, "1", "256"), STAYS},
    {.name = "lanes", .initial = "shared", .set = set_lanes, STAYS},
    {.name = "max-clients", .initial = "10000", .set = set_count, NUMBER(max_clients, "1", "1000000")},
    {.name = "max-subjects", .initial = "1000000", .set = set_subjects, NUMBER(max_subjects, "1", "100000000"), STAYS},
    {.name = "output-limit", .initial = "64mb", .set = set_bytes, NUMBER(output_limit_bytes, "64kb", "64gb")},
    {.name = "memory-limit", .initial = "0", .set = set_bytes_or_none, NUMBER(memory_limit_bytes, "1mb", "1024gb")},
    {.name = "connect-timeout", .initial = "1s", .set = set_time, NUMBER(connect_timeout_ns, "1ms", "1h"), STAYS},
    {.name = "upstream-timeout", .initial = "0", .set = set_timeout, NUMBER(upstream_timeout_ns, "10ms", "1h"), STAYS},
    {.name = "idle-timeout", .initial = "0", .set = set_timeout, NUMBER(idle_timeout_ns, "10ms", "365d")},
    {.name = "request-timeout", .initial = "60s", .set = set_timeout, NUMBER(request_timeout_ns, "10ms", "1d")},
    {.name = "handshake-timeout", .initial = "10s", .set = set_time, NUMBER(handshake_timeout_ns, "10ms", "1h")},
    {.name = "drain-timeout", .initial = "30s", .set = set_timeout, NUMBER(drain_timeout_ns, "1ms", "1h"), STAYS},
    {.name = "identity", .initial = "user, ip", .set = set_identity, .is_list = true},
    {.name = "error-prefix", .initial = "THROTTLED", .set = set_prefix},
    {.name = "mode", .initial = "enforce", .set = set_mode},
    {.name = "limit-prefix", .initial = "limit:", .set = set_limit_prefix},
    {.name = "slowlog-log-slower-than", .initial = "10ms", .set = set_slow, NUMBER(slow_ns, "1ms", "1d")},
    {.name = "slowlog-max-len", .initial = "128", .set = set_count, NUMBER(slow_entries, "0", "10000")},
    {.name = "limit-when-down", .initial = "error", .set = set_when_down},
    {.name = "log", .initial = "stderr", .set = set_log, .is_list = true, STAYS},
    {.name = "log-format", .initial = "text", .set = set_log_format},
    {.name = "log-level", .initial = "info", .set = set_log_level},
    {.name = "tls-cert-file", .set = set_text, TEXT(tls_settings.texts[TLS_CERT]), FILES},
    {.name = "tls-key-file", .set = set_text, TEXT(tls_settings.texts[TLS_KEY]), FILES},
    {.name = "tls-ca-cert-file", .set = set_text, TEXT(tls_settings.texts[TLS_CA]), FILES},
    {.name = "tls-auth-clients", .initial = "no", .set = set_tls_auth, FILES},
    {.name = "tls-protocols", .initial = "TLSv1.2, TLSv1.3", .set = set_tls_protocols, FILES},
    {.name = "tls-ciphers", .set = set_text, TEXT(tls_settings.texts[TLS_CIPHERS]), FILES},
    {.name = "tls-ciphersuites", .set = set_text, TEXT(tls_settings.texts[TLS_CIPHERSUITES]), FILES},
    {.name = "upstream-tls-ca-file", .set = set_text, TEXT(upstream_tls_settings.texts[TLS_CA]), FILES},
    {.name = "upstream-tls-cert-file", .set = set_text, TEXT(upstream_tls_settings.texts[TLS_CERT]), FILES},
    {.name = "upstream-tls-key-file", .set = set_text, TEXT(upstream_tls_settings.texts[TLS_KEY]), FILES},
    {.name = "upstream-tls-server-name", .set = set_text, TEXT(upstream_tls_settings.texts[TLS_SERVER_NAME]), FILES},
    {.name = "upstream-tls-verify", .initial = "yes", .set = set_tls_verify, FILES},
    {.name = "listen", .set = set_admin_listen, .is_admin = true, STAYS},
    {.name = "socket", .set = set_admin_socket, .is_admin = true, STAYS},
    /* not yet supported */
    {.name = "lane-stall"},
};

size_t config_keys_count(void)
{
    return COUNT_OF(keys);
}

const struct config_key *config_key_at(size_t i)
{
    return &keys[i];
}

enum section_kind config_key_section(const struct config_key *key)
{
    return key->is_admin ? SECTION_ADMIN : SECTION_WEIR;
}

size_t config_key_find(enum section_kind section, struct slice name)
{
    size_t i = 0;
    while (i < COUNT_OF(keys) &&
           !(config_key_section(&keys[i]) == section && slice_eq_nocase(name, slice_str(keys[i].name))))
        i++;
    return i;
}

const char *config_key_name(const struct config_key *key)
{
    return key->name;
}

bool config_key_is_list(const struct config_key *key)
{
    return key->is_list;
}

bool config_key_needs_restart(const struct config_key *key)
{
    return key->needs_restart;
}

bool config_key_is_live(const struct config_key *key)
{
    return !key->needs_restart && !key->names_file;
}

const char *config_key_default(const struct config_key *key)
{
    return key->initial;
}

enum key_result config_key_set(const struct config_key *key, struct config *config, struct slice value, char *why,
                               size_t why_size)
{
    if (!key->set)
        why_set(why, why_size, "not yet supported");
    else if (value.len == 0)
        why_set(why, why_size, "a value is missing");
    else
        return key->set(key, config, value, why, why_size);
    return KEY_BAD;
}

void config_key_set_default(const struct config_key *key, struct config *config)
{
    char why[CONFIG_WHY_ROOM];
    if (key->initial && key->set(key, config, slice_str(key->initial), why, sizeof why) != KEY_SET)
        abort(); /* the table itself is wrong */
}
