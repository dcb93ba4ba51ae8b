/*
 * Whom an operator has blocked (LIMIT BLOCK): subjects by name, until when, and why.
 *
 * A set is immutable and reference-counted; any thread may read it. A change makes a new set, which shares unchanged
 * entries with the old one. Whose time is over stays in the set until the next one is made without it.
 */
#ifndef WEIR_LIMIT_BLOCKS_H
#define WEIR_LIMIT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define BLOCKS_MAX 10000     /* with the longest names and reasons some 6 MB */
#define BLOCK_REASON_MAX 200 /* bytes */

struct block {
    struct slice subject; /* its name; owned by the set */
    struct slice reason;  /* one line; empty if none was given; owned by the set */
    uint64_t until_ns;    /* monotonic; 0: until it is taken back */
};

/* NULL is the empty set. */
struct blocks;

/* A set of what is in `before`, with a copy of `one` replacing what its subject had; or without that subject. */
struct blocks *blocks_with(const struct blocks *before, const struct block *one);
struct blocks *blocks_without(const struct blocks *before, struct slice subject);

/* The same without those whose time is over. */
struct blocks *blocks_living(const struct blocks *before, uint64_t now_ns);

struct blocks *blocks_get(struct blocks *blocks);
void blocks_put(struct blocks *blocks);

/* NULL: it is not blocked. */
const struct block *blocks_find(const struct blocks *blocks, struct slice subject);

/* In the order of their names, short ones first. */
size_t blocks_count(const struct blocks *blocks);
const struct block *blocks_at(const struct blocks *blocks, size_t i);

static inline bool block_is_over(const struct block *block, uint64_t now_ns)
{
    return block->until_ns > 0 && block->until_ns <= now_ns;
}

/* When the first of them ends; 0: none does. */
uint64_t blocks_next_end(const struct blocks *blocks);

#endif
