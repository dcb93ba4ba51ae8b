/*
 * Of many policies, which is the first with a term that holds for a client?
 *
 * Terms that are a text (user:ann), a text and a star (user:free-*) or a network stand in one set of prefixes for each
 * fact of a client, so that a look costs a binary search, however many policies there are. Other
 * patterns are tried one by one, in the order of their policies, up to the policy that the sets have found.
 *
 * Made when the policies are whole, then immutable; it points into their matches.
 */
#ifndef WEIR_LIMIT_MATCH_INDEX_H
#define WEIR_LIMIT_MATCH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/policy/identity.h"

#define PREFIXES_NONE UINT32_MAX /* no number */

/*
 * A set of prefixes and whole texts, each with a number: the least number of all that fit a text.
 *
 * One sorted array. A text's longest prefix in the set is the entry just before the text, or one of those that begin
 * that entry; every entry knows the longest other one that begins it. So a look takes at most log2(n) + 1 comparisons,
 * and as many steps as entries begin one another. Prefixes are counted in bits, so networks are prefixes of addresses.
 */
struct prefixes {
    struct prefix *at;
    size_t n;
};

/*
 * Add the first `bits` bits of `bytes`, beyond which none is set: as a prefix, or with `is_whole` as a text that only
 * itself fits. prefixes_finish follows, once, before the first look.
 */
#define MATCH_INDEX_NONE PREFIXES_NONE

/* A pattern that is tried by itself. */
struct match_tried {
    const struct match *match;
    uint32_t policy; /* its index */
};

struct match_index {
    struct prefixes of[MATCH_FACTS];
    struct match_tried *tried; /* in the order of their policies */
    size_t n_tried;
    bool has_keys; /* some term looks at a command's key */
};

/* Add a term of the policy with that index: policies in their order. match_index_finish follows, before the first look. */
void match_index_add(struct match_index *index, const struct match *match, uint32_t policy);
void match_index_finish(struct match_index *index);
void match_index_fini(struct match_index *index);

/* The index of the policy; MATCH_INDEX_NONE: no term holds. */
uint32_t match_index_find(const struct match_index *index, const struct facts *facts);

#endif
