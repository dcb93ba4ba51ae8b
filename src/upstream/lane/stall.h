/*
 * Replies whose reader does not keep up: what becomes of a lane on which one of them is huge.
 *
 * It takes no new calls, unless there will be no other like it (lane_ops.on_huge), and no more of it is read until the
 * reader has caught up; but where others wait behind the reply already, and it is of moderate size, it is taken in for
 * their sake: absorbed, as far as the worker has memory for that. A rider with holds_replies counts
 * them itself, and takes in any size then. The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_STALL_H
#define WEIR_UPSTREAM_STALL_H

#include "upstream/lane/lane.h"

#define STALL_ABSORB_BYTES 8388608       /* a worker's memory for replies that are taken in at once */
#define STALL_ABSORB_LATE_BYTES 67108864 /* and for those whose readers have done nothing for a tick (timers.c) */

/* Is the reply being read at least LANE_HUGE, as far as is known of it? */
bool stall_is_in_huge(const struct lane *lane);

/* A piece of the reply being read has gone to its rider, and more of it is to come: may the lane be read on? */
void stall_look(struct lane *lane, struct rider *rider);

/* The owner does not read as fast as replies come: read no more until lane_catch_up. */
void stall_begin(struct lane *lane);

/* Has the reader that it waits for not read a byte since `since_ns`, as far as this was asked before? */
bool stall_is_unread(struct lane *lane, uint64_t now_ns, uint64_t since_ns);

/*
 * Take in the rest of the reply for the stalled reader, which has not read for a tick. False: there is no memory for
 * it, or no need. The memory is the rider's until stall_absorbed.
 */
bool stall_absorb_late(struct lane *lane);

/* The rider has read all that was taken in for it, or has gone. */
void stall_absorbed(struct commons *commons, struct rider *rider);

#endif
