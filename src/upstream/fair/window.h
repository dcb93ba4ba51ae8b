/*
 * The in-flight window: how much work, ns, weir keeps under way at Redis. The window is the round trip plus the slack.
 * The slack is the queue in front of Redis.
 *
 * One signal sets the slack: the part of the time in which Redis is idle while requests wait in weir. If requests wait
 * between two batches of answers, the idle time is the larger of:
 *
 *     when the first request of the later batch was sent + round trip - when the earlier batch came
 *     if the later batch leaves nothing under way: the time between them - 9/8 of the work of the later batch
 *
 * Every WINDOW_PERIOD_NS and a round trip the slack changes. It grows by a half if Redis was idle for more than
 * 1 / WINDOW_DRY_MANY of that period, and shrinks by 1 / WINDOW_SHRINK below 1 / WINDOW_DRY_FEW. The measure is the
 * whole period, also where requests wait for a small part of it: a few pauses of a processor are no reason to grow.
 * The slack is short where Redis and weir have a processor each. Where either waits for a processor, the slack is as
 * long as these pauses. Linux' dynamic queue limits set the queues of network cards by the same rule.
 *
 * Work is what the cost table says. Until Redis has been asked, the table may say ten times what a command takes, and
 * a window of that work is a tenth of a window of time. So work is divided by its speed: work answered / time waited
 * in the latest period, 1 to WINDOW_SPEED_MOST (1 where requests waited for less than half of it). When the table learns the cost, the window follows within a period.
 * Time is an argument; one thread.
 */
#ifndef WEIR_UPSTREAM_WINDOW_H
#define WEIR_UPSTREAM_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define WINDOW_SLACK_NS (150 * NS_PER_US) /* the least */
#define WINDOW_SLACK_MOST_NS (20 * NS_PER_MS)
#define WINDOW_TRIP_NS (50 * NS_PER_US) /* taken for the round trip until it is known */
#define WINDOW_PERIOD_NS (50 * NS_PER_MS)
#define WINDOW_DRY_MANY 25
#define WINDOW_DRY_FEW 50
#define WINDOW_SHRINK 8
#define WINDOW_WORK_MORE 8                        /* one part in so many of the work may not have been known of */
#define WINDOW_SPEED_ONE 64                       /* work is done at the speed that the cost table says */
#define WINDOW_SPEED_MOST (16 * WINDOW_SPEED_ONE) /* PING: 2 us by its flags, 0.15 us as Redis tells */

struct send_window {
    uint64_t trip_ns; /* the least round trip of late; 0: not known */
    uint64_t more_ns; /* slack beyond WINDOW_SLACK_NS */
    uint32_t faster;  /* work answered in the time that requests waited, in 1 / WINDOW_SPEED_ONE, beyond one */
    /* Of the newest batch of answers: */
    uint64_t heard_ns; /* when it came */
    uint64_t gap_ns;   /* since the batch before; 0: nothing waited then */
    uint64_t late_ns;  /* of that, until its first request was there */
    uint64_t work_ns;  /* its work */
    bool waits;        /* requests waited in weir when it came */
    bool is_dry;       /* it left nothing under way */
    /* Of the period that runs, without that batch: */
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
 * So much work was answered, of which the first request was sent at that time (0: that is not known). `waits`:
 * requests wait in weir; `is_dry`: nothing is under way any more.
 */
void window_answered(struct send_window *window, uint64_t sent_ns, uint64_t work_ns, bool waits, bool is_dry,
                     uint64_t now_ns);

#endif
