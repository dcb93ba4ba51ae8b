/*
 * Private lanes: lent to one client at a time, taken back, and kept idle for the next owner.
 *
 * Between two owners a lane is greeted anew, which takes a round trip. A client remembers its last
 * lane by a lease. A client that returns before the lane has had another owner gets the lane as it
 * was, without a greeting. A lane is reserved for its last owner for a short time. The time
 * doubles, up to a bound, whenever the owner comes back in time. The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_LEND_H
#define WEIR_UPSTREAM_LEND_H

#include "upstream/lane/lanes.h"

/*
 * Returns a private lane for `owner`, ready or still opening. The lane of the lease `last` is
 * preferred if the lease is valid, then an idle lane, then a new lane. `wants_new`: no idle lane.
 * NULL as for shared_get. An idle lane that turns out not to be clean is closed. The owner's lane
 * then becomes NULL, and the owner's link is woken. The owner must ask again, with wants_new.
 */
struct lane *lend_private(struct lanes *lanes, const struct lane_key *key, struct lane_user *owner,
                          struct lease *last, bool wants_new);

/*
 * Like lend_private, for a lane on which WAIT covers everything that the node was sent before the
 * lane is ready. For this cover weir's login writes the key `written`, if permitted
 * (greeting_cover). lane_take_cover reports the outcome.
 */
struct lane *lend_covering(struct lanes *lanes, const struct lane_key *key, struct lane_user *owner,
                           struct slice written, bool wants_new);

/*
 * The owner gives back a clean lane. Either the lane is kept, and `last` becomes a lease on the
 * lane; or the lane is closed.
 */
void lend_take_back(struct lane *lane, struct lease *last);

/*
 * Like lend_take_back, for a lane in any state with all calls answered: the lane is RESET first,
 * and leases on the lane end.
 */
void lend_take_back_as_is(struct lane *lane);

/*
 * Register the lane as a target for CLIENT TRACKING REDIRECT by other clients of its user
 * (owned.h). lend_note_login: the owner is now another user.
 */
void lend_list(struct lane *lane);
void lend_note_login(struct lane *lane);

/* The owner no longer has the lane. Called by health.c when the lane closes. */
void lend_end_use(struct lane *lane);

#endif
