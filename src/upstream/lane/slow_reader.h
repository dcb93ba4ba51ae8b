/*
 * Slow readers: the handling of a lane with a huge reply.
 *
 * The lane takes no new calls, unless no other lane like it can be opened (lane_ops.on_huge).
 * Reading stops until the reader has caught up. If calls of other lane users wait behind a reply of
 * moderate size, the reply is buffered (absorbed) instead. The worker's memory for absorbed replies
 * is bounded. A lane user with holds_replies counts its replies itself. If other calls wait behind
 * a reply of this lane user, the reply is buffered whatever its size. The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_SLOW_READER_H
#define WEIR_UPSTREAM_SLOW_READER_H

#include "upstream/lane/lane.h"

/* chosen: a worker's memory for replies that are buffered at once */
#define SLOW_READER_ABSORB_BYTES 8388608
/* chosen: the same bound, if the reader of a reply has read nothing for a tick (timers.c) */
#define SLOW_READER_ABSORB_LATE_BYTES 67108864

/* True if the reply being read has at least LANE_HUGE bytes, as far as known. */
bool slow_reader_is_in_huge(const struct lane *lane);

/*
 * Called when a piece of a reply has been passed to its lane user, and more is to come. Stops
 * reading the lane, or buffers the reply, if necessary.
 */
void slow_reader_look(struct lane *lane, struct lane_user *lane_user);

/* The owner is slower than the replies: stop reading until lane_catch_up. */
void slow_reader_begin(struct lane *lane);

/* True if the slow reader has not read a byte since `since_ns`, as far as earlier checks show. */
bool slow_reader_is_unread(struct lane *lane, uint64_t now_ns, uint64_t since_ns);

/*
 * Buffer the rest of the reply for the slow reader, which has not read for a tick. False: the
 * worker's memory for replies is used up, or nothing needs to be buffered. The memory counts for
 * the lane user until slow_reader_absorbed.
 */
bool slow_reader_absorb_late(struct lane *lane);

/* The lane user has read all bytes buffered for it, or has left. */
void slow_reader_absorbed(struct worker_lanes *worker_lanes, struct lane_user *lane_user);

#endif
