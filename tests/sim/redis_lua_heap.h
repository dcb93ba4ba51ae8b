/* The allocator of one Lua state: chunks, cut into blocks, and freed all at once. */
#ifndef WEIR_SIM_REDIS_LUA_HEAP_H
#define WEIR_SIM_REDIS_LUA_HEAP_H

#include <stddef.h>

#define LUA_HEAP_UNIT 16
#define LUA_HEAP_SMALL 1024 /* larger blocks are allocated singly */

struct lua_heap {
    /* free lists by size; the first word of each block is the next */
    void *waiting[LUA_HEAP_SMALL / LUA_HEAP_UNIT + 1];
    char *at, *end; /* rest of the newest chunk */
    /* chunks and larger blocks: a ring; NULL: none yet */
    struct lua_chunk *chunks;
};

/* A lua_Alloc; `heap` is a struct lua_heap, all zero at first. */
void *lua_heap_allocate(void *heap, void *old, size_t old_size, size_t size);

/* Frees all memory, without a lua_close. */
void lua_heap_fini(struct lua_heap *heap);

#endif
