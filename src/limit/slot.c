#include "limit/slot.h"

#include <string.h>

/* For four bits at a time: their remainder by the polynomial 0x1021. */
static const uint16_t remainders[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
                                        0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};

static uint16_t crc16(struct slice bytes)
{
    unsigned crc = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned byte = (unsigned char)bytes.at[i];
        crc = (crc << 4 & 0xffff) ^ remainders[crc >> 12 ^ byte >> 4];
        crc = (crc << 4 & 0xffff) ^ remainders[crc >> 12 ^ (byte & 15)];
    }
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
