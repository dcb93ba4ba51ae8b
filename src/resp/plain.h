/*
 * Fast path of the scanners: takes whole, short, ordinary pieces of RESP in memory in one step.
 *
 * The functions report no errors, and return NULL for incomplete, unusual or wrong input. The
 * scanner, which has changed nothing yet, then reads the input step by step. Invariant: these
 * functions take only what the scanner's steps would take.
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
/*
 * Length of "$999\r\n". The shortest whole bulk, "$0\r\n\r\n", has the same length, so one check of
 * this length covers every header.
 */
#define PLAIN_LINE_MAX (1 + PLAIN_DIGITS + CRLF_LEN)

static inline bool is_crlf(const char *at)
{
    return memcmp(at, "\r\n", CRLF_LEN) == 0;
}

static inline unsigned digit_of(char byte)
{
    return (unsigned char)byte - (unsigned)'0';
}

/*
 * Takes a header line: a type byte, a number of up to PLAIN_DIGITS digits, and CRLF. Returns the
 * end of the line, or NULL.
 */
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

/* Takes a whole bulk without a check of the type byte. Returns the start of the data, or NULL. */
static inline const char *plain_bulk(const char *at, const char *end, uint32_t *len)
{
    const char *data = plain_header(at, end, len);
    bool is_whole =
        data != NULL && (size_t)(end - data) >= (size_t)*len + CRLF_LEN && is_crlf(data + *len);
    return is_whole ? data : NULL;
}

/*
 * Takes `n` whole bulks. Returns the end of the last bulk, or NULL. *first, if not NULL, receives
 * the first bulk's data.
 */
static inline const char *plain_bulks(const char *at, const char *end,
                                      const struct request_limits *limits, uint32_t n,
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

/*
 * Takes a whole multibulk request of *argc > 0 arguments; *name is the first argument. Returns the
 * end of the request, or NULL.
 */
static inline const char *plain_request(const char *at, const char *end,
                                        const struct request_limits *limits, struct slice *name,
                                        uint32_t *argc)
{
    const char *next = plain_header(at, end, argc);
    if (next == NULL || *at != '*' || *argc == 0 || *argc > limits->args)
        return NULL;
    return plain_bulks(next, end, limits, *argc, name);
}

/*
 * Returns the number of bytes before the second argument of a request; the name lies in these
 * bytes. The result is at least PLAIN_HEAD_MIN.
 */
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

/*
 * True if n >= PLAIN_HEAD_MIN bytes are equal. Compares words of 8 bytes; the last two words may
 * overlap.
 */
static inline bool plain_is_same(const char *a, const char *b, size_t n)
{
    const size_t last = n - sizeof(uint64_t);
    for (size_t i = 0; i < last; i += sizeof(uint64_t))
        if (plain_word(a + i) != plain_word(b + i))
            return false;
    return plain_word(a + last) == plain_word(b + last);
}

/*
 * Like plain_request, for a request that begins like the request at `model`. The model has `argc`
 * arguments, and `head` bytes before the second argument. Returns NULL also if the request begins
 * differently.
 */
static inline const char *plain_request_like(const char *at, const char *end,
                                             const struct request_limits *limits, const char *model,
                                             size_t head, uint32_t argc)
{
    if ((size_t)(end - at) < head || !plain_is_same(at, model, head))
        return NULL;
    return plain_bulks(at + head, end, limits, argc - 1, NULL);
}

#endif
