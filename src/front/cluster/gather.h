/*
 * A reply that is gathered instead of passed on, because something is to be found out, or changed, before the client
 * reads it. Only while nothing else is in flight, so that all that comes belongs to it.
 */
#ifndef WEIR_FRONT_GATHER_H
#define WEIR_FRONT_GATHER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/slice.h"
#include "front/client/client.h"

#define GATHER_MAX (8 << 20) /* a reply of more bytes is passed on as it is */

struct gather {
    struct bytes reply; /* as far as it has come */
    size_t request_len;
    char request[];
};

/*
 * What comes for the client from here on is gathered; a copy of `request`, which may be empty, is kept with it. Out of
 * memory: it is passed on.
 */
void gather_begin(struct client *client, struct slice request);

/* For connection: keep these bytes of a reply. False: they are to be passed on, after what was gathered. */
__attribute__((warn_unused_result)) bool gather_take(struct client *client, const char *data, size_t n);

/* What has been gathered; empty when nothing is being gathered. */
struct slice gathered(const struct client *client);

/* How many bytes of that are pushes and messages that came before the reply, which is the last frame. */
size_t gathered_before(const struct client *client);

/* Only while something is being gathered. */
struct slice gather_request(const struct client *client);

/* Gather no more: pass on what has been, or forget it. Safe when nothing is being gathered. */
void gather_release(struct client *client);
void gather_drop(struct client *client);

#endif
