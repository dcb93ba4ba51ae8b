/*
 * A variant of a policy: a copy for some of its subjects, with the same record, so with the same funnels and debts, and
 * with other limits.
 *
 * Made on one thread, as policies are, and immutable once it is bound.
 */
#ifndef WEIR_LIMIT_VARIANT_H
#define WEIR_LIMIT_VARIANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command/command.h"
#include "limit/policy/policy.h"

/* The limits of one subject. */
struct variant {
    char *subject; /* its name; heap */
    struct policy *policy;
};

/* Sorted by subject and index of the policy. */
struct variants {
    struct variant *at;
    size_t n;
};

/* A copy of the policy, or (NULL) of none, with `record`, room for one more limit, and bound to no table. */
struct policy *variant_new(const struct policy *policy, struct record *record);
void variant_free(struct policy *variant);

/* Replace the limits of the line of `deny`, an enrolled limit, by `deny`. Before the variant is bound. */
void variant_deny(struct policy *variant, const struct limit *deny);

/* The one of that subject and policy; NULL: there is none; variants_want makes it. */
struct policy *variants_find(const struct variants *variants, struct slice subject, const struct policy *policy);
struct policy *variants_want(struct variants *variants, struct slice subject, const struct policy *policy);
struct variants variants_copy(const struct variants *variants);
void variants_fini(struct variants *variants);

/* How long the limits of a line hold that an operator has set, and for whom. */
struct line_span {
    uint64_t until_ns; /* monotonic; 0: until it is taken back */
    bool is_own;       /* for one subject alone */
};

/*
 * Replace the limits of one line of `policy`, a variant or one of the set itself, which nobody else has yet. False:
 * `why` says what is wrong, and nothing has changed.
 */
__attribute__((warn_unused_result)) bool policy_replace_line(struct policies *policies, struct policy *policy,
                                                             const struct command_table *table, struct slice what,
                                                             struct slice expression, const struct line_span *span,
                                                             char *why, size_t why_size);

#endif
