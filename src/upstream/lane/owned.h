/*
 * The private connections to one node that have an owner now, by Redis' client id, of all workers:
 * the ids that CLIENT TRACKING ... REDIRECT may name. A client may name only connections of its own
 * user, because the connections of one application have one user.
 *
 * Any thread, under a lock. The lock is taken when a lane changes its owner, and for CLIENT
 * TRACKING.
 */
#ifndef WEIR_UPSTREAM_OWNED_H
#define WEIR_UPSTREAM_OWNED_H

#include <stdbool.h>
#include <stdint.h>

#include "upstream/login/login.h"

struct owned;

struct owned *owned_new(void); /* out of memory ends the process */
void owned_free(struct owned *owned);

/*
 * The connection with this id has an owner now, logged in with `login`; NULL: not logged in. Ids
 * are never 0. Out of memory the id may stay unknown, and no client can name the id.
 */
void owned_enter(struct owned *owned, int64_t id, const struct login *login);

/*
 * The connection with this id has no owner now. True: another connection redirects to this
 * connection. An unknown id is harmless.
 */
bool owned_leave(struct owned *owned, int64_t id);

/* Marks the id as a target. False: a client logged in with `login` may not name this id. */
bool owned_point(struct owned *owned, int64_t id, const struct login *login);

/* True if any connection redirects to the id. */
bool owned_is_pointed_at(struct owned *owned, int64_t id);

#endif
