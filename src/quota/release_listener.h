/*
 * The calls of one worker that wait for a place (LIMIT ACQUIRE ... WAIT), and how they hear that one has come free:
 * each release is published in Redis, and as long as a call waits weir subscribes to that.
 *
 * A message that is missed delays, and loses nothing: each call also tries again when the first holder's time is
 * over.
 */
#ifndef WEIR_QUOTA_RELEASE_LISTENER_H
#define WEIR_QUOTA_RELEASE_LISTENER_H

#include <stdbool.h>

#include "base/bytes.h"
#include "quota/decision.h"
#include "upstream/lanes.h"

struct release_listener {
    struct lanes *lanes;
    struct lane_key lane_key;
    struct rider rider;
    struct link hollow;
    struct list waiting; /* struct decision, by in_listener, also while they ask */
    char *channel;       /* heap; NULL: none yet */
    struct reply_scan scan;
    struct bytes frame; /* as far as it has come */
    bool is_open;
    bool is_subscribed;
    /* A place may be free for this call. */
    void (*on_wake)(struct decision *call);
};

/* `login` is kept. */
void release_listener_init(struct release_listener *listener, struct lanes *lanes, struct login *login,
                           void (*on_wake)(struct decision *call));
void release_listener_fini(struct release_listener *listener);

/* It is going to ask whether a place is free, and to wait if there is none: from now on it is told of releases. */
void release_listener_add(struct release_listener *listener, struct decision *call);

/* It waits. `channel` is where releases are published. */
void release_listener_listen(struct release_listener *listener, struct slice channel);

/* Safe on one that does not wait. */
void release_listener_remove(struct release_listener *listener, struct decision *call);

#endif
