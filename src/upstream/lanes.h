/*
 * All lanes of one worker: finds the shared one for a session, opens private ones, reconnects, and knows whether the
 * upstream is there.
 */
#ifndef WEIR_UPSTREAM_LANES_H
#define WEIR_UPSTREAM_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "net/loop.h"
#include "upstream/backoff.h"
#include "upstream/lane.h"
#include "upstream/upstream.h"

struct lanes {
    struct loop *loop;
    struct upstream *upstream;
    bool keeps_shared; /* a shared lane for new clients is kept open */

    struct list opening; /* connecting or greeting, shared and private */
    struct list shared;
    struct list private;
    uv_timer_t tick; /* runs while a lane is being opened or a reconnect is due */
    struct backoff backoff;
    bool is_down;    /* the last attempt failed: answer at once, try in the background */
    bool is_closing;
};

void lanes_init(struct lanes *lanes, struct loop *loop, struct upstream *upstream, bool keeps_shared);

/* Is there any use in asking for a lane? False: the upstream is away. */
bool lanes_are_up(const struct lanes *lanes);

/* The shared lane for a session: ready, or to be waited for; NULL when the upstream is away or memory is out. */
struct lane *lanes_shared(struct lanes *lanes, const struct lane_key *key);

/* A new private lane for `owner`, to be waited for; NULL as above. */
struct lane *lanes_private(struct lanes *lanes, const struct lane_key *key, struct rider *owner);

/* Close every lane; asynchronous. No rider may be left. */
void lanes_close(struct lanes *lanes);

/* From a lane: it is ready; it is closed, after having been ready or not. */
void lanes_on_ready(struct lanes *lanes, struct lane *lane, bool needs_auth);
void lanes_on_failed(struct lanes *lanes, const struct lane *lane, bool was_ready, const char *why);

#endif
