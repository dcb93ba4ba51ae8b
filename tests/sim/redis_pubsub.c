#include "tests/sim/redis_pubsub.h"

#include "tests/sim/redis_acl.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_reply.h"

/* A kind of channel: its confirmations, and its dicts. */
struct kind {
    const char *subscribed, *unsubscribed;
    bool is_shard, is_pattern;
};

static const struct kind plain = {"subscribe", "unsubscribe", false, false};
static const struct kind pattern = {"psubscribe", "punsubscribe", false, true};
static const struct kind shard = {"ssubscribe", "sunsubscribe", true, false};

static struct dict *all_of(struct redis *redis, const struct kind *kind)
{
    return kind->is_shard ? &redis->shards : kind->is_pattern ? &redis->patterns : &redis->channels;
}

static struct dict *own_of(struct redis_conn *conn, const struct kind *kind)
{
    return kind->is_shard ? &conn->shards : kind->is_pattern ? &conn->patterns : &conn->channels;
}

bool pubsub_is_listening(const struct redis_conn *conn)
{
    return conn->channels.count + conn->patterns.count + conn->shards.count > 0;
}

static void confirm(struct redis_conn *conn, const char *word, const struct slice *channel,
                    const struct kind *kind)
{
    bool was_pushing = push_begin(conn);
    reply_push(conn, 3);
    reply_word(conn, word);
    if (channel != NULL)
        reply_bulk(conn, *channel);
    else
        reply_null(conn);
    size_t n = kind->is_shard ? conn->shards.count : conn->channels.count + conn->patterns.count;
    reply_number(conn, (int64_t)n);
    push_end(conn, was_pushing);
}

/* ---- subscriptions ---- */

static void subscribe(struct redis_conn *conn, struct slice channel, const struct kind *kind)
{
    struct dict_entry *own = dict_add(own_of(conn, kind), channel);
    if (own->value == NULL) {
        struct dict_entry *entry = dict_add(all_of(conn->redis, kind), channel);
        if (entry->value == NULL) {
            entry->value = take_memory(sizeof(struct list));
            list_init(entry->value);
        }
        struct sub *sub = take_zeroed(1, sizeof *sub);
        sub->conn = conn;
        sub->number = ++conn->redis->n_subs;
        list_push(entry->value, &sub->in_channel);
        own->value = sub;
    }
    confirm(conn, kind->subscribed, &channel, kind);
}

static void forget(struct redis_conn *conn, struct slice channel, const struct kind *kind)
{
    struct sub *sub = dict_remove(own_of(conn, kind), channel);
    if (sub == NULL)
        return;
    list_take(&sub->in_channel);
    free(sub);
    struct dict *all = all_of(conn->redis, kind);
    const struct list *listeners = dict_get(all, channel);
    if (list_is_empty(listeners))
        free(dict_remove(all, channel));
}

/* The connection's oldest subscription. */
static bool oldest(struct redis_conn *conn, const struct kind *kind, struct text *channel)
{
    struct dict_walk walk = {0};
    uint64_t least = UINT64_MAX;
    for (struct dict_entry *entry; (entry = dict_next(own_of(conn, kind), &walk)) != NULL;) {
        const struct sub *sub = entry->value;
        if (sub->number >= least)
            continue;
        least = sub->number;
        text_set(channel, dict_name(entry));
    }
    return least != UINT64_MAX;
}

static void unsubscribe_all(struct redis_conn *conn, const struct kind *kind)
{
    struct text channel = {0};
    bool is_any = false;
    while (oldest(conn, kind, &channel)) {
        struct slice name = text_slice(&channel);
        forget(conn, name, kind);
        confirm(conn, kind->unsubscribed, &name, kind);
        is_any = true;
    }
    if (!is_any)
        confirm(conn, kind->unsubscribed, NULL, kind);
    text_fini(&channel);
}

static void forget_all(struct redis_conn *conn, const struct kind *kind)
{
    struct text channel = {0};
    while (oldest(conn, kind, &channel))
        forget(conn, text_slice(&channel), kind);
    text_fini(&channel);
    dict_fini(own_of(conn, kind), NULL);
}

void pubsub_forget(struct redis_conn *conn)
{
    forget_all(conn, &plain);
    forget_all(conn, &pattern);
    forget_all(conn, &shard);
}

void pubsub_free_list(void *listeners)
{
    free(listeners);
}

/* ---- publishing ---- */

void pubsub_send(struct redis_conn *conn, const char *kind, struct slice channel,
                 struct slice message)
{
    bool was_pushing = push_begin(conn);
    reply_push(conn, 3);
    reply_word(conn, kind);
    reply_bulk(conn, channel);
    reply_bulk(conn, message);
    push_end(conn, was_pushing);
}

static void send_matching(struct redis_conn *conn, struct slice pattern_text, struct slice channel,
                          struct slice message)
{
    bool was_pushing = push_begin(conn);
    reply_push(conn, 4);
    reply_word(conn, "pmessage");
    reply_bulk(conn, pattern_text);
    reply_bulk(conn, channel);
    reply_bulk(conn, message);
    push_end(conn, was_pushing);
}

static int64_t publish_to(const struct list *listeners, bool is_shard, struct slice channel,
                          struct slice message)
{
    int64_t n = 0;
    for (struct list *at = listeners->next; at != listeners; at = at->next, n++)
        pubsub_send(container_of(at, struct sub, in_channel)->conn,
                    is_shard ? "smessage" : "message", channel, message);
    return n;
}

int64_t pubsub_publish(struct redis *redis, struct slice channel, struct slice message,
                       bool is_shard)
{
    int64_t n = 0;
    const struct list *listeners = dict_get(is_shard ? &redis->shards : &redis->channels, channel);
    if (listeners != NULL)
        n += publish_to(listeners, is_shard, channel, message);
    if (is_shard)
        return n;
    struct dict_walk walk = {0};
    for (struct dict_entry *entry; (entry = dict_next(&redis->patterns, &walk)) != NULL;) {
        if (!text_matches(dict_name(entry), channel, false))
            continue;
        listeners = entry->value;
        for (struct list *at = listeners->next; at != listeners; at = at->next, n++)
            send_matching(container_of(at, struct sub, in_channel)->conn, dict_name(entry), channel,
                          message);
    }
    return n;
}

/* ---- commands ---- */

static void subscribe_each(struct redis_conn *conn, const struct slice *argv, size_t argc,
                           const struct kind *kind)
{
    if (conn->is_deny_blocking && (!conn->is_multi || kind->is_shard)) {
        reply_error(conn, "ERR %s isn't allowed for a DENY BLOCKING client",
                    kind->is_shard     ? "SSUBSCRIBE"
                    : kind->is_pattern ? "PSUBSCRIBE"
                                       : "SUBSCRIBE");
        return;
    }
    for (size_t i = 1; i < argc; i++)
        subscribe(conn, argv[i], kind);
}

static void unsubscribe_each(struct redis_conn *conn, const struct slice *argv, size_t argc,
                             const struct kind *kind)
{
    if (argc == 1)
        unsubscribe_all(conn, kind);
    for (size_t i = 1; i < argc; i++) {
        forget(conn, argv[i], kind);
        confirm(conn, kind->unsubscribed, &argv[i], kind);
    }
}

void cmd_subscribe(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    subscribe_each(conn, argv, argc, &plain);
}

void cmd_psubscribe(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    subscribe_each(conn, argv, argc, &pattern);
}

void cmd_ssubscribe(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    subscribe_each(conn, argv, argc, &shard);
}

void cmd_unsubscribe(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    unsubscribe_each(conn, argv, argc, &plain);
}

void cmd_punsubscribe(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    unsubscribe_each(conn, argv, argc, &pattern);
}

void cmd_sunsubscribe(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    unsubscribe_each(conn, argv, argc, &shard);
}

void cmd_publish(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    conn->has_replicated = true;
    reply_number(conn, pubsub_publish(conn->redis, argv[1], argv[2], false));
}

void cmd_spublish(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    conn->has_replicated = true;
    reply_number(conn, pubsub_publish(conn->redis, argv[1], argv[2], true));
}
