#include "tests/sim/redis_args.h"

#include <limits.h>
#include <math.h>

#include "tests/sim/redis_commands.h"

bool arg_number(struct redis_conn *conn, struct slice arg, int64_t *number)
{
    if (text_to_number(arg, number))
        return true;
    reply_not_integer(conn);
    return false;
}

bool arg_float(struct redis_conn *conn, struct slice arg, double *number)
{
    if (text_to_float(arg, number))
        return true;
    reply_error(conn, "ERR value is not a valid float");
    return false;
}

bool arg_positive(struct redis_conn *conn, struct slice arg, int64_t *number)
{
    if (text_to_number(arg, number) && *number >= 0)
        return true;
    reply_error(conn, "ERR value is out of range, must be positive");
    return false;
}

bool arg_int(struct redis_conn *conn, struct slice arg, int64_t *number)
{
    if (!arg_number(conn, arg, number))
        return false;
    if (*number >= INT_MIN && *number <= INT_MAX)
        return true;
    reply_error(conn, "ERR value is out of range, value must between %d and %d", INT_MIN, INT_MAX);
    return false;
}

bool arg_timeout(struct redis_conn *conn, struct slice arg, double unit_us, uint64_t *due_us)
{
    long double seconds = 0;
    int64_t whole = 0;
    bool is_float = unit_us >= US_PER_S;
    if (is_float ? !text_to_long_double(arg, &seconds) : !text_to_number(arg, &whole)) {
        reply_error(conn, is_float ? "ERR timeout is not a float or out of range"
                                   : "ERR timeout is not an integer or out of range");
        return false;
    }
    long double ms = is_float ? ceill(seconds * 1000) : (long double)whole;
    bool is_new = is_at_least(conn->redis, 70200);
    bool is_far = ms > (long double)(INT64_MAX - now_ms(conn->redis));
    if (ms < 0 || (ms > (long double)INT64_MAX && !is_new)) { /* where the conversion overflowed */
        reply_error(conn, "ERR timeout is negative");
        return false;
    }
    if (is_far && is_new) {
        reply_error(conn, "ERR timeout is out of range");
        return false;
    }
    uint64_t after_us = 0;
    bool is_never = !is_far && (__builtin_mul_overflow((uint64_t)ms, US_PER_MS, &after_us) ||
                                __builtin_add_overflow(after_us, conn->redis->now_us, &after_us));
    *due_us = ms == 0 || is_never ? REDIS_NEVER : is_far ? conn->redis->now_us : after_us;
    return true;
}

bool arg_side(struct redis_conn *conn, struct slice arg, bool *is_left)
{
    *is_left = text_is(arg, "left");
    if (*is_left || text_is(arg, "right"))
        return true;
    reply_syntax(conn);
    return false;
}

size_t range_of(int64_t from, int64_t to, size_t n, size_t *first)
{
    int64_t count = (int64_t)n;
    from = from < 0 ? from + count : from;
    to = to < 0 ? to + count : to;
    from = from < 0 ? 0 : from;
    to = to >= count ? count - 1 : to;
    *first = (size_t)from;
    return from > to || from >= count ? 0 : (size_t)(to - from + 1);
}

void reply_expiry(struct redis_conn *conn)
{
    const char *name = command_name(conn->redis, conn->command);
    reply_error(conn,
                is_at_least(conn->redis, 70000) ? "ERR invalid expire time in '%s' command"
                                                : "ERR invalid expire time in %s",
                name);
}

bool arg_expiry(struct redis_conn *conn, struct slice arg, int64_t unit_ms, bool is_moment,
                int64_t *expires_ms)
{
    int64_t time;
    if (!arg_number(conn, arg, &time))
        return false;
    bool is_bad = time <= 0 || __builtin_mul_overflow(time, unit_ms, &time);
    if (!is_bad && !is_moment)
        is_bad = __builtin_add_overflow(time, now_ms(conn->redis), &time);
    if (is_bad) {
        reply_expiry(conn);
        return false;
    }
    *expires_ms = time;
    return true;
}
