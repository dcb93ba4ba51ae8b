/* A block is one more limit of the policy, which denies class `all`: so class control passes, as it does with any. */
#include "limit/exceptions.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"

struct exceptions {
    _Atomic unsigned holders;
    struct policies *policies; /* one reference */
    struct shared_set *blocks;     /* one reference */
    size_t n_policies;
    struct policy **blocked; /* by index of the policy, and behind them: of subjects that none binds; NULL: no blocks */
    struct variants own;     /* of single subjects */
};

/* Its subjects are observed as the policy's own are: that plan is lent to it, and the set that has it is held. */
static void lend_plan(const struct exceptions_of *of, struct policy *variant, const struct policy *policy)
{
    variant->demand = policy != NULL ? policy->demand : *policies_demand_unlimited(of->policies);
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

/* Where a policy has all the limits that there may be its last one makes room: what it lets pass is denied anyway. */
static struct policy *block(const struct exceptions_of *of, const struct policy *policy)
{
    struct policy *variant = variant_new(policy, policy != NULL ? policy->record : of->unlimited);
    lend_plan(of, variant, policy);
    size_t at = variant->n_limits < POLICY_MAX_LIMITS ? variant->n_limits++ : POLICY_MAX_LIMITS - 1U;
    variant->limits[at] = (struct limit){
        .class = class_all(of->policies),
        .id = of->block_id,
        .unit = UNIT_COMMANDS,
        .scope = PER_SUBJECT,
        .action = OVER_DENY,
        .is_block = true,
        .label = "block",
    };
    struct record *record = variant->record;
    variant->record = NULL; /* it charges nothing that the policy itself does not: its decisions need no lock more */
    policy_bind(variant, of->table, policies_is_shadow(of->policies));
    variant->record = record;
    return variant;
}

/* ---- the whole ---- */

static struct policy **block_all(const struct exceptions_of *of, size_t n_policies)
{
    struct policy **blocked = mem_zalloc(n_policies + 1, sizeof(struct policy *));
    for (size_t i = 0; i < n_policies; i++)
        blocked[i] = block(of, policies_at(of->policies, i));
    blocked[n_policies] = block(of, NULL);
    return blocked;
}

struct exceptions *exceptions_new(const struct exceptions_of *of)
{
    if (of->blocks == NULL && of->variants->n == 0)
        return NULL;
    struct exceptions *exceptions = mem_zalloc(1, sizeof *exceptions);
    atomic_init(&exceptions->holders, 1);
    exceptions->policies = policies_get(of->policies);
    exceptions->blocks = shared_set_get(of->blocks);
    exceptions->n_policies = policies_count(of->policies);
    exceptions->blocked = of->blocks != NULL ? block_all(of, exceptions->n_policies) : NULL;
    exceptions->own = variants_copy(of->variants);
    for (size_t i = 0; i < exceptions->own.n; i++) {
        struct policy *own = exceptions->own.at[i].policy;
        policy_bind(own, of->table, policies_is_shadow(of->policies));
        lend_plan(of, own, policies_at(of->policies, own->index));
    }
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
    if (exceptions == NULL || atomic_fetch_sub_explicit(&exceptions->holders, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; exceptions->blocked != NULL && i <= exceptions->n_policies; i++)
        variant_free(exceptions->blocked[i]);
    free(exceptions->blocked);
    variants_fini(&exceptions->own);
    shared_set_put(exceptions->blocks);
    policies_put(exceptions->policies);
    free(exceptions);
}

const struct policy *exceptions_policy(const struct exceptions *exceptions, const struct policy *policy,
                                       struct slice subject)
{
    if (blocks_find(exceptions->blocks, subject) != NULL)
        return exceptions->blocked[policy != NULL ? policy->index : exceptions->n_policies];
    const struct policy *own = variants_find(&exceptions->own, subject, policy);
    return own != NULL ? own : policy;
}

struct shared_set *exceptions_blocks(const struct exceptions *exceptions)
{
    return exceptions != NULL ? exceptions->blocks : NULL;
}

const struct variants *exceptions_variants(const struct exceptions *exceptions)
{
    static const struct variants none;
    return exceptions != NULL ? &exceptions->own : &none;
}
