/*
 * Cuts an input into pieces. Each piece has memory of exactly its own size, so that the sanitizer
 * reports any byte read beyond its end.
 */
#ifndef WEIR_TESTS_PIECES_H
#define WEIR_TESTS_PIECES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum cut { CUT_NOT, CUT_RANDOM, CUT_BYTES, CUT_WAYS };

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* FNV-1a over the words of a trace. Equal traces have equal digests. */
static inline void digest(uint64_t *sum, uint64_t word)
{
    *sum = (*sum ^ word) * UINT64_C(0x100000001b3);
}

static inline uint64_t digest_of(const uint8_t *data, size_t n)
{
    uint64_t sum = n;
    for (size_t i = 0; i < n; i++)
        digest(&sum, data[i]);
    return sum;
}

/* The size of the next piece. Random cuts depend on the input alone. */
static inline size_t piece_size(enum cut cut, uint64_t *dice, size_t left)
{
    if (cut == CUT_NOT || left == 0)
        return left;
    if (cut == CUT_BYTES)
        return 1;
    digest(dice, left);
    uint64_t roll = *dice >> 33;
    size_t most = roll & 1 ? left : roll & 2 ? 16 : 3;
    size_t size = 1 + (size_t)(roll >> 2) % most;
    return size < left ? size : left;
}

static inline char *piece_copy(const uint8_t *from, size_t n)
{
    char *copy = malloc(n);
    REQUIRE(copy || n == 0);
    if (n > 0)
        memcpy(copy, from, n);
    return copy;
}

/* Fails unless the trace of the input is the same for each way of cutting. */
static inline void require_one_trace(uint64_t (*trace)(const uint8_t *data, size_t n, enum cut cut),
                                     const uint8_t *data, size_t n)
{
    uint64_t whole = trace(data, n, CUT_NOT);
    REQUIRE(trace(data, n, CUT_RANDOM) == whole);
    REQUIRE(trace(data, n, CUT_BYTES) == whole);
}

#endif
