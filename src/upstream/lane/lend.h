/*
 * Private lanes: lent to one client at a time, taken back, and kept for a while for the next owner.
 *
 * Between two owners a lane is greeted anew, which takes a round trip. A client that comes back to the lane it had
 * last, and that no other has had since, has it as it was: it remembers it by a lease. A lane is left to its last owner
 * for a moment, the longer the more often that came back in time. The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_LEND_H
#define WEIR_UPSTREAM_LEND_H

#include "upstream/lane/lanes.h"

/*
 * A private lane for `owner`: the one of its lease `last` if that still holds, else one that is kept, else a new one;
 * ready, or to be waited for. `wants_new`: no kept one. NULL as shared_get. If a kept lane turns out not to be clean,
 * it is closed, the owner's lane is NULL and its link woken: then it is to ask again, with wants_new.
 */
struct lane *lend_private(struct lanes *lanes, const struct lane_key *key, struct rider *owner, struct lease *last,
                          bool wants_new);

/*
 * A private lane on which WAIT speaks for all that the node has been sent before the lane is ready, by a write to the
 * key `written`, if weir's own login may (greeting_cover): lane_take_cover tells. Otherwise as lend_private.
 */
struct lane *lend_covering(struct lanes *lanes, const struct lane_key *key, struct rider *owner, struct slice written,
                           bool wants_new);

/* The owner needs the lane no longer, and it is clean: it is kept, and `last` becomes a lease on it, or closed. */
void lend_take_back(struct lane *lane, struct lease *last);

/* The same in whatever state it is, all calls answered: it is reset before it is kept, and no lease on it holds. */
void lend_take_back_as_is(struct lane *lane);

/*
 * From now on other clients of the owner's user may redirect tracking to it (owned.h); its owner has become another
 * user.
 */
void lend_list(struct lane *lane);
void lend_note_login(struct lane *lane);

/* Its owner has it no more: for health.c, when it is closed. */
void lend_end_use(struct lane *lane);

#endif
