/* Each function writes exactly as many bytes as it returns. */
#include "resp/emit.h"

#include <string.h>

#include "base/num.h"

/* The two digits of each number below 100, so that one division yields two digits. */
static const char pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

/* Returns the number of decimal digits, from the number of bits (log10 2 is nearly 1233 / 4096). */
static unsigned count_digits(uint64_t n)
{
    if (n < 10) /* the most frequent case */
        return 1;
    unsigned bits = 64 - (unsigned)__builtin_clzll(n);
    unsigned count = bits * 1233 >> 12;
    return count + (n >= num_least[count + 1]);
}

size_t emit_header(char *out, char type, int64_t n)
{
    uint64_t left = n < 0 ? UINT64_C(0) - (uint64_t)n : (uint64_t)n;
    char *to = out;
    *to++ = type;
    if (n < 0)
        *to++ = '-';
    to += count_digits(left);
    char *digit = to;
    for (; left >= 100; left /= 100)
        memcpy(digit -= 2, pairs + 2 * (left % 100), 2);
    if (left >= 10)
        memcpy(digit - 2, pairs + 2 * left, 2);
    else
        digit[-1] = (char)('0' + left);
    *to++ = '\r';
    *to++ = '\n';
    return (size_t)(to - out);
}

size_t emit_bulk(char *out, struct slice bytes)
{
    char *to = out + emit_header(out, '$', (int64_t)bytes.len);
    if (bytes.len > 0)
        memcpy(to, bytes.at, bytes.len);
    to += bytes.len;
    *to++ = '\r';
    *to++ = '\n';
    return (size_t)(to - out);
}

/* Writes the digits as a header, then drops the type byte and the line end. */
size_t emit_bulk_number(char *out, int64_t n)
{
    char digits[EMIT_HEADER_MAX];
    size_t len = emit_header(digits, ':', n);
    return emit_bulk(out, slice_of(digits + 1, len - 3));
}

size_t emit_array(char *out, const struct slice *args, size_t argc)
{
    char *to = out + emit_header(out, '*', (int64_t)argc);
    for (size_t i = 0; i < argc; i++)
        to += emit_bulk(to, args[i]);
    return (size_t)(to - out);
}
