/*
 * Settings that operators have made for single subjects, beside the policies: blocks, and limits
 * that replace the policy's limits.
 *
 * A variant (limit/policy/variant.h) of the policy applies to a subject with an exception. Code on
 * the path of a command therefore knows nothing of exceptions. A client gets its policy or variant
 * when it connects, and again when the rules change. Immutable, reference-counted; any thread.
 */
#ifndef WEIR_LIMIT_EXCEPTIONS_H
#define WEIR_LIMIT_EXCEPTIONS_H

#include "base/slice.h"
#include "limit/blocks.h"
#include "limit/command/command.h"
#include "limit/policy/policy.h"
#include "limit/subject.h"
#include "limit/policy/variant.h"

/* NULL: no exceptions. */
struct exceptions;

/* The input of exceptions_new; the caller keeps its references. */
struct exceptions_of {
    struct policies *policies;         /* bound to `table` */
    const struct command_table *table; /* used only during the call */
    struct policy_state *unlimited;    /* counters of subjects without a policy */
    struct shared_set *blocks;
    const struct variants *variants; /* of single subjects; copied */
    uint16_t block_id;               /* id of the counters of refusals by blocks */
    /*
     * earlier exceptions that differ only in the blocks, with which the new exceptions share
     * variants; may be NULL
     */
    const struct exceptions *before;
};

/* Makes the exceptions. NULL: no blocks and no variants. */
struct exceptions *exceptions_new(const struct exceptions_of *of);
struct exceptions *exceptions_get(struct exceptions *exceptions);
void exceptions_put(struct exceptions *exceptions);

/*
 * The policy that applies to the subject of that name instead of `policy`. NULL for `policy` and as
 * result: no policy. `exceptions` is not NULL.
 */
const struct policy *exceptions_policy(const struct exceptions *exceptions,
                                       const struct policy *policy, struct slice subject);

/* exceptions_policy that also takes NULL, at the price of one comparison. */
static inline const struct policy *exceptions_bind(const struct exceptions *exceptions,
                                                   const struct policy *policy,
                                                   struct slice subject)
{
    return exceptions == NULL ? policy : exceptions_policy(exceptions, policy, subject);
}

/*
 * The policy that applies to a client on this subject; `policy` is from exceptions_bind. On the
 * overflow subject the rates of a single new subject do not apply: these rates would limit all
 * other users of the overflow subject.
 */
static inline const struct policy *exceptions_bind_on(const struct policy *policy,
                                                      const struct subject *subject)
{
    return policy != NULL && policy->shared != NULL && subject_is_overflow(subject) ? policy->shared
                                                                                    : policy;
}

/* All blocks; NULL: none. */
struct shared_set *exceptions_blocks(const struct exceptions *exceptions);

/* The limits of single subjects. */
const struct variants *exceptions_variants(const struct exceptions *exceptions);

#endif
