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

/* A whole multibulk request of *argc > 0 arguments, of which the first is *name. Returns where it ends, or NULL. */
static inline const char *plain_request(const char *at, const char *end, const struct request_limits *limits,
                                        struct slice *name, uint32_t *argc)
{
    const char *next = plain_header(at, end, argc);
    if (next == NULL || *at != '*' || *argc == 0 || *argc > limits->args)
        return NULL;
    for (uint32_t arg = 0; arg < *argc; arg++) {
        uint32_t len;
        const char *data = plain_bulk(next, end, &len);
        if (data == NULL || *next != '$' || len > limits->bulk)
            return NULL;
        if (arg == 0)
            *name = slice_of(data, len);
        next = data + len + CRLF_LEN;
    }
    return next;
}

#endif
