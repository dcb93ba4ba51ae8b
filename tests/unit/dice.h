/*
 * Repeatable random numbers for tests: splitmix64, with one word of state. The seed of a failing
 * round repeats the round.
 */
#ifndef WEIR_TESTS_DICE_H
#define WEIR_TESTS_DICE_H

#include <stdint.h>
#include <stdlib.h>

static inline uint64_t dice(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A number from 0 to n - 1. */
static inline uint64_t dice_below(uint64_t *state, uint64_t n)
{
    return dice(state) % n;
}

/* A number from 1 to `most`. Each order of magnitude is equally likely. */
static inline uint64_t dice_scale(uint64_t *state, uint64_t most)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(most);
    /* a statement of its own: C does not define the order of two calls in one expression */
    uint64_t shift = 63 - dice_below(state, bits);
    uint64_t number = dice(state) >> shift;
    return 1 + number % most;
}

/* The number of random rounds of a test: n, or n * $HUNT (make hunt). */
static inline uint64_t dice_rounds(uint64_t n)
{
    const char *hunt = getenv("HUNT");
    uint64_t times = hunt != NULL ? strtoull(hunt, NULL, 10) : 1;
    return n * (times > 0 ? times : 1);
}

#endif
