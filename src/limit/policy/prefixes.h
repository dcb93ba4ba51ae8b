/*
 * A set of prefixes and whole texts, each with a number: the least number of all that fit a text.
 *
 * One sorted array. A text's longest prefix in the set is the entry just before the text, or one of those that begin
 * that entry; every entry knows the longest other one that begins it. So a look takes at most log2(n) + 1 comparisons,
 * and as many steps as entries begin one another. Prefixes are counted in bits, so networks are prefixes of addresses.
 */
#ifndef WEIR_LIMIT_PREFIXES_H
#define WEIR_LIMIT_PREFIXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define PREFIXES_NONE UINT32_MAX /* no number */

struct prefixes {
    struct prefix *at;
    size_t n;
};

/*
 * Add the first `bits` bits of `bytes`, beyond which none is set: as a prefix, or with `is_whole` as a text that only
 * itself fits. prefixes_finish follows, once, before the first look.
 */
void prefixes_add(struct prefixes *prefixes, struct slice bytes, size_t bits, bool is_whole, uint32_t number);
void prefixes_finish(struct prefixes *prefixes);
void prefixes_fini(struct prefixes *prefixes);

/* PREFIXES_NONE: nothing fits. */
uint32_t prefixes_find(const struct prefixes *prefixes, struct slice text);

#endif
