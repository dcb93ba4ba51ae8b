/*
 * What an error reply to one of weir's scripts says of the server: it is there, and cannot decide now.
 *
 * Invariant: UNABLE_NOT_RUN only where nothing has been written. weir's scripts end with the error of their first
 * write, so a server that takes no writes has changed nothing. Pure; any thread.
 */
#ifndef WEIR_QUOTA_UNABLE_H
#define WEIR_QUOTA_UNABLE_H

#include "base/slice.h"

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

#endif
