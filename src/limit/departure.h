/*
 * When commands really leave the queue of a limit that delays.
 *
 * Problem: the funnel gives each command a place in time that keeps the limit, but alarms go off late, and all commands
 * whose time has come meanwhile would go at once. Mechanism: a second word, charged when a command leaves and not when
 * it arrived, says whether it may leave now; so what leaves keeps the limit exactly, whichever threads were late. Where
 * a departure moves that word beyond the places that were given, all places not used yet move back by as much, and the
 * funnel with them: commands do not bunch, a newcomer sees the true length of the queue, and only time that no command
 * could have used is lost. A command that has already waited in another queue is put at the head: the places behind it
 * move back by what it takes. Price: seven words for each holder of funnels, and a few additions. All functions are
 * called under the locks of the decision.
 *
 * The law: in any window w at most max(burst, cost + rate * DEPARTURE_SLACK_NS) + rate * w pass, cost being that of one
 * command. The slack is how late alarms usually are: with it a limit that asks for even spacing still lets its whole
 * rate pass.
 */
#ifndef WEIR_LIMIT_DEPARTURE_H
#define WEIR_LIMIT_DEPARTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "limit/funnel.h"

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

/*
 * By how much places have been moved back since the start. Places that were put ahead (`is_ahead`) do not move when
 * others are put ahead.
 */
uint64_t departure_shift(const struct departure *departure, bool is_ahead);

/* The place, moved back by so much. */
struct queue_place departure_moved(struct queue_place place, uint64_t by_ns);

/* The place of length span_ns ahead of all that wait, but behind what has left and what was put ahead before. */
struct queue_place departure_ahead(const struct departure *departure, uint64_t span_ns, uint64_t burst_ns,
                                   uint64_t now_ns);

/* A command takes that place: those behind it move back by by_ns. The caller moves the funnel as much. */
void departure_put_ahead(const struct departure *departure, const struct queue_place *place, uint64_t by_ns);

/* From when on the command of this place may leave. */
uint64_t departure_until(const struct departure *departure, const struct queue_place *place);

/* Its command could leave, but still waits in another queue: whatever is put ahead from now on comes behind it. */
void departure_pass(const struct departure *departure, const struct queue_place *place);

/* Its command leaves. */
void departure_go(const struct departure *departure, const struct queue_place *place, uint64_t now_ns);

#endif
