/*
 * Passes the bytes that a lane receives on to the lane user of the oldest call, or drops the bytes.
 *
 * An unexpected frame, and bytes that are no RESP, close the lane. The callbacks of a lane user may
 * close the lane, too.
 */
#ifndef WEIR_UPSTREAM_DELIVER_H
#define WEIR_UPSTREAM_DELIVER_H

#include "upstream/lane/lane.h"

/*
 * Takes at least one byte between p and end. Returns the start of the rest; NULL: all bytes are
 * taken, or the lane is closed.
 */
const char *deliver(struct lane *lane, const char *p, const char *end);

/*
 * Called when all received bytes are delivered. Ends a run of the owner that waited for further
 * pushes (on_run_end).
 */
void deliver_end_run(struct lane *lane);

/* True if a part of a frame for this lane user has arrived, and has been passed on. */
bool deliver_is_in_frame_of(const struct lane *lane, const struct lane_user *lane_user);

/*
 * deliver_passing returns the link to which the content of a large plain reply is spliced, as a
 * link's on_passing does. deliver_passed notes n spliced bytes, as a link's on_passed does.
 */
struct link *deliver_passing(struct lane *lane, size_t *most);
void deliver_passed(struct lane *lane, size_t n);

#endif
