/*
 * The calls of one worker that wait until a holder releases (LIMIT ACQUIRE ... WAIT). Each release is published in
 * Redis; as long as a call waits weir is subscribed to that channel.
 *
 * On a cluster the subscription is at any one master: the nodes tell each other all that is published. When it is
 * lost it is made at the next master.
 *
 * A missed message only delays: each call also tries again when the first holder's time is over. Where the subscription
 * could not be made it is tried again, a little later, and then all that wait ask once more.
 */
#ifndef WEIR_QUOTA_RELEASE_LISTENER_H
#define WEIR_QUOTA_RELEASE_LISTENER_H

#include <stdbool.h>

#include "base/bytes.h"
#include "net/alarms.h"
#include "quota/decision.h"
#include "upstream/lane/lanes.h"
#include "upstream/node/nodes.h"

struct release_listener {
    struct weir_lane base; /* where it is subscribed */
    struct nodes *nodes;
    struct login *login; /* that it logs in by, one reference; NULL: not at all */
    struct list waiting; /* struct decision, by in_listener; also while they ask again */
    char *channel;       /* heap; NULL: none yet */
    struct reply_scan scan;
    struct bytes frame; /* the frame being received, as far as it has come */
    bool is_subscribed;
    struct alarms *alarms;
    struct alarm again; /* the next try to subscribe; not set: none is needed, or one is on its way */
    void (*on_wake)(struct decision *decision); /* it should ask again */
};

/* In `alarms` there is room for one. */
void release_listener_init(struct release_listener *listener, struct nodes *nodes, struct alarms *alarms,
                           void (*on_wake)(struct decision *decision));

/* The worker has adopted another topology. If the subscription's node has gone, calls that wait ask again. */
void release_listener_adopt(struct release_listener *listener);

void release_listener_fini(struct release_listener *listener);

/* Before the call asks: from now on releases of its key are noted, or wake it. */
void release_listener_add(struct release_listener *listener, struct decision *decision);

/* The call waits: subscribe to `channel` (copied) if that has not been done. */
void release_listener_listen(struct release_listener *listener, struct slice channel);

/* Safe on a call that was not added. */
void release_listener_remove(struct release_listener *listener, struct decision *decision);

#endif
