/*
 * The calls of one worker that wait for a release (LIMIT ACQUIRE ... WAIT). Each release is
 * published on a channel of Redis, to which weir is subscribed as long as a call waits.
 *
 * On a cluster the subscription is at one master, since the nodes broadcast all messages to each
 * other. When the subscription is lost, weir subscribes at the next master.
 *
 * A missed message only delays a call, which also retries when the first holder's time ends. If a
 * subscription fails, weir retries after AGAIN_NS, and then all waiting calls are tried again.
 *
 * Owner: struct quota. Thread: the worker's.
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
    struct weir_lane base; /* the lane of the subscription */
    struct nodes *nodes;
    struct login *login; /* login of the lane, one reference; NULL: no login */
    struct list waiting; /* struct decision, by in_listener; also decisions being retried */
    char *channel;       /* heap; NULL: none yet */
    struct reply_scan scan;
    struct bytes frame; /* the frame being received, as far as it has arrived */
    bool is_subscribed;
    struct alarms *alarms;
    /* alarm for the next try to subscribe; not set: no try is needed, or a try is in progress */
    struct alarm again;
    void (*on_wake)(struct decision *decision); /* the call should be tried again */
};

/* `alarms` has room for one more alarm. */
void release_listener_init(struct release_listener *listener, struct nodes *nodes,
                           struct alarms *alarms, void (*on_wake)(struct decision *decision));

/*
 * Called when the worker has adopted another topology. If the subscription's node is gone, waiting
 * calls are tried again.
 */
void release_listener_adopt(struct release_listener *listener);

void release_listener_fini(struct release_listener *listener);

/*
 * Called before the call is sent to Redis. From now on a release of the call's key wakes the call.
 */
void release_listener_add(struct release_listener *listener, struct decision *decision);

/* Called when a call waits: subscribes to `channel` (copied), unless already subscribed. */
void release_listener_listen(struct release_listener *listener, struct slice channel);

/* Removes a call, which need not have been added. */
void release_listener_remove(struct release_listener *listener, struct decision *decision);

#endif
