#include "base/json.h"

#include <stdio.h>

#include "base/utf8.h"

static bool is_escaped(unsigned char c)
{
    return c < ' ' || c == 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&';
}

/* One character as it stands in the string, into out; returns its length, and how many bytes of `rest` it used. */
static size_t put(char out[8], struct slice rest, size_t *used)
{
    size_t n = utf8_len(rest);
    *used = n > 0 ? n : 1;
    if (n == 0)
        return (size_t)sprintf(out, "\\ufffd");
    if (is_escaped((unsigned char)rest.at[0]))
        return (size_t)sprintf(out, "\\u%04x", (unsigned char)rest.at[0]);
    memcpy(out, rest.at, n);
    return n;
}

size_t json_quote(char *out, size_t room, struct slice value)
{
    size_t len = 0;
    out[len++] = '"';
    while (value.len > 0) {
        char piece[8];
        size_t used;
        size_t n = put(piece, value, &used);
        if (len + n + 1 > room)
            break;
        memcpy(out + len, piece, n);
        len += n;
        value = slice_of(value.at + used, value.len - used);
    }
    out[len++] = '"';
    return len;
}
