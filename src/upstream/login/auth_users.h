/*
 * The users that clients of one worker have logged in as at one node: what proves a client there, and with
 * which passwords lanes are opened.
 *
 * A proof is Redis' +OK, on an auth lane, to a client's own words. It holds in one generation of its user. A generation
 * lasts while a connection of the user is open all the time: Redis closes that connection when the user is deleted or
 * killed, so a proof that a client could have lost without weir has an end here, too. The generation ends
 *   - when Redis, or whatever is between, closes a connection of the user: auth_user_kicked;
 *   - when no connection of the user is open any more: auth_user_close.
 * A lapsed password ends no generation: Redis itself goes on with the connections that logged in by it.
 *
 * weir may learn of such an end late: which lanes a proof is good for is in shared.h.
 *
 * The number is even while no connection is open and odd while one is. An answer of before the first connection proves
 * only the words by which that connection has logged in: any others may have lost their right in between, unseen.
 *
 * Lives in struct lane_base; a user outlives the table while a proof or a lane names it. The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_AUTH_USERS_H
#define WEIR_UPSTREAM_AUTH_USERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "upstream/login/login.h"

#define AUTH_PROVEN_MAX 8      /* passwords kept of one user; with a token for each client the newest live longest */
#define AUTH_USERS_BUCKETS 256 /* lists; a user has been let in by Redis, or is being asked about */

struct auth_users {
    struct list buckets[AUTH_USERS_BUCKETS];
    uint32_t n;
    struct proven *proven; /* of all workers at the node; lives longer */
    uint64_t n_logins;     /* of lanes, so far: that of each has a number (shared.h) */
};

struct auth_user {
    struct list in_bucket;
    struct auth_users *users;   /* the table; NULL: the node's row has gone */
    unsigned holders;           /* proofs and lanes */
    uint32_t generation;        /* odd while a connection of the user is open */
    uint32_t n_open;            /* connections that have logged in as the user and are open */
    uint32_t n_proofs;          /* of clients, and of questions on their way; whether they hold or not */
    struct login *begun_by;     /* of the first connection of this generation; NULL: an earlier one is its first */
    struct proven_user *on_all; /* in users.proven, counted; NULL: none of its passwords has been proven here */
    struct login *proven[AUTH_PROVEN_MAX]; /* the newest first; NULL: no more */
    size_t name_len;
    char name[];
};

/* What a client, or a question on its way, remembers. Zeroed: none, which does not hold. */
struct proof {
    struct auth_user *user; /* counted */
    uint32_t generation;    /* 0: of none */
    uint64_t n_logins;      /* of lanes, before the proof was asked */
};

void auth_users_init(struct auth_users *users, struct proven *proven);
void auth_users_fini(struct auth_users *users); /* proofs and lanes may be left; no proof holds any more */

/* NULL: it is not known. */
struct auth_user *auth_users_find(const struct auth_users *users, struct slice name);

/* The same, made if there is none; with one more reference. NULL: out of memory. */
struct auth_user *auth_users_get(struct auth_users *users, struct slice name);
void auth_user_put(struct auth_user *user); /* safe on NULL */

/* ---- connections ---- */

/* One has logged in by this login; one is closed, or is another user's from now on. */
void auth_user_open(struct auth_user *user, struct login *login);
void auth_user_close(struct auth_user *user);

/* One was closed, and weir has not closed it. auth_user_close comes first. Leases on shared lanes of the user are to end. */
void auth_user_kicked(struct auth_user *user);

/* True if a client of the user is here and only one connection is open: it is not closed for want of use. */
static inline bool auth_user_needs_it(const struct auth_user *user)
{
    return user != NULL && user->n_open == 1 && user->n_proofs > 0;
}

/* ---- passwords ---- */

/* Redis has taken this one at an auth lane: it is the newest, unless it is known. */
void auth_user_note(struct auth_user *user, struct login *login);

/* Redis has refused it on a lane: it is dropped. False: no other is left, nor do other workers know one. */
bool auth_user_refuse(struct auth_user *user, const struct login *login);

/* By which a lane logs in; NULL: none is known. */
static inline struct login *auth_user_newest(const struct auth_user *user)
{
    return user != NULL ? user->proven[0] : NULL;
}

/* ---- proofs ---- */

/* From now on it is one of the user's present generation. NULL is no user. */
void proof_take(struct proof *proof, struct auth_user *user);

/* It is what the other is. */
void proof_copy(struct proof *proof, const struct proof *from);

void proof_drop(struct proof *proof);

/* It holds no more; the user stays. */
static inline void proof_void(struct proof *proof)
{
    proof->generation = 0;
}

/* True if it holds at the node of this table. `login` is what Redis has said +OK to. */
bool proof_holds(struct proof *proof, const struct auth_users *users, const struct login *login);

/* The same, and a connection has been open ever since: Redis would have told if the user were gone. */
static inline bool proof_is_witnessed(struct proof *proof, const struct auth_users *users, const struct login *login)
{
    return proof_holds(proof, users, login) && (proof->generation & 1) != 0;
}

#endif
