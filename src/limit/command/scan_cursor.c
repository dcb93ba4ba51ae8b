#include "limit/command/scan_cursor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK_BITS 12
#define CHECK_MASK ((UINT64_C(1) << CHECK_BITS) - 1)

/* ---- the order ---- */

struct named {
    uint64_t hash;
    struct slice name;
    uint32_t row;
};

/* FNV-1a: gives equal values in every process. */
static uint64_t scan_cursor_hash_of(struct slice name)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.at[i]) * UINT64_C(1099511628211);
    return hash ^ hash >> 32;
}

static int by_hash(const void *a, const void *b)
{
    const struct named *x = a;
    const struct named *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    if (x->name.len != y->name.len)
        return x->name.len < y->name.len ? -1 : 1;
    return memcmp(x->name.at, y->name.at, x->name.len);
}

/* A check over all names in order: each name is mixed into the result of the names before. */
static uint16_t check_of(const struct named *named, uint32_t n)
{
    uint64_t all = n;
    for (uint32_t i = 0; i < n; i++)
        all = (all ^ named[i].hash) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint16_t)(all >> 40 & CHECK_MASK);
}

bool scan_order_init(struct scan_order *order, const struct slice *names, uint32_t n)
{
    struct named *named = malloc(n * sizeof *named);
    uint32_t *rows = malloc(n * sizeof *rows);
    *order = (struct scan_order){0};
    if (named == NULL || rows == NULL) {
        free(named);
        free(rows);
        return false;
    }
    for (uint32_t i = 0; i < n; i++)
        named[i] = (struct named){scan_cursor_hash_of(names[i]), names[i], i};
    qsort(named, n, sizeof *named, by_hash);
    for (uint32_t i = 0; i < n; i++)
        rows[i] = named[i].row;
    *order = (struct scan_order){rows, n, check_of(named, n)};
    free(named);
    return true;
}

void scan_order_fini(struct scan_order *order)
{
    free(order->rows);
    *order = (struct scan_order){0};
}

/* ---- cursors ---- */

static bool scan_cursor_read_number(struct slice text, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned char)text.at[i] - (unsigned)'0';
        if (digit > 9 || __builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, digit, number))
            return false;
    }
    return text.len > 0;
}

bool scan_cursor_read(const struct scan_order *order, struct slice text,
                      struct scan_position *position)
{
    uint64_t number;
    *position = (struct scan_position){0};
    if (!scan_cursor_read_number(text, &number))
        return false;
    if (number == 0 || (number & CHECK_MASK) != order->check)
        return true;
    number >>= CHECK_BITS;
    *position = (struct scan_position){number / order->n, (uint32_t)(number % order->n)};
    return true;
}

bool scan_cursor_next(const struct scan_order *order, const struct scan_position *position,
                      struct slice text, uint64_t *next)
{
    struct scan_position to = *position;
    if (!scan_cursor_read_number(text, &to.cursor))
        return false;
    *next = 0;
    if (to.cursor == 0 && ++to.master == order->n)
        return true;
    uint64_t number;
    if (__builtin_mul_overflow(to.cursor, order->n, &number) ||
        __builtin_add_overflow(number, to.master, &number) || number >> (64 - CHECK_BITS) != 0)
        return false;
    *next = number << CHECK_BITS | order->check;
    return true;
}

struct slice scan_cursor_print(uint64_t cursor, char out[SCAN_CURSOR_ROOM])
{
    return slice_of(out, (size_t)snprintf(out, SCAN_CURSOR_ROOM, "%" PRIu64, cursor));
}

/* ---- replies ---- */

/* Takes a bulk string off the front, in Redis' form: "$2\r\n17\r\n". */
static bool scan_cursor_take_bulk(struct slice *rest, struct slice *bulk)
{
    uint64_t len;
    const char *end = rest->len > 1 ? memchr(rest->at, '\r', rest->len) : NULL;
    if (end == NULL || *rest->at != '$' ||
        !scan_cursor_read_number(slice_of(rest->at + 1, (size_t)(end - rest->at) - 1), &len))
        return false;
    size_t head = (size_t)(end - rest->at) + 2;
    if (head > rest->len || len > rest->len - head || rest->len - head - len < 2)
        return false;
    *bulk = slice_of(rest->at + head, len);
    *rest = slice_of(bulk->at + len + 2, rest->len - head - len - 2);
    return true;
}

bool scan_reply_read(struct slice reply, struct slice *cursor, struct slice *rest)
{
    static const struct slice head = SLICE("*2\r\n");
    if (reply.len < head.len || !slice_eq(slice_of(reply.at, head.len), head))
        return false;
    *rest = slice_of(reply.at + head.len, reply.len - head.len);
    return scan_cursor_take_bulk(rest, cursor);
}
