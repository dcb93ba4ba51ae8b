/*
 * A policy: an immutable set of limits for the subjects that match it; and the set of all policies of a configuration.
 *
 * Built by one thread from lines of the configuration, then only read. Counted, because clients and subjects hold on
 * to it across a reload.
 */
#ifndef WEIR_LIMIT_POLICY_H
#define WEIR_LIMIT_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/class.h"
#include "limit/command.h"
#include "limit/identity.h"
#include "limit/ledger.h"
#include "limit/limit.h"

#define POLICY_MAX_LIMITS 64 /* a set of limits is one word */
#define POLICY_NAME_MAX LEDGER_NAME_MAX

struct policy {
    char name[POLICY_NAME_MAX + 1];
    uint16_t index; /* in its set */
    uint16_t n_limits;
    uint16_t n_matches;
    bool is_admin; /* whom it binds may use the operator's commands */
    struct limit *limits;
    struct match *matches;
    struct record *record; /* in the ledger */

    /* ---- made by policies_bind; in each set bit i stands for limits[i] ---- */
    uint64_t *binds; /* per command id: what is asked when the command wants to pass */
    size_t n_binds;
    uint64_t of_unit[UNIT_COUNT];
    uint64_t of_scope[SCOPE_COUNT];
    uint64_t of_action[ACTION_COUNT];
    uint64_t shadows; /* only counted: `over shadow`, and in mode shadow all */
    bool is_joint;    /* more than one limit: decisions need the subject's lock */
    bool is_plain;    /* every limit counts the subject's commands and refuses */
};

struct policies; /* in file order; owns its policies and the classes they use */

/* `classes` is owned by the set from here on. */
struct policies *policies_new(struct classes *classes);
struct policies *policies_get(struct policies *policies);
void policies_put(struct policies *policies);

/* Add a policy, or find the one of that name (sections given twice add up). NULL and `why`: a bad name, or too many. */
struct policy *policies_add(struct policies *policies, struct slice name, char *why, size_t why_size);

/* Add the comma-separated terms of a `match` line. */
__attribute__((warn_unused_result)) bool policy_add_match(struct policy *policy, struct slice terms, char *why,
                                                          size_t why_size);

/* Can it bind anybody? One without a match cannot, `default` excepted. */
bool policy_can_match(const struct policy *policy);

/*
 * Add the comma-separated limits of one line: what = "1000/s burst 2000, 10000/h", or what = "deny". All or nothing.
 * `table` tells which classes are `control`, which cannot be refused.
 */
__attribute__((warn_unused_result)) bool policy_add_limits(struct policies *policies, struct policy *policy,
                                                           const struct command_table *table, struct slice what,
                                                           struct slice expression, char *why, size_t why_size);

/* Of the whole set: nothing is refused, closed or delayed, only counted. Before policies_bind. */
void policies_set_shadow(struct policies *policies, bool is_shadow);
bool policies_is_shadow(const struct policies *policies);

/* A line of [cost], and the cost of one request: limit/cost.h. */
__attribute__((warn_unused_result)) bool policies_add_cost(struct policies *policies, const struct command_table *table,
                                                           struct slice what, struct slice cost, char *why,
                                                           size_t why_size);
uint64_t policies_cost(const struct policies *policies, const struct command *command, struct slice request,
                       uint32_t argc);

/* Find a slot and an id for every limit. False: there have been too many since the start. Once, before sharing. */
__attribute__((warn_unused_result)) bool policies_enroll(struct policies *policies, struct ledger *ledger);

/*
 * Work out which limits bind which command of `table`. A command of class control is bound only by a limit whose class
 * is control through and through. Called for each new set or new table, before it is shared; a set serves one table.
 */
void policies_bind(struct policies *policies, const struct command_table *table);

/* The same for one policy of such a set. */
void policy_bind(struct policy *policy, const struct command_table *table, bool is_shadow);

/* A copy with its own binds, for a new command table; one reference. */
struct policies *policies_rebind(struct policies *policies, const struct command_table *table);

/* The first policy whose match holds, else the one named `default`, else NULL: unlimited. */
const struct policy *policies_match(const struct policies *policies, const struct facts *facts);

/* Does any of them look at the key of a command? Then it is to be matched for each command anew. */
bool policies_match_keys(const struct policies *policies);

/* Does any of them limit connections, or connects? */
bool policies_limit_connections(const struct policies *policies);

/* The policy of that name, in any case; NULL: there is none. */
const struct policy *policies_find(const struct policies *policies, struct slice name);

/* The classes that its limits are made of. */
const struct classes *policies_classes(const struct policies *policies);

size_t policies_count(const struct policies *policies);
const struct policy *policies_at(const struct policies *policies, size_t index);

#endif
