#include "tests/sim/redis_conn.h"

#include "tests/sim/redis_acl.h"
#include "tests/sim/redis_block.h"
#include "tests/sim/redis_multi.h"
#include "tests/sim/redis_pubsub.h"
#include "tests/sim/redis_reply.h"
#include "tests/sim/redis_request.h"
#include "tests/sim/redis_schedule.h"
#include "tests/sim/redis_script.h"
#include "tests/sim/redis_tracking.h"

/* ---- creation ---- */

static struct slice id_name(const uint64_t *id)
{
    return slice_of((const char *)id, sizeof *id);
}

struct redis_conn *conn_new(struct redis *redis)
{
    struct redis_conn *conn = take_zeroed(1, sizeof *conn);
    struct list *links[] = {&conn->in_all,     &conn->in_ready,     &conn->in_touched,
                            &conn->in_blocked, &conn->in_postponed, &conn->in_monitors,
                            &conn->watched};
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        list_init(links[i]);
    conn->redis = redis;
    conn->db = &redis->dbs[0];
    conn->protocol = 2;
    conn->bulk_len = -1;
    conn->created_us = conn->used_us = redis->now_us;
    acl_reset(conn);
    return conn;
}

struct redis_conn *redis_connect(struct redis *redis, void *owner, const char *peer)
{
    struct redis_conn *conn = conn_new(redis);
    conn->owner = owner;
    conn->peer = text_copy(slice_str(peer));
    conn->id = redis->next_id++;
    list_push(&redis->all, &conn->in_all);
    dict_add(&redis->by_id, id_name(&conn->id))->value = conn;
    if (redis->n_conns++ >= redis->settings.maxclients) {
        conn_kill(conn);
        text_add(&conn->out, SLICE("-ERR max number of clients reached\r\n"));
    }
    return conn;
}

void *redis_owner(const struct redis_conn *conn)
{
    return conn->owner;
}

struct slice redis_conn_user(const struct redis_conn *conn)
{
    return slice_str(conn->user->name);
}

bool redis_conn_is_in_multi(const struct redis_conn *conn)
{
    return conn->is_multi;
}

uint64_t redis_conn_id(const struct redis_conn *conn)
{
    return conn->id;
}

/* ---- end ---- */

/* Removes the connection from all lists, and keeps its bytes. */
static void forget(struct redis_conn *conn)
{
    struct redis *redis = conn->redis;
    tracking_stop(conn);
    pubsub_forget(conn);
    block_forget(conn);
    multi_discard(conn);
    list_take(&conn->in_postponed);
    list_take(&conn->in_monitors);
    list_take(&conn->in_ready);
    if (!conn->is_gone && !list_is_empty(&conn->in_all)) {
        dict_remove(&redis->by_id, id_name(&conn->id));
        redis->n_conns--;
    }
    list_take(&conn->in_all);
    conn->is_gone = true;
}

void conn_kill(struct redis_conn *conn)
{
    struct redis *redis = conn->redis;
    forget(conn);
    conn->wants_close = true;
    conn->out.len = conn->out_taken; /* closed at once */
    conn_touch(conn);
    if (redis->current == conn)
        redis->current = NULL;
    list_push(&redis->killed, &conn->in_all);
}

void conn_free(struct redis_conn *conn)
{
    forget(conn);
    list_take(&conn->in_touched);
    request_fini(conn);
    text_fini(&conn->out);
    text_fini(&conn->pushes);
    text_fini(&conn->name);
    text_fini(&conn->lib_name);
    text_fini(&conn->lib_version);
    free(conn->peer);
    free(conn);
}

void redis_disconnect(struct redis_conn *conn)
{
    if (script_caller(conn->redis) == conn) {
        forget(conn);
        list_take(&conn->in_touched);
        conn->is_orphan = true; /* freed when its script ends */
        return;
    }
    conn_free(conn);
}

void conn_reset(struct redis_conn *conn)
{
    tracking_stop(conn);
    pubsub_forget(conn);
    multi_discard(conn);
    list_take(&conn->in_monitors);
    conn->is_monitor = false;
    conn->db = &conn->redis->dbs[0];
    conn->protocol = 2;
    acl_reset(conn);
    text_fini(&conn->name);
    conn->is_reply_off = conn->is_reply_skip_next = conn->is_no_touch = false;
}

/* ---- bytes ---- */

void redis_feed(struct redis_conn *conn, const char *data, size_t n)
{
    if (conn->is_gone || conn->is_closing)
        return;
    text_add(&conn->in, slice_of(data, n));
    conn->used_us = conn->redis->now_us;
    schedule_ready(conn);
}

struct slice redis_output(struct redis_conn *conn)
{
    if (conn->redis->now_us < conn->redis->stalled_until_us)
        return slice_of("", 0); /* output waits until the stall ends */
    return slice_of(conn->out.at + conn->out_taken, conn->out.len - conn->out_taken);
}

void redis_taken(struct redis_conn *conn, size_t n)
{
    conn->out_taken += n;
    if (conn->out_taken < conn->out.len)
        return;
    conn->out.len = conn->out_taken = 0;
}

bool redis_wants_close(const struct redis_conn *conn)
{
    return conn->wants_close;
}

struct redis_conn *redis_touched(struct redis *redis)
{
    if (list_is_empty(&redis->touched) || redis->now_us < redis->stalled_until_us)
        return NULL;
    struct redis_conn *conn = container_of(redis->touched.next, struct redis_conn, in_touched);
    list_take(&conn->in_touched);
    return conn;
}
