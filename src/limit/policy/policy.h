/*
 * A policy: the limits for the subjects that match it; and the set of all policies of a configuration.
 *
 * Built by one thread from lines of the configuration, then immutable. The set is reference-counted: clients keep it
 * across a reload until they are bound to the next.
 */
#ifndef WEIR_LIMIT_POLICY_H
#define WEIR_LIMIT_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command/class.h"
#include "limit/command/command.h"
#include "limit/figures/ledger.h"
#include "limit/figures/observed.h"
#include "limit/policy/identity.h"
#include "limit/policy/limit.h"
#include "limit/rate_table.h"

#define POLICY_MAX_LIMITS 64 /* a set of limits is one word */
#define POLICY_NAME_MAX LEDGER_NAME_MAX
#define POLICY_WEIGHT 100
#define POLICY_WEIGHT_MAX 10000

struct policy {
    char name[POLICY_NAME_MAX + 1];
    uint16_t index; /* in its set */
    uint16_t n_limits;
    uint16_t n_matches;
    uint32_t weight; /* of its subjects, beside others; POLICY_WEIGHT if nothing is said */
    bool is_low;     /* priority = low: its subjects' commands go when nobody else's wait */
    bool is_admin;   /* admin = yes: clients it binds may use the operators' commands */
    struct limit *limits;
    struct match *matches;
    struct record *record; /* in the ledger */
    /* At which rates its subjects' funnels run, by scope; and of a variant those of its policy. By policies_enroll. */
    struct rate_table *rates[SCOPE_COUNT];
    struct rate_table *common[SCOPE_COUNT];
    /* Of a variant: binds in its place on the overflow subject. Set and owned by limit/policy/exceptions.c; else NULL. */
    const struct policy *shared;

    /* ---- made by policies_bind: sets of limits, bit i standing for limits[i] ---- */
    uint64_t *binds; /* by command id: the limits that are asked when the command wants to pass */
    size_t n_binds;
    uint64_t of_unit[UNIT_COUNT];
    uint64_t of_scope[SCOPE_COUNT];
    uint64_t of_action[ACTION_COUNT];
    uint64_t shadows; /* in shadow mode: `over shadow`, or with mode = shadow all but blocks */
    uint64_t blocks;  /* the one by which an operator has blocked the subject */
    bool is_joint;    /* more than one limit: decisions need the subject's lock */
    bool is_measured; /* some limit is on a unit of which requests take different amounts (struct amounts) */
    bool is_plain;    /* every limit is on the subject's commands, and refuses */
    struct demand_plan demand; /* which of its subjects' commands are observed, by policies_bind */
};

struct policies; /* in file order; owns its policies and the classes they use */

/* Takes over `classes`. One reference. */
struct policies *policies_new(struct classes *classes);
struct policies *policies_get(struct policies *policies);
void policies_put(struct policies *policies);

/* Add a policy, or find the one of that name (sections given twice add up). NULL and `why`: a bad name, or too many. */
struct policy *policies_add(struct policies *policies, struct slice name, char *why, size_t why_size);

/* Add the comma-separated terms of a `match` line. */
__attribute__((warn_unused_result)) bool policy_add_match(struct policy *policy, struct slice terms, char *why,
                                                          size_t why_size);

/*
 * Add the comma-separated limits of one line: what = "1000/s burst 2000, 10000/h", or what = "deny". All or nothing.
 * `table` tells which classes are `control`, which cannot be refused.
 */
__attribute__((warn_unused_result)) bool policy_add_limits(struct policies *policies, struct policy *policy,
                                                           const struct command_table *table, struct slice what,
                                                           struct slice expression, char *why, size_t why_size);

/* The left side of its line in the configuration: "write", "cost". */
struct slice limit_line(const struct limit *limit);

/* mode = shadow: nothing is refused, closed or delayed, only counted. To be set before policies_enroll. */
void policies_set_shadow(struct policies *policies, bool is_shadow);
bool policies_is_shadow(const struct policies *policies);

/* A line of [cost], and the cost of one request: limit/command/cost.h. */
__attribute__((warn_unused_result)) bool policies_add_cost(struct policies *policies, const struct command_table *table,
                                                           struct slice what, struct slice cost, char *why,
                                                           size_t why_size);
uint64_t policies_cost(const struct policies *policies, const struct command *command, struct slice request,
                       uint32_t argc);

/* Give every limit its slot and id: once, before the set is shared. False: too many limits since the start. */
__attribute__((warn_unused_result)) bool policies_enroll(struct policies *policies, struct ledger *ledger);

/*
 * Make the rates of one of them, or of a variant (policy_rate), once all limits of the set have their slots; and of all
 * (policies_rate), anew where a variant has more slots.
 */
void policies_rate(struct policies *policies);
void policy_rate(struct policy *policy, struct rate_table *const common[SCOPE_COUNT], const struct policies *set);
void policy_get_rates(struct policy *policy); /* of a copy: its references */
void policy_put_rates(struct policy *policy);

/*
 * Work out which limits bind which command of `table`. A command of class control is bound only by limits for which
 * class_is_control holds. Once for each set, before it is shared; for another table use policies_rebind.
 */
void policies_bind(struct policies *policies, const struct command_table *table);

/* The same for one policy of the set, or a variant of one. */
void policy_bind(struct policy *policy, struct members *members, bool is_shadow);

/* A copy of the set that is bound to another command table; one reference. */
struct policies *policies_rebind(struct policies *policies, const struct command_table *table);

/* True if a term of its match holds. False for a policy `default` that binds only because no other one does. */
bool policy_matches(const struct policy *policy, const struct facts *facts);

/* The first policy whose match holds, else the one named `default`, else NULL: unlimited. Once they are bound. */
const struct policy *policies_match(const struct policies *policies, const struct facts *facts);

/* Which commands are observed of subjects that no policy binds. */
const struct demand_plan *policies_demand_unlimited(const struct policies *policies);

/* Does a match of any policy look at a command's key? Then policies_match is called for each command. */
bool policies_match_keys(const struct policies *policies);

/* How many patterns of matches policies_match tries one by one: see limit/policy/match_index.h. */
size_t policies_patterns(const struct policies *policies);

/* The policy of that name; case does not matter. NULL: none. */
const struct policy *policies_find(const struct policies *policies, struct slice name);

/* The classes that its limits use. */
const struct classes *policies_classes(const struct policies *policies);

/* The same to add to, while nobody else has the set. */
struct classes *policies_own_classes(struct policies *policies);

size_t policies_count(const struct policies *policies);
const struct policy *policies_at(const struct policies *policies, size_t index);

/* How much of each unit a request takes when it wants to pass. Any thread. */
struct amounts {
    uint64_t of[UNIT_COUNT];
};

/* Of a whole request, or the beginning of one that is cut short. Bytes: one; the rest is owed when they have passed. */
void amounts_take(struct amounts *amounts, const struct policies *policies, const struct command *command,
                  struct slice request, uint32_t argc);

#endif
