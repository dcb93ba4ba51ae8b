/* Commands about the connection: HELLO, SELECT, RESET, PING and the like. */
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
    if (index != 0 && conn->redis->config.is_cluster) {
        reply_error(conn, "ERR SELECT is not allowed in cluster mode");
        return;
    }
    if (index < 0 || index >= (int64_t)conn->redis->settings.databases) {
        reply_error(conn, "ERR DB index is out of range");
        return;
    }
    conn->db = &conn->redis->dbs[index];
    reply_ok(conn);
}

/* ---- HELLO ---- */

static bool read_protocol(struct redis_conn *conn, const struct slice *argv, size_t argc,
                          int64_t *protocol)
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

struct hello {
    const struct slice *login; /* the user's name, followed by the password; NULL: none */
    const struct slice *name;
};

static bool log_in(struct redis_conn *conn, const struct slice *login)
{
    if (acl_login(conn, login[0], login[1]))
        return true;
    acl_reply_wrong(conn);
    return false;
}

/* Before 7.2 each option took effect before the next option was parsed. */
static bool read_options(struct redis_conn *conn, const struct slice *argv, size_t argc,
                         struct hello *hello)
{
    bool acts = !is_at_least(conn->redis, 70200);
    for (size_t i = 2; i < argc; i++) {
        size_t left = argc - 1 - i;
        if (text_is(argv[i], "auth") && left >= 2) {
            conn->secret_words |= i < 62 ? 6ULL << i : 0;
            hello->login = &argv[i + 1];
            if (acts && !log_in(conn, hello->login))
                return false;
            i += 2;
        } else if (text_is(argv[i], "setname") && left >= 1) {
            hello->name = &argv[i + 1];
            if (acts ? !client_set_name(conn, argv[i + 1]) : !client_check_name(conn, argv[i + 1]))
                return false;
            i++;
        } else {
            reply_error(conn, "ERR Syntax error in HELLO option '%.*s'", SHOWN(argv[i]));
            return false;
        }
    }
    return acts || hello->login == NULL || log_in(conn, hello->login);
}

void cmd_hello(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    int64_t protocol;
    struct hello hello = {0};
    if (!read_protocol(conn, argv, argc, &protocol) || !read_options(conn, argv, argc, &hello))
        return;
    if (acl_is_stranger(conn) || !conn->is_authenticated) {
        reply_error(
            conn,
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO %s "
            "option can be used to authenticate the client and select the RESP protocol version at the "
            "same time",
            is_at_least(conn->redis, 70200) ? "<proto> AUTH <user> <pass>" : "AUTH <user> <pass>");
        return;
    }
    if (hello.name != NULL)
        text_set(&conn->name, *hello.name);
    if (protocol != 0)
        conn->protocol = (unsigned)protocol;
    bool is_valkey = is_valkey_8(conn->redis);
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
    reply_word(conn, conn->redis->config.is_cluster ? "cluster" : "standalone");
    reply_word(conn, "role");
    reply_word(conn, conn->redis->is_replica ? "replica" : "master");
    reply_word(conn, "modules");
    reply_array(conn, 0);
}
