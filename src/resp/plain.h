/*
 * The scanners' fast path: whole, short, ordinary pieces of RESP that lie in memory, taken in one go.
 *
 * Nothing here reports errors: for whatever is incomplete, unusual or wrong the answer is NULL, and the scanner, which
 * has changed nothing yet, reads it step by step. So what is taken here must be what those steps would take.
 */
#ifndef WEIR_RESP_PLAIN_H
#define WEIR_RESP_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"
#include "resp/scan.h"

#define CRLF_LEN 2
#define PLAIN_DIGITS 3
/* "$999\r\n"; no whole bulk is shorter than "$0\r\n\r\n", so this is the one check for the end of a header. */
#define PLAIN_LINE_MAX (1 + PLAIN_DIGITS + CRLF_LEN)

static inline bool is_crlf(const char *at)
{
    return memcmp(at, "\r\n", CRLF_LEN) == 0;
}

static inline unsigned digit_of(char byte)
{
    return (unsigned char)byte - (unsigned)'0';
}

/* A type byte, a number of up to PLAIN_DIGITS digits, CRLF. Returns where they end, or NULL. */
static inline const char *plain_header(const char *at, const char *end, uint32_t *number)
{
    if (end - at < PLAIN_LINE_MAX)
        return NULL;
    unsigned first = digit_of(at[1]);
    unsigned second = digit_of(at[2]);
    if (first > 9)
        return NULL;
    if (is_crlf(at + 2)) {
        *number = first;
        return at + 2 + CRLF_LEN;
    }
    if (first == 0 || second > 9)
        return NULL;
    if (is_crlf(at + 3)) {
        *number = first * 10 + second;
        return at + 3 + CRLF_LEN;
    }
    unsigned third = digit_of(at[3]);
    *number = first * 100 + second * 10 + third;
    return third <= 9 && is_crlf(at + 4) ? at + 4 + CRLF_LEN : NULL;
}

/* A whole bulk; its type byte is not checked. Returns where its data begins, or NULL. */
static inline const char *plain_bulk(const char *at, const char *end, uint32_t *len)
{
    const char *data = plain_header(at, end, len);
    bool is_whole = data != NULL && (size_t)(end - data) >= (size_t)*len + CRLF_LEN && is_crlf(data + *len);
    return is_whole ? data : NULL;
}

/* `n` whole bulks. Returns where they end, or NULL; of the first, if `first` is not NULL, its data. */
static inline const char *plain_bulks(const char *at, const char *end, const struct request_limits *limits, uint32_t n,
                                      struct slice *first)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t len;
        const char *data = plain_bulk(at, end, &len);
        if (data == NULL || *at != '$' || len > limits->bulk)
            return NULL;
        if (first != NULL && i == 0)
            *first = slice_of(data, len);
        at = data + len + CRLF_LEN;
    }
    return at;
}

/* A whole multibulk request of *argc > 0 arguments, of which the first is *name. Returns where it ends, or NULL. */
static inline const char *plain_request(const char *at, const char *end, const struct request_limits *limits,
                                        struct slice *name, uint32_t *argc)
{
    const char *next = plain_header(at, end, argc);
    if (next == NULL || *at != '*' || *argc == 0 || *argc > limits->args)
        return NULL;
    return plain_bulks(next, end, limits, *argc, name);
}

/* How many bytes a request has before its second argument: its name lies in it. At least PLAIN_HEAD_MIN. */
#define PLAIN_HEAD_MIN 8

static inline size_t plain_head(const char *at, struct slice name)
{
    return (size_t)(name.at + name.len + CRLF_LEN - at);
}

static inline uint64_t plain_word(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* n >= PLAIN_HEAD_MIN: by words, of which the last two may overlap. */
static inline bool plain_is_same(const char *a, const char *b, size_t n)
{
    const size_t last = n - sizeof(uint64_t);
    for (size_t i = 0; i < last; i += sizeof(uint64_t))
        if (plain_word(a + i) != plain_word(b + i))
            return false;
    return plain_word(a + last) == plain_word(b + last);
}

/*
 * plain_request for a request that begins like the one at `model`, which has `argc` arguments and `head` bytes before
 * the second. NULL also if it begins otherwise.
 */
static inline const char *plain_request_like(const char *at, const char *end, const struct request_limits *limits,
                                             const char *model, size_t head, uint32_t argc)
{
    if ((size_t)(end - at) < head || !plain_is_same(at, model, head))
        return NULL;
    return plain_bulks(at + head, end, limits, argc - 1, NULL);
}

#endif
