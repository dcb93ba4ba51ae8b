/*
 * The input of request_scan and reply_scan: functions that consume the digits of a header, and the
 * data of a bulk.
 *
 * digits_take checks nothing, not even overflow. After the last digit digits_are_number decides, by
 * the count and the sum of the digits, whether the digits form a number. The result equals that of
 * num_parse on the whole text.
 */
#ifndef WEIR_RESP_CURSOR_H
#define WEIR_RESP_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/num.h"

#define DIGITS_MAX 19 /* most digits of a 64-bit signed number */

/* The input of a scan is [begin, end). The bytes [at, end) are not consumed yet. */
struct cursor {
    const char *begin;
    const char *at;
    const char *end;
};

/*
 * Consumes digits, and appends these digits to the decimal number *magnitude. Returns the number of
 * digits.
 */
static inline size_t digits_take(struct cursor *c, uint64_t *magnitude)
{
    const char *at = c->at;
    uint64_t sum = *magnitude;
    unsigned digit;
    while (at < c->end && (digit = (unsigned char)*at - (unsigned)'0') <= 9) {
        sum = sum * 10 + digit;
        at++;
    }
    size_t taken = (size_t)(at - c->at);
    c->at = at;
    *magnitude = sum;
    return taken;
}

/* True if num_parse accepts `digits` digits that sum up to `magnitude`. */
static inline bool digits_are_number(uint64_t magnitude, size_t digits, bool negative)
{
    if (digits > DIGITS_MAX || magnitude < num_least[digits])
        return false;
    return negative ? magnitude - 1 <= (uint64_t)INT64_MAX : magnitude <= (uint64_t)INT64_MAX;
}

/* Consumes up to *left bytes, and subtracts the consumed bytes from *left. True when *left is 0. */
static inline bool data_skip(struct cursor *c, uint64_t *left)
{
    size_t have = (size_t)(c->end - c->at);
    uint64_t taken = have < *left ? have : *left;
    c->at += taken;
    *left -= taken;
    return *left == 0;
}

#endif
