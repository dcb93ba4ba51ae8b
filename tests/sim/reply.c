#include "tests/sim/reply.h"

#include <string.h>

#include "base/num.h"

#define DEPTH_MAX 128 /* what a script may nest is less */

/* The line that begins behind the type; its size with CRLF. */
static size_t read_line(struct slice data, struct slice *line)
{
    const char *end = memchr(data.at, '\r', data.len);
    if (end == NULL)
        return memchr(data.at, '\n', data.len) != NULL ? REPLY_BAD : REPLY_MORE;
    size_t len = (size_t)(end - data.at);
    if (memchr(data.at, '\n', len) != NULL)
        return REPLY_BAD;
    if (len + 1 == data.len)
        return REPLY_MORE;
    if (end[1] != '\n')
        return REPLY_BAD;
    *line = slice_of(data.at + 1, len - 1);
    return len + 2;
}

static size_t read_bulk(struct slice data, size_t head, struct reply *out)
{
    if (out->number == -1 && out->type == '$') {
        out->is_nil = true;
        return head;
    }
    if (out->number < 0)
        return REPLY_BAD;
    size_t size = head + (size_t)out->number + 2;
    if (data.len < size)
        return REPLY_MORE;
    out->text = slice_of(data.at + head, (size_t)out->number);
    return memcmp(data.at + size - 2, "\r\n", 2) == 0 ? size : REPLY_BAD;
}

static size_t read_any(struct slice data, struct reply *out, int depth);

static size_t read_elements(struct slice data, size_t head, struct reply *out, int depth)
{
    if (out->number == -1 && out->type == '*') {
        out->is_nil = true;
        return head;
    }
    if (out->number < 0 || depth == DEPTH_MAX)
        return REPLY_BAD;
    if (out->type == '%' || out->type == '|')
        out->number *= 2;
    size_t at = head;
    for (int64_t i = 0; i < out->number;) {
        struct reply element;
        size_t size = read_any(slice_of(data.at + at, data.len - at), &element, depth + 1);
        if (size == REPLY_MORE || size == REPLY_BAD)
            return size;
        at += size;
        i += element.type != '>';
    }
    out->inside = slice_of(data.at + head, at - head);
    return at;
}

static size_t read_any(struct slice data, struct reply *out, int depth)
{
    struct slice line;
    if (data.len == 0)
        return REPLY_MORE;
    *out = (struct reply){.type = data.at[0]};
    if (strchr("+-:$*%~>_#,=(|", out->type) == NULL || out->type == '\0')
        return REPLY_BAD;
    size_t size = read_line(data, &line);
    if (size == REPLY_MORE || size == REPLY_BAD)
        return size;
    out->text = line;
    out->is_nil = out->type == '_';
    if (strchr(":$*%~>=|", out->type) != NULL && !num_parse(line, &out->number))
        return REPLY_BAD;
    if (out->type == '$' || out->type == '=')
        size = read_bulk(data, size, out);
    else if (strchr("*%~>|", out->type) != NULL)
        size = read_elements(data, size, out, depth);
    return size;
}

size_t reply_read(struct slice data, struct reply *out)
{
    size_t size = read_any(data, out, 0);
    if (size != REPLY_MORE && size != REPLY_BAD)
        out->whole = slice_of(data.at, size);
    return size;
}

bool reply_next(struct slice *inside, struct reply *out)
{
    do {
        size_t size = inside->len > 0 ? reply_read(*inside, out) : REPLY_MORE;
        if (size == REPLY_MORE || size == REPLY_BAD)
            return false;
        *inside = slice_of(inside->at + size, inside->len - size);
    } while (out->type == '>');
    return true;
}

bool reply_at(const struct reply *reply, size_t i, struct reply *out)
{
    struct slice inside = reply->inside;
    bool has = reply_next(&inside, out);
    while (has && i-- > 0)
        has = reply_next(&inside, out);
    return has;
}
