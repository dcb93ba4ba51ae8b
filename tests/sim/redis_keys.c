/* Commands about keys of any type. */
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_db.h"
#include "tests/sim/redis_multi.h"
#include "tests/sim/redis_random.h"
#include "tests/sim/redis_reply.h"
#include "tests/sim/redis_args.h"
#include "tests/sim/redis_tracking.h"

void cmd_del(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    int64_t n = 0;
    for (size_t i = 1; i < argc; i++) {
        if (!key_delete(conn, argv[i]))
            continue;
        key_changed(conn, argv[i]);
        n++;
    }
    reply_number(conn, n);
}

void cmd_exists(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    int64_t n = 0;
    for (size_t i = 1; i < argc; i++)
        n += key_find(conn, argv[i]) != NULL;
    reply_number(conn, n);
}

void cmd_flushall(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    if (argc > 2 || (argc == 2 && !text_is(argv[1], "sync") && !text_is(argv[1], "async"))) {
        reply_syntax(conn);
        return;
    }
    for (size_t i = 0; i < conn->redis->settings.databases; i++) {
        multi_touch_all(&conn->redis->dbs[i]);
        db_empty(&conn->redis->dbs[i]);
    }
    tracking_flushed(conn->redis);
    reply_ok(conn);
}
