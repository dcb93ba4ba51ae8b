/*
 * What the requests in flight on one lane are to those who sent them: a number each, oldest first.
 *
 * Requests of one run (upstream/calls.h) may differ in it, so it has a queue of its own.
 */
#ifndef WEIR_UPSTREAM_TAGS_H
#define WEIR_UPSTREAM_TAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/chain.h"

#define TAGS_KEEP 4096 /* of memory for so many, an empty queue keeps it */

struct tags {
    struct pool *pool; /* whose memory it is; set before the first tag */
    uint32_t *ring;    /* a power of two */
    uint32_t capacity; /* positions count on for ever and wrap */
    uint32_t head;
    uint32_t tail;
};

void tags_fini(struct tags *tags);

/* Make room for one more. False: out of memory. */
__attribute__((warn_unused_result)) bool tags_grow(struct tags *tags);

__attribute__((warn_unused_result)) static inline bool tags_push(struct tags *tags, uint32_t tag)
{
    if (tags->tail - tags->head == tags->capacity && !tags_grow(tags))
        return false;
    tags->ring[tags->tail++ & (tags->capacity - 1)] = tag;
    return true;
}

/* The oldest but i; there must be more than i. */
static inline uint32_t tags_at(const struct tags *tags, uint32_t i)
{
    return tags->ring[(tags->head + i) & (tags->capacity - 1)];
}

/* Give the memory back; only of an empty queue. */
void tags_shed(struct tags *tags);

/* The oldest n. */
static inline void tags_drop(struct tags *tags, uint32_t n)
{
    tags->head += n;
    if (tags->head == tags->tail && tags->capacity > TAGS_KEEP)
        tags_shed(tags);
}

static inline void tags_drop_newest(struct tags *tags)
{
    tags->tail--;
}

#endif
