/*
 * Asks each node of the topology once a second for its command costs
 * (limit/command/command_costs.h), and measures the round trip.
 *
 *     tick             each node is asked INFO cpu: the time until the answer is a round trip
 *     node answers     the node is asked INFO commandstats (before 7.0 INFO takes one section)
 *     all answered     the costs change; at the latest at the next tick
 *
 * A node that does not let weir run INFO is asked PING instead, and INFO in every tenth poll. Main
 * thread.
 */
#ifndef WEIR_RUN_COST_POLL_H
#define WEIR_RUN_COST_POLL_H

struct command_table;
struct controls;
struct cost_poll;

/*
 * Makes a poll for the rows of the controls' topology. The controls must outlive the poll. Sends no
 * questions yet. Out of memory ends the process.
 */
struct cost_poll *cost_poll_open(const struct controls *controls);

/* Begins to ask, and writes the costs into this table. NULL: stops. */
void cost_poll_set_table(struct cost_poll *poll, struct command_table *table);

/*
 * Asynchronous; frees itself. To be closed after the finders, or before any finder is asked again.
 */
void cost_poll_close(struct cost_poll *poll);

#endif
