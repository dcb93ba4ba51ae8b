/* Sorted by name: a set is read whenever somebody comes, and rarely made. */
#include "limit/blocks.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* What is shared by the sets that have it. */
struct held {
    _Atomic unsigned holders;
    struct block block;
    char text[]; /* name and reason */
};

struct blocks {
    _Atomic unsigned holders;
    size_t n;
    struct held *at[];
};

/* ---- one ---- */

static struct held *held_new(const struct block *one)
{
    struct held *held = mem_alloc(sizeof *held + one->subject.len + one->reason.len);
    atomic_init(&held->holders, 1);
    held->block = *one;
    held->block.subject.at = memcpy(held->text, one->subject.at, one->subject.len);
    held->block.reason.at = held->text + one->subject.len;
    if (one->reason.len > 0)
        memcpy(held->text + one->subject.len, one->reason.at, one->reason.len);
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

/* ---- sets ---- */

/* Shorter names first. */
static int compare(struct slice a, struct slice b)
{
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return memcmp(a.at, b.at, a.len);
}

/* The first that is not before `subject`. */
static size_t index_of(const struct blocks *blocks, struct slice subject)
{
    size_t low = 0, high = blocks_count(blocks);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(blocks->at[middle]->block.subject, subject) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Empty, with room for one more than there are in `before`. */
static struct blocks *empty_beside(const struct blocks *before)
{
    struct blocks *next = mem_alloc(sizeof *next + (blocks_count(before) + 1) * sizeof next->at[0]);
    atomic_init(&next->holders, 1);
    next->n = 0;
    return next;
}

static void add_range(struct blocks *next, const struct blocks *before, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        next->at[next->n++] = held_get(before->at[i]);
}

static struct blocks *or_none(struct blocks *blocks)
{
    if (blocks->n > 0)
        return blocks;
    free(blocks);
    return NULL;
}

/* Where what is behind the subject of that name begins. */
static size_t behind(const struct blocks *before, size_t index, struct slice subject)
{
    return index + (blocks_find(before, subject) != NULL);
}

struct blocks *blocks_with(const struct blocks *before, const struct block *one)
{
    size_t index = index_of(before, one->subject);
    struct blocks *next = empty_beside(before);
    add_range(next, before, 0, index);
    next->at[next->n++] = held_new(one);
    add_range(next, before, behind(before, index, one->subject), blocks_count(before));
    return next;
}

struct blocks *blocks_without(const struct blocks *before, struct slice subject)
{
    size_t index = index_of(before, subject);
    struct blocks *next = empty_beside(before);
    add_range(next, before, 0, index);
    add_range(next, before, behind(before, index, subject), blocks_count(before));
    return or_none(next);
}

struct blocks *blocks_living(const struct blocks *before, uint64_t now_ns)
{
    struct blocks *next = empty_beside(before);
    for (size_t i = 0; i < blocks_count(before); i++)
        if (!block_is_over(&before->at[i]->block, now_ns))
            next->at[next->n++] = held_get(before->at[i]);
    return or_none(next);
}

struct blocks *blocks_get(struct blocks *blocks)
{
    if (blocks != NULL)
        atomic_fetch_add_explicit(&blocks->holders, 1, memory_order_relaxed);
    return blocks;
}

void blocks_put(struct blocks *blocks)
{
    if (blocks == NULL || atomic_fetch_sub_explicit(&blocks->holders, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < blocks->n; i++)
        held_put(blocks->at[i]);
    free(blocks);
}

/* ---- looking ---- */

const struct block *blocks_find(const struct blocks *blocks, struct slice subject)
{
    size_t index = index_of(blocks, subject);
    if (index == blocks_count(blocks) || !slice_eq(blocks->at[index]->block.subject, subject))
        return NULL;
    return &blocks->at[index]->block;
}

size_t blocks_count(const struct blocks *blocks)
{
    return blocks != NULL ? blocks->n : 0;
}

const struct block *blocks_at(const struct blocks *blocks, size_t i)
{
    return &blocks->at[i]->block;
}

uint64_t blocks_next_end(const struct blocks *blocks)
{
    uint64_t first_ns = 0;
    for (size_t i = 0; i < blocks_count(blocks); i++) {
        uint64_t until_ns = blocks_at(blocks, i)->until_ns;
        if (until_ns > 0 && (first_ns == 0 || until_ns < first_ns))
            first_ns = until_ns;
    }
    return first_ns;
}
