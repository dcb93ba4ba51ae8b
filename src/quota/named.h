/*
 * Named limits, for LIMIT CHECK: the sections [limit NAME] of the configuration, with counters and
 * with rates of single keys.
 *
 * One thread builds the set. A finished set is reference-counted, and immutable except for the
 * counters.
 */
#ifndef WEIR_QUOTA_NAMED_H
#define WEIR_QUOTA_NAMED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histo.h"
#include "base/shared_set.h"
#include "base/slice.h"
#include "quota/penalty.h"
#include "quota/rule.h"

#define NAMED_NAME_MAX 64
#define NAMED_MAX 10000

/* overrides of all limits together; chosen: with the longest keys and rates some 25 MB */
#define OVERRIDES_MAX 10000
#define OVERRIDE_RATES_MAX 1024 /* bytes of rates as written */

/* Rates that an operator has set for one key (LIMIT SET LIMIT ... FOR key); in a shared set. */
struct override {
    struct quota_rule rule;
    struct slice key;   /* as the client writes it; owned by the set */
    struct slice rates; /* as written; owned by the set */
    uint64_t until_ns;  /* monotonic; 0: until removed */
};

/* Returns how many bytes of a key a line of the log shows. */
static inline int override_shown(struct slice key)
{
    return (int)(key.len < 200 ? key.len : 200);
}

enum named_result { NAMED_PASSED, NAMED_LIMITED, NAMED_SHADOWED, NAMED_ERROR, NAMED_RESULTS };

/* Counters of the calls of one named limit, kept across reloads. Any thread adds and reads. */
struct named_counters {
    _Atomic unsigned holders;
    _Atomic uint64_t results[NAMED_RESULTS];
    struct histo times; /* how long calls without WAIT took; histo_add_shared */
    char name[NAMED_NAME_MAX + 1];
};

/*
 * How calls are answered while Redis is unavailable. LOCAL, for named limits only: weir decides
 * (local.h).
 */
enum quota_when_down { QUOTA_DOWN_ERROR, QUOTA_DOWN_ALLOW, QUOTA_DOWN_DENY, QUOTA_DOWN_LOCAL };

struct named_limit {
    _Atomic unsigned holders; /* reference count: sets that contain the limit */
    char *name;
    struct quota_rule rule;
    char *rates; /* as written in the configuration */
    struct named_counters *counters;
    bool has_when_down; /* when-down is given; else limit-when-down applies */
    enum quota_when_down when_down;
    /* has_when_error: when-error is given. is_down_by_error: its value is "down" */
    bool has_when_error, is_down_by_error;
    struct quota_penalty penalty; /* first_ms 0: none */
    char *penalty_text;           /* as written; NULL: none */
    bool is_shadow;               /* over = shadow: calls are counted, and all pass */
    unsigned given;               /* bits of the given settings */
    /* tz is given. rule.zone, which may be NULL (UTC), is the limit's own reference */
    bool has_zone;
    struct shared_set *overrides; /* rates of single keys; NULL: none */
};

struct named;

struct named *named_new(void);
struct named *named_get(struct named *named);
void named_put(struct named *named);

/*
 * Adds a line `key` = `text` of [limit NAME]. Several lines with one algorithm add their rates.
 * False: `why` says what is wrong.
 */
__attribute__((warn_unused_result)) bool named_add(struct named *named, struct slice name,
                                                   struct slice key, struct slice text, char *why,
                                                   size_t why_size);

/*
 * Finds a limit by name, in either case. NULL: none. While lines are still being added, the limit
 * may have no rate yet.
 */
const struct named_limit *named_find(const struct named *named, struct slice name);

/* Called after all lines: true if the limit is complete. False: `why` says what is wrong. */
__attribute__((warn_unused_result)) bool named_is_whole(const struct named_limit *limit, char *why,
                                                        size_t why_size);

/* The limits, in the order of the file. */
size_t named_count(const struct named *named);
const struct named_limit *named_at(const struct named *named, size_t i);

/*
 * Gives limits the counters of the limits with the same names in `before`. `named` is not shared
 * yet.
 */
void named_inherit(struct named *named, const struct named *before);

/* True if this is a key of [limit NAME] other than an algorithm. */
bool named_is_setting(struct slice key);

/*
 * Returns the rule for this key at this time: the key's override, or the limit's rule. The limit
 * keeps the reference on the zone.
 */
struct quota_rule named_rule(const struct named_limit *limit, struct slice key, uint64_t now_ns);

/* Returns a copy that shares the limits. named_override may change the copy until it is shared. */
struct named *named_copy(const struct named *named);

/*
 * Sets the overrides of the limit of that name, which exists. Takes over the reference on
 * `overrides`. `named` is not shared yet.
 */
void named_override(struct named *named, struct slice name, struct shared_set *overrides);

/*
 * Returns "error", "allow", "deny" or "local": the limit's setting, or `otherwise`, which is
 * limit-when-down.
 */
const char *named_when_down(const struct named_limit *limit, enum quota_when_down otherwise);

/*
 * Returns "error" or "down": the limit's setting, or `otherwise`, which is limit-when-error = down.
 */
const char *named_when_error(const struct named_limit *limit, bool otherwise);

/* Returns the most similar name of a limit, for "did you mean"; empty: none is similar. */
struct slice named_near(const struct named *named, struct slice name);

/* ---- counters ---- */

struct named_counters *named_counters_get(struct named_counters *counters);
void named_counters_put(struct named_counters *counters); /* NULL: does nothing */

/* Counts an answered call that took `ns`; 0: its time is not counted. */
void named_counters_add(struct named_counters *counters, enum named_result result, uint64_t ns);

/* Returns the sum of all results. */
uint64_t named_counters_asked(const struct named_counters *counters);

/* ---- overrides: expired ones are not found, and are left out of the next set ---- */

/*
 * overrides_with returns a set with the entries of `before` and a copy of `one`, which replaces the
 * key's entry. overrides_without returns a set without that key.
 */
struct shared_set *overrides_with(struct shared_set *before, const struct override *one,
                                  uint64_t now_ns);
struct shared_set *overrides_without(struct shared_set *before, struct slice key, uint64_t now_ns);

/* NULL: the key has no override, or the override has expired. */
const struct override *overrides_find(const struct shared_set *overrides, struct slice key,
                                      uint64_t now_ns);

/* The i-th override in the order of keys, expired ones included; i < shared_set_count. */
const struct override *overrides_at(const struct shared_set *overrides, size_t i);

bool override_is_over(const struct override *override, uint64_t now_ns);

#endif
