/*
 * An immutable sorted set of named entries. A change makes a new set, which shares the unchanged
 * parts.
 *
 * Entries are in chunks. A change copies one chunk and the list of chunks, some hundred pointers
 * for 10,000 entries. Sets and entries are reference-counted; any thread may read them. A set keeps
 * entries that have ended; shared_set_living makes a set without ended entries.
 */
#ifndef WEIR_BASE_SHARED_SET_H
#define WEIR_BASE_SHARED_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* The first member of each entry of a set. An entry is one piece of heap memory. */
struct shared_entry {
    _Atomic unsigned holders;
    struct slice name; /* points into the memory of the entry */
    uint64_t until_ns; /* end of the entry in ns; 0: no end */
};

/* NULL is the empty set. */
struct shared_set;

/*
 * Initialises an entry with one reference. The set that gets the entry takes this reference over.
 */
void shared_entry_init(struct shared_entry *entry, struct slice name, uint64_t until_ns);

static inline bool shared_entry_is_over(const struct shared_entry *entry, uint64_t now_ns)
{
    return entry->until_ns > 0 && entry->until_ns <= now_ns;
}

/*
 * shared_set_with returns a set of the entries of `before` and of `entry`, which replaces an entry
 * of equal name. shared_set_without returns a set without the entry called `name`.
 */
struct shared_set *shared_set_with(const struct shared_set *before, struct shared_entry *entry);
struct shared_set *shared_set_without(const struct shared_set *before, struct slice name);

/*
 * Returns a set of the entries that have not ended. With only_timed the set has only entries with
 * an end.
 */
struct shared_set *shared_set_living(const struct shared_set *before, bool only_timed,
                                     uint64_t now_ns);

struct shared_set *shared_set_get(struct shared_set *set);
void shared_set_put(struct shared_set *set);

/* Returns the entry called `name`, NULL if there is none. */
const struct shared_entry *shared_set_find(const struct shared_set *set, struct slice name);

/* Entries are ordered by name, short names first. For shared_set_at, i < shared_set_count. */
size_t shared_set_count(const struct shared_set *set);
const struct shared_entry *shared_set_at(const struct shared_set *set, size_t i);

/* Returns how many entries have not ended. */
size_t shared_set_count_living(const struct shared_set *set, uint64_t now_ns);

/* Returns when the first entry ends; 0: no entry has an end. */
uint64_t shared_set_next_end(const struct shared_set *set);

#endif
