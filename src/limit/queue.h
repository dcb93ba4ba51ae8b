/*
 * The queue of a limit that delays, and the places that commands have in it.
 *
 * Problem: a command that several limits delay could wait in all their queues at once; then its place in the shorter
 * ones stands empty while it waits in the longest. If it gave up one place for another it would never go. Mechanism:
 * it takes a place at the end of the longest queue alone. When its turn there has come it keeps that place, and is
 * put at the head of the other queues: the commands in them came later, and move back by what it takes. So each queue
 * is charged once, no time is lost, and the law is kept by what really leaves (limit/departure.h). All under the
 * locks of the decision.
 */
#ifndef WEIR_LIMIT_QUEUE_H
#define WEIR_LIMIT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "limit/departure.h"
#include "limit/limit.h"
#include "limit/subject.h"

/* A command's place in the queue of one limit. As long as it is kept its holder is, too. */
struct kept_place {
    struct subject *holder; /* of its funnel; NULL: the place is not known any more, but it has been charged */
    struct queue_place at;
    uint64_t shift_ns; /* how far places of its kind had been moved by then */
    uint64_t units;
    uint16_t slot;       /* of its funnel */
    uint16_t departures; /* the first of its departure's slots */
    uint16_t id;         /* of its limit */
    bool is_ahead;       /* of those that were dealt: it does not move with them when somebody else goes before them */
};

/* Of a limit that has places; its funnel is the holder's. */
struct queue {
    struct subject *holder;
    const struct limit *limit;
};

/* How long, in ns, a command of so many units would wait at the head of the queue; 0: it can go now. */
uint64_t queue_wait_ahead(const struct queue *queue, uint64_t units, uint64_t now_ns);

/* Take the place at the head: all others move back. Charged. */
struct kept_place queue_join_ahead(const struct queue *queue, uint64_t units, uint64_t now_ns);

/* Take the place at the end, for which funnel_queue said wait_ns. Charged. */
struct kept_place queue_join(const struct queue *queue, uint64_t units, uint64_t now_ns, uint64_t wait_ns);

/* The place that was charged last, in the stead of one that a command had and that is not known any more. */
struct kept_place queue_last(const struct queue *queue, uint64_t units);

/* Where it is now. Has it been moved since it was looked at last? */
bool queue_look(struct kept_place *place);

/* Since it was looked at: from when on its command may go. */
uint64_t queue_until(const struct kept_place *place);

/* It has come, but its command waits in another queue: nobody goes before it any more. */
void queue_keep(struct kept_place *place);

/* Its command goes. */
void queue_go(const struct kept_place *place, uint64_t now_ns);

/* Its command will not go. False: others are behind it already, and it is spent. */
bool queue_leave(const struct kept_place *place);

#endif
