/*
 * limit-prefix: the beginning of the keys of LIMIT commands in Redis, and of the channel on which
 * releases are published.
 *
 * %u stands for the user's name, so each user has keys of its own. %% stands for a %. The name is
 * escaped: it consists of letters, digits, '-', '.', '_' and %XX only. The byte after %u must be
 * none of these bytes. Together these two rules keep each user from the keys of other users,
 * whatever the names.
 *
 * Any thread; nothing is allocated.
 */
#ifndef WEIR_QUOTA_PREFIX_H
#define WEIR_QUOTA_PREFIX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

#define PREFIX_MAX 128      /* bytes, as configured */
#define PREFIX_USER_MAX 255 /* bytes of a user's name; longer names are refused */
#define PREFIX_ROOM (PREFIX_MAX + 3 * PREFIX_USER_MAX)
#define PREFIX_CHANNEL_ROOM (PREFIX_MAX + sizeof "released")
#define PREFIX_COVER "weir:written"
#define PREFIX_COVER_ROOM (PREFIX_MAX + sizeof PREFIX_COVER)

/* False: `why` says what is wrong with the prefix. */
__attribute__((warn_unused_result)) bool prefix_check(struct slice text, char *why,
                                                      size_t why_size);

/*
 * Sets *prefix to the beginning of the keys of `user` (empty: `default`). *prefix points into
 * `out`, which has PREFIX_ROOM bytes, or is `text`. False: the name is too long.
 */
__attribute__((warn_unused_result)) bool prefix_of(struct slice text, struct slice user, char *out,
                                                   struct slice *prefix);

/*
 * Returns the channel, which all users share: the text before %u, and "released". `out` has
 * PREFIX_CHANNEL_ROOM bytes.
 */
struct slice prefix_channel(struct slice text, char *out);

/*
 * Returns the key of WAIT coverage, which all users share: the text before %u, and PREFIX_COVER.
 * `out` has PREFIX_COVER_ROOM bytes.
 */
struct slice prefix_cover(struct slice text, char *out);

#endif
