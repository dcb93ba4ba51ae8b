/* element_head reads type and number of a reply; element_next finds the ends of elements. */
#include "resp/join.h"

#include <stdlib.h>

#include "resp/element.h"

/* ---- headers ---- */

static bool read_integer(struct slice reply, int64_t *number)
{
    struct element_head header;
    if (!element_head(reply, &header) || header.type != ':')
        return false;
    *number = header.number;
    return true;
}

static bool is_nil(struct slice reply)
{
    return slice_eq(reply, SLICE("$-1\r\n")) || slice_eq(reply, SLICE("_\r\n")) ||
           slice_eq(reply, SLICE("*-1\r\n"));
}

bool join_is_error(struct slice reply)
{
    return reply.len > 0 && scan_is_error(*reply.at);
}

/* Returns NULL if no reply is an error. */
static const struct slice *first_error(const struct slice *replies, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (join_is_error(replies[i]))
            return &replies[i];
    return NULL;
}

/* ---- integers ---- */

static int64_t join_add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t join_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t and (int64_t a, int64_t b)
{
    return a != 0 && b != 0;
}

static bool join_integers(struct build *out, const struct slice *replies, size_t n,
                          int64_t (*of)(int64_t, int64_t))
{
    int64_t all = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t number;
        if (!read_integer(replies[i], &number))
            return false;
        all = i == 0 ? number : of(all, number);
    }
    build_int(out, all);
    return true;
}

/* Reads element `index` of an array of integers. */
static bool integer_at(struct slice reply, int64_t index, int64_t *number)
{
    struct element_head header;
    struct slice element;
    if (!element_head(reply, &header) || header.type != '*')
        return false;
    for (int64_t i = 0; i <= index; i++)
        if (!element_next(&header.rest, &element))
            return false;
    return read_integer(element, number);
}

/* Quadratic in the number of elements, which are few: as many as the arguments of SCRIPT EXISTS. */
static bool join_each(struct build *out, const struct slice *replies, size_t n,
                      int64_t (*of)(int64_t, int64_t))
{
    struct element_head first;
    if (!element_head(replies[0], &first) || first.type != '*' || first.number < 0)
        return false;
    build_array(out, (size_t)first.number);
    for (int64_t at = 0; at < first.number; at++) {
        int64_t all = 0;
        for (size_t i = 0; i < n; i++) {
            int64_t number;
            if (!integer_at(replies[i], at, &number))
                return false;
            all = i == 0 ? number : of(all, number);
        }
        build_int(out, all);
    }
    return true;
}

/* Quadratic in the number of elements: as many as the channels that PUBSUB SHARDNUMSUB names. */
static bool join_pairs(struct build *out, const struct slice *replies, size_t n)
{
    struct element_head first;
    struct slice element;
    if (!element_head(replies[0], &first) || first.type != '*' || first.number < 0 ||
        first.number % 2 != 0)
        return false;
    build_array(out, (size_t)first.number);
    for (int64_t at = 0; at < first.number; at++) {
        int64_t all = 0, number;
        if (!element_next(&first.rest, &element))
            return false;
        for (size_t i = 0; i < n && at % 2 != 0; i++, all = join_add(all, number))
            if (!integer_at(replies[i], at, &number))
                return false;
        if (at % 2 == 0)
            build_raw(out, element);
        else
            build_int(out, all);
    }
    return true;
}

/* ---- concatenation ---- */

static bool join_is_list(char type)
{
    return type == '*' || type == '~' || type == '%';
}

static bool join_lists(struct build *out, const struct slice *replies, size_t n)
{
    struct element_head header;
    char type = 0;
    int64_t number = 0;
    for (size_t i = 0; i < n; i++) {
        if (!element_head(replies[i], &header) || !join_is_list(header.type) || header.number < 0)
            return false;
        if (i > 0 && header.type != type)
            return false;
        type = header.type;
        number += header.number;
    }
    build_header(out, type, number);
    for (size_t i = 0; i < n; i++) {
        (void)element_head(replies[i], &header);
        build_raw(out, header.rest);
    }
    return true;
}

#define VERBATIM_PREFIX 4 /* "txt:" */

/* Reads the string itself, without its line end. False if the reply is no string. */
static bool join_read_text(struct slice reply, char *type, struct slice *text)
{
    struct element_head header;
    if (!element_head(reply, &header) || header.number < 0 ||
        header.rest.len != (size_t)header.number + 2)
        return false;
    *type = header.type;
    *text = slice_of(header.rest.at, (size_t)header.number);
    if (header.type == '=' && text->len >= VERBATIM_PREFIX)
        *text = slice_of(text->at + VERBATIM_PREFIX, text->len - VERBATIM_PREFIX);
    return header.type == '$' || (header.type == '=' && header.number >= VERBATIM_PREFIX);
}

static bool join_texts(struct build *out, const struct slice *replies, size_t n)
{
    char type = 0;
    char first_type = 0;
    struct slice text;
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (!join_read_text(replies[i], &type, &text) || (i > 0 && type != first_type))
            return false;
        first_type = type;
        len += text.len;
    }
    build_header(out, type, (int64_t)(type == '=' ? len + VERBATIM_PREFIX : len));
    if (type == '=')
        build_raw(out, SLICE("txt:"));
    for (size_t i = 0; i < n; i++) {
        (void)join_read_text(replies[i], &type, &text);
        build_raw(out, text);
    }
    build_raw(out, SLICE("\r\n"));
    return true;
}

/* ---- selection ---- */

/* True if the error only means that the answering node had nothing to do. */
static bool is_idle_error(struct slice reply)
{
    static const struct slice idle[] = {SLICE("-NOTBUSY"), SLICE("-ERR No such client")};
    for (size_t i = 0; i < sizeof idle / sizeof idle[0]; i++)
        if (reply.len >= idle[i].len && slice_eq(slice_of(reply.at, idle[i].len), idle[i]))
            return true;
    return false;
}

static struct slice any_of(const struct slice *replies, size_t n)
{
    struct slice error = replies[0];
    for (size_t i = 0; i < n; i++) {
        if (!join_is_error(replies[i]))
            return replies[i];
        if (is_idle_error(error))
            error = replies[i];
    }
    return error;
}

static struct slice pick_of(const struct slice *replies, size_t n, size_t pick)
{
    for (size_t i = 0; i < n; i++)
        if (!is_nil(replies[(pick + i) % n]))
            return replies[(pick + i) % n];
    return replies[0];
}

static bool join_kills(struct build *out, const struct slice *replies, size_t n)
{
    struct slice any = any_of(replies, n);
    const struct slice *error = first_error(replies, n);
    if (any.len > 0 && *any.at == ':' && error == NULL)
        return join_integers(out, replies, n, join_add);
    build_raw(out, any.len > 0 && *any.at == ':' ? *error : any);
    return true;
}

/* ---- dispatch ---- */

static bool join_one(struct build *out, struct slice reply)
{
    build_raw(out, reply);
    return true;
}

static bool join_by(struct build *out, enum join join, const struct slice *replies, size_t n,
                    size_t pick)
{
    switch (join) {
    case JOIN_SUM:
        return join_integers(out, replies, n, join_add);
    case JOIN_LEAST:
        return join_integers(out, replies, n, join_least);
    case JOIN_LEAST_EACH:
        return join_each(out, replies, n, join_least);
    case JOIN_AND:
        return join_each(out, replies, n, and);
    case JOIN_PAIRS:
        return join_pairs(out, replies, n);
    case JOIN_LIST:
        return join_lists(out, replies, n);
    case JOIN_TEXT:
        return join_texts(out, replies, n);
    case JOIN_PICK:
        return join_one(out, pick_of(replies, n, pick));
    case JOIN_ANY:
        return join_one(out, any_of(replies, n));
    case JOIN_KILL:
        return join_kills(out, replies, n);
    case JOIN_FIRST:
    case JOIN_VALUES:
    case JOIN_OK:
        break;
    }
    return join_one(out, replies[0]);
}

/* If `is_joined` is false, replaces the output since `begin` by JOIN_ODD. */
static void end_join(struct build *out, size_t begin, bool is_joined)
{
    if (is_joined)
        return;
    out->len = begin;
    build_raw(out, JOIN_ODD);
}

void join_replies(struct build *out, enum join join, const struct slice *replies, size_t n,
                  size_t pick)
{
    const struct slice *error =
        join != JOIN_ANY && join != JOIN_KILL ? first_error(replies, n) : NULL;
    if (error != NULL) {
        build_raw(out, *error);
        return;
    }
    size_t begin = out->len;
    end_join(out, begin, join_by(out, join, replies, n, pick));
}

/* ---- values ---- */

/* The elements of one part's array that have not been taken. */
struct values_left {
    struct slice rest;
    struct slice element; /* the last taken element */
    uint32_t n_taken;
};

static bool value_take(struct values_left *left, uint32_t index)
{
    while (left->n_taken <= index) {
        if (!element_next(&left->rest, &left->element))
            return false;
        left->n_taken++;
    }
    return left->n_taken == index + 1;
}

static bool put_values(struct build *out, const struct slice *replies, struct values_left *lefts,
                       size_t n, const struct join_where *where, size_t n_values)
{
    for (size_t i = 0; i < n; i++) {
        struct element_head header;
        if (!element_head(replies[i], &header) || header.type != '*' || header.number < 0)
            return false;
        lefts[i].rest = header.rest;
    }
    build_array(out, n_values);
    for (size_t i = 0; i < n_values; i++) {
        if (where[i].part >= n || !value_take(&lefts[where[i].part], where[i].index))
            return false;
        build_raw(out, lefts[where[i].part].element);
    }
    return true;
}

void join_values(struct build *out, const struct slice *replies, size_t n,
                 const struct join_where *where, size_t n_values)
{
    const struct slice *error = first_error(replies, n);
    if (error != NULL) {
        build_raw(out, *error);
        return;
    }
    struct values_left *lefts = calloc(n, sizeof *lefts);
    size_t begin = out->len;
    if (lefts == NULL)
        out->is_broken = true;
    else
        end_join(out, begin, put_values(out, replies, lefts, n, where, n_values));
    free(lefts);
}
