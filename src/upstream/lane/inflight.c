#include "upstream/lane/inflight.h"

static void count(struct lane_counts *counts, const struct call *call, uint64_t n)
{
    count_add(&counts->in_flight, n);
    if ((call->flags & CALL_MAY_WAIT) != 0)
        count_add(&counts->blocking, n);
}

void inflight_send(struct lane_counts *counts, const struct calls *calls, uint64_t now_ns)
{
    for (uint32_t at = calls->tail; at != calls->head; at--) {
        struct call *call = calls_at(calls, at - 1);
        if (call->sent_ns != 0)
            return;
        call->sent_ns = now_ns;
        count(counts, call, call_requests(call));
        count_add(&counts->requests, call_requests(call));
    }
}

/* What was answered before it was seen to be sent has not been counted. */
void inflight_end(struct lane_counts *counts, const struct call *call, uint32_t n)
{
    if (call->sent_ns != 0)
        count(counts, call, -(uint64_t)n);
}

void inflight_end_all(struct lane_counts *counts, const struct calls *calls)
{
    for (uint32_t at = calls->head; at != calls->tail; at++)
        inflight_end(counts, calls_at(calls, at), call_requests(calls_at(calls, at)));
}

void inflight_subscribe(struct lane_counts *counts, bool was_subscribed, bool is_subscribed)
{
    count_add(&counts->subscribed, (uint64_t)is_subscribed - was_subscribed);
}
