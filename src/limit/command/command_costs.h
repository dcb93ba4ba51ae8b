/*
 * Estimates what commands cost Redis, from INFO commandstats and INFO cpu, and stores the costs in
 * the rows of a command table.
 *
 * Each poll asks every node once (run/topology/cost_poll.h). Only the difference to the node's
 * previous answer counts.
 *
 *   cost [ns]  = fixed [ns] + 1000 * usec [us] / calls     of one row, over all nodes
 *   fixed [ns] = (CPU of main thread [ns] - 1000 * sum of usec [us]) / sum of calls, 100 to 20,000
 *
 * - Costs and the fixed part are smoothed over three polls: each poll moves a value a third of the
 *   way.
 * - A row is updated once it has had 10 calls, or has taken 100 ms, since its last update.
 * - The first value from Redis replaces the default at once. A later value changes a cost by a
 *   factor of at most 8 up or 2 down, and the fixed part by at most 2.
 * - A negative difference is ignored: CONFIG RESETSTAT has cleared the counts. Less CPU time than
 *   before means a restart.
 * - MULTI, EXEC and DISCARD cost the fixed part alone: Redis counts the queued commands in the time
 *   of EXEC.
 * - Polls with fewer than 10,000 calls leave the fixed part unchanged.
 * - Redis counts the calls within a script twice: in the script, and by themselves. If a poll spent
 *   more than a tenth of its time in scripts, the fixed part of this poll is therefore too low. The
 *   result of this poll is used only until a poll without scripts has set the fixed part.
 * - Before 7.0 Redis counts subcommands as one command: each has the cost of its container.
 *
 * The texts are untrusted: lines of an unknown form are skipped. A cost is from 100 ns to 4 s. Main
 * thread.
 */
#ifndef WEIR_LIMIT_COMMAND_COSTS_H
#define WEIR_LIMIT_COMMAND_COSTS_H

#include <stdint.h>

#include "base/slice.h"
#include "limit/command/command.h"

#define COSTS_LEAST_NS 100
#define COSTS_MOST_NS 4000000000 /* fits in 32 bits */
#define COSTS_FIXED_NS 1500      /* the initial value: between 1 and 3 us, as measured on 7.0.15 */

struct command_costs;

/* The last answer of one node. Zeroed: no answer yet. Freed with command_counts_fini. */
struct command_counts {
    struct command_count *rows; /* by id of the row; heap */
    uint64_t cpu_ns;            /* CPU time of the node's main thread; 0: not reported */
    uint32_t generation;        /* generation of the table that the rows belong to; 0: none */
};

void command_counts_fini(struct command_counts *counts);

/* Takes one reference to the table. Aborts the process if memory is out, here and below. */
struct command_costs *command_costs_new(struct command_table *table);
void command_costs_free(struct command_costs *costs);

/* Stores costs in this table from now on. command_table_carry_costs copies the known costs. */
void command_costs_set_table(struct command_costs *costs, struct command_table *table);

/*
 * Reads the CPU time of the main thread from INFO cpu, in ns. Before Redis 6.2 this is the time of
 * the process. 0: absent.
 */
uint64_t command_costs_read_cpu(struct slice text);

/*
 * Takes the answer of a node in a poll: the text of INFO commandstats, and the node's CPU time in
 * ns; 0: unknown.
 */
void command_costs_take(struct command_costs *costs, struct command_counts *counts,
                        struct slice text, uint64_t cpu_ns);

/* Ends a poll: updates the fixed part and the rows. */
void command_costs_end_poll(struct command_costs *costs);

/* The fixed part of a cost, in ns. */
uint32_t command_costs_fixed_ns(const struct command_costs *costs);

#endif
