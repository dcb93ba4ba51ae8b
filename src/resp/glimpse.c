#include "resp/glimpse.h"

#include "base/num.h"

static void keep_tail(struct glimpse *glimpse, const char *data, size_t n)
{
    if (n >= GLIMPSE_BYTES) {
        memcpy(glimpse->tail, data + n - GLIMPSE_BYTES, GLIMPSE_BYTES);
        glimpse->n_tail = GLIMPSE_BYTES;
        return;
    }
    size_t old = glimpse->n_tail;
    size_t drop = old + n > GLIMPSE_BYTES ? old + n - GLIMPSE_BYTES : 0;
    memmove(glimpse->tail, glimpse->tail + drop, old - drop);
    memcpy(glimpse->tail + old - drop, data, n);
    glimpse->n_tail = (uint8_t)(old - drop + n);
}

void glimpse_feed(struct glimpse *glimpse, const char *data, size_t n)
{
    size_t room = GLIMPSE_BYTES - (size_t)glimpse->n_head;
    size_t part = n < room ? n : room;
    memcpy(glimpse->head + glimpse->n_head, data, part);
    glimpse->n_head = (uint8_t)(glimpse->n_head + part);
    keep_tail(glimpse, data, n);
}

bool glimpse_starts(const struct glimpse *glimpse, struct slice text)
{
    return glimpse->n_head >= text.len && memcmp(glimpse->head, text.at, text.len) == 0;
}

/*
 * Returns the line that starts at `from`, without its CRLF. The result's `at` is NULL if the line
 * ends beyond the `n` bytes.
 */
static struct slice glimpse_line_at(const char *at, size_t n, size_t from)
{
    if (from >= n)
        return slice_of(NULL, 0);
    const char *cr = memchr(at + from, '\r', n - from);
    return cr == NULL ? slice_of(NULL, 0) : slice_of(at + from, (size_t)(cr - at) - from);
}

struct slice glimpse_first_bulk(const struct glimpse *glimpse)
{
    struct slice none = {NULL, 0};
    struct slice header = glimpse_line_at(glimpse->head, glimpse->n_head, 0);
    if (header.at == NULL)
        return none;
    size_t at = header.len + 2;
    struct slice bulk = glimpse_line_at(glimpse->head, glimpse->n_head, at);
    int64_t len;
    if (bulk.at == NULL || bulk.len < 2 || bulk.at[0] != '$' ||
        !num_parse(slice_of(bulk.at + 1, bulk.len - 1), &len))
        return none;
    at += bulk.len + 2;
    if (len < 0 || at + (size_t)len > glimpse->n_head)
        return none;
    return slice_of(glimpse->head + at, (size_t)len);
}

int64_t glimpse_last_integer(const struct glimpse *glimpse)
{
    size_t n = glimpse->n_tail;
    if (n < 4 || glimpse->tail[n - 1] != '\n' || glimpse->tail[n - 2] != '\r')
        return -1;
    size_t from = n - 2;
    while (from > 0 && glimpse->tail[from - 1] != '\n')
        from--;
    int64_t value;
    if (glimpse->tail[from] != ':' ||
        !num_parse(slice_of(glimpse->tail + from + 1, n - 3 - from), &value))
        return -1;
    return value;
}
