/*
 * A user and a password: what a client has said, and, once Redis has accepted it, by which lanes of that user log in.
 *
 * Counted by references, all of one thread; the password is wiped with the last of them.
 */
#ifndef WEIR_UPSTREAM_LOGIN_H
#define WEIR_UPSTREAM_LOGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct login {
    unsigned holders;
    bool is_weirs; /* weir's, whose password may be replaced: see own_login.h */
    size_t user_len;
    size_t password_len;
    char text[]; /* the user, then the password; both may hold any byte */
};

/* With one reference; not weir's. NULL: out of memory. */
struct login *login_new(struct slice user, struct slice password);
struct login *login_get(struct login *login); /* NULL is nobody, and stays NULL */
void login_put(struct login *login);

/*
 * AUTH user password, or `is_short`: AUTH password, of `default`; into login_room bytes. `auth` is how AUTH is spelled.
 * Returns its length.
 */
size_t login_room(const struct login *login);
size_t login_emit(const struct login *login, struct slice auth, bool is_short, char *out);

/* True if both are of one user, whatever the passwords. None equals none, and weir's own login only itself. */
bool login_same_user(const struct login *a, const struct login *b);

/* The same, and of one password. weir's own login has any. */
bool login_same(const struct login *a, const struct login *b);

static inline struct slice login_user(const struct login *login)
{
    return slice_of(login->text, login->user_len);
}

static inline struct slice login_password(const struct login *login)
{
    return slice_of(login->text + login->user_len, login->password_len);
}

#endif
