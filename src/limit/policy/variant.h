/*
 * A variant of a policy: a copy with other limits, for some of its subjects. Variant and policy
 * share the counters, and therefore the funnels and debts.
 *
 * Variants are made on one thread, as policies are, and immutable once bound.
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
    char *subject; /* name of the subject; heap */
    struct policy *policy;
};

/* Sorted by subject, then by index of the policy. */
struct variants {
    struct variant *at;
    size_t n;
};

/*
 * Makes a copy of the policy with `policy_state`, room for one more limit, and no binding to a
 * table. If policy is NULL the copy is of an empty policy.
 */
struct policy *variant_new(const struct policy *policy, struct policy_state *policy_state);
void variant_free(struct policy *variant);

/*
 * Replaces the limits on the line of `deny`, an enrolled limit, by `deny`. Call before the variant
 * is bound.
 */
void variant_deny(struct policy *variant, const struct limit *deny);

/*
 * The variant of that subject and policy. If the variant does not exist, variants_find returns
 * NULL, and variants_want makes the variant.
 */
struct policy *variants_find(const struct variants *variants, struct slice subject,
                             const struct policy *policy);
struct policy *variants_want(struct variants *variants, struct slice subject,
                             const struct policy *policy);
struct variants variants_copy(const struct variants *variants);
void variants_fini(struct variants *variants);

/* How long an operator's limits of a line last, and for which subjects. */
struct line_span {
    uint64_t until_ns; /* monotonic; 0: until an operator lifts the limits */
    bool is_own;       /* for one subject alone */
};

/*
 * Replaces the limits of one line of `policy`, a variant or a policy of a set not shared yet.
 * False: nothing has changed, and `why` holds the reason.
 */
__attribute__((warn_unused_result)) bool policy_replace_line(
    struct policies *policies, struct policy *policy, const struct command_table *table,
    struct slice what, struct slice expression, const struct line_span *span, char *why,
    size_t why_size);

#endif
