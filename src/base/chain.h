/*
 * Output that waits to be sent: a chain of fixed-size chunks from a pool.
 *
 * In each chunk sent <= filled <= capacity. A chain owns its chunks, and an empty chain owns none.
 * Appending copies the new bytes and never moves earlier bytes, so a write in flight may point into
 * the chunks. A pool belongs to one thread and keeps a bounded number of free chunks. Beyond that
 * number the pool returns free chunks to the system.
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
#define POOL_KEEP 64 /* free chunks kept: half a megabyte for each worker */
#define CELL_BYTES 256
#define POOL_KEEP_CELLS 512 /* free cells kept */

struct chunk {
    struct chunk *next;
    uint32_t sent;
    uint32_t filled;
    char data[CHUNK_BYTES - 16];
};

/* Memory for one small object that lives as long as a request. */
struct cell {
    struct cell *next; /* the next free cell, while this cell is free */
};

struct pool {
    struct chunk *free;
    unsigned n_free;
    struct cell *free_cells;
    unsigned n_free_cells;
    /*
     * bytes freed since net/loop.c set this to 0; net/loop.c trims the heap after many freed bytes
     */
    size_t given_back;
    /*
     * bytes of all chunks and cells, used and free, and of pool_note_more; readable by any thread
     */
    _Atomic uint64_t held;
};

struct chain {
    struct chunk *head;
    struct chunk *tail;
    size_t bytes; /* filled and not yet sent */
};

void pool_init(struct pool *pool);
void pool_fini(struct pool *pool);

/*
 * pool_note_more adds memory that the pool's thread has allocated elsewhere to `held`.
 * pool_note_less subtracts such memory once it is freed.
 */
void pool_note_more(struct pool *pool, size_t bytes);
void pool_note_less(struct pool *pool, size_t bytes);

/*
 * Returns CELL_BYTES of memory, counted as held. pool_put_cell takes the memory back. NULL: out of
 * memory.
 */
void *pool_new_cell(struct pool *pool);

static inline void *pool_get_cell(struct pool *pool)
{
    struct cell *cell = pool->free_cells;
    if (cell == NULL)
        return pool_new_cell(pool);
    pool->free_cells = cell->next;
    pool->n_free_cells--;
    return cell;
}

void pool_put_cell(struct pool *pool, void *at);

/* Frees the chunks and cells that are not in use. */
void pool_shed(struct pool *pool);

/*
 * Appends a copy of n bytes. False: out of memory. A part may have been appended, so the caller
 * must call chain_clear.
 */
__attribute__((warn_unused_result)) bool chain_append_long(struct chain *chain, struct pool *pool,
                                                           const char *data, size_t n);

/* Appends as chain_append_long does, but inline if the last chunk has room for n bytes. */
__attribute__((warn_unused_result)) static inline bool chain_append(struct chain *chain,
                                                                    struct pool *pool,
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

/*
 * Sets `pieces` to the first unsent bytes, which stay in the chain. Returns the number of pieces,
 * at most `max`.
 */
unsigned chain_peek(const struct chain *chain, struct slice *pieces, unsigned max);

/* Removes the first n bytes, which have been sent. n <= chain->bytes. */
void chain_drop(struct chain *chain, struct pool *pool, size_t n);

void chain_clear(struct chain *chain, struct pool *pool);

#endif
