/*
 * SipHash-1-3: a keyed hash. Clients do not know the key, and cannot choose names that collide.
 * Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF".
 */
#ifndef WEIR_BASE_HASH_H
#define WEIR_BASE_HASH_H

#include <stdint.h>

#include "base/slice.h"

struct hash_key {
    uint64_t k0, k1;
};

uint64_t hash_bytes(struct hash_key key, struct slice bytes);

#endif
