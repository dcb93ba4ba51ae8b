/*
 * limit-prefix: what the keys of LIMIT commands begin with in Redis, and the channel on which releases are published.
 *
 * %u in it stands for the user's name, so that each user has keys of its own; %% for a %. The name is escaped so that
 * it consists of letters, digits, '-', '.', '_' and %XX only, and what follows %u must begin with another character: so
 * no user can reach another's keys, whatever both are called. Any thread; nothing is allocated.
 */
#ifndef WEIR_QUOTA_PREFIX_H
#define WEIR_QUOTA_PREFIX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

#define PREFIX_MAX 128      /* bytes, as configured */
#define PREFIX_USER_MAX 255 /* bytes of a user's name; longer ones are refused */
#define PREFIX_ROOM (PREFIX_MAX + 3 * PREFIX_USER_MAX)
#define PREFIX_CHANNEL_ROOM (PREFIX_MAX + sizeof "released")
#define PREFIX_COVER "weir:written"
#define PREFIX_COVER_ROOM (PREFIX_MAX + sizeof PREFIX_COVER)

/* False: `why` says what is wrong with it. */
__attribute__((warn_unused_result)) bool prefix_check(struct slice text, char *why, size_t why_size);

/*
 * What the keys of `user` (empty: `default`) begin with. *prefix points into `out`, which has PREFIX_ROOM bytes, or is
 * `text` itself. False: the name is too long.
 */
__attribute__((warn_unused_result)) bool prefix_of(struct slice text, struct slice user, char *out,
                                                   struct slice *prefix);

/*
 * The channel, the same for all users: what stands in front of %u, and "released". `out` has PREFIX_CHANNEL_ROOM bytes.
 */
struct slice prefix_channel(struct slice text, char *out);

/* The key of WAIT coverage, the same for all users: what stands in front of %u, and PREFIX_COVER; PREFIX_COVER_ROOM. */
struct slice prefix_cover(struct slice text, char *out);

#endif
