/*
 * Tells a published release (a place that has come free) from anything else that may come on the connection on which
 * weir listens for them: any client that may publish, or point tracking at a connection, can put other messages
 * there.
 */
#ifndef WEIR_QUOTA_RELEASE_H
#define WEIR_QUOTA_RELEASE_H

#include "base/slice.h"

enum release_news {
    RELEASE_NOTHING,    /* for nobody here */
    RELEASE_SUBSCRIBED, /* from now on releases are told */
    RELEASE_KEY,        /* a place of *key has become free */
};

/* `frame` is any bytes; *key points into it. Exactly "message" or "subscribe", this channel, and a bulk or a count. */
enum release_news release_read(struct slice frame, struct slice channel, struct slice *key);

#endif
