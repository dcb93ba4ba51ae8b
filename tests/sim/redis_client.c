/* CLIENT subcommands about the connection itself. */
#include "tests/sim/redis_client.h"

#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_reply.h"

struct redis_conn *client_by_id(const struct redis *redis, uint64_t id)
{
    return dict_get(&redis->by_id, slice_of((const char *)&id, sizeof id));
}

/* ---- the connection itself ---- */

void cmd_client_id(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    reply_number(conn, (int64_t)conn->id);
}

static bool is_printable(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < '!' || text.at[i] > '~')
            return false;
    return true;
}

bool client_check_name(struct redis_conn *conn, struct slice name)
{
    if (is_printable(name))
        return true;
    reply_error(conn, "ERR Client names cannot contain spaces, newlines or special characters.");
    return false;
}

bool client_set_name(struct redis_conn *conn, struct slice name)
{
    if (!client_check_name(conn, name))
        return false;
    text_set(&conn->name, name);
    return true;
}

void cmd_client_setname(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    if (client_set_name(conn, argv[2]))
        reply_ok(conn);
}

void cmd_client_getname(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    if (conn->name.len > 0)
        reply_bulk(conn, text_slice(&conn->name));
    else
        reply_null(conn);
}

void cmd_client_setinfo(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    bool is_name = text_is(argv[2], "lib-name");
    if (!is_name && !text_is(argv[2], "lib-ver")) {
        reply_error(conn, "ERR Unrecognized option '%.*s'", SHOWN(argv[2]));
        return;
    }
    if (!is_printable(argv[3])) {
        reply_error(conn, "ERR %.*s cannot contain spaces, newlines or special characters.",
                    SHOWN(argv[2]));
        return;
    }
    text_set(is_name ? &conn->lib_name : &conn->lib_version, argv[3]);
    reply_ok(conn);
}

void cmd_client_reply(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    if (text_is(argv[2], "on")) {
        conn->is_reply_off = conn->is_reply_skip = false;
        reply_ok(conn);
    } else if (text_is(argv[2], "off")) {
        conn->is_reply_off = true;
    } else if (text_is(argv[2], "skip")) {
        conn->is_reply_skip_next |= !conn->is_reply_off;
    } else {
        reply_syntax(conn);
    }
}

static void set_switch(struct redis_conn *conn, struct slice word, bool *flag)
{
    if (!text_is(word, "on") && !text_is(word, "off")) {
        reply_syntax(conn);
        return;
    }
    *flag = text_is(word, "on");
    reply_ok(conn);
}

void cmd_client_no_evict(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    set_switch(conn, argv[2], &conn->is_no_evict);
}

void cmd_client_no_touch(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    set_switch(conn, argv[2], &conn->is_no_touch);
}
