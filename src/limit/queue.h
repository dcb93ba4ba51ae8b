/*
 * The queue of a limit that delays: the positions of commands, and when the commands leave.
 *
 * Problem: several limits may delay one command. If the command waited in all queues at once, its
 * position in a shorter queue would stay unused during the longest wait. If the command gave up one
 * position for another it might never go.
 *
 * Mechanism: the command takes a position at the end of the longest queue only. When that position
 * is due, the command keeps the position and joins the other queues at the head. The commands in
 * the other queues came later, and move back by the cost of this command. Each queue is charged
 * once, and no time is lost. Departures never exceed the limit (struct departure). All functions
 * are called under the locks of the decision.
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
 * A departure: a command leaves the queue of a limit that delays.
 *
 * Problem: the funnel gives each command a time at which to leave, and at these times the limit is
 * not exceeded. But alarms ring late, and all commands that have become due by then would go at
 * once.
 *
 * Mechanism: a second word is charged when a command leaves, not when the command arrives. The
 * second word says whether the command may leave now. Departures therefore never exceed the limit,
 * however late the threads are. If a departure moves the second word beyond the positions that the
 * funnel has given, all unused positions and the funnel move back by the excess. Commands do not
 * bunch, and a new command sees the true length of the queue. Only time that no command could have
 * used is lost. A command that has waited in another queue joins at the head, and the positions
 * behind this command move back by its cost.
 *
 * Price: seven words for each holder of funnels, and a few additions.
 *
 * Bound: in any window w at most max(burst, cost + rate * DEPARTURE_SLACK_NS) + rate * w pass,
 * where `cost` is the cost of one command. The slack is the usual lateness of alarms. With the
 * slack, a limit that asks for even spacing still lets its whole rate pass.
 */

/* one millisecond of the timer, and one for an iteration of the event loop */
#define DEPARTURE_SLACK_NS (2 * NS_PER_MS)

/* The words of one holder; times in ns. */
enum departure_word {
    DEPARTURE_GONE,    /* a TAT (funnel.h) charged by departures */
    DEPARTURE_LAST,    /* end of the last used position */
    DEPARTURE_SHIFT,   /* total time that positions have moved back since the start */
    DEPARTURE_AHEAD,   /* the part of DEPARTURE_SHIFT due to commands that joined at the head */
    DEPARTURE_FRONT,   /* end of the last position taken at the head */
    DEPARTURE_WAITING, /* total units of the positions of waiting commands */
    DEPARTURE_TIMED,   /* number of times the rate of the queue has changed */
    DEPARTURE_WORDS
};

struct departure {
    struct funnel *queue; /* the funnel that gives the positions */
    struct funnel *words[DEPARTURE_WORDS];
};

/*
 * A position in the queue. The command of the position moves the funnel from begin_ns to end_ns,
 * and may go at due_ns, one burst before end_ns.
 */
struct queue_position {
    uint64_t begin_ns, end_ns;
    uint64_t due_ns;
};

/* ---- positions ---- */

/*
 * A command's position in the queue of one limit. The owner of the position also owns a reference
 * on `holder`.
 */
struct kept_position {
    /* holds the limit's funnel; NULL: the position is lost, though it was charged */
    struct subject *holder;
    struct queue_position at;
    uint64_t shift_ns; /* departure_shift as of `at` */
    uint64_t timed;    /* DEPARTURE_TIMED as of `at` */
    uint64_t units;
    uint16_t slot;       /* index of the funnel */
    uint16_t departures; /* first index of the departure's words */
    uint16_t id;         /* id of the limit */
    bool has_gone;       /* the command has left the queue, and the position is used */
    /*
     * the command joined at the head: the position does not move when other commands join at the
     * head
     */
    bool is_ahead;
};

/* The queue of one holder for a limit that satisfies limit_has_positions. */
struct queue {
    struct subject *holder;
    const struct limit *limit;
};

/* Time in ns that a command of `units` would wait at the head of the queue; 0: goes now. */
uint64_t queue_wait_ahead(const struct queue *queue, uint64_t units, uint64_t now_ns);

/* Takes the position at the head; all other positions move back. Charges the funnel. */
struct kept_position queue_join_ahead(const struct queue *queue, uint64_t units, uint64_t now_ns);

/* Takes the position at the end, for which funnel_queue returned wait_ns. Charges the funnel. */
struct kept_position queue_join(const struct queue *queue, uint64_t units, uint64_t now_ns,
                                uint64_t wait_ns);

/* The position charged last: a substitute for a command's own lost position. */
struct kept_position queue_last(const struct queue *queue, uint64_t units);

/* Updates position->at. True if the position was moved or retimed since the last update. */
bool queue_look(struct kept_position *position);

/* The earliest time at which the command may go, as of the last queue_look. */
uint64_t queue_until(const struct kept_position *position);

/*
 * Notes that the position is due, but its command waits in another queue. No command joins ahead of
 * this position any more.
 */
void queue_keep(struct kept_position *position);

/*
 * queue_wait counts the units of a waiting command's position; queue_wait_no_more takes the units
 * off the count. While the count is not 0 the queue is not cut to its burst. Time before the first
 * counted position counts as used.
 */
void queue_wait(const struct kept_position *position);
void queue_wait_no_more(const struct kept_position *position);

/* Notes that the command of the position goes. */
void queue_go(const struct kept_position *position, uint64_t now_ns);

/*
 * Gives back the position of a command that will not go; call queue_wait_no_more first. A position
 * with other positions behind it stays charged while any command waits. When no command waits any
 * more, all unused positions are given back.
 */
void queue_leave(const struct kept_position *position);

#endif
