/* Writes RESP: nothing is written behind the bytes that are returned. */
#include "resp/emit.h"

#include <string.h>

size_t emit_header(char *out, char type, int64_t n)
{
    char digits[20];
    char *first = digits + sizeof digits;
    uint64_t left = n < 0 ? UINT64_C(0) - (uint64_t)n : (uint64_t)n;
    do {
        *--first = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);

    char *to = out;
    *to++ = type;
    if (n < 0)
        *to++ = '-';
    size_t count = (size_t)(digits + sizeof digits - first);
    memcpy(to, first, count);
    to += count;
    *to++ = '\r';
    *to++ = '\n';
    return (size_t)(to - out);
}

size_t emit_array(char *out, const struct slice *args, size_t argc)
{
    char *to = out + emit_header(out, '*', (int64_t)argc);
    for (size_t i = 0; i < argc; i++) {
        to += emit_header(to, '$', (int64_t)args[i].len);
        if (args[i].len > 0)
            memcpy(to, args[i].at, args[i].len);
        to += args[i].len;
        *to++ = '\r';
        *to++ = '\n';
    }
    return (size_t)(to - out);
}
