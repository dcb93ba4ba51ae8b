/*
 * The calls in flight on one lane, oldest first. A call has the lane user that gets the reply, and
 * flags for the handling of the reply.
 *
 * Calls are a ring of runs: neighbouring equal calls of one lane user are one entry with a count.
 * An entry keeps its position while it is in the queue, so a lane user may remember the position of
 * its newest call. A client may pipeline much behind a command that blocks. The ring's memory
 * therefore counts in `pool`, and a large ring is freed when the last call has been answered.
 */
#ifndef WEIR_UPSTREAM_CALLS_H
#define WEIR_UPSTREAM_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/chain.h"
#include "limit/command/command.h"
#include "upstream/lane/lane_state.h"

#define CALLS_KEEP 512 /* most entries of a ring that an empty queue keeps */

struct lane_user;

enum {
    CALL_LOOK = 1 << 0,              /* the lane user gets the reply's glimpse: on_answer */
    CALL_MUTE_ERROR = 1 << 1,        /* an error reply is thrown away */
    CALL_MUTE_UNLESS_ERROR = 1 << 2, /* a reply that is no error is thrown away */
    CALL_MUTE = CALL_MUTE_ERROR | CALL_MUTE_UNLESS_ERROR,
    /*
     * the next bytes for the lane user do not come from this lane: no call joins this call, and
     * on_run_end follows
     */
    CALL_ENDS_RUN = 1 << 3,
    CALL_MAY_WAIT = 1 << 4, /* Redis may delay the reply without a bound */
    /* may set or remove the password of `default`: ends the node's auth generation */
    CALL_ADMITS = 1 << 5,
    CALL_NONCE = 1 << 6,   /* the nonce of lane_vouch: any other answer closes the lane */
    CALL_VOUCHES = 1 << 7, /* the probe of lane_ask: any answer will do */
};

struct call {
    /* gets the reply; NULL: the lane user has left, and the reply is dropped */
    struct lane_user *lane_user;
    uint32_t n;     /* replies (with FLOW_SUBSCRIBE: frames) still to arrive */
    uint8_t flow;   /* enum flow: ONE, SUBSCRIBE, UNSUBSCRIBE or MONITOR */
    uint8_t effect; /* enum effect, for CALL_LOOK */
    uint8_t flags;
    /* meaning set by the lane user; not 0: on_counted reports the end of the call */
    uint8_t counted;
    union {
        /* with CALL_LOOK: argument of the effect: a database, on (1) or off (0) ... */
        uint32_t argument;
        /*
         * without CALL_LOOK: how long the call waited for its fair share, from
         * worker_lanes.share_us
         */
        uint32_t share_us;
    };
    uint32_t waited_us; /* how long a limit delayed the call, from lane_user.waited_us */
    /* when the call arrived at weir, from lane_user.arrived_ns; 0: the call is not timed */
    uint64_t arrived_ns;
    uint64_t sent_ns; /* when the call was written to the connection; 0: not yet */
};

struct calls {
    struct pool *pool; /* counts the memory; set before the first call */
    struct call *ring; /* heap */
    uint32_t capacity; /* entries in the ring, a power of two; 0: no ring */
    uint32_t head;     /* position of the oldest call; positions only grow, and wrap */
    uint32_t tail;     /* position behind the newest call */
};

void calls_fini(struct calls *calls);

static inline bool calls_is_empty(const struct calls *calls)
{
    return calls->head == calls->tail;
}

static inline struct call *calls_at(const struct calls *calls, uint32_t position)
{
    return &calls->ring[position & (calls->capacity - 1)];
}

static inline struct call *calls_oldest(const struct calls *calls)
{
    return calls_at(calls, calls->head);
}

static inline struct call *calls_newest(const struct calls *calls)
{
    return calls_at(calls, calls->tail - 1);
}

/* True if the call is answered by one frame that needs no inspection. */
static inline bool call_is_plain(const struct call *call)
{
    return call->flow == FLOW_ONE && ((call->flags & ~CALL_ENDS_RUN) | call->counted) == 0;
}

/* True if an equal call of the same lane user may join this call. */
static inline bool call_may_grow(const struct call *call)
{
    return call->flow == FLOW_ONE && (call->flags | call->counted) == 0;
}

/* Number of unanswered requests that the call stands for. */
static inline uint32_t call_requests(const struct call *call)
{
    return call->flow == FLOW_ONE ? call->n : 1;
}

/* Free the memory. The queue must be empty. */
void calls_shed(struct calls *calls);

/* Remove the oldest call. A large ring is freed if the queue is now empty. */
static inline void calls_pop(struct calls *calls)
{
    calls->head++;
    if (calls_is_empty(calls) && calls->capacity > CALLS_KEEP)
        calls_shed(calls);
}

static inline void calls_drop_newest(struct calls *calls)
{
    calls->tail--;
}

/* Add a zeroed entry at the end, at position tail - 1. NULL: out of memory. */
__attribute__((warn_unused_result)) struct call *calls_push(struct calls *calls);

/* ---- tags ---- */

#define TAGS_KEEP 4096 /* most entries of a ring that an empty queue keeps */

/*
 * A number for each request in flight on one lane, oldest first. The sender of the request defines
 * the meaning of the number (front/client/timing.h: the command, and the reason of its wait). Tags
 * have a queue of their own, because requests of one run may have different tags.
 */
struct tags {
    struct pool *pool; /* counts the memory; set before the first tag */
    uint64_t *ring;    /* heap */
    uint32_t capacity; /* entries in the ring, a power of two; 0: no ring */
    uint32_t head;     /* position of the oldest tag; positions only grow, and wrap */
    uint32_t tail;     /* position behind the newest tag */
};

void tags_fini(struct tags *tags);

/* Double the room. False: out of memory. */
__attribute__((warn_unused_result)) bool tags_grow(struct tags *tags);

/* Add the tag n times. False: out of memory, and no tag is added. */
__attribute__((warn_unused_result)) static inline bool tags_push(struct tags *tags, uint64_t tag,
                                                                 uint32_t n)
{
    while (tags->capacity - (tags->tail - tags->head) < n)
        if (!tags_grow(tags))
            return false;
    for (; n > 0; n--)
        tags->ring[tags->tail++ & (tags->capacity - 1)] = tag;
    return true;
}

/* Returns the tag at index i; the oldest tag has index 0. More than i tags must be queued. */
static inline uint64_t tags_at(const struct tags *tags, uint32_t i)
{
    return tags->ring[(tags->head + i) & (tags->capacity - 1)];
}

/* Free the memory. The queue must be empty. */
void tags_shed(struct tags *tags);

/* Remove the oldest n tags. */
static inline void tags_drop(struct tags *tags, uint32_t n)
{
    tags->head += n;
    if (tags->head == tags->tail && tags->capacity > TAGS_KEEP)
        tags_shed(tags);
}

static inline void tags_drop_newest(struct tags *tags, uint32_t n)
{
    tags->tail -= n;
}

/* ---- requests in flight, of all lanes of a worker to one node ---- */

/* Marks all unsent calls as sent at now_ns, and counts these calls as in flight. */
void inflight_send(struct lane_counts *counts, const struct calls *calls, uint64_t now_ns);

/* n requests of the call have been answered, or will never be answered. */
void inflight_end(struct lane_counts *counts, const struct call *call, uint32_t n);

/* The lane of these calls is closed: no call in `calls` will be answered. */
void inflight_end_all(struct lane_counts *counts, const struct calls *calls);

/*
 * Updates the count of subscribed lanes when a lane changes from was_subscribed to is_subscribed.
 */
void inflight_subscribe(struct lane_counts *counts, bool was_subscribed, bool is_subscribed);

#endif
