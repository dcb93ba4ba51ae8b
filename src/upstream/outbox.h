/*
 * Requests on their way to a lane that are not copied before they must be: those that lie next to one another where they
 * were read become one piece, and are copied once.
 *
 * A worker has one such piece. lane_gather adds to it; whatever else is sent, on whatever lane, goes behind it (lane.c
 * alone writes to a lane's link), so nothing passes it by. Who has lent the memory flushes it before that goes.
 */
#ifndef WEIR_UPSTREAM_OUTBOX_H
#define WEIR_UPSTREAM_OUTBOX_H

#include <stddef.h>

struct lane;

/* Zeroed: empty. */
struct outbox {
    struct lane *lane; /* where it goes; NULL: nothing waits */
    const char *at;    /* the sender's memory */
    size_t len;
};

#endif
