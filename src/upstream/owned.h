/*
 * The private connections that somebody owns now, by Redis' id, over all workers: whom CLIENT TRACKING ... REDIRECT may
 * name. Two connections of one application are of the same user with the same password; nobody else's may be pointed at.
 *
 * Under a lock; it is asked when a lane gets another owner, and never for a command.
 */
#ifndef WEIR_UPSTREAM_OWNED_H
#define WEIR_UPSTREAM_OWNED_H

#include <stdbool.h>
#include <stdint.h>

#include "upstream/login.h"

struct owned;

struct owned *owned_new(void); /* out of memory ends the process */
void owned_free(struct owned *owned);

/*
 * The connection of this id has an owner from now on, who has come in by `login`; NULL: by none. Ids are never 0. Out of
 * memory it may stay unknown, and nobody points at it.
 */
void owned_enter(struct owned *owned, int64_t id, const struct login *login);

/* It has none any more. True: somebody points at it. Safe on one that has none. */
bool owned_leave(struct owned *owned, int64_t id);

/* May one who has come in by `login` point at it? Then he does. */
bool owned_point(struct owned *owned, int64_t id, const struct login *login);

/* Does anybody point at it? */
bool owned_is_pointed_at(struct owned *owned, int64_t id);

#endif
