/*
 * Users and passwords with which lanes log in: the logins of clients, and weir's own login. A table
 * holds the newest password of each user that Redis has accepted from a client of any worker.
 */
#ifndef WEIR_UPSTREAM_LOGIN_H
#define WEIR_UPSTREAM_LOGIN_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"

/*
 * A user and a password. Reference-counted; all references belong to one thread. The last login_put
 * wipes the password.
 */
struct login {
    unsigned holders;
    bool is_weirs; /* weir's own login; its password may be replaced: struct own_login */
    size_t user_len;
    size_t password_len;
    char text[]; /* the user, then the password; both may contain any byte */
};

/* Returns a client's login with one reference. NULL: out of memory. */
struct login *login_new(struct slice user, struct slice password);
struct login *login_get(struct login *login); /* NULL means no user: returns NULL */
void login_put(struct login *login);

/*
 * login_emit writes AUTH user password, or with `is_short` AUTH password (user `default`), into
 * login_room bytes. `auth` is the spelling of AUTH. login_emit returns the length.
 */
size_t login_room(const struct login *login);
size_t login_emit(const struct login *login, struct slice auth, bool is_short, char *out);

/*
 * True if both logins are of one user, with any passwords. NULL equals NULL, and weir's own login
 * equals only weir's own login.
 */
bool login_same_user(const struct login *a, const struct login *b);

/*
 * True if both logins are of one user and have one password. For weir's own login any password is
 * equal.
 */
bool login_same(const struct login *a, const struct login *b);

static inline struct slice login_user(const struct login *login)
{
    return slice_of(login->text, login->user_len);
}

static inline struct slice login_password(const struct login *login)
{
    return slice_of(login->text + login->user_len, login->password_len);
}

/* ---- weir's own ---- */

/*
 * weir's user with the present password of upstream-password-file, and with the previous password.
 * The newest password is tried first, and the previous password if Redis refuses the newest. The
 * file may be written before Redis knows the new password, or after Redis has forgotten the old
 * password.
 *
 * Time is an argument. The worker's thread only.
 */
struct own_login {
    struct login *newest; /* one reference; NULL: weir does not log in */
    struct login *before; /* the same user with the previous password; NULL: none */
    uint32_t number;      /* number of `newest`, compared with node->proven_number */
    /* until this time `before` is used, because `newest` was refused; 0: `newest` is used */
    uint64_t newest_ns;
    bool is_newest_refused;
    bool is_before_refused; /* refused since Redis last accepted `newest` or `before` */
};

struct own_login_words {
    struct slice user, newest, before; /* `before` may be empty */
    uint32_t number;
};

/* Set weir's own login. False: out of memory, and nothing changes. */
bool own_login_set(struct own_login *own, const struct own_login_words *words);
void own_login_fini(struct own_login *own);

/* The login to use now; NULL: weir does not log in. The result is valid until own_login_set. */
struct login *own_login_now(struct own_login *own, uint64_t now_ns);

/*
 * Redis has refused this login. True: the other login can be tried at once. `again_ns`: time until
 * the newest login is tried again.
 */
bool own_login_refuse(struct own_login *own, const struct login *login, uint64_t now_ns,
                      uint64_t again_ns);

/* Redis has accepted a login. */
void own_login_accept(struct own_login *own);

/* ---- the newest of each user ---- */

#define PROVEN_BUCKETS 64

/*
 * The password that Redis accepted last, for each user that clients of any worker have logged in as
 * at one node.
 *
 * Problem: where passwords expire, a worker may have no valid password left to open a connection.
 * Clients of other workers may have logged in with newer passwords. Mechanism: one table for each
 * node. A worker looks in the table once all its own passwords have been refused. An entry lasts
 * while a worker knows the user (auth_users.h). Any thread.
 */
struct proven {
    pthread_mutex_t lock;
    struct list buckets[PROVEN_BUCKETS];
};

struct proven_user;

void proven_init(struct proven *proven);
void proven_fini(struct proven *proven); /* no user may be left */

/* The user's entry, created if missing; with one reference. NULL: out of memory. */
struct proven_user *proven_get(struct proven *proven, struct slice name);
void proven_put(struct proven *proven, struct proven_user *user); /* NULL is allowed */

/* Redis has accepted this login, which is copied. `is_new`: the login replaces the known login. */
void proven_note(struct proven *proven, struct proven_user *user, const struct login *login,
                 bool is_new);

/* Redis has refused this login. */
void proven_drop(struct proven *proven, struct proven_user *user, const struct login *login);

/*
 * Returns a copy of the newest login, with one reference. NULL: no login is known, or out of
 * memory.
 */
struct login *proven_copy(struct proven *proven, const struct proven_user *user);

#endif
