/*
 * The queue of a limit that delays: the places that commands have in it, and when they leave.
 *
 * Problem: if a command that several limits delay waited in all their queues at once, its place in the shorter ones
 * would stand empty while it waits in the longest; if it gave up one place for another it might never go. Mechanism: it
 * takes a place at the end of the longest queue only. When its turn there has come it keeps that place, and is put at
 * the head of the other queues: the commands in them came later, and move back by what it takes. So each queue is
 * charged once, no time is lost, and the limit is kept by what really leaves (struct departure). All functions are
 * called under the locks of the decision.
 */
#ifndef WEIR_LIMIT_QUEUE_H
#define WEIR_LIMIT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "limit/funnel.h"
#include "limit/policy/limit.h"
#include "limit/subject.h"

/*
 * ---- departures ----
 *
 * When commands really leave the queue of a limit that delays.
 *
 * Problem: the funnel gives each command a place in time that keeps the limit, but alarms go off late, and all commands
 * whose time has come meanwhile would go at once. Mechanism: a second word, charged when a command leaves and not when
 * it arrived, says whether it may leave now; so what leaves keeps the limit exactly, whichever threads were late. Where
 * a departure moves that word beyond the places that were given, all places not used yet move back by as much, and the
 * funnel with them: commands do not bunch, a newcomer sees the true length of the queue, and only time that no command
 * could have used is lost. A command that has already waited in another queue is put at the head: the places behind it
 * move back by what it takes. Price: seven words for each holder of funnels, and a few additions.
 *
 * The law: in any window w at most max(burst, cost + rate * DEPARTURE_SLACK_NS) + rate * w pass, cost being that of one
 * command. The slack is how late alarms usually are: with it a limit that asks for even spacing still lets its whole
 * rate pass.
 */

#define DEPARTURE_SLACK_NS (2 * NS_PER_MS) /* a millisecond of the timer, and as much for a turn of its loop */

/* The words of one holder; all times in ns. */
enum departure_word {
    DEPARTURE_GONE,    /* a TAT (funnel.h), charged with what has left */
    DEPARTURE_LAST,    /* where the last place ends that was used */
    DEPARTURE_SHIFT,   /* by how much places have been moved back, in all since the start */
    DEPARTURE_AHEAD,   /* the part of that which was to put others ahead of them */
    DEPARTURE_FRONT,   /* where the last place ends that was put ahead of those that wait */
    DEPARTURE_WAITING, /* a number of units: of the places that commands keep */
    DEPARTURE_TIMED,   /* how often the queue's rate has changed */
    DEPARTURE_WORDS
};

struct departure {
    struct funnel *queue; /* the funnel that gives the places */
    struct funnel *words[DEPARTURE_WORDS];
};

/*
 * A place in the queue: its command moves the funnel from begin_ns to end_ns, and may go at due_ns, a burst before end.
 */
struct queue_place {
    uint64_t begin_ns, end_ns;
    uint64_t due_ns;
};

/* ---- places ---- */

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
