/*
 * Of each user that a client of any worker has logged in as at one node: the password that Redis has taken last.
 *
 * Problem: where passwords lapse, a worker may know none any more by which to open a connection, while clients of other
 * workers come in by newer ones. Mechanism: one table for each node, which a worker asks once all passwords of its own
 * have been refused. An entry lasts while the user is known to a worker (auth_users.h). Any thread.
 */
#ifndef WEIR_UPSTREAM_PROVEN_H
#define WEIR_UPSTREAM_PROVEN_H

#include <pthread.h>
#include <stdint.h>

#include "base/list.h"
#include "upstream/login/login.h"

#define PROVEN_BUCKETS 64

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
