/*
 * Policies for tests, written as lines of a configuration. A wrong line fails the test with its
 * error.
 */
#ifndef WEIR_TESTS_POLICY_KIT_H
#define WEIR_TESTS_POLICY_KIT_H

#include "limit/gate.h"
#include "limit/figures/registry.h"
#include "limit/policy/policy.h"
#include "limit/subjects.h"

static inline struct policy *kit_policy(struct policies *policies, const char *name)
{
    char why[256] = "";
    struct policy *policy = policies_add(policies, slice_str(name), why, sizeof why);
    if (!policy)
        fail_msg("[policy %s]: %s", name, why);
    return policy;
}

static inline void kit_match(struct policy *policy, const char *terms)
{
    char why[256] = "";
    if (!policy_add_match(policy, slice_str(terms), why, sizeof why))
        fail_msg("match = %s: %s", terms, why);
}

static inline void kit_limit(struct policies *policies, struct policy *policy,
                             const struct command_table *table, const char *what,
                             const char *expression)
{
    char why[256] = "";
    if (!policy_add_limits(policies, policy, table, slice_str(what), slice_str(expression), why,
                           sizeof why))
        fail_msg("%s = %s: %s", what, expression, why);
}

static inline void kit_cost(struct policies *policies, const struct command_table *table,
                            const char *what, const char *cost)
{
    char why[256] = "";
    if (!policies_add_cost(policies, table, slice_str(what), slice_str(cost), why, sizeof why))
        fail_msg("[cost] %s = %s: %s", what, cost, why);
}

/* Must be called before the first decision. */
static inline void kit_bind(struct policies *policies, struct registry *registry,
                            const struct command_table *table)
{
    if (!policies_enroll(policies, registry))
        fail_msg("no room in the ledger");
    policies_bind(policies, table);
}

static inline const struct command *kit_command(const struct command_table *table, const char *name)
{
    const struct command *command = command_by_name(table, slice_str(name));
    if (!command)
        fail_msg("no command %s", name);
    return command;
}

/* The charge target of a new connection of the subject `name`. The caller gives the target back. */
static inline struct charge_target kit_target(struct subjects *subjects,
                                              const struct policy *policy, const char *name,
                                              uint64_t now_ns)
{
    struct charge_target target = {.policy = policy};
    target.holders[PER_SUBJECT] =
        subject_get(subjects, policy->policy_state, slice_str(name), now_ns);
    target.holders[PER_CONNECTION] = subject_new_detached(policy->policy_state, PER_CONNECTION);
    target.holders[PER_POLICY] =
        policy->of_scope[PER_POLICY] ? policy->policy_state->everybody : NULL;
    return target;
}

static inline void kit_target_put(struct subjects *subjects, struct charge_target *target)
{
    subject_put(subjects, target->holders[PER_SUBJECT]);
    subject_free_detached(target->holders[PER_CONNECTION]);
}

/* The charge target of the same connection under a newer set of policies, as after a reload. */
static inline struct charge_target kit_target_under(const struct charge_target *target,
                                                    const struct policy *policy)
{
    struct charge_target next = *target;
    next.policy = policy;
    if (!subject_grow(next.holders[PER_SUBJECT]) || !subject_grow(next.holders[PER_CONNECTION]))
        fail_msg("out of memory");
    next.holders[PER_POLICY] =
        policy->of_scope[PER_POLICY] ? policy->policy_state->everybody : NULL;
    return next;
}

/* The word of the funnel of limit `index`. */
static inline uint64_t kit_word(const struct charge_target *target, size_t index)
{
    const struct limit *limit = &target->policy->limits[index];
    return atomic_load(&subject_funnel(target->holders[limit->scope], limit->slot)->tat_ns);
}

#endif
