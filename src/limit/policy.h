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
#include "limit/funnel.h"
#include "limit/identity.h"

#define POLICY_MAX_LIMITS 64 /* a set of limits is one word */
#define POLICY_NAME_MAX 32

struct limit {
    const struct class *class;
    struct rate rate;
    char label[POLICY_NAME_MAX * 2 + 40]; /* "free/write": what a refusal names */
};

struct policy {
    char name[POLICY_NAME_MAX + 1];
    uint16_t index; /* in its set */
    uint16_t n_limits;
    uint16_t n_matches;
    struct limit *limits;
    struct match *matches;
    /* Per command id: bit i is set when limits[i] binds that command. Made by policies_bind. */
    uint64_t *binds;
    size_t n_binds;
    bool is_joint; /* more than one limit: decisions need the subject's lock */
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
 * Add the comma-separated limits of one line: what = "1000/s burst 2000, 10000/h". Only classes of commands with
 * `over refuse` so far: other units, `per connection|policy`, other actions and `deny` are refused by name as not yet
 * supported. All or nothing. `table` tells which classes are `control`, which cannot be refused.
 */
__attribute__((warn_unused_result)) bool policy_add_limits(struct policies *policies, struct policy *policy,
                                                           const struct command_table *table, struct slice what,
                                                           struct slice expression, char *why, size_t why_size);

/*
 * Work out which limits bind which command of `table`. A command of class control is bound only by a limit whose class
 * is control through and through. Called for each new set or new table, before it is shared; a set serves one table.
 */
void policies_bind(struct policies *policies, const struct command_table *table);

/* A copy with its own binds, for a new command table; one reference. */
struct policies *policies_rebind(struct policies *policies, const struct command_table *table);

/* The first policy whose match holds, else the one named `default`, else NULL: unlimited. */
const struct policy *policies_match(const struct policies *policies, const struct facts *facts);

size_t policies_count(const struct policies *policies);
const struct policy *policies_at(const struct policies *policies, size_t index);

#endif
