/*
 * Asks master and replicas how far they are, once in every replica-poll, and notes in each node how far it is behind
 * (upstream/node/offsets.h).
 *
 *     tick            each master is asked (of a cluster there are several)
 *     it has told     each replica is asked: most have what the master has just told
 *     next tick       a replica that has not answered does not follow any more
 *
 * Workers may have a round begun before its time (upstream_poll). Main thread.
 */
#ifndef WEIR_RUN_REPLICA_POLL_H
#define WEIR_RUN_REPLICA_POLL_H

struct controls;
struct replica_poll;

/* Of the rows of the controls' topology; the controls outlive it. Out of memory ends the process. */
struct replica_poll *replica_poll_open(const struct controls *controls);

/* Asynchronous; frees itself. Closed after the finders, or before these are asked anything again. */
void replica_poll_close(struct replica_poll *poll);

#endif
