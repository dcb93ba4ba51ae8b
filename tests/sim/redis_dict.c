/* Chained buckets: a power of two, at least as many as entries. */
#include "tests/sim/redis_dict.h"

#include "tests/sim/redis_memory.h"

#define BUCKETS_FIRST 16

/* FNV-1a with a final mix, because the low bits choose the bucket. */
static uint64_t hash_of(struct slice name)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.at[i]) * 0x100000001b3;
    return hash ^ (hash >> 29);
}

static struct dict_entry **place_of(const struct dict *dict, struct slice name, uint64_t hash)
{
    struct dict_entry **at = &dict->buckets[hash & dict->mask];
    while (*at != NULL && ((*at)->hash != hash || !slice_eq(dict_name(*at), name)))
        at = &(*at)->next;
    return at;
}

struct dict_entry *dict_find(const struct dict *dict, struct slice name)
{
    return dict->count > 0 ? *place_of(dict, name, hash_of(name)) : NULL;
}

static void grow(struct dict *dict)
{
    size_t n = dict->buckets != NULL ? (dict->mask + 1) * 2 : BUCKETS_FIRST;
    struct dict old = *dict;
    dict->buckets = take_zeroed(n, sizeof(struct dict_entry *));
    dict->mask = n - 1;
    struct dict_walk walk = {0};
    for (struct dict_entry *entry; (entry = dict_next(&old, &walk)) != NULL;) {
        struct dict_entry **bucket = &dict->buckets[entry->hash & dict->mask];
        entry->next = *bucket;
        *bucket = entry;
    }
    free(old.buckets);
}

struct dict_entry *dict_add(struct dict *dict, struct slice name)
{
    if (dict->buckets == NULL || dict->count > dict->mask)
        grow(dict);
    uint64_t hash = hash_of(name);
    struct dict_entry **place = place_of(dict, name, hash);
    if (*place != NULL)
        return *place;
    struct dict_entry *entry = take_memory(sizeof *entry + name.len);
    *entry = (struct dict_entry){.hash = hash, .len = name.len};
    if (name.len > 0)
        memcpy(entry->name, name.at, name.len);
    *place = entry;
    dict->count++;
    return entry;
}

void *dict_remove(struct dict *dict, struct slice name)
{
    if (dict->count == 0)
        return NULL;
    struct dict_entry **place = place_of(dict, name, hash_of(name));
    struct dict_entry *entry = *place;
    if (entry == NULL)
        return NULL;
    void *value = entry->value;
    *place = entry->next;
    free(entry);
    dict->count--;
    return value;
}

struct dict_entry *dict_next(const struct dict *dict, struct dict_walk *walk)
{
    while (walk->next == NULL) {
        if (dict->buckets == NULL || walk->bucket > dict->mask)
            return NULL;
        walk->next = dict->buckets[walk->bucket++];
    }
    struct dict_entry *entry = walk->next;
    walk->next = entry->next;
    return entry;
}

void dict_fini(struct dict *dict, void (*free_value)(void *value))
{
    struct dict_walk walk = {0};
    for (struct dict_entry *entry; (entry = dict_next(dict, &walk)) != NULL;) {
        if (free_value != NULL)
            free_value(entry->value);
        free(entry);
    }
    free(dict->buckets);
    *dict = (struct dict){0};
}
