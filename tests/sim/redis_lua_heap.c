/*
 * Lua tells the size of a block that it frees. So only blocks that are allocated singly need a
 * head.
 */
#include "tests/sim/redis_lua_heap.h"

#include "tests/sim/redis_memory.h"

#define CHUNK 65536

struct lua_chunk {
    struct lua_chunk *next, *last;
};
_Static_assert(sizeof(struct lua_chunk) == LUA_HEAP_UNIT, "what is behind it is aligned as it is");

static struct lua_chunk *link_chunk(struct lua_heap *heap, struct lua_chunk *chunk)
{
    struct lua_chunk *first = heap->chunks;
    chunk->next = first != NULL ? first : chunk;
    chunk->last = first != NULL ? first->last : chunk;
    chunk->next->last = chunk->last->next = chunk;
    heap->chunks = chunk;
    return chunk;
}

static struct lua_chunk *unlink_chunk(struct lua_heap *heap, struct lua_chunk *chunk)
{
    chunk->next->last = chunk->last;
    chunk->last->next = chunk->next;
    if (heap->chunks == chunk)
        heap->chunks = chunk->next != chunk ? chunk->next : NULL;
    return chunk;
}

static size_t class_of(size_t size)
{
    return (size + LUA_HEAP_UNIT - 1) / LUA_HEAP_UNIT;
}

static void *take_small(struct lua_heap *heap, size_t class)
{
    void *block = heap->waiting[class];
    if (block != NULL) {
        memcpy(&heap->waiting[class], block, sizeof(void *));
        return block;
    }
    size_t size = class * LUA_HEAP_UNIT;
    if ((size_t)(heap->end - heap->at) < size) {
        struct lua_chunk *chunk = link_chunk(heap, take_memory(CHUNK));
        heap->at = (char *)(chunk + 1);
        heap->end = (char *)chunk + CHUNK;
    }
    heap->at += size;
    return heap->at - size;
}

static void give_small(struct lua_heap *heap, void *block, size_t class)
{
    memcpy(block, &heap->waiting[class], sizeof(void *));
    heap->waiting[class] = block;
}

static void *take(struct lua_heap *heap, size_t size)
{
    if (size <= LUA_HEAP_SMALL)
        return take_small(heap, class_of(size));
    return link_chunk(heap, take_memory(sizeof(struct lua_chunk) + size)) + 1;
}

static void give(struct lua_heap *heap, void *block, size_t size)
{
    if (block == NULL)
        return;
    if (size <= LUA_HEAP_SMALL)
        give_small(heap, block, class_of(size));
    else
        free(unlink_chunk(heap, (struct lua_chunk *)block - 1));
}

/* For an old and a new size above LUA_HEAP_SMALL. */
static void *move_large(struct lua_heap *heap, void *old, size_t size)
{
    struct lua_chunk *chunk = unlink_chunk(heap, (struct lua_chunk *)old - 1);
    return link_chunk(heap, take_more(chunk, sizeof *chunk + size, 1)) + 1;
}

void *lua_heap_allocate(void *owner, void *old, size_t old_size, size_t size)
{
    struct lua_heap *heap = owner;
    if (size == 0) {
        give(heap, old, old_size);
        return NULL;
    }
    if (old == NULL)
        return take(heap, size);
    if (old_size > LUA_HEAP_SMALL && size > LUA_HEAP_SMALL)
        return move_large(heap, old, size);
    if (size <= LUA_HEAP_SMALL && class_of(size) == class_of(old_size))
        return old;
    void *block = take(heap, size);
    memcpy(block, old, old_size < size ? old_size : size);
    give(heap, old, old_size);
    return block;
}

void lua_heap_fini(struct lua_heap *heap)
{
    while (heap->chunks != NULL)
        free(unlink_chunk(heap, heap->chunks));
    *heap = (struct lua_heap){0};
}
