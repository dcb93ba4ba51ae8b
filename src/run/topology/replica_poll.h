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

#include <stddef.h>

#include "net/loop.h"
#include "run/topology/finder.h"
#include "upstream/upstream.h"

struct replica_poll;

struct replica_poll_ops {
    /*
     * The finder of a row of the topology, and the row of its master; of row 0 NULL while there is no master. *is_row is
     * false beyond the last.
     */
    struct finder *(*finder)(void *arg, size_t row, bool *is_row, size_t *master);
};

/* The upstream and ops outlive it. Out of memory ends the process. */
struct replica_poll *replica_poll_open(struct loop *loop, struct upstream *upstream, const struct replica_poll_ops *ops,
                                       void *arg);

/* Asynchronous; frees itself. Closed after the finders, or before these are asked anything again. */
void replica_poll_close(struct replica_poll *poll);

#endif
