/*
 * The keys of a client's multi-key commands in flight: a Bloom filter.
 *
 * While a slot moves, Redis Cluster may refuse a multi-key command (TRYAGAIN) and run a later
 * command with one of its keys. A later command that may share a key therefore waits, if at least
 * one of the two commands writes. The filter is cleared when nothing is in flight. A false positive
 * costs one needless wait. Pure.
 */
#ifndef WEIR_LIMIT_KEY_FILTER_H
#define WEIR_LIMIT_KEY_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

#define KEY_FILTER_WORDS 8 /* 64 bits each, two bits a key: with 32 keys one false positive in 70 */

/* Zeroed: empty. */
struct key_filter {
    uint64_t all[KEY_FILTER_WORDS];
    uint64_t written[KEY_FILTER_WORDS]; /* keys of commands that write */
    bool is_used;
};

/* Adds one key of a multi-key command that is sent. */
void key_filter_add(struct key_filter *filter, struct slice key, bool is_read);

/* True if a command with this key must wait. */
bool key_filter_bars(const struct key_filter *filter, struct slice key, bool is_read);

static inline void key_filter_clear(struct key_filter *filter)
{
    if (filter->is_used)
        *filter = (struct key_filter){0};
}

#endif
