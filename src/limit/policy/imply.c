/*
 * A limit is without effect beside a stricter limit. The stricter limit applies to the same
 * commands or more, has no larger burst and no higher rate, and refuses at once. Every command that
 * passes the stricter limit therefore also passes the other limit.
 */
#include "limit/policy/imply.h"

/* ---- policies ---- */

/*
 * The first policy before `end` with a term that covers `narrow`. If `narrow` is NULL: with a term
 * that holds for all clients.
 */
static const struct policy *first_covering(const struct policies *policies, size_t end,
                                           const struct match *narrow)
{
    for (size_t i = 0; i < end; i++) {
        const struct policy *policy = policies_at(policies, i);
        for (size_t j = 0; j < policy->n_matches; j++)
            if (narrow != NULL ? match_covers(&policy->matches[j], narrow)
                               : match_is_of_all(&policy->matches[j]))
                return policy;
    }
    return NULL;
}

const struct policy *policies_covering(const struct policies *policies, const struct policy *policy)
{
    if (policy->n_matches == 0)
        return first_covering(policies, policies_count(policies), NULL);
    const struct policy *first = first_covering(policies, policy->index, &policy->matches[0]);
    for (size_t i = 1; first != NULL && i < policy->n_matches; i++)
        if (first_covering(policies, policy->index, &policy->matches[i]) == NULL)
            return NULL;
    return first;
}

/* True if a term of the policy looks at a fact of another kind. */
static bool looks_elsewhere(const struct policy *policy, struct slice kind)
{
    for (size_t i = 0; i < policy->n_matches; i++)
        if (!slice_eq(slice_str(match_kind(&policy->matches[i])), kind))
            return true;
    return false;
}

bool policies_bind_elsewhere(const struct policies *policies, const struct policy *policy,
                             const struct facts *facts, struct slice kind,
                             const struct policy **other)
{
    *other = policies_match(policies, facts);
    if (*other == policy)
        return false;
    bool is_default = policy->n_matches == 0,
         is_by_match = *other != NULL && (*other)->n_matches > 0;
    if (is_by_match && (is_default || (*other)->index < policy->index))
        return true;
    return !is_default && !looks_elsewhere(policy, kind);
}

/* ---- limits ---- */

/* True if limit `wide` applies to every command to which `narrow` applies. */
static bool sees_as_many(const struct policy *policy, unsigned wide, unsigned narrow)
{
    for (size_t id = 0; id < policy->n_binds; id++)
        if ((policy->binds[id] >> narrow & 1) != 0 && (policy->binds[id] >> wide & 1) == 0)
            return false;
    return true;
}

/*
 * True if `strict` never lets units pass faster than `loose`. Intervals are rounded up unless the
 * rate is fine.
 */
static bool is_no_faster(const struct rate *strict, const struct rate *loose)
{
    if (strict->count == loose->count && strict->period_ns == loose->period_ns)
        return true;
    if (!rate_is_fine(strict))
        return strict->interval_ns >= loose->interval_ns;
    return (unsigned __int128)loose->interval_ns * strict->count <= strict->period_ns;
}

static bool has_no_more_room(const struct limit *strict, const struct limit *loose)
{
    if (strict->action == OVER_DENY)
        return true;
    if (strict->rate.burst > loose->rate.burst)
        return false;
    return unit_is_gauge((enum unit)strict->unit) || is_no_faster(&strict->rate, &loose->rate);
}

/*
 * A limit that delays proves nothing: delayed commands leave a little late, and therefore a little
 * closer together.
 */
static bool refuses_at_once(const struct limit *limit)
{
    return limit->action == OVER_REFUSE || limit->action == OVER_CLOSE ||
           limit->action == OVER_DENY;
}

static bool is_implied(const struct policy *policy, unsigned index, unsigned by)
{
    const struct limit *loose = &policy->limits[index], *strict = &policy->limits[by];
    /* shadow mode only counts */
    bool can_refuse = loose->action != OVER_DENY && loose->action != OVER_SHADOW;
    return by != index && strict->unit == loose->unit && can_refuse && refuses_at_once(strict) &&
           (strict->scope == loose->scope || strict->scope == PER_POLICY ||
            strict->action == OVER_DENY) &&
           has_no_more_room(strict, loose) && sees_as_many(policy, by, index);
}

const struct limit *policy_stricter(const struct policy *policy, unsigned index)
{
    for (unsigned by = 0; by < policy->n_limits; by++)
        if (is_implied(policy, index, by) && !(by > index && is_implied(policy, by, index)))
            return &policy->limits[by];
    return NULL;
}
