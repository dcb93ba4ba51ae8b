/*
 * Keys of the commands with several keys that a client has in flight: a Bloom filter.
 *
 * Redis Cluster may refuse such a command while the slot of its keys moves (TRYAGAIN), and run a
 * later one with one of these keys. So a later command that may hold one of them waits, if one of
 * both writes. The filter is emptied when nothing is in flight: a key that it holds by chance costs
 * one such wait. Pure.
 */
#ifndef WEIR_LIMIT_KEY_FILTER_H
#define WEIR_LIMIT_KEY_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

#define KEY_FILTER_WORDS 8 /* of 64 bits, two for each key: with 32 keys one in 70 is held by chance */

/* Zeroed: empty. */
struct key_filter {
    uint64_t all[KEY_FILTER_WORDS];
    uint64_t written[KEY_FILTER_WORDS]; /* of commands that write */
    bool is_used;
};

/* A command with several keys, of which this is one, is sent. */
void key_filter_add(struct key_filter *filter, struct slice key, bool is_read);

/* True if a command with this key is to wait. */
bool key_filter_bars(const struct key_filter *filter, struct slice key, bool is_read);

static inline void key_filter_clear(struct key_filter *filter)
{
    if (filter->is_used)
        *filter = (struct key_filter){0};
}

#endif
