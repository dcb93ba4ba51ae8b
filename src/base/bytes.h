/*
 * Bytes that come piece by piece, kept together. Owned by whoever declares it, zeroed; bytes_fini frees.
 */
#ifndef WEIR_BASE_BYTES_H
#define WEIR_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct bytes {
    char *at; /* heap */
    size_t len, room;
};

/*
 * Room for n more, where there may be at most `most` in all: its beginning, to be written by the caller, who then adds
 * to len. NULL: too many, or no memory; what is there stays.
 */
char *bytes_reserve(struct bytes *bytes, size_t n, size_t most);

/* False as bytes_reserve. */
__attribute__((warn_unused_result)) bool bytes_add(struct bytes *bytes, struct slice piece, size_t most);

static inline struct slice bytes_slice(const struct bytes *bytes)
{
    return slice_of(bytes->at, bytes->len);
}

void bytes_fini(struct bytes *bytes);

#endif
