/*
 * What LIMIT calls get while Redis is unavailable or cannot decide, and which errors of Redis say
 * that Redis cannot decide.
 *
 * Thread: any worker's. All workers share the local counters (quota/local.h).
 */
#ifndef WEIR_QUOTA_AWAY_H
#define WEIR_QUOTA_AWAY_H

#include "quota/decision.h"
#include "quota/denials.h"

/*
 * What an error reply to one of weir's scripts says about the server.
 *
 * Invariant: UNABLE_NOT_RUN only if nothing has been written. weir's scripts end with the error of
 * their first write, so a server that accepts no writes has changed nothing.
 */
enum unable {
    UNABLE_NO, /* another error: of the call, or of weir's rights */
    /* -READONLY, -LOADING, -MASTERDOWN: no master now; the call may be retried */
    UNABLE_NOT_RUN,
    UNABLE_REDIRECTED, /* -MOVED, -ASK: of a cluster; not run, and another node is named */
    /* -TRYAGAIN: of a cluster; not run, since only some keys of the call are at this node */
    UNABLE_TRY_AGAIN,
    /*
     * -CLUSTERDOWN: not run, since no node serves the slot, or this node does not know which node
     * serves the slot
     */
    UNABLE_CLUSTER_DOWN,
    /* -OOM, -BUSY, -MISCONF, -NOREPLICAS: a master that cannot decide; the call is not retried */
    UNABLE_TO_DECIDE,
};

/*
 * `error` is a whole error reply. Redis 6.2 puts most codes behind the line of the script. The
 * codes of a cluster always come first.
 */
enum unable unable_of(struct slice error);

/* How a call that Redis does not decide is answered, by when-down of the call's limits. */
enum away {
    AWAY_ERROR,   /* error: the call is not decided */
    AWAY_UNASKED, /* allow or deny: the call passes or is refused, at once */
    AWAY_COUNTED, /* local: weir has counted the call, which may have to wait */
};

/*
 * Decides the call without Redis. With several limits the strictest setting applies: error first,
 * then deny. Otherwise the limits with local are counted, all or nothing, and the limits with allow
 * pass.
 */
enum away away_decide(const struct decision *decision, const struct quota_settings *settings,
                      struct local_time time, struct quota_outcome *outcome);

/*
 * True if all limits of the decision have when-error = down, and this error reply says that Redis
 * is reachable and cannot decide.
 */
bool away_means(const struct decision *decision, struct slice error);

#endif
