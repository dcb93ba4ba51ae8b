/* The rates of a policy's funnels: what the ledger knows of all its slots, and the policy's own limits over that. */
#include "limit/policy/policy.h"

static bool has_delay(const struct policy *policy)
{
    for (size_t i = 0; i < policy->n_limits; i++)
        if (policy->limits[i].action == OVER_DELAY)
            return true;
    return false;
}

static enum slot_queue queue_of(const struct limit *limit, bool is_shadow, bool has_clocks)
{
    if (limit_has_places(limit))
        return is_shadow ? SLOT_QUEUE_SHADOW : SLOT_QUEUE;
    return is_shadow && has_clocks ? SLOT_AHEAD : SLOT_QUEUE_NONE;
}

static struct rate_table *own_rates(const struct policy *policy, enum scope scope, const struct policies *set)
{
    struct rate_table *table = ledger_rates(policy->record, scope, policies_order(set));
    bool has_clocks = policies_delay(set) || has_delay(policy);
    for (size_t i = 0; i < policy->n_limits; i++) {
        const struct limit *limit = &policy->limits[i];
        if (limit->scope != scope)
            continue;
        slot_rate_set(&table->at[limit->slot], limit);
        table->at[limit->slot].queue = (uint8_t)queue_of(limit, policies_is_shadow(set), has_clocks);
    }
    return table;
}

void policy_get_rates(struct policy *policy)
{
    for (int scope = 0; scope < SCOPE_COUNT; scope++) {
        (void)rate_table_get(policy->rates[scope]);
        (void)rate_table_get(policy->common[scope]);
    }
}

void policy_put_rates(struct policy *policy)
{
    for (int scope = 0; scope < SCOPE_COUNT; scope++) {
        rate_table_put(policy->rates[scope]);
        rate_table_put(policy->common[scope]);
        policy->rates[scope] = policy->common[scope] = NULL;
    }
}

void policy_rate(struct policy *policy, struct rate_table *const common[SCOPE_COUNT], const struct policies *set)
{
    struct rate_table *made[SCOPE_COUNT];
    for (int scope = 0; scope < SCOPE_COUNT; scope++)
        made[scope] = own_rates(policy, (enum scope)scope, set);
    policy_put_rates(policy);
    for (int scope = 0; scope < SCOPE_COUNT; scope++) {
        policy->rates[scope] = made[scope];
        policy->common[scope] = rate_table_get(common != NULL ? common[scope] : made[scope]);
    }
}
