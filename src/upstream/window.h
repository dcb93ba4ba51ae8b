/*
 * How much work may be under way at Redis: enough that it never runs dry while an answer travels, and a short queue besides.
 *
 * The first part is the base time, which a request takes that finds Redis idle: the least of the last seconds, so that a
 * queue of one's own making is not taken for distance. (The idea is that of TCP Vegas and BBR: measure the path empty, and
 * keep a known amount standing in it.) The second is what somebody else's request then waits for: WINDOW_QUEUE_NS where
 * that keeps Redis busy. Where it does not the queue grows until it does, up to WINDOW_QUEUE_MOST_NS: Redis takes in what has
 * come, and answers it all at once; and on a machine whose processors are all wanted weir or Redis is away for
 * milliseconds, in which a short queue comes to its end. (As Linux' dynamic queue limits: starvation lengthens, slack
 * shortens; and lasting slack ever faster, since what made the queue long is over.) How busy is a choice: a long queue
 * serves who waits for turns, and is paid for by who sends little and need not wait. While there is such a one Redis may
 * have nothing to do for twice as much of the time. And where that is because this thread is never without work a longer
 * queue helps only so far as it makes larger batches.
 * Time is an argument; one thread.
 */
#ifndef WEIR_UPSTREAM_WINDOW_H
#define WEIR_UPSTREAM_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define WINDOW_QUEUE_NS (150 * NS_PER_US)
#define WINDOW_QUEUE_MOST_NS (20 * NS_PER_MS)
#define WINDOW_QUEUE_FULL_NS                                                                                           \
    (600 * NS_PER_US)                   /* at most, or for a turn of weir's, where it is weir that cannot do more */
#define WINDOW_BASE_NS (50 * NS_PER_US) /* taken for the base time until one has been measured */
#define WINDOW_GREETING_NS (250 * NS_PER_US)       /* ... and more where a greeting takes more than this, ... */
#define WINDOW_PING_NS (500 * NS_PER_US)           /* ... or a PING, which others' work may hold up, ... */
#define WINDOW_GREETED_MOST_NS (500 * NS_PER_MS)   /* ... but no more than that, since Redis may have been busy, ... */
#define WINDOW_PINGED_MOST_NS WINDOW_QUEUE_MOST_NS /* ... or be kept busy so that it seems far */
#define WINDOW_EPOCH_NS (2 * NS_PER_S)             /* the base time is the least of this epoch and the one before */
#define WINDOW_PROBE_NS (100 * NS_PER_MS)          /* without a measurement for so long one is to be made, ... */
#define WINDOW_PROBE_MOST_NS (5 * NS_PER_S)        /* ... at the latest after so long */
#define WINDOW_PROBE_PART 100                      /* of the time may be spent on them, one part in so many */
#define WINDOW_PERIOD_NS (10 * NS_PER_MS)          /* of waiting, after which the queue is judged, ... */
#define WINDOW_SPARSE 100                          /* periods for which it is remembered that somebody sends little */
#define WINDOW_PERIOD_ANSWERS 8 /* ... if there was news so often: costs that have changed are known by then */

/* What was answered at one time, after riders had waited for so long since the last one. */
struct window_news {
    uint64_t after_ns, worked_ns, idle_ns;
    bool is_dry; /* there was nothing under way any more */
};

struct send_window {
    uint64_t least_ns[2]; /* of the epoch that runs, and of the one before; 0: nothing was measured in it */
    uint64_t greeting_ns; /* the least that a connection's greeting took, or would have; 0: that is not known */
    uint64_t ping_ns;     /* the least that a PING took lately; 0: none is known */
    uint64_t epoch_ns;    /* when the one that runs began */
    uint64_t probe_at_ns; /* when something is to be measured again; 0: at once */
    uint64_t more_ns;     /* the queue beyond WINDOW_QUEUE_NS */
    uint32_t n_slack;     /* periods in a row in which Redis hardly ever had nothing to do; counted up to a few */
    uint32_t n_sparse;    /* periods for which somebody is still taken to send little */
    bool is_sender_full;  /* the thread that sends has no time left, ... */
    uint64_t turn_ns;     /* ... and looks for answers as seldom as this */
    struct window_news last;
    /* Of the period that runs, without that one: */
    uint64_t waited_ns; /* how long anybody waited, ... */
    uint64_t dry_ns;    /* ... and Redis had nothing to do */
    uint32_t n_answers; /* how often answers came */
};

/* A request that found nothing before it was answered after so long; how long Redis worked at it is taken off. */
void window_note(struct send_window *window, uint64_t took_ns, uint64_t now_ns);

/* A connection has been greeted in so long. 0: it may be another way from now on. */
void window_note_greeting(struct send_window *window, uint64_t took_ns);

/* A request that found nothing before it was answered after so long, of which any part may be work. */
void window_note_answer(struct send_window *window, uint64_t took_ns);

/* PING took so long lately, at least. 0: that is not known. */
void window_note_ping(struct send_window *window, uint64_t took_ns);

/* Somebody has sent who did not have to wait, while others do: a sparse flow, as fq_codel calls it. */
static inline void window_note_sparse(struct send_window *window)
{
    window->n_sparse = WINDOW_SPARSE;
}

/* Should the queue be let run dry for once, so that the next request finds nothing before it? */
static inline bool window_must_probe(const struct send_window *window, uint64_t now_ns)
{
    return now_ns >= window->probe_at_ns;
}

/* It was let run dry for so long, whether or not something was measured: again in a while. */
void window_probed(struct send_window *window, uint64_t spent_ns, uint64_t now_ns);

/*
 * For waited_ns riders waited for their turn, and Redis has worked for worked_ns; is_dry: there was nothing under way any
 * more. The queue becomes longer or shorter as that asks for.
 */
void window_watch(struct send_window *window, uint64_t waited_ns, uint64_t worked_ns, uint64_t idle_ns, bool is_dry);

uint64_t window_base_ns(const struct send_window *window);

/* How much work may be under way, ns. */
static inline uint64_t window_size_ns(const struct send_window *window)
{
    return window_base_ns(window) + WINDOW_QUEUE_NS + window->more_ns;
}

#endif
