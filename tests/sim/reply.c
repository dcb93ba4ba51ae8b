#include "tests/sim/reply.h"

#include <string.h>

#include "base/num.h"

enum { LINE = 1, NUMBER = 2, BULK = 4, ELEMENTS = 8 };

static const unsigned char kinds[256] = {
    ['+'] = LINE,
    ['-'] = LINE,
    ['_'] = LINE,
    ['#'] = LINE,
    [','] = LINE,
    ['('] = LINE,
    [':'] = NUMBER,
    ['$'] = NUMBER | BULK,
    ['='] = NUMBER | BULK,
    ['*'] = NUMBER | ELEMENTS,
    ['%'] = NUMBER | ELEMENTS,
    ['~'] = NUMBER | ELEMENTS,
    ['>'] = NUMBER | ELEMENTS,
    ['|'] = NUMBER | ELEMENTS,
};

#define DIGITS_MAX 16

/* Reads the line behind the type byte. Returns its size with CRLF. */
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

/* Fast path for a line of a few digits. 0: another line, invalid or incomplete. */
static size_t read_digits(struct slice data, struct reply *out)
{
    size_t end = 1;
    int64_t number = 0;
    for (; end < data.len && end <= DIGITS_MAX && data.at[end] >= '0' && data.at[end] <= '9'; end++)
        number = number * 10 + (data.at[end] - '0');
    bool is_plain = end == 2 || (end > 2 && data.at[1] != '0');
    if (!is_plain || end + 1 >= data.len || data.at[end] != '\r' || data.at[end + 1] != '\n')
        return 0;
    out->text = slice_of(data.at + 1, end - 1);
    out->number = number;
    return end + 2;
}

/* False: the number of elements is invalid. */
static bool count_elements(struct reply *out)
{
    out->is_nil = out->number == -1 && out->type == '*';
    bool is_map = out->type == '%' || out->type == '|';
    if (is_map && out->number <= INT64_MAX / 2)
        out->number *= 2;
    else if (is_map)
        return false;
    return out->number >= 0 || out->is_nil;
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

/* Reads a header, and a bulk string in full. */
static size_t read_one(struct slice data, struct reply *out)
{
    if (data.len == 0)
        return REPLY_MORE;
    unsigned kind = kinds[(unsigned char)data.at[0]];
    *out = (struct reply){.type = data.at[0], .is_nil = data.at[0] == '_'};
    if (kind == 0)
        return REPLY_BAD;
    size_t size = (kind & NUMBER) != 0 ? read_digits(data, out) : 0;
    if (size == 0) {
        size = read_line(data, &out->text);
        if (size == REPLY_MORE || size == REPLY_BAD)
            return size;
        if ((kind & NUMBER) != 0 && !num_parse(out->text, &out->number))
            return REPLY_BAD;
    }
    if ((kind & BULK) != 0)
        return read_bulk(data, size, out);
    if ((kind & ELEMENTS) != 0 && !count_elements(out))
        return REPLY_BAD;
    return size;
}

static bool has_elements(const struct reply *reply)
{
    return (kinds[(unsigned char)reply->type] & ELEMENTS) != 0 && !reply->is_nil;
}

/* Ends an element, and each aggregate with no elements left. */
static void end_one(struct reply_reader *reader, char type)
{
    for (;;) {
        if (reader->depth == 0)
            return;
        struct reply_level *level = &reader->levels[reader->depth - 1];
        level->left -= type != '>';
        if (level->left > 0)
            return;
        type = level->type;
        reader->depth--;
    }
}

static size_t read_whole(struct reply_reader *reader, struct slice data, struct reply *out)
{
    do {
        size_t size = read_one(slice_of(data.at + reader->at, data.len - reader->at), out);
        if (size == REPLY_MORE || size == REPLY_BAD)
            return size;
        bool is_open = has_elements(out);
        if (is_open && reader->depth == REPLY_DEPTH_MAX)
            return REPLY_BAD;
        reader->at += size;
        if (is_open && out->number > 0)
            reader->levels[reader->depth++] = (struct reply_level){out->number, out->type};
        else
            end_one(reader, out->type);
    } while (reader->depth > 0);
    return reader->at;
}

size_t reply_go_on(struct reply_reader *reader, struct slice data, struct reply *out)
{
    size_t size = read_whole(reader, data, out);
    if (size == REPLY_MORE || size == REPLY_BAD)
        return size;
    reader->at = 0;
    size_t head = read_one(data, out);
    if (has_elements(out))
        out->inside = slice_of(data.at + head, size - head);
    out->whole = slice_of(data.at, size);
    return size;
}

size_t reply_read(struct slice data, struct reply *out)
{
    struct reply_reader reader; /* its levels are written before they are read */
    reader.at = 0;
    reader.depth = 0;
    return reply_go_on(&reader, data, out);
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
