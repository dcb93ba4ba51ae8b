/*
 * A byte buffer that grows, for input that arrives in pieces. A zeroed struct is an empty buffer.
 * bytes_fini frees the memory.
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
 * Makes room for n more bytes. Returns the address of that room; the caller then adds n to len.
 * Returns NULL if the total would exceed `most`, or if out of memory. The content then stays.
 */
char *bytes_reserve(struct bytes *bytes, size_t n, size_t most);

/* Appends a copy of `piece`. False if bytes_reserve returns NULL. */
__attribute__((warn_unused_result)) bool bytes_add(struct bytes *bytes, struct slice piece,
                                                   size_t most);

static inline struct slice bytes_slice(const struct bytes *bytes)
{
    return slice_of(bytes->at, bytes->len);
}

void bytes_fini(struct bytes *bytes);

#endif
