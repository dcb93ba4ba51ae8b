/*
 * Batches that Redis has not run, and those that wait behind one of these about the same key: each is asked again,
 * until it is decided or its wait is over.
 *
 *   READONLY, LOADING, MASTERDOWN   each 50 ms until failover-wait is over, at another node if that is the master by
 *   then CLUSTERDOWN                     after 10 .. 100 ms until failover-wait is over; the topology is asked for
 *   MOVED                           at once at the node that it names, which serves the slot from now on; the
 *   topology is
 *                                   asked for. An address that is no other master's: as CLUSTERDOWN
 *   ASK                             at once at the node that it names, behind ASKING
 *   TRYAGAIN                        each key by itself; a call on several keys after 1 .. 50 ms until redirect-timeout
 *
 * A sixth MOVED or ASK, or one for another slot, is the end: `-UPSTREAM moved`. What a cluster has not decided in time
 * counts as unanswered: limit-when-down. Decided once: only what Redis says that it has not run is asked again.
 * One alarm, for the batch that is due first. Owner: the exchange; the worker's thread.
 */
#ifndef WEIR_QUOTA_HELD_H
#define WEIR_QUOTA_HELD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "net/alarms.h"
#include "quota/routes.h"

#define HELD_ALARMS 1

struct held {
    struct list batches; /* struct batch by in_exchange, by batch.order */
    struct alarm alarm;
    struct routes *routes;
};

/* The routes' alarms have room for HELD_ALARMS. */
void held_init(struct held *held, struct routes *routes);
void held_fini(struct held *held); /* its batches are dropped with their calls */

static inline bool held_is_empty(const struct held *held)
{
    return list_is_empty(&held->batches);
}

/* A batch in no list was answered with this error: it fails, or is asked again. */
void held_take_error(struct held *held, struct batch *batch, struct slice error);

/* There is no connection to its node; `error` says why. */
void held_take_lack(struct held *held, struct batch *batch, struct slice error, bool is_away);

/* It waits with one of these that it must not overtake. False: it has failed. */
bool held_put_behind(struct held *held, struct batch *batch, const struct batch *before);

/* All are asked again now: there are other nodes. */
void held_ask_all(struct held *held);

#endif
