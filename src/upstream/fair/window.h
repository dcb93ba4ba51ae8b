/*
 * How much work may be under way at Redis, ns: the round trip, so that Redis never waits for a request that is on its
 * way, and the slack, which is the queue that stands in front of Redis.
 *
 * One signal sets the slack: for which part of the time in which requests wait in weir has Redis nothing to do? Of the
 * time between two batches of answers that is, whichever is more:
 *
 *     when the first request of the later batch was sent + round trip - when the earlier batch came
 *     where that leaves nothing under way: the time between them - 9/8 of the work of the later batch
 *
 * Where idle is more than 1 / WINDOW_DRY_MANY of the time the slack grows by a half, where it is less than
 * 1 / WINDOW_DRY_FEW it shrinks by 1 / WINDOW_SHRINK; a period is WINDOW_PERIOD_NS of waiting and a round
 * trip. So the slack is short where Redis and weir have a processor each, and as long as the pauses where either
 * waits for one. (Linux' dynamic queue limits do the same for network cards.)
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
#define WINDOW_WORK_MORE 8 /* one part in so many of the work may not have been known of */

struct send_window {
    uint64_t trip_ns; /* the least round trip of late; 0: not known */
    uint64_t more_ns; /* slack beyond WINDOW_SLACK_NS */
    /* Of the newest batch of answers: */
    uint64_t heard_ns; /* when it came */
    uint64_t gap_ns;   /* since the batch before; 0: nothing waited then */
    uint64_t late_ns;  /* of that, until its first request was there */
    uint64_t work_ns;  /* its work */
    bool waits;        /* requests waited in weir when it came */
    bool is_dry;       /* it left nothing under way */
    /* Of the period that runs, without that batch: */
    uint64_t waited_ns; /* how long requests waited */
    uint64_t idle_ns;   /* how long Redis had nothing to do meanwhile */
};

static inline uint64_t window_trip_ns(const struct send_window *window)
{
    return window->trip_ns > 0 ? window->trip_ns : WINDOW_TRIP_NS;
}

static inline uint64_t window_size_ns(const struct send_window *window)
{
    return window_trip_ns(window) + WINDOW_SLACK_NS + window->more_ns;
}

/*
 * So much work was answered, of which the first request was sent at that time (0: that is not known). `waits`:
 * requests wait in weir; `is_dry`: nothing is under way any more.
 */
void window_answered(struct send_window *window, uint64_t sent_ns, uint64_t work_ns, bool waits, bool is_dry,
                     uint64_t now_ns);

#endif
