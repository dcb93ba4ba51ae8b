/*
 * A number for each request in flight on one lane, oldest first, whose meaning is its sender's
 * (front/client/timing.h: which
 * command it was, and what it waited for). Requests of one run (upstream/lane/calls.h) may differ in it, hence a
 * queue of its own.
 */
#ifndef WEIR_UPSTREAM_TAGS_H
#define WEIR_UPSTREAM_TAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/chain.h"

#define TAGS_KEEP 4096 /* entries: an empty queue keeps memory for no more */

struct tags {
    struct pool *pool; /* where the memory is counted; set before the first tag */
    uint64_t *ring;    /* heap */
    uint32_t capacity; /* entries in it, a power of two; 0: no ring */
    uint32_t head;     /* position of the oldest; positions only grow, and wrap */
    uint32_t tail;     /* position behind the newest */
};

void tags_fini(struct tags *tags);

/* Make room for one more. False: out of memory. */
__attribute__((warn_unused_result)) bool tags_grow(struct tags *tags);

/* The same tag n times. False: out of memory, and there is none of them. */
__attribute__((warn_unused_result)) static inline bool tags_push(struct tags *tags, uint64_t tag, uint32_t n)
{
    while (tags->capacity - (tags->tail - tags->head) < n)
        if (!tags_grow(tags))
            return false;
    for (; n > 0; n--)
        tags->ring[tags->tail++ & (tags->capacity - 1)] = tag;
    return true;
}

/* Number i, the oldest being 0; there must be more than i. */
static inline uint64_t tags_at(const struct tags *tags, uint32_t i)
{
    return tags->ring[(tags->head + i) & (tags->capacity - 1)];
}

/* Give the memory back; only of an empty queue. */
void tags_shed(struct tags *tags);

/* Take out the oldest n. */
static inline void tags_drop(struct tags *tags, uint32_t n)
{
    tags->head += n;
    if (tags->head == tags->tail && tags->capacity > TAGS_KEEP)
        tags_shed(tags);
}

static inline void tags_drop_newest(struct tags *tags, uint32_t n)
{
    tags->tail -= n;
}

#endif
