/*
 * Overrides: rates that an operator has given single keys of a named limit (LIMIT SET LIMIT ... FOR key), for a time or
 * until they are removed; in a shared set.
 *
 * Expired entries are not found, and are left out of the next set.
 */
#ifndef WEIR_QUOTA_OVERRIDE_H
#define WEIR_QUOTA_OVERRIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/shared_set.h"
#include "base/slice.h"
#include "quota/rule.h"

#define OVERRIDES_MAX 10000     /* for all limits together: with the longest keys and rates some 25 MB */
#define OVERRIDE_RATES_MAX 1024 /* bytes of rates as written */

struct override {
    struct quota_rule rule;
    struct slice key;   /* as the client writes it; owned by the set */
    struct slice rates; /* as written; owned by the set */
    uint64_t until_ns;  /* monotonic; 0: until it is removed */
};

/* A set of what is in `before`, with a copy of `one` replacing what its key had; or without that key. */
struct shared_set *overrides_with(struct shared_set *before, const struct override *one, uint64_t now_ns);
struct shared_set *overrides_without(struct shared_set *before, struct slice key, uint64_t now_ns);

/* NULL: the key has none, or it has expired. */
const struct override *overrides_find(const struct shared_set *overrides, struct slice key, uint64_t now_ns);

/* In the order of their keys, expired ones included; i < shared_set_count. */
const struct override *overrides_at(const struct shared_set *overrides, size_t i);

bool override_is_over(const struct override *override, uint64_t now_ns);

#endif
