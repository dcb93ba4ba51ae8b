/*
 * What of a configuration has no effect, as can be proven without a client: policies that bind nobody, limits that
 * never refuse.
 */
#ifndef WEIR_LIMIT_IMPLY_H
#define WEIR_LIMIT_IMPLY_H

#include "limit/policy/policy.h"

/*
 * A policy that is asked before this one and binds whom the first of its terms holds for, if the same is true of each
 * of its terms; NULL: it may bind somebody. Of `default`: one that binds everybody.
 */
const struct policy *policies_covering(const struct policies *policies, const struct policy *policy);

/*
 * Does another policy, or none, bind everybody of whom these facts, all of one kind ("user"), are known, whatever
 * else is true of them? Then *other is that one; NULL: none.
 */
bool policies_bind_elsewhere(const struct policies *policies, const struct policy *policy, const struct facts *facts,
                             struct slice kind, const struct policy **other);

/*
 * Another limit of the policy, which refuses whatever limit `index` would not let pass; NULL: none that could be proven
 * to. Of two that are equal it is the first. The policy is bound to a command table: of commands that this one does not
 * know nothing is proven.
 */
const struct limit *policy_stricter(const struct policy *policy, unsigned index);

#endif
