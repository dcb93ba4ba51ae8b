/*
 * Output that is waiting to be sent: a chain of fixed-size chunks from a pool.
 *
 * In each chunk sent <= filled <= capacity; a chain owns its chunks, an empty chain owns none. Appending copies, and never
 * moves what is already there, so a write in flight may point into the chunks. A pool belongs to one thread and keeps
 * a bounded number of free chunks; the rest goes back to the system.
 */
#ifndef WEIR_BASE_CHAIN_H
#define WEIR_BASE_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/count.h"
#include "base/slice.h"

#define CHUNK_BYTES 8192
#define POOL_KEEP 64 /* free chunks kept: half a megabyte a worker */

struct chunk {
    struct chunk *next;
    uint32_t sent;
    uint32_t filled;
    char data[CHUNK_BYTES - 16];
};

struct pool {
    struct chunk *free;
    unsigned n_free;
    size_t given_back;     /* bytes handed to the system's allocator; for whoever resets it */
    _Atomic uint64_t held; /* bytes of chunks, free ones too, and of what was noted besides; any thread reads it */
};

struct chain {
    struct chunk *head;
    struct chunk *tail;
    size_t bytes; /* filled and not yet sent */
};

void pool_init(struct pool *pool);
void pool_fini(struct pool *pool);

/* Other memory of the pool's thread that counts as held: more of it, and less again, which was given back. */
void pool_note_more(struct pool *pool, size_t bytes);
void pool_note_less(struct pool *pool, size_t bytes);

/* Give the free chunks back. */
void pool_shed(struct pool *pool);

/* Copy n bytes to the end. False: out of memory; a part may have been appended, and the chain is good only to clear. */
__attribute__((warn_unused_result)) bool chain_append_long(struct chain *chain, struct pool *pool, const char *data,
                                                           size_t n);

/* The same; most of what is appended is short and finds room. */
__attribute__((warn_unused_result)) static inline bool chain_append(struct chain *chain, struct pool *pool,
                                                                    const char *data, size_t n)
{
    struct chunk *tail = chain->tail;
    if (tail == NULL || n > sizeof tail->data - tail->filled)
        return chain_append_long(chain, pool, data, n);
    memcpy(tail->data + tail->filled, data, n);
    tail->filled += (uint32_t)n;
    chain->bytes += n;
    return true;
}

/* The first unsent pieces, at most `max`, without taking them. Returns how many. */
unsigned chain_peek(const struct chain *chain, struct slice *pieces, unsigned max);

/* Take the first n bytes away: they were sent. n <= chain->bytes. */
void chain_drop(struct chain *chain, struct pool *pool, size_t n);

void chain_clear(struct chain *chain, struct pool *pool);

#endif
