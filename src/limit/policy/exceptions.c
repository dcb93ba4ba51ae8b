/*
 * A block is one more limit of the policy, which denies class `all`. Class control passes, as with
 * any limit.
 */
#include "limit/policy/exceptions.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"

/* The variants made from the policies. Shared by exceptions that differ only in the blocks. */
struct bound {
    _Atomic unsigned holders;
    struct policies *policies; /* one reference */
    size_t n_policies;
    /* by index of the policy; the last entry is for subjects without a policy; NULL: no blocks */
    struct policy **blocked;
    struct variants own; /* of single subjects */
    /* by index in `own`: the policy plus the denials for that subject; NULL: nothing is denied */
    struct policy **shared;
};

struct exceptions {
    _Atomic unsigned holders;
    struct bound *bound;       /* one reference */
    struct shared_set *blocks; /* one reference */
};

/*
 * The variant borrows the plan of its policy, and its subjects are observed as the policy's
 * subjects are. A reference on the set of policies keeps the plan.
 */
static void lend_plan(const struct exceptions_of *of, struct policy *variant,
                      const struct policy *policy)
{
    variant->peak_rates =
        policy != NULL ? policy->peak_rates : *policies_unlimited_peak_plan(of->policies);
}

/* ---- blocks ---- */

static const struct class *class_all(const struct policies *policies)
{
    const struct classes *classes = policies_classes(policies);
    size_t i = 0;
    while (!slice_eq(class_name(classes_at(classes, i)), SLICE("all")))
        i++;
    return classes_at(classes, i);
}

/*
 * Gives the rate table of a blocked subject an order that is one below the order of its set of
 * rules. If the subject has limits of its own, the debts keep the rates of these limits during the
 * block. The debts of a new subject begin with the rates of the policy. Any other rate table of
 * this set replaces these rates.
 */
static void rate_before_others(struct policy *variant)
{
    for (int scope = 0; scope < SCOPE_COUNT && variant->rates[scope] != NULL; scope++) {
        struct rate_table *rates = variant->rates[scope];
        variant->rates[scope] = rate_table_new(rates->order - 1, rates->at, rates->n);
        rate_table_put(rates);
    }
}

/*
 * If a policy has the maximum of limits, its last limit is left out: the block denies everything
 * that this limit lets pass.
 */
static struct policy *exceptions_block(const struct exceptions_of *of, struct members *members,
                                       const struct policy *policy)
{
    struct policy *variant =
        variant_new(policy, policy != NULL ? policy->policy_state : of->unlimited);
    lend_plan(of, variant, policy);
    rate_before_others(variant);
    size_t at =
        variant->n_limits < POLICY_MAX_LIMITS ? variant->n_limits++ : POLICY_MAX_LIMITS - 1U;
    variant->limits[at] = (struct limit){
        .class = class_all(of->policies),
        .id = of->block_id,
        .unit = UNIT_COMMANDS,
        .scope = PER_SUBJECT,
        .action = OVER_DENY,
        .is_block = true,
        .label = "block",
    };
    struct policy_state *policy_state = variant->policy_state;
    /* charges only funnels that the policy charges: decisions need no additional lock */
    variant->policy_state = NULL;
    policy_bind(variant, members, policies_is_shadow(of->policies));
    variant->policy_state = policy_state;
    return variant;
}

/* ---- the overflow subject ---- */

/*
 * The limits of the policy, plus the denials for the subject of `own`. A rate of that subject would
 * charge the other users of the overflow subject. NULL: nothing is denied, and the policy itself
 * applies.
 */
static struct policy *deny_on_shared(const struct exceptions_of *of, struct members *members,
                                     const struct policy *own)
{
    const struct policy *policy = policies_at(of->policies, own->index);
    struct policy *variant = NULL;
    for (size_t i = 0; i < own->n_limits; i++) {
        if (!own->limits[i].is_own || own->limits[i].action != OVER_DENY)
            continue;
        if (variant == NULL)
            variant = variant_new(policy, policy->policy_state);
        variant_deny(variant, &own->limits[i]);
    }
    if (variant == NULL)
        return NULL;
    policy_bind(variant, members, policies_is_shadow(of->policies));
    lend_plan(of, variant, policy);
    return variant;
}

/* ---- shared variants ---- */

static struct policy **block_all(const struct exceptions_of *of, struct members *members,
                                 size_t n_policies)
{
    struct policy **blocked = mem_zalloc(n_policies + 1, sizeof(struct policy *));
    for (size_t i = 0; i < n_policies; i++)
        blocked[i] = exceptions_block(of, members, policies_at(of->policies, i));
    blocked[n_policies] = exceptions_block(of, members, NULL);
    return blocked;
}

static struct bound *bound_new(const struct exceptions_of *of)
{
    struct members *members = members_new(policies_classes(of->policies), of->table);
    struct bound *bound = mem_zalloc(1, sizeof *bound);
    atomic_init(&bound->holders, 1);
    bound->policies = policies_get(of->policies);
    bound->n_policies = policies_count(of->policies);
    bound->blocked = of->blocks != NULL ? block_all(of, members, bound->n_policies) : NULL;
    bound->own = variants_copy(of->variants);
    bound->shared = mem_zalloc(bound->own.n, sizeof(struct policy *));
    for (size_t i = 0; i < bound->own.n; i++) {
        struct policy *own = bound->own.at[i].policy;
        policy_bind(own, members, policies_is_shadow(of->policies));
        lend_plan(of, own, policies_at(of->policies, own->index));
        bound->shared[i] = deny_on_shared(of, members, own);
        own->shared =
            bound->shared[i] != NULL ? bound->shared[i] : policies_at(of->policies, own->index);
    }
    members_free(members);
    return bound;
}

static struct bound *bound_get(struct bound *bound)
{
    atomic_fetch_add_explicit(&bound->holders, 1, memory_order_relaxed);
    return bound;
}

static void bound_put(struct bound *bound)
{
    if (atomic_fetch_sub_explicit(&bound->holders, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; bound->blocked != NULL && i <= bound->n_policies; i++)
        variant_free(bound->blocked[i]);
    free(bound->blocked);
    for (size_t i = 0; i < bound->own.n; i++)
        if (bound->shared[i] != NULL)
            variant_free(bound->shared[i]);
    free(bound->shared);
    variants_fini(&bound->own);
    policies_put(bound->policies);
    free(bound);
}

/* ---- exceptions ---- */

struct exceptions *exceptions_new(const struct exceptions_of *of)
{
    if (of->blocks == NULL && of->variants->n == 0)
        return NULL;
    struct bound *before = of->before != NULL ? of->before->bound : NULL;
    bool is_enough = before != NULL && (of->blocks == NULL || before->blocked != NULL);
    struct exceptions *exceptions = mem_zalloc(1, sizeof *exceptions);
    atomic_init(&exceptions->holders, 1);
    exceptions->bound = is_enough ? bound_get(before) : bound_new(of);
    exceptions->blocks = shared_set_get(of->blocks);
    return exceptions;
}

struct exceptions *exceptions_get(struct exceptions *exceptions)
{
    if (exceptions != NULL)
        atomic_fetch_add_explicit(&exceptions->holders, 1, memory_order_relaxed);
    return exceptions;
}

void exceptions_put(struct exceptions *exceptions)
{
    if (exceptions == NULL ||
        atomic_fetch_sub_explicit(&exceptions->holders, 1, memory_order_acq_rel) > 1)
        return;
    bound_put(exceptions->bound);
    shared_set_put(exceptions->blocks);
    free(exceptions);
}

const struct policy *exceptions_policy(const struct exceptions *exceptions,
                                       const struct policy *policy, struct slice subject)
{
    const struct bound *bound = exceptions->bound;
    if (blocks_find(exceptions->blocks, subject) != NULL)
        return bound->blocked[policy != NULL ? policy->index : bound->n_policies];
    const struct policy *own = variants_find(&bound->own, subject, policy);
    return own != NULL ? own : policy;
}

struct shared_set *exceptions_blocks(const struct exceptions *exceptions)
{
    return exceptions != NULL ? exceptions->blocks : NULL;
}

const struct variants *exceptions_variants(const struct exceptions *exceptions)
{
    static const struct variants none;
    return exceptions != NULL ? &exceptions->bound->own : &none;
}
