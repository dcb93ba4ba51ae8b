/* Allocation that ends the process if memory runs out. free() releases the memory. */
#ifndef WEIR_SIM_REDIS_MEMORY_H
#define WEIR_SIM_REDIS_MEMORY_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static inline void *take_memory(size_t size)
{
    void *memory = malloc(size > 0 ? size : 1);
    if (memory == NULL)
        abort();
    return memory;
}

/* `count` members of `size` bytes, all zero. */
static inline void *take_zeroed(size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);
    if (memory == NULL)
        abort();
    return memory;
}

/* Resizes to `count` members of `size` bytes; `old` may be NULL. */
static inline void *take_more(void *old, size_t count, size_t size)
{
    void *memory = NULL;
    size_t bytes;
    if (!__builtin_mul_overflow(count, size, &bytes))
        memory = realloc(old, bytes > 0 ? bytes : 1);
    if (memory == NULL)
        abort();
    return memory;
}

#endif
