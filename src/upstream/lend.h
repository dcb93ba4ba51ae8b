/*
 * Private lanes: lent to one client at a time, taken back, and kept for a while for whoever comes next.
 *
 * Between two owners a lane is greeted anew, which takes a round trip; so who comes back to the lane that it had last,
 * and that nobody has had since, has it as it was. Others leave it alone for a moment, the longer the more often its
 * owner came back in time.
 */
#ifndef WEIR_UPSTREAM_LEND_H
#define WEIR_UPSTREAM_LEND_H

#include "upstream/lanes.h"

/*
 * A private lane for `owner`: the one of its lease if that still holds, else one that is kept, else a new one; ready,
 * or to be waited for. `wants_new`: no kept one. NULL as shared_get. A lane that is kept and turns out not to be
 * clean is closed, the owner's lane is NULL and its link woken: it asks again, for a new one.
 */
struct lane *lend_private(struct lanes *lanes, const struct lane_key *key, struct rider *owner, struct lease *last,
                          bool wants_new);

/*
 * A new one that speaks for all that Redis has been sent before it is ready, by a message on `channel`, if weir's own
 * login may publish there: then is_covered. Otherwise as lend_private.
 */
struct lane *lend_covering(struct lanes *lanes, const struct lane_key *key, struct rider *owner, struct slice channel);

/* Its owner needs it no longer, and it is clean: it is kept, with a lease for its owner, or closed. */
void lend_take_back(struct lane *lane, struct lease *last);

/* The same, as it is: with calls answered, but whatever state. It is reset, and nobody comes back to it as it was. */
void lend_take_back_as_is(struct lane *lane);

/* Its owner may want others of his user to point at it; or has become another user. */
void lend_list(struct lane *lane);
void lend_note_login(struct lane *lane);

/* For health.c: its owner has it no more. */
void lend_end_use(struct lane *lane);

#endif
