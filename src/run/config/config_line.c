#include "run/config/config_line.h"

#include "base/mem.h"
#include "limit/policy/policy.h"
#include "run/config/config_keys.h"

static bool is_accepted_by_policy(const struct command_table *table, struct slice key, struct slice value)
{
    char unused[CONFIG_WHY_ROOM];
    struct policies *policies = policies_new(classes_new());
    struct policy *policy = policies_add(policies, SLICE("any"), unused, sizeof unused);
    bool is_good =
        policy != NULL && (slice_eq_nocase(key, SLICE("match"))
                               ? policy_add_match(policy, value, unused, sizeof unused)
                               : policy_add_limits(policies, policy, table, key, value, unused, sizeof unused));
    policies_put(policies);
    return is_good;
}

bool config_line_is_accepted(const void *table, enum hint_place place, struct slice key, struct slice value)
{
    char unused[CONFIG_WHY_ROOM];
    size_t i = config_key_find(place == HINT_IN_ADMIN ? SECTION_ADMIN : SECTION_WEIR, key);
    if (place == HINT_IN_POLICY || i == config_keys_count())
        return is_accepted_by_policy(table, key, value);
    struct config *config = mem_zalloc(1, sizeof *config);
    config->rules.policies = policies_new(classes_new());
    config->rules.named = named_new();
    bool is_good = value.len > 0 && config_key_set(config_key_at(i), config, value, unused, sizeof unused) != KEY_BAD;
    config_free(config);
    return is_good;
}
