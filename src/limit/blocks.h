/*
 * Whom an operator has blocked (LIMIT BLOCK): subjects by name, until when, and why; in a shared set.
 *
 * Whose time is over stays in the set until the next one is made without it.
 */
#ifndef WEIR_LIMIT_BLOCKS_H
#define WEIR_LIMIT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/shared_set.h"
#include "base/slice.h"

#define BLOCKS_MAX 10000     /* with the longest names and reasons some 6 MB */
#define BLOCK_REASON_MAX 200 /* bytes */

struct block {
    struct slice subject; /* its name; owned by the set */
    struct slice reason;  /* one line; empty if none was given; owned by the set */
    uint64_t until_ns;    /* monotonic; 0: until it is taken back */
};

/* A set of what is in `before`, with a copy of `one` replacing what its subject had. */
struct shared_set *blocks_with(const struct shared_set *before, const struct block *one);

/* NULL: it is not blocked. */
const struct block *blocks_find(const struct shared_set *blocks, struct slice subject);

/* In the order of their names, short ones first; i < shared_set_count. */
const struct block *blocks_at(const struct shared_set *blocks, size_t i);

static inline bool block_is_over(const struct block *block, uint64_t now_ns)
{
    return block->until_ns > 0 && block->until_ns <= now_ns;
}

#endif
