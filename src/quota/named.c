#include "quota/named.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/slice.h"
#include "base/why.h"
#include "base/zone.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct named {
    _Atomic unsigned holders;
    /* each limit is shared with the copies of the set in which the limit is unchanged */
    struct named_limit **limits;
    size_t n, room;
};

/* ---- counters ---- */

/* Returns one reference. */
static struct named_counters *named_counters_new(struct slice name)
{
    struct named_counters *counters = mem_zalloc(1, sizeof *counters);
    atomic_init(&counters->holders, 1);
    snprintf(counters->name, sizeof counters->name, "%.*s", (int)name.len, name.at);
    return counters;
}

struct named_counters *named_counters_get(struct named_counters *counters)
{
    atomic_fetch_add_explicit(&counters->holders, 1, memory_order_relaxed);
    return counters;
}

void named_counters_put(struct named_counters *counters)
{
    if (counters != NULL &&
        atomic_fetch_sub_explicit(&counters->holders, 1, memory_order_acq_rel) == 1)
        free(counters);
}

void named_counters_add(struct named_counters *counters, enum named_result result, uint64_t ns)
{
    atomic_fetch_add_explicit(&counters->results[result], 1, memory_order_relaxed);
    if (ns > 0)
        histo_add_shared(&counters->times, ns);
}

uint64_t named_counters_asked(const struct named_counters *counters)
{
    uint64_t sum = 0;
    for (int r = 0; r < NAMED_RESULTS; r++)
        sum += count_read(&counters->results[r]);
    return sum;
}

/* ---- overrides ---- */

/* An entry of a set of overrides. */
struct held {
    struct shared_entry entry;
    struct override override;
    char text[]; /* key and rates */
};

static const struct override *override_of(const struct shared_entry *entry)
{
    return &container_of(entry, struct held, entry)->override;
}

static struct held *held_new(const struct override *one)
{
    struct held *held = mem_alloc(sizeof *held + one->key.len + one->rates.len);
    held->override = *one;
    held->override.key.at = memcpy(held->text, one->key.at, one->key.len);
    held->override.rates.at = memcpy(held->text + one->key.len, one->rates.at, one->rates.len);
    shared_entry_init(&held->entry, held->override.key, one->until_ns);
    return held;
}

bool override_is_over(const struct override *override, uint64_t now_ns)
{
    return override->until_ns > 0 && override->until_ns <= now_ns;
}

/* Returns the overrides without the expired ones; one reference. */
static struct shared_set *living(struct shared_set *overrides, uint64_t now_ns)
{
    uint64_t end_ns = shared_set_next_end(overrides);
    return end_ns > 0 && end_ns <= now_ns ? shared_set_living(overrides, false, now_ns)
                                          : shared_set_get(overrides);
}

struct shared_set *overrides_with(struct shared_set *before, const struct override *one,
                                  uint64_t now_ns)
{
    struct shared_set *others = living(before, now_ns);
    struct shared_set *next = shared_set_with(others, &held_new(one)->entry);
    shared_set_put(others);
    return next;
}

struct shared_set *overrides_without(struct shared_set *before, struct slice key, uint64_t now_ns)
{
    struct shared_set *others = living(before, now_ns);
    struct shared_set *next = shared_set_without(others, key);
    shared_set_put(others);
    return next;
}

const struct override *overrides_find(const struct shared_set *overrides, struct slice key,
                                      uint64_t now_ns)
{
    const struct shared_entry *found = shared_set_find(overrides, key);
    return found != NULL && !shared_entry_is_over(found, now_ns) ? override_of(found) : NULL;
}

const struct override *overrides_at(const struct shared_set *overrides, size_t i)
{
    return override_of(shared_set_at(overrides, i));
}

/* ---- one limit ---- */

static struct named_limit *limit_get(struct named_limit *limit)
{
    atomic_fetch_add_explicit(&limit->holders, 1, memory_order_relaxed);
    return limit;
}

static void limit_fini(struct named_limit *limit)
{
    free(limit->name);
    free(limit->rates);
    free(limit->penalty_text);
    named_counters_put(limit->counters);
    shared_set_put(limit->overrides);
    zone_put(limit->rule.zone);
}

static void limit_put(struct named_limit *limit)
{
    if (atomic_fetch_sub_explicit(&limit->holders, 1, memory_order_acq_rel) > 1)
        return;
    limit_fini(limit);
    free(limit);
}

/* Returns one reference. */
static struct named_limit *limit_copy(const struct named_limit *limit)
{
    struct named_limit *copy = mem_alloc(sizeof *copy);
    *copy = *limit;
    atomic_init(&copy->holders, 1);
    copy->name = mem_strndup(limit->name, strlen(limit->name));
    copy->rates = mem_strndup(limit->rates, strlen(limit->rates));
    if (limit->penalty_text != NULL)
        copy->penalty_text = mem_strndup(limit->penalty_text, strlen(limit->penalty_text));
    copy->counters = named_counters_get(limit->counters);
    copy->overrides = shared_set_get(limit->overrides);
    (void)zone_get(limit->rule.zone);
    return copy;
}

/* ---- the set of limits ---- */

struct named *named_new(void)
{
    struct named *named = mem_zalloc(1, sizeof *named);
    atomic_init(&named->holders, 1);
    return named;
}

struct named *named_get(struct named *named)
{
    atomic_fetch_add_explicit(&named->holders, 1, memory_order_relaxed);
    return named;
}

void named_put(struct named *named)
{
    if (atomic_fetch_sub_explicit(&named->holders, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < named->n; i++)
        limit_put(named->limits[i]);
    free(named->limits);
    free(named);
}

static struct named_limit *find(const struct named *named, struct slice name)
{
    for (size_t i = 0; i < named->n; i++)
        if (slice_eq_nocase(name, slice_str(named->limits[i]->name)))
            return named->limits[i];
    return NULL;
}

const struct named_limit *named_find(const struct named *named, struct slice name)
{
    return find(named, name);
}

/* ---- settings: keys of a section that are no algorithm ---- */

static const char *const down_words[] = {[QUOTA_DOWN_ERROR] = "error",
                                         [QUOTA_DOWN_ALLOW] = "allow",
                                         [QUOTA_DOWN_DENY] = "deny",
                                         [QUOTA_DOWN_LOCAL] = "local"};

const char *named_when_down(const struct named_limit *limit, enum quota_when_down otherwise)
{
    return down_words[limit->has_when_down ? limit->when_down : otherwise];
}

static bool parse_when_down(struct slice text, enum quota_when_down *when_down)
{
    for (size_t i = 0; i < COUNT_OF(down_words); i++)
        if (slice_eq_nocase(text, slice_str(down_words[i]))) {
            *when_down = (enum quota_when_down)i;
            return true;
        }
    return false;
}

static bool set_when_down(struct named_limit *limit, struct slice text, char *why, size_t why_size)
{
    limit->has_when_down = parse_when_down(text, &limit->when_down);
    return limit->has_when_down ||
           why_set(why, why_size, "\"%.*s\" is neither error nor allow nor deny nor local",
                   WHY_SLICE(text));
}

const char *named_when_error(const struct named_limit *limit, bool otherwise)
{
    return (limit->has_when_error ? limit->is_down_by_error : otherwise) ? "down" : "error";
}

static bool set_when_error(struct named_limit *limit, struct slice text, char *why, size_t why_size)
{
    limit->is_down_by_error = slice_eq_nocase(text, SLICE("down"));
    limit->has_when_error = limit->is_down_by_error || slice_eq_nocase(text, SLICE("error"));
    return limit->has_when_error ||
           why_set(why, why_size, "\"%.*s\" is neither error nor down", WHY_SLICE(text));
}

static bool set_over(struct named_limit *limit, struct slice text, char *why, size_t why_size)
{
    limit->is_shadow = slice_eq_nocase(text, SLICE("shadow"));
    return limit->is_shadow || slice_eq_nocase(text, SLICE("refuse")) ||
           why_set(why, why_size, "\"%.*s\" is neither refuse nor shadow", WHY_SLICE(text));
}

static bool set_zone(struct named_limit *limit, struct slice text, char *why, size_t why_size)
{
    limit->has_zone = slice_eq(text, SLICE("UTC"));
    if (limit->has_zone)
        return true;
    limit->rule.zone = zone_load(text, why, why_size);
    limit->rule.zone_id = zone_id(limit->rule.zone);
    limit->has_zone = limit->rule.zone != NULL;
    return limit->has_zone;
}

static bool set_penalty(struct named_limit *limit, struct slice text, char *why, size_t why_size)
{
    text = split_trim(text);
    if (!penalty_parse(text, &limit->penalty, why, why_size))
        return false;
    limit->penalty_text = mem_strndup(text.at, text.len);
    return true;
}

static const struct setting {
    const char *name;
    bool (*set)(struct named_limit *limit, struct slice text, char *why, size_t why_size);
} settings[] = {
    {"when-down", set_when_down}, {"when-error", set_when_error},
    {"over", set_over},           {"tz", set_zone},
    {"penalty", set_penalty},
};

static const struct setting *find_setting(struct slice key)
{
    for (size_t i = 0; i < COUNT_OF(settings); i++)
        if (slice_eq_nocase(key, slice_str(settings[i].name)))
            return &settings[i];
    return NULL;
}

bool named_is_setting(struct slice key)
{
    return find_setting(key) != NULL;
}

static struct slice setting_name(const void *arg, size_t i)
{
    (void)arg;
    return slice_str(settings[i].name);
}

/* ---- lines of the configuration ---- */

static void add_rates(struct named_limit *limit, struct slice text)
{
    size_t len = limit->rates != NULL ? strlen(limit->rates) : 0;
    size_t room = len + sizeof ", " + text.len;
    limit->rates = mem_realloc(limit->rates, room, 1);
    snprintf(limit->rates + len, room - len, "%s%.*s", len > 0 ? ", " : "", (int)text.len, text.at);
}

static bool set_line(struct named_limit *limit, struct slice key, struct slice text, char *why,
                     size_t why_size)
{
    const struct setting *setting = find_setting(key);
    if (setting != NULL) {
        unsigned bit = 1U << (setting - settings);
        bool is_again = (limit->given & bit) != 0;
        limit->given |= bit;
        return is_again ? why_set(why, why_size, "given twice")
                        : setting->set(limit, text, why, why_size);
    }
    struct slice near = near_name(key, COUNT_OF(settings), setting_name, NULL);
    if (near.len > 0 && quota_named_kind(key) == QUOTA_KINDS)
        return why_set(why, why_size, "unknown key (did you mean %.*s?)", WHY_SLICE(near));
    if (!quota_limit_parse(key, text, &limit->rule, why, why_size))
        return false;
    add_rates(limit, split_trim(text));
    return true;
}

static bool named_is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.at[i] <= ' ' || name.at[i] > '~')
            return false;
    return name.len > 0 && name.len <= NAMED_NAME_MAX;
}

bool named_add(struct named *named, struct slice name, struct slice key, struct slice text,
               char *why, size_t why_size)
{
    struct named_limit *known = find(named, name);
    if (known != NULL)
        return set_line(known, key, text, why, why_size);
    struct named_limit limit = {0};
    if (!named_is_name(name))
        return why_set(why, why_size,
                       "a limit is named with 1 to %d printable characters without blanks",
                       NAMED_NAME_MAX);
    if (named->n == NAMED_MAX)
        return why_set(why, why_size, "too many named limits: at most %d", NAMED_MAX);
    if (!set_line(&limit, key, text, why, why_size))
        return false;
    limit.name = mem_strndup(name.at, name.len);
    limit.counters = named_counters_new(name);
    if (named->n == named->room) {
        named->room = named->room > 0 ? 2 * named->room : 1;
        named->limits = mem_realloc(named->limits, named->room, sizeof(struct named_limit *));
    }
    named->limits[named->n] = mem_alloc(sizeof limit);
    *named->limits[named->n] = limit;
    atomic_init(&named->limits[named->n++]->holders, 1);
    return true;
}

bool named_is_whole(const struct named_limit *limit, char *why, size_t why_size)
{
    if (limit->rule.n_rates == 0)
        return why_set(why, why_size, "the limit has no rate: give it one, like sliding = 5/60s");
    return !limit->has_zone || quota_has_calendar(&limit->rule) ||
           why_set(why, why_size, "tz needs a rate by the calendar, like fixed = 1000/month");
}

/* ---- the whole set ---- */

size_t named_count(const struct named *named)
{
    return named->n;
}

const struct named_limit *named_at(const struct named *named, size_t i)
{
    return named->limits[i];
}

void named_inherit(struct named *named, const struct named *before)
{
    for (size_t i = 0; i < named->n; i++) {
        const struct named_limit *same = find(before, slice_str(named->limits[i]->name));
        if (same == NULL)
            continue;
        named_counters_put(named->limits[i]->counters);
        named->limits[i]->counters = named_counters_get(same->counters);
    }
}

struct quota_rule named_rule(const struct named_limit *limit, struct slice key, uint64_t now_ns)
{
    const struct override *own =
        limit->overrides != NULL ? overrides_find(limit->overrides, key, now_ns) : NULL;
    struct quota_rule rule = own != NULL ? own->rule : limit->rule;
    rule.zone = limit->rule.zone;
    rule.zone_id = limit->rule.zone_id;
    return rule;
}

struct named *named_copy(const struct named *named)
{
    struct named *copy = named_new();
    copy->limits = mem_alloc(named->n * sizeof(struct named_limit *));
    copy->n = copy->room = named->n;
    for (size_t i = 0; i < named->n; i++)
        copy->limits[i] = limit_get(named->limits[i]);
    return copy;
}

/*
 * Returns the limit of that name, which exists, to be changed in this set alone. A limit that other
 * sets share is copied first.
 */
static struct named_limit *own_limit(struct named *named, struct slice name)
{
    size_t i = 0;
    while (!slice_eq_nocase(name, slice_str(named->limits[i]->name)))
        i++;
    struct named_limit *shared = named->limits[i];
    if (atomic_load_explicit(&shared->holders, memory_order_acquire) > 1) {
        named->limits[i] = limit_copy(shared);
        limit_put(shared);
    }
    return named->limits[i];
}

void named_override(struct named *named, struct slice name, struct shared_set *overrides)
{
    struct named_limit *limit = own_limit(named, name);
    shared_set_put(limit->overrides);
    limit->overrides = overrides;
}

static struct slice named_name_at(const void *arg, size_t i)
{
    const struct named *named = arg;
    return slice_str(named->limits[i]->name);
}

struct slice named_near(const struct named *named, struct slice name)
{
    return near_name(name, named->n, named_name_at, named);
}
