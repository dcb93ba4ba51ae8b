/*
 * REPLICAOF a master that never answers: the server has its data, refuses writes, and expires no
 * keys.
 */
#include "tests/sim/redis_args.h"
#include "tests/sim/redis_block.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_reply.h"

/* Blocked connections get an error and are closed. */
static void end_waiting(struct redis *redis)
{
    for (struct list *at = redis->blocked.next, *next = at->next; at != &redis->blocked;
         at = next, next = at->next) {
        struct redis_conn *conn = container_of(at, struct redis_conn, in_blocked);
        if (conn->block.kind != BLOCK_LIST && conn->block.kind != BLOCK_WAIT)
            continue;
        reply_error(
            conn,
            "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)");
        conn->is_closing = true;
        /* without output Redis forgets to close it */
        conn->wants_close = conn->out.len > conn->out_taken;
        block_end(conn);
    }
}

static void be_master(struct redis *redis)
{
    redis->is_replica = false;
    text_fini(&redis->master);
}

/* Takes ownership of *master. */
static void follow(struct redis *redis, const struct text *master)
{
    text_fini(&redis->master);
    redis->master = *master;
    /* Redis makes its former self a connection of the master */
    redis->next_id += !redis->is_replica;
    redis->is_replica = true;
    end_waiting(redis);
}

void cmd_replicaof(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct redis *redis = conn->redis;
    int64_t port;
    (void)argc;
    if (text_is(argv[1], "no") && text_is(argv[2], "one")) {
        be_master(redis);
        reply_ok(conn);
        return;
    }
    if (!text_to_number(argv[2], &port) || port < 0 || port > 65535) {
        reply_error(conn, is_at_least(redis, 70000)
                              ? "ERR Invalid master port"
                              : "ERR value is not an integer or out of range");
        return;
    }
    struct text master = {0};
    text_addf(&master, "%.*s:%ld", SHOWN(argv[1]), port);
    if (redis->is_replica && slice_eq(text_slice(&master), text_slice(&redis->master))) {
        reply_status(conn, "OK Already connected to specified master");
        text_fini(&master);
        return;
    }
    follow(redis, &master);
    reply_ok(conn);
}

void redis_follow(struct redis *redis, const char *host, unsigned port)
{
    if (host == NULL) {
        be_master(redis);
        return;
    }
    struct text master = {0};
    text_addf(&master, "%s:%u", host, port);
    follow(redis, &master);
}

void redis_set_offset(struct redis *redis, uint64_t offset, uint64_t history, bool is_linked)
{
    redis->offset = offset;
    redis->history = history;
    redis->is_linked = is_linked;
}
