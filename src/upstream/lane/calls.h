/*
 * The calls in flight on one lane, oldest first: which rider sent each, what is done with its
 * reply, and how many they are.
 *
 * Calls are a ring of runs: neighbouring calls that are equal and of the same rider are one entry
 * with a count. An entry keeps its position for as long as it is in the queue, so a rider may
 * remember where its last one is. A client may pipeline much behind a command that blocks: the
 * ring's memory counts as the worker's, and is freed when the last call has been answered.
 */
#ifndef WEIR_UPSTREAM_CALLS_H
#define WEIR_UPSTREAM_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/chain.h"
#include "limit/command/command.h"
#include "upstream/lane/lane_state.h"

#define CALLS_KEEP 512 /* entries: an empty queue keeps memory for no more */

struct rider;

enum {
    CALL_LOOK = 1 << 0,              /* the rider wants to see how it was answered */
    CALL_MUTE_ERROR = 1 << 1,        /* an error that answers it is thrown away ... */
    CALL_MUTE_UNLESS_ERROR = 1 << 2, /* ... and any other reply */
    CALL_MUTE = CALL_MUTE_ERROR | CALL_MUTE_UNLESS_ERROR,
    CALL_ENDS_RUN =
        1 << 3, /* what the rider hears next is not this lane's: nothing joins it, and it hears of its end */
    CALL_MAY_WAIT = 1 << 4, /* Redis may hold the reply back for as long as it likes */
    CALL_ADMITS = 1 << 5,   /* it may set or remove the password of connections that do not log in: ends the epoch */
    CALL_NONCE = 1 << 6,    /* the question of lane_vouch: any answer but the nonce ends the lane */
    CALL_VOUCHES = 1 << 7,  /* the question of lane_ask: any answer will do */
};

struct call {
    struct rider *rider; /* that hears the reply; NULL: it has gone, and the reply is dropped */
    uint32_t n;          /* replies (with FLOW_SUBSCRIBE: frames) still to come */
    uint8_t flow;        /* enum flow: ONE, SUBSCRIBE, UNSUBSCRIBE or MONITOR */
    uint8_t effect;      /* enum effect, for CALL_LOOK; it means the same on every lane */
    uint8_t flags;
    uint8_t counted; /* of the rider's meaning; not 0: on_counted tells of the call's end */
    union {
        uint32_t argument; /* CALL_LOOK: of the effect: a database, on (1) or off (0) ... */
        uint32_t share_us; /* else: how long it waited for its share, from commons.share_us */
    };
    uint32_t waited_us;  /* how long a limit made it wait, from rider.waited_us */
    uint64_t arrived_ns; /* when it came to weir, from rider.arrived_ns; 0: it is not timed */
    uint64_t sent_ns;    /* when it was written to the connection; 0: not yet */
};

struct calls {
    struct pool *pool; /* where the memory is counted; set before the first call */
    struct call *ring; /* heap */
    uint32_t capacity; /* entries in it, a power of two; 0: no ring */
    uint32_t head;     /* position of the oldest; positions only grow, and wrap */
    uint32_t tail;     /* position behind the newest */
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

/* Is it answered by one frame that nobody looks into? */
static inline bool call_is_plain(const struct call *call)
{
    return call->flow == FLOW_ONE && ((call->flags & ~CALL_ENDS_RUN) | call->counted) == 0;
}

/* And may an equal call of the same rider's become one with it? */
static inline bool call_may_grow(const struct call *call)
{
    return call->flow == FLOW_ONE && (call->flags | call->counted) == 0;
}

/* How many requests it stands for, as far as they have not been answered. */
static inline uint32_t call_requests(const struct call *call)
{
    return call->flow == FLOW_ONE ? call->n : 1;
}

/* Give the memory back; only of an empty queue. */
void calls_shed(struct calls *calls);

/* The oldest is not there any more, nor, if it was the last, where it was. */
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

/* A new, zeroed entry at the end; its position is tail - 1. NULL: out of memory. */
__attribute__((warn_unused_result)) struct call *calls_push(struct calls *calls);

/* ---- tags ---- */

#define TAGS_KEEP 4096 /* entries: an empty queue keeps memory for no more */

/*
 * A number for each request in flight on one lane, oldest first. Its meaning is the sender's
 * (front/client/timing.h: which command it was, and what it waited for). Requests of one run may
 * differ in it, hence a queue of its own.
 */
struct tags {
    struct pool *pool; /* where the memory is counted; set before the first tag */
    uint64_t *ring;    /* heap */
    uint32_t capacity; /* entries in it, a power of two; 0: no ring */
    uint32_t head;     /* position of the oldest; positions only grow, and wrap */
    uint32_t tail;     /* position behind the newest */
};

void tags_fini(struct tags *tags);

/* Make room for one more. False: out of memory. */
__attribute__((warn_unused_result)) bool tags_grow(struct tags *tags);

/* The same tag n times. False: out of memory, and there is none of them. */
__attribute__((warn_unused_result)) static inline bool tags_push(struct tags *tags, uint64_t tag, uint32_t n)
{
    while (tags->capacity - (tags->tail - tags->head) < n)
        if (!tags_grow(tags))
            return false;
    for (; n > 0; n--)
        tags->ring[tags->tail++ & (tags->capacity - 1)] = tag;
    return true;
}

/* Number i, the oldest being 0; there must be more than i. */
static inline uint64_t tags_at(const struct tags *tags, uint32_t i)
{
    return tags->ring[(tags->head + i) & (tags->capacity - 1)];
}

/* Give the memory back; only of an empty queue. */
void tags_shed(struct tags *tags);

/* Take out the oldest n. */
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

/* ---- how many are in flight, of all lanes of a worker to one node ---- */

/* All calls that have not been sent are sent at now_ns. */
void inflight_send(struct lane_counts *counts, const struct calls *calls, uint64_t now_ns);

/* `n` requests of the call have been answered, or will not be. */
void inflight_end(struct lane_counts *counts, const struct call *call, uint32_t n);

/* Nor will any of these be: their lane is closed. */
void inflight_end_all(struct lane_counts *counts, const struct calls *calls);

/* A lane had subscriptions or not, and has some now or not. */
void inflight_subscribe(struct lane_counts *counts, bool was_subscribed, bool is_subscribed);

#endif
