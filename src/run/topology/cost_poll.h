/*
 * Asks each node of the topology once a second what commands cost it (limit/command/command_costs.h), and how far it
 * is.
 *
 *     tick             each node is asked INFO cpu: the time until its answer is a trip
 *     it has told      the same node is asked INFO commandstats: before 7.0 INFO takes one section
 *     all have told    costs change; at the latest at the next tick
 *
 * A node that does not let weir run INFO is asked PING instead, and INFO every ten polls. Main thread.
 */
#ifndef WEIR_RUN_COST_POLL_H
#define WEIR_RUN_COST_POLL_H

struct command_table;
struct controls;
struct cost_poll;

/* Of the rows of the controls' topology; the controls outlive it. It asks nothing yet. Out of memory ends the process. */
struct cost_poll *cost_poll_open(const struct controls *controls);

/* Ask from now on, and write costs into this table. NULL: ask no more. */
void cost_poll_set_table(struct cost_poll *poll, struct command_table *table);

/* Asynchronous; frees itself. Closed after the finders, or before these are asked anything again. */
void cost_poll_close(struct cost_poll *poll);

#endif
