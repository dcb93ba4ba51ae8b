/*
 * A table of names, each with a pointer. Names are copied; the pointers are the owner's.
 *
 * It grows and never shrinks, so that a walk by bucket numbers that is interrupted meets all that was always there.
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
    struct dict_entry **buckets; /* heap; NULL while empty for the first time */
    size_t mask, count;
};

struct dict_entry *dict_find(const struct dict *dict, struct slice name);
struct dict_entry *dict_add(struct dict *dict, struct slice name); /* new, or the one that is there */
void *dict_remove(struct dict *dict, struct slice name);           /* its value, NULL: none */
void dict_fini(struct dict *dict, void (*free_value)(void *value));

/* The entries of bucket after bucket, in no order; NULL: no more. The one just given may be removed. */
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
