/*
 * What really leaves the queue of a limit that delays, and when.
 *
 * Problem: the funnel deals places that keep the law, but alarms ring late, and all who had theirs meanwhile would go
 * in one heap. Mechanism: a second word, charged when a command goes and not when it came, says whether it may go
 * now; so what goes keeps the law exactly, whichever threads were late. Where a departure leaves that word behind the
 * places that were dealt, all places that are dealt and not used move by as much, and the funnel with them: no heap
 * forms, a newcomer sees the true queue, and only time that no command could have used is lost. A command that has
 * waited in another queue is put before all those places, which move by what it takes. Price: five words for each
 * holder, and a few additions. All under the locks of the decision.
 *
 * The law: in any window w at most max(burst, cost + rate * DEPARTURE_SLACK_NS) + rate * w, cost being that of one
 * command. The slack is what alarms are late in the ordinary course: a limit that asks for even spacing lets its
 * whole rate pass all the same.
 */
#ifndef WEIR_LIMIT_DEPARTURE_H
#define WEIR_LIMIT_DEPARTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "limit/funnel.h"

#define DEPARTURE_SLACK_NS (2 * NS_PER_MS) /* a millisecond of the timer, and as much for a turn of its loop */

/* The words of one holder. */
enum departure_word {
    DEPARTURE_GONE,  /* when the funnel of what has gone is empty */
    DEPARTURE_LAST,  /* where the last place ends that was used */
    DEPARTURE_SHIFT, /* how far, ever, places have been moved: ns */
    DEPARTURE_AHEAD, /* of that, to put others before them */
    DEPARTURE_FRONT, /* where the last place ends that was put before those that wait */
    DEPARTURE_WORDS
};

struct departure {
    struct funnel *queue; /* that deals the places */
    struct funnel *words[DEPARTURE_WORDS];
};

/* A place in the queue: what its command moves the funnel from and to, and when it may go, a burst before that end. */
struct queue_place {
    uint64_t begin_ns, end_ns;
    uint64_t due_ns;
};

/* How far, ever, places have been moved; or those that were put before the others, which stay for such. */
uint64_t departure_shift(const struct departure *departure, bool is_ahead);

/* Where a place is that has been moved so far. */
struct queue_place departure_moved(struct queue_place place, uint64_t by_ns);

/* The place, of so long, before all that wait and behind what has gone, or has been put there already. */
struct queue_place departure_ahead(const struct departure *departure, uint64_t span_ns, uint64_t burst_ns,
                                   uint64_t now_ns);

/* It is taken: the others move by so much, as the funnel has. */
void departure_put_ahead(const struct departure *departure, const struct queue_place *place, uint64_t by_ns);

/* From when on it may go. */
uint64_t departure_until(const struct departure *departure, const struct queue_place *place);

/* It could go, and will a little later: what is put ahead from now on comes behind it. */
void departure_pass(const struct departure *departure, const struct queue_place *place);

/* It goes. */
void departure_go(const struct departure *departure, const struct queue_place *place, uint64_t now_ns);

#endif
