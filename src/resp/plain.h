/*
 * Pieces of RESP that are at hand: all there, as plain as most traffic is, and taken in one go.
 *
 * Nothing here knows an error. What is not plain and right is answered with NULL, and the scanner, which has changed
 * nothing yet, reads it step by step. So a piece that is taken here must be one that the steps would take.
 */
#ifndef WEIR_RESP_PLAIN_H
#define WEIR_RESP_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CRLF_LEN 2
#define PLAIN_DIGITS 3
/* "$999\r\n"; no whole bulk is shorter than "$0\r\n\r\n", so this is the one check for the end of a header. */
#define PLAIN_LINE_MAX (1 + PLAIN_DIGITS + CRLF_LEN)

static inline bool is_crlf(const char *at)
{
    return memcmp(at, "\r\n", CRLF_LEN) == 0;
}

/* A type byte, a number of few digits, CRLF. Returns what follows them, or NULL. */
static inline const char *plain_header(const char *at, const char *end, uint32_t *number)
{
    if (end - at < PLAIN_LINE_MAX)
        return NULL;
    uint32_t sum = 0;
    for (const char *p = at + 1; p <= at + PLAIN_DIGITS; p++) {
        unsigned digit = (unsigned char)*p - (unsigned)'0';
        if (digit > 9)
            return NULL;
        sum = sum * 10 + digit;
        if (is_crlf(p + 1)) {
            *number = sum;
            return p + 1 + CRLF_LEN;
        }
        if (sum == 0)
            return NULL;
    }
    return NULL;
}

/* A bulk, its type byte taken on trust. Returns where its data begins, or NULL. */
static inline const char *plain_bulk(const char *at, const char *end, uint32_t *len)
{
    const char *data = plain_header(at, end, len);
    bool is_whole = data && (size_t)(end - data) >= (size_t)*len + CRLF_LEN && is_crlf(data + *len);
    return is_whole ? data : NULL;
}

#endif
