#include "tests/sim/heap.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/arena.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_OWN_ALLOCATOR 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_OWN_ALLOCATOR 1
#endif
#endif

static size_t taken;
static int64_t weirs;
static bool is_weirs_turn;

size_t heap_bytes(void)
{
    return taken;
}

bool heap_is_weirs(bool is_weirs)
{
    bool before = is_weirs_turn;
    is_weirs_turn = is_weirs;
    return before;
}

int64_t heap_weirs_bytes(void)
{
    return weirs;
}

#ifdef HAS_OWN_ALLOCATOR

bool heap_is_counted(void)
{
    return false;
}

#else

bool heap_is_counted(void)
{
    return true;
}

/* Replaces the C library's allocator for the program and all libraries. */

static void count(int64_t size)
{
    taken += (size_t)size;
    weirs += is_weirs_turn ? size : 0;
}

static void *take(void *memory, size_t size)
{
    if (memory != NULL)
        count((int64_t)size);
    else
        errno = ENOMEM;
    return memory;
}

void *malloc(size_t size)
{
    return take(arena_take(size), size);
}

void *calloc(size_t n, size_t size)
{
    size_t bytes;
    bool is_too_much = __builtin_mul_overflow(n, size, &bytes);
    return take(is_too_much ? NULL : arena_take_zeroed(bytes), bytes);
}

void free(void *memory)
{
    count(-(int64_t)arena_size(memory));
    arena_give(memory);
}

static void *move(void *memory, size_t size)
{
    void *other = malloc(size);
    size_t before = arena_size(memory);
    if (other == NULL)
        return NULL;
    memcpy(other, memory, before < size ? before : size);
    free(memory);
    return other;
}

void *realloc(void *memory, size_t size)
{
    if (memory == NULL)
        return malloc(size);
    if (size == 0) {
        free(memory);
        return NULL;
    }
    size_t before = arena_size(memory);
    if (!arena_resize(memory, size))
        return move(memory, size);
    count((int64_t)size - (int64_t)before);
    return memory;
}

void *memalign(size_t alignment, size_t size)
{
    return take(arena_take_aligned(alignment, size), size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    *out = memalign(alignment, size);
    return *out != NULL ? 0 : ENOMEM;
}

size_t malloc_usable_size(void *memory)
{
    return arena_size(memory);
}

#endif
