/*
 * The queue of a limit that delays, and the places that commands have in it.
 *
 * Problem: if a command that several limits delay waited in all their queues at once, its place in the shorter ones
 * would stand empty while it waits in the longest; if it gave up one place for another it might never go. Mechanism: it
 * takes a place at the end of the longest queue only. When its turn there has come it keeps that place, and is put at
 * the head of the other queues: the commands in them came later, and move back by what it takes. So each queue is
 * charged once, no time is lost, and the limit is kept by what really leaves (limit/departure.h). All functions are
 * called under the locks of the decision.
 */
#ifndef WEIR_LIMIT_QUEUE_H
#define WEIR_LIMIT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "limit/departure.h"
#include "limit/policy/limit.h"
#include "limit/subject.h"

/* A command's place in the queue of one limit. Whoever keeps it keeps a reference on its holder, too. */
struct kept_place {
    struct subject *holder; /* that has the limit's funnel; NULL: the place is lost, though it was charged */
    struct queue_place at;
    uint64_t shift_ns; /* departure_shift when `at` was right ... */
    uint64_t timed;    /* ... and DEPARTURE_TIMED */
    uint64_t units;
    uint16_t slot;       /* of the funnel */
    uint16_t departures; /* first slot of the departure's words */
    uint16_t id;         /* of the limit */
    bool has_gone;       /* its command has left the queue: the place is used */
    bool is_ahead;       /* it was put ahead: it does not move when others are put ahead */
};

/* The queue of a limit that limit_has_places, for one holder of its funnel. */
struct queue {
    struct subject *holder;
    const struct limit *limit;
};

/* How many ns a command of so many units would wait at the head of the queue; 0: it can go now. */
uint64_t queue_wait_ahead(const struct queue *queue, uint64_t units, uint64_t now_ns);

/* Take the place at the head: all others move back. The funnel is charged. */
struct kept_place queue_join_ahead(const struct queue *queue, uint64_t units, uint64_t now_ns);

/* Take the place at the end, for which funnel_queue returned wait_ns. The funnel is charged. */
struct kept_place queue_join(const struct queue *queue, uint64_t units, uint64_t now_ns, uint64_t wait_ns);

/* The place that was charged last, as a substitute for a command's own that has been lost. */
struct kept_place queue_last(const struct queue *queue, uint64_t units);

/* Update place->at. Has the place been moved, or timed anew, since the last update? */
bool queue_look(struct kept_place *place);

/* From when on its command may go, as of the last queue_look. */
uint64_t queue_until(const struct kept_place *place);

/* Its time has come, but its command waits in another queue: nobody is put ahead of it any more. */
void queue_keep(struct kept_place *place);

/*
 * The units of places that commands wait for are counted: while there are any the queue is not cut to its burst. What
 * lies before the first of them counts as used.
 */
void queue_wait(const struct kept_place *place);
void queue_wait_no_more(const struct kept_place *place);

/* Its command goes. */
void queue_go(const struct kept_place *place, uint64_t now_ns);

/*
 * Its command will not go, and no longer waits (queue_wait_no_more): give the place back. Where others are behind it,
 * it stays charged until nobody waits: then all places are given back that were not used.
 */
void queue_leave(const struct kept_place *place);

#endif
