/*
 * Of many policies, which is the first with a term that holds for a client?
 *
 * Terms that are a text (user:ann), a text and a star (user:free-*) or a network stand in one set of prefixes for each
 * fact of a client, so that a look costs what limit/policy/prefixes.h says, however many policies there are. Other
 * patterns are tried one by one, in the order of their policies, up to the policy that the sets have found.
 *
 * Made when the policies are whole, then immutable; it points into their matches.
 */
#ifndef WEIR_LIMIT_MATCH_INDEX_H
#define WEIR_LIMIT_MATCH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limit/policy/identity.h"
#include "limit/policy/prefixes.h"

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
