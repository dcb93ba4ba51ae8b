#include "limit/command/slot.h"

#include <string.h>

/*
 * remainders[k][byte]: of that byte with 2 + k bytes of zeros behind it, by the polynomial 0x1021. Four bytes take four
 * look-ups that do not wait for one another. A byte's remainder is the sum of those of its bits, x^(16 + 8k) and on.
 */
#define BIT(byte, i, remainder) ((byte) >> (i)&1 ? (remainder) : 0)
#define SUM(b, r0, r1, r2, r3, r4, r5, r6, r7)                                                                         \
    (BIT(b, 0, r0) ^ BIT(b, 1, r1) ^ BIT(b, 2, r2) ^ BIT(b, 3, r3) ^ BIT(b, 4, r4) ^ BIT(b, 5, r5) ^ BIT(b, 6, r6) ^   \
     BIT(b, 7, r7))
#define OF_4(b, ...)                                                                                                   \
    SUM(b, __VA_ARGS__), SUM((b) + 1, __VA_ARGS__), SUM((b) + 2, __VA_ARGS__), SUM((b) + 3, __VA_ARGS__)
#define OF_16(b, ...)                                                                                                  \
    OF_4(b, __VA_ARGS__), OF_4((b) + 4, __VA_ARGS__), OF_4((b) + 8, __VA_ARGS__), OF_4((b) + 12, __VA_ARGS__)
#define OF_64(b, ...)                                                                                                  \
    OF_16(b, __VA_ARGS__), OF_16((b) + 16, __VA_ARGS__), OF_16((b) + 32, __VA_ARGS__), OF_16((b) + 48, __VA_ARGS__)
#define OF_256(...) OF_64(0, __VA_ARGS__), OF_64(64, __VA_ARGS__), OF_64(128, __VA_ARGS__), OF_64(192, __VA_ARGS__)

static const uint16_t remainders[4][256] = {
    {OF_256(0x1021, 0x2042, 0x4084, 0x8108, 0x1231, 0x2462, 0x48c4, 0x9188)},
    {OF_256(0x3331, 0x6662, 0xccc4, 0x89a9, 0x0373, 0x06e6, 0x0dcc, 0x1b98)},
    {OF_256(0x3730, 0x6e60, 0xdcc0, 0xa9a1, 0x4363, 0x86c6, 0x1dad, 0x3b5a)},
    {OF_256(0x76b4, 0xed68, 0xcaf1, 0x85c3, 0x1ba7, 0x374e, 0x6e9c, 0xdd38)},
};

static uint16_t crc16(struct slice bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.at, *end = at + bytes.len;
    unsigned crc = 0;
    for (; end - at >= 4; at += 4)
        crc = remainders[3][crc >> 8 ^ at[0]] ^ remainders[2][(crc & 0xff) ^ at[1]] ^ remainders[1][at[2]] ^
              remainders[0][at[3]];
    for (; at < end; at++)
        crc = (crc << 8 & 0xffff) ^ remainders[0][crc >> 8 ^ *at];
    return (uint16_t)crc;
}

static struct slice hashed_part(struct slice key)
{
    const char *open = key.len > 0 ? memchr(key.at, '{', key.len) : NULL;
    if (open == NULL)
        return key;
    const char *tag = open + 1;
    const char *close = memchr(tag, '}', key.len - (size_t)(tag - key.at));
    return close != NULL && close > tag ? slice_of(tag, (size_t)(close - tag)) : key;
}

uint16_t slot_of(struct slice key)
{
    return crc16(hashed_part(key)) % SLOT_COUNT;
}
