#include "upstream/login/login.h"

#include <stdlib.h>
#include <string.h>

#include "resp/emit.h"

struct login *login_new(struct slice user, struct slice password)
{
    struct login *login = malloc(sizeof *login + user.len + password.len);
    if (login == NULL)
        return NULL;
    login->holders = 1;
    login->is_weirs = false;
    login->user_len = user.len;
    login->password_len = password.len;
    memcpy(login->text, user.at, user.len);
    memcpy(login->text + user.len, password.at, password.len);
    return login;
}

struct login *login_get(struct login *login)
{
    if (login != NULL)
        login->holders++;
    return login;
}

void login_put(struct login *login)
{
    if (login == NULL || --login->holders > 0)
        return;
    explicit_bzero(login->text, login->user_len + login->password_len);
    free(login);
}

size_t login_room(const struct login *login)
{
    return login->user_len + login->password_len + sizeof "AUTH" + 4 * EMIT_HEADER_MAX + 6;
}

size_t login_emit(const struct login *login, struct slice auth, bool is_short, char *out)
{
    const struct slice words[] = {auth, login_user(login), login_password(login)};
    const struct slice without_user[] = {auth, login_password(login)};
    return is_short ? emit_array(out, without_user, 2) : emit_array(out, words, 3);
}

bool login_same_user(const struct login *a, const struct login *b)
{
    if (a == b || a == NULL || b == NULL)
        return a == b;
    if (a->is_weirs || b->is_weirs)
        return a->is_weirs == b->is_weirs;
    return slice_eq(login_user(a), login_user(b));
}

bool login_same(const struct login *a, const struct login *b)
{
    if (a == b || a == NULL || b == NULL || a->is_weirs || b->is_weirs)
        return login_same_user(a, b);
    return login_same_user(a, b) && slice_eq(login_password(a), login_password(b));
}
