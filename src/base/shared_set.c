/*
 * No chunk is empty, and two neighbours together are more than half of a full chunk. These two
 * rules bound the number of chunks.
 */
#include "base/shared_set.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/*
 * chosen: near the number of chunks in the largest sets, so that a chunk and the list of chunks are
 * both short to copy
 */
#define CHUNK_ENTRIES 128

struct chunk {
    _Atomic unsigned holders;
    size_t n;
    uint64_t next_end_ns; /* 0: no entry has an end */
    struct shared_entry *at[CHUNK_ENTRIES];
};

struct shared_set {
    _Atomic unsigned holders;
    size_t count;
    size_t n;
    struct {
        struct chunk *chunk;
        size_t first; /* number of entries in the chunks before */
    } at[];
};

/* ---- reference counts ---- */

static void shared_set_hold(_Atomic unsigned *holders)
{
    atomic_fetch_add_explicit(holders, 1, memory_order_relaxed);
}

/* Gives up a reference. True if no reference is left. */
static bool shared_set_let_go(_Atomic unsigned *holders)
{
    return atomic_fetch_sub_explicit(holders, 1, memory_order_acq_rel) == 1;
}

void shared_entry_init(struct shared_entry *entry, struct slice name, uint64_t until_ns)
{
    atomic_init(&entry->holders, 1);
    entry->name = name;
    entry->until_ns = until_ns;
}

static void entry_put(struct shared_entry *entry)
{
    if (shared_set_let_go(&entry->holders))
        free(entry);
}

static void shared_set_chunk_put(struct chunk *chunk)
{
    if (!shared_set_let_go(&chunk->holders))
        return;
    for (size_t i = 0; i < chunk->n; i++)
        entry_put(chunk->at[i]);
    free(chunk);
}

struct shared_set *shared_set_get(struct shared_set *set)
{
    if (set != NULL)
        shared_set_hold(&set->holders);
    return set;
}

void shared_set_put(struct shared_set *set)
{
    if (set == NULL || !shared_set_let_go(&set->holders))
        return;
    for (size_t i = 0; i < set->n; i++)
        shared_set_chunk_put(set->at[i].chunk);
    free(set);
}

/* ---- finding ---- */

/* Compares names for their order in a set: shorter names first. */
static int shared_set_compare(struct slice a, struct slice b)
{
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return a.len > 0 ? memcmp(a.at, b.at, a.len) : 0;
}

static size_t chunks_of(const struct shared_set *set)
{
    return set != NULL ? set->n : 0;
}

/* Returns the index of the chunk that has the name, or would have it; 0 in an empty set. */
static size_t chunk_of(const struct shared_set *set, struct slice name)
{
    size_t low = 0, high = chunks_of(set);
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (shared_set_compare(set->at[middle].chunk->at[0]->name, name) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Returns the index of the first of n entries that is not before the name; n if there is none. */
static size_t shared_set_index_of(struct shared_entry *const *entries, size_t n, struct slice name)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (shared_set_compare(entries[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool shared_set_is_at(struct shared_entry *const *entries, size_t n, size_t i,
                             struct slice name)
{
    return i < n && slice_eq(entries[i]->name, name);
}

const struct shared_entry *shared_set_find(const struct shared_set *set, struct slice name)
{
    if (set == NULL)
        return NULL;
    const struct chunk *chunk = set->at[chunk_of(set, name)].chunk;
    size_t i = shared_set_index_of(chunk->at, chunk->n, name);
    return shared_set_is_at(chunk->at, chunk->n, i, name) ? chunk->at[i] : NULL;
}

size_t shared_set_count(const struct shared_set *set)
{
    return set != NULL ? set->count : 0;
}

const struct shared_entry *shared_set_at(const struct shared_set *set, size_t i)
{
    size_t low = 0, high = set->n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (set->at[middle].first <= i)
            low = middle;
        else
            high = middle;
    }
    return set->at[low].chunk->at[i - set->at[low].first];
}

size_t shared_set_count_living(const struct shared_set *set, uint64_t now_ns)
{
    size_t count = 0;
    for (size_t i = 0; i < chunks_of(set); i++) {
        const struct chunk *chunk = set->at[i].chunk;
        if (chunk->next_end_ns == 0 || chunk->next_end_ns > now_ns) {
            count += chunk->n;
            continue;
        }
        for (size_t j = 0; j < chunk->n; j++)
            count += !shared_entry_is_over(chunk->at[j], now_ns);
    }
    return count;
}

static uint64_t sooner(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns == 0 || (b_ns > 0 && b_ns < a_ns) ? b_ns : a_ns;
}

uint64_t shared_set_next_end(const struct shared_set *set)
{
    uint64_t first_ns = 0;
    for (size_t i = 0; i < chunks_of(set); i++)
        first_ns = sooner(first_ns, set->at[i].chunk->next_end_ns);
    return first_ns;
}

/* ---- making sets ---- */

static struct shared_set *set_new(size_t n_chunks)
{
    struct shared_set *set = mem_alloc(sizeof *set + n_chunks * sizeof set->at[0]);
    atomic_init(&set->holders, 1);
    set->count = 0;
    set->n = 0;
    return set;
}

/* Appends a chunk. The set takes over the caller's reference. */
static void add_chunk(struct shared_set *set, struct chunk *chunk)
{
    set->at[set->n].chunk = chunk;
    set->at[set->n++].first = set->count;
    set->count += chunk->n;
}

static void share_chunks(struct shared_set *set, const struct shared_set *before, size_t first,
                         size_t end)
{
    for (size_t i = first; i < end; i++) {
        shared_set_hold(&before->at[i].chunk->holders);
        add_chunk(set, before->at[i].chunk);
    }
}

static size_t chunks_for(size_t n_entries)
{
    return (n_entries + CHUNK_ENTRIES - 1) / CHUNK_ENTRIES;
}

/* Appends the entries in new chunks, which take over the references of the entries. */
static void add_entries(struct shared_set *set, struct shared_entry *const *entries, size_t n)
{
    for (size_t chunks = chunks_for(n); chunks > 0; chunks--) {
        struct chunk *chunk = mem_alloc(sizeof *chunk);
        atomic_init(&chunk->holders, 1);
        chunk->n = n / chunks;
        chunk->next_end_ns = 0;
        memcpy(chunk->at, entries, chunk->n * sizeof(struct shared_entry *));
        for (size_t i = 0; i < chunk->n; i++)
            chunk->next_end_ns = sooner(chunk->next_end_ns, entries[i]->until_ns);
        add_chunk(set, chunk);
        entries += chunk->n;
        n -= chunk->n;
    }
}

/*
 * Returns a set with these entries in place of the chunks from `first` to `end`. The new set takes
 * over the entries' references.
 */
static struct shared_set *shared_set_replace(const struct shared_set *before, size_t first,
                                             size_t end, struct shared_entry *const *entries,
                                             size_t n)
{
    size_t n_chunks = first + chunks_for(n) + chunks_of(before) - end;
    if (n_chunks == 0)
        return NULL;
    struct shared_set *set = set_new(n_chunks);
    share_chunks(set, before, 0, first);
    add_entries(set, entries, n);
    share_chunks(set, before, end, chunks_of(before));
    return set;
}

/*
 * Copies the entries of the chunk to `out`, except an entry called `name`, and adds a reference to
 * each copied entry. Returns the number of copied entries.
 */
static size_t copy_others(const struct chunk *chunk, struct slice name, struct shared_entry **out)
{
    size_t n = 0;
    for (size_t i = 0; i < chunk->n; i++)
        if (!slice_eq(chunk->at[i]->name, name)) {
            shared_set_hold(&chunk->at[i]->holders);
            out[n++] = chunk->at[i];
        }
    return n;
}

struct shared_set *shared_set_with(const struct shared_set *before, struct shared_entry *entry)
{
    struct shared_entry *entries[CHUNK_ENTRIES + 1];
    size_t first = chunk_of(before, entry->name);
    size_t n = before != NULL ? copy_others(before->at[first].chunk, entry->name, entries) : 0;
    size_t i = shared_set_index_of(entries, n, entry->name);
    memmove(entries + i + 1, entries + i, (n - i) * sizeof *entries);
    entries[i] = entry;
    return shared_set_replace(before, first, first + (before != NULL), entries, n + 1);
}

/*
 * True if chunk `first` and the next chunk together fill at most half a chunk after the removal of
 * one entry.
 */
static bool are_few(const struct shared_set *set, size_t first)
{
    return first + 1 < set->n &&
           set->at[first].chunk->n + set->at[first + 1].chunk->n - 1 <= (size_t)CHUNK_ENTRIES / 2;
}

struct shared_set *shared_set_without(const struct shared_set *before, struct slice name)
{
    struct shared_entry *entries[CHUNK_ENTRIES];
    if (shared_set_find(before, name) == NULL)
        return shared_set_count(before) > 0 ? shared_set_replace(before, 0, 0, NULL, 0) : NULL;
    size_t at = chunk_of(before, name);
    size_t first = at > 0 && are_few(before, at - 1) ? at - 1 : at;
    size_t end = first == at && are_few(before, at) ? at + 2 : at + 1;
    size_t n = 0;
    for (size_t i = first; i < end; i++)
        n += copy_others(before->at[i].chunk, name, entries + n);
    return shared_set_replace(before, first, end, entries, n);
}

struct shared_set *shared_set_living(const struct shared_set *before, bool only_timed,
                                     uint64_t now_ns)
{
    size_t count = shared_set_count(before), n = 0;
    struct shared_entry **entries = mem_alloc(count * sizeof *entries);
    for (size_t i = 0; i < chunks_of(before); i++)
        for (size_t j = 0; j < before->at[i].chunk->n; j++) {
            struct shared_entry *entry = before->at[i].chunk->at[j];
            if (shared_entry_is_over(entry, now_ns) || (only_timed && entry->until_ns == 0))
                continue;
            shared_set_hold(&entry->holders);
            entries[n++] = entry;
        }
    struct shared_set *set = shared_set_replace(NULL, 0, 0, entries, n);
    free(entries);
    return set;
}
