/* Sets are sorted by key: they are read far more often than they are made. */
#include "quota/override.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* What is shared by the sets that have it. */
struct held {
    _Atomic unsigned holders;
    struct override override;
    char text[]; /* key and rates */
};

struct overrides {
    _Atomic unsigned holders;
    size_t n;
    struct held *at[];
};

/* ---- one ---- */

static struct held *held_new(const struct override *one)
{
    struct held *held = mem_alloc(sizeof *held + one->key.len + one->rates.len);
    atomic_init(&held->holders, 1);
    held->override = *one;
    held->override.key.at = memcpy(held->text, one->key.at, one->key.len);
    held->override.rates.at = memcpy(held->text + one->key.len, one->rates.at, one->rates.len);
    return held;
}

static struct held *held_get(struct held *held)
{
    atomic_fetch_add_explicit(&held->holders, 1, memory_order_relaxed);
    return held;
}

static void held_put(struct held *held)
{
    if (atomic_fetch_sub_explicit(&held->holders, 1, memory_order_acq_rel) == 1)
        free(held);
}

bool override_is_over(const struct override *override, uint64_t now_ns)
{
    return override->until_ns > 0 && override->until_ns <= now_ns;
}

/* ---- sets ---- */

/* Shorter keys first. */
static int compare(struct slice a, struct slice b)
{
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return a.len > 0 ? memcmp(a.at, b.at, a.len) : 0;
}

/* The first that is not before `key`. */
static size_t index_of(const struct overrides *overrides, struct slice key)
{
    size_t low = 0, high = overrides_count(overrides);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(overrides->at[middle]->override.key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * Copy the entries of `before` that have not expired, without this key's or without those that have no end; with room
 * for one more.
 */
static struct overrides *copy(const struct overrides *before, struct slice key, bool only_timed, uint64_t now_ns)
{
    size_t count = overrides_count(before);
    struct overrides *next = mem_alloc(sizeof *next + (count + 1) * sizeof next->at[0]);
    atomic_init(&next->holders, 1);
    next->n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct override *one = &before->at[i]->override;
        if (!override_is_over(one, now_ns) && !(key.at != NULL && slice_eq(one->key, key)) &&
            !(only_timed && one->until_ns == 0))
            next->at[next->n++] = held_get(before->at[i]);
    }
    return next;
}

static struct overrides *or_empty(struct overrides *overrides)
{
    if (overrides->n > 0)
        return overrides;
    free(overrides);
    return NULL;
}

struct overrides *overrides_with(const struct overrides *before, const struct override *one, uint64_t now_ns)
{
    struct overrides *next = copy(before, one->key, false, now_ns);
    size_t index = index_of(next, one->key);
    memmove(next->at + index + 1, next->at + index, (next->n - index) * sizeof next->at[0]);
    next->at[index] = held_new(one);
    next->n++;
    return next;
}

struct overrides *overrides_without(const struct overrides *before, struct slice key, uint64_t now_ns)
{
    return or_empty(copy(before, key, false, now_ns));
}

struct overrides *overrides_timed(const struct overrides *before, uint64_t now_ns)
{
    return or_empty(copy(before, slice_of(NULL, 0), true, now_ns));
}

struct overrides *overrides_get(struct overrides *overrides)
{
    if (overrides != NULL)
        atomic_fetch_add_explicit(&overrides->holders, 1, memory_order_relaxed);
    return overrides;
}

void overrides_put(struct overrides *overrides)
{
    if (overrides == NULL || atomic_fetch_sub_explicit(&overrides->holders, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < overrides->n; i++)
        held_put(overrides->at[i]);
    free(overrides);
}

/* ---- looking ---- */

const struct override *overrides_find(const struct overrides *overrides, struct slice key, uint64_t now_ns)
{
    size_t index = index_of(overrides, key);
    if (index == overrides_count(overrides))
        return NULL;
    const struct override *found = &overrides->at[index]->override;
    return slice_eq(found->key, key) && !override_is_over(found, now_ns) ? found : NULL;
}

size_t overrides_count(const struct overrides *overrides)
{
    return overrides != NULL ? overrides->n : 0;
}

const struct override *overrides_at(const struct overrides *overrides, size_t i)
{
    return &overrides->at[i]->override;
}

size_t overrides_living(const struct overrides *overrides, uint64_t now_ns)
{
    size_t n = 0;
    for (size_t i = 0; i < overrides_count(overrides); i++)
        n += !override_is_over(overrides_at(overrides, i), now_ns);
    return n;
}
