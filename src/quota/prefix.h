/*
 * limit-prefix: what the keys of LIMIT commands begin with in Redis, and the channel on which releases are told.
 *
 * %u in it stands for the user's name, so that each user has keys of its own; %% for a %. The name is spelled so that
 * it holds nothing but letters, digits, '-', '.', '_' and %XX, and what stands behind %u begins with something else: so
 * no user's keys begin as another's do, whatever both are called. Any thread; nothing is allocated.
 */
#ifndef WEIR_QUOTA_PREFIX_H
#define WEIR_QUOTA_PREFIX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

#define PREFIX_MAX 128      /* bytes, as it is configured */
#define PREFIX_USER_MAX 255 /* bytes of a user's name that can have keys of its own */
#define PREFIX_ROOM (PREFIX_MAX + 3 * PREFIX_USER_MAX)
#define PREFIX_CHANNEL_ROOM (PREFIX_MAX + sizeof "released")

/* False: `why` says what is wrong with it. */
__attribute__((warn_unused_result)) bool prefix_check(struct slice text, char *why, size_t why_size);

/*
 * The beginning of the keys of `user` (empty: nobody in particular, who is `default`): into PREFIX_ROOM bytes, or
 * `text` itself. False: the name is too long.
 */
__attribute__((warn_unused_result)) bool prefix_of(struct slice text, struct slice user, char *out,
                                                   struct slice *prefix);

/* The same for everybody: what stands in front of %u, and "released". Into PREFIX_CHANNEL_ROOM bytes. */
struct slice prefix_channel(struct slice text, char *out);

#endif
