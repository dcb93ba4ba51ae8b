/*
 * A hash table from names to pointers. Names are copied; pointers belong to the caller.
 *
 * The table grows and never shrinks, so an interrupted walk over bucket numbers still meets all
 * entries that stay.
 */
#ifndef WEIR_SIM_REDIS_DICT_H
#define WEIR_SIM_REDIS_DICT_H

#include <stdint.h>

#include "base/slice.h"

struct dict_entry {
    struct dict_entry *next; /* in its bucket */
    void *value;
    uint64_t hash;
    size_t len;
    char name[];
};

struct dict {
    struct dict_entry **buckets; /* heap; NULL until the first entry */
    size_t mask, count;
};

struct dict_entry *dict_find(const struct dict *dict, struct slice name);
struct dict_entry *dict_add(struct dict *dict, struct slice name); /* a new or the existing entry */
/* returns the value of the removed entry; NULL: no such name */
void *dict_remove(struct dict *dict, struct slice name);
void dict_fini(struct dict *dict, void (*free_value)(void *value));

/* Iterates over all entries, in no order; NULL: no more. The entry just returned may be removed. */
struct dict_walk {
    size_t bucket;
    struct dict_entry *next;
};
struct dict_entry *dict_next(const struct dict *dict, struct dict_walk *walk);

static inline void *dict_get(const struct dict *dict, struct slice name)
{
    struct dict_entry *entry = dict_find(dict, name);
    return entry != NULL ? entry->value : NULL;
}

static inline struct slice dict_name(const struct dict_entry *entry)
{
    return slice_of(entry->name, entry->len);
}

#endif
