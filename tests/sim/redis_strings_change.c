/* Commands that change a string. */
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

void cmd_incrby(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    int64_t by;
    if (arg_number(conn, argv[2], &by))
        increment(conn, argv[1], by);
}

/* ---- ranges ---- */

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
