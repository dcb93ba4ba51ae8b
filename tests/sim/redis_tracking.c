/* Client side caching. */
#include "tests/sim/redis_tracking.h"

#include "tests/sim/redis_client.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_pubsub.h"
#include "tests/sim/redis_reply.h"

/* The connections that have read a key, by id. */
struct tracked {
    uint64_t *ids; /* heap, in rising order */
    size_t n;
};

/* A prefix that is listened to, and the keys that have changed since it was told. */
struct prefix {
    struct dict keys;      /* value: the connection that changed it last, whoever that is */
    struct list listeners; /* of struct listener */
};

struct listener {
    struct list in_prefix;
    struct redis_conn *conn;
};

/* Of the current connection, after its reply. */
struct invalid {
    struct list in_pending;
    struct text name;
    bool is_all;
};

/* ---- telling ---- */

/* `keys`: a whole array or null of the protocol. */
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
        struct invalid *invalid = container_of(redis->pending_invalid.next, struct invalid, in_pending);
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

void tracking_remember(struct redis_conn *conn, const struct command *command, const struct slice *argv, size_t argc)
{
    bool is_told = conn->tracking & TRACKING_CACHING;
    if (((conn->tracking & TRACKING_OPTIN) && !is_told) || ((conn->tracking & TRACKING_OPTOUT) && is_told))
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

static void note_prefixes(struct redis *redis, const struct redis_conn *conn, struct slice name)
{
    struct dict_walk walk = {0};
    for (struct dict_entry *entry; (entry = dict_next(&redis->prefixes, &walk)) != NULL;) {
        struct slice prefix = dict_name(entry);
        if (prefix.len > name.len || !slice_eq(prefix, slice_of(name.at, prefix.len)))
            continue;
        struct prefix *listened = entry->value;
        dict_add(&listened->keys, name)->value = (void *)(uintptr_t)(conn != NULL ? conn->id : 0);
    }
}

void tracking_invalidate(struct redis *redis, const struct redis_conn *conn, struct slice name)
{
    note_prefixes(redis, conn, name);
    struct tracked *tracked = dict_remove(&redis->tracking, name);
    for (size_t i = 0; tracked != NULL && i < tracked->n; i++) {
        struct redis_conn *reader = client_by_id(redis, tracked->ids[i]);
        if (reader == NULL || !(reader->tracking & TRACKING_ON) || (reader->tracking & TRACKING_BCAST))
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
    for (struct list *at = redis->all.next; at != &redis->all && redis->n_tracking > 0; at = at->next) {
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

/* ---- prefixes ---- */

void tracking_add_prefix(struct redis_conn *conn, struct slice name)
{
    struct dict_entry *entry = dict_add(&conn->redis->prefixes, name);
    if (entry->value == NULL) {
        struct prefix *made = take_zeroed(1, sizeof *made);
        list_init(&made->listeners);
        entry->value = made;
    }
    struct prefix *prefix = entry->value;
    for (size_t i = 0; i < conn->n_prefixes; i++)
        if (slice_eq(text_slice(&conn->prefixes[i]), name))
            return;
    struct listener *listener = take_zeroed(1, sizeof *listener);
    listener->conn = conn;
    list_push(&prefix->listeners, &listener->in_prefix);
    conn->prefixes = take_more(conn->prefixes, conn->n_prefixes + 1, sizeof *conn->prefixes);
    size_t at = conn->n_prefixes++;
    for (; at > 0 && text_compare(text_slice(&conn->prefixes[at - 1]), name) > 0; at--)
        conn->prefixes[at] = conn->prefixes[at - 1];
    conn->prefixes[at] = (struct text){0};
    text_add(&conn->prefixes[at], name);
}

static void free_prefix(void *pointer)
{
    struct prefix *prefix = pointer;
    while (!list_is_empty(&prefix->listeners)) {
        struct listener *listener = container_of(prefix->listeners.next, struct listener, in_prefix);
        list_take(&listener->in_prefix);
        free(listener);
    }
    dict_fini(&prefix->keys, NULL);
    free(prefix);
}

static void drop_prefix(const struct redis_conn *conn, struct slice name)
{
    struct prefix *prefix = dict_get(&conn->redis->prefixes, name);
    for (struct list *at = prefix->listeners.next; at != &prefix->listeners; at = at->next) {
        struct listener *listener = container_of(at, struct listener, in_prefix);
        if (listener->conn != conn)
            continue;
        list_take(&listener->in_prefix);
        free(listener);
        break;
    }
    if (list_is_empty(&prefix->listeners))
        free_prefix(dict_remove(&conn->redis->prefixes, name));
}

static int compare_entries(const void *a, const void *b)
{
    const struct dict_entry *const *left = a;
    const struct dict_entry *const *right = b;
    return text_compare(dict_name(*left), dict_name(*right));
}

/* The entries of a dict by name. The caller frees. */
static struct dict_entry **sorted(const struct dict *dict)
{
    struct dict_entry **entries = take_memory(dict->count * sizeof(struct dict_entry *));
    struct dict_walk walk = {0};
    size_t n = 0;
    for (struct dict_entry *entry; (entry = dict_next(dict, &walk)) != NULL;)
        entries[n++] = entry;
    if (n > 0)
        qsort(entries, n, sizeof(struct dict_entry *), compare_entries);
    return entries;
}

/* Who does not want to hear of its own is not told of those. */
static void tell_listener(struct redis_conn *conn, struct dict_entry **keys, size_t n)
{
    struct text told = {0};
    size_t n_told = 0;
    bool is_loop = !(conn->tracking & TRACKING_NOLOOP);
    for (size_t i = 0; i < n; i++) {
        if (!is_loop && (uintptr_t)keys[i]->value == conn->id)
            continue;
        text_addf(&told, "$%zu\r\n", keys[i]->len);
        text_add(&told, dict_name(keys[i]));
        text_add(&told, SLICE("\r\n"));
        n_told++;
    }
    char digits[24];
    struct slice count = text_of_number((int64_t)n_told, digits);
    text_insert(&told, 0, SLICE("\r\n"));
    text_insert(&told, 0, count);
    text_insert(&told, 0, SLICE("*"));
    if (n_told > 0)
        send_to(conn, text_slice(&told));
    text_fini(&told);
}

static bool tell_prefix(struct prefix *prefix)
{
    size_t n = prefix->keys.count;
    if (n == 0)
        return false;
    struct dict_entry **keys = sorted(&prefix->keys);
    for (struct list *at = prefix->listeners.next; at != &prefix->listeners; at = at->next)
        tell_listener(container_of(at, struct listener, in_prefix)->conn, keys, n);
    free(keys);
    dict_fini(&prefix->keys, NULL);
    return true;
}

bool tracking_broadcast(struct redis *redis)
{
    if (redis->n_tracking == 0 || redis->prefixes.count == 0)
        return false;
    struct dict_entry **prefixes = sorted(&redis->prefixes);
    bool is_any = false;
    for (size_t i = 0; i < redis->prefixes.count; i++)
        is_any |= tell_prefix(prefixes[i]->value);
    free(prefixes);
    return is_any;
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
    for (size_t i = 0; i < conn->n_prefixes; i++) {
        drop_prefix(conn, text_slice(&conn->prefixes[i]));
        text_fini(&conn->prefixes[i]);
    }
    free(conn->prefixes);
    conn->prefixes = NULL;
    conn->n_prefixes = 0;
    conn->redis->n_tracking -= (conn->tracking & TRACKING_ON) != 0;
    conn->tracking = 0;
}

void tracking_fini(struct redis *redis)
{
    redis->current = NULL;
    tracking_send_pending(redis);
    dict_fini(&redis->tracking, free_tracked);
    dict_fini(&redis->prefixes, free_prefix);
}
