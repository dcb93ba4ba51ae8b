/*
 * Rates of single keys: what an operator has given some keys of a named limit in the place of its own, each for a time or
 * until it is taken away.
 *
 * A set is built by one thread, then only read, by any; counted. A change makes another set, which shares with the one before
 * what stays. What is over is not found any more, and is not in the next set.
 */
#ifndef WEIR_QUOTA_OVERRIDE_H
#define WEIR_QUOTA_OVERRIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/rule.h"

#define OVERRIDES_MAX 10000     /* of all limits: with the longest keys and rates some 25 MB */
#define OVERRIDE_RATES_MAX 1024 /* bytes of rates, as they are written */

struct override {
    struct quota_rule rule;
    struct slice key;   /* as the client writes it; owned */
    struct slice rates; /* as they are written; owned */
    uint64_t until_ns;  /* monotonic; 0: until it is taken away */
};

/* NULL is the empty set. */
struct overrides;

/* What is in `before` now, and `one`, copied, in the place of what its key had. */
struct overrides *overrides_with(const struct overrides *before, const struct override *one, uint64_t now_ns);

/* The same without that key; without those that last until they are taken away. */
struct overrides *overrides_without(const struct overrides *before, struct slice key, uint64_t now_ns);
struct overrides *overrides_timed(const struct overrides *before, uint64_t now_ns);

struct overrides *overrides_get(struct overrides *overrides);
void overrides_put(struct overrides *overrides);

/* NULL: the key has none, or they are over. */
const struct override *overrides_find(const struct overrides *overrides, struct slice key, uint64_t now_ns);

/* By key, those that are over included. */
size_t overrides_count(const struct overrides *overrides);
const struct override *overrides_at(const struct overrides *overrides, size_t i);

bool override_is_over(const struct override *override, uint64_t now_ns);

/* How many are not over. */
size_t overrides_living(const struct overrides *overrides, uint64_t now_ns);

#endif
