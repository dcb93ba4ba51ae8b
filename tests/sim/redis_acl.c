/* Who a connection is, and what it may. */
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
    while (at != &redis->users && strcmp(container_of(at, struct user, in_users)->name, user->name) < 0)
        at = at->next;
    list_push(at, &user->in_users); /* before it */
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
            user = acl_copy(redis, NULL, name);
            acl_insert(redis, user);
        }
        for (size_t i = 2; i < n; i++)
            if (acl_apply(redis, user, text_slice(&words[i])) != NULL)
                abort(); /* the caller's text is wrong */
    }
    for (size_t i = 0; i < n; i++)
        text_fini(&words[i]);
    free(words);
}

void acl_init(struct redis *redis)
{
    static const char *const rules[] = {"+@all", "~*", "&*", "on", "nopass"};
    list_init(&redis->users);
    redis->default_user = acl_copy(redis, NULL, SLICE("default"));
    list_push(&redis->users, &redis->default_user->in_users);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        acl_apply(redis, redis->default_user, slice_str(rules[i]));
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
    acl_apply(redis, redis->default_user, SLICE("resetpass"));
    if (password.len == 0) {
        acl_apply(redis, redis->default_user, SLICE("nopass"));
        return;
    }
    struct text rule = {0};
    text_add(&rule, SLICE(">"));
    text_add(&rule, password);
    acl_apply(redis, redis->default_user, text_slice(&rule));
    text_fini(&rule);
}

/* ---- coming in ---- */

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

/* Since 7.2 nothing is said of it while other replies are still to be written. */
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
        reply_error(conn,
                    "ERR AUTH <password> called without any password configured for the default user. Are you sure "
                    "your configuration is correct?");
        return;
    }
    if (acl_login(conn, argc == 3 ? argv[1] : SLICE("default"), argv[argc - 1]))
        reply_ok(conn);
    else
        acl_reply_wrong(conn);
}

/* ---- what they may ---- */

static bool may_touch(const struct user *user, struct slice key, const char *access)
{
    bool reads = strchr(access, 'R') != NULL;
    bool writes = strchr(access, 'W') != NULL;
    for (size_t i = 0; i < user->n_keys; i++) {
        const struct acl_pattern *pattern = &user->keys[i];
        if ((reads && !pattern->may_read) || (writes && !pattern->may_write))
            continue;
        if (text_matches(text_slice(&pattern->pattern), key, false))
            return true;
    }
    return false;
}

bool acl_may_hear(const struct user *user, struct slice channel, bool is_pattern)
{
    if (user->all_channels)
        return true;
    for (size_t i = 0; i < user->n_channels; i++) {
        struct slice pattern = text_slice(&user->channels[i]);
        if (is_pattern ? slice_eq(pattern, channel) : text_matches(pattern, channel, false))
            return true;
    }
    return false;
}

/* The channels among the arguments: first and end. */
static size_t channels_of(const struct command *command, size_t argc, bool *is_pattern)
{
    *is_pattern = command->run == cmd_psubscribe;
    if (command->run == cmd_publish || command->run == cmd_spublish)
        return 2;
    bool subscribes = command->run == cmd_subscribe || command->run == cmd_psubscribe || command->run == cmd_ssubscribe;
    return subscribes ? argc : 1;
}

/* Before 7.0 a container is the command, of which a user may have a part only. */
static bool may_part(const struct user *user, const struct command *command, const struct slice *argv, size_t argc)
{
    for (size_t i = 1; argc > 1 && i <= command->n_children; i++)
        if (user->may[command[i].id] && text_is(argv[1], strchr(command[i].name, '|') + 1))
            return true;
    return false;
}

enum acl_verdict acl_check(const struct user *user, const struct command *command, const struct slice *argv,
                           size_t argc)
{
    bool may = user->all_commands || user->may[command->id] || (command->bits & FLAG_NO_AUTH);
    if (!may && !may_part(user, command, argv, argc))
        return ACL_NO_COMMAND;
    if (!user->all_keys && !(command->bits & FLAG_PUBSUB)) { /* whose channels are no keys */
        struct key_walk walk = key_walk(command, argv, argc);
        for (size_t i; (i = key_next(&walk)) != 0;)
            if (!may_touch(user, argv[i], command->access))
                return ACL_NO_KEY;
    }
    bool is_pattern;
    size_t end = user->all_channels ? 1 : channels_of(command, argc, &is_pattern);
    for (size_t i = 1; i < end; i++)
        if (!acl_may_hear(user, argv[i], is_pattern))
            return ACL_NO_CHANNEL;
    return ACL_MAY;
}

void acl_describe(const struct redis *redis, enum acl_verdict verdict, const struct command *command,
                  const struct user *user, struct text *text)
{
    bool is_new = is_at_least(redis, 70200);
    const char *what = verdict == ACL_NO_KEY ? "key" : "channel";
    if (verdict != ACL_NO_COMMAND && is_new)
        text_addf(text, "NOPERM No permissions to access a %s", what);
    else if (verdict != ACL_NO_COMMAND)
        text_addf(text, "NOPERM this user has no permissions to access one of the %ss used as arguments", what);
    else if (is_new)
        text_addf(text, "NOPERM User %s has no permissions to run the '%s' command", user->name, command->name);
    else
        text_addf(text, "NOPERM this user has no permissions to run the '%s' command%s", command_name(redis, command),
                  is_at_least(redis, 70000) ? "" : " or its subcommand");
}
