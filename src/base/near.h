/*
 * The nearest known name, for "did you mean ...?".
 */
#ifndef WEIR_BASE_NEAR_H
#define WEIR_BASE_NEAR_H

#include <stddef.h>

#include "base/slice.h"

/*
 * Of the n names that name_at(arg, 0 .. n-1) gives, the one with the fewest edits (insert, delete, replace, swap two
 * neighbours) from `text`, case aside; the first of several. Empty when none is within a third of the longer name's
 * length (one edit at least, three at most). Names beyond 64 bytes are never near.
 */
struct slice near_name(struct slice text, size_t n, struct slice (*name_at)(const void *arg, size_t i),
                       const void *arg);

#endif
