/*
 * Random numbers from the server's seed. Source: Blackman and Vigna, xoroshiro128+, seeded by
 * SplitMix64.
 */
#ifndef WEIR_SIM_REDIS_RANDOM_H
#define WEIR_SIM_REDIS_RANDOM_H

#include "tests/sim/redis_state.h"

static inline void redis_random_init(struct redis *redis, uint64_t seed)
{
    for (size_t i = 0; i < 2; i++) {
        uint64_t word = seed += 0x9e3779b97f4a7c15;
        word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
        word = (word ^ word >> 27) * 0x94d049bb133111eb;
        redis->rng[i] = word ^ word >> 31;
    }
}

static inline uint64_t redis_random(struct redis *redis)
{
    uint64_t a = redis->rng[0];
    uint64_t b = redis->rng[1] ^ a;
    uint64_t result = a + redis->rng[1];
    redis->rng[0] = (a << 24 | a >> 40) ^ b ^ b << 16;
    redis->rng[1] = b << 37 | b >> 27;
    return result;
}

#endif
