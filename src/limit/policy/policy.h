/*
 * A policy: the limits for the subjects that match it. Also the set of all policies of a
 * configuration.
 *
 * One thread builds the set from lines of the configuration; then the set is immutable. The set is
 * reference-counted: clients keep it across a reload until they are bound to the next set.
 */
#ifndef WEIR_LIMIT_POLICY_H
#define WEIR_LIMIT_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command/class.h"
#include "limit/command/command.h"
#include "limit/figures/registry.h"
#include "limit/figures/observed.h"
#include "limit/policy/identity.h"
#include "limit/policy/limit.h"
#include "limit/rate_table.h"

#define POLICY_MAX_LIMITS 64 /* a set of limits is one word */
#define POLICY_NAME_MAX REGISTRY_NAME_MAX
#define POLICY_WEIGHT 100
#define POLICY_WEIGHT_MAX 10000

struct policy {
    char name[POLICY_NAME_MAX + 1];
    uint16_t index; /* index in the set */
    uint16_t n_limits;
    uint16_t n_matches;
    uint32_t weight; /* weight of the policy's subjects in fair share; POLICY_WEIGHT by default */
    /* priority = low: commands of the policy's subjects go only when no other commands wait */
    bool is_low;
    bool is_admin; /* admin = yes: the policy's clients may send admin commands */
    struct limit *limits;
    struct match *matches;
    /* the policy's counters; owned by limit/figures/registry.h */
    struct policy_state *policy_state;
    /*
     * The rates at which the funnels of the policy's subjects run, by scope. `common`: the rates of
     * subjects shared by the whole policy; for a variant the rates of its policy. Set by
     * policies_enroll.
     */
    struct rate_table *rates[SCOPE_COUNT];
    struct rate_table *common[SCOPE_COUNT];
    /*
     * The policy that applies instead of this variant on the overflow subject; NULL: none.
     * limit/policy/exceptions.c sets this field and owns the policy.
     */
    const struct policy *shared;

    /* ---- set by policies_bind: sets of limits, where bit i stands for limits[i] ---- */
    uint64_t *binds; /* by command id: the limits checked when the command asks to pass */
    size_t n_binds;
    uint64_t of_unit[UNIT_COUNT];
    uint64_t of_scope[SCOPE_COUNT];
    uint64_t of_action[ACTION_COUNT];
    /* limits in shadow mode: `over shadow`, or all but blocks with mode = shadow */
    uint64_t shadows;
    uint64_t blocks; /* the limit by which an operator has blocked the subject */
    bool is_joint;   /* more than one limit: decisions need the lock of the subject */
    /* requests cost different amounts of the unit of a limit (struct amounts) */
    bool is_measured;
    bool is_plain; /* every limit is on the subject's commands, and refuses */
    /* which commands of the policy's subjects are observed; set by policies_bind */
    struct peak_plan peak_rates;
};

struct policies; /* the policies in file order; the set owns the policies and their classes */

/* Makes an empty set with one reference. Takes ownership of `classes`. */
struct policies *policies_new(struct classes *classes);
struct policies *policies_get(struct policies *policies);
void policies_put(struct policies *policies);

/*
 * Adds a policy, or finds the policy of that name (repeated sections add up). NULL and `why`: a bad
 * name, or too many policies.
 */
struct policy *policies_add(struct policies *policies, struct slice name, char *why,
                            size_t why_size);

/*
 * Adds the comma-separated terms of a `match` line. False: nothing is added, and `why` holds the
 * reason.
 */
__attribute__((warn_unused_result)) bool policy_add_match(struct policy *policy, struct slice terms,
                                                          char *why, size_t why_size);

/*
 * Adds the comma-separated limits of one line: what = "1000/s burst 2000, 10000/h", or what =
 * "deny". False: nothing is added, and `why` holds the reason. `table` tells which classes are
 * `control`, which cannot be refused.
 */
__attribute__((warn_unused_result)) bool policy_add_limits(
    struct policies *policies, struct policy *policy, const struct command_table *table,
    struct slice what, struct slice expression, char *why, size_t why_size);

/* The left side of the limit's line in the configuration: "write", "cost". */
struct slice limit_line(const struct limit *limit);

/*
 * mode = shadow: nothing is refused, closed or delayed, only counted. Call before policies_enroll.
 */
void policies_set_shadow(struct policies *policies, bool is_shadow);
bool policies_is_shadow(const struct policies *policies);

/*
 * policies_add_cost adds a line of [cost]; policies_cost is the cost of one request:
 * limit/command/class.h.
 */
__attribute__((warn_unused_result)) bool policies_add_cost(struct policies *policies,
                                                           const struct command_table *table,
                                                           struct slice what, struct slice cost,
                                                           char *why, size_t why_size);
uint64_t policies_cost(const struct policies *policies, const struct command *command,
                       struct slice request, uint32_t argc);

/*
 * Gives every limit its index and id. Call once, before the set is shared. False: too many limits
 * since the start.
 */
__attribute__((warn_unused_result)) bool policies_enroll(struct policies *policies,
                                                         struct registry *registry);

/*
 * Both functions make rate tables, once all limits of the set have their indexes. policies_rate
 * makes the tables for all policies, and again if a variant has added indexes. policy_rate makes
 * the tables for one policy or variant.
 */
void policies_rate(struct policies *policies);
void policy_rate(struct policy *policy, struct rate_table *const common[SCOPE_COUNT],
                 const struct policies *set);
/* after a copy of the policy: takes references to the rate tables */
void policy_get_rates(struct policy *policy);
void policy_put_rates(struct policy *policy);

/*
 * Computes which limits apply to which command of `table`. Only limits that satisfy
 * class_is_control apply to a command of class control. Call once for each set, before it is
 * shared; for another table use policies_rebind.
 */
void policies_bind(struct policies *policies, const struct command_table *table);

/* policies_bind for one policy of the set, or for a variant. */
void policy_bind(struct policy *policy, struct members *members, bool is_shadow);

/* Makes a copy of the set, bound to another command table; one reference. */
struct policies *policies_rebind(struct policies *policies, const struct command_table *table);

/*
 * True if a term of the policy's match holds. False for a policy `default` that applies only
 * because no other policy does.
 */
bool policy_matches(const struct policy *policy, const struct facts *facts);

/*
 * The first policy with a match that holds, otherwise the policy `default`, otherwise NULL:
 * unlimited. Requires policies_bind.
 */
const struct policy *policies_match(const struct policies *policies, const struct facts *facts);

/* Which commands are observed of subjects without a policy. */
const struct peak_plan *policies_unlimited_peak_plan(const struct policies *policies);

/*
 * True if a match of any policy looks at a command's key. policies_match is then called for each
 * command.
 */
bool policies_match_keys(const struct policies *policies);

/* Number of match patterns that policies_match tries one by one: see limit/policy/match_index.h. */
size_t policies_patterns(const struct policies *policies);

/* Finds a policy by name; case does not matter. NULL: none. */
const struct policy *policies_find(const struct policies *policies, struct slice name);

/* The classes that the limits of the set use. */
const struct classes *policies_classes(const struct policies *policies);

/* The classes of the set, for a caller that adds classes. Only before the set is shared. */
struct classes *policies_own_classes(struct policies *policies);

size_t policies_count(const struct policies *policies);
const struct policy *policies_at(const struct policies *policies, size_t index);

/* How many units of each kind a request costs when it asks to pass. Any thread. */
struct amounts {
    uint64_t of[UNIT_COUNT];
};

/*
 * Computes the amounts of a whole request, or of the start of a large one. The amount of bytes is
 * 1. The remaining bytes are charged when they have passed.
 */
void amounts_take(struct amounts *amounts, const struct policies *policies,
                  const struct command *command, struct slice request, uint32_t argc);

#endif
