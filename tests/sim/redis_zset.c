/* Sorted sets. Adding at the end and removing at the start, as a log does, moves no member. */
#include "tests/sim/redis_zset.h"

#define ROOM_FIRST 8

static double score_of(const struct dict_entry *entry)
{
    double score;
    _Static_assert(sizeof score == sizeof entry->value, "a score takes the place of a pointer");
    memcpy(&score, &entry->value, sizeof score);
    return score;
}

static void set_score(struct dict_entry *entry, double score)
{
    memcpy(&entry->value, &score, sizeof score);
}

const struct zmember *zset_at(const struct zset *set, size_t rank)
{
    return &set->items[set->gap + rank];
}

bool zset_score(const struct zset *set, struct slice name, double *score)
{
    const struct dict_entry *entry = dict_find(&set->by_name, name);
    if (entry != NULL)
        *score = score_of(entry);
    return entry != NULL;
}

size_t zset_rank(const struct zset *set, struct slice name, double score)
{
    size_t low = 0;
    size_t high = set->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct zmember *at = zset_at(set, middle);
        bool is_before = at->score < score ||
                         (at->score == score && text_compare(dict_name(at->entry), name) < 0);
        if (is_before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void make_room(struct zset *set)
{
    if (set->gap + set->count < set->room)
        return;
    if (set->gap > set->count / 2) {
        memmove(set->items, set->items + set->gap, set->count * sizeof *set->items);
        set->gap = 0;
        return;
    }
    set->room = set->room > 0 ? set->room * 2 : ROOM_FIRST;
    set->items = take_more(set->items, set->room, sizeof *set->items);
}

static void take_out(struct zset *set, size_t rank)
{
    struct zmember *items = set->items + set->gap;
    set->count--;
    if (rank == 0)
        set->gap++;
    else
        memmove(items + rank, items + rank + 1, (set->count - rank) * sizeof *items);
}

void zset_put(struct zset *set, struct slice name, double score)
{
    size_t count = set->by_name.count;
    struct dict_entry *entry = dict_add(&set->by_name, name);
    if (set->by_name.count == count)
        take_out(set, zset_rank(set, name, score_of(entry)));
    make_room(set);
    size_t rank = zset_rank(set, name, score);
    struct zmember *items = set->items + set->gap;
    memmove(items + rank + 1, items + rank, (set->count - rank) * sizeof *items);
    items[rank] = (struct zmember){score, entry};
    set->count++;
    set_score(entry, score);
}

bool zset_remove(struct zset *set, struct slice name)
{
    double score;
    if (!zset_score(set, name, &score))
        return false;
    take_out(set, zset_rank(set, name, score));
    dict_remove(&set->by_name, name);
    return true;
}

void zset_remove_range(struct zset *set, size_t first, size_t n)
{
    struct zmember *items = set->items + set->gap + first;
    for (size_t i = 0; i < n; i++)
        dict_remove(&set->by_name, dict_name(items[i].entry));
    set->count -= n;
    if (first == 0)
        set->gap += n;
    else
        memmove(items, items + n, (set->count - first) * sizeof *items);
}

void zset_fini(struct zset *set)
{
    dict_fini(&set->by_name, NULL);
    free(set->items);
}

/* Returns how many members are below the border; with `is_in` also members on the border. */
static size_t below(const struct zset *set, double border, bool is_in)
{
    size_t low = 0;
    size_t high = set->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        double score = zset_at(set, middle)->score;
        if (score < border || (is_in && score == border))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t zset_range(const struct zset *set, const struct zrange *range, size_t *first)
{
    *first = below(set, range->least, range->is_least_out);
    size_t end = below(set, range->most, !range->is_most_out);
    return end > *first ? end - *first : 0;
}
