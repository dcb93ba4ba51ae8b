/* A block is one more limit of the policy, which denies class `all`: so class control passes, as it does with any. */
#include "limit/exceptions.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct exceptions {
    _Atomic unsigned holders;
    struct policies *policies; /* one reference */
    struct blocks *blocks;     /* one reference */
    size_t n_policies;
    struct policy **blocked; /* by index of the policy, and behind them: of subjects that none binds; NULL: no blocks */
};

/* ---- variants ---- */

/* A copy of the policy, or of none, with room for one more limit, bound to no table. */
static struct policy *vary(const struct policy *policy, struct record *unlimited)
{
    struct policy *variant = mem_zalloc(1, sizeof *variant);
    if (policy != NULL)
        *variant = *policy;
    else
        *variant = (struct policy){.weight = POLICY_WEIGHT, .record = unlimited};
    variant->limits = mem_zalloc(variant->n_limits + 1U, sizeof *variant->limits);
    if (policy != NULL && policy->n_limits > 0)
        memcpy(variant->limits, policy->limits, policy->n_limits * sizeof *policy->limits);
    variant->matches = NULL;
    variant->n_matches = 0;
    variant->binds = NULL;
    return variant;
}

static void variant_free(struct policy *variant)
{
    free(variant->limits);
    free(variant->binds);
    free(variant);
}

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
    struct policy *variant = vary(policy, of->unlimited);
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

struct exceptions *exceptions_new(const struct exceptions_of *of)
{
    if (of->blocks == NULL)
        return NULL;
    struct exceptions *exceptions = mem_zalloc(1, sizeof *exceptions);
    atomic_init(&exceptions->holders, 1);
    exceptions->policies = policies_get(of->policies);
    exceptions->blocks = blocks_get(of->blocks);
    exceptions->n_policies = policies_count(of->policies);
    exceptions->blocked = mem_zalloc(exceptions->n_policies + 1, sizeof(struct policy *));
    for (size_t i = 0; i < exceptions->n_policies; i++)
        exceptions->blocked[i] = block(of, policies_at(of->policies, i));
    exceptions->blocked[exceptions->n_policies] = block(of, NULL);
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
    for (size_t i = 0; i <= exceptions->n_policies; i++)
        variant_free(exceptions->blocked[i]);
    free(exceptions->blocked);
    blocks_put(exceptions->blocks);
    policies_put(exceptions->policies);
    free(exceptions);
}

const struct policy *exceptions_policy(const struct exceptions *exceptions, const struct policy *policy,
                                       struct slice subject)
{
    if (blocks_find(exceptions->blocks, subject) == NULL)
        return policy;
    return exceptions->blocked[policy != NULL ? policy->index : exceptions->n_policies];
}

struct blocks *exceptions_blocks(const struct exceptions *exceptions)
{
    return exceptions != NULL ? exceptions->blocks : NULL;
}
