#include "tests/sim/heap.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

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

/* The C library's own: what the program is linked with, and every library, takes memory here. */
void *__libc_malloc(size_t size);                     /* NOLINT(bugprone-reserved-identifier) */
void *__libc_calloc(size_t count, size_t size);       /* NOLINT(bugprone-reserved-identifier) */
void *__libc_realloc(void *memory, size_t size);      /* NOLINT(bugprone-reserved-identifier) */
void *__libc_memalign(size_t alignment, size_t size); /* NOLINT(bugprone-reserved-identifier) */
void __libc_free(void *memory);                       /* NOLINT(bugprone-reserved-identifier) */

bool heap_is_counted(void)
{
    return true;
}

static void *take(void *memory)
{
    size_t size = memory != NULL ? malloc_usable_size(memory) : 0;
    taken += size;
    weirs += is_weirs_turn ? (int64_t)size : 0;
    return memory;
}

static void give(void *memory)
{
    size_t size = memory != NULL ? malloc_usable_size(memory) : 0;
    taken -= size;
    weirs -= is_weirs_turn ? (int64_t)size : 0;
}

void *malloc(size_t size)
{
    return take(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return take(__libc_calloc(count, size));
}

void *realloc(void *memory, size_t size)
{
    give(memory);
    void *other = __libc_realloc(memory, size);
    if (other != NULL || size == 0)
        return take(other);
    (void)take(memory);
    return NULL;
}

void free(void *memory)
{
    give(memory);
    __libc_free(memory);
}

void *memalign(size_t alignment, size_t size)
{
    return take(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return take(__libc_memalign(alignment, size));
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    *out = take(__libc_memalign(alignment, size));
    return *out != NULL ? 0 : ENOMEM;
}

#endif
