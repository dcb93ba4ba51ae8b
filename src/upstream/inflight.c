#include "upstream/inflight.h"

#include "upstream/lanes.h"

static void count(struct lane *lane, const struct call *call, uint64_t n)
{
    struct lane_counts *counts = &lane->lanes->counts;
    count_add(&counts->in_flight, n);
    if ((call->flags & CALL_MAY_WAIT) != 0)
        count_add(&counts->blocking, n);
}

void inflight_send(struct lane *lane, uint64_t now_ns)
{
    for (uint32_t at = lane->calls.tail; at != lane->calls.head; at--) {
        struct call *call = calls_at(&lane->calls, at - 1);
        if (call->sent_ns != 0)
            return;
        call->sent_ns = now_ns;
        count(lane, call, call_requests(call));
    }
}

/* What was answered before it was seen to be sent has not been counted. */
void inflight_end(struct lane *lane, const struct call *call, uint32_t n)
{
    if (call->sent_ns != 0)
        count(lane, call, -(uint64_t)n);
}

void inflight_subscribe(struct lane *lane, bool was_subscribed)
{
    count_add(&lane->lanes->counts.subscribed, (uint64_t)lane_is_subscribed(lane) - was_subscribed);
}

void inflight_close(struct lane *lane)
{
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++)
        inflight_end(lane, calls_at(&lane->calls, at), call_requests(calls_at(&lane->calls, at)));
    count_add(&lane->lanes->counts.subscribed, -(uint64_t)lane_is_subscribed(lane));
}
