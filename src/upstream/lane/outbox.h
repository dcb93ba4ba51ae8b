/*
 * Requests on their way to a lane that are not copied before they must be: those that lie next to one another where
 * they were read become one piece, and are copied once.
 *
 * A worker has one such piece, whichever node and lane it is for. outbox_gather adds to it; whatever else is sent, on
 * whatever lane, goes behind it by outbox_send, and nothing else writes to a lane's link: so nothing passes it by. The
 * memory stays the sender's, who calls outbox_flush before he uses it for something else. The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_OUTBOX_H
#define WEIR_UPSTREAM_OUTBOX_H

#include <stddef.h>

#include "net/link.h"

/* Zeroed: empty. */
struct outbox {
    struct link *link; /* where it goes; NULL: nothing waits */
    const char *at;    /* the sender's memory */
    size_t len;        /* bytes */
};

/* What was gathered goes to its link, which copies it; if that has been closed meanwhile, it is dropped. */
void outbox_flush(struct outbox *outbox);

/* Sends these bytes, copied, behind all that was gathered. */
void outbox_send(struct outbox *outbox, struct link *link, const char *data, size_t n);

/* Sends these bytes some time before outbox_flush returns; n > 0. */
void outbox_gather(struct outbox *outbox, struct link *link, const char *data, size_t n);

#endif
