#include "base/num.h"

#include <stdlib.h>

const uint64_t num_least[NUM_DIGITS_MAX + 1] = {
    UINT64_MAX,
    0,
    UINT64_C(10),
    UINT64_C(100),
    UINT64_C(1000),
    UINT64_C(10000),
    UINT64_C(100000),
    UINT64_C(1000000),
    UINT64_C(10000000),
    UINT64_C(100000000),
    UINT64_C(1000000000),
    UINT64_C(10000000000),
    UINT64_C(100000000000),
    UINT64_C(1000000000000),
    UINT64_C(10000000000000),
    UINT64_C(100000000000000),
    UINT64_C(1000000000000000),
    UINT64_C(10000000000000000),
    UINT64_C(100000000000000000),
    UINT64_C(1000000000000000000),
    UINT64_C(10000000000000000000),
};

#define MAX_CHARS 20 /* "-9223372036854775808" */

bool num_parse(struct slice text, int64_t *out)
{
    if (text.len == 0 || text.len > MAX_CHARS)
        return false;
    bool negative = text.at[0] == '-';
    size_t i = negative ? 1 : 0;
    if (i == text.len)
        return false;
    if (text.at[i] == '0') {
        if (text.len != 1)
            return false;
        *out = 0;
        return true;
    }
    uint64_t value = 0;
    for (; i < text.len; i++) {
        unsigned digit = (unsigned char)text.at[i] - (unsigned)'0';
        if (digit > 9)
            return false;
        if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value))
            return false;
    }
    if (value > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    *out = negative ? (int64_t)(UINT64_C(0) - value) : (int64_t)value;
    return true;
}

int64_t num_of_environment(const char *name, int64_t most)
{
    const char *text = getenv(name);
    int64_t number;
    return text != NULL && num_parse(slice_str(text), &number) && number > 0 && number <= most
               ? number
               : 0;
}
