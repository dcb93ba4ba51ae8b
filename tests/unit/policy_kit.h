/*
 * Policies for tests, as lines of a configuration: a failing line ends the test and says why.
 */
#ifndef WEIR_TESTS_POLICY_KIT_H
#define WEIR_TESTS_POLICY_KIT_H

#include "limit/policy.h"

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

static inline void kit_limit(struct policies *policies, struct policy *policy, const struct command_table *table,
                             const char *what, const char *expression)
{
    char why[256] = "";
    if (!policy_add_limits(policies, policy, table, slice_str(what), slice_str(expression), why, sizeof why))
        fail_msg("%s = %s: %s", what, expression, why);
}

static inline const struct command *kit_command(const struct command_table *table, const char *name)
{
    const struct command *command = command_by_name(table, slice_str(name));
    if (!command)
        fail_msg("no command %s", name);
    return command;
}

#endif
