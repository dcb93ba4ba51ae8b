/*
 * Who waits for a place that somebody else holds (LIMIT ACQUIRE ... WAIT), and how they hear that one has become free:
 * a release is published, and while anybody waits weir subscribes to that.
 *
 * Hearing nothing loses nothing: each also tries again when the first holder's time is over.
 */
#ifndef WEIR_QUOTA_WAKES_H
#define WEIR_QUOTA_WAKES_H

#include <stdbool.h>

#include "base/bytes.h"
#include "quota/quota.h"

struct wakes {
    struct lanes *lanes;
    struct lane_key lane_key;
    struct rider rider;
    struct link hollow;
    struct list waiting; /* struct quota_call, by in_wakes, also while they ask */
    char *channel;       /* heap; NULL: none yet */
    struct reply_scan scan;
    struct bytes frame; /* as far as it has come */
    bool is_open;
    bool is_subscribed;
    /* A place may be free for this call. */
    void (*on_wake)(struct quota_call *call);
};

/* `login` is kept. */
void wakes_init(struct wakes *wakes, struct lanes *lanes, struct login *login,
                void (*on_wake)(struct quota_call *call));
void wakes_fini(struct wakes *wakes);

/* It is going to ask whether a place is free, and to wait if there is none: from now on it is told of releases. */
void wakes_add(struct wakes *wakes, struct quota_call *call);

/* It waits. `channel` is where releases are published. */
void wakes_listen(struct wakes *wakes, struct slice channel);

/* Safe on one that does not wait. */
void wakes_remove(struct wakes *wakes, struct quota_call *call);

#endif
