#include "upstream/lane/calls.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_TAGS 8
/* chosen: a private lane seldom needs more; the ring of a busy shared lane grows once or twice */
#define FIRST_CALLS 16

void calls_shed(struct calls *calls)
{
    pool_note_less(calls->pool, calls->capacity * sizeof *calls->ring);
    free(calls->ring);
    calls->ring = NULL;
    calls->capacity = 0;
}

void calls_fini(struct calls *calls)
{
    calls_shed(calls);
    memset(calls, 0, sizeof *calls);
}

static bool calls_grow(struct calls *calls)
{
    uint32_t capacity = calls->capacity == 0 ? FIRST_CALLS : calls->capacity * 2;
    struct call *ring = malloc(capacity * sizeof *ring);
    if (ring == NULL)
        return false;
    for (uint32_t p = calls->head; p != calls->tail; p++)
        ring[p & (capacity - 1)] = *calls_at(calls, p);
    calls_shed(calls);
    pool_note_more(calls->pool, capacity * sizeof *ring);
    calls->ring = ring;
    calls->capacity = capacity;
    return true;
}

struct call *calls_push(struct calls *calls)
{
    if (calls->tail - calls->head == calls->capacity && !calls_grow(calls))
        return NULL;
    struct call *call = calls_at(calls, calls->tail++);
    memset(call, 0, sizeof *call);
    return call;
}

void tags_shed(struct tags *tags)
{
    pool_note_less(tags->pool, tags->capacity * sizeof *tags->ring);
    free(tags->ring);
    tags->ring = NULL;
    tags->capacity = 0;
}

void tags_fini(struct tags *tags)
{
    tags_shed(tags);
    memset(tags, 0, sizeof *tags);
}

bool tags_grow(struct tags *tags)
{
    uint32_t capacity = tags->capacity == 0 ? FIRST_TAGS : tags->capacity * 2;
    uint64_t *ring = malloc(capacity * sizeof *ring);
    if (ring == NULL)
        return false;
    for (uint32_t at = tags->head; at != tags->tail; at++)
        ring[at & (capacity - 1)] = tags->ring[at & (tags->capacity - 1)];
    tags_shed(tags);
    pool_note_more(tags->pool, capacity * sizeof *ring);
    tags->ring = ring;
    tags->capacity = capacity;
    return true;
}

static void calls_count(struct lane_counts *counts, const struct call *call, uint64_t n)
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
        calls_count(counts, call, call_requests(call));
        count_add(&counts->requests, call_requests(call));
    }
}

/* A call that was answered before it was marked as sent is not counted as in flight. */
void inflight_end(struct lane_counts *counts, const struct call *call, uint32_t n)
{
    if (call->sent_ns != 0)
        calls_count(counts, call, -(uint64_t)n);
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
