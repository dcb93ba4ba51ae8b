#include "base/chain.h"

#include <assert.h>
#include <stdlib.h>

void pool_init(struct pool *pool)
{
    pool->free = NULL;
    pool->n_free = 0;
    pool->free_cells = NULL;
    pool->n_free_cells = 0;
    pool->given_back = 0;
    atomic_init(&pool->held, 0);
}

void pool_note_more(struct pool *pool, size_t bytes)
{
    count_add(&pool->held, bytes);
}

void pool_note_less(struct pool *pool, size_t bytes)
{
    count_add(&pool->held, -(uint64_t)bytes);
    pool->given_back += bytes;
}

void pool_shed(struct pool *pool)
{
    while (pool->free != NULL) {
        struct chunk *next = pool->free->next;
        free(pool->free);
        pool_note_less(pool, sizeof *next);
        pool->free = next;
    }
    pool->n_free = 0;
    while (pool->free_cells != NULL) {
        struct cell *next = pool->free_cells->next;
        free(pool->free_cells);
        pool_note_less(pool, CELL_BYTES);
        pool->free_cells = next;
    }
    pool->n_free_cells = 0;
}

void *pool_new_cell(struct pool *pool)
{
    void *cell = malloc(CELL_BYTES);
    if (cell != NULL)
        pool_note_more(pool, CELL_BYTES);
    return cell;
}

void pool_put_cell(struct pool *pool, void *at)
{
    struct cell *cell = at;
    if (pool->n_free_cells == POOL_KEEP_CELLS) {
        free(cell);
        pool_note_less(pool, CELL_BYTES);
        return;
    }
    cell->next = pool->free_cells;
    pool->free_cells = cell;
    pool->n_free_cells++;
}

void pool_fini(struct pool *pool)
{
    pool_shed(pool);
}

static struct chunk *chunk_get(struct pool *pool)
{
    struct chunk *chunk = pool->free;
    if (chunk != NULL) {
        pool->free = chunk->next;
        pool->n_free--;
    } else {
        chunk = malloc(sizeof *chunk);
        if (chunk == NULL)
            return NULL;
        pool_note_more(pool, sizeof *chunk);
    }
    chunk->next = NULL;
    chunk->sent = 0;
    chunk->filled = 0;
    return chunk;
}

static void chain_chunk_put(struct pool *pool, struct chunk *chunk)
{
    if (pool->n_free == POOL_KEEP) {
        free(chunk);
        pool_note_less(pool, sizeof *chunk);
        return;
    }
    chunk->next = pool->free;
    pool->free = chunk;
    pool->n_free++;
}

static bool chain_grow(struct chain *chain, struct pool *pool)
{
    struct chunk *chunk = chunk_get(pool);
    if (chunk == NULL)
        return false;
    if (chain->tail == NULL)
        chain->head = chunk;
    else
        chain->tail->next = chunk;
    chain->tail = chunk;
    return true;
}

bool chain_append_long(struct chain *chain, struct pool *pool, const char *data, size_t n)
{
    while (n > 0) {
        if (chain->tail == NULL || chain->tail->filled == sizeof chain->tail->data)
            if (!chain_grow(chain, pool))
                return false;
        struct chunk *tail = chain->tail;
        size_t room = sizeof tail->data - tail->filled;
        size_t part = n < room ? n : room;
        memcpy(tail->data + tail->filled, data, part);
        tail->filled += (uint32_t)part;
        assert(tail->sent <= tail->filled && tail->filled <= sizeof tail->data);
        chain->bytes += part;
        data += part;
        n -= part;
    }
    return true;
}

unsigned chain_peek(const struct chain *chain, struct slice *pieces, unsigned max)
{
    unsigned n = 0;
    for (const struct chunk *c = chain->head; c != NULL && n < max; c = c->next)
        pieces[n++] = slice_of(c->data + c->sent, c->filled - c->sent);
    return n;
}

void chain_drop(struct chain *chain, struct pool *pool, size_t n)
{
    assert(n <= chain->bytes);
    chain->bytes -= n;
    while (chain->head != NULL) {
        struct chunk *head = chain->head;
        size_t left = head->filled - head->sent;
        if (n < left) {
            head->sent += (uint32_t)n;
            return;
        }
        n -= left;
        chain->head = head->next;
        chain_chunk_put(pool, head);
    }
    chain->tail = NULL;
}

void chain_clear(struct chain *chain, struct pool *pool)
{
    chain_drop(chain, pool, chain->bytes);
}
