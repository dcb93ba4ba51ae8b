/*
 * Users and passwords by which lanes log in: what a client has said, weir's own, and the newest of each user that Redis
 * has accepted from a client of any worker.
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
 * A user and a password. Counted by references, all of one thread; the password is wiped with the last of them.
 */
struct login {
    unsigned holders;
    bool is_weirs; /* weir's, whose password may be replaced: struct own_login */
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

/* ---- weir's own ---- */

/*
 * weir's own login: its user with the password that upstream-password-file has now, and with the one that the file had
 * before. The newest is tried first, and the one before when Redis refuses that: a file may be written before Redis
 * knows the password, or after Redis has forgotten the old one.
 *
 * Time is an argument. The worker's thread only.
 */
struct own_login {
    struct login *newest; /* one reference; NULL: weir does not log in */
    struct login *before; /* the same with the password before; NULL: there is none */
    uint32_t number;      /* of the newest, as node->proven_number has it */
    uint64_t newest_ns;   /* the one before is in use until then, as the newest was refused; 0: the newest is in use */
    bool is_newest_refused;
    bool is_before_refused; /* since Redis has accepted either of them */
};

struct own_login_words {
    struct slice user, newest, before; /* `before` may be empty */
    uint32_t number;
};

/* weir logs in by these words from now on. False: out of memory, and nothing changes. */
bool own_login_set(struct own_login *own, const struct own_login_words *words);
void own_login_fini(struct own_login *own);

/* With which to log in now; NULL: weir does not. Good until own_login_set. */
struct login *own_login_now(struct own_login *own, uint64_t now_ns);

/* Redis has refused this one. True: there is another one to try at once. `again_ns`: the newest is in use again after so long. */
bool own_login_refuse(struct own_login *own, const struct login *login, uint64_t now_ns, uint64_t again_ns);

/* Redis has accepted one of them. */
void own_login_accept(struct own_login *own);

/* ---- the newest of each user ---- */

#define PROVEN_BUCKETS 64

/*
 * Of each user that a client of any worker has logged in as at one node: the password that Redis has taken last.
 *
 * Problem: where passwords lapse, a worker may know none any more by which to open a connection, while clients of other
 * workers come in by newer ones. Mechanism: one table for each node, which a worker asks once all passwords of its own
 * have been refused. An entry lasts while the user is known to a worker (auth_users.h). Any thread.
 */
struct proven {
    pthread_mutex_t lock;
    struct list buckets[PROVEN_BUCKETS];
};

struct proven_user;

void proven_init(struct proven *proven);
void proven_fini(struct proven *proven); /* no user is left */

/* Its entry, made if there is none; counted. NULL: out of memory. */
struct proven_user *proven_get(struct proven *proven, struct slice name);
void proven_put(struct proven *proven, struct proven_user *user); /* safe on NULL */

/* Redis has taken this login; `is_new`: of any that there is it is the newest. It is copied. */
void proven_note(struct proven *proven, struct proven_user *user, const struct login *login, bool is_new);

/* Redis has refused it. */
void proven_drop(struct proven *proven, struct proven_user *user, const struct login *login);

/* A copy, with one reference. NULL: none is known, or out of memory. */
struct login *proven_copy(struct proven *proven, const struct proven_user *user);

#endif
