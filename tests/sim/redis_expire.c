/* Commands about the time that a key has. */
#include "tests/sim/redis_args.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_db.h"

/* ---- time ---- */

enum expire_option { EXPIRE_NX = 1, EXPIRE_XX = 2, EXPIRE_GT = 4, EXPIRE_LT = 8 };

static bool read_expire_options(struct redis_conn *conn, const struct slice *argv, size_t argc, unsigned *options)
{
    static const char *const words[] = {"nx", "xx", "gt", "lt"};
    for (size_t i = 3; i < argc; i++) {
        size_t k = 0;
        while (k < 4 && !text_is(argv[i], words[k]))
            k++;
        if (k == 4) {
            reply_error(conn, "ERR Unsupported option %.*s", SHOWN(argv[i]));
            return false;
        }
        *options |= 1U << k;
    }
    if ((*options & EXPIRE_NX) && (*options & ~(unsigned)EXPIRE_NX)) {
        reply_error(conn, "ERR NX and XX, GT or LT options at the same time are not compatible");
        return false;
    }
    if ((*options & EXPIRE_GT) && (*options & EXPIRE_LT)) {
        reply_error(conn, "ERR GT and LT options at the same time are not compatible");
        return false;
    }
    return true;
}

static bool expire_applies(unsigned options, int64_t current, int64_t when)
{
    bool has_none = current == NO_EXPIRY;
    if ((options & EXPIRE_NX) && !has_none)
        return false;
    if ((options & EXPIRE_XX) && has_none)
        return false;
    if ((options & EXPIRE_GT) && (has_none || when <= current))
        return false;
    return !(options & EXPIRE_LT) || has_none || when < current;
}

static void expire(struct redis_conn *conn, const struct slice *argv, size_t argc, int64_t base_ms, int64_t unit_ms)
{
    unsigned options = 0;
    int64_t when;
    if (!read_expire_options(conn, argv, argc, &options) || !arg_number(conn, argv[2], &when))
        return;
    if (__builtin_mul_overflow(when, unit_ms, &when) || when > INT64_MAX - base_ms) {
        reply_expiry(conn);
        return;
    }
    when += base_ms;
    struct value *value = key_find(conn, argv[1]);
    if (value == NULL || !expire_applies(options, value->expires_ms, when)) {
        reply_number(conn, 0);
        return;
    }
    if (when <= now_ms(conn->redis))
        key_delete(conn, argv[1]);
    else
        db_set_expiry(conn->db, value, when);
    key_changed(conn, argv[1]);
    reply_number(conn, 1);
}

void cmd_expire(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    expire(conn, argv, argc, now_ms(conn->redis), 1000);
}

void cmd_pexpire(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    expire(conn, argv, argc, now_ms(conn->redis), 1);
}

void cmd_expireat(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    expire(conn, argv, argc, 0, 1000);
}

void cmd_pexpireat(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    expire(conn, argv, argc, 0, 1);
}

/* -2: no key, -1: no time; else what is left, or the moment, in ms. */
static int64_t time_of(struct redis_conn *conn, struct slice name, bool is_moment)
{
    const struct value *value = key_find(conn, name);
    if (value == NULL)
        return -2;
    if (value->expires_ms == NO_EXPIRY)
        return -1;
    int64_t time = is_moment ? value->expires_ms : value->expires_ms - now_ms(conn->redis);
    return time < 0 ? 0 : time;
}

static int64_t in_seconds(int64_t ms)
{
    return ms < 0 ? ms : (ms + 500) / 1000;
}

void cmd_ttl(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    reply_number(conn, in_seconds(time_of(conn, argv[1], false)));
}

void cmd_pttl(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    reply_number(conn, time_of(conn, argv[1], false));
}

void cmd_expiretime(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    reply_number(conn, in_seconds(time_of(conn, argv[1], true)));
}

void cmd_pexpiretime(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    reply_number(conn, time_of(conn, argv[1], true));
}

void cmd_persist(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    struct value *value = key_find(conn, argv[1]);
    bool has_time = value != NULL && value->expires_ms != NO_EXPIRY;
    if (has_time) {
        db_set_expiry(conn->db, value, NO_EXPIRY);
        key_changed(conn, argv[1]);
    }
    reply_number(conn, has_time);
}
