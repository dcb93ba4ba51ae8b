/*
 * The lines of [cost]: how many units a command is in limits on cost.
 *
 * Part of a set of policies: built by one thread, bound to a command table, then only read.
 */
#ifndef WEIR_LIMIT_COST_H
#define WEIR_LIMIT_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/class.h"
#include "limit/command.h"

struct cost;

struct costs {
    struct cost *at; /* in the order of the file */
    size_t n;
    uint16_t *of; /* per command id: 1 + the index of its cost, 0 for none. Made by costs_bind */
    size_t n_of;
};

/*
 * A line: what = "100", "1 per key" or "1 per cost". `what` is a command, a category or a class; of several lines that
 * fit a command the last holds.
 */
__attribute__((warn_unused_result)) bool costs_add(struct costs *costs, struct classes *classes,
                                                   const struct command_table *table, struct slice what,
                                                   struct slice cost, char *why, size_t why_size);

/* Work out which command of `table` has which cost. */
void costs_bind(struct costs *costs, const struct command_table *table);

/*
 * The cost of one request; at least 1, at most INT64_MAX, which nobody can pay. Of one that ends early at most as many
 * keys are counted as it can have.
 */
uint64_t costs_units(const struct costs *costs, const struct command *command, struct slice request, uint32_t argc);

/* What is bound goes; the lines too, if they are its own. */
void costs_fini(struct costs *costs, bool is_owner);

#endif
