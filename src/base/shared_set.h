/*
 * A sorted set of named entries that is never changed: a change makes another one, which shares with it what stays.
 *
 * Entries stand in chunks, and a change copies one chunk and the list of chunks, some hundred pointers of 10,000
 * entries.
 * Sets and entries are reference-counted; any thread may read them. An entry may have an end, at which it stays in the
 * set until one is made without it.
 */
#ifndef WEIR_BASE_SHARED_SET_H
#define WEIR_BASE_SHARED_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* The first member of what is in a set, which is one piece of heap memory. */
struct shared_entry {
    _Atomic unsigned holders;
    struct slice name; /* in the same memory */
    uint64_t until_ns; /* 0: without an end */
};

/* NULL is the empty set. */
struct shared_set;

/* One holder: the set that it is put into. */
void shared_entry_init(struct shared_entry *entry, struct slice name, uint64_t until_ns);

static inline bool shared_entry_is_over(const struct shared_entry *entry, uint64_t now_ns)
{
    return entry->until_ns > 0 && entry->until_ns <= now_ns;
}

/* What is in `before`, with `entry` in the place of the one of its name, or without that name. */
struct shared_set *shared_set_with(const struct shared_set *before, struct shared_entry *entry);
struct shared_set *shared_set_without(const struct shared_set *before, struct slice name);

/* Those whose time is not over; with `only_timed` only those that have an end. */
struct shared_set *shared_set_living(const struct shared_set *before, bool only_timed, uint64_t now_ns);

struct shared_set *shared_set_get(struct shared_set *set);
void shared_set_put(struct shared_set *set);

/* NULL: there is none of that name. */
const struct shared_entry *shared_set_find(const struct shared_set *set, struct slice name);

/* In the order of their names, short ones first; i < shared_set_count. */
size_t shared_set_count(const struct shared_set *set);
const struct shared_entry *shared_set_at(const struct shared_set *set, size_t i);

/* How many are not over. */
size_t shared_set_count_living(const struct shared_set *set, uint64_t now_ns);

/* When the first of them ends; 0: none does. */
uint64_t shared_set_next_end(const struct shared_set *set);

#endif
