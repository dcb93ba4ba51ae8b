/*
 * The in-flight window: how much work, ns, weir keeps under way at Redis. The window is the round
 * trip plus the slack. The slack is the queue in front of Redis.
 *
 * One signal sets the slack: the part of the time in which Redis is idle while requests wait in
 * weir. If requests wait between two batches of answers, the idle time is the larger of:
 *
 *     when the first request of the later batch was sent + round trip - when the earlier batch came
 *     if the later batch leaves nothing under way: time between them - 9/8 of its work
 *
 * The slack changes every WINDOW_PERIOD_NS plus a round trip. The slack grows by a half if Redis
 * was idle for more than 1 / WINDOW_DRY_MANY of that period, and shrinks by 1 / WINDOW_SHRINK below
 * 1 / WINDOW_DRY_FEW. The period counts whole, also if requests waited for a small part of it only:
 * a few pauses of a processor are no reason to grow. Linux' dynamic queue limits set the queues of
 * network cards by such a rule.
 *
 * Work is what the cost table tells. Before Redis is asked, the table may tell ten times the time
 * that a command takes, and a window of such work is a tenth of the time. So the window is
 * multiplied by the speed: work answered / time waited in the latest period, 1 to
 * WINDOW_SPEED_MOST. If requests waited for less than half of the period the speed is 1. When the
 * table learns the cost, the window follows within a period.
 *
 * Time is an argument; one thread.
 */
#ifndef WEIR_UPSTREAM_WINDOW_H
#define WEIR_UPSTREAM_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define WINDOW_SLACK_NS (150 * NS_PER_US) /* the least */
#define WINDOW_SLACK_MOST_NS (20 * NS_PER_MS)
#define WINDOW_TRIP_NS (50 * NS_PER_US) /* the round trip until one is measured */
#define WINDOW_PERIOD_NS (50 * NS_PER_MS)
#define WINDOW_DRY_MANY 25
#define WINDOW_DRY_FEW 50
#define WINDOW_SHRINK 8
#define WINDOW_WORK_MORE 8  /* the table may tell less by one part of so many */
#define WINDOW_SPEED_ONE 64 /* speed while the cost table is right */
/* PING: 2 us before Redis is asked, 0.15 us after. */
#define WINDOW_SPEED_MOST (16 * WINDOW_SPEED_ONE)

struct send_window {
    uint64_t trip_ns; /* the least recent round trip; 0: not known */
    uint64_t more_ns; /* slack beyond WINDOW_SLACK_NS */
    uint32_t faster;  /* speed beyond one, in 1 / WINDOW_SPEED_ONE */
    /* Of the newest batch of answers: */
    uint64_t heard_ns; /* when the newest batch came */
    uint64_t gap_ns;   /* since the batch before; 0: nothing waited then */
    uint64_t late_ns;  /* part of the gap until the first request of the batch arrived */
    uint64_t work_ns;  /* its work */
    bool waits;        /* requests waited in weir when it came */
    bool is_dry;       /* it left nothing under way */
    /* Of the current period, without the newest batch: */
    uint64_t began_ns;
    uint64_t waited_ns; /* how long requests waited */
    uint64_t done_ns;   /* work answered in that time */
    uint64_t idle_ns;   /* how long Redis was idle in that time */
};

static inline uint64_t window_trip_ns(const struct send_window *window)
{
    return window->trip_ns > 0 ? window->trip_ns : WINDOW_TRIP_NS;
}

static inline uint64_t window_size_ns(const struct send_window *window)
{
    uint64_t size_ns = window_trip_ns(window) + WINDOW_SLACK_NS + window->more_ns;
    return size_ns + size_ns * window->faster / WINDOW_SPEED_ONE;
}

/*
 * Notes work that was answered. sent_ns: when its first request was sent; 0: not known. waits:
 * requests wait in weir. is_dry: nothing is under way any more.
 */
void window_answered(struct send_window *window, uint64_t sent_ns, uint64_t work_ns, bool waits, bool is_dry,
                     uint64_t now_ns);

#endif
