/* Commands about the expiry of keys. */
#include "tests/sim/redis_args.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_db.h"

void cmd_pexpire(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    int64_t when;
    if (argc > 3) {
        reply_error(conn, "ERR Unsupported option %.*s", SHOWN(argv[3]));
        return;
    }
    if (!arg_number(conn, argv[2], &when))
        return;
    if (__builtin_add_overflow(when, now_ms(conn->redis), &when)) {
        reply_expiry(conn);
        return;
    }
    struct value *value = key_find(conn, argv[1]);
    if (value == NULL) {
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

void cmd_pttl(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    const struct value *value = key_find(conn, argv[1]);
    int64_t left_ms = value != NULL && value->expires_ms != NO_EXPIRY
                          ? value->expires_ms - now_ms(conn->redis)
                          : 0;
    if (value == NULL)
        reply_number(conn, -2);
    else if (value->expires_ms == NO_EXPIRY)
        reply_number(conn, -1);
    else
        reply_number(conn, left_ms < 0 ? 0 : left_ms);
}
