/* Commands that change a string, or show a part of it. */
#include <math.h>

#include "tests/sim/redis_args.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_db.h"

#define STRING_MAX (512LL * 1024 * 1024)

/* ---- numbers ---- */

static void increment(struct redis_conn *conn, struct slice name, int64_t by)
{
    struct value *value = key_find(conn, name);
    int64_t number = 0;
    if (!key_has_type(conn, value, VALUE_STRING))
        return;
    if (value != NULL && !arg_number(conn, text_slice(&value->string), &number))
        return;
    if (__builtin_add_overflow(number, by, &number)) {
        reply_error(conn, "ERR increment or decrement would overflow");
        return;
    }
    if (value == NULL)
        value = key_add(conn, name, VALUE_STRING);
    char digits[24];
    text_set(&value->string, text_of_number(number, digits));
    key_changed(conn, name);
    reply_number(conn, number);
}

void cmd_incr(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    increment(conn, argv[1], 1);
}

void cmd_decr(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    increment(conn, argv[1], -1);
}

void cmd_incrby(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    int64_t by;
    if (arg_number(conn, argv[2], &by))
        increment(conn, argv[1], by);
}

void cmd_decrby(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    int64_t by;
    if (!arg_number(conn, argv[2], &by))
        return;
    if (by == INT64_MIN)
        reply_error(conn, "ERR decrement would overflow");
    else
        increment(conn, argv[1], -by);
}

void cmd_incrbyfloat(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    struct value *value = key_find(conn, argv[1]);
    long double number = 0;
    long double by;
    if (!key_has_type(conn, value, VALUE_STRING))
        return;
    bool is_float = value == NULL || text_to_long_double(text_slice(&value->string), &number);
    if (!is_float || !text_to_long_double(argv[2], &by)) {
        reply_error(conn, "ERR value is not a valid float");
        return;
    }
    number += by;
    if (isnan(number) || isinf(number)) {
        reply_error(conn, "ERR increment would produce NaN or Infinity");
        return;
    }
    if (value == NULL)
        value = key_add(conn, argv[1], VALUE_STRING);
    char room[5200];
    text_set(&value->string, text_of_long_double(number, room));
    key_changed(conn, argv[1]);
    reply_bulk(conn, text_slice(&value->string));
}

/* ---- parts ---- */

void cmd_append(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    struct value *value = key_find(conn, argv[1]);
    if (!key_has_type(conn, value, VALUE_STRING))
        return;
    if (value == NULL)
        value = key_add(conn, argv[1], VALUE_STRING);
    text_add(&value->string, argv[2]);
    key_changed(conn, argv[1]);
    reply_number(conn, (int64_t)value->string.len);
}

void cmd_strlen(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    const struct value *value = key_find(conn, argv[1]);
    if (key_has_type(conn, value, VALUE_STRING))
        reply_number(conn, value != NULL ? (int64_t)value->string.len : 0);
}

void cmd_getrange(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    int64_t from;
    int64_t to;
    if (!arg_number(conn, argv[2], &from) || !arg_number(conn, argv[3], &to))
        return;
    const struct value *value = key_find(conn, argv[1]);
    if (!key_has_type(conn, value, VALUE_STRING))
        return;
    int64_t len = value != NULL ? (int64_t)value->string.len : 0;
    bool is_empty = from < 0 && to < 0 && from > to;
    from = from < 0 ? from + len : from;
    to = to < 0 ? to + len : to;
    from = from < 0 ? 0 : from;
    to = to < 0 ? 0 : to;
    to = to >= len ? len - 1 : to;
    if (is_empty || from > to || len == 0)
        reply_bulk(conn, SLICE(""));
    else
        reply_bulk(conn, slice_of(value->string.at + from, (size_t)(to - from + 1)));
}

static bool fits(struct redis_conn *conn, int64_t offset, size_t len)
{
    if (offset <= STRING_MAX && offset + (int64_t)len <= STRING_MAX)
        return true;
    reply_error(conn, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    return false;
}

void cmd_setrange(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    int64_t offset;
    if (!arg_number(conn, argv[2], &offset))
        return;
    if (offset < 0) {
        reply_error(conn, "ERR offset is out of range");
        return;
    }
    struct value *value = key_find(conn, argv[1]);
    if (!key_has_type(conn, value, VALUE_STRING))
        return;
    if (argv[3].len == 0) {
        reply_number(conn, value != NULL ? (int64_t)value->string.len : 0);
        return;
    }
    if (!fits(conn, offset, argv[3].len))
        return;
    if (value == NULL)
        value = key_add(conn, argv[1], VALUE_STRING);
    struct text *string = &value->string;
    size_t end = (size_t)offset + argv[3].len;
    if (end > string->len) {
        text_reserve(string, end - string->len);
        memset(string->at + string->len, 0, end - string->len);
        string->len = end;
    }
    memcpy(string->at + offset, argv[3].at, argv[3].len);
    key_changed(conn, argv[1]);
    reply_number(conn, (int64_t)string->len);
}
