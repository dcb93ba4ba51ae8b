/*
 * The memory of one Lua: taken in chunks, cut into blocks, and given back all at once.
 */
#ifndef WEIR_SIM_REDIS_LUA_HEAP_H
#define WEIR_SIM_REDIS_LUA_HEAP_H

#include <stddef.h>

#define LUA_HEAP_UNIT 16
#define LUA_HEAP_SMALL 1024 /* what is larger is taken singly */

struct lua_heap {
    void *waiting[LUA_HEAP_SMALL / LUA_HEAP_UNIT + 1]; /* given back, by size; the first word of each is the next */
    char *at, *end;                                    /* what the newest chunk has left */
    struct lua_chunk *chunks;                          /* and whatever is larger: a ring; NULL: none yet */
};

/* A lua_Alloc; `heap` is a struct lua_heap, all zero at first. */
void *lua_heap_allocate(void *heap, void *old, size_t old_size, size_t size);

/* Everything: who has it need not be asked. */
void lua_heap_fini(struct lua_heap *heap);

#endif
