/*
 * The subjects that operators have blocked (LIMIT BLOCK), by name, with end time and reason, in a
 * shared set.
 *
 * An expired block stays in the set until the next set is made.
 */
#ifndef WEIR_LIMIT_BLOCKS_H
#define WEIR_LIMIT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/shared_set.h"
#include "base/slice.h"

#define BLOCKS_MAX 10000     /* chosen: some 6 MB with the longest names and reasons */
#define BLOCK_REASON_MAX 200 /* bytes */

struct block {
    struct slice subject; /* name of the subject; owned by the set */
    struct slice reason;  /* one line; empty: none given; owned by the set */
    uint64_t until_ns;    /* monotonic; 0: until an operator lifts the block */
};

/*
 * Makes a set: the blocks of `before` plus a copy of `one`, which replaces an earlier block of the
 * same subject.
 */
struct shared_set *blocks_with(const struct shared_set *before, const struct block *one);

/* NULL: not blocked. */
const struct block *blocks_find(const struct shared_set *blocks, struct slice subject);

/* The i-th block in the order of names, short names first; i < shared_set_count. */
const struct block *blocks_at(const struct shared_set *blocks, size_t i);

static inline bool block_is_over(const struct block *block, uint64_t now_ns)
{
    return block->until_ns > 0 && block->until_ns <= now_ns;
}

#endif
