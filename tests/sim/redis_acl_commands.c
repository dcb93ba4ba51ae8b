/* The ACL command. */
#include "tests/sim/redis_acl.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_conn.h"
#include "tests/sim/redis_pubsub.h"
#include "tests/sim/redis_reply.h"

void cmd_acl_whoami(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    reply_word(conn, conn->user->name);
}

/* Who listens to what the user may no more is closed. */
static void close_listeners(struct redis *redis, const struct user *user)
{
    for (struct list *at = redis->all.next, *next = at->next; at != &redis->all; at = next, next = at->next) {
        struct redis_conn *conn = container_of(at, struct redis_conn, in_all);
        if (conn->user == user && pubsub_has_forbidden(conn))
            conn_kill(conn);
    }
}

static bool has_space(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] == '\0' || strchr(" \t\n\v\f\r", text.at[i]) != NULL)
            return true;
    return false;
}

static void exchange(struct user *a, struct user *b)
{
    struct user was = *a;
    struct list in_a = a->in_users;
    struct list in_b = b->in_users;
    *a = *b;
    *b = was;
    a->in_users = in_a;
    b->in_users = in_b;
}

void cmd_acl_setuser(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct redis *redis = conn->redis;
    if (has_space(argv[2])) {
        reply_error(conn, "ERR Usernames can't contain spaces or null characters");
        return;
    }
    struct user *user = acl_find(redis, argv[2]);
    struct user *changed = acl_copy(redis, user, argv[2]);
    for (size_t i = 3; i < argc; i++) {
        const char *complaint = acl_apply(redis, changed, argv[i]);
        if (complaint == NULL)
            continue;
        reply_error(conn, "ERR Error in ACL SETUSER modifier '%.*s': %s", SHOWN(argv[i]), complaint);
        acl_free(changed);
        return;
    }
    if (user == NULL) {
        acl_insert(redis, changed);
    } else {
        exchange(user, changed);
        acl_free(changed);
        close_listeners(redis, user);
    }
    reply_ok(conn);
}

static void close_all_of(struct redis_conn *caller, const struct user *user)
{
    struct redis *redis = caller->redis;
    for (struct list *at = redis->all.next, *next = at->next; at != &redis->all; at = next, next = at->next) {
        struct redis_conn *conn = container_of(at, struct redis_conn, in_all);
        if (conn->user != user)
            continue;
        conn->user = redis->default_user;
        conn->is_authenticated = false;
        if (conn == redis->current)
            conn->is_closing_after_command = true;
        else
            conn_kill(conn);
    }
}

void cmd_acl_deluser(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    int64_t n = 0;
    for (size_t i = 2; i < argc; i++) {
        if (slice_eq(text_upto_nul(argv[i]), SLICE("default"))) {
            reply_error(conn, "ERR The 'default' user cannot be removed");
            return;
        }
    }
    for (size_t i = 2; i < argc; i++) {
        struct user *user = acl_find(conn->redis, argv[i]);
        if (user == NULL)
            continue;
        close_all_of(conn, user);
        list_take(&user->in_users);
        acl_free(user);
        n++;
    }
    reply_number(conn, n);
}

/* ---- telling ---- */

static void describe_keys(const struct user *user, struct text *text)
{
    if (user->all_keys)
        text_add(text, SLICE("~*"));
    for (size_t i = 0; i < user->n_keys; i++) {
        const struct acl_pattern *key = &user->keys[i];
        bool is_both = key->may_read && key->may_write;
        text_addf(text, "%s%s~", i > 0 ? " " : "", is_both ? "" : key->may_read ? "%R" : "%W");
        text_add(text, text_slice(&key->pattern));
    }
}

static void describe_channels(const struct user *user, struct text *text)
{
    if (user->all_channels)
        text_add(text, SLICE("&*"));
    for (size_t i = 0; i < user->n_channels; i++) {
        text_add(text, i > 0 ? SLICE(" &") : SLICE("&"));
        text_add(text, text_slice(&user->channels[i]));
    }
}

static void reply_described(struct redis_conn *conn, const struct user *user,
                            void (*describe)(const struct user *user, struct text *text))
{
    struct text text = {0};
    describe(user, &text);
    reply_bulk(conn, text_slice(&text));
    text_fini(&text);
}

static void reply_patterns(struct redis_conn *conn, const struct user *user)
{
    reply_word(conn, "keys");
    reply_array(conn, user->all_keys ? 1 : user->n_keys);
    if (user->all_keys)
        reply_word(conn, "*");
    for (size_t i = 0; i < user->n_keys; i++)
        reply_bulk(conn, text_slice(&user->keys[i].pattern));
    reply_word(conn, "channels");
    reply_array(conn, user->all_channels ? 1 : user->n_channels);
    if (user->all_channels)
        reply_word(conn, "*");
    for (size_t i = 0; i < user->n_channels; i++)
        reply_bulk(conn, text_slice(&user->channels[i]));
}

/* Before 7.0 the flags told more. */
static void reply_flags(struct redis_conn *conn, const struct user *user, bool is_old)
{
    const char *words[8];
    size_t n = 0;
    words[n++] = user->is_on ? "on" : "off";
    if (is_old && user->all_keys)
        words[n++] = "allkeys";
    if (is_old && user->all_channels)
        words[n++] = "allchannels";
    if (is_old && user->all_commands)
        words[n++] = "allcommands";
    if (user->is_nopass)
        words[n++] = "nopass";
    if (user->is_sanitizing)
        words[n++] = "sanitize-payload";
    reply_set(conn, n);
    for (size_t i = 0; i < n; i++)
        reply_word(conn, words[i]);
}

void cmd_acl_getuser(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    const struct user *user = acl_find(conn->redis, argv[2]);
    bool is_old = !is_at_least(conn->redis, 70000);
    if (user == NULL) {
        reply_null(conn);
        return;
    }
    reply_map(conn, is_old ? 5 : 6);
    reply_word(conn, "flags");
    reply_flags(conn, user, is_old);
    reply_word(conn, "passwords");
    reply_array(conn, user->n_passwords);
    for (size_t i = 0; i < user->n_passwords; i++)
        reply_bulk(conn, text_slice(&user->passwords[i]));
    reply_word(conn, "commands");
    reply_bulk(conn, text_slice(&user->rules));
    if (is_old) {
        reply_patterns(conn, user);
        return;
    }
    reply_word(conn, "keys");
    reply_described(conn, user, describe_keys);
    reply_word(conn, "channels");
    reply_described(conn, user, describe_channels);
    reply_word(conn, "selectors");
    reply_array(conn, 0);
}

static size_t count_users(const struct redis *redis)
{
    size_t n = 0;
    for (struct list *at = redis->users.next; at != &redis->users; at = at->next)
        n++;
    return n;
}

void cmd_acl_users(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    const struct redis *redis = conn->redis;
    reply_array(conn, count_users(redis));
    for (struct list *at = redis->users.next; at != &redis->users; at = at->next)
        reply_word(conn, container_of(at, struct user, in_users)->name);
}

static void describe_user(const struct redis *redis, const struct user *user, struct text *line)
{
    text_addf(line, "user %s %s ", user->name, user->is_on ? "on" : "off");
    if (user->is_nopass)
        text_add(line, SLICE("nopass "));
    if (user->is_sanitizing)
        text_add(line, SLICE("sanitize-payload "));
    for (size_t i = 0; i < user->n_passwords; i++) {
        text_add(line, SLICE("#"));
        text_add(line, text_slice(&user->passwords[i]));
        text_add(line, SLICE(" "));
    }
    size_t len = line->len;
    describe_keys(user, line);
    text_add(line, line->len > len ? SLICE(" ") : SLICE(""));
    if (!user->all_channels && is_at_least(redis, 70000))
        text_add(line, SLICE("resetchannels "));
    len = line->len;
    describe_channels(user, line);
    text_add(line, line->len > len ? SLICE(" ") : SLICE(""));
    text_add(line, text_slice(&user->rules));
}

void cmd_acl_list(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    const struct redis *redis = conn->redis;
    reply_array(conn, count_users(redis));
    for (struct list *at = redis->users.next; at != &redis->users; at = at->next) {
        struct text line = {0};
        describe_user(redis, container_of(at, struct user, in_users), &line);
        reply_bulk(conn, text_slice(&line));
        text_fini(&line);
    }
}
