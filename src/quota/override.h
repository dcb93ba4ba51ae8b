/*
 * Overrides: rates that an operator has given single keys of a named limit (LIMIT SET LIMIT ... FOR key), for a time or
 * until they are removed.
 *
 * A set is immutable and reference-counted; any thread may read it. A change makes a new set, which shares unchanged
 * entries with the old one. Expired entries are not found, and are left out of the next set.
 */
#ifndef WEIR_QUOTA_OVERRIDE_H
#define WEIR_QUOTA_OVERRIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* NULL is the empty set. */
struct overrides;

/* A set of what is in `before`, with a copy of `one` replacing what its key had. */
struct overrides *overrides_with(const struct overrides *before, const struct override *one, uint64_t now_ns);

/* The same without that key; only those with an end (until_ns). */
struct overrides *overrides_without(const struct overrides *before, struct slice key, uint64_t now_ns);
struct overrides *overrides_timed(const struct overrides *before, uint64_t now_ns);

struct overrides *overrides_get(struct overrides *overrides);
void overrides_put(struct overrides *overrides);

/* NULL: the key has none, or it has expired. */
const struct override *overrides_find(const struct overrides *overrides, struct slice key, uint64_t now_ns);

/* In the order of their keys, expired ones included. */
size_t overrides_count(const struct overrides *overrides);
const struct override *overrides_at(const struct overrides *overrides, size_t i);

bool override_is_over(const struct override *override, uint64_t now_ns);

/* How many have not expired. */
size_t overrides_living(const struct overrides *overrides, uint64_t now_ns);

#endif
