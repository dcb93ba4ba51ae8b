/* The ACL command. */
#include "tests/sim/redis_acl.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_conn.h"
#include "tests/sim/redis_reply.h"

void cmd_acl_whoami(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    reply_word(conn, conn->user->name);
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
    struct user *changed = acl_copy(user, argv[2]);
    for (size_t i = 3; i < argc; i++) {
        const char *complaint = acl_apply(changed, argv[i]);
        if (complaint == NULL)
            continue;
        reply_error(conn, "ERR Error in ACL SETUSER modifier '%.*s': %s", SHOWN(argv[i]),
                    complaint);
        acl_free(changed);
        return;
    }
    if (user == NULL) {
        acl_insert(redis, changed);
    } else {
        exchange(user, changed);
        acl_free(changed);
    }
    reply_ok(conn);
}

static void close_all_of(struct redis_conn *caller, const struct user *user)
{
    struct redis *redis = caller->redis;
    for (struct list *at = redis->all.next, *next = at->next; at != &redis->all;
         at = next, next = at->next) {
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
