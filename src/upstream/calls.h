/*
 * The calls in flight on one lane, oldest first: who asked, and what comes back.
 *
 * A queue of runs: equal neighbours of one rider are one entry. An entry keeps its position for as long as it is in
 * the queue, so a rider may remember where its last one is.
 */
#ifndef WEIR_UPSTREAM_CALLS_H
#define WEIR_UPSTREAM_CALLS_H

#include <stdbool.h>
#include <stdint.h>

struct rider;

enum {
    CALL_LOOK = 1 << 0, /* the rider wants to see how it was answered */
    CALL_MUTE = 1 << 1, /* the reply is thrown away */
    CALL_MUTE_UNLESS_ERROR = 1 << 2,
    CALL_MUTE_ERROR = 1 << 3,
    CALL_MAY_WAIT = 1 << 4, /* Redis may hold the reply back for as long as it likes */
};

struct call {
    struct rider *rider;  /* NULL: it has gone; the replies are dropped */
    uint32_t n;           /* replies (with FLOW_SUBSCRIBE: frames) still to come */
    uint32_t local_bytes; /* weir's own replies that follow, waiting in the rider */
    uint8_t flow;         /* enum flow: ONE, SUBSCRIBE, UNSUBSCRIBE or MONITOR */
    uint8_t effect;       /* enum effect, for CALL_LOOK */
    uint8_t flags;
    uint32_t argument; /* what the effect is about: a database, on (1) or off (0) */
};

struct calls {
    struct call *ring; /* a power of two */
    uint32_t capacity;
    uint32_t head; /* positions count on for ever and wrap */
    uint32_t tail;
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

static inline void calls_pop(struct calls *calls)
{
    calls->head++;
}

/* A new, zeroed entry at the end; its position is tail - 1. NULL: out of memory. */
__attribute__((warn_unused_result)) struct call *calls_push(struct calls *calls);

#endif
