/*
 * How much work may wait at Redis: enough that it never runs dry while an answer travels, and a short queue besides.
 *
 * The first part is the base time, which a request takes that finds Redis idle: the least of the last seconds, so that a
 * queue of one's own making is not taken for distance. The second is WINDOW_QUEUE_NS, what somebody else's request then
 * waits for. (The idea is that of TCP Vegas and BBR: measure the path empty, and keep a known amount standing in it.)
 * Time is an argument; one thread.
 */
#ifndef WEIR_UPSTREAM_WINDOW_H
#define WEIR_UPSTREAM_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define WINDOW_QUEUE_NS (150 * NS_PER_US)
#define WINDOW_BASE_NS (50 * NS_PER_US)   /* taken for the base time until one has been measured */
#define WINDOW_EPOCH_NS (2 * NS_PER_S)    /* the base time is the least of this epoch and the one before */
#define WINDOW_PROBE_NS (100 * NS_PER_MS) /* without a measurement for so long one is to be made */

struct send_window {
    uint64_t least_ns[2]; /* of the epoch that runs, and of the one before; 0: nothing was measured in it */
    uint64_t epoch_ns;    /* when the one that runs began */
    uint64_t measured_ns; /* when something was measured last, or given up; 0: never */
};

/* A request that found nothing before it was answered after so long; how long Redis worked at it is taken off. */
void window_note(struct send_window *window, uint64_t took_ns, uint64_t now_ns);

/* Should the queue be let run dry for once, so that the next request finds nothing before it? */
static inline bool window_must_probe(const struct send_window *window, uint64_t now_ns)
{
    return window->measured_ns == 0 || now_ns - window->measured_ns >= WINDOW_PROBE_NS;
}

/* It does not run dry: again in a while. */
static inline void window_forgo(struct send_window *window, uint64_t now_ns)
{
    window->measured_ns = now_ns;
}

uint64_t window_base_ns(const struct send_window *window);

/* How much work may be under way, ns. */
static inline uint64_t window_size_ns(const struct send_window *window)
{
    return window_base_ns(window) + WINDOW_QUEUE_NS;
}

#endif
