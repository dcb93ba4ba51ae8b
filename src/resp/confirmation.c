#include "resp/confirmation.h"

#include <string.h>

#include "base/num.h"

struct reader {
    const char *at;
    const char *end;
};

/* Reads a line that begins with `type`. *text is the part between that byte and CRLF. */
static bool confirmation_read_line(struct reader *reader, char type, struct slice *text)
{
    const char *cr = reader->at < reader->end && *reader->at == type
                         ? memchr(reader->at, '\r', (size_t)(reader->end - reader->at))
                         : NULL;
    if (cr == NULL || reader->end - cr < 2 || cr[1] != '\n')
        return false;
    *text = slice_of(reader->at + 1, (size_t)(cr - reader->at) - 1);
    reader->at = cr + 2;
    return true;
}

static bool confirmation_read_number(struct reader *reader, char type, int64_t *number)
{
    struct slice text;
    return confirmation_read_line(reader, type, &text) && num_parse(text, number);
}

/* Reads a bulk or nil. *has is false for nil. */
static bool read_bulk(struct reader *reader, struct slice *bulk, bool *has)
{
    int64_t len;
    struct slice rest;
    *bulk = slice_of("", 0);
    *has = false;
    if (confirmation_read_line(reader, '_', &rest))
        return rest.len == 0;
    if (!confirmation_read_number(reader, '$', &len))
        return false;
    if (len == -1)
        return true;
    if (len < 0 || reader->end - reader->at < 2 || len > reader->end - reader->at - 2)
        return false;
    *bulk = slice_of(reader->at, (size_t)len);
    *has = true;
    reader->at += len + 2;
    return reader->at[-2] == '\r' && reader->at[-1] == '\n';
}

bool confirmation_read(struct slice frame, struct confirmation *out)
{
    struct reader reader = {frame.at, frame.at + frame.len};
    int64_t n;
    bool has_word;
    bool is_list = confirmation_read_number(&reader, '*', &n) || confirmation_read_number(&reader, '>', &n);
    if (!is_list || n != 3 || !read_bulk(&reader, &out->word, &has_word) || !has_word ||
        !read_bulk(&reader, &out->channel, &out->has_channel))
        return false;
    out->count_at = (size_t)(reader.at - frame.at);
    return confirmation_read_number(&reader, ':', &out->count) && reader.at == reader.end;
}
