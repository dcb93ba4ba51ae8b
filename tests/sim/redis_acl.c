/* Users and logins. Every enabled user with a password may run every command. */
#include "tests/sim/redis_acl.h"

#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_reply.h"
#include "tests/sim/redis_sha.h"

/* ---- users ---- */

struct user *acl_find(const struct redis *redis, struct slice name)
{
    for (struct list *at = redis->users.next; at != &redis->users; at = at->next) {
        struct user *user = container_of(at, struct user, in_users);
        if (slice_eq(slice_str(user->name), name))
            return user;
    }
    return NULL;
}

void acl_insert(struct redis *redis, struct user *user)
{
    struct list *at = redis->users.next;
    while (at != &redis->users &&
           strcmp(container_of(at, struct user, in_users)->name, user->name) < 0)
        at = at->next;
    list_push(at, &user->in_users); /* in front of `at` */
}

static void add_from_line(struct redis *redis, struct slice line)
{
    size_t n;
    struct text *words;
    bool is_good = text_split(line, &words, &n);
    if (is_good && n >= 2 && text_is(text_slice(&words[0]), "user")) {
        struct slice name = text_slice(&words[1]);
        struct user *user = acl_find(redis, name);
        if (user == NULL) {
            user = acl_copy(NULL, name);
            acl_insert(redis, user);
        }
        for (size_t i = 2; i < n; i++)
            if (acl_apply(user, text_slice(&words[i])) != NULL)
                abort(); /* the caller's text is wrong */
    }
    for (size_t i = 0; i < n; i++)
        text_fini(&words[i]);
    free(words);
}

void acl_init(struct redis *redis)
{
    static const char *const rules[] = {"on", "nopass"};
    list_init(&redis->users);
    redis->default_user = acl_copy(NULL, SLICE("default"));
    list_push(&redis->users, &redis->default_user->in_users);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        acl_apply(redis->default_user, slice_str(rules[i]));
    if (redis->settings.requirepass.len > 0)
        acl_set_requirepass(redis, text_slice(&redis->settings.requirepass));
    const char *at = redis->config.users != NULL ? redis->config.users : "";
    while (*at != '\0') {
        size_t len = strcspn(at, "\n");
        add_from_line(redis, slice_of(at, len));
        at += len + (at[len] == '\n');
    }
}

void acl_fini(struct redis *redis)
{
    while (!list_is_empty(&redis->users)) {
        struct user *user = container_of(redis->users.next, struct user, in_users);
        list_take(&user->in_users);
        acl_free(user);
    }
    redis->default_user = NULL;
}

void acl_set_requirepass(struct redis *redis, struct slice password)
{
    acl_apply(redis->default_user, SLICE("resetpass"));
    if (password.len == 0) {
        acl_apply(redis->default_user, SLICE("nopass"));
        return;
    }
    struct text rule = {0};
    text_add(&rule, SLICE(">"));
    text_add(&rule, password);
    acl_apply(redis->default_user, text_slice(&rule));
    text_fini(&rule);
}

/* ---- logins ---- */

bool acl_is_stranger(const struct redis_conn *conn)
{
    const struct user *user = conn->redis->default_user;
    return !conn->is_authenticated && (!user->is_nopass || !user->is_on);
}

void acl_reset(struct redis_conn *conn)
{
    conn->user = conn->redis->default_user;
    conn->is_authenticated = conn->user->is_nopass && conn->user->is_on;
}

bool acl_login(struct redis_conn *conn, struct slice name, struct slice password)
{
    struct user *user = acl_find(conn->redis, name);
    if (user == NULL || !user->is_on)
        return false;
    char hex[SHA256_HEX + 1];
    sha256_hex(password, hex);
    bool is_right = user->is_nopass;
    for (size_t i = 0; i < user->n_passwords && !is_right; i++)
        is_right = slice_eq(text_slice(&user->passwords[i]), slice_of(hex, SHA256_HEX));
    if (is_right) {
        conn->user = user;
        conn->is_authenticated = true;
    }
    return is_right;
}

/* Since 7.2 there is no reply while earlier output is pending. */
void acl_reply_wrong(struct redis_conn *conn)
{
    bool has_pending = conn->has_written || conn->out.len > conn->out_taken;
    if (!has_pending || !is_at_least(conn->redis, 70200))
        reply_error(conn, "WRONGPASS invalid username-password pair or user is disabled.");
}

void cmd_auth(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    if (argc > 3) {
        reply_syntax(conn);
        return;
    }
    conn->secret_words = 6;
    if (argc == 2 && conn->redis->default_user->is_nopass) {
        reply_error(
            conn,
            "ERR AUTH <password> called without any password configured for the default user. Are you sure "
            "your configuration is correct?");
        return;
    }
    if (acl_login(conn, argc == 3 ? argv[1] : SLICE("default"), argv[argc - 1]))
        reply_ok(conn);
    else
        acl_reply_wrong(conn);
}
