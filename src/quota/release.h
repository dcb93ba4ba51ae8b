/*
 * Tells the message of a release (LIMIT RELEASE) from anything else on the connection on which weir listens for them:
 * clients that may publish, or redirect tracking to a connection, can make other messages arrive there.
 */
#ifndef WEIR_QUOTA_RELEASE_H
#define WEIR_QUOTA_RELEASE_H

#include "base/slice.h"

enum release_news {
    RELEASE_NOTHING,    /* something else: ignored */
    RELEASE_SUBSCRIBED, /* the subscription is confirmed */
    RELEASE_KEY,        /* a holder of *key has released */
};

/* `frame` may be any bytes; *key points into it. Only exactly "message" or "subscribe" of this channel counts. */
enum release_news release_read(struct slice frame, struct slice channel, struct slice *key);

#endif
