/*
 * The plan of an open loop: when requests are due, and on which connection. Requests are due at
 * random times, like those of many independent clients (a Poisson process), whether or not replies
 * have arrived. The same seed gives the same plan.
 *
 * The duration of a request counts from its due time. A slow server or driver that postpones
 * requests therefore does not hide the delay ("coordinated omission").
 */
#ifndef WEIR_BENCH_PLAN_H
#define WEIR_BENCH_PLAN_H

#include <stdint.h>

struct plan {
    double gap_ns; /* between two requests, on average */
    /* due time of the next request, since `start_ns`; whole ns would round the rate */
    double at_ns;
    uint64_t start_ns;
    uint64_t state;
    unsigned conns, conn; /* number of connections, and the connection of the next request */
};

void plan_init(struct plan *plan, double per_second, unsigned conns, uint64_t seed,
               uint64_t start_ns);
void plan_step(struct plan *plan);

static inline uint64_t plan_next_ns(const struct plan *plan)
{
    return plan->start_ns + (uint64_t)plan->at_ns;
}

/* Due times of a connection's unanswered requests. Replies answer the oldest first. */
struct dues {
    uint64_t *at;
    unsigned first, n, room; /* room: 0, or a power of two */
};

/* Exits the process if memory is out. */
void dues_push(struct dues *dues, uint64_t ns);
uint64_t dues_pop(struct dues *dues); /* `dues` must not be empty */
void dues_fini(struct dues *dues);

#endif
