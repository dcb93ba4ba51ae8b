/*
 * An index that finds the first of many policies with a match term that holds for a client.
 *
 * Terms that are a text (user:ann), a text and a star (user:free-*), or a network go into sets of
 * prefixes, one for each fact. A look-up costs a binary search, however many policies there are.
 * Other patterns are tried one by one, in the order of their policies, up to the policy found in
 * the sets.
 *
 * Made when the policies are complete, then immutable. Points into the matches of the policies.
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
 * A set of prefixes and whole texts, each with a number. A look-up returns the least number of all
 * entries that fit a text.
 *
 * One sorted array. The entry just before a text is its longest prefix in the set, or begins with
 * that prefix. Every entry knows its parent, the longest other entry that is a prefix of this
 * entry. A look-up takes at most log2(n) + 1 comparisons, plus a step for each parent. Prefixes are
 * counted in bits, and networks are prefixes of addresses.
 */
struct prefixes {
    struct prefix *at;
    size_t n;
};

/* no term holds */
#define MATCH_INDEX_NONE PREFIXES_NONE

/* A pattern that is tried by itself. */
struct match_tried {
    const struct match *match;
    uint32_t policy; /* index of the policy */
};

struct match_index {
    struct prefixes of[MATCH_FACTS];
    struct match_tried *tried; /* in the order of the policies */
    size_t n_tried;
    bool has_keys; /* a term looks at a command's key */
};

/*
 * Adds a term of the policy with that index; policies ascend. Call match_index_finish before the
 * first look-up.
 */
void match_index_add(struct match_index *index, const struct match *match, uint32_t policy);
void match_index_finish(struct match_index *index);
void match_index_fini(struct match_index *index);

/* Returns the index of the policy; MATCH_INDEX_NONE: no term holds. */
uint32_t match_index_find(const struct match_index *index, const struct facts *facts);

#endif
