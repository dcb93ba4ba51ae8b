/*
 * The slot of a key in a Redis Cluster: CRC16 (XMODEM) of the key, or of its tag, modulo 16384.
 *
 * The tag is what stands between the first `{` and the first `}` behind it, if that is not empty. Source: the Redis
 * Cluster specification, "Key distribution model" and "Hash tags".
 */
#ifndef WEIR_LIMIT_SLOT_H
#define WEIR_LIMIT_SLOT_H

#include <stdint.h>

#include "base/slice.h"

#define SLOT_COUNT 16384

uint16_t slot_of(struct slice key);

#endif
