/*
 * Replies: from the bytes that a lane receives to the rider of its oldest call, or to nobody.
 *
 * What nobody waits for, and what is no RESP, ends the lane; so may whatever its rider does when it hears.
 */
#ifndef WEIR_UPSTREAM_DELIVER_H
#define WEIR_UPSTREAM_DELIVER_H

#include "upstream/lane/lane.h"

/*
 * Some of the bytes from p to end, at least one. Returns where the rest begins; NULL: all are taken, or the lane is
 * gone.
 */
const char *deliver(struct lane *lane, const char *p, const char *end);

/* No more has come for now: behind a reply that ends a run of the owner's weir's own replies follow. */
void deliver_end_run(struct lane *lane);

/* Has of a frame that this rider hears a part come, and been passed on? */
bool deliver_is_in_frame_of(const struct lane *lane, const struct rider *rider);

/* As a link's on_passing and on_passed: where the content of a large plain reply goes without being looked at. */
struct link *deliver_passing(struct lane *lane, size_t *most);
void deliver_passed(struct lane *lane, size_t n);

#endif
