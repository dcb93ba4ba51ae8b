/* What happens to a request. The checks are in Redis' order. */
#include "tests/sim/redis_call.h"

#include "tests/sim/redis_acl.h"
#include "tests/sim/redis_block.h"
#include "tests/sim/redis_cluster.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_conn.h"
#include "tests/sim/redis_deny.h"
#include "tests/sim/redis_monitor.h"
#include "tests/sim/redis_multi.h"
#include "tests/sim/redis_pubsub.h"
#include "tests/sim/redis_reply.h"
#include "tests/sim/redis_script.h"
#include "tests/sim/redis_tracking.h"

#define SHOWN_MAX 128

/* Refuses with an error. If the command is EXEC, the transaction ends. */
static void refuse(struct redis_conn *conn, struct text *error)
{
    multi_spoil(conn);
    if (conn->command != NULL && conn->command->run == cmd_exec) {
        multi_abort(conn, text_slice(error));
        /* MONITOR has seen MULTI, and none of the queued commands */
        monitor_feed(conn, conn->argv, conn->n_spans);
    } else {
        reply_error(conn, "%.*s", SHOWN(text_slice(error)));
    }
    text_fini(error);
}

static void refuse_with(struct redis_conn *conn, const char *words)
{
    struct text error = {0};
    text_addf(&error, "%s", words);
    refuse(conn, &error);
}

void call_describe_unknown(const struct redis *redis, const struct slice *argv, size_t argc,
                           struct text *text)
{
    bool is_new = is_at_least(redis, 70000);
    size_t name_len = text_upto_nul(argv[0]).len;
    int shown = name_len > SHOWN_MAX && is_new ? SHOWN_MAX : (int)name_len;
    text_addf(text,
              is_new ? "unknown command '%.*s', with args beginning with: "
                     : "unknown command `%.*s`, with args beginning with: ",
              shown, argv[0].at);
    size_t from = text->len;
    for (size_t i = 1; i < argc && text->len - from < SHOWN_MAX; i++) {
        size_t room = SHOWN_MAX - (text->len - from);
        size_t len = text_upto_nul(argv[i]).len;
        int part = (int)(len < room ? len : room);
        text_addf(text, is_new ? "'%.*s' " : "`%.*s`, ", part, argv[i].at);
    }
}

static void refuse_unknown(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct text error = {0};
    text_addf(&error, "ERR ");
    const struct command *container = command_by_name(conn->redis, argv[0]);
    if (container == NULL || container->is_child || !command_is_container(container)) {
        call_describe_unknown(conn->redis, argv, argc, &error);
    } else {
        size_t len = text_upto_nul(argv[1]).len;
        text_addf(&error, "unknown subcommand '%.*s'. Try ",
                  (int)(len < SHOWN_MAX ? len : SHOWN_MAX), argv[1].at);
        for (size_t i = 0; i < argv[0].len; i++) {
            char c = ascii_upper(argv[0].at[i]);
            text_add(&error, slice_of(&c, 1));
        }
        text_addf(&error, " HELP.");
    }
    refuse(conn, &error);
}

bool call_fits(const struct command *command, size_t argc)
{
    return command->arity > 0 ? (size_t)command->arity == argc : argc >= (size_t)-command->arity;
}

static void refuse_arity(struct redis_conn *conn)
{
    struct text error = {0};
    text_addf(&error, "ERR wrong number of arguments for '%s' command",
              command_name(conn->redis, conn->command));
    refuse(conn, &error);
}

static void refuse_while_subscribed(struct redis_conn *conn)
{
    struct text error = {0};
    const char *kinds = is_at_least(conn->redis, 70000) ? "(P|S)" : "(P)";
    text_addf(
        &error,
        "ERR Can't execute '%s': only %sSUBSCRIBE / %sUNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
        command_name(conn->redis, conn->command), kinds, kinds);
    refuse(conn, &error);
}

static uint32_t bits_of(const struct redis_conn *conn)
{
    return conn->command->bits | (conn->command->run == cmd_exec ? conn->queue_bits : 0);
}

static bool is_held_back(const struct redis_conn *conn)
{
    const struct redis *redis = conn->redis;
    if (redis->pause_until_us == 0 || conn->is_monitor)
        return false;
    return redis->pause_is_all || (bits_of(conn) & (FLAG_WRITE | FLAG_MAY_REPLICATE)) != 0;
}

/* Valkey refuses to unsubscribe a connection without subscriptions. */
static bool refuse_leaving(struct redis_conn *conn)
{
    const struct command *command = conn->command;
    bool leaves = command->run == cmd_unsubscribe || command->run == cmd_punsubscribe ||
                  command->run == cmd_sunsubscribe;
    if (!leaves || !is_valkey_8(conn->redis) || pubsub_is_listening(conn))
        return false;
    struct text error = {0};
    text_addf(&error, "NOSUB '%s' command executed not in subscribed mode", command->name);
    refuse(conn, &error);
    return true;
}

static bool may_while_busy(const struct redis_conn *conn, const struct slice *argv)
{
    const struct command *command = conn->command;
    bool is_kill =
        command->run == cmd_container && text_is(argv[0], "script") && text_is(argv[1], "kill");
    return is_kill || (command->bits & FLAG_ALLOW_BUSY) != 0;
}

/* True: the request is refused. */
static bool refuse_if_barred(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    const struct command *command = conn->command;
    if (acl_is_stranger(conn) && !(command->bits & FLAG_NO_AUTH)) {
        refuse_with(conn, "NOAUTH Authentication required.");
        return true;
    }
    bool is_once =
        is_valkey_8(conn->redis) && (command->run == cmd_multi || command->run == cmd_watch);
    if (conn->is_multi && ((command->bits & FLAG_NO_MULTI) || is_once)) {
        refuse_with(conn, "ERR Command not allowed inside a transaction");
        return true;
    }
    if (cluster_refuses(conn, argv, argc))
        return true;
    const char *why = deny_write(conn);
    if (why != NULL) {
        refuse_with(conn, why);
        return true;
    }
    if (conn->protocol == 2 && pubsub_is_listening(conn) &&
        !(command->bits & FLAG_WHILE_SUBSCRIBED)) {
        refuse_while_subscribed(conn);
        return true;
    }
    if (refuse_leaving(conn))
        return true;
    why = deny_any(conn);
    if (why != NULL) {
        refuse_with(conn, why);
        return true;
    }
    if (script_is_busy(conn->redis) && !may_while_busy(conn, argv)) {
        if (conn->redis->config.on_stuck != NULL)
            conn->redis->config.on_stuck(false);
        refuse_with(
            conn,
            is_valkey_8(conn->redis)
                ? "BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
                : "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.");
        return true;
    }
    if (conn->is_monitor &&
        (bits_of(conn) & (FLAG_READONLY | FLAG_WRITE | FLAG_MAY_REPLICATE)) != 0) {
        refuse_with(conn, is_at_least(conn->redis, 70000)
                              ? "ERR Replica can't interact with the keyspace"
                              : "ERR Replica can't interract with the keyspace");
        return true;
    }
    return false;
}

bool call_process(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct redis *redis = conn->redis;
    if (text_is(argv[0], "host:") || text_is(argv[0], "post")) {
        conn_kill(conn);
        return true;
    }
    conn->command = command_find(redis, argv, argc);
    conn->last_command = conn->command;
    if (conn->command == NULL) {
        refuse_unknown(conn, argv, argc);
        return true;
    }
    if (!call_fits(conn->command, argc)) {
        refuse_arity(conn);
        return true;
    }
    if (refuse_if_barred(conn, argv, argc))
        return true;
    if (is_held_back(conn)) {
        block_until(conn, BLOCK_PAUSE, REDIS_NEVER);
        list_push(&redis->postponed, &conn->in_postponed);
        return false;
    }
    if (conn->is_multi && !(conn->command->bits & FLAG_NOT_QUEUED)) {
        multi_queue(conn, argv, argc);
        reply_status(conn, "QUEUED");
        return true;
    }
    call_run(conn, argv, argc);
    if (!list_is_empty(&redis->ready_keys) && !script_is_running(redis))
        block_serve(redis);
    return true;
}

/* Since 7.2 tracking remembers the keys that a script reads; before, the keys of its arguments. */
static void remember_keys(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct redis_conn *reader = conn->is_script ? script_caller(conn->redis) : conn;
    bool is_script_call = (conn->command->bits & FLAG_SCRIPT) != 0;
    if (reader == NULL || is_script_call || !(conn->command->bits & FLAG_READONLY))
        return;
    if (!(reader->tracking & TRACKING_ON))
        return;
    if (conn->is_script && !is_at_least(conn->redis, 70200))
        script_remember_keys(conn->redis);
    else
        tracking_remember(reader, conn->command, argv, argc);
}

static void after_all(struct redis_conn *conn)
{
    tracking_send_pending(conn->redis);
    text_add(&conn->out, text_slice(&conn->pushes));
    if (conn->pushes.len > 0)
        conn_touch(conn);
    conn->pushes.len = 0;
}

void call_run(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct redis *redis = conn->redis;
    const struct command *outer = redis->executing;
    const struct command *command = conn->command;
    conn->secret_words = 0;
    redis->executing = command;
    redis->depth++;
    command->run(conn, argv, argc);
    if (!(command->bits & (FLAG_SKIP_MONITOR | FLAG_ADMIN)))
        monitor_feed(conn, argv, argc);
    remember_keys(conn, argv, argc);
    redis->depth--;
    redis->executing = outer;
    redis->n_commands++;
    redis->commands[command->id].calls++;
    if (conn->is_closing_after_command)
        conn->is_closing = true;
    conn->is_closing_after_command = false;
    if (redis->depth == 0)
        after_all(redis->current != NULL ? redis->current : conn);
}
