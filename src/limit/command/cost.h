/*
 * The lines of [cost]: how many units a command costs in limits on cost.
 *
 * Part of a set of policies: built by one thread, bound to a command table, then immutable.
 */
#ifndef WEIR_LIMIT_COST_H
#define WEIR_LIMIT_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command/class.h"
#include "limit/command/command.h"

struct cost;

struct costs {
    struct cost *at; /* in the order of the file */
    size_t n;
    uint16_t *of; /* by command id: 1 + the index of the cost; 0: none; made by costs_bind */
    size_t n_of;
};

/*
 * Adds a line: cost = "100", "1 per key" or "1 per cost". `what` is a command, a category or a
 * class. If several lines fit a command, the last one applies. False: `why` holds the reason.
 */
__attribute__((warn_unused_result)) bool costs_add(struct costs *costs, struct classes *classes,
                                                   const struct command_table *table, struct slice what,
                                                   struct slice cost, char *why, size_t why_size);

/* Finds the cost of each command of `table`. */
void costs_bind(struct costs *costs, const struct command_table *table);

/*
 * The cost of one request in units: at least 1, at most INT64_MAX, which is more than any burst.
 * `request` and argc are as in keys.h. The keys of a truncated request are counted by keys_most.
 */
uint64_t costs_units(const struct costs *costs, const struct command *command, struct slice request, uint32_t argc);

/* Frees what costs_bind made; with is_owner also the lines. */
void costs_fini(struct costs *costs, bool is_owner);

#endif
