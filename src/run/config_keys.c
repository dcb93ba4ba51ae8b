/*
 * The table of the keys of [weir], and a setter for each kind of value.
 *
 * Defaults and bounds are written as values in the file would be, and read the same way.
 */
#include "run/config_keys.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/split.h"
#include "base/why.h"
#include "limit/rate.h"
#include "run/address.h"
#include "run/secret.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define WORKERS_MAX 256
#define LISTENS_MAX 64
#define USER_MAX 255

struct config_key {
    const char *name;
    const char *initial; /* NULL: none */
    /* NULL: the key is known, and not yet supported */
    enum key_result (*set)(const struct config_key *key, struct config *config, struct slice value, char *why,
                           size_t why_size);
    size_t offset; /* of a number in struct config */
    const char *least, *most;
    bool is_list;
};

/* ---- numbers, bytes, times ---- */

typedef bool (*parse_number)(struct slice text, uint64_t *number, char *why, size_t why_size);

/* "65536", "64kb", "64mb", "1gb": by 1024. */
static bool parse_bytes(struct slice text, uint64_t *bytes, char *why, size_t why_size)
{
    static const struct {
        const char *name;
        unsigned shift;
    } units[] = {{"", 0}, {"kb", 10}, {"mb", 20}, {"gb", 30}};
    size_t digits = 0;
    while (digits < text.len && text.at[digits] >= '0' && text.at[digits] <= '9')
        digits++;
    struct slice unit = text;
    struct slice number = split_take(&unit, digits);
    int64_t parsed;
    for (size_t i = 0; i < COUNT_OF(units); i++)
        if (slice_eq_nocase(unit, slice_str(units[i].name)) && num_parse(number, &parsed) &&
            parsed <= INT64_MAX >> units[i].shift) {
            *bytes = (uint64_t)parsed << units[i].shift;
            return true;
        }
    return why_set(why, why_size, "\"%.*s\" is not a size: write a number of bytes, or one with kb, mb or gb (64mb)",
                   WHY_SLICE(text));
}

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
    if (!parse_bounded(key, parse_bytes, value, &bytes, why, why_size))
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

static enum key_result add_listen(struct config *config, struct slice text, char *why, size_t why_size)
{
    struct address address;
    if (config->n_listens == LISTENS_MAX) {
        why_set(why, why_size, "at most %d addresses", LISTENS_MAX);
        return KEY_BAD;
    }
    if (!address_parse(&address, text, true, why, why_size))
        return KEY_BAD;
    for (size_t i = 0; i < config->n_listens; i++)
        if (address_eq(&config->listens[i], &address) && (address.port || address.is_unix)) {
            address_fini(&address);
            why_set(why, why_size, "%.*s is given twice", WHY_SLICE(text));
            return KEY_BAD;
        }
    config->listens = mem_realloc(config->listens, config->n_listens + 1, sizeof address);
    config->listens[config->n_listens++] = address;
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

/* ---- the table ---- */

#define NUMBER(field, from, to) .offset = offsetof(struct config, field), .least = (from), .most = (to)

static const struct config_key keys[] = {
    {.name = "listen", .initial = "127.0.0.1:6380", .set = set_listen, .is_list = true},
    {.name = "upstream", .initial = "127.0.0.1:6379", .set = set_upstream},
    {.name = "upstream-user", .set = set_user},
    {.name = "upstream-password-file", .set = set_password_file},
    {.name = "workers", .initial = "cores", .set = set_workers, NUMBER(workers, "1", "256")},
    {.name = "lanes", .initial = "shared", .set = set_lanes},
    {.name = "max-clients", .initial = "10000", .set = set_count, NUMBER(max_clients, "1", "1000000")},
    {.name = "max-subjects", .initial = "1000000", .set = set_subjects, NUMBER(max_subjects, "1", "100000000")},
    {.name = "output-limit", .initial = "64mb", .set = set_bytes, NUMBER(output_limit_bytes, "64kb", "64gb")},
    {.name = "connect-timeout", .initial = "1s", .set = set_time, NUMBER(connect_timeout_ns, "1ms", "1h")},
    {.name = "upstream-timeout", .initial = "0", .set = set_timeout, NUMBER(upstream_timeout_ns, "10ms", "1h")},
    {.name = "identity", .initial = "user, ip", .set = set_identity, .is_list = true},
    {.name = "error-prefix", .initial = "THROTTLED", .set = set_prefix},
    /* not yet supported */
    {.name = "auth-failures"},
    {.name = "clients-as"},
    {.name = "drain-timeout"},
    {.name = "idle-timeout"},
    {.name = "lane-stall"},
    {.name = "limit-prefix"},
    {.name = "limit-when-down"},
    {.name = "mode"},
    {.name = "request-timeout"},
};

size_t config_keys_count(void)
{
    return COUNT_OF(keys);
}

const struct config_key *config_key_at(size_t i)
{
    return &keys[i];
}

size_t config_key_find(struct slice name)
{
    size_t i = 0;
    while (i < COUNT_OF(keys) && !slice_eq_nocase(name, slice_str(keys[i].name)))
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
