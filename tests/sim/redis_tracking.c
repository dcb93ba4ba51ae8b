#include "tests/sim/redis_tracking.h"

#include "tests/sim/redis_client.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_pubsub.h"
#include "tests/sim/redis_reply.h"

/* The ids of the connections that have read a key. */
struct tracked {
    uint64_t *ids; /* heap, ascending */
    size_t n;
};

/* A notice to the current connection, sent after its reply. */
struct invalid {
    struct list in_pending;
    struct text name;
    bool is_all;
};

/* ---- sending ---- */

/* `keys`: an encoded array or null. */
static void send_to(struct redis_conn *conn, struct slice keys)
{
    struct redis_conn *to = conn;
    if (conn->redirect != 0) {
        to = client_by_id(conn->redis, conn->redirect);
        if (to == NULL) {
            conn->tracking |= TRACKING_BROKEN;
            if (conn->protocol != 3)
                return;
            bool was_pushing = push_begin(conn);
            reply_push(conn, 2);
            reply_word(conn, "tracking-redir-broken");
            reply_number(conn, (int64_t)conn->redirect);
            push_end(conn, was_pushing);
            return;
        }
    }
    bool is_message = to->protocol != 3 && to != conn && pubsub_is_listening(to);
    if (to->protocol != 3 && !is_message)
        return;
    bool was_pushing = push_begin(to);
    reply_push(to, is_message ? 3 : 2);
    reply_word(to, is_message ? "message" : "invalidate");
    if (is_message)
        reply_word(to, "__redis__:invalidate");
    reply_raw(to, keys);
    push_end(to, was_pushing);
}

static void send_key(struct redis_conn *conn, struct slice name)
{
    struct text keys = {0};
    text_addf(&keys, "*1\r\n$%zu\r\n", name.len);
    text_add(&keys, name);
    text_add(&keys, SLICE("\r\n"));
    send_to(conn, text_slice(&keys));
    text_fini(&keys);
}

static void send_all(struct redis_conn *conn)
{
    send_to(conn, conn->protocol == 3 ? SLICE("_\r\n") : SLICE("$-1\r\n"));
}

static void send_later(struct redis *redis, struct slice name, bool is_all)
{
    struct invalid *invalid = take_zeroed(1, sizeof *invalid);
    text_add(&invalid->name, name);
    invalid->is_all = is_all;
    list_push(&redis->pending_invalid, &invalid->in_pending);
}

void tracking_send_pending(struct redis *redis)
{
    while (!list_is_empty(&redis->pending_invalid)) {
        struct invalid *invalid =
            container_of(redis->pending_invalid.next, struct invalid, in_pending);
        list_take(&invalid->in_pending);
        if (redis->current != NULL && invalid->is_all)
            send_all(redis->current);
        else if (redis->current != NULL)
            send_key(redis->current, text_slice(&invalid->name));
        text_fini(&invalid->name);
        free(invalid);
    }
}

/* ---- remembering ---- */

static void remember_id(struct tracked *tracked, uint64_t id)
{
    size_t at = tracked->n;
    while (at > 0 && tracked->ids[at - 1] >= id)
        at--;
    if (at < tracked->n && tracked->ids[at] == id)
        return;
    tracked->ids = take_more(tracked->ids, tracked->n + 1, sizeof *tracked->ids);
    memmove(tracked->ids + at + 1, tracked->ids + at, (tracked->n - at) * sizeof *tracked->ids);
    tracked->ids[at] = id;
    tracked->n++;
}

void tracking_remember(struct redis_conn *conn, const struct command *command,
                       const struct slice *argv, size_t argc)
{
    bool is_told = conn->tracking & TRACKING_CACHING;
    if (((conn->tracking & TRACKING_OPTIN) && !is_told) ||
        ((conn->tracking & TRACKING_OPTOUT) && is_told))
        return;
    struct key_walk walk = key_walk(command, argv, argc);
    for (size_t i; (i = key_next(&walk)) != 0;) {
        struct dict_entry *entry = dict_add(&conn->redis->tracking, argv[i]);
        if (entry->value == NULL)
            entry->value = take_zeroed(1, sizeof(struct tracked));
        remember_id(entry->value, conn->id);
    }
}

static void free_tracked(void *pointer)
{
    struct tracked *tracked = pointer;
    free(tracked->ids);
    free(tracked);
}

void tracking_invalidate(struct redis *redis, struct slice name)
{
    struct tracked *tracked = dict_remove(&redis->tracking, name);
    for (size_t i = 0; tracked != NULL && i < tracked->n; i++) {
        struct redis_conn *reader = client_by_id(redis, tracked->ids[i]);
        if (reader == NULL || !(reader->tracking & TRACKING_ON))
            continue;
        if ((reader->tracking & TRACKING_NOLOOP) && reader == redis->current)
            continue;
        if (reader == redis->current && redis->depth > 0)
            send_later(redis, name, false);
        else
            send_key(reader, name);
    }
    if (tracked != NULL)
        free_tracked(tracked);
}

void tracking_flushed(struct redis *redis)
{
    for (struct list *at = redis->all.next; at != &redis->all && redis->n_tracking > 0;
         at = at->next) {
        struct redis_conn *conn = container_of(at, struct redis_conn, in_all);
        if (!(conn->tracking & TRACKING_ON))
            continue;
        if (conn == redis->current)
            send_later(redis, SLICE(""), true);
        else
            send_all(conn);
    }
    dict_fini(&redis->tracking, free_tracked);
}

/* ---- on and off ---- */

void tracking_start(struct redis_conn *conn, unsigned flags, uint64_t redirect)
{
    conn->redis->n_tracking += !(conn->tracking & TRACKING_ON);
    conn->tracking = TRACKING_ON | flags | (conn->tracking & TRACKING_CACHING);
    conn->redirect = redirect;
}

void tracking_stop(struct redis_conn *conn)
{
    conn->redis->n_tracking -= (conn->tracking & TRACKING_ON) != 0;
    conn->tracking = 0;
}

void tracking_fini(struct redis *redis)
{
    redis->current = NULL;
    tracking_send_pending(redis);
    dict_fini(&redis->tracking, free_tracked);
}
