#include "upstream/lane/slow_reader.h"

/* Stops counting the work of all calls: the calls wait for a reader, not for Redis. */
static void forget_all(struct lane *lane)
{
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++)
        lane_discount(lane, calls_at(&lane->calls, at)->lane_user);
}

static void slow_reader_stall(struct lane *lane, struct lane_user *lane_user)
{
    if (lane->slow_user != NULL)
        return;
    forget_all(lane);
    lane->slow_user = lane_user;
    lane->slow_pending = 0;
    link_pause(&lane->link);
    lane_leave_user(lane, false); /* a close by Redis would arrive behind the unread bytes */
    lane->base->ops->on_stalled(lane);
}

bool slow_reader_is_in_huge(const struct lane *lane)
{
    return lane->frame_bytes + lane->scan.bulk_left >= LANE_HUGE;
}

/*
 * Buffers the rest of the reply. False: the worker's memory for replies is used up, or nothing
 * needs to be buffered.
 */
static bool absorb(struct lane *lane, struct lane_user *lane_user)
{
    struct worker_lanes *worker_lanes = lane->base->worker_lanes;
    if (lane->lag == LAG_ABSORBED)
        return true;
    if (lane_user->ops->holds_replies && lane_has_others_waiting(lane)) {
        lane->lag = LAG_ABSORBED;
        return true;
    }
    uint64_t size = lane->frame_bytes + lane->scan.bulk_left;
    uint64_t room =
        lane->lag == LAG_UNREAD ? SLOW_READER_ABSORB_LATE_BYTES : SLOW_READER_ABSORB_BYTES;
    if (lane->owner != NULL || worker_lanes->absorbed + size > room ||
        !lane_has_others_waiting(lane))
        return false;
    lane->lag = LAG_ABSORBED;
    lane_user->absorbed += (uint32_t)size;
    worker_lanes->absorbed += (uint32_t)size;
    return true;
}

void slow_reader_look(struct lane *lane, struct lane_user *lane_user)
{
    if (!slow_reader_is_in_huge(lane) || link_is_closed(lane_user_link(lane_user)))
        return;
    lane_discount(lane, lane_user); /* Redis has done its work */
    lane->base->ops->on_huge(lane);
    if (lane->state == LANE_RETIRED || lane->owner == lane_user)
        lane_user->ops->on_heavy(lane_user);
    bool must_wait =
        lane_user->is_paying && lane->in != LIST_SHARED && !lane_has_others_waiting(lane);
    if (must_wait || (lane_user_link(lane_user)->is_congested && !absorb(lane, lane_user)))
        slow_reader_stall(lane, lane_user);
}

void slow_reader_begin(struct lane *lane)
{
    slow_reader_stall(lane, lane->owner);
}

bool slow_reader_is_unread(struct lane *lane, uint64_t now_ns, uint64_t since_ns)
{
    if (lane->slow_user == NULL)
        return false;
    size_t pending = link_pending(lane_user_link(lane->slow_user));
    if (pending != lane->slow_pending) {
        lane->slow_pending = pending;
        lane->slow_since_ns = now_ns;
    }
    return lane->slow_since_ns <= since_ns;
}

bool slow_reader_absorb_late(struct lane *lane)
{
    if (lane->lag == LAG_NONE)
        lane->lag = LAG_UNREAD;
    return absorb(lane, lane->slow_user);
}

void slow_reader_absorbed(struct worker_lanes *worker_lanes, struct lane_user *lane_user)
{
    worker_lanes->absorbed -= lane_user->absorbed;
    lane_user->absorbed = 0;
}
