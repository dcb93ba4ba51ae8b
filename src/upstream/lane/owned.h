/*
 * The private connections to one node that have an owner now, by Redis' client id, of all workers: the ids that CLIENT
 * TRACKING ... REDIRECT may name. A client may point at connections of the same user only, as those of one application
 * are.
 *
 * Any thread, under a lock, which is taken when a lane changes hands and for that command, and for no other.
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
 * The connection of this id has an owner from now on, which has logged in by `login`; NULL: it has not. Ids are never
 * 0. Out of memory it may stay unknown, and nothing can point at it.
 */
void owned_enter(struct owned *owned, int64_t id, const struct login *login);

/* It has none any more. True: some connection points at it. Safe on one that has none. */
bool owned_leave(struct owned *owned, int64_t id);

/* May a client that has logged in by `login` point at it? Then it does. */
bool owned_point(struct owned *owned, int64_t id, const struct login *login);

/* Does any connection point at it? */
bool owned_is_pointed_at(struct owned *owned, int64_t id);

#endif
