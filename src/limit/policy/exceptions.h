/*
 * What operators have ordered for single subjects, beside the policies: who is blocked, and who has other limits than
 * others of its policy.
 *
 * Whoever is excepted is bound by a variant (limit/policy/variant.h) of the policy that would bind it. So nothing on
 * the way of
 * a command knows of exceptions; who a client is bound by is asked when it comes, and when the rules change. Immutable,
 * reference-counted; any thread.
 */
#ifndef WEIR_LIMIT_EXCEPTIONS_H
#define WEIR_LIMIT_EXCEPTIONS_H

#include "base/slice.h"
#include "limit/blocks.h"
#include "limit/command/command.h"
#include "limit/policy/policy.h"
#include "limit/subject.h"
#include "limit/policy/variant.h"

/* NULL: there are none. */
struct exceptions;

/* What exceptions are made from; references stay the caller's. */
struct exceptions_of {
    struct policies *policies;         /* bound to `table` */
    const struct command_table *table; /* for this call alone */
    struct record *unlimited;          /* of subjects that no policy binds */
    struct shared_set *blocks;
    const struct variants *variants; /* of single subjects; copied */
    uint16_t block_id;               /* tallies of what blocks refuse */
    const struct exceptions
        *before; /* of the same but for the blocks: the new ones share variants with them; or NULL */
};

/* NULL where there is nothing to except. */
struct exceptions *exceptions_new(const struct exceptions_of *of);
struct exceptions *exceptions_get(struct exceptions *exceptions);
void exceptions_put(struct exceptions *exceptions);

/* What binds the subject of that name in the place of `policy`; both NULL: nothing. Not for exceptions that are NULL. */
const struct policy *exceptions_policy(const struct exceptions *exceptions, const struct policy *policy,
                                       struct slice subject);

/* The same for any, with one comparison where there are none. */
static inline const struct policy *exceptions_bind(const struct exceptions *exceptions, const struct policy *policy,
                                                   struct slice subject)
{
    return exceptions == NULL ? policy : exceptions_policy(exceptions, policy, subject);
}

/*
 * What binds a client on this subject, of a policy that exceptions_bind has returned. On the overflow subject rates of
 * a single newcomer have no effect: other newcomers would find what they charge.
 */
static inline const struct policy *exceptions_bind_on(const struct policy *policy, const struct subject *subject)
{
    return policy != NULL && policy->shared != NULL && subject_is_overflow(subject) ? policy->shared : policy;
}

/* All that are blocked; NULL: nobody is. */
struct shared_set *exceptions_blocks(const struct exceptions *exceptions);

/* The limits of single subjects. */
const struct variants *exceptions_variants(const struct exceptions *exceptions);

#endif
