/* Memory that ends at a guard page: reading one byte too many is fatal. */
#ifndef WEIR_TESTS_GUARD_H
#define WEIR_TESTS_GUARD_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct guard {
    char *begin;
    char *end; /* the first byte of the guard page */
    size_t page;
};

static inline struct guard guard_new(size_t room)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t size = (room + page - 1) / page * page;
    char *begin =
        mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin == MAP_FAILED || mprotect(begin + size, page, PROT_NONE) != 0) {
        perror("guard page");
        abort();
    }
    return (struct guard){begin, begin + size, page};
}

static inline void guard_free(struct guard *guard)
{
    munmap(guard->begin, (size_t)(guard->end - guard->begin) + guard->page);
}

/* Returns room for `n` bytes that ends at the guard page. */
static inline char *guard_room(struct guard *guard, size_t n)
{
    if (n > (size_t)(guard->end - guard->begin)) {
        fprintf(stderr, "guard: %zu bytes do not fit\n", n);
        abort();
    }
    return guard->end - n;
}

static inline char *guard_place(struct guard *guard, const char *bytes, size_t n)
{
    char *at = guard_room(guard, n);
    if (n > 0)
        memcpy(at, bytes, n);
    return at;
}

#endif
