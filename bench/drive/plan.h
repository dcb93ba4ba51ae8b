/*
 * When requests are due in an open loop, and on which connection: as of many clients that know nothing of each other,
 * by chance (a Poisson process), whether or not anything has been answered. The same seed gives the same plan.
 *
 * How long a request took counts from the time it was due, so that what a slow server or driver puts off is not left
 * out ("coordinated omission").
 */
#ifndef WEIR_BENCH_PLAN_H
#define WEIR_BENCH_PLAN_H

#include <stdint.h>

struct plan {
    double gap_ns; /* between two requests, on average */
    double at_ns;  /* when the next one is due, since `start_ns`: in whole ns the rate would be rounded */
    uint64_t start_ns;
    uint64_t state;
    unsigned conns, conn; /* how many there are, and whose the next request is */
};

void plan_init(struct plan *plan, double per_second, unsigned conns, uint64_t seed, uint64_t start_ns);
void plan_step(struct plan *plan);

static inline uint64_t plan_next_ns(const struct plan *plan)
{
    return plan->start_ns + (uint64_t)plan->at_ns;
}

/* The times at which a connection's unanswered requests were due: the oldest is answered first. */
struct dues {
    uint64_t *at;
    unsigned first, n, room; /* room: nothing, or a power of two */
};

/* Ends the process when memory is out. */
void dues_push(struct dues *dues, uint64_t ns);
uint64_t dues_pop(struct dues *dues); /* of some */
void dues_fini(struct dues *dues);

#endif
