/*
 * Which limits of a policy bind which command: a set of limits for each row of a command table.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "limit/policy/amount.h"
#include "limit/command/keys.h"
#include "limit/policy/policy.h"

/* Is the limit asked when a command wants to pass, which may be of its class? (Others are asked at connects, logins ...) */
static bool is_asked(const struct limit *limit, bool is_of_class, const struct command *command)
{
    enum unit unit = (enum unit)limit->unit;
    if (unit == UNIT_COMMANDS)
        return is_of_class;
    if (unit == UNIT_INFLIGHT)
        return !command->blocks || keys_may_block(command); /* while they block they are not in flight */
    return unit_is_taken(unit) || unit_is_bytes(unit);
}

static void bind_limit(struct policy *policy, size_t index, struct members *members)
{
    const struct command_table *table = members_table(members);
    const struct limit *limit = &policy->limits[index];
    bool is_control = limit->class != NULL && class_is_control(limit->class, table);
    const bool *of_class = limit->unit == UNIT_COMMANDS ? members_of(members, limit->class) : NULL;
    uint64_t bit = UINT64_C(1) << index;
    for (size_t id = 0; id < policy->n_binds; id++) {
        const struct command *command = command_table_row(table, id);
        bool is_exempt = (command->flags & CMD_CONTROL) && !is_control;
        if (!is_exempt && is_asked(limit, of_class != NULL && of_class[id], command))
            policy->binds[id] |= bit;
    }
    policy->is_measured |= amount_varies((enum unit)limit->unit);
    policy->of_unit[limit->unit] |= bit;
    policy->of_scope[limit->scope] |= bit;
    policy->of_action[limit->action] |= bit;
    policy->blocks |= limit->is_block ? bit : 0;
}

void policy_bind(struct policy *policy, struct members *members, bool is_shadow)
{
    free(policy->binds);
    policy->n_binds = command_table_count(members_table(members));
    policy->binds = mem_zalloc(policy->n_binds, sizeof *policy->binds);
    memset(policy->of_unit, 0, sizeof policy->of_unit);
    memset(policy->of_scope, 0, sizeof policy->of_scope);
    memset(policy->of_action, 0, sizeof policy->of_action);
    policy->is_measured = false;
    policy->blocks = 0;
    /* Independent of the table: workers that change tables at different moments must agree. */
    policy->is_joint = policy->n_limits > 1;
    uint64_t all = 0;
    for (size_t i = 0; i < policy->n_limits; i++) {
        bind_limit(policy, i, members);
        all |= UINT64_C(1) << i;
    }
    policy->shadows = is_shadow ? all & ~policy->blocks : policy->of_action[OVER_SHADOW];
    policy->is_plain = policy->shadows == 0 && policy->of_unit[UNIT_COMMANDS] == all &&
                       policy->of_scope[PER_SUBJECT] == all && policy->of_action[OVER_REFUSE] == all;
    if (policy->record != NULL && (policy->is_joint || !policy->is_plain))
        atomic_store_explicit(&policy->record->is_locked, true, memory_order_relaxed);
}
