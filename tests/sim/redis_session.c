/* Commands about the connection itself: HELLO, SELECT, RESET, QUIT, PING and their like. */
#include "tests/sim/redis_acl.h"
#include "tests/sim/redis_args.h"
#include "tests/sim/redis_client.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_conn.h"
#include "tests/sim/redis_pubsub.h"
#include "tests/sim/redis_server.h"

void cmd_ping(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    if (argc > 2) {
        reply_arity(conn);
        return;
    }
    if (conn->protocol == 2 && pubsub_is_listening(conn)) {
        reply_array(conn, 2);
        reply_word(conn, "pong");
        reply_bulk(conn, argc == 2 ? argv[1] : SLICE(""));
    } else if (argc == 2) {
        reply_bulk(conn, argv[1]);
    } else {
        reply_status(conn, "PONG");
    }
}

void cmd_echo(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    reply_bulk(conn, argv[1]);
}

void cmd_quit(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    reply_ok(conn);
    conn->is_closing = true;
}

void cmd_reset(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    conn_reset(conn);
    reply_status(conn, "RESET");
}

void cmd_select(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    int64_t index;
    if (!arg_int(conn, argv[1], &index))
        return;
    if (index < 0 || index >= (int64_t)conn->redis->settings.databases) {
        reply_error(conn, "ERR DB index is out of range");
        return;
    }
    conn->db = &conn->redis->dbs[index];
    reply_ok(conn);
}

/* ---- HELLO ---- */

static bool read_protocol(struct redis_conn *conn, const struct slice *argv, size_t argc, int64_t *protocol)
{
    *protocol = 0;
    if (argc < 2)
        return true;
    bool is_number = text_to_number(argv[1], protocol);
    if (!is_number && is_at_least(conn->redis, 60200)) {
        reply_error(conn, "ERR Protocol version is not an integer or out of range");
        return false;
    }
    if (*protocol == 2 || *protocol == 3)
        return true;
    reply_error(conn, "NOPROTO unsupported protocol version");
    return false;
}

/* Each acts before the next is looked at; but since 7.2 a name that is wrong keeps nobody from logging in first. */
static bool apply_options(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    for (size_t i = 2; i < argc; i++) {
        size_t left = argc - 1 - i;
        if (text_is(argv[i], "auth") && left >= 2) {
            conn->secret_words |= i < 62 ? 6ULL << i : 0;
            if (!acl_login(conn, argv[i + 1], argv[i + 2])) {
                reply_error(conn, "WRONGPASS invalid username-password pair or user is disabled.");
                return false;
            }
            i += 2;
        } else if (text_is(argv[i], "setname") && left >= 1) {
            if (!client_set_name(conn, argv[i + 1]))
                return false;
            i++;
        } else {
            reply_error(conn, "ERR Syntax error in HELLO option '%.*s'", SHOWN(argv[i]));
            return false;
        }
    }
    return true;
}

void cmd_hello(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    int64_t protocol;
    if (!read_protocol(conn, argv, argc, &protocol) || !apply_options(conn, argv, argc))
        return;
    if (acl_is_stranger(conn) || !conn->is_authenticated) {
        reply_error(conn,
                    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO %s "
                    "option can be used to authenticate the client and select the RESP protocol version at the "
                    "same time",
                    "AUTH <user> <pass>");
        return;
    }
    if (protocol != 0)
        conn->protocol = (unsigned)protocol;
    bool is_valkey = conn->redis->config.is_valkey && conn->redis->config.version >= 80000;
    reply_map(conn, 7);
    reply_word(conn, "server");
    reply_word(conn, is_valkey ? "valkey" : "redis");
    reply_word(conn, "version");
    reply_version(conn, is_valkey);
    reply_word(conn, "proto");
    reply_number(conn, conn->protocol);
    reply_word(conn, "id");
    reply_number(conn, (int64_t)conn->id);
    reply_word(conn, "mode");
    reply_word(conn, "standalone");
    reply_word(conn, "role");
    reply_word(conn, "master");
    reply_word(conn, "modules");
    reply_array(conn, 0);
}
