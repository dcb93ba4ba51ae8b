/*
 * SHA-1, which names scripts, and SHA-256, which hashes passwords; as hexadecimal digits. Source:
 * FIPS 180-4.
 */
#ifndef WEIR_SIM_REDIS_SHA_H
#define WEIR_SIM_REDIS_SHA_H

#include "base/slice.h"

#define SHA1_HEX 40
#define SHA256_HEX 64

/* `hex` has room for the digits and a NUL. */
void sha1_hex(struct slice text, char *hex);
void sha256_hex(struct slice text, char *hex);

#endif
