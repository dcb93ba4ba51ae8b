/* The rules of a user: words of ACL SETUSER. */
#include "tests/sim/redis_acl.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_sha.h"

static void drop_passwords(struct user *user)
{
    for (size_t i = 0; i < user->n_passwords; i++)
        text_fini(&user->passwords[i]);
    free(user->passwords);
    user->passwords = NULL;
    user->n_passwords = 0;
}

void acl_free(struct user *user)
{
    drop_passwords(user);
    free(user->name);
    free(user);
}

static void add_password(struct user *user, struct slice hash)
{
    for (size_t i = 0; i < user->n_passwords; i++)
        if (slice_eq(text_slice(&user->passwords[i]), hash))
            return;
    user->passwords = take_more(user->passwords, user->n_passwords + 1, sizeof *user->passwords);
    user->passwords[user->n_passwords] = (struct text){0};
    text_add(&user->passwords[user->n_passwords++], hash);
}

/* `user` NULL: a new user, disabled and without a password. */
struct user *acl_copy(const struct user *user, struct slice name)
{
    struct user *copy = take_zeroed(1, sizeof *copy);
    list_init(&copy->in_users);
    copy->name = text_copy(name);
    if (user == NULL)
        return copy;
    copy->is_on = user->is_on;
    copy->is_nopass = user->is_nopass;
    for (size_t i = 0; i < user->n_passwords; i++)
        add_password(copy, text_slice(&user->passwords[i]));
    return copy;
}

static const char *apply_password(struct user *user, struct slice rule)
{
    char hex[SHA256_HEX + 1];
    struct slice word = slice_of(rule.at + 1, rule.len - 1);
    sha256_hex(word, hex);
    struct slice hash = slice_of(hex, SHA256_HEX);
    if (rule.at[0] == '>') {
        add_password(user, hash);
        user->is_nopass = false;
        return NULL;
    }
    for (size_t i = 0; i < user->n_passwords; i++) {
        if (!slice_eq(text_slice(&user->passwords[i]), hash))
            continue;
        text_fini(&user->passwords[i]);
        user->n_passwords--;
        memmove(&user->passwords[i], &user->passwords[i + 1],
                (user->n_passwords - i) * sizeof *user->passwords);
        return NULL;
    }
    return "The password you are trying to remove from the user does not exist";
}

/* Permissions are not modelled: these rules change nothing. */
static bool allows_all(struct slice rule)
{
    return text_is(rule, "~*") || text_is(rule, "&*") || text_is(rule, "+@all");
}

const char *acl_apply(struct user *user, struct slice rule)
{
    if (rule.len > 0 && (rule.at[0] == '>' || rule.at[0] == '<'))
        return apply_password(user, rule);
    if (text_is(rule, "on") || text_is(rule, "off")) {
        user->is_on = text_is(rule, "on");
    } else if (text_is(rule, "nopass") || text_is(rule, "resetpass")) {
        drop_passwords(user);
        user->is_nopass = text_is(rule, "nopass");
    } else if (!allows_all(rule)) {
        return "Syntax error";
    }
    return NULL;
}
