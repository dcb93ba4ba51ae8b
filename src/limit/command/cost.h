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
    uint16_t *of; /* by command id: 1 + the index of its cost, or 0; made by costs_bind */
    size_t n_of;
};

/*
 * Add a line: what = "100", "1 per key" or "1 per cost". `what` is a command, a category or a class; if several lines
 * fit a command the last one holds. False: `why` says what is wrong.
 */
__attribute__((warn_unused_result)) bool costs_add(struct costs *costs, struct classes *classes,
                                                   const struct command_table *table, struct slice what,
                                                   struct slice cost, char *why, size_t why_size);

/* Work out which command of `table` has which cost. */
void costs_bind(struct costs *costs, const struct command_table *table);

/*
 * The cost of one request: at least 1, at most INT64_MAX, which is more than any burst. `request` and argc as in
 * keys.h; of one that is cut short keys_most counts.
 */
uint64_t costs_units(const struct costs *costs, const struct command *command, struct slice request, uint32_t argc);

/* Frees what costs_bind made; with is_owner the lines too. */
void costs_fini(struct costs *costs, bool is_owner);

#endif
