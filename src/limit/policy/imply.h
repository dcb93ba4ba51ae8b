/*
 * Finds parts of a configuration that provably have no effect: policies that apply to no client,
 * and limits that never refuse.
 */
#ifndef WEIR_LIMIT_IMPLY_H
#define WEIR_LIMIT_IMPLY_H

#include "limit/policy/policy.h"

/*
 * Returns an earlier policy that applies to every client for which the first term of `policy`
 * holds. Each further term must be covered by an earlier policy too. NULL: `policy` may apply to a
 * client. For `default`: returns a policy that applies to every client.
 */
const struct policy *policies_covering(const struct policies *policies,
                                       const struct policy *policy);

/*
 * True if `policy` never applies to clients with these facts, all of one kind ("user"), whatever
 * their other facts. *other is the policy that applies to these clients; NULL: none.
 */
bool policies_bind_elsewhere(const struct policies *policies, const struct policy *policy,
                             const struct facts *facts, struct slice kind,
                             const struct policy **other);

/*
 * Returns another limit of the policy that refuses everything that limit `index` would not let
 * pass. NULL: weir can prove this of no limit. Of two equal limits the first is returned. The
 * policy is bound to a command table. The result says nothing about commands outside that table.
 */
const struct limit *policy_stricter(const struct policy *policy, unsigned index);

#endif
