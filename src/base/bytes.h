/*
 * A byte buffer that grows, for input that arrives in pieces. Declared zeroed by its owner; bytes_fini frees.
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
 * Make room for n more bytes. Returns where to write them; the caller then adds n to len. NULL: that would be more than
 * `most` in all, or out of memory; the content stays.
 */
char *bytes_reserve(struct bytes *bytes, size_t n, size_t most);

/* Append a copy of `piece`. False where bytes_reserve would return NULL. */
__attribute__((warn_unused_result)) bool bytes_add(struct bytes *bytes, struct slice piece, size_t most);

static inline struct slice bytes_slice(const struct bytes *bytes)
{
    return slice_of(bytes->at, bytes->len);
}

void bytes_fini(struct bytes *bytes);

#endif
