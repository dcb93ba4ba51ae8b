/*
 * What commands cost Redis, as it tells in INFO commandstats and INFO cpu: in the rows of a command table.
 *
 * Every node is asked once in a poll (run/topology/cost_poll.h). Only the difference to what it told before counts.
 *
 *   cost [ns]  = fixed [ns] + 1000 * usec [us] / calls     of one row, over all nodes
 *   fixed [ns] = (CPU of the main thread [ns] - 1000 * sum of usec [us]) / sum of calls, 100 to 20,000
 *
 * - Costs and the fixed part are smoothed over three polls: each moves them by a third of the way.
 * - A row counts once it had 10 calls, or took 100 ms, since it counted last.
 * - The first value that Redis tells replaces the default at once. Later ones at most double it, and at
 *   most halve it.
 * - A difference below 0 is left out: CONFIG RESETSTAT. Less CPU than before is a restart.
 * - MULTI, EXEC and DISCARD cost the fixed part alone: Redis counts in EXEC's time what it queued.
 * - The fixed part stays in polls with fewer than 10,000 calls.
 * - Redis counts the calls in a script once more for themselves, so a poll with a tenth of its time in
 *   scripts tells too little. It counts only until a poll without scripts has told the fixed part.
 * - Before 7.0 Redis counts subcommands as one command: each has the cost of its container.
 *
 * Texts may be anything: what is no such line is left out; a cost is from 100 ns to 4 s. Main thread.
 */
#ifndef WEIR_LIMIT_COMMAND_COSTS_H
#define WEIR_LIMIT_COMMAND_COSTS_H

#include <stdint.h>

#include "base/slice.h"
#include "limit/command/command.h"

#define COSTS_LEAST_NS 100
#define COSTS_MOST_NS 4000000000 /* fits 32 bits */
#define COSTS_FIXED_NS 1500      /* until it is known: between 1 and 3 us, as measured on 7.0.15 */

struct command_costs;

/* What one node told last. Zeroed: nothing; command_counts_fini frees. */
struct command_counts {
    struct command_count *rows; /* by the id of the row; heap */
    uint64_t cpu_ns;            /* of its main thread; 0: it does not tell */
    uint32_t generation;        /* of the table that has these rows; 0: none */
};

void command_counts_fini(struct command_counts *counts);

/* One reference to the table. Out of memory ends the process, here and below. */
struct command_costs *command_costs_new(struct command_table *table);
void command_costs_free(struct command_costs *costs);

/* Costs go into this table from now on. What is known: command_table_carry_costs. */
void command_costs_set_table(struct command_costs *costs, struct command_table *table);

/* What INFO cpu says of the main thread, or before 6.2 of the process, in ns; 0: nothing. */
uint64_t command_costs_read_cpu(struct slice text);

/* What a node says in a poll: the text of INFO commandstats, and its CPU time; 0: not known. */
void command_costs_take(struct command_costs *costs, struct command_counts *counts, struct slice text, uint64_t cpu_ns);

/* Every node has told what it will. */
void command_costs_end_poll(struct command_costs *costs);

/* The fixed part of a cost, in ns. */
uint32_t command_costs_fixed_ns(const struct command_costs *costs);

#endif
