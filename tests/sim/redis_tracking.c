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

static void add_prefix(struct redis_conn *conn, struct slice name)
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

struct tracking_wish {
    unsigned flags;
    uint64_t redirect;
    const struct slice *prefixes[64];
    size_t n_prefixes;
};

static bool read_redirect(struct redis_conn *conn, struct slice arg, struct tracking_wish *wish)
{
    int64_t id;
    if (wish->redirect != 0) {
        reply_error(conn, "ERR A client can only redirect to a single other client");
        return false;
    }
    if (!text_to_number(arg, &id)) {
        reply_not_integer(conn);
        return false;
    }
    wish->redirect = (uint64_t)id;
    if (client_by_id(conn->redis, wish->redirect) != NULL)
        return true;
    reply_error(conn, "ERR The client ID you want redirect to does not exist");
    return false;
}

static unsigned tracking_flag_of(struct slice word)
{
    static const struct {
        const char *word;
        unsigned flag;
    } flags[] = {
        {"bcast", TRACKING_BCAST}, {"optin", TRACKING_OPTIN}, {"optout", TRACKING_OPTOUT}, {"noloop", TRACKING_NOLOOP}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (text_is(word, flags[i].word))
            return flags[i].flag;
    return 0;
}

static bool read_wish(struct redis_conn *conn, const struct slice *argv, size_t argc, struct tracking_wish *wish)
{
    const size_t most = sizeof wish->prefixes / sizeof wish->prefixes[0];
    for (size_t i = 3; i < argc; i++) {
        unsigned flag = tracking_flag_of(argv[i]);
        bool has_next = i + 1 < argc;
        wish->flags |= flag;
        if (flag != 0)
            continue;
        if (text_is(argv[i], "redirect") && has_next) {
            if (!read_redirect(conn, argv[++i], wish))
                return false;
        } else if (text_is(argv[i], "prefix") && has_next && wish->n_prefixes < most) {
            wish->prefixes[wish->n_prefixes++] = &argv[++i];
        } else {
            reply_syntax(conn);
            return false;
        }
    }
    return true;
}

static const char *wish_complaint(const struct redis_conn *conn, const struct tracking_wish *wish)
{
    unsigned flags = wish->flags;
    if (!(flags & TRACKING_BCAST) && wish->n_prefixes > 0)
        return "PREFIX option requires BCAST mode to be enabled";
    if ((conn->tracking & TRACKING_ON) && ((conn->tracking ^ flags) & TRACKING_BCAST))
        return "You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it "
               "with a different mode.";
    if ((flags & TRACKING_BCAST) && (flags & (TRACKING_OPTIN | TRACKING_OPTOUT)))
        return "OPTIN and OPTOUT are not compatible with BCAST";
    if ((flags & TRACKING_OPTIN) && (flags & TRACKING_OPTOUT))
        return "You can't specify both OPTIN mode and OPTOUT mode";
    if (((flags & TRACKING_OPTIN) && (conn->tracking & TRACKING_OPTOUT)) ||
        ((flags & TRACKING_OPTOUT) && (conn->tracking & TRACKING_OPTIN)))
        return "You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it "
               "with a different mode.";
    return NULL;
}

static bool overlaps(struct slice a, struct slice b)
{
    size_t least = a.len < b.len ? a.len : b.len;
    return slice_eq(slice_of(a.at, least), slice_of(b.at, least));
}

static bool prefixes_collide(struct redis_conn *conn, const struct tracking_wish *wish)
{
    for (size_t i = 0; i < wish->n_prefixes; i++) {
        struct slice one = *wish->prefixes[i];
        for (size_t k = 0; k < conn->n_prefixes; k++) {
            struct slice old = text_slice(&conn->prefixes[k]);
            if (!overlaps(old, one))
                continue;
            reply_error(conn,
                        "ERR Prefix '%.*s' overlaps with an existing prefix '%.*s'. Prefixes for a single client must "
                        "not overlap.",
                        SHOWN(one), SHOWN(old));
            return true;
        }
        for (size_t k = i + 1; k < wish->n_prefixes; k++) {
            if (!overlaps(one, *wish->prefixes[k]))
                continue;
            reply_error(conn,
                        "ERR Prefix '%.*s' overlaps with another provided prefix '%.*s'. Prefixes for a single client "
                        "must not overlap.",
                        SHOWN(one), SHOWN(*wish->prefixes[k]));
            /* Redis goes on where it is not the first of them that does. */
            return i == 0;
        }
    }
    return false;
}

static void start(struct redis_conn *conn, const struct tracking_wish *wish)
{
    conn->redis->n_tracking += !(conn->tracking & TRACKING_ON);
    conn->tracking = TRACKING_ON | wish->flags | (conn->tracking & TRACKING_CACHING);
    conn->redirect = wish->redirect;
    if ((wish->flags & TRACKING_BCAST) && wish->n_prefixes == 0)
        add_prefix(conn, SLICE(""));
    for (size_t i = 0; i < wish->n_prefixes; i++)
        add_prefix(conn, *wish->prefixes[i]);
}

void cmd_client_tracking(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct tracking_wish wish = {0};
    if (!read_wish(conn, argv, argc, &wish))
        return;
    if (text_is(argv[2], "on")) {
        const char *complaint = wish_complaint(conn, &wish);
        if (complaint != NULL) {
            reply_error(conn, "ERR %s", complaint);
            return;
        }
        if ((wish.flags & TRACKING_BCAST) && prefixes_collide(conn, &wish))
            return;
        start(conn, &wish);
    } else if (text_is(argv[2], "off")) {
        tracking_stop(conn);
    } else {
        reply_syntax(conn);
        return;
    }
    reply_ok(conn);
}

void cmd_client_caching(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    bool is_yes = text_is(argv[2], "yes");
    if (!(conn->tracking & TRACKING_ON)) {
        reply_error(conn, "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
                          "OPTOUT mode enabled");
        return;
    }
    if (!is_yes && !text_is(argv[2], "no")) {
        reply_syntax(conn);
        return;
    }
    if (!(conn->tracking & (is_yes ? TRACKING_OPTIN : TRACKING_OPTOUT))) {
        reply_error(conn, "ERR CLIENT CACHING %s is only valid when tracking is enabled in %s mode.",
                    is_yes ? "YES" : "NO", is_yes ? "OPTIN" : "OPTOUT");
        return;
    }
    conn->tracking |= TRACKING_CACHING;
    reply_ok(conn);
}

static int64_t redirect_of(const struct redis_conn *conn)
{
    return conn->tracking & TRACKING_ON ? (int64_t)conn->redirect : -1;
}

void cmd_client_getredir(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    reply_number(conn, redirect_of(conn));
}

void cmd_client_trackinginfo(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    const char *words[8];
    size_t n = 0;
    bool is_caching = conn->tracking & TRACKING_CACHING;
    words[n++] = conn->tracking & TRACKING_ON ? "on" : "off";
    if (conn->tracking & TRACKING_BCAST)
        words[n++] = "bcast";
    if (conn->tracking & TRACKING_OPTIN) {
        words[n++] = "optin";
        if (is_caching)
            words[n++] = "caching-yes";
    }
    if (conn->tracking & TRACKING_OPTOUT) {
        words[n++] = "optout";
        if (is_caching)
            words[n++] = "caching-no";
    }
    if (conn->tracking & TRACKING_NOLOOP)
        words[n++] = "noloop";
    if (conn->tracking & TRACKING_BROKEN)
        words[n++] = "broken_redirect";
    reply_map(conn, 3);
    reply_word(conn, "flags");
    reply_set(conn, n);
    for (size_t i = 0; i < n; i++)
        reply_word(conn, words[i]);
    reply_word(conn, "redirect");
    reply_number(conn, redirect_of(conn));
    reply_word(conn, "prefixes");
    reply_array(conn, conn->n_prefixes);
    for (size_t i = 0; i < conn->n_prefixes; i++)
        reply_bulk(conn, text_slice(&conn->prefixes[i]));
}
