/* The rules that make a user: words as ACL SETUSER takes them. */
#include "tests/sim/redis_acl.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_sha.h"

/* ---- users as a whole ---- */

static void free_texts(struct text **texts, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        text_fini(&(*texts)[i]);
    free(*texts);
    *texts = NULL;
    *n = 0;
}

static void free_keys(struct user *user)
{
    for (size_t i = 0; i < user->n_keys; i++)
        text_fini(&user->keys[i].pattern);
    free(user->keys);
    user->keys = NULL;
    user->n_keys = 0;
}

void acl_free(struct user *user)
{
    free_texts(&user->passwords, &user->n_passwords);
    free_texts(&user->channels, &user->n_channels);
    free_keys(user);
    text_fini(&user->rules);
    free(user->may);
    free(user->name);
    free(user);
}

static bool has_text(const struct text *texts, size_t n, struct slice text)
{
    for (size_t i = 0; i < n; i++)
        if (slice_eq(text_slice(&texts[i]), text))
            return true;
    return false;
}

static void add_text(struct text **texts, size_t *n, struct slice text)
{
    if (has_text(*texts, *n, text))
        return;
    *texts = take_more(*texts, *n + 1, sizeof **texts);
    (*texts)[*n] = (struct text){0};
    text_add(&(*texts)[(*n)++], text);
}

static void add_key(struct user *user, struct slice pattern, bool may_read, bool may_write)
{
    for (size_t i = 0; i < user->n_keys; i++) {
        if (!slice_eq(text_slice(&user->keys[i].pattern), pattern))
            continue;
        user->keys[i].may_read |= may_read;
        user->keys[i].may_write |= may_write;
        return;
    }
    user->keys = take_more(user->keys, user->n_keys + 1, sizeof *user->keys);
    user->keys[user->n_keys] = (struct acl_pattern){{0}, may_read, may_write};
    text_add(&user->keys[user->n_keys++].pattern, pattern);
}

/* `user` NULL: one as it is made, who may do nothing. */
struct user *acl_copy(const struct redis *redis, const struct user *user, struct slice name)
{
    struct user *copy = take_zeroed(1, sizeof *copy);
    if (user != NULL) {
        copy->is_on = user->is_on;
        copy->is_nopass = user->is_nopass;
        copy->is_sanitizing = user->is_sanitizing;
        copy->all_keys = user->all_keys;
        copy->all_channels = user->all_channels;
        copy->all_commands = user->all_commands;
    }
    list_init(&copy->in_users);
    copy->name = text_copy(name);
    copy->may = take_zeroed(redis->n_commands_known, sizeof *copy->may);
    if (user == NULL) {
        text_add(&copy->rules, SLICE("-@all"));
        copy->all_channels = !is_at_least(redis, 70000);
        copy->is_sanitizing = is_at_least(redis, 70200);
        return copy;
    }
    memcpy(copy->may, user->may, redis->n_commands_known * sizeof *copy->may);
    text_add(&copy->rules, text_slice(&user->rules));
    for (size_t i = 0; i < user->n_passwords; i++)
        add_text(&copy->passwords, &copy->n_passwords, text_slice(&user->passwords[i]));
    for (size_t i = 0; i < user->n_channels; i++)
        add_text(&copy->channels, &copy->n_channels, text_slice(&user->channels[i]));
    for (size_t i = 0; i < user->n_keys; i++)
        add_key(copy, text_slice(&user->keys[i].pattern), user->keys[i].may_read, user->keys[i].may_write);
    return copy;
}

/* ---- rules about commands ---- */

static void set_all(const struct redis *redis, struct user *user, bool may)
{
    memset(user->may, may, redis->n_commands_known * sizeof *user->may);
    user->all_commands = may;
    text_set(&user->rules, may ? SLICE("+@all") : SLICE("-@all"));
}

/* As the last of the rules; the same about the same before it is forgotten. */
static void note_rule(struct user *user, struct slice rule)
{
    struct text rules = {0};
    struct slice old = text_slice(&user->rules);
    size_t at = 0;
    while (at < old.len) {
        const char *space = memchr(old.at + at, ' ', old.len - at);
        size_t len = space != NULL ? (size_t)(space - old.at) - at : old.len - at;
        struct slice word = slice_of(old.at + at, len);
        bool is_same = at > 0 && slice_eq(slice_of(word.at + 1, len - 1), slice_of(rule.at + 1, rule.len - 1));
        if (!is_same) {
            if (rules.len > 0)
                text_add(&rules, SLICE(" "));
            text_add(&rules, word);
        }
        at += len + 1;
    }
    text_add(&rules, SLICE(" "));
    for (size_t i = 0; i < rule.len; i++) {
        char c = ascii_lower(rule.at[i]);
        text_add(&rules, slice_of(&c, 1));
    }
    text_fini(&user->rules);
    user->rules = rules;
}

static bool is_in_category(const struct command *command, struct slice category)
{
    for (const char *at = command->categories; *at != '\0';) {
        size_t len = strcspn(at, " ");
        if (slice_eq_nocase(slice_of(at, len), category))
            return true;
        at += len + (at[len] == ' ');
    }
    return false;
}

static bool is_category(struct slice name)
{
    static const char *const names[] = {"keyspace",   "read",        "write",    "set",    "sortedset", "list",
                                        "hash",       "string",      "bitmap",   "stream", "geo",       "hyperloglog",
                                        "pubsub",     "admin",       "fast",     "slow",   "blocking",  "dangerous",
                                        "connection", "transaction", "scripting"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (slice_eq_nocase(slice_str(names[i]), name))
            return true;
    return false;
}

static const char *apply_command(const struct redis *redis, struct user *user, struct slice rule)
{
    bool may = rule.at[0] == '+';
    struct slice name = slice_of(rule.at + 1, rule.len - 1);
    if (name.len > 0 && name.at[0] == '@') {
        struct slice category = slice_of(name.at + 1, name.len - 1);
        if (!is_category(category))
            return "Unknown command or category name in ACL";
        for (size_t i = 0; i < redis->n_commands_known; i++)
            if (is_in_category(&redis->commands[i], category))
                user->may[i] = may;
    } else {
        const struct command *command = command_by_name(redis, name);
        if (command == NULL)
            return "Unknown command or category name in ACL";
        for (size_t i = 0; i <= command->n_children; i++)
            user->may[command->id + i] = may;
    }
    if (!may)
        user->all_commands = false;
    note_rule(user, rule);
    return NULL;
}

/* ---- rules about passwords, keys and channels ---- */

static const char *apply_password(struct user *user, struct slice rule)
{
    char hex[SHA256_HEX + 1];
    struct slice word = slice_of(rule.at + 1, rule.len - 1);
    bool is_hash = rule.at[0] == '#' || rule.at[0] == '!';
    if (is_hash && (word.len != SHA256_HEX || strspn(word.at, "0123456789abcdef") < SHA256_HEX))
        return "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters";
    if (is_hash)
        memcpy(hex, word.at, SHA256_HEX);
    else
        sha256_hex(word, hex);
    struct slice hash = slice_of(hex, SHA256_HEX);
    if (rule.at[0] == '>' || rule.at[0] == '#') {
        add_text(&user->passwords, &user->n_passwords, hash);
        user->is_nopass = false;
        return NULL;
    }
    for (size_t i = 0; i < user->n_passwords; i++) {
        if (!slice_eq(text_slice(&user->passwords[i]), hash))
            continue;
        text_fini(&user->passwords[i]);
        user->n_passwords--;
        memmove(&user->passwords[i], &user->passwords[i + 1], (user->n_passwords - i) * sizeof *user->passwords);
        return NULL;
    }
    return "The password you are trying to remove from the user does not exist";
}

static bool has_space(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] == '\0' || strchr(" \t\n\v\f\r", text.at[i]) != NULL)
            return true;
    return false;
}

static const char *apply_key(struct user *user, struct slice rule)
{
    bool may_read = rule.at[0] == '~';
    bool may_write = may_read;
    size_t at = 1;
    if (user->all_keys)
        return "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. "
               "Try 'resetkeys' to start with an empty list of patterns";
    if (rule.at[0] == '%') {
        for (; at < rule.len && rule.at[at] != '~'; at++) {
            char c = ascii_upper(rule.at[at]);
            if ((c != 'R' || may_read) && (c != 'W' || may_write))
                return "Syntax error";
            may_read |= c == 'R';
            may_write |= c == 'W';
        }
        if (at == rule.len || (!may_read && !may_write))
            return "Syntax error";
        at++;
    }
    struct slice pattern = slice_of(rule.at + at, rule.len - at);
    if (has_space(pattern))
        return "Syntax error";
    add_key(user, pattern, may_read, may_write);
    return NULL;
}

static const char *apply_channel(struct user *user, struct slice rule)
{
    struct slice pattern = slice_of(rule.at + 1, rule.len - 1);
    if (user->all_channels)
        return "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any "
               "effect. Try 'resetchannels' to start with an empty list of channels";
    if (has_space(pattern))
        return "Syntax error";
    add_text(&user->channels, &user->n_channels, pattern);
    return NULL;
}

/* ---- whole words ---- */

static void set_all_keys(struct user *user, bool all)
{
    free_keys(user);
    user->all_keys = all;
}

static void set_all_channels(struct user *user, bool all)
{
    free_texts(&user->channels, &user->n_channels);
    user->all_channels = all;
}

static void reset_passwords(struct user *user, bool is_nopass)
{
    free_texts(&user->passwords, &user->n_passwords);
    user->is_nopass = is_nopass;
}

static bool apply_word(const struct redis *redis, struct user *user, struct slice rule)
{
    if (text_is(rule, "on") || text_is(rule, "off")) {
        user->is_on = text_is(rule, "on");
    } else if (text_is(rule, "nopass") || text_is(rule, "resetpass")) {
        reset_passwords(user, text_is(rule, "nopass"));
    } else if (text_is(rule, "allkeys") || text_is(rule, "~*") || text_is(rule, "resetkeys")) {
        set_all_keys(user, !text_is(rule, "resetkeys"));
    } else if (text_is(rule, "allchannels") || text_is(rule, "&*") || text_is(rule, "resetchannels")) {
        set_all_channels(user, !text_is(rule, "resetchannels"));
    } else if (text_is(rule, "allcommands") || text_is(rule, "+@all")) {
        set_all(redis, user, true);
    } else if (text_is(rule, "nocommands") || text_is(rule, "-@all")) {
        set_all(redis, user, false);
    } else if (text_is(rule, "sanitize-payload")) {
        user->is_sanitizing = true;
    } else if (text_is(rule, "reset")) {
        reset_passwords(user, false);
        set_all_keys(user, false);
        set_all_channels(user, !is_at_least(redis, 70000));
        user->is_on = false;
        user->is_sanitizing = true;
        set_all(redis, user, false);
    } else {
        return false;
    }
    return true;
}

const char *acl_apply(const struct redis *redis, struct user *user, struct slice rule)
{
    if (rule.len == 0 || apply_word(redis, user, rule))
        return NULL;
    switch (rule.at[0]) {
    case '>':
    case '<':
    case '#':
    case '!':
        return apply_password(user, rule);
    case '~':
        return apply_key(user, rule);
    case '%':
        return is_at_least(redis, 70000) ? apply_key(user, rule) : "Syntax error";
    case '&':
        return apply_channel(user, rule);
    case '+':
    case '-':
        return apply_command(redis, user, rule);
    default:
        return "Syntax error";
    }
}
