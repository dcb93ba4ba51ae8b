/*
 * Asks masters and replicas for their replication offsets, once in every replica-poll, and notes in
 * each node how far the node is behind (upstream/node/offsets.h).
 *
 *     tick             each master is asked (a cluster has several)
 *     master answers   its replicas are asked; by then most have reached the reported offset
 *     next tick        a replica that has not answered is no longer in sync
 *
 * Workers may begin a round early (upstream_poll). Main thread.
 */
#ifndef WEIR_RUN_REPLICA_POLL_H
#define WEIR_RUN_REPLICA_POLL_H

struct controls;
struct replica_poll;

/*
 * Polls the rows of the controls' topology. The controls must outlive the poll. Out of memory ends
 * the process.
 */
struct replica_poll *replica_poll_open(const struct controls *controls);

/*
 * Asynchronous; frees itself. To be closed after the finders, or before any finder is asked again.
 */
void replica_poll_close(struct replica_poll *poll);

#endif
