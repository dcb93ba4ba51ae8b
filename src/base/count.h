/*
 * Counters that one thread writes and any thread may read. Adding is a plain load and a plain
 * store, never a locked instruction.
 *
 * counts_add adds up structs that consist of these counters alone.
 */
#ifndef WEIR_BASE_COUNT_H
#define WEIR_BASE_COUNT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* count_add and count_set are called only on the thread that owns the counter. */
static inline void count_add(_Atomic uint64_t *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static inline void count_set(_Atomic uint64_t *count, uint64_t n)
{
    atomic_store_explicit(count, n, memory_order_relaxed);
}

static inline uint64_t count_read(const _Atomic uint64_t *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

/*
 * Adds the counters in the `size` bytes at `numbers` to the counters at `sum`, which the caller
 * owns.
 */
static inline void counts_add(void *sum, const void *numbers, size_t size)
{
    _Atomic uint64_t *to = sum;
    const _Atomic uint64_t *from = numbers;
    for (size_t i = 0; i < size / sizeof *to; i++)
        count_add(&to[i], count_read(&from[i]));
}

#endif
