/* Both hashes process blocks of 64 bytes, with equal padding of the last block. */
#include "tests/sim/redis_sha.h"

#include <stdint.h>

#define BLOCK 64
#define STATE_MAX 8

typedef void mix_block(uint32_t *state, const uint32_t *words);

static uint32_t turn_left(uint32_t word, unsigned by)
{
    return word << by | word >> (32 - by);
}

static uint32_t turn_right(uint32_t word, unsigned by)
{
    return word >> by | word << (32 - by);
}

static void mix_bytes(uint32_t *state, const unsigned char *bytes, mix_block *mix)
{
    uint32_t words[16];
    for (size_t i = 0; i < 16; i++, bytes += 4)
        words[i] = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
                   bytes[3];
    mix(state, words);
}

static void sum(struct slice text, uint32_t *state, mix_block *mix)
{
    unsigned char last[2 * BLOCK] = {0};
    size_t whole = text.len / BLOCK;
    for (size_t i = 0; i < whole; i++)
        mix_bytes(state, (const unsigned char *)text.at + i * BLOCK, mix);
    size_t rest = text.len % BLOCK;
    if (rest > 0)
        memcpy(last, text.at + whole * BLOCK, rest);
    last[rest] = 0x80;
    size_t n = rest + 9 > BLOCK ? 2 * BLOCK : BLOCK;
    uint64_t bits = (uint64_t)text.len * 8;
    for (size_t i = 0; i < 8; i++)
        last[n - 1 - i] = (unsigned char)(bits >> (8 * i));
    for (size_t i = 0; i < n; i += BLOCK)
        mix_bytes(state, last + i, mix);
}

static void spell(const uint32_t *state, size_t n, char *hex)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n * 8; i++)
        hex[i] = digits[state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[n * 8] = '\0';
}

static void mix_sha1(uint32_t *state, const uint32_t *words)
{
    uint32_t w[80];
    memcpy(w, words, BLOCK);
    for (size_t i = 16; i < 80; i++)
        w[i] = turn_left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    uint32_t a = state[0];
    uint32_t b = state[1];
    uint32_t c = state[2];
    uint32_t d = state[3];
    uint32_t e = state[4];
    for (size_t i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                     : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                     : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                              : (b ^ c ^ d) + 0xca62c1d6;
        uint32_t next = turn_left(a, 5) + f + e + w[i];
        e = d;
        d = c;
        c = turn_left(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

void sha1_hex(struct slice text, char *hex)
{
    uint32_t state[STATE_MAX] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    sum(text, state, mix_sha1);
    spell(state, 5, hex);
}

static const uint32_t cube_roots[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static void mix_sha256(uint32_t *state, const uint32_t *words)
{
    uint32_t w[64];
    uint32_t s[8];
    memcpy(w, words, BLOCK);
    memcpy(s, state, sizeof s);
    for (size_t i = 16; i < 64; i++) {
        uint32_t near = turn_right(w[i - 15], 7) ^ turn_right(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t far = turn_right(w[i - 2], 17) ^ turn_right(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + near + w[i - 7] + far;
    }
    for (size_t i = 0; i < 64; i++) {
        uint32_t high = turn_right(s[4], 6) ^ turn_right(s[4], 11) ^ turn_right(s[4], 25);
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        uint32_t one = s[7] + high + choice + cube_roots[i] + w[i];
        uint32_t low = turn_right(s[0], 2) ^ turn_right(s[0], 13) ^ turn_right(s[0], 22);
        uint32_t two = low + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + two;
    }
    for (size_t i = 0; i < 8; i++)
        state[i] += s[i];
}

void sha256_hex(struct slice text, char *hex)
{
    uint32_t state[STATE_MAX] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    sum(text, state, mix_sha256);
    spell(state, 8, hex);
}
