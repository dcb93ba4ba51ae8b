/*
 * The users that clients of one worker have logged in as at one node: the proofs of clients, and
 * the passwords for opening lanes.
 *
 * A proof says that Redis has answered +OK, on an auth lane, to a client's own login. A proof holds
 * in one auth generation of its user. Redis closes the user's connections when the user is deleted
 * or killed, which ends the proof. The auth generation ends
 *
 * - when Redis or the network closes a connection of the user: auth_user_kicked;
 * - when the last connection of the user closes: auth_user_close.
 *
 * An expired password ends no auth generation: Redis itself keeps the connections that logged in
 * with the expired password.
 *
 * weir may learn late that an auth generation has ended: shared.h says which lanes suit a proof.
 *
 * The generation's number is even while no connection is open, and odd while a connection is open.
 * Redis' answer to a login may be older than the first open connection. Such an answer proves no
 * other password: Redis may have revoked it before that connection, and weir would not notice.
 *
 * A struct auth_users lives in struct lane_base. A user outlives the table while a proof or a lane
 * refers to the user. The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_AUTH_USERS_H
#define WEIR_UPSTREAM_AUTH_USERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "upstream/login/login.h"

/* chosen: passwords kept of one user; if each client has a token of its own, the newest are kept */
#define AUTH_PROVEN_MAX 8
/* number of lists of users that Redis has accepted, or that are being checked */
#define AUTH_USERS_BUCKETS 256

struct auth_users {
    struct list buckets[AUTH_USERS_BUCKETS];
    uint32_t n;
    struct proven *proven; /* of all workers at the node; outlives this struct */
    uint64_t n_logins;     /* logins of lanes so far: each login gets a number (shared.h) */
};

struct auth_user {
    struct list in_bucket;
    struct auth_users *users; /* the table; NULL: the table is gone */
    unsigned holders;         /* references of proofs and lanes */
    uint32_t generation;      /* odd while a connection of the user is open */
    uint32_t n_open;          /* open connections logged in as the user */
    uint32_t n_proofs;        /* proofs of clients, and of questions in flight, valid or not */
    /*
     * login of the first connection of this generation; NULL: a connection of an earlier generation
     * is still open
     */
    struct login *begun_by;
    /* the user's entry in users.proven, one reference; NULL: no password proven here */
    struct proven_user *on_all;
    struct login *proven[AUTH_PROVEN_MAX]; /* the newest first; NULL: no more */
    size_t name_len;
    char name[];
};

/* Kept by a client, or by a question in flight. Zeroed: no proof, and auth_proof_holds is false. */
struct auth_proof {
    struct auth_user *user; /* one reference */
    uint32_t generation;    /* 0: void */
    uint64_t n_logins;      /* auth_users.n_logins when AUTH was sent */
};

void auth_users_init(struct auth_users *users, struct proven *proven);
/* proofs and lanes may be left; no proof holds any more */
void auth_users_fini(struct auth_users *users);

/* Returns NULL if the user is unknown. */
struct auth_user *auth_users_find(const struct auth_users *users, struct slice name);

/* Like auth_users_find, but creates a missing user, and adds a reference. NULL: out of memory. */
struct auth_user *auth_users_get(struct auth_users *users, struct slice name);
void auth_user_put(struct auth_user *user); /* NULL is allowed */

/* ---- connections ---- */

/*
 * auth_user_open: a connection has logged in with `login`. auth_user_close: a connection has
 * closed, or has become another user's.
 */
void auth_user_open(struct auth_user *user, struct login *login);
void auth_user_close(struct auth_user *user);

/*
 * A connection was closed, and not by weir. Call auth_user_close first. The caller ends the leases
 * on shared lanes of the user.
 */
void auth_user_kicked(struct auth_user *user);

/*
 * True if the user has clients and only one open connection: that connection is not closed as idle.
 */
static inline bool auth_user_needs_it(const struct auth_user *user)
{
    return user != NULL && user->n_open == 1 && user->n_proofs > 0;
}

/* ---- passwords ---- */

/*
 * Redis has accepted this login on an auth lane: the login becomes the newest, unless the login is
 * known already.
 */
void auth_user_note(struct auth_user *user, struct login *login);

/*
 * Redis has refused this login on a lane: the login is dropped. False: no other login is left, and
 * other workers know no other login.
 */
bool auth_user_refuse(struct auth_user *user, const struct login *login);

/* Returns the login for new lanes; NULL: no login is known. */
static inline struct login *auth_user_newest(const struct auth_user *user)
{
    return user != NULL ? user->proven[0] : NULL;
}

/* ---- proofs ---- */

/*
 * Make `proof` a proof of the user's present generation. If `user` is NULL, `proof` becomes no
 * proof.
 */
void auth_proof_take(struct auth_proof *proof, struct auth_user *user);

/* Make `proof` a copy of another proof. */
void auth_proof_copy(struct auth_proof *proof, const struct auth_proof *from);

void auth_proof_drop(struct auth_proof *proof);

/* Makes the proof invalid. The reference to the user stays. */
static inline void auth_proof_void(struct auth_proof *proof)
{
    proof->generation = 0;
}

/*
 * True if the proof holds at the node of this table. `login` is the login that Redis has answered
 * with +OK.
 */
bool auth_proof_holds(struct auth_proof *proof, const struct auth_users *users,
                      const struct login *login);

/*
 * True if the proof holds, and a connection of the user has been open since the proof was taken.
 * Redis would have closed that connection if the user were gone.
 */
static inline bool auth_proof_is_witnessed(struct auth_proof *proof, const struct auth_users *users,
                                           const struct login *login)
{
    return auth_proof_holds(proof, users, login) && (proof->generation & 1) != 0;
}

#endif
