/*
 * Repeatable random numbers: xoshiro256**, with a stream for each party of a run. So another draw
 * by one party does not change the draws of the other parties.
 */
#ifndef WEIR_SIM_RANDOM_H
#define WEIR_SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/unit/dice.h"

struct random {
    uint64_t s[4];
};

/* Starts stream `number` of a seed. */
static inline void random_init(struct random *random, uint64_t seed, uint64_t number)
{
    uint64_t state = seed ^ number * UINT64_C(0xd1342543de82ef95);
    for (int i = 0; i < 4; i++)
        random->s[i] = dice(&state);
}

static inline uint64_t random_turn(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static inline uint64_t random_next(struct random *random)
{
    uint64_t *s = random->s;
    uint64_t result = random_turn(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = random_turn(s[3], 45);
    return result;
}

/* 0 to n - 1, n at most 2^32. */
static inline uint64_t random_below(struct random *random, uint64_t n)
{
    return (random_next(random) >> 32) * n >> 32;
}

/* True `parts` times in a million. */
static inline bool random_hits(struct random *random, uint32_t parts)
{
    return parts > 0 && random_below(random, 1000000) < parts;
}

/* 1 to most, each order of magnitude equally likely; most is below 2^32. */
static inline uint64_t random_scale(struct random *random, uint64_t most)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(most);
    uint64_t number = random_below(random, UINT64_C(1) << random_below(random, bits + 1));
    return 1 + number % most;
}

#endif
