#include "base/hash.h"

struct sip {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate(uint64_t word, unsigned by)
{
    return word << by | word >> (64 - by);
}

static inline void sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = rotate(s->v1, 13) ^ s->v0;
    s->v3 = rotate(s->v3, 16) ^ s->v2;
    s->v0 = rotate(s->v0, 32) + s->v3;
    s->v2 += s->v1;
    s->v1 = rotate(s->v1, 17) ^ s->v2;
    s->v3 = rotate(s->v3, 21) ^ s->v0;
    s->v2 = rotate(s->v2, 32);
}

static inline void sip_absorb(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    s->v0 ^= word;
}

/* Returns up to 8 bytes as a little-endian word. */
static uint64_t word_at(const char *at, size_t len)
{
    uint64_t word = 0;
    for (size_t i = 0; i < len; i++)
        word |= (uint64_t)(unsigned char)at[i] << (8 * i);
    return word;
}

uint64_t hash_bytes(struct hash_key key, struct slice bytes)
{
    /* The paper's constants: "somepseudorandomlygeneratedbytes" */
    struct sip s = {
        .v0 = key.k0 ^ UINT64_C(0x736f6d6570736575),
        .v1 = key.k1 ^ UINT64_C(0x646f72616e646f6d),
        .v2 = key.k0 ^ UINT64_C(0x6c7967656e657261),
        .v3 = key.k1 ^ UINT64_C(0x7465646279746573),
    };
    size_t whole = bytes.len & ~(size_t)7;
    for (size_t i = 0; i < whole; i += 8)
        sip_absorb(&s, word_at(bytes.at + i, 8));
    uint64_t tail = bytes.len > whole ? word_at(bytes.at + whole, bytes.len - whole) : 0;
    sip_absorb(&s, tail | (uint64_t)bytes.len << 56);

    s.v2 ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
