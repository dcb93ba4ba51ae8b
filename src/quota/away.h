/*
 * A Redis that is away or cannot decide: what its errors say, and what becomes of LIMIT calls then.
 *
 * Called on any worker; what is counted meanwhile (quota/local.h) is shared by all.
 */
#ifndef WEIR_QUOTA_AWAY_H
#define WEIR_QUOTA_AWAY_H

#include "quota/decision.h"
#include "quota/denials.h"

/*
 * What an error reply to one of weir's scripts says of the server.
 *
 * Invariant: UNABLE_NOT_RUN only where nothing has been written. weir's scripts end with the error of their first
 * write, so a server that takes no writes has changed nothing.
 */
enum unable {
    UNABLE_NO,           /* another error: of the call, or of weir's rights */
    UNABLE_NOT_RUN,      /* -READONLY, -LOADING, -MASTERDOWN: it is no master now; the call may be asked again */
    UNABLE_REDIRECTED,   /* -MOVED, -ASK: of a cluster; not run, another node is to be asked */
    UNABLE_TRY_AGAIN,    /* -TRYAGAIN: of a cluster; not run, as only some of its keys are here */
    UNABLE_CLUSTER_DOWN, /* -CLUSTERDOWN: not run, as no node serves the slot, or the node does not know */
    UNABLE_TO_DECIDE, /* -OOM, -BUSY, -MISCONF, -NOREPLICAS: a master that cannot decide; the call is not asked again */
};

/* `error` is a whole error reply. Redis 6.2 names the code behind the place in the script, which none of a cluster's is. */
enum unable unable_of(struct slice error);

/* What becomes of a call that Redis does not decide, by when-down of its limits. */
enum away {
    AWAY_ERROR,   /* error: it is not decided */
    AWAY_UNASKED, /* allow or deny: it passes or is refused, at once */
    AWAY_COUNTED, /* local: it has been counted in weir, and may have to wait */
};

/*
 * With several limits the strictest setting holds: error, then deny; else those with local are counted, all or nothing,
 * and those with allow pass.
 */
enum away away_decide(const struct decision *decision, const struct quota_settings *settings, struct local_time time,
                      struct quota_outcome *outcome);

/* True if the decision's limits have when-error = down, and this error reply says that Redis is there and cannot decide. */
bool away_means(const struct decision *decision, struct slice error);

#endif
